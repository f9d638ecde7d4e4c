package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// The payment of these tests, and what is made of it.
const (
	mpPaid = "61234567890"
	mpMade = "1622029222"
)

func mercadoSource() gateway.Source {
	s := gateway.MercadoPago.Example("main")
	s.ID, s.Topic = "mercadopago", "payment"
	return s
}

func mpMovement(kind order.MovementKind, amount string) order.Movement {
	m := order.Movement{ID: movementID, Kind: kind, Payment: []string{mpPaid}, Reference: "ord_1001", Reason: "late"}
	if _, err := fmt.Sscan(amount, &m.Amount.Minor, &m.Amount.Currency); err != nil {
		panic(err)
	}
	return m
}

// mpRefund is a refund as the API shows it.
func mpRefund(m order.Movement, status, metadata string) string {
	return fmt.Sprintf(`{"id":%s,"payment_id":%s,"amount":%s,"metadata":%s,"source":{"id":"7186040733","type":"collector"},
		"date_created":"2026-01-01T06:00:05.000-04:00","unique_sequence_number":null,"refund_mode":"standard","status":%q}`,
		mpMade, mpPaid, order.Format(m.Amount.Minor, m.Amount.Currency), metadata, status)
}

func mpMarked(id string) string { return `{"paidonce_transaction":"` + id + `"}` }

// mpPayment is a payment in a state, of an amount, a second after now.
func mpPayment(t testing.TB, typ string, m order.Amount, set map[string]string) string {
	t.Helper()
	_, body, err := gateway.MercadoPago.Fetch.Sample(gateway.SampleRequest{
		Source: mercadoSource(), Type: typ, Payment: mpPaid, Reference: "ord_1001", Amount: m, At: now.Add(time.Second), Set: set,
	})
	require.NoError(t, err)
	return string(body)
}

func mpDone(t testing.TB, m order.Movement) string {
	switch m.Kind {
	case order.MovementRefund:
		return mpRefund(m, "approved", mpMarked(m.ID))
	case order.MovementCapture:
		return mpPayment(t, "payment.approved", m.Amount, nil)
	default:
		return mpPayment(t, "payment.cancelled", m.Amount, nil)
	}
}

func mpFound(t testing.TB, m order.Movement) string {
	if m.Kind == order.MovementRefund {
		return "[" + mpDone(t, m) + "]"
	}
	return mpDone(t, m)
}

func mpAbsent(t testing.TB, m order.Movement) string {
	if m.Kind == order.MovementRefund {
		return "[]"
	}
	return mpPayment(t, "payment.authorized", order.Amount{Minor: 5000, Currency: m.Amount.Currency}, nil)
}

var _ = calls("mercadopago", calling{
	source:  mercadoSource(),
	lacking: map[string]gateway.Source{"access_token": func() gateway.Source { s := mercadoSource(); s.AccessToken = ""; return s }()},
	made: map[string]order.Movement{
		"Refund":        mpMovement(order.MovementRefund, "1550 BRL"),
		"RefundWhole":   mpMovement(order.MovementRefund, "5000 BRL"),
		"RefundCLP":     mpMovement(order.MovementRefund, "15000 CLP"),
		"RefundNoFloat": mpMovement(order.MovementRefund, "900719925474099301 BRL"),
		"Capture":       mpMovement(order.MovementCapture, "2010 BRL"),
		"Void":          mpMovement(order.MovementVoid, "5000 BRL"),
	},
	unnamed: map[string]string{
		"Capture": "a change of the payment has no room for it, and there is one capture at most",
		"Void":    "a change of the payment has no room for it, and what is canceled is canceled for everybody",
	},
	impossible: map[string]order.Movement{
		"2 ids": func() order.Movement {
			m := mpMovement(order.MovementRefund, "1 BRL")
			m.Payment = []string{"1", "2"}
			return m
		}(),
		"of an order": func() order.Movement {
			m := mpMovement(order.MovementRefund, "1 BRL")
			m.Payment = []string{"PAY01M2V0XY", "orders/ORD01M2V0XYABC/payments/PAY01M2V0XY"}
			return m
		}(),
		"there is no": mpMovement("payout", "1 BRL"),
	},
	done: mpDone, found: mpFound, absent: mpAbsent,
})

