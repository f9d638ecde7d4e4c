package gateway_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const (
	stripePI     = "pi_3OrderSeven"
	stripeCH     = "ch_3OrderSeven"
	stripeRE     = "re_3Made"
	stripeBareCH = "ch_1Bare"
)

func connectedStripe() gateway.Source {
	s := askingStripe()
	s.StripeAccount = "acct_1A2b3C"
	return s
}

// stripeMovement is a movement of a payment that has a PaymentIntent, whose charge, session and invoice it is known under too.
func stripeMovement(kind order.MovementKind, amount string) order.Movement {
	number, cur, _ := strings.Cut(amount, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic(err)
	}
	return order.Movement{
		ID: movementID, Kind: kind, Amount: order.Amount{Minor: n, Currency: cur}, Reference: "ord_7",
		Payment: []string{"ch_0Declined", stripeCH, "cs_test_1", "in_1", stripePI},
	}
}

func bareMovement(kind order.MovementKind, amount string) order.Movement {
	m := stripeMovement(kind, amount)
	m.Payment = []string{stripeBareCH}
	return m
}

func because(m order.Movement, reason string) order.Movement {
	m.Reason = reason
	return m
}

// stripeCounts is an amount as Stripe counts.
func stripeCounts(a order.Amount) int64 {
	switch a.Currency {
	case "ISK", "UGX":
		return a.Minor * 100
	case "MGA":
		return a.Minor / 100
	}
	return a.Minor
}

func isBare(m order.Movement) bool { return len(m.Payment) == 1 }

// stripeRefundOf, stripeIntentOf and stripeChargeOf are objects as the API reference shows them.
func stripeRefundOf(m order.Movement, id, status, mark string) string {
	intent, charge := `"`+stripePI+`"`, stripeCH
	if isBare(m) {
		intent, charge = "null", stripeBareCH
	}
	return fmt.Sprintf(`{"id":%q,"object":"refund","amount":%d,"balance_transaction":"txn_1","charge":%q,"created":1767258000,"currency":%q,`+
		`"destination_details":{"card":{"reference_status":"pending","type":"refund"},"type":"card"},"metadata":{"paidonce_transaction":%q},"payment_intent":%s,`+
		`"reason":null,"receipt_number":null,"source_transfer_reversal":null,"status":%q,"transfer_reversal":null}`,
		id, stripeCounts(m.Amount), charge, strings.ToLower(m.Amount.Currency), mark, intent, status)
}

func stripeIntentOf(m order.Movement, status string, received int64, mark string) string {
	canceled := "null"
	if status == "canceled" {
		canceled = "1767258001"
	}
	return fmt.Sprintf(`{"id":%q,"object":"payment_intent","amount":5000,"amount_capturable":0,"amount_received":%d,"canceled_at":%s,"capture_method":"manual","created":1767250000,`+
		`"currency":%q,"latest_charge":%q,"livemode":false,"metadata":{"order_id":"ord_7","paidonce_transaction":%q},"status":%q}`,
		stripePI, received, canceled, strings.ToLower(m.Amount.Currency), stripeCH, mark, status)
}

func stripeChargeOf(m order.Movement, captured bool, amount int64) string {
	return fmt.Sprintf(`{"id":%q,"object":"charge","amount":5000,"amount_captured":%d,"amount_refunded":0,"captured":%t,"created":1767250000,"currency":%q,`+
		`"livemode":false,"metadata":{"order_id":"ord_7"},"paid":true,"payment_intent":null,"refunded":false,"status":"succeeded"}`,
		stripeBareCH, amount, captured, strings.ToLower(m.Amount.Currency))
}

func stripeListOf(more bool, items ...string) string {
	return fmt.Sprintf(`{"object":"list","url":"/v1/refunds","has_more":%t,"data":[%s]}`, more, strings.Join(items, ","))
}

func stripeDoes(t testing.TB, m order.Movement) string {
	t.Helper()
	switch {
	case m.Kind == order.MovementRefund:
		return stripeRefundOf(m, stripeRE, "succeeded", m.ID)
	case m.Kind == order.MovementVoid:
		return stripeIntentOf(m, "canceled", 0, "")
	case isBare(m):
		return stripeChargeOf(m, true, stripeCounts(m.Amount))
	}
	return stripeIntentOf(m, "succeeded", stripeCounts(m.Amount), m.ID)
}

