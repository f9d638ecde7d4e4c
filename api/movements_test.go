package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func TestRefund(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "ord_1", captureOf("ch_1", 5000)))
	jobs := l.count("river_job")

	w := l.move(id, "refunds", `{"data":{"amount":2000,"reason":"did not fit","metadata":{"external_ref":"rf_1","exact":9007199254740993}}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Contains(t, w.Body.String(), "9007199254740993", "no number goes through a float")
	tr := data(t, w)
	tid := tr["id"].(string)
	require.Equal(t, "/v1/transactions/"+tid, w.Header().Get("Location"))
	require.Contains(t, l.log.String(), `"order_id":"`+id+`"`)
	require.NotEmpty(t, tr["created_at"])
	require.Equal(t, map[string]any{
		"id": tid, "external_ref": "rf_1", "order_id": id, "order_ref": "ord_1", "kind": "refund", "amount": 2000.0, "currency": "EUR",
		"payment": []any{"pi_1"}, "source": "stripe", "gateway": "stripe", "status": "pending",
		"text":  "Refund of 20.00 EUR of pi_1 (rf_1) was asked for; stripe is called next.",
		"epoch": 1.0, "idempotency_key": store.TransactionKey(uuid.MustParse(tid), 1), "attempts": 0.0,
		"gateway_ref": nil, "code": nil, "detail": nil, "reason": "did not fit", "metadata": map[string]any{"external_ref": "rf_1", "exact": 9007199254740993.0},
		"created_at": tr["created_at"], "sent_at": nil, "next_at": tr["created_at"], "settled_at": nil,
	}, tr)
	require.Equal(t, tr, l.transaction(tid))

	// What will be sent is committed to the byte, with its job; the order waits for what the gateway says.
	var (
		method, path, body string
		header             map[string]string
		movement           order.Movement
	)
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT method, path, convert_from(body, 'UTF8'), header, movement FROM transactions`).
		Scan(&method, &path, &body, &header, &movement))
	require.Equal(t, []string{"POST", "/stripe/refund", tid + " 2000 EUR pi_1 did not fit"}, []string{method, path, body})
	require.Equal(t, map[string]string{"Content-Type": "text/plain", "X-Version": "1, 2"}, header)
	require.Equal(t, order.Movement{
		ID: tid, Kind: order.MovementRefund, Amount: order.Amount{Minor: 2000, Currency: "EUR"}, Payment: []string{"pi_1"},
		Captures: []order.Capture{{Ref: "ch_1", Minor: 5000}}, Reference: "ord_1", Reason: "did not fit",
	}, movement)
	require.Equal(t, jobs+1, l.count("river_job"))
	require.EqualValues(t, 0, l.read(id)["refunded"])

	l.answer(tid, done("re_1", hook("evt_2", "pi_1", "", refundOf("re_1", 2000))))
	tr = l.transaction(tid)
	require.Equal(t, "succeeded", tr["status"])
	require.Equal(t, "re_1", tr["gateway_ref"])
	require.NotNil(t, tr["settled_at"])
	require.EqualValues(t, 2000, l.read(id)["refunded"])

	// The rest, without an amount; and then there is none.
	rest := l.moved(id, "refunds", `{"data":{"payment":"pi_1","currency":"EUR"}}`)
	require.EqualValues(t, 3000, rest["amount"])
	require.Nil(t, rest["external_ref"])
	require.NotContains(t, rest, "metadata")
	w = l.move(id, "refunds", `{"data":{}}`)
	require.EqualValues(t, "nothing_to_move", problemOf(t, w).Code)
	require.Contains(t, w.Body.String(), "Under way are 3000 minor units")
	l.answer(rest["id"], done("re_2", hook("evt_3", "pi_1", "", refundOf("re_2", 3000))))
	require.Equal(t, "refunded", l.read(id)["state"])
	w = l.move(id, "refunds", `{"data":{}}`)
	require.Equal(t, []fault{{"/data", "nothing_captured", "asks for what is not there"}}, faultsOf(t, w))
}

