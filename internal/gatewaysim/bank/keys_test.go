package bank_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
)

var lives = map[string]time.Duration{"stripe": 24 * time.Hour, "adyen": 7 * 24 * time.Hour, "paypal": 45 * 24 * time.Hour, "mercadopago": 24 * time.Hour}

// TestSameKeySameAnswer: a call that is repeated moves nothing and is answered as before, with the gateway's mark.
func TestSameKeySameAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p := s.pay(gw, "A-1", true)
		first := s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		s.clock.add(lives[gw] - time.Second)
		again := s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		require.Equal(t, first.text, again.text)
		require.Len(t, asked(s.book(p)), 1)
		require.Equal(t, 1, s.Counts(p.Source).Replays)
		switch gw {
		case "stripe":
			require.Empty(t, first.header.Get("Idempotent-Replayed"))
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
			require.Equal(t, 200, again.status)
		case "adyen":
			require.Equal(t, "k-1", again.header.Get("Idempotency-Key"))
			require.Equal(t, 201, again.status)
		default: // 200 where 201 was expected
			require.Equal(t, 201, first.status)
			require.Equal(t, 200, again.status)
		}
	})
}

// TestOtherKeyMovesAgain, and so does none: that is what has to be found by whoever tests against the bank.
func TestOtherKeyMovesAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p := s.pay(gw, "A-1", true)
		s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		s.do(gw, s.refund(gw, p, 1000, "m-1", "k-2"))
		none := s.do(gw, s.refund(gw, p, 1000, "m-1", ""))
		want := 3
		if gw == "mercadopago" {
			want = 2
			require.Equal(t, 400, none.status)
			require.Equal(t, "4292", none.body.Get("cause.0.code").String())
		}
		require.Len(t, asked(s.book(p)), want)
		require.EqualValues(t, want*1000, s.book(p).Sums["EUR"].Refunded)
		diff := bank.Compare(s.Books(), s.Books())
		require.Contains(t, diff, "the bank has done m-1")
	})
}

// TestExpiredKeyMovesAgain: what is repeated too late is done twice.
func TestExpiredKeyMovesAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p := s.pay(gw, "A-1", true)
		s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		s.clock.add(lives[gw])
		require.Contains(t, []int{200, 201}, s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1")).status)
		require.Len(t, asked(s.book(p)), 2)
		require.Zero(t, s.Counts(p.Source).Replays)
	})
}

// TestReusedKey: another body, or another endpoint, under a known key is refused and moves nothing.
func TestReusedKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p, other := s.pay(gw, "A-1", true), s.pay(gw, "A-2", true)
		s.do(gw, s.refund(gw, p, 1000, "m-1", "k-1"))
		body := s.do(gw, s.refund(gw, p, 1001, "m-1", "k-1"))
		endpoint := s.do(gw, s.refund(gw, other, 1000, "m-1", "k-1"))
		require.Len(t, asked(s.book(p)), 1)
		require.Empty(t, asked(s.book(other)))
		require.Equal(t, 2, s.Counts(p.Source).Reused)
		for _, got := range []got{body, endpoint} {
			switch gw {
			case "stripe":
				require.Equal(t, 400, got.status)
				require.Equal(t, "idempotency_error", got.body.Get("error.type").String())
				require.Contains(t, got.body.Get("error.message").String(), "the same parameters")
			case "adyen":
				require.Equal(t, 422, got.status)
				require.Equal(t, "704", got.body.Get("errorCode").String())
				require.Empty(t, got.header.Get("Transient-Error"), "that would mean: later")
			case "paypal":
				require.Equal(t, 400, got.status)
				require.Equal(t, "DUPLICATE_REQUEST_ID", got.body.Get("name").String())
			case "mercadopago":
				require.Equal(t, 409, got.status)
				require.Equal(t, "idempotency_key_already_used", got.body.Get("error").String())
			}
		}
	})
}

