package bank_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// TestFaultsOfCalls forces every fault of calls on a refund: what is answered, what is in the books then, and what the same call is
// answered after that. In the end there is exactly one refund.
func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, _ string, got got) { require.Error(t, got.err) }
	status := func(want int) func(*testing.T, string, got) {
		return func(t *testing.T, _ string, got got) {
			require.NoError(t, got.err)
			require.Equal(t, want, got.status, got.text)
		}
	}
	well := func(t *testing.T, _ string, got got) {
		require.NoError(t, got.err)
		require.Contains(t, []int{200, 201}, got.status, got.text)
	}
	// kept: Stripe and Adyen keep a failure under the key, the others do not.
	kept := func(t *testing.T, gw string, got got) {
		if gw == "stripe" || gw == "adyen" {
			require.Equal(t, 500, got.status)
			return
		}
		well(t, gw, got)
	}
	for fault, row := range map[bank.Fault]struct {
		answer func(*testing.T, string, got)
		done   bool // then
		again  func(*testing.T, string, got)
		in     map[string]int // how many refunds in the end, where it is not one
	}{
		bank.LostBefore:      {answer: lost, again: well},
		bank.LostAfter:       {answer: lost, done: true, again: well},
		bank.HangBefore:      {answer: lost, again: well},
		bank.HangAfter:       {answer: lost, done: true, again: well},
		bank.CutAnswer:       {answer: lost, done: true, again: well},
		bank.Slow:            {answer: well, done: true, again: well},
		bank.Busy:            {answer: inProgress, again: well},
		bank.Late:            {answer: lost, again: inProgress},
		bank.Failure:         {answer: status(503), again: well},
		bank.KeptFailure:     {answer: status(500), again: kept, in: map[string]int{"stripe": 0, "adyen": 0}},
		bank.KeptFailureDone: {answer: status(500), done: true, again: kept},
		bank.TooMany:         {answer: status(429), again: well},
		bank.Denied:          {answer: status(401), again: well},
		bank.Garbage: {answer: func(t *testing.T, _ string, got got) {
			require.Equal(t, 200, got.status)
			require.Contains(t, got.text, "<html>")
		}, done: true, again: well},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, gw string) {
				s := open(t, bank.Options{Pause: func(context.Context) {}})
				p := s.pay(gw, "A-1", true)
				s.Script(bank.Match{Kind: bank.Refund, Payment: p.IDs[0]}, bank.Step{fault})
				call := s.refund(gw, p, 1000, "m", "k")
				got := s.impatient(gw, call, fault)
				row.answer(t, gw, got)
				require.Len(t, asked(s.book(p)), map[bool]int{true: 1}[row.done])
				require.Equal(t, map[bank.Fault]int{fault: 1}, s.Counts(p.Source).Faults)
				if fault == bank.TooMany {
					require.Equal(t, "2", got.header.Get("Retry-After"))
				}
				row.again(t, gw, s.do(gw, call))
				s.Settle(t.Context()) // what is late
				want, special := row.in[gw]
				if !special {
					want = 1
				}
				require.Len(t, asked(s.book(p)), want)
				if want == 1 {
					require.Equal(t, "m", asked(s.book(p))[0].Given)
				}
			})
		})
	}
}

// impatient makes a request, and hangs up once the bank hangs: it has what the call did in its books, or it has counted the fault.
func (s *stage) impatient(gw string, a ask, fault bank.Fault) got {
	if fault != bank.HangBefore && fault != bank.HangAfter {
		return s.do(gw, a)
	}
	ctx, hangUp := context.WithCancel(s.t.Context())
	defer hangUp()
	answered := make(chan got, 1)
	go func() { answered <- s.doIn(ctx, gw, a) }()
	for s.Counts(s.sources[gw].ID).Faults[fault] == 0 {
		select {
		case got := <-answered:
			return got
		case <-time.After(time.Millisecond):
		}
	}
	hangUp()
	return <-answered
}