func TestCaptureAndVoid(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "ord_1", authorized(5000)))
	part := l.moved(id, "captures", `{"data":{"amount":2000}}`)
	require.Equal(t, "capture", part["kind"])
	w := l.move(id, "voids", `{"data":{}}`)
	require.EqualValues(t, "nothing_to_move", problemOf(t, w).Code, "what is about to be taken is not let go of")
	require.Equal(t, "under_way", faultsOf(t, w)[0].Code)

	// A second one of the payment waits for its turn.
	rest := l.moved(id, "captures", `{"data":{}}`)
	require.EqualValues(t, 3000, rest["amount"])
	require.Nil(t, rest["next_at"])
	require.Equal(t, "Capture of 30.00 EUR of pi_1 was asked for; stripe is called next, once another call about the payment is settled.", rest["text"])
	l.answer(part["id"], done("ca_1", hook("evt_2", "pi_1", "", captureOf("ca_1", 2000))))
	require.NotNil(t, l.transaction(rest["id"])["next_at"])
	l.answer(rest["id"], declined())
	require.Equal(t, "partially_paid", l.read(id)["state"])
	w = l.move(id, "voids", `{"data":{}}`)
	require.Equal(t, "already_captured", faultsOf(t, w)[0].Code)

	other, _ := l.order("ord_2")
	l.deliver(hook("evt_3", "pi_2", "ord_2", authorized(5000)))
	void := l.moved(other, "voids", `{"data":{"reason":"sold out"}}`)
	require.Equal(t, "void", void["kind"])
	require.EqualValues(t, 5000, void["amount"])
	for _, what := range []string{"voids", "captures"} {
		require.Equal(t, "under_way", faultsOf(t, l.move(other, what, `{"data":{}}`))[0].Code, what)
	}
	l.answer(void["id"], done("", hook("evt_4", "pi_2", "", order.Fact{Kind: order.KindPhase, Status: order.StatusCanceled})))
	require.Equal(t, "payment_over", faultsOf(t, l.move(other, "captures", `{"data":{}}`))[0].Code)
}

// An order that nobody has registered has no currency yet: its payment's is meant.
func TestRefundOfAStub(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	l.deliver(hook("evt_1", "pi_1", "stub", captured(700)))
	var id uuid.UUID
	require.NoError(t, l.pool.QueryRow(t.Context(), `UPDATE orders SET currency = NULL RETURNING id`).Scan(&id))
	tr := l.moved(id, "refunds", `{"data":{}}`)
	require.EqualValues(t, 700, tr["amount"])
	require.Equal(t, "EUR", tr["currency"])
}

