package manual

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/gateway"
)

// settings writes the smallest source of a gateway as it stands in the configuration, under
// accounts.{account}.sources. What is secret or the merchant's own comes from variables.
func settings(g *gateway.Gateway) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n  gateway: %[1]s\n  mode: live\n", g.Name)
	for _, o := range g.Options {
		switch {
		case o.Name == "map":
			mapped(&b, g.Example("manual").Map)
		case o.Required && strings.HasSuffix(o.Name, "s"): // a list: several are live
			fmt.Fprintf(&b, "  %s: [\"${%s}\"]\n", o.Name, variable(g.Name, strings.TrimSuffix(o.Name, "s")))
		case o.Required:
			fmt.Fprintf(&b, "  %s: ${%s}\n", o.Name, variable(g.Name, o.Name))
		}
	}
	if g.Evidence == gateway.Unconfirmed {
		b.WriteString("  unconfirmed: true # once a delivery of the sandbox has verified\n")
	}
	return b.String()
}

// variable is a name for what an option is read from.
func variable(name, option string) string {
	return strings.ToUpper(strings.ReplaceAll(name+"_"+option, "-", "_"))
}

func mapped(b *strings.Builder, m *gateway.Map) {
	fmt.Fprintf(b, "  map:\n    type: %s\n    payment: %s\n    reference: %s\n    amount: %s\n    currency: %s\n    facts:\n",
		m.Type, m.Payment, m.Reference, m.Amount, m.Currency)
	for _, name := range slices.Sorted(maps.Keys(m.Facts)) {
		fmt.Fprintf(b, "      %s: %s\n", name, m.Facts[name])
	}
}