func stripeHasDone(t testing.TB, m order.Movement) string {
	t.Helper()
	if m.Kind == order.MovementRefund {
		return stripeListOf(false, stripeRefundOf(m, "re_3Others", "succeeded", "another"), stripeDoes(t, m))
	}
	return stripeDoes(t, m)
}

func stripeHasNotDone(t testing.TB, m order.Movement) string {
	t.Helper()
	switch {
	case m.Kind == order.MovementRefund:
		return stripeListOf(false, stripeRefundOf(m, "re_3Others", "succeeded", "another"))
	case isBare(m):
		return stripeChargeOf(m, false, 0)
	}
	return stripeIntentOf(m, "requires_capture", 0, "")
}

var _ = calls("stripe", calling{
	source:  connectedStripe(),
	lacking: map[string]gateway.Source{"access_token": stripeSource()},
	made: map[string]order.Movement{
		"Capture":         stripeMovement(order.MovementCapture, "2000 EUR"),
		"CaptureInWords":  because(stripeMovement(order.MovementCapture, "2000 EUR"), "shipped half & <more>"),
		"CaptureOfCharge": bareMovement(order.MovementCapture, "2000 EUR"),
		"Refund":          stripeMovement(order.MovementRefund, "1500 EUR"),
		"RefundReason":    because(stripeMovement(order.MovementRefund, "1500 EUR"), "requested_by_customer"),
		"RefundInWords":   because(stripeMovement(order.MovementRefund, "1500 EUR"), `llegó roto & "tarde": `+strings.Repeat("é", 300)),
		"RefundOfCharge":  bareMovement(order.MovementRefund, "1500 USD"),
		"RefundISK":       stripeMovement(order.MovementRefund, "1500 ISK"),
		"RefundUGX":       stripeMovement(order.MovementRefund, "1500 UGX"),
		"RefundMGA":       stripeMovement(order.MovementRefund, "1500 MGA"),
		"RefundJPY":       stripeMovement(order.MovementRefund, "1500 JPY"),
		"RefundKWD":       stripeMovement(order.MovementRefund, "1500 KWD"),
		"Void":            stripeMovement(order.MovementVoid, "5000 EUR"),
		"VoidReason":      because(stripeMovement(order.MovementVoid, "5000 EUR"), "abandoned"),
	},
	unnamed: map[string]string{
		"Void": "a cancellation takes no metadata", "VoidReason": "a cancellation takes no metadata", "CaptureOfCharge": "the capture of a charge takes no metadata",
	},
	impossible: map[string]order.Movement{
		"no PaymentIntent and no charge": func() order.Movement {
			m := stripeMovement(order.MovementRefund, "1 EUR")
			m.Payment = []string{"cs_test_1", "in_1", "pi_../../x"}
			return m
		}(),
		"2 objects of kind payment_intent": func() order.Movement {
			m := stripeMovement(order.MovementRefund, "1 EUR")
			m.Payment = append(m.Payment, "pi_3Other")
			return m
		}(),
		"2 objects of kind charge": func() order.Movement {
			m := bareMovement(order.MovementRefund, "1 EUR")
			m.Payment = append(m.Payment, "py_3Other")
			return m
		}(),
		"cannot be canceled": bareMovement(order.MovementVoid, "1 EUR"),
		"as Stripe counts":   stripeMovement(order.MovementRefund, "1501 MGA"),
		"64 bits":            stripeMovement(order.MovementRefund, "9223372036854775807 ISK"),
		"there is no payout": stripeMovement("payout", "1 EUR"),
	},
	done: stripeDoes, found: stripeHasDone, absent: stripeHasNotDone,
	unproven: map[string]string{"CaptureOfCharge": "it carries no id of ours"},
})