func TestMovementsThatAreRefused(t *testing.T) {
	t.Parallel()
	klarna := bank("klarna")
	klarna.Calls = nil
	l := goLive(t, having(
		sourceOf(bank("stripe"), "stripe"), sourceOf(bank("adyen"), "adyen", poor), sourceOf(klarna, "klarna"), sourceOf(bank("acme"), "acme"),
	))
	at := func(realm string, e store.Event) store.Event {
		e.Realm = realm
		return e
	}
	paid, _ := l.order("paid")
	l.deliver(hook("evt_1", "pi_1", "paid", captured(5000)))
	l.moved(paid, "refunds", `{"data":{"amount":1000,"metadata":{"external_ref":"rf_1"}}}`)
	none, _ := l.order("none")
	open, _ := l.order("open")
	l.deliver(hook("evt_2", "pi_2", "open", authorized(5000)))
	failed, _ := l.order("failed")
	l.deliver(hook("evt_3", "pi_3", "failed", authorized(5000), order.Fact{Kind: order.KindPhase, Status: order.StatusFailed}))
	said, _ := l.order("said")
	w := l.do(http.MethodPost, "/v1/orders/"+said+"/confirm", keyA, `{"data":{"source":"stripe","payment":"pi_4","status":"captured","amount":5000,"currency":"EUR"}}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	several, _ := l.order("several")
	l.deliver(hook("evt_5", "pi_5", "several", captured(5000)), hook("evt_6", "pi_6", "several", captured(100)), hook("evt_7", "pi_7", "several", authorized(100)))
	other, _ := l.order("other")
	l.deliver(at("adyen:live", hook("evt_8", "psp_8", "other", captured(5000))))
	odd, _ := l.order("odd")
	l.deliver(hook("evt_9", "odd_9", "odd", captured(5000)))
	far, _ := l.order("far")
	l.deliver(at("klarna:live", hook("evt_10", "kl_10", "far", captured(100))), at("gone:live", hook("evt_11", "g_11", "far", captured(100))))
	cashed, _ := l.order("cashed")
	l.entered(cash(`"order_ref":"cashed"`))

	of := func(name, id, what, body string, status int, code string, at ...string) refusal {
		return refusal{name: name, path: "/orders/" + id + "/" + what, body: body, status: status, code: code, at: at}
	}
	bad := func(name, what, body string, at ...string) refusal {
		return of(name, paid, what, body, 422, "invalid_body", at...)
	}
	as := func(key string, r refusal) refusal {
		r.key = key
		return r
	}
	all := `{"data":{}}`
	l.refuses(http.MethodPost,
		of("NoOrder", uuid.NewString(), "refunds", all, 404, "order_not_found"),
		of("NoID", "ord_1", "refunds", all, 404, "order_not_found"),
		as(keyB, of("AnotherAccounts", paid, "refunds", all, 404, "order_not_found")),
		as(readOnly, of("ReadOnly", paid, "refunds", all, 403, "forbidden")),
		as(operator, of("Operator", paid, "captures", all, 403, "forbidden")),

		of("TooMuch", paid, "refunds", `{"data":{"amount":4001}}`, 409, "amount_exceeds", "/data/amount amount_exceeds"),
		of("TooMuchToTake", open, "captures", `{"data":{"amount":5001}}`, 409, "amount_exceeds", "/data/amount amount_exceeds"),
		of("NoPayment", none, "refunds", all, 409, "nothing_to_move"),
		of("NoSuchPayment", paid, "refunds", `{"data":{"payment":"pi_9"}}`, 404, "payment_not_found", "/data/payment payment_not_found"),
		of("AnotherOrdersPayment", none, "refunds", `{"data":{"payment":"pi_1"}}`, 404, "payment_not_found", "/data/payment payment_not_found"),
		of("NothingCaptured", open, "refunds", all, 409, "nothing_to_move", "/data nothing_captured"),
		of("AnotherCurrency", paid, "refunds", `{"data":{"currency":"USD"}}`, 409, "nothing_to_move", "/data nothing_captured"),
		of("NothingAuthorized", paid, "captures", all, 409, "nothing_to_move", "/data nothing_authorized"),
		of("AlreadyCaptured", paid, "voids", all, 409, "nothing_to_move", "/data already_captured"),
		of("Over", failed, "captures", all, 409, "nothing_to_move", "/data payment_over"),
		of("OverVoid", failed, "voids", all, 409, "nothing_to_move", "/data payment_over"),
		of("OnlySaid", said, "refunds", all, 409, "nothing_to_move", "/data not_said"),
		of("OnlySaidCapture", said, "captures", all, 409, "nothing_to_move", "/data not_said"),
		of("Ambiguous", several, "refunds", `{"data":{"amount":100}}`, 409, "payment_ambiguous", "/data/payment ambiguous"),

		of("NotReady", other, "refunds", all, 409, "not_callable"),
		of("NotReadyNamed", other, "refunds", `{"data":{"payment":"psp_8"}}`, 409, "not_callable"),
		of("NoSuchCall", odd, "refunds", all, 409, "not_callable"),
		of("NoCalls", far, "refunds", all, 409, "not_callable"),
		of("Cash", cashed, "refunds", all, 409, "not_callable"),

		bad("Null", "refunds", `{"data":{"amount":null}}`, "/data/amount type"),
		bad("Zero", "refunds", `{"data":{"amount":0}}`, "/data/amount too_small"),
		bad("Float", "captures", `{"data":{"amount":20.00}}`, "/data/amount not_minor_units"),
		bad("Text", "captures", `{"data":{"amount":"2000"}}`, "/data/amount type"),
		bad("TooLarge", "captures", `{"data":{"amount":1000000000000001}}`, "/data/amount too_large"),
		bad("Currency", "refunds", `{"data":{"currency":"eur"}}`, "/data/currency unknown_currency"),
		bad("Payment", "refunds", `{"data":{"payment":""}}`, "/data/payment too_short"),
		bad("Reason", "refunds", `{"data":{"reason":"`+strings.Repeat("x", 256)+`"}}`, "/data/reason too_long"),
		bad("Ref", "refunds", `{"data":{"metadata":{"external_ref":7}}}`, "/data/metadata/external_ref type"),
		bad("Misspelt", "refunds", `{"data":{"amont":2000}}`, "/data/amont unknown_field"),
		bad("PartOfAVoid", "voids", `{"data":{"amount":2000}}`, "/data/amount unknown_field"),
	)

	// What a program and a person can make of it.
	doc := decoded(t, l.move(paid, "refunds", `{"data":{"amount":4001}}`))
	require.Equal(t, map[string]any{"amount": 4000.0, "currency": "EUR", "under_way": 1000.0}, doc["left"])
	require.Equal(t, "must be at most 4000 (minor units of EUR); 1000 are under way", doc["errors"].([]any)[0].(map[string]any)["detail"])
	for order, words := range map[string][]string{
		several: {"pi_5, pi_6."}, other: {"Source adyen cannot call Adyen: access_token is missing."}, odd: {"The call cannot be made: the payment is an odd one."},
		far:    {"how Klarna is asked", "The payment is of gone:live, and no source of this account is any more."},
		cashed: {"received outside of gateways", "/v1/incomes/{id}/void"},
	} {
		for _, word := range words {
			require.Contains(t, problemOf(t, l.move(order, "refunds", all)).Detail, word)
		}
	}
	require.EqualValues(t, 100, l.moved(several, "refunds", `{"data":{"payment":"pi_6"}}`)["amount"])
	require.EqualValues(t, 100, l.moved(several, "captures", all)["amount"], "of the one that fits")
}

// Of several payments of which none can be moved the one that says most says why: a failed attempt says little.
func TestWhyNothingMoves(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	gone := order.Fact{Kind: order.KindPhase, Status: order.StatusFailed}
	l.deliver(hook("evt_1", "pi_1", "ord_1", gone))
	l.deliver(hook("evt_2", "pi_2", "ord_1", authorized(5000), captured(5000)))
	l.deliver(hook("evt_3", "pi_3", "ord_1", gone))
	for what, why := range map[string]string{"captures": "nothing_authorized", "voids": "already_captured"} {
		require.Equal(t, why, faultsOf(t, l.move(id, what, `{"data":{}}`))[0].Code)
		require.Equal(t, "payment_over", faultsOf(t, l.move(id, what, `{"data":{"payment":"pi_1"}}`))[0].Code)
	}
	l.moved(id, "refunds", `{"data":{}}`)
	require.Equal(t, "under_way", faultsOf(t, l.move(id, "refunds", `{"data":{}}`))[0].Code)
}

// One id may stand for two payments at two gateways: only the one that the order has is moved, by its own gateway.
func TestPaymentOfOneNameAtAnotherGateway(t *testing.T) {
	t.Parallel()
	l := goLive(t, having(sourceOf(bank("stripe"), "stripe"), sourceOf(bank("adyen"), "adyen", poor)))
	mine, _ := l.order("mine")
	other, _ := l.order("other")
	theirs := hook("evt_2", "1001", "mine", captured(5000))
	theirs.Realm, theirs.Source = "adyen:live", "adyen"
	l.deliver(hook("evt_1", "1001", "other", captured(5000)), theirs)
	w := l.move(mine, "refunds", `{"data":{}}`)
	require.Equal(t, http.StatusConflict, w.Code, w.Body.String())
	require.EqualValues(t, "not_callable", problemOf(t, w).Code)
	require.Contains(t, problemOf(t, w).Detail, "Source adyen")
	require.Equal(t, "stripe", l.moved(other, "refunds", `{"data":{}}`)["source"])
}

func TestWhichSourceCalls(t *testing.T) {
	t.Parallel()
	stripe := bank("stripe")
	for name, tt := range map[string]struct {
		sources []api.Source
		told    []string // in this order
		want    string
	}{
		"TheOneThatTold":  {[]api.Source{sourceOf(stripe, "one"), sourceOf(stripe, "two"), sourceOf(stripe, "three")}, []string{"two", "three"}, "two"},
		"NotReady":        {[]api.Source{sourceOf(stripe, "one"), sourceOf(stripe, "two", poor)}, []string{"two"}, "one"},
		"NotConfigured":   {[]api.Source{sourceOf(stripe, "two"), sourceOf(stripe, "one")}, []string{"gone"}, "one"},
		"OfAnotherRealm":  {[]api.Source{sourceOf(bank("adyen"), "a"), sourceOf(stripe, "z")}, []string{"a"}, "z"},
		"OurOwnWordLast":  {[]api.Source{sourceOf(stripe, "one"), sourceOf(stripe, "two")}, []string{"api", "two"}, "two"},
		"OurOwnWordAlone": {[]api.Source{sourceOf(stripe, "one"), sourceOf(stripe, "two")}, []string{"api"}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := goLive(t, having(tt.sources...))
			id, _ := l.order("ord_1")
			for i, source := range tt.told {
				e := hook("evt_"+string(rune('a'+i)), "pi_1", "ord_1", captured(5000))
				e.Source = source
				l.deliver(e)
			}
			tr := l.moved(id, "refunds", `{"data":{}}`)
			require.Equal(t, tt.want, tr["source"])
			var path string
			require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT path FROM transactions`).Scan(&path))
			require.Equal(t, "/"+tt.want+"/refund", path)
		})
	}
}