// TestMercadoPagoRequests: the requests, to the byte.
func TestMercadoPagoRequests(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	for name, m := range callers["mercadopago"].made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, err := gateway.MercadoPago.Calls.Make(s, m)
			require.NoError(t, err)
			golden(t, "testdata/calls/mercadopago/"+name+".golden", goldenCall(call, gateway.MercadoPago.Calls.Authorize(s, call)))
			look, err := gateway.MercadoPago.Calls.Look(s, m)
			require.NoError(t, err)
			want := "/v1/payments/" + mpPaid
			if m.Kind == order.MovementRefund {
				want += "/refunds"
				require.Equal(t, "true", look.Header.Get("X-Render-In-Process-Refunds"), "refunds under way would be left out")
			}
			require.Equal(t, want, look.Path)
		})
	}
}

// TestMercadoPagoCallAnswers: every answer that the documentation tells of, and what is to be done.
func TestMercadoPagoCallAnswers(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	refund, capture, void := mpMovement(order.MovementRefund, "1550 BRL"), mpMovement(order.MovementCapture, "2010 BRL"), mpMovement(order.MovementVoid, "5000 BRL")
	held := order.Amount{Minor: 5000, Currency: "BRL"}
	refusal := func(status int, code string) gateway.Reply {
		return answered(status, fmt.Sprintf(`{"message":"Zebra","error":"bad_request","status":%d,"cause":[{"code":%s,"description":"Zebra","data":null}]}`, status, code))
	}
	made := mpDone(t, refund)
	with := func(old, text string) gateway.Reply {
		require.Contains(t, made, old)
		return answered(201, strings.Replace(made, old, text, 1))
	}
	playAnswers(t, s, refund, []answerRow{
		{"Approved", answered(201, made), gateway.Done, ""},
		{"T107_ThereAlready", answered(200, made), gateway.Done, ""},
		{"InProcess", with("approved", "in_process"), gateway.Done, ""},
		{"WithoutMetadata", with(mpMarked(movementID), "null"), gateway.Done, ""},
		{"WithEmptyMetadata", with(mpMarked(movementID), "{}"), gateway.Done, ""},
		{"T106_Rejected", with("approved", "rejected"), gateway.Declined, "rejected"},
		{"ANewStatus", with("approved", "zebra"), gateway.Unsure, ""},
		{"NoStatus", with(`"approved"`, "null"), gateway.Unsure, ""},
		{"AnothersMark", with(movementID, "0200"+movementID[4:]), gateway.Unsure, ""},
		{"MarkTwice", with(`{"paidonce_transaction"`, `{"paidonce_transaction":"x","paidonce_transaction"`), gateway.Unsure, ""},
		{"OfAnotherPayment", with(mpPaid, "61234567891"), gateway.Unsure, ""},
		{"OfNoPayment", with(mpPaid, "null"), gateway.Unsure, ""},
		{"AnotherAmount", with("15.50", "15.51"), gateway.Unsure, ""},
		{"AFraction", with("15.50", "15.5000000001"), gateway.Unsure, ""},
		{"AnExponent", with("15.50", "1550e-2"), gateway.Unsure, ""},
		{"AsAText", with("15.50", `"15.50"`), gateway.Done, ""},
		{"AList", answered(201, "["+made+"]"), gateway.Unsure, ""},
		{"Accepted", answered(202, made), gateway.Unsure, ""},

		{"T103_InProgress", answered(409, `{"errors":[{"code":"refund_in_progress","message":"Zebra"}]}`), gateway.Later, ""},
		{"T103_Conflict", answered(409, `{"message":"Zebra","error":"conflict","status":409}`), gateway.Later, ""},
		{"T103_JustPosted", refusal(400, "2001"), gateway.Later, ""},
		{"T103_Locked", answered(423, `{"error":"locked"}`), gateway.Later, ""},
		{"T104_KeyUsed", answered(409, `{"errors":[{"code":"idempotency_key_already_used"}]}`), gateway.Reused, "idempotency_key_already_used"},
		{"T105_WrongState", refusal(400, "2063"), gateway.Unsure, "2063"},
		{"T105_WrongStateAsAText", refusal(400, `"2063"`), gateway.Unsure, "2063"},
		{"T105_WrongStateOfTheCapture", refusal(400, "2018"), gateway.Unsure, "2018"},
		{"T105_StateDoesNotAllow", refusal(400, "3005"), gateway.Unsure, "3005"},
		{"T105_ANewCode", refusal(400, "99999"), gateway.Unsure, "99999"},
		{"T105_NoCode", answered(400, `{"message":"Zebra","error":"bad_request","status":400,"cause":[]}`), gateway.Unsure, "bad_request"},
		{"T106_TooOld", refusal(400, "15016"), gateway.Declined, "15016"},
		{"T106_NotInPart", refusal(400, "3024"), gateway.Declined, "3024"},
		{"T106_NoSuchPayment", refusal(404, "2000"), gateway.Declined, "2000"},
		{"T106_NoSuchPaymentWithoutACode", answered(404, `{"message":"Zebra","error":"not found","status":404}`), gateway.Declined, "not_found"},
		{"T109_Token", answered(401, `{"message":"Zebra","error":"unauthorized"}`), gateway.Denied, ""},
		{"T109_Forbidden", answered(403, `{"error":"forbidden"}`), gateway.Denied, ""},
		{"T109_TooFast", answered(429, `{"error":"too_many_requests"}`, "Retry-After", "3"), gateway.Later, ""},
		{"T102_Internal", answered(500, `{"error":"internal_error"}`), gateway.Later, ""},
		{"NotMercadoPago", answered(404, "<html>Zebra</html>"), gateway.Later, ""},
		{"NotAnError", answered(422, `{"message":"Zebra"}`), gateway.Later, ""},
	})
	playAnswers(t, s, capture, []answerRow{
		{"Captured", answered(200, mpDone(t, capture)), gateway.Done, ""},
		{"CapturedAndRefundedMeanwhile", answered(200, mpPayment(t, "payment.refunded", capture.Amount, nil)), gateway.Done, ""},
		{"CapturedOfAnotherAmount", answered(200, mpPayment(t, "payment.approved", held, nil)), gateway.Unsure, ""},
		{"StillHeld", answered(200, mpPayment(t, "payment.authorized", held, nil)), gateway.Unsure, ""},
		{"UnderReview", answered(200, mpPayment(t, "payment.in_process", capture.Amount, nil)), gateway.Unsure, ""},
		{"ANewState", answered(200, mpPayment(t, "payment.approved", capture.Amount, set("status", "zebra"))), gateway.Unsure, ""},
		{"AnotherPayment", answered(200, mpPayment(t, "payment.approved", capture.Amount, set("id", "7"))), gateway.Unsure, ""},
		{"T105_CaptureInAWrongState", refusal(400, "2063"), gateway.Unsure, "2063"},
	})
	playAnswers(t, s, void, []answerRow{
		{"Canceled", answered(200, mpDone(t, void)), gateway.Done, ""},
		{"Expired", answered(200, mpPayment(t, "payment.cancelled", held, set("status_detail", "expired"))), gateway.Done, ""},
		{"NotCanceled", answered(200, mpPayment(t, "payment.authorized", held, nil)), gateway.Unsure, ""},
		{"CapturedInstead", answered(200, mpPayment(t, "payment.approved", held, nil)), gateway.Unsure, ""},
	})
}