// TestStripeRequests: the requests, to the byte, and how they are looked up.
func TestStripeRequests(t *testing.T) {
	t.Parallel()
	s := connectedStripe()
	for name, m := range callers["stripe"].made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, err := gateway.Stripe.Calls.Make(s, m)
			require.NoError(t, err)
			look, err := gateway.Stripe.Calls.Look(s, m)
			require.NoError(t, err)
			golden(t, "testdata/calls/stripe/"+name+".golden", []any{
				goldenCall(call, gateway.Stripe.Calls.Authorize(s, call)), goldenCall(look, gateway.Stripe.Calls.Authorize(s, look)),
			})
		})
	}
	// One's own account is named by its key alone.
	call, err := gateway.Stripe.Calls.Make(askingStripe(), stripeMovement(order.MovementRefund, "1 EUR"))
	require.NoError(t, err)
	require.Empty(t, call.Header.Get("Stripe-Account"))
	require.Equal(t, "https://api.stripe.com", gateway.Stripe.Calls.BaseURL(askingStripe()))
}

// stripeProblem is an error as the API reference shows it.
func stripeProblem(typ, code string, more ...string) string {
	text := fmt.Sprintf(`{"error":{"type":%q,"message":"Zebra","doc_url":"https://stripe.com/docs/error-codes","request_log_url":"https://dashboard.stripe.com/logs/req_1"`, typ)
	if code != "" {
		text += fmt.Sprintf(`,"code":%q`, code)
	}
	for i := 0; i+1 < len(more); i += 2 {
		text += fmt.Sprintf(`,%q:%q`, more[i], more[i+1])
	}
	return text + "}}"
}

