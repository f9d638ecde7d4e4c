package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// named is the body of an order called ref.
func named(ref string, amount int) string {
	return fmt.Sprintf(`{"data":{"amount":%d,"currency":"EUR","metadata":{"external_ref":%q}}}`, amount, ref)
}

func TestT97_ExternalRefOfOrders(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	first := l.post(keyA, named("ord_1", 5000), withKey("k1"))
	require.Equal(t, http.StatusCreated, first.Code, first.Body.String())
	id := data(t, first)["id"].(string)
	require.Equal(t, 1, l.count(`idempotency_keys WHERE resource_type = 'order' AND resource_id::text = $1`, id))
	before := l.written()

	again := func(why, body, key string, status int, replayed string) {
		t.Helper()
		var change []func(*http.Request)
		if key != "" {
			change = append(change, withKey(key))
		}
		w := l.post(keyA, body, change...)
		require.Equal(t, status, w.Code, "%s: %s", why, w.Body.String())
		require.Equal(t, id, data(t, w)["id"], why)
		require.EqualValues(t, 5000, data(t, w)["amount"], "%s: nothing of a repeat is taken", why)
		require.Equal(t, "/v1/orders/"+id, w.Header().Get("Location"), why)
		require.Equal(t, `"1"`, w.Header().Get("ETag"), why)
		require.Equal(t, replayed, w.Header().Get("Idempotent-Replayed"), why)
		require.Equal(t, before, l.written(), why)
	}
	again("same reference, new key", named("ord_1", 5000), "k2", http.StatusOK, "")
	again("same reference, same key", named("ord_1", 5000), "k1", http.StatusCreated, "true")
	again("same reference, no key", named("ord_1", 5000), "", http.StatusOK, "")
	require.NotContains(t, l.log.String(), "external_ref_body_differs")
	again("same reference, other amount", named("ord_1", 9900), "k3", http.StatusOK, "")
	again("same reference, other amount, no key", named("ord_1", 9900), "", http.StatusOK, "")
	require.Equal(t, 2, strings.Count(l.log.String(), `"note":"external_ref_body_differs"`))
	again("the repeat of a repeat", named("ord_1", 9900), "k3", http.StatusOK, "true")

	w := l.post(keyA, named("ord_1", 9900), withKey("k1"))
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, "same key, other amount")
	require.EqualValues(t, "idempotency_key_reused", problemOf(t, w).Code)

	// Three years later the key is long gone, the name is not.
	_, err := l.pool.Exec(t.Context(), `DELETE FROM idempotency_keys;
		UPDATE orders SET created_at = created_at - interval '3 years', updated_at = updated_at - interval '3 years';
		UPDATE processed_events SET received_at = received_at - interval '3 years', occurred_at = occurred_at - interval '3 years'`)
	require.NoError(t, err)
	before = l.written()
	again("same reference and key, three years later", named("ord_1", 5000), "k1", http.StatusOK, "")

	w = l.post(keyB, named("ord_1", 5000), withKey("k1"))
	require.Equal(t, http.StatusCreated, w.Code, "another account has its own names, and its own keys: %s", w.Body.String())
	require.Empty(t, w.Header().Get("Idempotent-Replayed"))
	require.NotEqual(t, id, data(t, w)["id"])

	ids := map[any]bool{}
	for _, none := range []string{``, `,"metadata":null`, `,"metadata":{}`, `,"metadata":{"external_ref":null}`, `,"metadata":{"external_ref":""}`} {
		for range 2 {
			w := l.post(keyA, `{"data":{"amount":5000,"currency":"EUR"`+none+`}}`)
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
			ids[data(t, w)["id"]] = true
		}
	}
	require.Len(t, ids, 10, "no name is no uniqueness")
}

