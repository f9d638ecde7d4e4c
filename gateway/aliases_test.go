package gateway_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// TestAliases: the events of one payment name it in many ways. In any order, with
// repetitions, they end as one ledger, whichever of them joins what was apart. The
// same is held of the real store in e2e.
func TestAliases(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			source := sourceFor(t, g)
			var story []order.Event
			for i, typ := range g.Types(source) {
				if slices.Contains(cases[g.Name].alone, typ.Name) {
					continue
				}
				story = append(story, spoken(t, gateway.SampleRequest{
					Source: source, Type: typ.Name, Reference: "ord_7", At: now.Add(time.Duration(i) * time.Minute),
				})...)
			}
			story = slices.DeleteFunc(story, func(ev order.Event) bool { return ev.Ignored != "" })
			if len(story) == 0 {
				return // a gateway that moves no money
			}
			want := order.NewLedger()
			for _, ev := range story {
				want.JoinEvent(ev)
			}
			rapid.Check(t, func(t *rapid.T) {
				told := rapid.Permutation(append(slices.Clone(story), story[len(story)/2], story[0])).Draw(t, "told")
				ledgers := joined(told)
				require.Len(t, ledgers, 1, "the events name several payments")
				a, err := json.Marshal(want)
				require.NoError(t, err)
				b, err := json.Marshal(ledgers[0])
				require.NoError(t, err)
				require.JSONEq(t, string(a), string(b))
			})
		})
	}
}

// joined folds events one by one into the ledgers of the payments that they name,
// and merges those that an event names together.
func joined(events []order.Event) []*order.Ledger {
	var ledgers []*order.Ledger
	for _, ev := range events {
		all := order.NewLedger()
		all.JoinEvent(ev)
		ledgers = slices.DeleteFunc(ledgers, func(l *order.Ledger) bool {
			named := slices.ContainsFunc(l.IDs, func(id string) bool { return slices.Contains(ev.Payment, id) })
			if named {
				all.Merge(l)
			}
			return named
		})
		ledgers = append(ledgers, all)
	}
	return ledgers
}