// TestStripeAnswersToCalls: every answer that the documentation tells of, and what is to be done.
func TestStripeAnswersToCalls(t *testing.T) {
	t.Parallel()
	s := askingStripe()
	const invalid = "invalid_request_error"
	refund := stripeMovement(order.MovementRefund, "1500 EUR")
	made := stripeRefundOf(refund, stripeRE, "succeeded", movementID)
	changed := func(old, with string) gateway.Reply {
		require.Contains(t, made, old)
		return answered(200, strings.Replace(made, old, with, 1))
	}
	t.Run("Refund", func(t *testing.T) {
		t.Parallel()
		playAnswers(t, s, refund, []answerRow{
			{"Succeeded", answered(200, made), gateway.Done, ""},
			{"Pending", changed(`"succeeded"`, `"pending"`), gateway.Done, ""},
			{"RequiresAction", changed(`"succeeded"`, `"requires_action"`), gateway.Done, ""},
			{"T107_Replayed", answered(200, made, "Idempotent-Replayed", "true"), gateway.Done, ""},
			{"T106_FailedAtOnce", changed(`"succeeded"`, `"failed","failure_reason":"expired_or_canceled_card"`), gateway.Declined, "expired_or_canceled_card"},
			{"T106_CanceledAtOnce", changed(`"succeeded"`, `"canceled"`), gateway.Declined, "canceled"},
			{"OfAnotherPayment", changed(stripePI, "pi_3Other"), gateway.Unsure, ""},
			{"OfNoPayment", changed(`"payment_intent":"`+stripePI+`"`, `"payment_intent":null`), gateway.Unsure, ""},
			{"OfAnotherAmount", changed("1500", "1501"), gateway.Unsure, ""},
			{"OfAnotherCurrency", changed(`"eur"`, `"usd"`), gateway.Unsure, ""},
			{"OfAFraction", changed("1500", "1500.0"), gateway.Unsure, ""},
			{"OfAStatusThatIsNotKnown", changed(`"succeeded"`, `"frozen"`), gateway.Unsure, ""},
			{"NoRefund", changed(`"object":"refund"`, `"object":"charge"`), gateway.Unsure, ""},
			{"NoObject", changed(`"object":"refund",`, ``), gateway.Unsure, ""},
			{"NoID", changed(stripeRE, "ch_1"), gateway.Unsure, ""},
			{"WithAKeyTwice", changed(`{"id"`, `{"amount":1500,"id"`), gateway.Unsure, ""},
			{"OfTheOtherMode", changed(`{"id"`, `{"livemode":true,"id"`), gateway.Unsure, ""},

			{"T103_InProgress", answered(409, stripeProblem("idempotency_error", "idempotency_key_in_use")), gateway.Later, ""},
			{"T103_InProgressOfAnotherType", answered(409, stripeProblem(invalid, "idempotency_key_in_use")), gateway.Later, ""},
			{"T103_InProgressWithoutCode", answered(409, stripeProblem(invalid, "")), gateway.Later, ""},
			{"T103_ObjectLocked", answered(429, stripeProblem(invalid, "lock_timeout")), gateway.Later, ""},
			{"T103_ObjectLockedBadRequest", answered(400, stripeProblem(invalid, "lock_timeout")), gateway.Later, ""},
			{"T104_KeyOfAnotherRequest", answered(400, stripeProblem("idempotency_error", "")), gateway.Reused, "idempotency_error"},
			{"T104_KeyOfAnotherRequestConflict", answered(409, stripeProblem("idempotency_error", "")), gateway.Reused, "idempotency_error"},

			{"T102_Failed", answered(500, stripeProblem("api_error", "")), gateway.Later, ""},
			{"T102_FailedAskAgain", answered(500, stripeProblem("api_error", ""), "Stripe-Should-Retry", "true"), gateway.Later, ""},
			{"T105_FailureThatIsKept", answered(500, stripeProblem("api_error", ""), "Idempotent-Replayed", "true"), gateway.Unsure, ""},
			{"T105_FailureForGood", answered(500, stripeProblem("api_error", ""), "Stripe-Should-Retry", "false"), gateway.Unsure, ""},
			{"T105_DownForGood", answered(503, "", "Stripe-Should-Retry", "false"), gateway.Unsure, ""},
			{"T105_RefusalOfCredentialsThatIsKept", answered(403, stripeProblem(invalid, "more_permissions_required"), "Idempotent-Replayed", "true"), gateway.Unsure, ""},
			{"T105_ConflictThatIsKept", answered(409, stripeProblem(invalid, ""), "Idempotent-Replayed", "true"), gateway.Unsure, ""},
			{"T105_SomebodyElseFailed", answered(424, stripeProblem("api_error", "")), gateway.Unsure, ""},

			{"T109_NoSuchKey", answered(401, stripeProblem(invalid, "")), gateway.Denied, ""},
			{"T109_NotAllowed", answered(403, stripeProblem(invalid, "more_permissions_required")), gateway.Denied, ""},
			{"T109_TooMany", answered(429, stripeProblem(invalid, "rate_limit"), "Retry-After", "2"), gateway.Later, ""},
			{"T109_TooManyNotAgain", answered(429, stripeProblem(invalid, "rate_limit"), "Stripe-Should-Retry", "false"), gateway.Later, ""},

			{"T106_NoBalance", answered(400, stripeProblem(invalid, "balance_insufficient")), gateway.Declined, "balance_insufficient"},
			{"T106_NoBalanceReplayed", answered(400, stripeProblem(invalid, "balance_insufficient"), "Idempotent-Replayed", "true"), gateway.Declined, "balance_insufficient"},
			{"T106_Disputed", answered(400, stripeProblem(invalid, "charge_disputed")), gateway.Declined, "charge_disputed"},
			{"T106_NoSuchPayment", answered(404, stripeProblem(invalid, "resource_missing", "param", "payment_intent")), gateway.Declined, "resource_missing"},
			{"T106_BadParameter", answered(400, stripeProblem(invalid, "parameter_invalid_integer", "param", "amount")), gateway.Declined, "parameter_invalid_integer"},
			{"T106_CardError", answered(402, stripeProblem("card_error", "card_declined", "decline_code", "insufficient_funds")), gateway.Declined, "card_declined"},
			{"T106_WithoutCode", answered(400, stripeProblem(invalid, "")), gateway.Declined, invalid},
			{"T106_OddCode", answered(400, stripeProblem(invalid, "not a code word")), gateway.Declined, invalid},
			{"AlreadyRefunded", answered(400, stripeProblem(invalid, "charge_already_refunded")), gateway.Unsure, "charge_already_refunded"},
			{"MoreThanIsLeft", answered(400, stripeProblem(invalid, "", "param", "amount")), gateway.Unsure, "amount_too_large"},
			{"MoreThanIsLeftInACode", answered(400, stripeProblem(invalid, "amount_too_large", "param", "amount")), gateway.Unsure, "amount_too_large"},
			{"UnexpectedState", answered(400, stripeProblem(invalid, "payment_intent_unexpected_state")), gateway.Unsure, "payment_intent_unexpected_state"},
			{"NotStripe", answered(404, "<html>Zebra</html>"), gateway.Later, ""},
			{"NotAnError", answered(400, `{"error":"Zebra"}`), gateway.Later, ""},
			{"TypesTwice", answered(400, `{"error":{"type":"card_error","type":"api_error"}}`), gateway.Later, ""},
		})
	})
	capture := stripeMovement(order.MovementCapture, "2000 EUR")
	t.Run("Capture", func(t *testing.T) {
		t.Parallel()
		playAnswers(t, s, capture, []answerRow{
			{"Captured", answered(200, stripeIntentOf(capture, "succeeded", 2000, movementID)), gateway.Done, ""},
			{"UnderWay", answered(200, stripeIntentOf(capture, "processing", 0, movementID)), gateway.Done, ""},
			{"Less", answered(200, stripeIntentOf(capture, "succeeded", 1999, movementID)), gateway.Unsure, ""},
			{"NotYet", answered(200, stripeIntentOf(capture, "requires_capture", 0, "")), gateway.Unsure, ""},
			{"Canceled", answered(200, stripeIntentOf(capture, "canceled", 0, "")), gateway.Unsure, ""},
			{"ARefund", answered(200, made), gateway.Unsure, ""},
			{"AlreadyCaptured", answered(400, stripeProblem(invalid, "charge_already_captured")), gateway.Unsure, "charge_already_captured"},
			{"UnexpectedState", answered(400, stripeProblem(invalid, "payment_intent_unexpected_state")), gateway.Unsure, "payment_intent_unexpected_state"},
			{"T106_TooMuch", answered(400, stripeProblem(invalid, "amount_too_large", "param", "amount_to_capture")), gateway.Declined, "amount_too_large"},
			{"T106_Expired", answered(400, stripeProblem(invalid, "charge_expired_for_capture")), gateway.Declined, "charge_expired_for_capture"},
			{"T106_DeclinedByTheIssuer", answered(402, stripeProblem("card_error", "capture_charge_authorization_expired")), gateway.Declined, "capture_charge_authorization_expired"},
		})
	})
	bare := bareMovement(order.MovementCapture, "2000 EUR")
	t.Run("CaptureOfCharge", func(t *testing.T) {
		t.Parallel()
		playAnswers(t, s, bare, []answerRow{
			{"Captured", answered(200, stripeChargeOf(bare, true, 2000)), gateway.Done, ""},
			{"Less", answered(200, stripeChargeOf(bare, true, 1999)), gateway.Unsure, ""},
			{"NotCaptured", answered(200, stripeChargeOf(bare, false, 0)), gateway.Unsure, ""},
			{"CapturedIsNoBoolean", answered(200, strings.Replace(stripeChargeOf(bare, true, 2000), `"captured":true`, `"captured":"yes"`, 1)), gateway.Unsure, ""},
			{"Failed", answered(200, strings.Replace(stripeChargeOf(bare, true, 2000), `"succeeded"`, `"failed"`, 1)), gateway.Unsure, ""},
		})
	})
	void := stripeMovement(order.MovementVoid, "5000 EUR")
	t.Run("Void", func(t *testing.T) {
		t.Parallel()
		playAnswers(t, s, void, []answerRow{
			{"Canceled", answered(200, stripeIntentOf(void, "canceled", 0, "")), gateway.Done, ""},
			{"NotCanceled", answered(200, stripeIntentOf(void, "requires_capture", 0, "")), gateway.Unsure, ""},
			{"Captured", answered(200, stripeIntentOf(void, "succeeded", 5000, "")), gateway.Unsure, ""},
			{"UnexpectedState", answered(400, stripeProblem(invalid, "payment_intent_unexpected_state")), gateway.Unsure, "payment_intent_unexpected_state"},
		})
	})
}
