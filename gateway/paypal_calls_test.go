package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// The payment of these tests: 50.00 EUR that were authorised in an order, and 30.00 of them captured.
const (
	ppOrder  = "7OR22222DE000001S"
	ppHeld   = "9AU11111TH000001S"
	ppTaken  = "4TE57301CA000001S"
	ppMade   = "1RE00001FU000001S" // what a call makes
	ppPlace  = "orders/" + ppOrder + "/authorizations/" + ppHeld
	ppDirect = "orders/" + ppOrder + "/captures/" + ppTaken
)

// ppMovement is a movement of a payment: "1500 EUR".
func ppMovement(kind order.MovementKind, amount string, ids ...string) order.Movement {
	m := order.Movement{ID: movementID, Kind: kind, Payment: ids, Reference: "ord_1001"}
	_, err := fmt.Sscan(amount, &m.Amount.Minor, &m.Amount.Currency)
	if err != nil {
		panic(err)
	}
	return m
}

func ppRefund(amount string) order.Movement {
	m := ppMovement(order.MovementRefund, amount, ppTaken, ppHeld, ppPlace)
	m.Captures = []order.Capture{{Ref: ppTaken, Minor: 3000}}
	return m
}

func ppCapture(amount string) order.Movement {
	m := ppMovement(order.MovementCapture, amount, ppTaken, ppHeld, ppPlace)
	m.Captures = []order.Capture{{Ref: ppTaken, Minor: 3000}}
	return m
}

func ppVoid() order.Movement { return ppMovement(order.MovementVoid, "5000 EUR", ppHeld, ppPlace) }

// ppMoney is an amount as PayPal writes it.
func ppMoney(m order.Amount) string {
	return fmt.Sprintf(`{"currency_code":%q,"value":%q}`, m.Currency, order.Format(m.Minor, m.Currency))
}

const ppAPI = "https://api.sandbox.paypal.com"

// ppResource is what version 2 shows of an authorisation, capture or refund.
func ppResource(id, status, amount, up, more string) string {
	return fmt.Sprintf(`{"id":%q,"status":%q,"amount":%s,"custom_id":"ord_1001",%s
		"create_time":"2026-01-01T10:00:00Z","update_time":"2026-01-01T10:00:01Z","links":[{"rel":"self","href":%q},{"rel":"up","href":%q}]}`,
		id, status, amount, more, ppAPI+"/v2/payments/refunds/X", ppAPI+up)
}

// ppAnswer is what PayPal answers to a movement that it does.
func ppAnswer(_ testing.TB, m order.Movement) string {
	amount := ppMoney(m.Amount)
	switch m.Kind {
	case order.MovementRefund:
		body := ppResource(ppMade, "COMPLETED", amount, "/v2/payments/captures/"+m.Captures[0].Ref, `"seller_payable_breakdown":{"total_refunded_amount":`+amount+`},`)
		return strings.Replace(body, `"ord_1001"`, `"paidonce-`+m.ID+`"`, 1)
	case order.MovementCapture:
		return ppResource(ppMade, "COMPLETED", amount, "/v2/payments/authorizations/"+ppHeld,
			`"final_capture":false,"invoice_id":"ord_1001/paidonce-`+m.ID+`","supplementary_data":{"related_ids":{"order_id":"`+ppOrder+`","authorization_id":"`+ppHeld+`"}},`)
	default:
		return ppResource(ppHeld, "VOIDED", amount, "/v2/checkout/orders/"+ppOrder, `"supplementary_data":{"related_ids":{"order_id":"`+ppOrder+`"}},`)
	}
}

// ppShown is the order with what stands in it, of the payment as the movement knew it.
func ppShown(m order.Movement, status string, captures, refunds []string) string {
	held := ppResource(ppHeld, status, ppMoney(order.Amount{Minor: 5000, Currency: m.Amount.Currency}), "/v2/checkout/orders/"+ppOrder, "")
	return fmt.Sprintf(`{"id":%q,"intent":"AUTHORIZE","status":"COMPLETED","purchase_units":[{"reference_id":"default","payments":{
		"authorizations":[%s],"captures":[%s],"refunds":[%s]}}]}`, ppOrder, held, strings.Join(captures, ","), strings.Join(refunds, ","))
}