func TestStripeComparesParametersAndEndpoint(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p, held := s.pay("stripe", "A-1", true), s.pay("stripe", "A-2", false)
	first := s.do("stripe", ask{method: "POST", path: "/v1/refunds", key: "k", body: "amount=7&payment_intent=" + p.IDs[0]})
	require.Equal(t, 200, first.status)
	again := s.do("stripe", ask{method: "POST", path: "/v1/refunds", key: "k", body: "payment_intent=" + p.IDs[0] + "&amount=7"})
	require.Equal(t, first.text, again.text, "the order of parameters is nothing")
	cancel := s.do("stripe", s.void("stripe", held, "", "k"))
	require.Equal(t, 400, cancel.status)
	require.Contains(t, cancel.body.Get("error.message").String(), "the same endpoint they were first used for ('/v1/refunds')")
}

// TestRefusalsAndKeys: Stripe and Adyen repeat a refusal, the others look again.
func TestRefusalsAndKeys(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for _, gw := range []string{"stripe", "paypal", "mercadopago"} {
		p := s.pay(gw, "A-1", true)
		s.Script(bank.Match{Source: p.Source}, bank.Step{bank.RefundFails})
		require.Contains(t, []int{200, 201}, s.do(gw, s.refund(gw, p, 4000, "m-1", "k-1")).status)
		refused := s.do(gw, s.refund(gw, p, 2000, "m-2", "k-2"))
		require.Equal(t, 4, refused.status/100)
		s.Settle(t.Context()) // the first refund fails, and there is enough again
		again := s.do(gw, s.refund(gw, p, 2000, "m-2", "k-2"))
		if gw == "stripe" {
			require.Equal(t, refused.text, again.text)
			require.EqualValues(t, 0, s.book(p).Sums["EUR"].Refunded)
			continue
		}
		require.Equal(t, 2, again.status/100, again.text)
		require.EqualValues(t, 2000, s.book(p).Sums["EUR"].Refunded)
	}
	p := s.pay("adyen", "A-1", true)
	p.IDs[0] = "NOBODY"
	first := s.do("adyen", s.refund("adyen", p, 1, "m", "k"))
	again := s.do("adyen", s.refund("adyen", p, 1, "m", "k"))
	require.Equal(t, 422, again.status)
	require.Equal(t, first.text, again.text)
	require.Equal(t, 1, s.Counts("a.adyen").Replays)
}

// TestStripeKeepsNothingThatDidNotBegin: a parameter that is none is refused before the key is looked at.
func TestStripeKeepsNothingThatDidNotBegin(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("stripe", "A-1", true)
	good := s.refund("stripe", p, 1000, "m", "k")
	bad := good
	bad.body += "&amnt=1"
	got := s.do("stripe", bad)
	require.Equal(t, 400, got.status)
	require.Equal(t, "parameter_unknown", got.body.Get("error.code").String())
	require.Equal(t, 200, s.do("stripe", good).status)
	require.Equal(t, 1, s.Counts("a.stripe").Invalid)
}

// TestRepeatedIsAsThingsStandNow of PayPal and Mercado Pago; the others repeat what they said.
func TestRepeatedIsAsThingsStandNow(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for gw, want := range map[string][2]string{"stripe": {"pending", "pending"}, "paypal": {"PENDING", "COMPLETED"}, "mercadopago": {"in_process", "approved"}} {
		p := s.pay(gw, "A-1", true)
		s.Script(bank.Match{Source: p.Source}, bank.Step{bank.RefundPends})
		require.Equal(t, want[0], s.do(gw, s.refund(gw, p, 1000, "m", "k")).body.Get("status").String(), gw)
		s.Settle(t.Context())
		require.Equal(t, want[1], s.do(gw, s.refund(gw, p, 1000, "m", "k")).body.Get("status").String(), gw)
		require.Len(t, asked(s.book(p)), 1)
	}
}

// TestCapturesOfMercadoPagoHaveNoKey: a repeated one is refused by the state of the payment.
func TestCapturesOfMercadoPagoHaveNoKey(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("mercadopago", "A-1", false)
	require.Equal(t, 200, s.do("mercadopago", s.capture("mercadopago", p, 5000, "m", "k")).status)
	again := s.do("mercadopago", s.capture("mercadopago", p, 5000, "m", "k"))
	require.Equal(t, 400, again.status)
	require.Equal(t, "2018", again.body.Get("cause.0.code").String())
}