// TestT63_OneNameFromEverywhere: sixty-four requests of two accounts for one name, some with keys of their own, some with
// one that they share, some with none.
func TestT63_OneNameFromEverywhere(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	const n = 64
	answers := make([]*httptest.ResponseRecorder, n)
	accounts := []string{keyA, keyB}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-start
			var change []func(*http.Request)
			if i%4 < 2 {
				change = append(change, withKey(fmt.Sprint("k", i)))
			}
			answers[i] = l.post(accounts[i%2], named("ord_1", 5000+i/2%3), change...)
		})
	}
	close(start)
	wg.Wait()
	created := map[string]int{}
	ids := map[string]any{}
	for i, w := range answers {
		account := accounts[i%2]
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, w.Code, w.Body.String())
		if w.Code == http.StatusCreated {
			created[account]++
		}
		if ids[account] == nil {
			ids[account] = data(t, w)["id"]
		}
		require.Equal(t, ids[account], data(t, w)["id"])
		require.EqualValues(t, 1, data(t, w)["version"])
	}
	require.Equal(t, map[string]int{keyA: 1, keyB: 1}, created)
	require.NotEqual(t, ids[keyA], ids[keyB])
	require.Equal(t, 2, l.count(`orders`))
	require.Equal(t, 2, l.count(`processed_events`))
}

// TestOneKeyFromEverywhere (case 069): one key, thirty requests: one order, and whoever comes while it is made hears when to
// come again.
func TestOneKeyFromEverywhere(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	const body = `{"data":{"amount":5000,"currency":"EUR"}}`
	answers := make([]*httptest.ResponseRecorder, 30)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-start
			answers[i] = l.post(keyA, body, withKey("k1"))
		})
	}
	close(start)
	wg.Wait()
	want := l.post(keyA, body, withKey("k1"))
	require.Equal(t, "true", want.Header().Get("Idempotent-Replayed"))
	executed := 0
	for _, w := range answers {
		if w.Code == http.StatusConflict {
			require.EqualValues(t, "idempotency_key_in_progress", problemOf(t, w).Code)
			require.NotEmpty(t, w.Header().Get("Retry-After"))
			continue
		}
		require.Equal(t, http.StatusCreated, w.Code)
		require.Equal(t, want.Body.String(), w.Body.String())
		if w.Header().Get("Idempotency-Status") == "executed" {
			executed++
		}
	}
	require.Equal(t, 1, executed)
	require.Equal(t, 1, l.count(`orders`))
}

// TestOtherBodyWhileTheFirstRuns (case 047): another body is a mistake at any time, also while the first is executed.
func TestOtherBodyWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	wire := wiretest.New(t, storetest.OpenURL(t))
	l := onWire(t, wire)
	const body = `{"data":{"amount":5000,"currency":"EUR"}}`
	made := wire.Trap(wiretest.Before, wiretest.SQL(`INSERT INTO orders`))
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- l.post(keyA, body, withKey("k1")) }()
	made.Wait()

	w := l.post(keyA, strings.Replace(body, "5000", "9900", 1), withKey("k1"))
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.EqualValues(t, "idempotency_key_reused", problemOf(t, w).Code)
	require.Contains(t, w.Body.String(), `"/data/amount"`, "where it differs")
	require.Empty(t, w.Header().Get("Idempotent-Replayed"))
	w = l.post(keyA, body, withKey("k1"))
	require.Equal(t, http.StatusConflict, w.Code)
	require.EqualValues(t, "idempotency_key_in_progress", problemOf(t, w).Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))

	made.Pass()
	done := <-first
	require.Equal(t, http.StatusCreated, done.Code, done.Body.String())
	require.Equal(t, done.Body.String(), l.post(keyA, body, withKey("k1")).Body.String())
	require.Equal(t, 1, l.count(`orders`))
}

// TestKeyIsBoundToMethodPathAndCaller (case 061).
func TestKeyIsBoundToMethodPathAndCaller(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, etag := l.order("ord_1")
	const body = `{"data":{"amount":5000,"currency":"EUR"}}`
	first := l.post(keyA, body, withKey("k6"))
	require.Equal(t, http.StatusCreated, first.Code)
	for _, w := range []*httptest.ResponseRecorder{
		l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":{"metadata":{"note":"x"}}}`, ifMatch(etag), withKey("k6")),
		l.do(http.MethodPatch, "/v1/orders/"+id, keyA, body, ifMatch(etag), withKey("k6")),
		l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "", withKey("k6")),
	} {
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		require.EqualValues(t, "idempotency_key_reused", problemOf(t, w).Code)
	}
	require.EqualValues(t, 1, l.read(id)["version"])
	theirs := l.post(keyB, body, withKey("k6"))
	require.Equal(t, http.StatusCreated, theirs.Code)
	require.Empty(t, theirs.Header().Get("Idempotent-Replayed"))
	require.NotEqual(t, data(t, first)["id"], data(t, theirs)["id"])

	// A refused body stays what the key stands for, and a repeat of it says so.
	refused := l.post(keyA, `{"data":{"amount":"abc"}}`, withKey("k7"))
	require.EqualValues(t, "invalid_body", problemOf(t, refused).Code)
	require.EqualValues(t, "idempotency_key_reused", problemOf(t, l.post(keyA, body, withKey("k7"))).Code)
}

