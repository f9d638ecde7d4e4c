package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

func decoded(t testing.TB, w *httptest.ResponseRecorder) (doc map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc), w.Body.String())
	return doc
}

// midMinute is when tests of the net happen: no minute ends while they run.
var midMinute = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)

// relaxed has accounts in the other profile.
func relaxed(o *api.Options) {
	o.Policy = func(string) idempotency.Policy { return idempotency.Relaxed() }
}

func TestT97_ExternalRefOfIncomes(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	body := cash(`"order_ref":"ord_1","metadata":{"external_ref":"inc_1"}`)
	first := l.entered(body, withKey("k1"))
	before := l.written()

	again := func(why, body, key string, status int, replayed string) {
		t.Helper()
		var change []func(*http.Request)
		if key != "" {
			change = append(change, withKey(key))
		}
		w := l.income(body, change...)
		require.Equal(t, status, w.Code, "%s: %s", why, w.Body.String())
		require.Equal(t, first, data(t, w), why)
		require.Equal(t, "/v1/incomes/"+first["id"].(string), w.Header().Get("Location"), why)
		require.Equal(t, replayed, w.Header().Get("Idempotent-Replayed"), why)
		require.Equal(t, before, l.written(), why)
	}
	again("same reference, new key", body, "k2", http.StatusOK, "")
	again("same reference, same key", body, "k1", http.StatusCreated, "true")
	again("same reference, no key", body, "", http.StatusOK, "")
	require.NotContains(t, l.log.String(), "external_ref_body_differs")
	again("same reference, other amount", strings.Replace(body, "5000", "9900", 1), "k3", http.StatusOK, "")
	require.Contains(t, l.log.String(), `"note":"external_ref_body_differs"`)
	again("same reference, an order that is not there", strings.Replace(body, "ord_1", "ord_9", 1), "k4", http.StatusOK, "")
	w := l.income(strings.Replace(body, "5000", "9900", 1), withKey("k1"))
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.EqualValues(t, "idempotency_key_reused", problemOf(t, w).Code)

	// Three years later the key is long gone, the name is not.
	_, err := l.pool.Exec(t.Context(), `DELETE FROM idempotency_keys; UPDATE incomes SET created_at = created_at - interval '3 years'`)
	require.NoError(t, err)
	first, before = data(t, l.do(http.MethodGet, "/v1/incomes/"+first["id"].(string), keyA, "")), l.written()
	again("same reference and key, three years later", body, "k1", http.StatusOK, "")

	theirs := l.do(http.MethodPost, "/v1/incomes", keyB, cash(`"metadata":{"external_ref":"inc_1"}`))
	require.Equal(t, http.StatusCreated, theirs.Code, "another account's")
	require.NotEqual(t, first["id"], data(t, theirs)["id"])

	for i, none := range []string{`{}`, `{"external_ref":null}`, `{"external_ref":""}`} {
		one := l.entered(cash(fmt.Sprintf(`"party":"Ana %d","metadata":%s`, i, none)))
		other := l.entered(cash(fmt.Sprintf(`"party":"Bea %d","metadata":%s`, i, none)))
		require.Nil(t, one["external_ref"])
		require.NotEqual(t, one["id"], other["id"], "no name is no uniqueness")
	}
	require.EqualValues(t, 5000, l.read(id)["captured"])
}

// Both protections at once, from everywhere at once: keys of their own, one name.
func TestT97_ExternalRefOfIncomesAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	answers := make([]*httptest.ResponseRecorder, 24)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			change := withKey(fmt.Sprint("k", i))
			if i%3 == 0 {
				change = func(*http.Request) {}
			}
			answers[i] = l.income(cash(`"order_ref":"ord_1","metadata":{"external_ref":"inc_1"}`), change)
		})
	}
	wg.Wait()
	created := 0
	for _, w := range answers {
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, w.Code, w.Body.String())
		require.Equal(t, data(t, answers[0]), data(t, w))
		if w.Code == http.StatusCreated {
			created++
		}
	}
	require.Equal(t, 1, created)
	require.EqualValues(t, 5000, l.read(id)["captured"])
	require.Equal(t, 1, l.count("incomes"))
	require.Equal(t, 1, l.count("payments"))
}

