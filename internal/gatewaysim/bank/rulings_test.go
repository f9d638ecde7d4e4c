package bank_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// TestFaultsAreRuled: what the calls make of every fault, at once and when they are made again, and that the money moves once at most.
func TestFaultsAreRuled(t *testing.T) {
	t.Parallel()
	type rulings = []gateway.Ruling
	done, lost := rulings{gateway.Done}, rulings{""}
	careful := rulings{gateway.Later, gateway.Unsure}
	for fault, row := range map[bank.Fault]struct{ at, again rulings }{
		bank.LostBefore:      {lost, done},
		bank.LostAfter:       {lost, done},
		bank.CutAnswer:       {lost, done},
		bank.Slow:            {done, done},
		bank.Garbage:         {careful, done},
		bank.Busy:            {rulings{gateway.Later}, done},
		bank.Late:            {lost, rulings{gateway.Later}},
		bank.Failure:         {rulings{gateway.Later}, done},
		bank.KeptFailure:     {careful, append(done, careful...)},
		bank.KeptFailureDone: {careful, append(done, careful...)},
		bank.TooMany:         {rulings{gateway.Later}, done},
		bank.Denied:          {rulings{gateway.Denied}, done},
	} {
		called(t, func(t *testing.T, g *gateway.Gateway) {
			s := open(t, bank.Options{Pause: func(context.Context) {}})
			l := newLedgers(t, s, g.Name)
			p := s.pay(g.Name, "A-1", true)
			s.Pump(t.Context())
			l.webhooks()
			m := l.movement(1, order.MovementRefund, "A-1", 1000)
			s.Script(bank.Match{Kind: bank.Refund}, bank.Step{fault})
			v, err := l.try(m, key(1, 1))
			require.Contains(t, row.at, v.Ruling, "%s: %s", fault, v.Detail)
			require.Equal(t, v.Ruling == "", err != nil)
			if fault == bank.TooMany {
				require.Equal(t, 2*time.Second, v.After)
			}
			v, err = l.try(m, key(1, 1))
			require.NoError(t, err)
			require.Contains(t, row.again, v.Ruling, "%s: %s", fault, v.Detail)
			s.Settle(t.Context())
			require.LessOrEqual(t, len(asked(s.book(p))), 1)
			if v.Ruling == gateway.Done {
				require.Len(t, asked(s.book(p)), 1)
			}
			if g.Name == "stripe" && (fault == bank.KeptFailure || fault == bank.KeptFailureDone) {
				require.Equal(t, gateway.Unsure, v.Ruling, "it will be answered the same again: it must be looked up")
			}
		})
	}
}

// TestReusedIsRuled: another body under a known key is our mistake. Adyen's answer cannot be told from that of a call under way.
func TestReusedIsRuled(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		s := open(t, bank.Options{})
		l := newLedgers(t, s, g.Name)
		p := s.pay(g.Name, "A-1", true)
		s.Pump(t.Context())
		l.webhooks()
		_, err := l.try(l.movement(1, order.MovementRefund, "A-1", 1000), key(1, 1))
		require.NoError(t, err)
		v, err := l.try(l.movement(2, order.MovementRefund, "A-1", 500), key(1, 1))
		require.NoError(t, err)
		want := gateway.Reused
		if g.Name == "adyen" {
			want = gateway.Later
		}
		require.Equal(t, want, v.Ruling, v.Detail)
		require.Len(t, asked(s.book(p)), 1)
	})
}

// TestRefusalsAreRuled: a refusal is never taken for done, and one that an earlier try may have brought about is not taken for
// final either.
func TestRefusalsAreRuled(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		if g.Name == "adyen" {
			t.Skip("Adyen refuses by webhook")
		}
		s := open(t, bank.Options{})
		l := newLedgers(t, s, g.Name)
		s.pay(g.Name, "A-1", true)
		s.pay(g.Name, "A-2", false)
		s.Pump(t.Context())
		l.webhooks()
		twice := l.movement(2, order.MovementRefund, "A-1", 5000)
		for title, row := range map[string]struct{ first, second order.Movement }{
			"refund":            {l.movement(1, order.MovementRefund, "A-1", 5000), twice},
			"void":              {l.movement(3, order.MovementVoid, "A-2", 5000), l.movement(4, order.MovementVoid, "A-2", 5000)},
			"capture of a void": {l.movement(3, order.MovementVoid, "A-2", 5000), l.movement(5, order.MovementCapture, "A-2", 5000)},
		} {
			v, err := l.try(row.first, key(int(row.first.ID[35]), 1))
			require.NoError(t, err, title)
			require.Contains(t, []gateway.Ruling{gateway.Done, gateway.Unsure}, v.Ruling, title)
			v, err = l.try(row.second, key(int(row.second.ID[35]), 1))
			require.NoError(t, err, title)
			require.Equal(t, gateway.Unsure, v.Ruling, "%s: %s", title, v.Detail)
		}
	})
}