// TestRefusedBodyFreesTheKeyOfARelaxedAccount: there, only what was done is kept.
func TestRefusedBodyFreesTheKeyOfARelaxedAccount(t *testing.T) {
	t.Parallel()
	l := goLive(t, relaxed)
	require.EqualValues(t, "invalid_body", problemOf(t, l.post(keyA, `{"data":{"amount":"abc"}}`, withKey("k7"))).Code)
	w := l.post(keyA, `{"data":{"amount":5000,"currency":"EUR"}}`, withKey("k7"))
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	w = l.post(keyA, `{"data":{"amount":5000,"currency":"EUR"}}`, withKey("k7"))
	require.Equal(t, "true", w.Header().Get("Idempotent-Replayed"))
	require.Equal(t, 1, l.count(`orders`))
}

// onWire is goLive through a wire. What tests read takes the wire as well.
func onWire(t *testing.T, wire *wiretest.Proxy) *live {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), wire.URL())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b := onPool(t, pool, api.Options{Rate: 1_000_000, Burst: 1_000_000})
	return &live{bench: b.bench, t: t, store: b.st, pool: b.pool}
}

// TestCommitThatNobodyHeardOf: without a key the answer is that nobody knows, and asking again finds out.
func TestCommitThatNobodyHeardOf(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		moment wiretest.Moment
		again  int
	}{
		"NotCommitted": {wiretest.Before, http.StatusCreated},
		"Committed":    {wiretest.After, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := wiretest.New(t, storetest.OpenURL(t))
			l := onWire(t, wire)
			answer := make(chan *httptest.ResponseRecorder)
			commit := wire.Trap(at.moment, wiretest.SQL(`^commit`))
			go func() { answer <- l.post(keyA, named("ord_1", 5000)) }()
			commit.Wait()
			commit.Cut()
			w := <-answer
			require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body.String())
			require.EqualValues(t, "unavailable", problemOf(t, w).Code)
			require.NotEmpty(t, w.Header().Get("Retry-After"))
			w = l.post(keyA, named("ord_1", 5000))
			require.Equal(t, at.again, w.Code, w.Body.String())
			id := data(t, w)["id"].(string)
			require.Equal(t, 1, l.count(`orders`))

			// Canceling and confirming are as safe.
			commit = wire.Trap(at.moment, wiretest.SQL(`^commit`))
			go func() { answer <- l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "") }()
			commit.Wait()
			commit.Cut()
			require.Equal(t, http.StatusServiceUnavailable, (<-answer).Code)
			w = l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "")
			require.Equal(t, http.StatusOK, w.Code)
			require.EqualValues(t, 2, data(t, w)["version"])
		})
	}
}

