package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// paidOrder is one of account a with a payment of 5000 EUR, called pi_{ref}.
func (l *live) paidOrder(ref string) (id string) {
	l.t.Helper()
	id, _ = l.order(ref)
	l.deliver(hook("evt_"+ref, "pi_"+ref, ref, captured(5000)))
	return id
}

func TestT97_ExternalRefOfTransactions(t *testing.T) {
	t.Parallel()
	l := goLive(t, func(o *api.Options) {
		o.Sources = func(string) []api.Source { return []api.Source{sourceOf(bank("stripe"), "stripe")} } // both accounts'
	})
	id, other := l.paidOrder("ord_1"), l.paidOrder("ord_2")
	body := `{"data":{"amount":2000,"reason":"did not fit","metadata":{"external_ref":"rf_1"}}}`
	first := l.moved(id, "refunds", body, withKey("k1"))
	before := l.written()

	again := func(why, order, what, body, key string, status int, replayed string) {
		t.Helper()
		var change []func(*http.Request)
		if key != "" {
			change = append(change, withKey(key))
		}
		w := l.move(order, what, body, change...)
		require.Equal(t, status, w.Code, "%s: %s", why, w.Body.String())
		require.Equal(t, first, data(t, w), why)
		require.Equal(t, "/v1/transactions/"+first["id"].(string), w.Header().Get("Location"), why)
		require.Equal(t, replayed, w.Header().Get("Idempotent-Replayed"), why)
		require.Equal(t, before, l.written(), why)
	}
	again("same reference, new key", id, "refunds", body, "k2", http.StatusOK, "")
	again("same reference, same key", id, "refunds", body, "k1", http.StatusCreated, "true")
	again("same reference, no key", id, "refunds", body, "", http.StatusOK, "")
	again("what was said is less", id, "refunds", strings.Replace(body, `"amount":2000,`, "", 1), "k5", http.StatusOK, "")
	again("what was said is more", id, "refunds", strings.Replace(body, `"amount"`, `"payment":"pi_ord_1","currency":"EUR","amount"`, 1), "k6", http.StatusOK, "")
	require.NotContains(t, l.log.String(), "external_ref_body_differs")
	again("same reference, other amount", id, "refunds", strings.Replace(body, "2000", "9900", 1), "k3", http.StatusOK, "")
	again("same reference, other order", other, "refunds", body, "", http.StatusOK, "")
	again("same reference, an order that is not there", uuid.NewString(), "refunds", body, "k4", http.StatusOK, "")
	again("same reference, other kind", id, "captures", body, "", http.StatusOK, "")
	again("same reference, other payment", id, "refunds", strings.Replace(body, `"amount"`, `"payment":"pi_9","amount"`, 1), "", http.StatusOK, "")
	require.Equal(t, 5, strings.Count(l.log.String(), `"note":"external_ref_body_differs"`))
	w := l.move(id, "refunds", strings.Replace(body, "2000", "9900", 1), withKey("k1"))
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.EqualValues(t, "idempotency_key_reused", problemOf(t, w).Code)

	// Three years later the key is long gone, the name is not; nor is it once the refund was declined.
	l.answer(first["id"], declined())
	_, err := l.pool.Exec(t.Context(), `DELETE FROM idempotency_keys; UPDATE transactions SET created_at = created_at - interval '3 years'`)
	require.NoError(t, err)
	first, before = l.transaction(first["id"]), l.written()
	again("same reference and key, three years later", id, "refunds", body, "k1", http.StatusOK, "")

	w = l.do(http.MethodPost, "/v1/orders", keyB, named("ord_1", 5000))
	require.Equal(t, http.StatusCreated, w.Code)
	theirs := hook("evt_b", "pi_b", "ord_1", captured(5000))
	theirs.Account = "b"
	l.deliver(theirs)
	w = l.do(http.MethodPost, "/v1/orders/"+data(t, w)["id"].(string)+"/refunds", keyB, body)
	require.Equal(t, http.StatusCreated, w.Code, "another account's: %s", w.Body.String())
	require.NotEqual(t, first["id"], data(t, w)["id"])

	for i, none := range []string{`{}`, `{"external_ref":null}`, `{"external_ref":""}`} {
		one := l.moved(other, "refunds", fmt.Sprintf(`{"data":{"amount":%d,"metadata":%s}}`, 10+i, none))
		two := l.moved(other, "refunds", fmt.Sprintf(`{"data":{"amount":%d,"metadata":%s}}`, 20+i, none))
		require.Nil(t, one["external_ref"])
		require.NotEqual(t, one["id"], two["id"], "no name is no uniqueness")
	}
}