// TestMercadoPagoLookups: what became of a movement is told only where it is proven.
func TestMercadoPagoLookups(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	refund, capture, void := mpMovement(order.MovementRefund, "1550 BRL"), mpMovement(order.MovementCapture, "2010 BRL"), mpMovement(order.MovementVoid, "5000 BRL")
	held := order.Amount{Minor: 5000, Currency: "BRL"}
	ours, another, unmarked := mpDone(t, refund), mpRefund(refund, "approved", mpMarked("0200"+movementID[4:])), mpRefund(refund, "approved", "null")
	other := mpMovement(order.MovementRefund, "1000 BRL")
	shown := func(refunds ...string) gateway.Reply { return answered(200, "["+strings.Join(refunds, ",")+"]") }
	playLookups(t, s, refund, []answerRow{
		{"Ours", shown(unmarked, ours), gateway.Done, ""},
		{"OursInProcess", shown(mpRefund(refund, "in_process", mpMarked(movementID))), gateway.Done, ""},
		{"OursRejected", shown(mpRefund(refund, "rejected", mpMarked(movementID))), gateway.Declined, "rejected"},
		{"OursTwice", shown(ours, ours), gateway.Unsure, ""},
		{"OursOfAnotherAmount", shown(mpRefund(other, "approved", mpMarked(movementID))), gateway.Unsure, ""},
		{"None", shown(), gateway.Absent, ""},
		{"AnotherMovements", shown(another), gateway.Absent, ""},
		{"OfAnotherAmount", shown(mpRefund(other, "approved", "null")), gateway.Absent, ""},
		{"OfThatAmountRejected", shown(mpRefund(refund, "rejected", "{}")), gateway.Absent, ""},
		{"OfThatAmountAndNobodys", shown(another, unmarked), gateway.Unsure, ""},
		{"OfThatAmountInProcess", shown(mpRefund(refund, "in_process", `{"note":"x"}`)), gateway.Unsure, ""},
		{"OfAnotherPayment", shown(strings.Replace(another, mpPaid, "7", 1)), gateway.Unsure, ""},
		{"UnreadableBeside", shown(another, `{"id":1}`), gateway.Unsure, ""},
		{"NoList", answered(200, `{"refunds":[]}`), gateway.Unsure, ""},
		{"MoreThanAList", answered(200, `[],"list":[]`), gateway.Unsure, ""},
		{"TooMany", shown(strings.Split(strings.Repeat(another+"|", 201), "|")[:201]...), gateway.Unsure, ""},
		{"NoSuchPayment", answered(404, `{"error":"not_found"}`), gateway.Unsure, ""},
		{"T109_Token", answered(401, ""), gateway.Denied, ""},
	})
	playLookups(t, s, capture, []answerRow{
		{"Captured", answered(200, mpDone(t, capture)), gateway.Done, ""},
		{"Held", answered(200, mpPayment(t, "payment.authorized", held, nil)), gateway.Absent, ""},
		{"CapturedOfAnotherAmount", answered(200, mpPayment(t, "payment.approved", held, nil)), gateway.Absent, ""},
		{"CanceledInstead", answered(200, mpPayment(t, "payment.cancelled", held, nil)), gateway.Absent, ""},
		{"UnderReview", answered(200, mpPayment(t, "payment.in_process", held, nil)), gateway.Unsure, ""},
	})
	playLookups(t, s, void, []answerRow{
		{"Canceled", answered(200, mpDone(t, void)), gateway.Done, ""},
		{"StillHeld", answered(200, mpPayment(t, "payment.authorized", held, nil)), gateway.Absent, ""},
		{"CapturedInstead", answered(200, mpPayment(t, "payment.approved", held, nil)), gateway.Absent, ""},
		{"Waiting", answered(200, mpPayment(t, "payment.pending", held, nil)), gateway.Unsure, ""},
	})
}