// TestKeptFailures: what Stripe and Adyen keep is marked as such, and stays until the key expires. Then the call is done, again if it was before.
func TestKeptFailures(t *testing.T) {
	t.Parallel()
	for fault, before := range map[bank.Fault]int{bank.KeptFailure: 0, bank.KeptFailureDone: 1} {
		s := open(t, bank.Options{})
		for _, gw := range []string{"stripe", "adyen"} {
			p := s.pay(gw, "A-1", true)
			call := s.refund(gw, p, 1000, "m", "k")
			s.Script(bank.Match{Source: p.Source}, bank.Step{fault})
			require.Equal(t, 500, s.do(gw, call).status)
			for range 3 {
				again := s.do(gw, call)
				require.Equal(t, 500, again.status)
				if gw == "stripe" {
					require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
					require.Contains(t, []string{"", "false"}, again.header.Get("Stripe-Should-Retry"))
				} else {
					require.Empty(t, again.header.Get("Transient-Error"))
				}
			}
			require.Len(t, asked(s.book(p)), before)
			s.clock.add(lives[gw])
			require.Contains(t, []int{200, 201}, s.do(gw, call).status)
			require.Len(t, asked(s.book(p)), before+1)
		}
	}
}

// TestLate: nobody sees it, every question is a conflict, and then it is done after all: when the delay is over, or at the fourth
// question.
func TestLate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{Delay: time.Hour})
		for n, name := range []string{"by time", "by asking"} {
			p := s.pay(gw, name, true)
			call := s.refund(gw, p, 1000, "m-"+name[3:], "k"+name)
			s.Script(bank.Match{Payment: p.IDs[0], Kind: bank.Refund}, bank.Step{bank.Late})
			require.Error(t, s.do(gw, call).err)
			for range 3 {
				inProgress(t, gw, s.do(gw, call))
			}
			require.Empty(t, asked(s.book(p)))
			if n == 0 {
				s.clock.add(time.Hour)
				s.Pump(t.Context())
				require.Len(t, asked(s.book(p)), 1)
			}
			require.Contains(t, []int{200, 201}, s.do(gw, call).status)
			s.Settle(t.Context())
			require.Len(t, asked(s.book(p)), 1, "once")
		}
	})
}

// TestLateAndAnotherKey is the trap: who asks, sees nothing, and tries again under another key has moved the money twice.
func TestLateAndAnotherKey(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("stripe", "A-1", true)
	s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.Late})
	require.Error(t, s.do("stripe", s.refund("stripe", p, 1000, "m", "k-1")).err)
	list := s.do("stripe", ask{method: "GET", path: "/v1/refunds?payment_intent=" + p.IDs[0]})
	require.Zero(t, list.body.Get("data.#").Int())
	require.Equal(t, 200, s.do("stripe", s.refund("stripe", p, 1000, "m", "k-2")).status)
	s.Settle(t.Context())
	require.Contains(t, bank.Compare(s.Books(), bank.Books{}), "the bank has done m 2 times")
}

// TestFaultsOfReads: what only reads can be lost, late, refused and garbled too, and a fault of what moves money is none there.
func TestFaultsOfReads(t *testing.T) {
	t.Parallel()
	for _, gw := range []string{"stripe", "paypal", "mercadopago"} {
		s := open(t, bank.Options{Pause: func(context.Context) {}})
		p := s.pay(gw, "A-1", true)
		show := ask{method: "GET", path: map[string]string{
			"stripe": "/v1/payment_intents/", "paypal": "/v2/payments/captures/", "mercadopago": "/v1/payments/",
		}[gw] + p.IDs[0]}
		for _, fault := range bank.Faults() {
			s.Script(bank.Match{Kind: bank.Read}, bank.Step{fault})
			got := s.impatient(gw, show, fault)
			switch fault {
			case bank.LostBefore, bank.LostAfter, bank.HangBefore, bank.HangAfter, bank.CutAnswer:
				require.Error(t, got.err, "%s %s", gw, fault)
			case bank.Failure:
				require.Equal(t, 503, got.status)
			case bank.TooMany:
				require.Equal(t, 429, got.status)
			case bank.Denied:
				require.Equal(t, 401, got.status)
			case bank.Garbage:
				require.Contains(t, got.text, "<html>")
			default:
				require.Equal(t, 200, got.status, "%s %s", gw, fault)
				require.Contains(t, got.text, p.IDs[0])
			}
		}
	}
}