// refusedAsTwin requires the answer of the net.
func refusedAsTwin(t *testing.T, w *httptest.ResponseRecorder, id any) {
	t.Helper()
	require.Equal(t, http.StatusConflict, w.Code, w.Body.String())
	p := decoded(t, w)
	require.Equal(t, "possible_duplicate", p["code"])
	at := "/v1/incomes/" + id.(string)
	require.Equal(t, map[string]any{"type": "income", "id": id, "href": at}, p["resource"])
	require.Equal(t, "<"+at+`>; rel="related"`, w.Header().Get("Link"))
	require.Empty(t, w.Header().Get("Location"))
}

func TestT98_DedupNetOfIncomes(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]func(*api.Options){"Strict": func(*api.Options) {}, "Relaxed": relaxed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := goLive(t, profile)
			set := storetest.StopClock(t, l.pool, midMinute)
			id, _ := l.order("ord_1")
			l.order("ord_2")
			body := cash(`"order_ref":"ord_1"`)
			first := l.entered(body, withKey("k1"))
			before := l.written()
			refusedAsTwin(t, l.income(body), first["id"])
			refusedAsTwin(t, l.income(body, withKey("k2")), first["id"])
			refusedAsTwin(t, l.income(cash(`"order_id":"`+id+`"`)), first["id"])
			require.Equal(t, before, l.written(), "event, fact and row are one")
			require.EqualValues(t, 5000, l.read(id)["captured"])

			// A new key is another request, and a name another income.
			l.entered(cash(`"order_ref":"ord_1","metadata":{"external_ref":"inc_1"}`))
			l.entered(cash(`"order_ref":"ord_1","metadata":{"external_ref":"inc_2"}`))
			l.entered(cash(`"order_ref":"ord_2"`))
			l.entered(cash(`"party":"Ana"`))
			l.entered(cash(`"party":"Bea"`))

			// With the first taken back the same passes; what a key was answered, it is answered again, if that was kept.
			l.void(first["id"])
			w := l.income(body, withKey("k2"))
			if name == "Strict" {
				refusedAsTwin(t, w, first["id"])
				require.Equal(t, "true", w.Header().Get("Idempotent-Replayed"))
				w = l.income(body, withKey("k3"))
			}
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
			second := data(t, w)
			require.NotEqual(t, first["id"], second["id"])
			refusedAsTwin(t, l.income(body), second["id"])

			set(midMinute.Truncate(time.Minute).Add(time.Minute - time.Microsecond))
			refusedAsTwin(t, l.income(body), second["id"])
			set(midMinute.Truncate(time.Minute).Add(time.Minute))
			l.entered(body)
		})
	}
}

// TestT98_DedupNetAtOnce: a till that is pressed by many hands, each request with a key of its own.
func TestT98_DedupNetAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	storetest.StopClock(t, l.pool, midMinute)
	id, _ := l.order("ord_1")
	answers := make([]*httptest.ResponseRecorder, 32)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = l.income(cash(`"order_ref":"ord_1"`), withKey(fmt.Sprint("k", i))) })
	}
	wg.Wait()
	var made any
	for _, w := range answers {
		if w.Code == http.StatusCreated {
			require.Nil(t, made, "one of them")
			made = data(t, w)["id"]
		}
	}
	require.NotNil(t, made)
	for _, w := range answers {
		if w.Code != http.StatusCreated {
			refusedAsTwin(t, w, made)
		}
	}
	require.EqualValues(t, 5000, l.read(id)["captured"])
	require.Equal(t, 1, l.count("incomes"))
	require.Equal(t, 1, l.count("processed_events WHERE type = 'income.received'"))
	require.Equal(t, 32, l.count("idempotency_keys WHERE status = 'COMPLETED' AND resource_type IS NOT DISTINCT FROM CASE WHEN response_code = 201 THEN 'income' END"))
}

// An income and the stored answer of its key are committed together, or neither is.
func TestIncomeAndItsAnswerCommitTogether(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	l.order("ord_1")
	before := l.written()
	_, err := l.pool.Exec(t.Context(), `
		CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken on purpose'; END $$;
		CREATE TRIGGER broken BEFORE UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'COMPLETED') EXECUTE FUNCTION broken()`)
	require.NoError(t, err)
	w := l.income(cash(`"order_ref":"ord_1"`), withKey("k1"))
	require.GreaterOrEqual(t, w.Code, 500)
	require.Equal(t, before, l.written())

	_, err = l.pool.Exec(t.Context(), `DROP TRIGGER broken ON idempotency_keys`)
	require.NoError(t, err)
	l.entered(cash(`"order_ref":"ord_1"`), withKey("k1"))
}