// TestT63_OneRefundFromEverywhere: sixty-four requests for one name, with keys of their own and with none, are one refund.
func TestT63_OneRefundFromEverywhere(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id := l.paidOrder("ord_1")
	answers := make([]*httptest.ResponseRecorder, 64)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			change := func(*http.Request) {}
			if i%4 < 2 {
				change = withKey(fmt.Sprint("k", i))
			}
			answers[i] = l.move(id, "refunds", fmt.Sprintf(`{"data":{"amount":%d,"metadata":{"external_ref":"rf_1"}}}`, 1000+i%3), change)
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
	require.Equal(t, 1, l.count("transactions"))
	require.Equal(t, 1, l.count(`river_job WHERE queue = $1`, store.MoveQueue))
}

// twinOf requires the answer of the net.
func twinOf(t *testing.T, w *httptest.ResponseRecorder, id any) {
	t.Helper()
	require.Equal(t, http.StatusConflict, w.Code, w.Body.String())
	p := decoded(t, w)
	require.Equal(t, "possible_duplicate", p["code"])
	at := "/v1/transactions/" + id.(string)
	require.Equal(t, map[string]any{"type": "transaction", "id": id, "href": at}, p["resource"])
	require.Equal(t, "<"+at+`>; rel="related"`, w.Header().Get("Link"))
	require.Empty(t, w.Header().Get("Location"))
}

func TestT98_DedupNetOfTransactions(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]func(*api.Options){"Strict": func(*api.Options) {}, "Relaxed": relaxed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := goLive(t, profile, callable)
			set := storetest.StopClock(t, l.pool, midMinute)
			id, other := l.paidOrder("ord_1"), l.paidOrder("ord_2")
			l.deliver(hook("evt_2", "pi_2", "ord_1", captured(5000)), hook("evt_3", "pi_3", "ord_1", authorized(5000)))
			body := `{"data":{"amount":500,"payment":"pi_ord_1"}}`
			first := l.moved(id, "refunds", body, withKey("k1"))
			before := l.written()
			twinOf(t, l.move(id, "refunds", body), first["id"])
			twinOf(t, l.move(id, "refunds", body, withKey("k2")), first["id"])
			twinOf(t, l.move(id, "refunds", strings.Replace(body, `}}`, `,"reason":"other words"}}`, 1)), first["id"])
			require.Equal(t, before, l.written(), "row and job are one")

			// Another amount, payment, kind, order or name is another movement.
			l.moved(id, "refunds", `{"data":{"amount":501,"payment":"pi_ord_1"}}`)
			l.moved(id, "refunds", `{"data":{"amount":500,"payment":"pi_2"}}`)
			l.moved(id, "captures", `{"data":{"amount":500}}`)
			l.moved(other, "refunds", `{"data":{"amount":500}}`)
			l.moved(id, "refunds", `{"data":{"amount":500,"payment":"pi_ord_1","metadata":{"external_ref":"rf_1"}}}`)
			l.moved(id, "refunds", `{"data":{"amount":500,"payment":"pi_ord_1","metadata":{"external_ref":"rf_2"}}}`)

			// What has failed stands in nobody's way; what a key was answered, it is answered again, if that was kept.
			l.answer(first["id"], declined())
			w := l.move(id, "refunds", body, withKey("k2"))
			if name == "Strict" {
				twinOf(t, w, first["id"])
				require.Equal(t, "true", w.Header().Get("Idempotent-Replayed"))
				w = l.move(id, "refunds", body, withKey("k3"))
			}
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
			second := data(t, w)
			require.NotEqual(t, first["id"], second["id"])
			twinOf(t, l.move(id, "refunds", body), second["id"])

			set(midMinute.Truncate(time.Minute).Add(time.Minute - time.Microsecond))
			twinOf(t, l.move(id, "refunds", body), second["id"])
			set(midMinute.Truncate(time.Minute).Add(time.Minute))
			l.moved(id, "refunds", body)
		})
	}
}

