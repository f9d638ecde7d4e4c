package bank_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// told are the types of the webhooks that tell of a captured payment, and of a refund of it.
var told = map[string][2][]string{
	"stripe":      {{"charge.succeeded", "payment_intent.succeeded"}, {"refund.created", "charge.refunded"}},
	"adyen":       {{"AUTHORISATION", "CAPTURE"}, {"REFUND"}},
	"paypal":      {{"PAYMENT.CAPTURE.COMPLETED"}, {"PAYMENT.CAPTURE.REFUNDED"}},
	"mercadopago": {{"payment.created"}, {"payment.updated"}},
}

// key is the key that a delivery of the source is verified with, where it is found on the network.
func keys(g *gateway.Gateway, src gateway.Source) []string {
	if g.Remote == nil || g.Remote.Example == nil {
		return nil
	}
	_, found := g.Remote.Example(src)
	return []string{string(found)}
}

// TestWebhooksAreGenuine: signed as the gateway signs, they mean what the books say.
func TestWebhooksAreGenuine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		g, _ := gateway.Lookup(gw)
		paid, held, let := s.pay(gw, "A-1", true), s.pay(gw, "A-2", false), s.pay(gw, "A-3", false)
		s.do(gw, s.refund(gw, paid, 1200, "m-1", "k-1"))
		s.do(gw, s.capture(gw, held, 5000, "m-2", "k-2"))
		s.do(gw, s.void(gw, let, "m-3", "k-3"))
		require.Positive(t, s.Pump(t.Context()))

		ledgers := newLedgers(t, s, gw)
		for _, w := range s.inbox.hook {
			require.NoError(t, g.Verify(w.Source, w.Delivery, s.now(), keys(g, w.Source)...), w.Type)
			require.Equal(t, s.sources[gw], w.Source)
			require.Equal(t, 1, w.Attempt)
			ledgers.webhook(w)
		}
		require.Equal(t, bank.Sums{Captured: 5000, Refunded: 1200}, ledgers.sums("A-1"))
		require.Equal(t, bank.Sums{Captured: 5000}, ledgers.sums("A-2"))
		require.Zero(t, ledgers.sums("A-3"))
		require.Equal(t, order.StateCanceled, ledgers.view("A-3").State)
		require.Empty(t, bank.Compare(s.Books(), ledgers.books(s.Books())))
	})
}

// TestHookFaults: each of them, on the webhooks of one refund.
func TestHookFaults(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		opening, refunded := told[gw][0], told[gw][1]
		twice := slices.Concat(refunded, refunded)
		for fault, row := range map[bank.Fault]struct{ atOnce, atLast []string }{
			"":                 {refunded, refunded},
			bank.HookDropped:   {nil, nil},
			bank.HookDoubled:   {twice, twice},
			bank.HookDelayed:   {nil, refunded},
			bank.HookEarly:     {refunded, refunded},
			bank.HookReordered: {nil, refunded},
		} {
			s := open(t, bank.Options{})
			p := s.pay(gw, "A-1", true)
			s.Pump(t.Context())
			require.Equal(t, opening, s.types())
			s.inbox.clear()
			s.Script(bank.Match{Kind: bank.Refund}, bank.Step{fault})
			s.do(gw, s.refund(gw, p, 1000, "m", "k"))
			if fault == bank.HookEarly {
				require.Equal(t, refunded, s.types(), "before the answer")
				require.Zero(t, s.Pump(t.Context()))
			}
			s.Pump(t.Context())
			got := s.types()
			if fault == bank.HookReordered && len(refunded) > 1 { // the first waits for the second, and the second for nobody
				require.Equal(t, refunded[:1], got)
			} else {
				require.ElementsMatch(t, row.atOnce, got, fault)
			}
			s.clock.add(time.Minute)
			s.Pump(t.Context())
			require.ElementsMatch(t, row.atLast, s.types(), fault)
		}
	})
}

// TestReordered: what is reordered is sent after what comes next.
func TestReordered(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("paypal", "A-1", true)
	s.Pump(t.Context())
	s.inbox.clear()
	s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.HookReordered}, bank.Step{bank.RefundPends})
	s.do("paypal", s.refund("paypal", p, 1000, "m-1", "k-1"))
	require.Zero(t, s.Pump(t.Context()))
	s.do("paypal", s.refund("paypal", p, 1000, "m-2", "k-2"))
	require.Equal(t, 2, s.Pump(t.Context()))
	require.Equal(t, []string{"PAYMENT.REFUND.PENDING", "PAYMENT.CAPTURE.REFUNDED"}, s.types())
}

// TestEarlyBeforeTheAnswer: the webhook has been taken when the answer comes, and is sent even if the answer never does.
func TestEarlyBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	s := open(t, bank.Options{Deliver: func(context.Context, bank.Webhook) error {
		select {
		case <-answered:
			return errLate
		default:
			return nil
		}
	}})
	p := s.pay("mercadopago", "A-1", true)
	s.Script(bank.Match{}, bank.Step{bank.HookEarly}, bank.Step{bank.HookEarly, bank.LostAfter})
	for _, key := range []string{"k-1", "k-2"} {
		s.do("mercadopago", s.refund("mercadopago", p, 1000, "m", key))
	}
	close(answered)
	require.Equal(t, 2, s.Counts("a.mercadopago").Sent)
	require.Zero(t, s.Counts("a.mercadopago").Refused)
}

var errLate = http.ErrHandlerTimeout