// TestScript: steps one after the other, for the calls that match and no others; after that all is as drawn.
func TestScript(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p, other := s.pay("stripe", "A-1", true), s.pay("stripe", "A-2", true)
	s.Script(bank.Match{Source: "a.stripe", Kind: bank.Refund, Payment: p.IDs[1]}, bank.Step{bank.TooMany}, bank.Step{}, bank.Step{bank.Denied})
	s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.Failure})
	require.Equal(t, 200, s.do("stripe", ask{method: "GET", path: "/v1/payment_intents/" + p.IDs[0]}).status)
	var statuses []int
	for i := range 5 {
		statuses = append(statuses, s.do("stripe", s.refund("stripe", p, 100, "m", fmt.Sprint("k", i))).status)
	}
	require.Equal(t, []int{429, 200, 401, 503, 200}, statuses)
	require.Equal(t, 200, s.do("stripe", s.refund("stripe", other, 100, "m", "k")).status)
}

// TestTokensFail only where a script says so by name.
func TestTokensFail(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	token := ask{method: "POST", path: "/v1/oauth2/token", body: "grant_type=client_credentials"}
	s.Script(bank.Match{}, bank.Step{bank.Failure})
	require.Equal(t, 200, s.do("paypal", token).status)
	s.Script(bank.Match{Kind: bank.Token}, bank.Step{bank.TooMany}, bank.Step{bank.KeptFailure})
	require.Equal(t, 429, s.do("paypal", token).status)
	require.Equal(t, 200, s.do("paypal", token).status, "nothing is kept of a token")
}

// TestWhileItLasts: what lasts is met up to three times in a row by the same call, and Patience ends every series.
func TestWhileItLasts(t *testing.T) {
	t.Parallel()
	for _, fault := range []bank.Fault{bank.Busy, bank.TooMany, bank.Denied} {
		lengths := map[int]int{}
		for seed := range uint64(2) {
			s := open(t, bank.Options{Seed: seed, Odds: bank.Odds{fault: 100}, Patience: 1000})
			p := s.pay("stripe", "A-1", true)
			for i := range 70 {
				call, run := s.refund("stripe", p, 1, "m", fmt.Sprint("k", i)), 0
				for ; s.do("stripe", call).status != 200; run++ {
				}
				lengths[run]++
			}
		}
		// One after the other, each of them drawn, would be one in ten.
		require.Greater(t, lengths[2], lengths[1]/3, "%s %v", fault, lengths)
		require.Greater(t, lengths[3], lengths[1]/3, "%s %v", fault, lengths)
	}
	s := open(t, bank.Options{Odds: bank.Odds{bank.Failure: 1000}, Patience: 4})
	p := s.pay("stripe", "A-1", true)
	call := s.refund("stripe", p, 1, "m", "k")
	for range 2 {
		for range 4 {
			require.Equal(t, 503, s.do("stripe", call).status)
		}
		require.Equal(t, 200, s.do("stripe", call).status)
	}
}

