package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

func TestOneLinePerRequest(t *testing.T) {
	t.Parallel()
	c := &clock{at: now}
	b := setup(t, receiver.Options{Now: c.now})
	b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) {
		c.at = c.at.Add(40 * time.Millisecond)
		return []store.Result{{Outcome: store.Applied}, {Outcome: store.Duplicate}, {Outcome: store.Applied}}, nil
	}
	body := `[{"id":"evt_1"},{"id":"evt_2"},{"id":"evt_3"}]`
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/mall", body)).Code)

	lines := b.log.lines(t)
	require.Len(t, lines, 1)
	line := lines[0]
	require.Len(t, line["delivery"], 36)
	delete(line, "delivery")
	delete(line, "time")
	require.Equal(t, map[string]any{
		"level": "INFO", "msg": "webhook received",
		"account": "acme", "source": "mall", "gateway": "mall",
		"status": float64(200), "duration": float64(40 * time.Millisecond), "remote": "192.0.2.1", "bytes": float64(len(body)),
		"events": float64(3), "event_ids": []any{"evt_1", "evt_2", "evt_3"},
		"applied": float64(2), "duplicate": float64(1),
	}, line)
}

// TestALineIsShort: neither many events nor long ids make it long.
func TestALineIsShort(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	events := make([]string, 500)
	for i := range events {
		events[i] = fmt.Sprintf(`{"id":"%d%s"}`, i, strings.Repeat("é", 200))
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/mall", "["+strings.Join(events, ",")+"]")).Code)
	line := b.log.lines(t)[0]
	require.EqualValues(t, 500, line["events"])
	require.Len(t, line["event_ids"], 20)
	require.NotContains(t, b.log.String(), "\uFFFD", "cut between characters")
	require.Less(t, len(b.log.String()), 4096)
}

func TestLevels(t *testing.T) {
	t.Parallel()
	level := func(do func(b *bench)) any {
		b := setup(t, receiver.Options{})
		do(b)
		return b.log.lines(t)[0]["level"]
	}
	require.Equal(t, "INFO", level(func(b *bench) { b.do(forged(t, "192.0.2.1:1")) }), "the internet is noisy")
	require.Equal(t, "WARN", level(func(b *bench) {
		b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) { return nil, errors.New("no database") }
		b.do(request(t, "/webhooks/strict", paid))
	}))
	require.Equal(t, "WARN", level(func(b *bench) {
		b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) {
			return []store.Result{{Outcome: store.Quarantined}}, nil
		}
		b.do(request(t, "/webhooks/strict", paid))
	}), "somebody has to look at it")
}