func ppFirst(m order.Movement, status string) string {
	return ppResource(ppTaken, status, ppMoney(order.Amount{Minor: 3000, Currency: m.Amount.Currency}), "/v2/payments/authorizations/"+ppHeld, `"invoice_id":"INV-1",`)
}

func ppFound(t testing.TB, m order.Movement) string {
	switch m.Kind {
	case order.MovementRefund:
		return ppShown(m, "PARTIALLY_CAPTURED", []string{ppFirst(m, "PARTIALLY_REFUNDED")}, []string{ppAnswer(t, m)})
	case order.MovementCapture:
		return ppShown(m, "PARTIALLY_CAPTURED", []string{ppFirst(m, "COMPLETED"), ppAnswer(t, m)}, nil)
	default:
		return ppAnswer(t, m)
	}
}

func ppAbsent(t testing.TB, m order.Movement) string {
	if m.Kind == order.MovementVoid {
		return strings.Replace(ppAnswer(t, m), "VOIDED", "CREATED", 1)
	}
	return ppShown(m, "PARTIALLY_CAPTURED", []string{ppFirst(m, "COMPLETED")}, nil)
}

var _ = calls("paypal", calling{
	source: paypalSource(),
	lacking: map[string]gateway.Source{
		"client_id":     func() gateway.Source { s := paypalSource(); s.ClientID = ""; return s }(),
		"client_secret": func() gateway.Source { s := paypalSource(); s.ClientSecret = ""; return s }(),
	},
	made: map[string]order.Movement{
		"Refund":      ppRefund("1500 EUR"),
		"RefundJPY":   ppRefund("1500 JPY"),
		"RefundHUF":   ppRefund("1500 HUF"),
		"RefundWhole": ppRefund("3000 EUR"),
		"Capture":     ppCapture("2000 EUR"),
		"CaptureOfAnUnnamedOrder": func() order.Movement {
			m := ppCapture("2000 EUR")
			m.Reference = ""
			return m
		}(),
		"Void": ppVoid(),
	},
	unnamed: map[string]string{"Void": "there is nowhere to put it, and what is voided is voided for everybody"},
	impossible: map[string]order.Movement{
		"no event has said": ppMovement(order.MovementCapture, "1 EUR", ppHeld, ppTaken),
		"2 authorisations":  ppMovement(order.MovementVoid, "1 EUR", ppPlace, "authorizations/"+ppTaken),
		"no capture":        ppMovement(order.MovementRefund, "1 EUR", ppTaken, ppDirect),
		"that large":        ppRefund("3001 EUR"),
		"no decimals":       ppRefund("1501 HUF"),
		"there is no":       ppMovement("payout", "1 EUR", ppPlace),
	},
	done: ppAnswer, found: ppFound, absent: ppAbsent,
})

// TestPayPalRequests: the requests, to the byte.
func TestPayPalRequests(t *testing.T) {
	t.Parallel()
	for name, m := range callers["paypal"].made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, err := gateway.PayPal.Calls.Make(paypalSource(), m)
			require.NoError(t, err)
			sent := gateway.PayPal.Calls.Authorize(paypalSource(), call)
			golden(t, "testdata/calls/paypal/"+name+".golden", goldenCall(call, sent))
			require.Equal(t, "/v1/oauth2/token", sent.Grant.Path)
			look, err := gateway.PayPal.Calls.Look(paypalSource(), m)
			require.NoError(t, err)
			want := "/v2/checkout/orders/" + ppOrder
			if m.Kind == order.MovementVoid {
				want = "/v2/payments/authorizations/" + ppHeld
			}
			require.Equal(t, want, look.Path)
		})
	}
}

