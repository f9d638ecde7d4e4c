package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/scenario"
)

// TestEveryGatewayInAScenario sends one delivery of every type of every gateway
// to the program: all are taken in, the APIs that have to be asked are, and
// nothing that a gateway file makes is unreadable to it. What is not signed as
// the source's is refused.
func TestEveryGatewayInAScenario(t *testing.T) {
	t.Parallel()
	var scs []scenario.Scenario
	for _, g := range gateway.All() {
		s, err := scenario.Parse("every-"+g.Name+".yaml", []byte(everyType(g)))
		require.NoError(t, err, g.Name)
		scs = append(scs, s)
	}
	set, err := scenario.Prepare(scs)
	require.NoError(t, err)
	t.Cleanup(set.Close)
	target, _ := openTarget(t, set)
	sum, err := set.Run(t.Context(), target, nil)
	require.NoError(t, err)
	for _, f := range sum.Failures {
		t.Errorf("%s: %s", f.Name, strings.Join(f.Problems, "\n"))
	}
}

// everyType is a scenario of a gateway's types, in the order of its file, each
// about a payment of its own.
func everyType(g *gateway.Gateway) string {
	var b strings.Builder
	source := g.Name
	if len(source) > 20 {
		source = source[:20]
	}
	fmt.Fprintf(&b, "name: every-%s\nshows: Every type of %s is taken in.\nsources:\n  %s: {gateway: %s, mode: test}\nsteps:\n  - deliver:\n",
		g.Name, g.Title, source, g.Name)
	example := g.Example("x")
	if g.Name == gateway.Standard.Name {
		b.WriteString("      - {source: standard, type: payment.succeeded, order: o-0}\n")
	} else {
		for i, typ := range g.Types(example) {
			fmt.Fprintf(&b, "      - {source: %s, type: %q, order: o-%d}\n", source, typ.Name, i)
		}
	}
	taken := strings.Count(b.String(), "{source:")
	refused := 0
	if g.Scheme != "" {
		refused = 1
		fmt.Fprintf(&b, "      - {source: %s, body: 'x=1', unsigned: true, status: 401}\n", source)
	}
	fmt.Fprintf(&b, "expect:\n  outcomes: {applied: 0..99, no_change: 0..99, ignored: 0..99, waiting: 0..99, flagged: 0..99, duplicate: 0..99}\n  statuses: {200: %d, 401: %d}\n", taken, refused)
	if g.Fetch != nil && g.Fetch.Always {
		fmt.Fprintf(&b, "  asked: {%s: 1..99}\n", source)
	}
	return b.String()
}