// TestRefusedByWebhook: what Adyen took in and did not do never counts, and is no longer pending.
func TestRefusedByWebhook(t *testing.T) {
	t.Parallel()
	g := gateway.Adyen
	s := open(t, bank.Options{})
	l := newLedgers(t, s, "adyen")
	s.pay("adyen", "A-1", true)
	s.Pump(t.Context())
	l.webhooks()
	first, second := l.movement(1, order.MovementRefund, "A-1", 4000), l.movement(2, order.MovementRefund, "A-1", 3000)
	for n, m := range []order.Movement{first, second} {
		v, err := l.try(m, key(n, 1))
		require.NoError(t, err)
		require.Equal(t, gateway.Done, v.Ruling, g.Name)
		l.take(v)
	}
	for _, one := range l.all() { // both are on their way
		_, err := one.Movable(order.MovementRefund, "EUR")
		require.Error(t, err)
	}
	s.Pump(t.Context())
	l.webhooks()
	require.EqualValues(t, 4000, l.sums("A-1").Refunded)
	require.NotNil(t, l.movement(3, order.MovementRefund, "A-1", 1000))
}

// TestListing: what no webhook told, the list does, with the same ids.
func TestListing(t *testing.T) {
	t.Parallel()
	for _, gw := range gateways {
		g, _ := gateway.Lookup(gw)
		if g.Listing == nil {
			continue
		}
		t.Run(gw, func(t *testing.T) {
			t.Parallel()
			s := open(t, bank.Options{})
			l, told := newLedgers(t, s, gw), newLedgers(t, s, gw)
			for n := range 90 { // more than a page
				ref := string(rune('a'+n%26)) + string(rune('a'+n/26))
				p := s.pay(gw, ref, n%3 != 0)
				switch n % 3 {
				case 0:
					s.do(gw, s.capture(gw, p, 700, name(n), key(n, 1)))
				case 1:
					s.do(gw, s.refund(gw, p, 700, name(n), key(n, 1)))
				}
				s.clock.add(time.Minute)
			}
			s.Pump(t.Context())
			told.webhooks()
			ids := map[string]bool{}
			pages := 0
			for page := ""; pages == 0 || page != ""; pages++ {
				require.Less(t, pages, 20)
				call, err := g.Listing.Call(l.src, gateway.Span{From: start, Until: s.now()}, page)
				require.NoError(t, err)
				reply, err := s.send(t.Context(), g.Listing.BaseURL(l.src), call)
				require.NoError(t, err)
				require.Equal(t, 200, reply.Status, string(reply.Body))
				got, err := g.Listing.Read(l.src, gateway.Answer{Body: reply.Body, Started: reply.Started})
				require.NoError(t, err)
				for _, d := range got.Deliveries {
					events, err := g.Events(l.src, d)
					require.NoError(t, err)
					for _, ev := range events {
						ids[ev.ID] = true
					}
					l.join(events)
				}
				for _, o := range got.Objects {
					l.fetch(o)
				}
				page = got.Next
			}
			require.Empty(t, bank.Compare(s.Books(), l.books(s.Books())))
			require.Empty(t, bank.Compare(s.Books(), told.books(s.Books())))
			if len(ids) > 0 { // a list of events, and not of payments
				require.Equal(t, told.ids, ids)
			}
		})
	}
}

// TestAbout: what is asked about a payment tells the same as its webhooks.
func TestAbout(t *testing.T) {
	t.Parallel()
	for _, gw := range gateways {
		g, _ := gateway.Lookup(gw)
		if g.Fetch == nil || g.Fetch.About == nil {
			continue
		}
		t.Run(gw, func(t *testing.T) {
			t.Parallel()
			s := open(t, bank.Options{})
			told := newLedgers(t, s, gw)
			paid, held, let := s.pay(gw, "A-1", true), s.pay(gw, "A-2", false), s.pay(gw, "A-3", false)
			s.do(gw, s.refund(gw, paid, 1200, name(1), key(1, 1)))
			s.do(gw, s.capture(gw, held, 3000, name(2), key(2, 1)))
			s.do(gw, s.void(gw, let, name(3), key(3, 1)))
			s.Pump(t.Context())
			told.webhooks()
			for _, one := range told.all() {
				l := newLedgers(t, s, gw)
				for _, o := range g.Fetch.About(l.src, one.IDs) {
					l.fetch(o)
				}
				require.NotEmpty(t, l.all())
				ref := one.Links().Best().Ref
				want := told.sums(ref)
				if gw == "stripe" { // neither a PaymentIntent nor its charge has the other's story; refunds are told by the charge
					want.Refunded = l.sums(ref).Refunded
				}
				require.Equal(t, want, l.sums(ref), ref)
				require.Equal(t, told.view(ref).State == order.StateCanceled, l.view(ref).State == order.StateCanceled)
			}
		})
	}
}