// TestPayPalCaptureToRefund: the smallest that is large enough, whatever the order in which they stand.
func TestPayPalCaptureToRefund(t *testing.T) {
	t.Parallel()
	for want, captures := range map[string][]order.Capture{
		"BBB": {{Ref: "AAA", Minor: 3000}, {Ref: "BBB", Minor: 2000}, {Ref: "CCC", Minor: 1499}},
		"AAA": {{Ref: "BBB", Minor: 1500}, {Ref: "AAA", Minor: 1500}},
		"CCC": {{Ref: "CCC", Minor: 1500}, {Ref: "../x", Minor: 1500}},
	} {
		m := ppRefund("1500 EUR")
		m.Captures = captures
		call, err := gateway.PayPal.Calls.Make(paypalSource(), m)
		require.NoError(t, err)
		require.Equal(t, "/v2/payments/captures/"+want+"/refund", call.Path)
	}
}

// TestPayPalMarks: what we make carries the movement's id, and the reference that is read from it is the merchant's.
func TestPayPalMarks(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"ord_1001": "ord_1001/paidonce-" + movementID, "": "paidonce-" + movementID, "a/b": "a/b/paidonce-" + movementID,
		strings.Repeat("x", 81): strings.Repeat("x", 81) + "/paidonce-" + movementID, strings.Repeat("x", 82): "paidonce-" + movementID,
		"two\nlines": "paidonce-" + movementID,
	} {
		m := ppCapture("2000 EUR")
		m.Reference = reference
		call, err := gateway.PayPal.Calls.Make(paypalSource(), m)
		require.NoError(t, err)
		var body struct {
			Invoice string `json:"invoice_id"`
		}
		require.NoError(t, json.Unmarshal(call.Body, &body))
		require.Equal(t, want, body.Invoice)

		got := sampled(t, gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.COMPLETED", Set: map[string]string{"resource.invoice_id": body.Invoice}})
		if strings.Contains(want, "/") {
			require.Equal(t, reference, got.Reference)
		} else {
			require.Empty(t, got.Reference, "our own mark is no order")
		}
	}
	r := gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.REFUNDED", Set: map[string]string{
		"resource.custom_id": "paidonce-" + movementID, "resource.invoice_id": "inv_1",
	}}
	require.Empty(t, sampled(t, r).Reference)
	r.Set["resource.custom_id"] = "paidonce-later"
	require.Equal(t, "paidonce-later", sampled(t, r).Reference, "a merchant's, which only begins like ours")
}