// TestNothingSecretIsSaid: neither the log, at any level, nor an answer, nor the metrics hold a secret, a digest that
// would have been right, a body, a header, or a query.
func TestNothingSecretIsSaid(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b := setup(t, receiver.Options{Registerer: reg, Refusals: receiver.RefusalLimit{Burst: 3}})
	body := `{"id":"evt_1","type":"paid","email":"canary-mail@example.test","note":"CANARY-BODY"}`
	good := sign(t, []byte(body))
	_, digest, _ := strings.Cut(good, "v1=")
	require.Len(t, digest, 64)
	broken := strings.TrimSuffix(body, "}")
	explode := strings.Replace(body, "paid", "panic", 1)

	var said strings.Builder
	send := func(path, body string, change func(*http.Request)) {
		r := request(t, path+"?secret="+secret+"&q=CANARY-QUERY", body)
		r.Header.Set("Authorization", "Bearer CANARY-HEADER")
		r.Header.Set("User-Agent", "CANARY-HEADER")
		if change != nil {
			change(r)
		}
		w := b.do(r)
		fmt.Fprintln(&said, w.Code, w.Header(), w.Body)
	}
	wrong := func(r *http.Request) {
		r.Header.Set("Stripe-Signature", "t=1790000000,v1="+strings.Repeat("0", 63)+"CANARY-HEADER")
	}
	for _, source := range []string{"strict", "mall", "basic", "small", "paused", "nowhere", secret, "CANARY-PATH"} {
		path := "/webhooks/" + source
		send(path, body, nil)
		send(path, body, wrong)
		send(path, broken, nil)
		send(path, explode, nil)
		send(path, body, func(r *http.Request) { r.SetBasicAuth("hook", "TESTONLY-basic-password") })
		send(path, body, func(r *http.Request) { r.Method = http.MethodGet })
		send(path, body, func(r *http.Request) { r.Method = "CANARY-METHOD" })
		send(path+"/"+secret, body, nil)
	}
	b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) { return nil, errors.New("no database") }
	send("/webhooks/strict", body, nil)

	found, err := reg.Gather()
	require.NoError(t, err)
	for _, where := range []struct{ name, text string }{
		{"log", b.log.String()}, {"answers", said.String()}, {"metrics", fmt.Sprint(found)},
	} {
		require.NotEmpty(t, where.text)
		for _, word := range []string{secret, "whsec_", "TESTONLY", digest, good, "canary", "CANARY", "?secret", "secret=", "Bearer"} {
			require.NotContains(t, where.text, word, where.name)
		}
	}
	require.Contains(t, b.log.String(), "evt_1", "the log was on")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b := setup(t, receiver.Options{Registerer: reg, Refusals: receiver.RefusalLimit{Burst: 1}})
	b.do(request(t, "/webhooks/mall", `[{"id":"evt_1"},{"id":"evt_2"}]`))
	b.do(request(t, "/webhooks/strict", "no JSON"))
	b.do(forged(t, "192.0.2.1:1"))
	b.do(forged(t, "192.0.2.1:1"))
	for i := range 100 { // a caller cannot make a time series
		b.do(request(t, fmt.Sprintf("/webhooks/unknown%d", i), paid))
		b.do(request(t, fmt.Sprintf("/%d", i), paid))
		b.do(httptest.NewRequest(fmt.Sprintf("M%d", i), "/webhooks/strict", nil))
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP paidonce_webhook_deliveries_total Requests to the webhook endpoints, by their answer.
# TYPE paidonce_webhook_deliveries_total counter
paidonce_webhook_deliveries_total{gateway="",source="",status="404"} 200
paidonce_webhook_deliveries_total{gateway="",source="",status="405"} 100
paidonce_webhook_deliveries_total{gateway="mall",source="mall",status="200"} 1
paidonce_webhook_deliveries_total{gateway="strict",source="strict",status="400"} 1
paidonce_webhook_deliveries_total{gateway="strict",source="strict",status="401"} 1
paidonce_webhook_deliveries_total{gateway="strict",source="strict",status="429"} 1
# HELP paidonce_webhook_events_total Events of deliveries that were answered 200, by outcome.
# TYPE paidonce_webhook_events_total counter
paidonce_webhook_events_total{gateway="mall",outcome="applied",source="mall"} 2
# HELP paidonce_webhook_in_flight Verified deliveries that wait for their commit.
# TYPE paidonce_webhook_in_flight gauge
paidonce_webhook_in_flight 0
# HELP paidonce_webhook_refusals_total Requests that were not answered 200, by reason.
# TYPE paidonce_webhook_refusals_total counter
paidonce_webhook_refusals_total{gateway="",reason="method",source=""} 100
paidonce_webhook_refusals_total{gateway="",reason="unknown_path",source=""} 100
paidonce_webhook_refusals_total{gateway="",reason="unknown_source",source=""} 100
paidonce_webhook_refusals_total{gateway="strict",reason="mismatch",source="strict"} 2
paidonce_webhook_refusals_total{gateway="strict",reason="not_json",source="strict"} 1
`), "paidonce_webhook_deliveries_total", "paidonce_webhook_events_total", "paidonce_webhook_in_flight", "paidonce_webhook_refusals_total"))
	n, err := testutil.GatherAndCount(reg, "paidonce_webhook_ingest_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n)

	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)

	_, err = receiver.New(sources, &ledger{}, receiver.Options{Registerer: reg})
	require.ErrorContains(t, err, "duplicate")
}