// inProgress checks the answer to a call that comes while the same one is under way.
func inProgress(t *testing.T, gw string, got got) {
	t.Helper()
	switch gw {
	case "stripe":
		require.Equal(t, 409, got.status, got.text)
		require.Equal(t, "idempotency_key_in_use", got.body.Get("error.code").String())
	case "adyen":
		require.Contains(t, []int{409, 422}, got.status, got.text)
		require.Equal(t, "704", got.body.Get("errorCode").String())
		require.Equal(t, "true", got.header.Get("Transient-Error"))
	case "paypal":
		require.Equal(t, 409, got.status, got.text)
		require.Equal(t, "PREVIOUS_REQUEST_IN_PROGRESS", got.body.Get("details.0.issue").String())
	case "mercadopago":
		require.Equal(t, map[int]string{409: "refund_in_progress", 423: "resource_locked"}[got.status], got.body.Get("error").String(), got.text)
	}
}

// TestInFlight: while a call is under way the same one is a conflict, and another body is still a reused key. Afterwards it is
// repeated.
func TestInFlight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		entered, release := make(chan struct{}), make(chan struct{})
		s := open(t, bank.Options{Pause: func(context.Context) {
			close(entered)
			<-release
		}})
		p := s.pay(gw, "A-1", true)
		s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.Slow})
		answered := make(chan got)
		go func() { answered <- s.do(gw, s.refund(gw, p, 1000, "m", "k")) }()
		<-entered
		inProgress(t, gw, s.do(gw, s.refund(gw, p, 1000, "m", "k")))
		require.Empty(t, asked(s.book(p)), "nothing is done yet")
		require.Equal(t, 4, s.do(gw, s.refund(gw, p, 999, "m", "k")).status/100)
		close(release)
		first := <-answered
		require.Contains(t, []int{200, 201}, first.status)
		require.Equal(t, first.text, s.do(gw, s.refund(gw, p, 1000, "m", "k")).text)
		require.Len(t, asked(s.book(p)), 1)
		c := s.Counts(p.Source)
		require.Equal(t, []int{1, 1, 1}, []int{c.Conflicts, c.Reused, c.Replays})
	})
}

// TestCredentials: without the source's own nothing is done and nothing shown.
func TestCredentials(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p := s.pay(gw, "A-1", true)
		a := s.refund(gw, p, 1000, "m", "k")
		a.strange = true
		require.Equal(t, http.StatusUnauthorized, s.do(gw, a).status)
		require.Empty(t, asked(s.book(p)))
		require.Equal(t, 1, s.Counts(p.Source).Strangers)
		require.Equal(t, 2, s.do(gw, s.refund(gw, p, 1000, "m", "k")).status/100, "it was not kept")
	})
	s := open(t, bank.Options{})
	require.Equal(t, 401, s.do("paypal", ask{method: "POST", path: "/v1/oauth2/token", body: "grant_type=client_credentials", strange: true}).status)
	require.Equal(t, 400, s.do("paypal", ask{method: "POST", path: "/v1/oauth2/token", body: "grant_type=password"}).status)
	token := s.token()
	bearer := map[string]string{"Authorization": "Bearer " + token}
	require.Equal(t, 404, s.do("paypal", ask{method: "GET", path: "/v2/payments/captures/X", header: bearer}).status)
	s.clock.add(9 * time.Hour)
	require.Equal(t, 401, s.do("paypal", ask{method: "GET", path: "/v2/payments/captures/X", header: bearer}).status, "tokens expire")
	require.Equal(t, 403, s.do("stripe", ask{method: "GET", path: "/v1/events", header: map[string]string{"Stripe-Account": "acct_1"}}).status)
	other := s.do("adyen", ask{method: "POST", path: "/v71/payments/X/refunds", body: `{"merchantAccount":"Other"}`})
	require.Equal(t, 403, other.status)
	require.Equal(t, "901", other.body.Get("errorCode").String())
	resp, err := s.client.Get(strings.Replace(s.sources["stripe"].APIURL, "a.stripe", "nobody", 1) + "/v1/events")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 404, resp.StatusCode)
}