// TestPayPalAnswers: every answer that the documentation tells of, and what is to be done.
func TestPayPalAnswers(t *testing.T) {
	t.Parallel()
	refund, capture, void := ppRefund("1500 EUR"), ppCapture("2000 EUR"), ppVoid()
	refusal := func(name, issue string) string {
		return fmt.Sprintf(`{"name":%q,"message":"Zebra","debug_id":"Zebra","details":[{"issue":%q,"description":"Zebra"}]}`, name, issue)
	}
	issue := func(issue string) gateway.Reply { return answered(422, refusal("UNPROCESSABLE_ENTITY", issue)) }
	refunded, captured, voided := ppAnswer(t, refund), ppAnswer(t, capture), ppAnswer(t, void)
	with := func(body, old, text string) gateway.Reply {
		require.Contains(t, body, old)
		return answered(201, strings.Replace(body, old, text, 1))
	}
	playAnswers(t, paypalSource(), refund, []answerRow{
		{"Completed", answered(201, refunded), gateway.Done, ""},
		{"T107_ThereAlready", answered(200, refunded), gateway.Done, ""},
		{"Pending", with(refunded, "COMPLETED", "PENDING"), gateway.Done, ""},
		{"WithoutOurMark", with(refunded, `"custom_id":"paidonce-`+movementID+`",`, ""), gateway.Done, ""},
		{"T106_FailedMeanwhile", with(refunded, "COMPLETED", "FAILED"), gateway.Declined, "FAILED"},
		{"T106_Cancelled", with(refunded, "COMPLETED", "CANCELLED"), gateway.Declined, "CANCELLED"},
		{"ANewStatus", with(refunded, "COMPLETED", "ZEBRA"), gateway.Unsure, ""},
		{"AnothersMark", with(refunded, movementID, "0200"+movementID[4:]), gateway.Unsure, ""},
		{"OfAnotherCapture", with(refunded, ppTaken, "0AB00000CD000000E"), gateway.Unsure, ""},
		{"OfNoCapture", with(refunded, `"rel":"up"`, `"rel":"down"`), gateway.Unsure, ""},
		{"AnotherAmount", with(refunded, `"15.00"`, `"15.01"`), gateway.Unsure, ""},
		{"AnotherCurrency", with(refunded, `"EUR"`, `"USD"`), gateway.Unsure, ""},
		{"AmountAsANumberWithALot", with(refunded, `"15.00"`, `15.0000000000000001`), gateway.Unsure, ""},
		{"IDTwice", with(refunded, `{"id"`, `{"id":"X","id"`), gateway.Unsure, ""},
		{"Accepted", answered(202, refunded), gateway.Unsure, ""},
		{"NoContent", answered(204, ""), gateway.Unsure, ""},

		{"T103_InProgress", answered(409, refusal("RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS"), "Retry-After", "3"), gateway.Later, ""},
		{"T103_Conflict", answered(409, `{"name":"RESOURCE_CONFLICT","message":"Zebra"}`), gateway.Later, ""},
		{"T103_ConflictOfANewKind", answered(409, refusal("X", "SOMETHING_NEW")), gateway.Later, ""},
		{"T104_KeyOfAnotherRequest", issue("PAYPAL_REQUEST_ID_PREVIOUSLY_USED"), gateway.Reused, "PAYPAL_REQUEST_ID_PREVIOUSLY_USED"},
		{"T104_KeyUsed", answered(400, `{"name":"DUPLICATE_REQUEST_ID"}`), gateway.Reused, "DUPLICATE_REQUEST_ID"},
		{"T104_KeyUsedAsAConflict", answered(409, `{"name":"DUPLICATE_REQUEST_ID"}`), gateway.Reused, "DUPLICATE_REQUEST_ID"},
		{"T105_FullyRefunded", issue("CAPTURE_FULLY_REFUNDED"), gateway.Unsure, "CAPTURE_FULLY_REFUNDED"},
		{"T105_TooMuch", issue("REFUND_AMOUNT_EXCEEDED"), gateway.Unsure, "REFUND_AMOUNT_EXCEEDED"},
		{"T105_TooMany", issue("MAX_NUMBER_OF_REFUNDS_EXCEEDED"), gateway.Unsure, "MAX_NUMBER_OF_REFUNDS_EXCEEDED"},
		{"T105_ANewIssue", issue("SOMETHING_NEW"), gateway.Unsure, "SOMETHING_NEW"},
		{"T106_NotAllowed", issue("REFUND_NOT_ALLOWED"), gateway.Declined, "REFUND_NOT_ALLOWED"},
		{"T106_TooLate", issue("REFUND_TIME_LIMIT_EXCEEDED"), gateway.Declined, "REFUND_TIME_LIMIT_EXCEEDED"},
		{"T106_NoMoney", issue("REFUND_FAILED_INSUFFICIENT_FUNDS"), gateway.Declined, "REFUND_FAILED_INSUFFICIENT_FUNDS"},
		{"T106_Chargeback", issue("REFUND_NOT_PERMITTED_DUE_TO_CHARGEBACK"), gateway.Declined, "REFUND_NOT_PERMITTED_DUE_TO_CHARGEBACK"},
		{"T106_Malformed", answered(400, refusal("INVALID_REQUEST", "INVALID_PARAMETER_SYNTAX")), gateway.Declined, "INVALID_PARAMETER_SYNTAX"},
		{"T106_NoSuchCapture", answered(404, refusal("RESOURCE_NOT_FOUND", "INVALID_RESOURCE_ID")), gateway.Declined, "INVALID_RESOURCE_ID"},
		{"T109_Credentials", answered(401, `{"name":"AUTHENTICATION_FAILURE"}`), gateway.Denied, ""},
		{"T109_Permission", answered(403, refusal("NOT_AUTHORIZED", "PERMISSION_DENIED")), gateway.Denied, ""},
		{"T109_TooFast", answered(429, `{"name":"RATE_LIMIT_REACHED"}`, "Retry-After", "3"), gateway.Later, ""},
		{"T102_Internal", answered(500, `{"name":"INTERNAL_SERVER_ERROR"}`), gateway.Later, ""},
		{"NotPayPal", answered(404, "<html>Zebra</html>"), gateway.Later, ""},
		{"NotAnError", answered(422, `{"message":"Zebra"}`), gateway.Later, ""},
	})
	playAnswers(t, paypalSource(), capture, []answerRow{
		{"CaptureCompleted", answered(201, captured), gateway.Done, ""},
		{"CapturePending", with(captured, "COMPLETED", "PENDING"), gateway.Done, ""},
		{"CaptureRefundedMeanwhile", with(captured, "COMPLETED", "REFUNDED"), gateway.Done, ""},
		{"T106_CaptureDeclined", with(captured, "COMPLETED", "DECLINED"), gateway.Declined, "DECLINED"},
		{"T106_CaptureFailed", with(captured, "COMPLETED", "FAILED"), gateway.Declined, "FAILED"},
		{"CaptureOfAnotherAuthorization", with(captured, `"authorization_id":"`+ppHeld, `"authorization_id":"0AB00000CD000000E`), gateway.Unsure, ""},
		{"CaptureWithAnothersMark", with(captured, movementID, "0200"+movementID[4:]), gateway.Unsure, ""},
		{"T105_AlreadyCaptured", issue("AUTHORIZATION_ALREADY_CAPTURED"), gateway.Unsure, "AUTHORIZATION_ALREADY_CAPTURED"},
		{"T105_Voided", issue("AUTHORIZATION_VOIDED"), gateway.Unsure, "AUTHORIZATION_VOIDED"},
		{"T105_Invoice", issue("DUPLICATE_INVOICE_ID"), gateway.Unsure, "DUPLICATE_INVOICE_ID"},
		{"T105_MoreThanAllowed", issue("MAX_CAPTURE_AMOUNT_EXCEEDED"), gateway.Unsure, "MAX_CAPTURE_AMOUNT_EXCEEDED"},
		{"T106_Expired", issue("AUTHORIZATION_EXPIRED"), gateway.Declined, "AUTHORIZATION_EXPIRED"},
		{"T106_PayerCannotPay", issue("PAYER_CANNOT_PAY"), gateway.Declined, "PAYER_CANNOT_PAY"},
	})
	playAnswers(t, paypalSource(), void, []answerRow{
		{"Voided", answered(200, voided), gateway.Done, ""},
		{"VoidWithoutAWord", answered(204, ""), gateway.Unsure, ""},
		{"VoidNotYet", with(voided, "VOIDED", "CREATED"), gateway.Unsure, ""},
		{"VoidOfAnother", with(voided, `{"id":"`+ppHeld, `{"id":"0AB00000CD000000E`), gateway.Unsure, ""},
		{"T105_VoidedBefore", issue("PREVIOUSLY_VOIDED"), gateway.Unsure, "PREVIOUSLY_VOIDED"},
		{"T106_Captured", issue("PREVIOUSLY_CAPTURED"), gateway.Declined, "PREVIOUSLY_CAPTURED"},
	})
	require.Zero(t, judged(t, paypalSource(), refund, answered(409, refusal("X", "PREVIOUS_REQUEST_IN_PROGRESS")), false).After)
	require.NotZero(t, judged(t, paypalSource(), refund, answered(409, refusal("X", "PREVIOUS_REQUEST_IN_PROGRESS"), "Retry-After", "3"), false).After)
}