// TestT98_DedupNetOfTransactionsAtOnce: a button that many hands press, each request with a key of its own, and some that go around
// the API: one refund.
func TestT98_DedupNetOfTransactionsAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	storetest.StopClock(t, l.pool, midMinute)
	id := l.paidOrder("ord_1")
	answers := make([]*httptest.ResponseRecorder, 24)
	around := make([]error, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = l.move(id, "refunds", `{"data":{"amount":100}}`, withKey(fmt.Sprint("k", i))) })
	}
	source := sourceOf(bank("stripe"), "stripe")
	for i := range around {
		wg.Go(func() {
			around[i] = l.store.InTx(t.Context(), func(tx store.Tx) error {
				_, err := l.store.CreateTransaction(t.Context(), tx, store.NewTransaction{
					Account: "a", Order: uuid.MustParse(id), Kind: order.MovementRefund, Amount: 100, Realms: []string{"stripe:live"},
					Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
						r, err := source.Prepare(m)
						return store.Prepared{Source: "stripe", Gateway: "stripe", Request: r}, err
					},
				})
				return err
			})
		})
	}
	wg.Wait()
	made := 0
	for _, w := range answers {
		if w.Code == http.StatusCreated {
			made++
		} else {
			require.EqualValues(t, "possible_duplicate", problemOf(t, w).Code)
		}
	}
	for _, err := range around {
		var twin *store.DuplicateError
		if err == nil {
			made++
		} else {
			require.ErrorAs(t, err, &twin)
		}
	}
	require.Equal(t, 1, made)
	require.Equal(t, 1, l.count("transactions"))
	require.Equal(t, 24, l.count("idempotency_keys WHERE status = 'COMPLETED' AND resource_type IS NOT DISTINCT FROM CASE WHEN response_code = 201 THEN 'transaction' END"))
}

func TestListsOfTransactions(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, other := l.paidOrder("ord_1"), l.paidOrder("ord_2")
	var all []any // newest first
	for i := range 5 {
		of, body := other, fmt.Sprintf(`{"data":{"amount":%d}}`, i+1)
		if i%2 == 0 {
			of, body = id, fmt.Sprintf(`{"data":{"amount":%d,"metadata":{"external_ref":"rf_%d"}}}`, i+1, i)
		}
		all = append([]any{l.moved(of, "refunds", body)["id"]}, all...)
	}
	l.answer(all[3], declined())
	l.answer(all[4], unsure())
	for i, tid := range all {
		all[i] = l.transaction(tid)
	}

	list := func(query string) (found []any) {
		t.Helper()
		cursor := ""
		for {
			w := l.do(http.MethodGet, "/v1/transactions?limit=2&"+query+cursor, readOnly, "")
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			doc := decoded(t, w)
			require.LessOrEqual(t, len(doc["data"].([]any)), 2)
			found = append(found, doc["data"].([]any)...)
			if doc["next"] == nil {
				return found
			}
			cursor = "&cursor=" + doc["next"].(string)
		}
	}
	require.Equal(t, all, list(""))
	require.Equal(t, []any{all[0], all[2], all[4]}, list("order_id="+id))
	require.Equal(t, []any{all[3]}, list("status=failed"))
	require.Equal(t, []any{all[4]}, list("status=uncertain"))
	require.Equal(t, all[:3], list("status=pending"))
	require.Equal(t, []any{all[2]}, list("external_ref=rf_2"))
	between := url.QueryEscape(all[2].(map[string]any)["created_at"].(string))
	require.Equal(t, all[:3], list("created_from="+between))
	require.Equal(t, all[3:], list("created_until="+between))
	require.Empty(t, list("order_id="+uuid.NewString()))

	next := decoded(t, l.do(http.MethodGet, "/v1/transactions?limit=2", readOnly, ""))["next"].(string)
	for query, code := range map[string]string{
		"status=lost": "invalid_parameter", "limit=0": "invalid_parameter", "order_id=ord_1": "invalid_parameter", "order=ord_1": "invalid_parameter",
		"cursor=x": "invalid_cursor",
	} {
		w := l.do(http.MethodGet, "/v1/transactions?"+query, readOnly, "")
		require.Equal(t, http.StatusBadRequest, w.Code, query)
		require.EqualValues(t, code, problemOf(t, w).Code, query)
	}
	w := l.do(http.MethodGet, "/v1/incomes?cursor="+next, readOnly, "")
	require.EqualValues(t, "invalid_cursor", problemOf(t, w).Code, "a place in this list is none in another")

	// Another account sees none of them, and finds none by its id.
	w = l.do(http.MethodGet, "/v1/transactions?limit=1000", keyB, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, decoded(t, w)["data"])
	at := "/v1/transactions/" + all[4].(map[string]any)["id"].(string)
	for path, key := range map[string]string{at: keyB, "/v1/transactions/" + uuid.NewString(): keyA, "/v1/transactions/tr_1": keyA} {
		w := l.do(http.MethodGet, path, key, "")
		require.Equal(t, http.StatusNotFound, w.Code)
		require.EqualValues(t, "transaction_not_found", problemOf(t, w).Code)
	}
	require.Equal(t, http.StatusForbidden, l.do(http.MethodGet, at, operator, "").Code)
	w = l.do(http.MethodPost, at+"/resolve", operatorB, `{"data":{"outcome":"succeeded","note":"seen"}}`)
	require.EqualValues(t, "transaction_not_found", problemOf(t, w).Code)
	require.Equal(t, "uncertain", l.transaction(all[4].(map[string]any)["id"])["status"])
}