// TestNothingIsHalfWritten: what cannot be committed leaves nothing, with a key and without, and can be sent again.
func TestNothingIsHalfWritten(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	id, etag := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "", captured(5000)))
	before := l.written()
	_, err := l.pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'secret'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON processed_events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	type request struct {
		method, path, key, body string
		want                    int
	}
	requests := []request{
		{http.MethodPost, "/v1/orders", keyA, named("ord_2", 5000), 201},
		{http.MethodPatch, "/v1/orders/" + id, keyA, `{"data":{"amount":6000}}`, 200},
		{http.MethodPost, "/v1/orders/" + id + "/confirm", keyA, `{"data":{"gateway":"stripe","payment":"pi_2","status":"authorized","amount":1,"currency":"EUR"}}`, 200},
		{http.MethodPost, "/v1/orders/" + id + "/link", operator, `{"data":{"payment":"pi_1","linked":true}}`, 200},
		{http.MethodPost, "/v1/orders/" + id + "/dismiss", operator, `{"data":{"flags":["overpaid"],"dismissed":true}}`, 200},
	}
	send := func(r request, key bool) *httptest.ResponseRecorder {
		change := []func(*http.Request){ifMatch(etag)}
		if r.method != http.MethodPatch {
			change = nil
		}
		if key {
			change = append(change, withKey(r.path))
		}
		return l.do(r.method, r.path, r.key, r.body, change...)
	}
	for _, r := range requests {
		for _, key := range []bool{false, true} {
			w := send(r, key)
			require.GreaterOrEqual(t, w.Code, 500, "%s: %s", r.path, w.Body.String())
			require.NotContains(t, w.Body.String(), "secret")
			require.Equal(t, before, l.written(), r.path)
		}
	}
	_, err = l.pool.Exec(t.Context(), `DROP TRIGGER refuse ON processed_events`)
	require.NoError(t, err)
	for _, r := range requests {
		w := send(r, true)
		require.Equal(t, r.want, w.Code, "%s: %s", r.path, w.Body.String())
		require.Empty(t, w.Header().Get("Idempotent-Replayed"), "what failed is not repeated")
		require.Equal(t, "true", send(r, true).Header().Get("Idempotent-Replayed"))
	}
}

// TestExpiry: a time limit is in the future when an order is registered, to the clock of the database; a repeat may come later.
func TestExpiry(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	with := func(ref, at string) string {
		return fmt.Sprintf(`{"data":{"amount":5000,"currency":"EUR","expires_at":%s,"metadata":{"external_ref":%q}}}`, at, ref)
	}
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	text := `"` + soon.Format(time.RFC3339) + `"`
	w := l.post(keyA, with("ord_1", text))
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, soon.Format(time.RFC3339), data(t, w)["expires_at"])
	// The same moment in another zone is the same body.
	zone := time.FixedZone("", 2*60*60)
	w = l.post(keyA, with("ord_1", `"`+soon.In(zone).Format(time.RFC3339)+`"`))
	require.Equal(t, http.StatusOK, w.Code)
	require.NotContains(t, l.log.String(), "external_ref_body_differs")

	for name, at := range map[string]string{
		"Past": `"2026-01-01T00:00:00Z"`, "Now": `"` + time.Now().Format(time.RFC3339Nano) + `"`, "Ancient": `"0001-01-01T00:00:00Z"`,
	} {
		l.refuses(http.MethodPost, refusal{
			name: name, path: "/orders", body: with("late-"+name, at), status: 422, code: "invalid_body", at: []string{"/data/expires_at in_the_past"},
		})
	}
	for name, at := range map[string]string{"YearZero": `"0000-01-01T00:00:00Z"`, "Year10000": `"9999-12-31T23:59:59-01:00"`, "NoZone": `"2030-01-01T00:00:00"`} {
		l.refuses(http.MethodPost, refusal{
			name: name, path: "/orders", body: with("late-"+name, at), status: 422, code: "invalid_body", at: []string{"/data/expires_at invalid_time"},
		})
	}
	_, err := l.pool.Exec(t.Context(), `UPDATE orders SET expires_at = now() - interval '1 day'`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, l.post(keyA, with("ord_1", `"2026-01-01T00:00:00Z"`)).Code, "a repeat is answered whenever it comes")
	w = l.post(keyA, with("ord_2", "null"))
	require.Equal(t, http.StatusCreated, w.Code)
	require.Nil(t, data(t, w)["expires_at"])
}

// TestGatewaysAmount: a gateway's amount made the order, and the registration says another one.
func TestGatewaysAmount(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	e := hook("evt_1", "pi_1", "made", captured(7000))
	e.Own, e.OnUnknown = &order.Amount{Minor: 7000, Currency: "EUR"}, store.OnUnknownCreate
	l.deliver(e)
	w := l.post(keyA, named("made", 5000), withKey("k1"))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.EqualValues(t, 5000, data(t, w)["amount"], "the registered total wins")
	require.ElementsMatch(t, []any{"overpaid", "total_differs"}, data(t, w)["flags"])
	again := l.post(keyA, named("made", 5000), withKey("k1"))
	require.Equal(t, http.StatusOK, again.Code)
	require.Equal(t, w.Body.String(), again.Body.String())
	require.Equal(t, http.StatusOK, l.post(keyA, named("made", 5000)).Code)
}
