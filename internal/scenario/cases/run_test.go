package cases_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/merchant"
	"github.com/paidonce/paidonce/internal/scenario/network"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// impostor is a program that does everything wrong that it is told to: the
// rules that hold in every case must find it out.
type impostor struct {
	handler http.HandlerFunc
	logs    string
	workers bool
	refused []cases.Ended
	server  *httptest.Server
	clock   time.Time
	note    func(string)
	killed  []string
	audit   func(context.Context) ([]string, error)
}

func (p *impostor) Start(context.Context, string, int) error       { return errors.New("no") }
func (p *impostor) Stop(context.Context, string, int) error        { return nil }
func (p *impostor) Addr(int) string                                { return p.server.Listener.Addr().String() }
func (p *impostor) Reload(context.Context, string, []string) error { return nil }
func (p *impostor) Logs() string                                   { return p.logs }
func (p *impostor) Refused(context.Context) ([]cases.Ended, error) { return p.refused, nil }
func (p *impostor) SetClock(t time.Time) error                     { p.clock = t; return nil }
func (p *impostor) Kill(_ context.Context, process string, _ int) error {
	p.killed = append(p.killed, process)
	return nil
}

func (p *impostor) Running(process string) []int {
	if process == "work" && !p.workers {
		return nil
	}
	return []int{1}
}

// script is a case for the impostor.
func script(sources, requests, statuses, assert string) string {
	return fmt.Sprintf(`{"id": "x", "title": "t", "source": "s", "provider": "p", "theme": "t", "evidence": "e", "now": 1790000000,
		"setup": {"sources": {%s}, "orders": []}, "requests": [%s], "expect": {"statuses": [%s]}, "assert": {%s}}`,
		sources, requests, statuses, assert)
}

const (
	stripe = `"stripe": {"gateway": "stripe", "mode": "live", "secrets": ["whsec_never_to_be_seen"]}`
	adyen  = `"adyen": {"gateway": "adyen", "mode": "live", "hmac_keys": ["ABCDEF0123"], "basic": "user:never:seen"}`
	post   = `{"method": "POST", "path": "/webhooks/stripe", "headers": {"X-N": "%s"}, "body_base64": "e30="}`
)

func request(n string) string { return fmt.Sprintf(post, n) }

// play plays a case against an impostor.
func play(t *testing.T, text string, p *impostor, before func(pool *pgxpool.Pool)) error {
	t.Helper()
	c, err := cases.Parse([]byte(text))
	require.NoError(t, err)
	return cases.Run(t.Context(), c, cases.Options{
		HasGateway: func(name string) bool { return name != "nobody" }, QuietWithin: 2 * time.Second, Note: p.note,
		Open: func(context.Context, *cases.Case) (*cases.Stage, error) {
			pool := storetest.Open(t)
			st, err := store.New(pool, store.Options{})
			require.NoError(t, err)
			m, err := merchant.New(merchant.Options{Secrets: func() []string { return nil }, Now: time.Now})
			require.NoError(t, err)
			n, err := network.New(network.Options{MerchantHost: "m", Merchant: m})
			require.NoError(t, err)
			handler := p.handler
			if handler == nil {
				handler = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
			}
			p.server = httptest.NewServer(handler)
			if before != nil {
				before(pool)
			}
			return &cases.Stage{
				Pool: pool, Store: st, Program: p, Merchant: m, Network: n, Audit: p.audit,
				Close: func() { p.server.Close(); n.Close() },
			}, nil
		},
	})
}