// TestDrawsDoNotDependOnOthers: the same calls meet the same faults, and make the same ids, whatever comes between them and at the same time.
func TestDrawsDoNotDependOnOthers(t *testing.T) {
	t.Parallel()
	odds := bank.DefaultOdds()
	delete(odds, bank.Slow)
	for _, hang := range []bank.Fault{bank.HangBefore, bank.HangAfter} {
		delete(odds, hang)
	}
	play := func(seed uint64, parallel bool) (answers map[string]string, books bank.Books, hooks []string) {
		s := open(t, bank.Options{Seed: seed, Odds: odds})
		var payments []bank.Payment
		for i := range 8 {
			payments = append(payments, s.pay(gateways[i%4], fmt.Sprint("A-", i), true))
		}
		answers = map[string]string{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, p := range payments {
			gw, _ := strings.CutPrefix(p.Source, "a.")
			one := func() {
				for n := range 4 {
					call := s.refund(gw, p, int64(100+n), fmt.Sprintf("m-%d-%d", i, n), fmt.Sprintf("k-%d-%d", i, n))
					for try := range 8 {
						got := s.do(gw, call)
						mu.Lock()
						answers[fmt.Sprintf("%s %d %d %d", gw, i, n, try)] = fmt.Sprint(got.status, got.err != nil, got.text)
						mu.Unlock()
					}
				}
			}
			if parallel {
				wg.Go(one)
				continue
			}
			one()
		}
		wg.Wait()
		s.Settle(t.Context())
		for _, w := range s.inbox.hook {
			hooks = append(hooks, w.Source.ID+" "+w.ID+" "+w.Type)
		}
		slices.Sort(hooks)
		return answers, s.Books(), hooks
	}
	answers, books, hooks := play(7, false)
	again, booksAgain, hooksAgain := play(7, true)
	require.Equal(t, answers, again)
	require.Equal(t, books, booksAgain)
	require.Equal(t, hooks, hooksAgain)
	other, _, _ := play(8, false)
	require.NotEqual(t, answers, other)
}

// TestDefaultOddsMisbehave: without a word of the test every fault is met sooner or later.
func TestDefaultOddsMisbehave(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{Odds: bank.DefaultOdds(), Pause: func(context.Context) {}})
	met := func() map[bank.Fault]int { return s.Counts("a.stripe").Faults }
	for i := 0; len(met()) < len(bank.Faults()) && i < 3000; i++ {
		p := s.pay("stripe", fmt.Sprint("A-", i), true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s.doIn(ctx, "stripe", s.refund("stripe", p, 1, "m", fmt.Sprint("k-", i)))
		cancel()
	}
	require.Len(t, met(), len(bank.Faults()))
}

// TestMuchAtOnce: what many callers do at the same time adds up.
func TestMuchAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		p := s.pay(gw, "A-1", true)
		var wg sync.WaitGroup
		for i := range 20 {
			for range 3 {
				wg.Go(func() { s.do(gw, s.refund(gw, p, 300, fmt.Sprint("m-", i), fmt.Sprint("k-", i))) })
			}
		}
		wg.Go(func() { s.Pump(t.Context()) })
		wg.Wait()
		require.EqualValues(t, 4800, s.book(p).Sums["EUR"].Refunded, "sixteen of twenty")
		require.Len(t, asked(s.book(p)), 16)
		require.NotContains(t, bank.Compare(s.Books(), bank.Books{}), "times")
	})
}

// TestCloseEndsWhatWaits.
func TestCloseEndsWhatWaits(t *testing.T) {
	t.Parallel()
	for _, fault := range []bank.Fault{bank.HangBefore, bank.Slow} {
		entered := make(chan struct{}, 1)
		c := &clock{at: start}
		b, err := bank.Start(bank.Options{Now: c.now, Odds: bank.Odds{}, Pause: func(ctx context.Context) {
			entered <- struct{}{}
			<-ctx.Done()
		}})
		require.NoError(t, err)
		src, err := b.Source(credentials(gateway.Stripe.Example("close")))
		require.NoError(t, err)
		_, err = b.Open(bank.Opening{Source: src.ID, Amount: order.Amount{Minor: 1, Currency: "EUR"}, Captured: true})
		require.NoError(t, err)
		b.Script(bank.Match{}, bank.Step{fault})
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, src.APIURL+"/v1/events", nil)
			r.Header.Set("Authorization", "Bearer "+src.AccessToken)
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		if fault == bank.Slow {
			<-entered
		} else {
			require.Eventually(t, func() bool { return b.Counts(src.ID).Faults[fault] == 1 }, 10*time.Second, time.Millisecond)
		}
		b.Close()
		<-done
	}
}