// TestRefundsThatFailLater: done, told, and undone some time later, which a webhook tells.
func TestRefundsThatFailLater(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{Delay: time.Hour})
		p := s.pay(gw, "A-1", true)
		s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.RefundFails}, bank.Step{bank.RefundPends, bank.RefundFails})
		ledgers := newLedgers(t, s, gw)
		s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		s.do(gw, s.refund(gw, p, 500, "m-2", "k-2"))
		require.EqualValues(t, 1500, s.book(p).Sums["EUR"].Refunded)
		s.Pump(t.Context())
		ledgers.webhooks()
		s.clock.add(time.Hour)
		s.Pump(t.Context())
		ledgers.webhooks()
		require.Zero(t, s.book(p).Sums["EUR"].Refunded)
		require.Equal(t, order.StatusFailed, asked(s.book(p))[0].Status)
		require.Zero(t, ledgers.sums("A-1").Refunded)
		require.Empty(t, bank.Compare(s.Books(), ledgers.books(s.Books())))
		want := map[string]string{"stripe": "refund.failed", "adyen": "REFUND_FAILED", "paypal": "PAYMENT.REFUND.FAILED", "mercadopago": "payment.updated"}[gw]
		require.Contains(t, s.types(), want)
		require.Equal(t, 2, s.Counts(p.Source).Faults[bank.RefundFails])
	})
}

// TestPending: money of a pending refund is on its way.
func TestPending(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for _, gw := range []string{"paypal", "mercadopago", "stripe"} {
		p := s.pay(gw, "A-1", true)
		s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.RefundPends})
		s.do(gw, s.refund(gw, p, 5000, "m-1", "k-1"))
		require.Equal(t, order.StatusPending, asked(s.book(p))[0].Status)
		require.Equal(t, 4, s.do(gw, s.refund(gw, p, 1, "m-2", "k-2")).status/100)
		s.Settle(t.Context())
		require.Equal(t, order.StatusOK, asked(s.book(p))[0].Status)
	}
}

// TestNotTaken: a webhook that is refused comes again, later each time; Settle tries it once more.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	s.inbox.fail = 3
	s.pay("adyen", "A-1", false)
	require.Zero(t, s.Pump(t.Context()))
	require.Zero(t, s.Pump(t.Context()), "not before its time")
	s.clock.add(time.Minute)
	require.Zero(t, s.Pump(t.Context()))
	s.clock.add(time.Minute)
	require.Zero(t, s.Pump(t.Context()), "two minutes now")
	require.Zero(t, s.Settle(t.Context()))
	require.Equal(t, 1, s.Settle(t.Context()))
	require.Equal(t, 4, s.inbox.hook[0].Attempt)
	c := s.Counts("a.adyen")
	require.Equal(t, []int{1, 3}, []int{c.Sent, c.Refused})
}

// TestOpeningsCanBeSilent, or early words of them reordered.
func TestOpeningsCanBeSilent(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for _, row := range []struct {
		hooks bank.Step
		want  int
	}{{bank.Step{bank.HookDropped}, 0}, {bank.Step{bank.HookDoubled}, 4}, {bank.Step{}, 2}, {bank.Step{bank.HookEarly}, 2}} {
		_, err := s.Open(bank.Opening{Source: "a.stripe", Amount: order.Amount{Minor: 1, Currency: "JPY"}, Captured: true, Hooks: row.hooks})
		require.NoError(t, err)
		require.Equal(t, row.want, s.Settle(t.Context()))
	}
}

// TestPostTo: over HTTP, to the source's own path, and what is not answered 2xx was not taken.
func TestPostTo(t *testing.T) {
	t.Parallel()
	var got []*http.Request
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Clone(context.WithoutCancel(r.Context())))
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	s := open(t, bank.Options{Deliver: bank.PostTo(server.Client(), server.URL+"/webhooks/")})
	p := s.pay("mercadopago", "A-1", true)
	require.Zero(t, s.Pump(t.Context()))
	status = http.StatusOK
	require.Equal(t, 1, s.Settle(t.Context()))
	require.Len(t, got, 2)
	require.Equal(t, "/webhooks/a.mercadopago", got[1].URL.Path)
	require.Equal(t, p.IDs[0], got[1].URL.Query().Get("data.id"))
	require.NotEmpty(t, got[1].Header.Get("X-Signature"))
	require.ErrorContains(t, bank.PostTo(server.Client(), "http://127.0.0.1:1")(t.Context(), bank.Webhook{Delivery: gateway.Delivery{Method: "POST"}}), "bank: ")
}

// TestRun sends whatever becomes due, until it is told to end.
func TestRun(t *testing.T) {
	t.Parallel()
	taken := make(chan bank.Webhook)
	s := open(t, bank.Options{Deliver: func(ctx context.Context, w bank.Webhook) error {
		select {
		case taken <- w:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	p := s.pay("paypal", "A-1", true)
	go func() {
		defer close(ended)
		s.Run(ctx, time.Hour)
	}()
	require.Equal(t, "PAYMENT.CAPTURE.COMPLETED", (<-taken).Type)
	s.do("paypal", s.refund("paypal", p, 1000, "m", "k"))
	require.Equal(t, "PAYMENT.CAPTURE.REFUNDED", (<-taken).Type)
	stop()
	<-ended
}

// TestBehindNobody: without Deliver nothing is sent, and everything is in the lists.
func TestBehindNobody(t *testing.T) {
	t.Parallel()
	c := &clock{at: start}
	b, err := bank.Start(bank.Options{Now: c.now, Odds: bank.Odds{}})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	src, err := b.Source(credentials(gateway.Stripe.Example("bank")))
	require.NoError(t, err)
	_, err = b.Open(bank.Opening{Source: src.ID, Amount: order.Amount{Minor: 1, Currency: "EUR"}, Captured: true})
	require.NoError(t, err)
	require.Zero(t, b.Settle(t.Context()))
	require.True(t, strings.HasSuffix(src.APIURL, "/a.stripe"))
}