// TestPayPalLookups: what became of a movement is told only where it is proven.
func TestPayPalLookups(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	refund, capture, void := ppRefund("1500 EUR"), ppCapture("3000 EUR"), ppVoid()
	ours, first := ppAnswer(t, refund), ppFirst(refund, "PARTIALLY_REFUNDED")
	another := strings.NewReplacer(movementID, "0200"+movementID[4:], ppMade, "1RE00003FU000003S").Replace(ours)
	unmarked := strings.Replace(ours, `"custom_id":"paidonce-`+movementID+`",`, "", 1)
	shown := func(refunds ...string) gateway.Reply {
		return answered(200, ppShown(refund, "PARTIALLY_CAPTURED", []string{first}, refunds))
	}
	playLookups(t, s, refund, []answerRow{
		{"Ours", shown(another, ours), gateway.Done, ""},
		{"OursPending", shown(strings.Replace(ours, "COMPLETED", "PENDING", 1)), gateway.Done, ""},
		{"OursFailed", shown(strings.Replace(ours, "COMPLETED", "FAILED", 1)), gateway.Declined, "FAILED"},
		{"OursTwice", shown(ours, strings.Replace(ours, ppMade, "1RE00002FU000002S", 1)), gateway.Unsure, ""},
		{"OneRefundTwice", shown(ours, ours), gateway.Unsure, ""},
		{"OursOfAnotherAmount", shown(strings.Replace(ours, `"15.00"`, `"14.00"`, 1)), gateway.Unsure, ""},
		{"None", shown(), gateway.Absent, ""},
		{"AnotherMovements", shown(another), gateway.Absent, ""},
		{"TheMerchantsOwn", shown(strings.Replace(ours, "paidonce-"+movementID, "ord_1001", 1)), gateway.Absent, ""},
		{"OfThatAmountAndNobodys", shown(unmarked), gateway.Unsure, ""},
		{"OfAnotherAmountAndNobodys", shown(strings.Replace(unmarked, `"15.00"`, `"14.00"`, 1)), gateway.Absent, ""},
		{"OfAnotherCaptureAndNobodys", shown(strings.Replace(unmarked, ppTaken, "0AB00000CD000000E", 1)), gateway.Absent, ""},
		{"UnreadableBeside", shown(strings.Replace(another, "COMPLETED", "ZEBRA", 1)), gateway.Unsure, ""},
		{"WithoutItsCapture", answered(200, ppShown(refund, "CREATED", nil, nil)), gateway.Unsure, ""},
		{"NothingWasCaptured", answered(200, ppShown(refund, "CREATED", []string{ppFirst(refund, "DECLINED")}, nil)), gateway.Absent, ""},
		{"AnotherOrder", answered(200, strings.Replace(ppShown(refund, "CREATED", nil, nil), ppOrder, "0AB00000CD000000E", 1)), gateway.Unsure, ""},
		{"NoSuchOrder", answered(404, `{"name":"RESOURCE_NOT_FOUND"}`), gateway.Unsure, ""},
		{"T109_Credentials", answered(401, ""), gateway.Denied, ""},
		{"T102_Down", answered(503, ""), gateway.Later, ""},
	})

	alone := ppRefund("1500 EUR")
	alone.Payment = []string{ppTaken, "captures/" + ppTaken}
	look, err := gateway.PayPal.Calls.Look(s, alone)
	require.NoError(t, err)
	require.Equal(t, "/v2/payments/captures/"+ppTaken, look.Path)
	playLookups(t, s, alone, []answerRow{
		{"OfNoOrder", answered(200, ppFirst(alone, "COMPLETED")), gateway.Unsure, ""},
		{"OfNoOrderRefunded", answered(200, ppFirst(alone, "REFUNDED")), gateway.Unsure, ""},
		{"OfNoOrderPending", answered(200, ppFirst(alone, "PENDING")), gateway.Absent, ""},
	})

	made := ppAnswer(t, capture)
	held := func(status string, captures ...string) gateway.Reply {
		return answered(200, ppShown(capture, status, captures, nil))
	}
	first = ppFirst(capture, "COMPLETED")
	playLookups(t, s, capture, []answerRow{
		{"OurCapture", held("CAPTURED", first, made), gateway.Done, ""},
		{"OurCaptureDeclined", held("PARTIALLY_CAPTURED", first, strings.Replace(made, "COMPLETED", "DECLINED", 1)), gateway.Declined, "DECLINED"},
		{"OurCaptureOfAnother", held("CAPTURED", strings.ReplaceAll(made, ppHeld, "0AB00000CD000000E")), gateway.Unsure, ""},
		{"NoCapture", held("CREATED"), gateway.Absent, ""},
		{"OneWithTheMerchantsInvoice", held("PARTIALLY_CAPTURED", first), gateway.Absent, ""},
		{"OneWithNone", held("PARTIALLY_CAPTURED", strings.Replace(first, `"invoice_id":"INV-1",`, "", 1)), gateway.Unsure, ""},
		{"Denied", held("DENIED"), gateway.Absent, ""},
		{"ANewStatus", held("ZEBRA"), gateway.Unsure, ""},
	})
	playLookups(t, s, void, []answerRow{
		{"Voided", answered(200, ppAnswer(t, void)), gateway.Done, ""},
		{"Held", answered(200, strings.Replace(ppAnswer(t, void), "VOIDED", "PENDING", 1)), gateway.Absent, ""},
		{"Captured", answered(200, strings.Replace(ppAnswer(t, void), "VOIDED", "CAPTURED", 1)), gateway.Absent, ""},
		{"CapturedInPart", answered(200, strings.Replace(ppAnswer(t, void), "VOIDED", "PARTIALLY_CAPTURED", 1)), gateway.Unsure, ""},
	})
}