func TestRulesThatHoldInEveryCase(t *testing.T) {
	t.Parallel()

	t.Run("NothingWrong", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, play(t, script(stripe, request("1"), `[200]`, `"outcomes": [["duplicate"]]`), &impostor{logs: "fine"}, nil))
	})

	t.Run("CodeNotInItsList", func(t *testing.T) {
		t.Parallel()
		err := play(t, script(stripe, request("1"), `[503]`, ``), &impostor{}, nil)
		require.ErrorContains(t, err, "requests[0]: answered 200")
	})

	t.Run("TwoBodiesOf401", func(t *testing.T) {
		t.Parallel()
		p := &impostor{handler: func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no "+r.Header.Get("X-N"), http.StatusUnauthorized)
		}}
		err := play(t, script(stripe, request("1")+","+request("2"), `[401], [401]`, ``), p, nil)
		require.ErrorContains(t, err, "two bodies of 401")
	})

	t.Run("AdyenWithoutAccepted", func(t *testing.T) {
		t.Parallel()
		p := &impostor{handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[accepted]\n") }}
		err := play(t, script(adyen, strings.Replace(request("1"), "stripe", "adyen", 1), `[200]`, ``), p, nil)
		require.ErrorContains(t, err, "a 200 to adyen has the body")
	})

	t.Run("503WithoutRetryAfter", func(t *testing.T) {
		t.Parallel()
		p := &impostor{handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }}
		err := play(t, script(stripe, request("1"), `[503]`, ``), p, nil)
		require.ErrorContains(t, err, "a 503 without Retry-After")
	})

	t.Run("RefusedBodyKept", func(t *testing.T) {
		t.Parallel()
		p := &impostor{handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }}
		err := play(t, script(stripe, request("1"), `[400]`, ``), p, func(pool *pgxpool.Pool) {
			_, err := pool.Exec(context.Background(), `
				INSERT INTO event_payloads (account_id, source_id, event_id, delivery, header, body)
				VALUES ('a', 'stripe', 'e', gen_random_uuid(), '{}', '{}')`)
			require.NoError(t, err)
		})
		require.ErrorContains(t, err, "only ever refused is in event_payloads")
	})

	t.Run("SecretsInLogs", func(t *testing.T) {
		t.Parallel()
		for _, secret := range []string{"whsec_never_to_be_seen", "ABCDEF0123", "user:never:seen", "dXNlcjpuZXZlcjpzZWVu"} {
			p := &impostor{logs: "a line\n{\"x\":\"" + secret + "\"}\n"}
			err := play(t, script(stripe+","+adyen, "", "", ``), p, nil)
			require.ErrorContains(t, err, "is in a log")
			require.NotContains(t, err.Error(), secret)
		}
	})

	t.Run("EffectOwedAtTheEnd", func(t *testing.T) {
		t.Parallel()
		p := &impostor{workers: true}
		owes := func(pool *pgxpool.Pool) {
			st, err := store.New(pool, store.Options{})
			require.NoError(t, err)
			_, err = st.Apply(context.Background(), []store.Event{{
				Account: "a", Source: "api", Delivery: uuid.New(), Event: order.Event{
					ID: "r", Type: "r", Reference: "A", Strength: order.StrengthPerson,
					Command: &order.Command{Register: &order.Amount{Currency: "EUR"}}, // free, so paid at once
				},
			}})
			require.NoError(t, err)
			_, err = pool.Exec(context.Background(), `DELETE FROM river_job; UPDATE orders SET wake_at = NULL`)
			require.NoError(t, err)
		}
		err := play(t, script(stripe, "", "", ``), p, owes)
		require.ErrorContains(t, err, "A owes fulfil")
		p.workers = false
		require.NoError(t, play(t, script(stripe, "", "", ``), p, owes))
	})

	t.Run("AuditThatFindsADifference", func(t *testing.T) {
		t.Parallel()
		p := &impostor{workers: true, audit: func(context.Context) ([]string, error) { return []string{"order_fold: it is not what it says"}, nil }}
		require.ErrorContains(t, play(t, script(stripe, "", "", ``), p, nil), "audit: order_fold: it is not what it says")
		pruned := strings.Replace(script(stripe, "", "", ``), `"expect":`, `"steps": [{"delete_rows": "processed_events"}], "expect":`, 1)
		require.NoError(t, play(t, pruned, p, nil), "what was deleted cannot be folded again")
		p.workers = false
		require.NoError(t, play(t, script(stripe, "", "", ``), p, nil))
	})

	t.Run("CallbackThatBreaksAPromise", func(t *testing.T) {
		t.Parallel()
		p := &impostor{}
		c, err := cases.Parse([]byte(script(stripe, request("1"), `[200]`, ``)))
		require.NoError(t, err)
		err = cases.Run(t.Context(), c, cases.Options{HasGateway: func(string) bool { return true }, Open: func(ctx context.Context, _ *cases.Case) (*cases.Stage, error) {
			pool := storetest.Open(t)
			m, err := merchant.New(merchant.Options{Secrets: func() []string { return nil }, Now: time.Now})
			require.NoError(t, err)
			network, err := network.New(network.Options{MerchantHost: "m", Merchant: m})
			require.NoError(t, err)
			p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				unsigned := httptest.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader([]byte(`{"type":"order.fulfil","data":{"effect":"fulfil"}}`)))
				m.ServeHTTP(httptest.NewRecorder(), unsigned)
				w.WriteHeader(http.StatusOK)
			}))
			st, err := store.New(pool, store.Options{})
			require.NoError(t, err)
			return &cases.Stage{Pool: pool, Store: st, Program: p, Merchant: m, Network: network, Close: func() { p.server.Close(); network.Close() }}, nil
		}})
		require.ErrorContains(t, err, "the signature does not verify")
	})
}

