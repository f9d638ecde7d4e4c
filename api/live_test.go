package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// live is an API on a database of its own, with what makes its requests repeatable.
type live struct {
	*bench
	t     *testing.T
	store *store.Store
	pool  *pgxpool.Pool
}

func goLive(t *testing.T, change ...func(*api.Options)) *live {
	t.Helper()
	opts := api.Options{Rate: 1_000_000, Burst: 1_000_000}
	for _, c := range change {
		c(&opts)
	}
	b := onPostgres(t, opts)
	return &live{bench: b.bench, t: t, store: b.st, pool: b.pool}
}

// order registers an order of 5000 EUR, and returns its id and entity tag.
func (l *live) order(ref string) (id, etag string) {
	l.t.Helper()
	w := l.post(keyA, strings.Replace(ordinary, "ord_1", ref, 1))
	require.Equal(l.t, http.StatusCreated, w.Code, w.Body.String())
	return data(l.t, w)["id"].(string), w.Header().Get("ETag")
}

// read shows an order of account a.
func (l *live) read(id string) map[string]any {
	l.t.Helper()
	w := l.do(http.MethodGet, "/v1/orders/"+id, keyA, "")
	require.Equal(l.t, http.StatusOK, w.Code)
	return data(l.t, w)
}

// hook is a gateway's event about a payment of an order of account a.
func hook(id, payment, ref string, facts ...order.Fact) store.Event {
	return store.Event{
		Event: order.Event{
			ID: id, Type: "payment", At: time.Now(), Realm: "stripe:live", Payment: []string{payment},
			Reference: ref, Strength: order.StrengthPayment, Facts: facts,
		},
		Account: "a", Source: "stripe", Delivery: uuid.New(),
	}
}

func captured(amount int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Amount: amount, Currency: "EUR"}
}

func refunded(amount int64) order.Fact {
	return order.Fact{Kind: order.KindRefunded, Amount: amount, Currency: "EUR"}
}

func (l *live) deliver(events ...store.Event) {
	l.t.Helper()
	_, err := l.store.Apply(l.t.Context(), events)
	require.NoError(l.t, err)
}

// count counts the rows that FROM ends with.
func (l *live) count(from string, args ...any) (n int) {
	l.t.Helper()
	require.NoError(l.t, l.pool.QueryRow(l.t.Context(), `SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}

// written is all that commands can have written: events, versions, payments, orders with their versions.
func (l *live) written() string {
	l.t.Helper()
	var doc string
	require.NoError(l.t, l.pool.QueryRow(l.t.Context(), `
		SELECT json_build_object(
			'events', (SELECT json_agg(e ORDER BY account_id, source_id, event_id) FROM processed_events e),
			'payloads', (SELECT json_agg(e.event_id ORDER BY account_id, source_id, event_id) FROM event_payloads e),
			'orders', (SELECT json_agg(o ORDER BY account_id, id) FROM orders o),
			'versions', (SELECT json_agg(v ORDER BY account_id, order_id, version) FROM order_transitions v),
			'payments', (SELECT json_agg(p ORDER BY account_id, id) FROM payments p),
			'names', (SELECT json_agg(p ORDER BY account_id, realm, id) FROM payment_ids p),
			'incomes', (SELECT json_agg(i ORDER BY account_id, id) FROM incomes i),
			'transactions', (SELECT json_agg(t ORDER BY account_id, id) FROM transactions t),
			'recurrences', (SELECT json_agg(r ORDER BY account_id, id) FROM recurrences r),
			'jobs', (SELECT count(*) FROM river_job))`).Scan(&doc))
	return doc
}

// withKey sends an Idempotency-Key.
func withKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", key) }
}

func ifMatch(tags ...string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("If-Match")
		for _, tag := range tags {
			r.Header.Add("If-Match", tag)
		}
	}
}

// refusal is a request that is refused, and how.
type refusal struct {
	name   string
	path   string // after /v1
	key    string // default keyA
	body   string
	header func(*http.Request)
	status int
	code   string
	at     []string // pointer and code of each fault of the body
}

// refuses sends requests that must be refused, with an Idempotency-Key and without one: neither leaves anything behind,
// and with a key the refusal is repeated.
func (l *live) refuses(method string, list ...refusal) {
	for _, tt := range list {
		for _, key := range []string{"", "refused " + tt.name} {
			l.t.Run(fmt.Sprintf("%s/Key=%t", tt.name, key != ""), func(t *testing.T) {
				before := l.written()
				who := tt.key
				if who == "" {
					who = keyA
				}
				send := func() *httptest.ResponseRecorder {
					var change []func(*http.Request)
					if tt.header != nil {
						change = append(change, tt.header)
					}
					if key != "" {
						change = append(change, withKey(key))
					}
					return l.do(method, "/v1"+tt.path, who, tt.body, change...)
				}
				w := send()
				require.Equal(t, tt.status, w.Code, w.Body.String())
				p := problemOf(t, w)
				require.Equal(t, tt.code, string(p.Code))
				require.NotEmpty(t, p.Detail)
				var at []string
				for _, e := range faultsOf(t, w) {
					at = append(at, e.Pointer+" "+e.Code)
				}
				require.Equal(t, tt.at, at)
				require.Equal(t, before, l.written(), "something is left")
				if key != "" && tt.status != http.StatusForbidden && tt.status != http.StatusUnauthorized {
					again := send()
					require.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
					require.Equal(t, w.Body.String(), again.Body.String())
				}
			})
		}
	}
}

type fault struct{ Pointer, Code, Detail string }

func faultsOf(t testing.TB, w *httptest.ResponseRecorder) []fault {
	t.Helper()
	var doc struct{ Errors []fault }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	return doc.Errors
}
