package bank_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// What became of a movement, as far as who asked for it knows.
const (
	succeeded = "succeeded"
	failed    = "failed"
	uncertain = "uncertain" // a webhook or a person must tell
)

// careful follows a movement to its end by the rules of a caller that moves money once: the same bytes under the same key until an
// answer says otherwise; what cannot be told is looked up; only what is proven not to be done is asked for under another key.
func (l *ledgers) careful(n int, m order.Movement) (outcome string, mine bank.Movement) {
	l.t.Helper()
	epoch, lookups, looking := 1, 0, false
	mine = bank.Movement{Kind: m.Kind, Amount: m.Amount, Given: m.ID, Status: order.StatusOK}
	for range 80 {
		l.s.clock.add(7 * time.Second)
		var v gateway.Verdict
		var err error
		if looking {
			v, err = l.look(m)
			lookups++
		} else {
			mine.Key = key(n, epoch)
			v, err = l.try(m, mine.Key)
		}
		if err != nil { // no answer
			continue
		}
		l.takeAll(v)
		mine.Ref = v.Ref
		switch {
		case v.Ruling == gateway.Done:
			return succeeded, mine
		case lookups > 12:
			return uncertain, mine
		case looking && v.Ruling == gateway.Absent:
			if epoch++; epoch > 3 {
				return failed, mine
			}
			looking = false
		case looking:
		case v.Ruling == gateway.Declined:
			return failed, mine
		case v.Ruling == gateway.Unsure, v.Ruling == gateway.Reused:
			if l.g.Calls.Look == nil {
				return uncertain, mine
			}
			looking = true
		}
	}
	return uncertain, mine
}

// takeAll joins what a verdict says. What it says should be asked about is asked until it is answered.
func (l *ledgers) takeAll(v gateway.Verdict) {
	l.t.Helper()
	l.join(v.Events)
	for _, o := range v.Fetch {
		l.persist(o)
	}
}

// persist asks about an object until it is answered.
func (l *ledgers) persist(o gateway.Object) {
	l.t.Helper()
	for range 100 {
		call, err := l.g.Fetch.Call(l.src, o)
		require.NoError(l.t, err)
		reply, err := l.s.send(l.t.Context(), l.g.Fetch.BaseURL(l.src), call)
		if err != nil || reply.Status != 200 {
			continue
		}
		events, err := l.g.Fetched(l.src, o, gateway.Answer{Body: reply.Body, Started: reply.Started})
		if err == nil {
			l.join(events)
			return
		}
	}
	l.t.Fatalf("nobody answers about %s", o)
}

// reconcile reads the list of what happened, page by page, until it is read, or without a list nothing.
func (l *ledgers) reconcile() {
	l.t.Helper()
	if l.g.Listing == nil {
		return
	}
	for page, tries := "", 0; tries < 500; tries++ {
		call, err := l.g.Listing.Call(l.src, gateway.Span{From: start, Until: l.s.now().Add(time.Hour)}, page)
		require.NoError(l.t, err)
		reply, err := l.s.send(l.t.Context(), l.g.Listing.BaseURL(l.src), call)
		if err != nil || reply.Status != 200 {
			continue
		}
		got, err := l.g.Listing.Read(l.src, gateway.Answer{Body: reply.Body, Started: reply.Started})
		if err != nil {
			continue
		}
		for _, d := range got.Deliveries {
			events, err := l.g.Events(l.src, d)
			require.NoError(l.t, err)
			l.join(events)
		}
		for _, o := range got.Objects {
			l.persist(o)
		}
		if page = got.Next; page == "" {
			return
		}
	}
	l.t.Fatal("the list cannot be read")
}

// TestMoneyMovesOnce is what all of this is for: whatever the bank does to calls and webhooks, a movement that is said to have
// succeeded was done once, one that has failed was not, none was done twice; and what webhooks and lists tell adds up to the books.
//
// Late and Garbage do not go together here: an answer that nobody can read is looked up at once, which finds nothing while an earlier
// try of the same call is still under way.
func TestMoneyMovesOnce(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		outcomes := map[string]int{}
		for seed := range uint64(6) {
			odds := bank.DefaultOdds()
			odds[bank.HangBefore], odds[bank.HangAfter] = 0, 0 // as LostBefore and LostAfter, only slower
			odds[[]bank.Fault{bank.Late, bank.Garbage}[seed%2]] = 0
			moneyMovesOnce(t, g, bank.Options{Seed: seed, Odds: odds, Pause: func(context.Context) {}}, outcomes)
		}
		require.Equal(t, 72, outcomes[succeeded]+outcomes[failed]+outcomes[uncertain])
		if g.Calls.Look != nil {
			require.Equal(t, 72, outcomes[succeeded], outcomes)
		}
		require.Greater(t, outcomes[succeeded], 50, outcomes)
	})
}

// moneyMovesOnce follows twelve movements, and counts what became of them.
func moneyMovesOnce(t *testing.T, g *gateway.Gateway, opts bank.Options, outcomes map[string]int) {
	t.Helper()
	s := open(t, opts)
	l := newLedgers(t, s, g.Name)
	for n := range 12 {
		_, err := s.Open(bank.Opening{
			Source: l.src.ID, Reference: fmt.Sprint("A-", n), Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: n%3 == 0, Hooks: bank.Step{},
		})
		require.NoError(t, err)
	}
	s.Pump(t.Context())
	l.hooks()
	var ours []bank.Movement
	for n := range 12 {
		kind := []order.MovementKind{order.MovementRefund, order.MovementCapture, order.MovementVoid}[n%3]
		cents := []int64{1300, 2600, 5000}[n%3]
		outcome, mine := l.careful(n, l.movement(n, kind, fmt.Sprint("A-", n), cents))
		outcomes[outcome]++
		switch times := s.times(mine); outcome {
		case succeeded:
			require.Equal(t, 1, times, "%s of seed %d", mine, opts.Seed)
		case failed:
			require.Zero(t, times, "%s of seed %d", mine, opts.Seed)
		}
		ours = append(ours, mine)
		s.Pump(t.Context())
		l.hooks()
	}
	s.Settle(t.Context())
	l.hooks()
	for _, mine := range ours {
		require.LessOrEqual(t, s.times(mine), 1, "%s of seed %d", mine, opts.Seed)
	}
	l.reconcile()
	if g.Listing != nil {
		require.Empty(t, bank.Compare(s.Books(), l.books(s.Books())), "seed %d", opts.Seed)
	}
}

// hooks reads the webhooks that came since, and what they name.
func (l *ledgers) hooks() {
	l.t.Helper()
	for ; l.read < len(l.s.inbox.hook); l.read++ {
		d := l.s.inbox.hook[l.read].Delivery
		events, err := l.g.Events(l.src, d)
		require.NoError(l.t, err)
		l.join(events)
		objects, err := l.g.Objects(l.src, d)
		require.NoError(l.t, err)
		for _, o := range objects {
			l.persist(o)
		}
	}
}

// times is how often the bank has done a movement, under whatever key.
func (s *stage) times(mine bank.Movement) (n int) {
	for _, p := range s.Books().Payments {
		for _, m := range p.Movements {
			if !m.Opening && m.Kind == mine.Kind && (m.Given == mine.Given || len(m.Key) == len(mine.Key) && m.Key[9:] == mine.Key[9:]) {
				n++
			}
		}
	}
	return n
}
