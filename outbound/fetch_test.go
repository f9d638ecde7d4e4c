package outbound_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

func TestAnAnswerIsAnEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.announce("ping", "tr_1")
	require.Equal(t, []string{"ord_1 pending"}, s.states(), "an announcement alone moves nothing")
	require.Empty(t, s.events())

	s.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	require.Equal(t, "done", s.ask("ping", "tr_1").State)
	require.Equal(t, []string{"ord_1 paid"}, s.states())
	require.Equal(t, []string{"payment applied"}, s.events())
	kept := s.texts(`SELECT convert_from(body, 'UTF8') || ' ' || (header ->> 'Paidonce-Object') FROM event_payloads`)
	require.Equal(t, []string{`{"id":"tr_1","captured":5000,"refunded":0,"order":"ord_1"} payment/tr_1`}, kept)

	// What was kept can be read again, to the same event.
	rows, _ := s.pool.Query(t.Context(), `SELECT e.event_id, p.body, p.header ->> 'Paidonce-Started' FROM event_payloads p
		JOIN processed_events e USING (account_id, source_id, event_id)`)
	again, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct {
		ID      string
		Body    []byte
		Started string
	}])
	require.NoError(t, err)
	src, _ := s.find("ping")
	d := gateway.Delivery{Body: again.Body, Header: map[string][]string{gateway.HeaderObject: {"payment/tr_1"}, gateway.HeaderStarted: {again.Started}}}
	events, err := pinger.Read(src, d)
	require.NoError(t, err)
	require.Equal(t, again.ID, events[0].ID)
}

// The same state is one event however often it is announced; a state that comes back is an event of its own.
func TestEventsAreChanges(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	paid := state{ID: "tr_1", Captured: 5000, Order: "ord_1"}
	open := paid
	open.Captured = 0
	see := func(st state, want int) {
		t.Helper()
		s.api.is(st)
		for range 3 {
			s.announce("ping", "tr_1")
			s.later(time.Minute)
			require.Equal(t, "done", s.ask("ping", "tr_1").State)
		}
		require.Len(t, s.events(), want)
	}
	see(open, 1)
	see(paid, 2)
	see(open, 3) // A → B → A
	require.Equal(t, 9, s.api.count())
	require.Contains(t, s.log.String(), `"result":"unchanged"`)
}

// What one form of a gateway told is not all that is known of a payment: the other
// may have told something else in between, and a state that comes back must count.
// When nobody told anything else, what comes again is no news.
func TestTwinsComeBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.source(gateway.Source{ID: "a", Account: "acme", Gateway: "twin-a", AccessToken: "token"})
	s.source(gateway.Source{ID: "b", Account: "acme", Gateway: "twin-b", AccessToken: "token"})
	s.register("ord_1", 5000)
	paid := state{ID: "tr_1", Captured: 5000, Order: "ord_1"}
	back := paid
	back.Refunded = 5000
	see := func(source string, st state, want string) {
		t.Helper()
		s.api.is(st)
		s.announce(source, "tr_1")
		s.later(time.Minute)
		require.Equal(t, "done", s.ask(source, "tr_1").State)
		require.Equal(t, []string{"ord_1 " + want}, s.states())
	}
	see("a", paid, "paid")
	see("b", back, "refunded")
	see("a", paid, "paid")
	see("b", back, "refunded") // each has told this before
	news := strings.Count(s.log.String(), `"result":"changed"`)
	require.Equal(t, 4, news)
	see("b", back, "refunded")
	require.Equal(t, news, strings.Count(s.log.String(), `"result":"changed"`), "nobody told anything else")
}

