package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Source is a configured source of an account, as far as commands about payments need to know it; see [NewSource].
type Source struct {
	ID      string
	Gateway string
	Realm   string // the name space of its payment ids, as its webhooks have it

	// Prepare makes the call of a movement, without key and credentials. Its error is a [*gateway.CallError]. nil: its gateway is
	// not asked to move money, and NotCallable says why, in a sentence.
	Prepare     func(order.Movement) (store.Request, error)
	NotCallable string
}

// paymentID is the gateway's own name of a payment, as a request has it.
type paymentID string

const formatPayment = "payment-id"

// Schema documents it.
func (paymentID) Schema(huma.Registry) *huma.Schema {
	one := 1
	return &huma.Schema{
		Type: huma.TypeString, Format: formatPayment, MinLength: &one, Examples: []any{"pi_1"},
		Description: "The gateway's id of the payment, as its webhooks have it; of money outside of gateways the id of the income.",
	}
}

// namedPayment is a paymentID that may be left out.
type namedPayment string

// Schema documents it.
func (namedPayment) Schema(r huma.Registry) *huma.Schema {
	s := paymentID("").Schema(r)
	s.Description = "Any of the gateway's ids of the payment. Absent: the order's only one that fits."
	return s
}

// realmOf finds the name space of the payments of a source: of the one that is named, else of the only one there is, of
// the gateway that is named if one is. Several sources that share a name space are as good as one.
func (a *API) realmOf(account, source, gateway string) (string, error) {
	bad := func(at, code, detail string) error {
		return invalid([]FieldError{{Pointer: "/data/" + at, Code: code, Detail: detail}})
	}
	all := a.opts.Sources(account)
	if source != "" {
		i := slices.IndexFunc(all, func(s Source) bool { return s.ID == source })
		switch {
		case i < 0:
			return "", bad("source", "unknown_source", "is no source of this account")
		case gateway != "" && all[i].Gateway != gateway:
			return "", bad("gateway", "other_gateway", "is not the gateway of that source")
		}
		return all[i].Realm, nil
	}
	if gateway != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(s Source) bool { return s.Gateway != gateway })
	}
	switch {
	case len(all) == 0 && gateway != "":
		return "", bad("gateway", "unknown_gateway", "is no gateway that a source of this account is of")
	case len(all) == 0:
		return "", bad("source", "unknown_source", "is missing, and this account has no source")
	case len(realmsOf(all)) > 1:
		ids := make([]string, len(all))
		for i, s := range all {
			ids[i] = s.ID
		}
		slices.Sort(ids)
		return "", bad("source", "ambiguous", "must say which is meant of "+strings.Join(ids, ", "))
	}
	return all[0].Realm, nil
}

// realmsOf are the name spaces of sources, sorted.
func realmsOf(sources []Source) []string {
	realms := make([]string, len(sources))
	for i, s := range sources {
		realms[i] = s.Realm
	}
	slices.SortFunc(realms, cmp.Compare)
	return slices.Compact(realms)
}