// TestMercadoPagoJoins: what a call was answered and the payment that is fetched after it are one entry, whichever comes first; and
// the payment is to be asked about.
func TestMercadoPagoJoins(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	whole := order.Amount{Minor: 5000, Currency: "BRL"}
	fetched := func(typ string, m order.Amount, after time.Duration, set map[string]string) order.Event {
		_, body, err := gateway.MercadoPago.Fetch.Sample(gateway.SampleRequest{
			Source: s, Type: typ, Payment: mpPaid, Reference: "ord_1001", Amount: m, At: now.Add(after), Set: set,
		})
		require.NoError(t, err)
		return mustFetch(t, s, gateway.Object{Kind: "payment", ID: mpPaid}, string(body))[0]
	}
	said := func(m order.Movement, body string, lookup bool) order.Event {
		v := judged(t, s, m, answered(200, body), lookup)
		require.Equal(t, gateway.Done, v.Ruling, v.Detail)
		require.Len(t, v.Events, 1)
		if m.Kind == order.MovementRefund {
			require.Equal(t, mpMade, v.Ref)
			require.Equal(t, []gateway.Object{{Kind: "payment", ID: mpPaid}}, v.Fetch)
		}
		return v.Events[0]
	}
	listed := func(status, total string) map[string]string {
		return map[string]string{"transaction_amount_refunded": total, "refunds": `[{"id":` + mpMade + `,"amount":15.50,"status":"` + status + `"}]`}
	}
	refund, capture, void := mpMovement(order.MovementRefund, "1550 BRL"), mpMovement(order.MovementCapture, "2010 BRL"), mpMovement(order.MovementVoid, "5000 BRL")
	paid, held := fetched("payment.approved", whole, 0, nil), fetched("payment.authorized", whole, 0, nil)
	pending := strings.Replace(mpDone(t, refund), "approved", "in_process", 1)
	for _, row := range []struct {
		name                  string
		told                  []order.Event
		refunded, captured    int64
		canRefund, canCapture int64
		phase                 order.Status
		status                order.Status // of the refund
	}{
		{"Refund", []order.Event{paid, said(refund, mpDone(t, refund), false)}, 1550, 5000, 3450, 0, order.StatusAuthorized, order.StatusOK},
		{"RefundThenFetched", []order.Event{paid, said(refund, mpDone(t, refund), false), fetched("payment.approved", whole, time.Hour+6*time.Second, listed("approved", "15.50"))}, 1550, 5000, 3450, 0, order.StatusAuthorized, order.StatusOK},
		{"RefundWithoutItsTotal", []order.Event{said(refund, mpDone(t, refund), false), fetched("payment.approved", whole, time.Hour+6*time.Second, nil)}, 1550, 5000, 3450, 0, order.StatusAuthorized, order.StatusOK},
		{"RefundFound", []order.Event{paid, said(refund, mpFound(t, refund), true), said(refund, mpDone(t, refund), false)}, 1550, 5000, 3450, 0, order.StatusAuthorized, order.StatusOK},
		{"RefundPending", []order.Event{paid, said(refund, pending, false)}, 0, 5000, 3450, 0, order.StatusAuthorized, order.StatusPending},
		{"RefundPendingThenApproved", []order.Event{paid, said(refund, pending, false), fetched("payment.approved", whole, time.Hour+6*time.Second, listed("approved", "15.50"))}, 1550, 5000, 3450, 0, order.StatusAuthorized, order.StatusOK},
		{"RefundPendingThenRejected", []order.Event{paid, said(refund, pending, false), fetched("payment.approved", whole, time.Hour+6*time.Second, listed("rejected", "0"))}, 0, 5000, 5000, 0, order.StatusAuthorized, order.StatusFailed},
		{"RefundUndone", []order.Event{paid, said(refund, mpDone(t, refund), false), fetched("payment.approved", whole, time.Hour+6*time.Second, listed("rejected", "0"))}, 0, 5000, 5000, 0, order.StatusAuthorized, order.StatusFailed},
		{"Capture", []order.Event{held, said(capture, mpDone(t, capture), false)}, 0, 2010, 2010, 2990, order.StatusAuthorized, ""},
		{"CaptureThenFetched", []order.Event{held, said(capture, mpDone(t, capture), false), fetched("payment.approved", capture.Amount, time.Minute, nil)}, 0, 2010, 2010, 2990, order.StatusAuthorized, ""},
		{"CaptureFound", []order.Event{held, said(capture, mpFound(t, capture), true)}, 0, 2010, 2010, 2990, order.StatusAuthorized, ""},
		{"Void", []order.Event{held, said(void, mpDone(t, void), false), fetched("payment.cancelled", whole, time.Minute, nil)}, 0, 0, 0, 0, order.StatusCanceled, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var want *order.Ledger
			for _, told := range orders(row.told) {
				all := joined(told)
				require.Len(t, all, 1)
				l := all[0]
				if want == nil {
					want = l
				}
				require.Equal(t, want, l)
				o := order.Order{Registered: true, Total: 5000, Currency: "BRL", Payments: map[string]*order.Ledger{"x": l}}
				view := o.View()
				require.Equal(t, []int64{row.captured, row.refunded}, []int64{view.Captured, view.Refunded})
				left, _ := l.Movable(order.MovementRefund, "BRL")
				require.Equal(t, row.canRefund, left)
				left, _ = l.Movable(order.MovementCapture, "BRL")
				require.Equal(t, row.canCapture, left)
				require.Equal(t, row.phase, l.Phase.Status)
				require.Equal(t, row.status, l.Money["BRL"].Refunds[mpMade].Status)
			}
		})
	}
	require.Equal(t, now.Add(time.Hour+5*time.Second).UnixMilli(), said(refund, mpDone(t, refund), false).Facts[0].Seq, "when it was made, as the versions of snapshots are")
	undated := said(refund, strings.Replace(mpDone(t, refund), `"2026-01-01T06:00:05.000-04:00"`, "null", 1), false)
	require.Zero(t, undated.Facts[0].Seq, "older than every snapshot")
}

