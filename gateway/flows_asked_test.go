package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// answered are the events of what the API answers at that step.
func (s step) answered(t *testing.T, source gateway.Source) []order.Event {
	t.Helper()
	r := gateway.SampleRequest{
		Source: source, Type: s.typ, Reference: "ord_7", Ref: s.ref, Set: s.set,
		Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now.Add(time.Duration(s.at) * time.Minute),
	}
	if s.amt != 0 {
		r.Amount.Minor = s.amt
	}
	g := of(t, source)
	object, answer, err := g.Fetch.Sample(r)
	require.NoError(t, err)
	evs, err := g.Fetched(source, object, gateway.Answer{Body: answer, Started: r.At})
	require.NoError(t, err)
	return evs
}

// TestAskedFlows is TestFlows for gateways that are asked: the states that a
// payment goes through, as the API would tell them, read in every order and with
// repetitions. Any state that is missed must not matter either: the newest alone
// says the same as all of them (of what the last one says at all).
func TestAskedFlows(t *testing.T) {
	t.Parallel()
	for _, tt := range askedFlows {
		t.Run(tt.gateway+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			source := sourceNamed(t, tt.gateway)
			var evs []order.Event
			for _, s := range tt.steps {
				for _, ev := range s.answered(t, source) {
					require.Empty(t, ev.Broken, s.typ)
					evs = append(evs, ev)
				}
			}
			permute(evs, func(evs []order.Event) {
				v := fold(append(slices.Clone(evs), evs[0], evs[len(evs)-1]))
				require.Zero(t, v.Flags&^(order.FlagUnderpaid|tt.flags), v.Flags.String())
				got := fmt.Sprintf("%s %d-%d-%d %s", v.State, v.Captured, v.Refunded, v.Lost, v.Want)
				require.Equal(t, tt.want, got, "in the order %v", types(evs))
			})
			if !tt.parts {
				v := fold(evs[len(evs)-1:])
				got := fmt.Sprintf("%s %d-%d-%d", v.State, v.Captured, v.Refunded, v.Lost)
				require.Contains(t, tt.want, got, "the last state alone")
			}
		})
	}
}

type askedFlow struct {
	gateway, name string
	steps         []step
	want          string
	parts         bool // what is answered are parts of the payment, not the whole of it
	flags         order.Flags
}

var askedFlows []askedFlow

// asks registers flows of a gateway that is asked; each does so in its own test file.
func asks(flows ...askedFlow) bool {
	askedFlows = append(askedFlows, flows...)
	return true
}