func TestFailuresComeAgain(t *testing.T) {
	t.Parallel()
	about := func(t *testing.T, want, got time.Duration) {
		t.Helper()
		require.InDelta(t, want.Seconds(), got.Seconds(), want.Seconds()/5+1)
	}
	for _, c := range []struct {
		name   string
		err    error
		source string
		waits  []time.Duration // the first ones
		calls  int             // until it is given up
		level  string          // of the line about that
	}{
		{"down", failure(outbound.Retry, 503, 0), "signed", []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute}, 80, "ERROR"},
		{"busy, and says until when", failure(outbound.Retry, 429, 40*time.Minute), "signed", []time.Duration{40 * time.Minute, 40 * time.Minute}, 80, "ERROR"},
		{"unknown there", failure(outbound.Gone, 404, 0), "signed", []time.Duration{5 * time.Second, 30 * time.Second, 4 * time.Minute}, 6, "ERROR"},
		{"unknown there, and anybody's invention", failure(outbound.Gone, 404, 0), "ping", nil, 6, "INFO"},
		{"refused", failure(outbound.Refused, 400, 0), "signed", []time.Duration{5 * time.Second, 30 * time.Second}, 6, "ERROR"},
		{"denied", failure(outbound.Denied, 401, 0), "signed", []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}, 171, "ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, outbound.FetchOptions{})
			s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) { return nil, c.err })
			s.announce(c.source, "tr_1")
			for i := 1; i < c.calls; i++ {
				r := s.ask(c.source, "tr_1")
				require.Equal(t, "open", r.State)
				require.Equal(t, i, r.Attempts)
				if i <= len(c.waits) {
					about(t, c.waits[i-1], r.Wait)
				}
				require.Equal(t, r.Attempts, s.ask(c.source, "tr_1").Attempts, "not before its time")
				s.later(2 * time.Hour)
			}
			require.Equal(t, "dead", s.ask(c.source, "tr_1").State)
			require.Equal(t, c.calls, s.api.count())
			lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
			require.Contains(t, lines[len(lines)-1], `"level":"`+c.level+`"`)
			require.Empty(t, s.events())

			s.api.is(state{ID: "tr_1", Captured: 5000})
			s.announce(c.source, "tr_1")
			require.Equal(t, "done", s.ask(c.source, "tr_1").State, "it is asked about again once it is announced")
			require.Len(t, s.events(), 1)
		})
	}

	t.Run("another failure begins a schedule of its own", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, outbound.FetchOptions{})
		s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) { return nil, failure(outbound.Retry, 503, 0) })
		s.announce("signed", "tr_1")
		for range 8 {
			s.ask("signed", "tr_1")
			s.later(2 * time.Hour)
		}
		s.api.when("/payment/tr_1", nil) // 404
		r := s.ask("signed", "tr_1")
		require.Equal(t, "open", r.State, "it was down, which says nothing of the object")
		about(t, 5*time.Second, r.Wait)
	})
}

func TestBeingTurnedAwayCostsNoAttempt(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) { return nil, failure(outbound.Retry, 0, 30*time.Second) })
	s.announce("ping", "tr_1")
	for range 100 {
		r := s.ask("ping", "tr_1")
		require.Equal(t, "open", r.State)
		require.Zero(t, r.Attempts)
		require.InDelta(t, 30, r.Wait.Seconds(), 2)
		s.later(time.Minute)
	}
}

// Credentials that are not accepted are an alarm, and one alarm.
func TestDeniedIsAlarmedOnce(t *testing.T) {
	t.Parallel()
	var h hand
	s := newStage(t, outbound.FetchOptions{Elapsed: h.elapsed})
	errorsIn := func() int { return strings.Count(s.log.String(), `"level":"ERROR"`) }
	for i := range 5 {
		id := fmt.Sprintf("tr_%d", i)
		s.api.when("/payment/"+id, func(context.Context) ([]byte, error) { return nil, failure(outbound.Denied, 403, 0) })
		s.announce("signed", id)
		s.ask("signed", id)
	}
	require.Equal(t, 1, errorsIn())
	h.move(11 * time.Minute)
	s.later(time.Hour)
	s.ask("signed", "tr_1")
	require.Equal(t, 2, errorsIn())
	require.Equal(t, 6, metric(t, s.metrics, "paidonce_fetches_total", "result", "denied"))
}