// TestPayPalLookupTellsAll: what is found on the way to the movement is told too, of its own payment alone.
func TestPayPalLookupTellsAll(t *testing.T) {
	t.Parallel()
	refund := ppRefund("1500 EUR")
	body := ppFound(t, refund)
	stranger := ppResource("0AB00000CD000000E", "COMPLETED", `{"currency_code":"EUR","value":"9.00"}`, "/v2/checkout/orders/"+ppOrder, "")
	body = strings.Replace(body, `"purchase_units":[`, `"purchase_units":[{"payments":{"captures":[`+stranger+`]}},`, 1)
	v := judged(t, paypalSource(), refund, answered(200, body), true)
	require.Equal(t, gateway.Done, v.Ruling)
	require.Len(t, v.Events, 3)
	l := ledgerOf(v.Events)
	require.Equal(t, int64(5000), l.Money["EUR"].Authorized)
	require.Equal(t, map[string]order.Item{ppTaken: {Status: order.StatusOK, Amount: 3000, Was: true}}, l.Money["EUR"].Captures)
	require.Equal(t, map[string]order.Item{ppMade: {Status: order.StatusOK, Amount: 1500, Was: true}}, l.Money["EUR"].Refunds)
}

// TestPayPalJoins: what a call was answered, the webhook that announces it, and what a lookup finds are one entry, whichever comes
// first.
func TestPayPalJoins(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	hook := func(typ, id, ref string, amount int64, set map[string]string) order.Event {
		return sampled(t, gateway.SampleRequest{
			Source: s, Type: typ, Payment: id, Ref: ref, Reference: "ord_1001", At: now, Amount: order.Amount{Minor: amount, Currency: "EUR"}, Set: set,
		})
	}
	related := map[string]string{"resource.supplementary_data.related_ids": `{"order_id":"` + ppOrder + `","authorization_id":"` + ppHeld + `"}`}
	held := hook("PAYMENT.AUTHORIZATION.CREATED", ppHeld, "", 5000, map[string]string{"resource.supplementary_data.related_ids.order_id": ppOrder})
	taken := hook("PAYMENT.CAPTURE.COMPLETED", ppTaken, "", 3000, related)

	capture, refund, void := ppCapture("2000 EUR"), ppRefund("1500 EUR"), ppVoid()
	pending := func(body string) string { return strings.Replace(body, "COMPLETED", "PENDING", 1) }
	said := func(m order.Movement, body string, lookup bool) order.Event {
		v := judged(t, s, m, answered(200, body), lookup)
		require.Equal(t, gateway.Done, v.Ruling, v.Detail)
		return v.Events[len(v.Events)-1]
	}
	for _, row := range []struct {
		name                   string
		told                   []order.Event
		captures, refunds      int // entries
		canCapture, canRefund  int64
		closed                 bool
		capturedNow, refundNow int64
	}{
		{"Capture", []order.Event{held, taken, said(capture, ppAnswer(t, capture), false), hook("PAYMENT.CAPTURE.COMPLETED", ppMade, "", 2000, related)}, 2, 0, 0, 5000, false, 5000, 0},
		{"CaptureAlone", []order.Event{held, taken, said(capture, ppAnswer(t, capture), false)}, 2, 0, 0, 5000, false, 5000, 0},
		{"CapturePending", []order.Event{held, taken, said(capture, pending(ppAnswer(t, capture)), false)}, 2, 0, 0, 3000, false, 3000, 0},
		{"CapturePendingThenThere", []order.Event{held, said(capture, pending(ppAnswer(t, capture)), false), hook("PAYMENT.CAPTURE.COMPLETED", ppMade, "", 2000, related)}, 1, 0, 3000, 2000, false, 2000, 0},
		{"CaptureDeclinedAfterAll", []order.Event{held, said(capture, pending(ppAnswer(t, capture)), false), hook("PAYMENT.CAPTURE.DENIED", ppMade, "", 2000, related)}, 1, 0, 5000, 0, false, 0, 0},
		{"CaptureFound", []order.Event{held, said(capture, ppFound(t, capture), true), hook("PAYMENT.CAPTURE.COMPLETED", ppMade, "", 2000, related)}, 1, 0, 3000, 2000, false, 2000, 0},
		{"Refund", []order.Event{held, taken, said(refund, ppAnswer(t, refund), false), hook("PAYMENT.CAPTURE.REFUNDED", ppTaken, ppMade, 1500, nil)}, 1, 1, 2000, 1500, false, 3000, 1500},
		{"RefundAlone", []order.Event{held, taken, said(refund, ppAnswer(t, refund), false)}, 1, 1, 2000, 1500, false, 3000, 1500},
		{"RefundPending", []order.Event{held, taken, said(refund, strings.Replace(pending(ppAnswer(t, refund)), "total_refunded_amount", "x", 1), false)}, 1, 1, 2000, 1500, false, 3000, 0},
		{"RefundPendingThenThere", []order.Event{taken, said(refund, pending(ppAnswer(t, refund)), false), hook("PAYMENT.CAPTURE.REFUNDED", ppTaken, ppMade, 1500, nil)}, 1, 1, 0, 1500, false, 3000, 1500},
		{"RefundThatFails", []order.Event{taken, said(refund, ppAnswer(t, refund), false), hook("PAYMENT.REFUND.FAILED", ppTaken, ppMade, 1500, nil)}, 1, 1, 0, 3000, false, 3000, 0},
		{"RefundFound", []order.Event{taken, said(refund, ppFound(t, refund), true), said(refund, ppAnswer(t, refund), false)}, 1, 1, 0, 1500, false, 3000, 1500},
		{"Void", []order.Event{held, said(void, ppAnswer(t, void), false), hook("PAYMENT.AUTHORIZATION.VOIDED", ppHeld, "", 5000, nil)}, 0, 0, 0, 0, true, 0, 0},
		{"VoidFound", []order.Event{held, said(void, ppFound(t, void), true)}, 0, 0, 0, 0, true, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var want *order.Ledger
			for _, told := range orders(row.told) {
				all := joined(told)
				require.Len(t, all, 1, "two payments where there is one")
				l := all[0]
				if want == nil {
					want = l
				}
				require.Equal(t, want, l)
				m := l.Money["EUR"]
				if m == nil {
					m = &order.Money{}
				}
				require.Len(t, m.Captures, row.captures)
				require.Len(t, m.Refunds, row.refunds)
				left, _ := l.Movable(order.MovementCapture, "EUR")
				require.Equal(t, row.canCapture, left, "what can be captured")
				left, _ = l.Movable(order.MovementRefund, "EUR")
				require.Equal(t, row.canRefund, left, "what can be refunded")
				o := order.Order{Registered: true, Total: 5000, Currency: "EUR", Payments: map[string]*order.Ledger{"x": l}}
				view := o.View()
				require.Equal(t, []int64{row.capturedNow, row.refundNow}, []int64{view.Captured, view.Refunded})
				require.Equal(t, "ord_1001", l.Link.Ref)
			}
			if row.closed {
				require.Equal(t, order.StatusCanceled, want.Phase.Status)
			}
		})
	}
}