// TestMercadoPagoAbout: what is asked about, by the ids that a payment is known under.
func TestMercadoPagoAbout(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	for want, ids := range map[string][]string{
		"payment/61234567890":     {mpPaid, "ord_1001"},
		"order/ORD01M2V0XYABC":    {"PAY01M2V0XY", "orders/ORD01M2V0XYABC/payments/PAY01M2V0XY"},
		"order/ORDTST01M2V0XYABC": {"123", "orders/ORDTST01M2V0XYABC/payments/123"},
		"":                        {"PAY01M2V0XY", "orders/../payments/1", "orders/ORD01M2V0XYABC", "orders/ORD01M2V0XYABC/payments/"},
	} {
		var got []string
		for _, o := range gateway.MercadoPago.Fetch.About(s, ids) {
			got = append(got, o.String())
			_, err := gateway.MercadoPago.Fetch.Call(s, o)
			require.NoError(t, err)
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
	s.AccessToken = ""
	require.Empty(t, gateway.MercadoPago.Fetch.About(s, []string{mpPaid}))

	// What an order's answer says leads back to it.
	o, body, err := gateway.MercadoPago.Fetch.Sample(gateway.SampleRequest{Source: mercadoSource(), Type: "order.processed", Reference: "ord_1", At: now})
	require.NoError(t, err)
	told := mustFetch(t, mercadoSource(), o, string(body))
	require.Equal(t, []gateway.Object{o}, gateway.MercadoPago.Fetch.About(mercadoSource(), told[0].Payment))
}

// TestMercadoPagoTopic: a source that has a topic asks about nothing else.
func TestMercadoPagoTopic(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string][2]int{"": {1, 1}, "payment": {1, 0}, "order": {0, 1}} {
		s := mercadoSource()
		s.Topic = topic
		require.NoError(t, gateway.MercadoPago.Check(s))
		for i, d := range []gateway.Delivery{
			{Query: "data.id=123", Body: []byte(`{"type":"payment"}`)}, {Query: "data.id=ORDTST01M2V0XY", Body: []byte(`{"type":"order"}`)},
		} {
			objects, err := gateway.MercadoPago.Objects(s, d)
			require.NoError(t, err)
			require.Len(t, objects, want[i], topic)
		}
		require.Equal(t, topic == "payment", gateway.MercadoPago.Listing.Ready(s) == nil, "payments of orders would count twice")
	}
	s := mercadoSource()
	s.Topic = "chargebacks"
	require.ErrorContains(t, gateway.MercadoPago.Check(s), "topic must be")
	s = paypalSource()
	s.Topic = "payment"
	require.ErrorContains(t, gateway.PayPal.Check(s), "topic is no option")
}

// TestMercadoPagoListing: pages go on from the time up to which they were read, so that a payment that changes meanwhile makes none
// be left out.
func TestMercadoPagoListing(t *testing.T) {
	t.Parallel()
	s := mercadoSource()
	list := gateway.MercadoPago.Listing
	begin := now.Add(1500 * time.Microsecond)
	span := gateway.Span{From: begin, Until: now.Add(time.Hour + time.Microsecond)}
	query := func(page string) url.Values {
		call, err := list.Call(s, span, page)
		require.NoError(t, err)
		require.Equal(t, "Bearer "+s.AccessToken, call.Header.Get("Authorization"))
		path, raw, _ := strings.Cut(call.Path, "?")
		require.Equal(t, "/v1/payments/search", path)
		q, err := url.ParseQuery(raw)
		require.NoError(t, err)
		return q
	}
	require.Equal(t, url.Values{
		"sort": {"date_last_updated"}, "criteria": {"asc"}, "range": {"date_last_updated"}, "limit": {"50"}, "offset": {"0"},
		"begin_date": {"2026-01-01T09:00:00.001Z"}, "end_date": {"2026-01-01T10:00:00.001Z"},
	}, query(""))

	// The search as Mercado Pago has it: 120 payments, one of which changes whenever a page was read.
	type changed struct {
		id int
		at time.Time
	}
	var there []changed
	search := func(q url.Values, exclusive bool) string {
		from, err := time.Parse(time.RFC3339, q.Get("begin_date"))
		require.NoError(t, err)
		until, err := time.Parse(time.RFC3339, q.Get("end_date"))
		require.NoError(t, err)
		var offset int
		_, err = fmt.Sscan(q.Get("offset"), &offset)
		require.NoError(t, err)
		var results []map[string]any
		for _, p := range there {
			if p.at.Before(from) || p.at.After(until) || exclusive && p.at.Equal(from) {
				continue
			}
			if offset--; offset < 0 && len(results) < 50 {
				results = append(results, map[string]any{"id": p.id, "date_last_updated": p.at.In(time.FixedZone("", -4*3600)).Format("2006-01-02T15:04:05.000Z07:00")})
			}
		}
		body, err := json.Marshal(map[string]any{"paging": map[string]any{"total": len(there), "limit": 50, "offset": max(0, offset)}, "results": results})
		require.NoError(t, err)
		return string(body)
	}
	for _, exclusive := range []bool{false, true} { // whether it has what happened at begin_date itself
		there = nil
		for i := range 120 {
			there = append(there, changed{i + 1, now.Add(time.Second + time.Duration(i/3)*time.Millisecond)})
		}
		seen := map[string]bool{}
		page, pages := "", 0
		for {
			got, err := list.Read(s, gateway.Answer{Body: []byte(search(query(page), exclusive)), Started: now})
			require.NoError(t, err)
			for _, o := range got.Objects {
				require.Equal(t, "payment", o.Kind)
				seen[o.ID] = true
			}
			there[7*pages].at = now.Add(2 * time.Hour) // it leaves the span
			pages++
			require.Less(t, pages, 10)
			if page = got.Next; page == "" {
				break
			}
		}
		require.Len(t, seen, 120)
		require.GreaterOrEqual(t, pages, 3)
	}

	same := `{"id":7,"date_last_updated":"2026-01-01T06:00:00.000-04:00"}`
	got, err := list.Read(s, gateway.Answer{Body: []byte(`{"paging":{"limit":2,"offset":4},"results":[` + same + `,` + same + `]}`), Started: now})
	require.NoError(t, err)
	require.Equal(t, "6", query(got.Next).Get("offset"), "a page of one moment")
	require.Equal(t, "2026-01-01T10:00:00.000Z", query(got.Next).Get("begin_date"))
	got, err = list.Read(s, gateway.Answer{Body: []byte(`{"paging":{"limit":2,"offset":0},"results":[` + same + `,` + strings.Replace(same, "00.000", "00.001", 1) + `]}`), Started: now})
	require.NoError(t, err)
	require.Equal(t, "2026-01-01T10:00:00.001Z", query(got.Next).Get("begin_date"), "a page of two")

	for name, bad := range map[string]string{
		"NotJSON": "<html>", "NoResults": `{"paging":{"limit":1,"offset":0}}`, "NoPaging": `{"results":[]}`, "NoLimit": `{"paging":{"offset":0},"results":[]}`,
		"NoID":   `{"paging":{"limit":1,"offset":0},"results":[{"date_last_updated":"2026-01-01T06:00:00.000-04:00"}]}`,
		"NoTime": `{"paging":{"limit":1,"offset":0},"results":[{"id":1}]}`, "NoPayment": `{"paging":{"limit":1,"offset":0},"results":[1]}`,
		"AnOrder": strings.Replace(`{"paging":{"limit":1,"offset":0},"results":[`+same+`]}`, `"id":7`, `"id":"ORD01M2V0XYABC"`, 1),
		"TooFar":  `{"paging":{"limit":1,"offset":99999999},"results":[]}`, "Twice": `{"results":[],"results":[],"paging":{"limit":1,"offset":0}}`,
		"TooMany": `{"paging":{"limit":1,"offset":0},"results":[` + strings.Repeat(same+",", 1000) + same + `]}`,
	} {
		_, err := list.Read(s, gateway.Answer{Body: []byte(bad), Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), name)
	}
	for _, page := range []string{"x", "2026-01-01T10:00:00.000Z", "2026-01-01T10:00:00.000Z+x", "+0"} {
		_, err := list.Call(s, span, page)
		require.ErrorAs(t, err, new(*gateway.ParseError), page)
	}
}