func TestSourcesThatCannotAsk(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]*gateway.Source{
		"no credentials":  {ID: "ping", Account: "acme", Gateway: "pinger"},
		"another account": {ID: "ping", Account: "beta", Gateway: "pinger", AccessToken: "token"},
		"another gateway": {ID: "ping", Account: "acme", Gateway: "nowhere"},
		"not configured":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, outbound.FetchOptions{})
			s.announce("ping", "tr_1")
			s.sources.Delete("ping")
			if src != nil {
				s.source(*src)
			}
			require.NoError(t, outbound.Work(t.Context(), s.Fetcher, store.FetchArgs{Account: "acme", Source: "ping", Object: "payment/tr_1"}))
			r := s.row("ping", "tr_1")
			require.Equal(t, "open", r.State)
			require.NotEmpty(t, r.Error)
			require.Zero(t, s.api.count())
			require.Equal(t, 1, metric(t, s.metrics, "paidonce_fetches_total", "result", "cannot_ask"))

			s.source(gateway.Source{ID: "ping", Account: "acme", Gateway: "pinger", AccessToken: "token"})
			s.api.is(state{ID: "tr_1", Captured: 5000})
			s.later(time.Hour)
			require.Equal(t, "done", s.ask("ping", "tr_1").State, "once it can, it does")
		})
	}
}

func TestUnreadableAnswersAreKeptAside(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) {
		return []byte(`{"id":"tr_2","captured":5000,"order":"ord_1"}`), nil
	})
	s.announce("ping", "tr_1")
	for range 3 {
		r := s.ask("ping", "tr_1")
		require.Equal(t, "open", r.State)
		require.Contains(t, r.Error, "the answer is not about the payment")
		s.later(time.Hour)
	}
	require.Equal(t, []string{"unreadable quarantined"}, s.events(), "the same bytes are one event")
	require.Equal(t, []string{"ord_1 pending"}, s.states())
	s.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	require.Equal(t, "done", s.ask("ping", "tr_1").State)
	require.Equal(t, []string{"ord_1 paid"}, s.states())
}

// An error page is another one each time. What is kept of it is bounded all the same: whoever makes up ids chooses how
// often the gateway is asked about them.
func TestFewUnreadableAnswersAreKept(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	n := 0
	s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) {
		n++
		return fmt.Appendf(nil, "<html>no such payment, incident %d</html>", n), nil
	})
	s.announce("ping", "tr_1")
	var kept []int
	for i := 1; s.row("ping", "tr_1").State == "open"; i++ {
		s.ask("ping", "tr_1")
		if len(s.events()) > len(kept) {
			kept = append(kept, i)
		}
		s.later(2 * time.Hour)
	}
	require.Equal(t, 6, s.api.count())
	require.Equal(t, []int{1, 6}, kept, "the first, and the one with which it is given up")
}

func TestPausedSourcesAskAndStore(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.source(gateway.Source{ID: "ping", Account: "acme", Gateway: "pinger", AccessToken: "token", Paused: true})
	s.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	s.announce("ping", "tr_1")
	require.Equal(t, "done", s.ask("ping", "tr_1").State)
	require.Equal(t, []string{"ord_1 pending"}, s.states())
	n, err := s.store.Resume(t.Context(), "acme", "ping")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"ord_1 paid"}, s.states())
}

func TestAPanicIsAFailure(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.api.when("/payment/tr_1", func(context.Context) ([]byte, error) { panic("never print what the answer says") })
	s.announce("ping", "tr_1")
	r := s.ask("ping", "tr_1")
	require.Equal(t, "open", r.State)
	require.Equal(t, 1, r.Attempts)
	require.InDelta(t, 5, r.Wait.Seconds(), 2, "it does not stay claimed")
	require.Contains(t, s.log.String(), "panic while a gateway was asked")
	require.NotContains(t, s.log.String(), "never print")
}