// The answer of a movement is stored as every other: the same bytes for the same key, whatever became of it meanwhile.
func TestTransactionAndItsAnswerCommitTogether(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "ord_1", captured(5000)))
	before := l.written()
	_, err := l.pool.Exec(t.Context(), `
		CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken on purpose'; END $$;
		CREATE TRIGGER broken BEFORE UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'COMPLETED') EXECUTE FUNCTION broken()`)
	require.NoError(t, err)
	w := l.move(id, "refunds", `{"data":{"amount":100}}`, withKey("k1"))
	require.GreaterOrEqual(t, w.Code, 500)
	require.Equal(t, before, l.written())

	_, err = l.pool.Exec(t.Context(), `DROP TRIGGER broken ON idempotency_keys`)
	require.NoError(t, err)
	w = l.move(id, "refunds", `{"data":{"amount":100}}`, withKey("k1"))
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	tr := data(t, w)
	require.Equal(t, 1, l.count(`idempotency_keys WHERE resource_type = 'transaction' AND resource_id::text = $1`, tr["id"]))
	l.answer(tr["id"], declined())
	again := l.move(id, "refunds", `{"data":{"amount":100}}`, withKey("k1"))
	require.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
	require.Equal(t, w.Body.String(), again.Body.String())
	require.Equal(t, "/v1/transactions/"+tr["id"].(string), api.ResourceURL("transaction", uuid.MustParse(tr["id"].(string))))
	require.True(t, json.Valid(w.Body.Bytes()))
}
