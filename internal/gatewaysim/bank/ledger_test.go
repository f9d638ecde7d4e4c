package bank_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// ledgers are what a source's payments are by the events that came of them: what we believe.
type ledgers struct {
	t    *testing.T
	s    *stage
	g    *gateway.Gateway
	src  gateway.Source
	byID map[string]*order.Ledger
	ids  map[string]bool // of the events that were joined
	read int             // webhooks of the inbox
}

func newLedgers(t *testing.T, s *stage, gw string) *ledgers {
	t.Helper()
	g, ok := gateway.Lookup(gw)
	require.True(t, ok)
	return &ledgers{t: t, s: s, g: g, src: s.sources[gw], byID: map[string]*order.Ledger{}, ids: map[string]bool{}}
}

// webhooks reads those that came since.
func (l *ledgers) webhooks() {
	l.t.Helper()
	for ; l.read < len(l.s.inbox.hook); l.read++ {
		l.webhook(l.s.inbox.hook[l.read])
	}
}

// webhook joins what a delivery says, and what the API says about the objects that it names.
func (l *ledgers) webhook(w bank.Webhook) {
	l.t.Helper()
	events, err := l.g.Events(l.src, w.Delivery)
	require.NoError(l.t, err)
	l.join(events)
	objects, err := l.g.Objects(l.src, w.Delivery)
	require.NoError(l.t, err)
	for _, o := range objects {
		l.fetch(o)
	}
}

// fetch asks the API about an object.
func (l *ledgers) fetch(o gateway.Object) {
	l.t.Helper()
	call, err := l.g.Fetch.Call(l.src, o)
	require.NoError(l.t, err)
	got := l.s.call(l.g.Name, call)
	require.NoError(l.t, got.err)
	require.Equal(l.t, 200, got.status, got.text)
	events, err := l.g.Fetched(l.src, o, gateway.Answer{Body: []byte(got.text), Started: l.s.now()})
	require.NoError(l.t, err)
	l.join(events)
}

// join joins events into the ledgers of their payments.
func (l *ledgers) join(events []order.Event) {
	l.t.Helper()
	for _, ev := range events {
		require.Empty(l.t, ev.Broken, ev.Type)
		l.ids[ev.ID] = true
		if len(ev.Payment) == 0 {
			continue
		}
		one := order.NewLedger()
		for _, id := range ev.Payment {
			if known := l.byID[id]; known != nil && known != one {
				known.Merge(one)
				one = known
			}
		}
		one.JoinEvent(ev)
		for _, id := range one.IDs {
			l.byID[id] = one
		}
	}
}

// all are the ledgers, each once.
func (l *ledgers) all() (all []*order.Ledger) {
	for _, id := range slices.Sorted(maps.Keys(l.byID)) {
		if !slices.Contains(all, l.byID[id]) {
			all = append(all, l.byID[id])
		}
	}
	return all
}

// view is the order of a reference.
func (l *ledgers) view(reference string) order.View {
	o := order.Order{Registered: true, Total: 5000, Currency: "EUR", Payments: map[string]*order.Ledger{}}
	for _, one := range l.all() {
		if one.Links().Best().Ref == reference {
			o.Payments[one.IDs[0]] = one
		}
	}
	return o.View()
}

func (l *ledgers) sums(reference string) bank.Sums {
	v := l.view(reference)
	return bank.Sums{Captured: v.Captured, Refunded: v.Refunded}
}

// books are what we believe, in the form of the bank's. What was asked for by key is not in ledgers, so movements are the bank's own.
func (l *ledgers) books(theirs bank.Books) (ours bank.Books) {
	for _, one := range l.all() {
		v := (&order.Order{Payments: map[string]*order.Ledger{"x": one}}).View()
		p := bank.Payment{Source: l.src.ID, IDs: one.IDs, Sums: map[string]bank.Sums{}}
		for cur := range one.Money {
			p.Sums[cur] = bank.Sums{Captured: v.Captured, Refunded: v.Refunded}
		}
		for _, t := range theirs.Payments {
			if t.Source == p.Source && t.IDs[0] == one.IDs[0] || slices.Contains(one.IDs, t.IDs[0]) {
				p.Movements = t.Movements
			}
		}
		ours.Payments = append(ours.Payments, p)
	}
	return ours
}
