package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// shopOnPostgres is an API with a store, and its database.
type shopOnPostgres struct {
	*bench
	st   *store.Store
	pool *pgxpool.Pool
	once *idempotency.Middleware
}

func onPostgres(t *testing.T, opts api.Options) *shopOnPostgres {
	t.Helper()
	return onPool(t, storetest.Open(t), opts)
}

// onPool is onPostgres on a database that the test has made itself.
func onPool(t *testing.T, pool *pgxpool.Pool, opts api.Options) *shopOnPostgres {
	t.Helper()
	st, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"a", "b"}))
	kept, err := idempotency.NewStore(pool, idempotency.StoreOptions{})
	require.NoError(t, err)
	once, err := idempotency.New(kept, idempotency.Options{Scope: api.Scope, ResourceURL: api.ResourceURL})
	require.NoError(t, err)
	b := &bench{t: t, log: &logBuffer{}}
	opts.Idempotency, opts.Keys = once, kept
	opts.Now = func() time.Time { return now }
	opts.Logger = slog.New(slog.NewJSONHandler(b.log, nil))
	b.API, err = api.New(st, keys, opts)
	require.NoError(t, err)
	return &shopOnPostgres{bench: b, st: st, pool: pool, once: once}
}

// TestOnPostgres: what the answers promise holds with the real store.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, api.Options{})
	st := b.st
	body := func(ref string, amount int) string {
		return strings.Replace(strings.Replace(ordinary, "ord_1", ref, 1), "5000", fmt.Sprint(amount), 1)
	}
	// payment is a gateway's event about a payment of the order.
	payment := func(ref string, amount int64, unknown store.OnUnknown) {
		id := uuid.NewString()
		_, err := st.Apply(t.Context(), []store.Event{{
			Event: order.Event{
				ID: "evt_" + id, Type: "paid", At: now, Realm: "stripe:live", Payment: []string{"pi_" + id},
				Reference: ref, Strength: order.StrengthPayment, Own: &order.Amount{Minor: amount, Currency: "EUR"},
				Facts: []order.Fact{{Kind: order.KindCaptured, Amount: amount, Currency: "EUR"}},
			},
			Account: "a", Source: "stripe", Delivery: uuid.New(), OnUnknown: unknown,
		}})
		require.NoError(t, err)
	}

	t.Run("NewAndRepeated", func(t *testing.T) {
		first := b.post(keyA, body("new", 5000))
		require.Equal(t, http.StatusCreated, first.Code, first.Body.String())
		require.Equal(t, "pending", data(t, first)["state"])
		require.Equal(t, map[string]any{"external_ref": "new", "note": "<x>"}, data(t, first)["metadata"])
		for _, amount := range []int{5000, 9900} {
			again := b.post(keyA, body("new", amount))
			require.Equal(t, http.StatusOK, again.Code)
			require.Equal(t, data(t, first), data(t, again), "nothing moved, no flag")
		}
		require.Equal(t, http.StatusCreated, b.post(keyB, body("new", 5000)).Code)
		require.Equal(t, http.StatusNotFound, b.do(http.MethodGet, first.Header().Get("Location"), keyB, "").Code)
	})

	t.Run("Stub", func(t *testing.T) {
		payment("stub", 5000, store.OnUnknownStub)
		w := b.post(keyA, body("stub", 5000))
		require.Equal(t, http.StatusCreated, w.Code)
		require.Equal(t, "paid", data(t, w)["state"])
		require.NotEqual(t, `"1"`, w.Header().Get("ETag"))
		require.Equal(t, http.StatusOK, b.post(keyA, body("stub", 5000)).Code)
	})

	t.Run("CreatedByAGateway", func(t *testing.T) {
		payment("made", 7000, store.OnUnknownCreate)
		w := b.post(keyA, body("made", 5000))
		require.Equal(t, http.StatusOK, w.Code)
		require.EqualValues(t, 5000, data(t, w)["amount"], "the registered total wins")
		require.Contains(t, data(t, w)["flags"], "total_differs")

		payment("same", 5000, store.OnUnknownCreate)
		w = b.post(keyA, body("same", 5000))
		require.NotContains(t, data(t, w)["flags"], "total_differs")
	})

	t.Run("ManyAtOnce", func(t *testing.T) {
		type answer struct {
			code   int
			id     any
			amount any
		}
		answers := make([]answer, 16)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				w := b.post(keyA, body("race", 5000+i))
				d := data(t, w)
				answers[i] = answer{w.Code, d["id"], d["amount"]}
			})
		}
		wg.Wait()
		created := 0
		for i, got := range answers {
			require.Equal(t, answers[0].id, got.id)
			require.Equal(t, answers[0].amount, got.amount)
			if got.code == http.StatusCreated {
				created++
				require.EqualValues(t, 5000+i, got.amount, "the one that registered it")
			} else {
				require.Equal(t, http.StatusOK, got.code)
			}
		}
		require.Equal(t, 1, created)
	})

	t.Run("EveryReference", func(t *testing.T) {
		for _, ref := range []string{"a#~b", "a#deadbeefdeadbeef", strings.Repeat("é", 127)} {
			w := b.post(keyA, body(ref, 5000))
			require.Equal(t, http.StatusCreated, w.Code, "%s: %s", ref, w.Body.String())
		}
	})
}