func TestSkips(t *testing.T) {
	t.Parallel()
	var skipped *cases.SkipError

	err := play(t, script(`"x": {"gateway": "nobody", "mode": "live"}`, "", "", ``), &impostor{}, nil)
	require.ErrorAs(t, err, &skipped)
	require.ErrorContains(t, err, "the gateway nobody of source x is not in the registry")
}

// TestKillThatCannotCome arms a fault that nothing reaches, in a program that has
// nothing to do, and in one that seems to have: the case goes on, and says so.
func TestKillThatCannotCome(t *testing.T) {
	t.Parallel()
	steps := `"steps": [
		{"fault": "kill_process", "process": "work", "on": "UPDATE orders", "at": "before_commit"}, {"stop": "work"}], "setup"`
	text := strings.Replace(script(stripe, "", "", ""), `"setup"`, steps, 1)
	for name, busy := range map[string]string{
		"Idle": `SELECT`,
		"Busy": `INSERT INTO river_job (kind, args, max_attempts, state, scheduled_at) VALUES ('drain', '{}', 1, 'scheduled', now() + interval '1.9 s')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var notes []string
			p := &impostor{workers: true, note: func(text string) { notes = append(notes, text) }}
			began := time.Now()
			_ = play(t, text, p, func(pool *pgxpool.Pool) {
				_, err := pool.Exec(context.Background(), busy)
				require.NoError(t, err)
				began = time.Now()
			})
			require.Len(t, notes, 1)
			require.Contains(t, notes[0], "work 1 was not killed")
			require.Empty(t, p.killed)
			if name == "Busy" {
				require.Greater(t, time.Since(began), 2*time.Second, "what is due soon could trip the fault")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	text := strings.Replace(script(stripe, "", "", `"rows": {"events": 0}`), `"sources"`, `"startup": "refused", "sources"`, 1)
	for name, tt := range map[string]struct {
		ended cases.Ended
		want  string // empty: as it must be
	}{
		"AsItMust":     {cases.Ended{Command: "serve", Code: 1, Output: "source stripe: bad"}, ""},
		"Started":      {cases.Ended{Command: "serve", Code: 0, Output: "source stripe"}, "ended with code 0"},
		"StillRuns":    {cases.Ended{Command: "serve", Code: -1, Output: "source stripe"}, "still ran"},
		"TooSlow":      {cases.Ended{Command: "serve", Code: 1, Took: 11 * time.Second, Output: "source stripe"}, "still ran"},
		"DoesNotSay":   {cases.Ended{Command: "serve", Code: 1, Output: "bad configuration"}, "does not say which source"},
		"PrintsSecret": {cases.Ended{Command: "serve", Code: 1, Output: "stripe: whsec_never_to_be_seen"}, "prints a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := play(t, text, &impostor{refused: []cases.Ended{tt.ended}}, nil)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
