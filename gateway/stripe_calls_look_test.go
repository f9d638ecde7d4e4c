package gateway_test

import (
	"strings"
	"testing"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// TestStripeLooksItUp: what is answered to the question what became of a movement, and what that proves.
func TestStripeLooksItUp(t *testing.T) {
	t.Parallel()
	s := askingStripe()
	refund := stripeMovement(order.MovementRefund, "1500 EUR")
	ours := stripeRefundOf(refund, stripeRE, "succeeded", movementID)
	other := stripeRefundOf(refund, "re_3Others", "succeeded", "another")
	t.Run("Refund", func(t *testing.T) {
		t.Parallel()
		playLookups(t, s, refund, []answerRow{
			{"IsThere", answered(200, stripeListOf(false, other, ours)), gateway.Done, ""},
			{"IsThereAndMoreAre", answered(200, stripeListOf(true, other, ours)), gateway.Done, ""},
			{"T105_IsNotThere", answered(200, stripeListOf(false, other)), gateway.Absent, ""},
			{"T105_NoneIs", answered(200, stripeListOf(false)), gateway.Absent, ""},
			{"MayBeOnTheNextPage", answered(200, stripeListOf(true, other)), gateway.Unsure, ""},
			{"WasMadeAndFailed", answered(200, stripeListOf(false, strings.Replace(ours, "succeeded", "failed", 1))), gateway.Declined, "failed"},
			{"OfAnotherAmount", answered(200, stripeListOf(false, strings.Replace(ours, "1500", "1400", 1))), gateway.Unsure, ""},
			{"Twice", answered(200, stripeListOf(false, ours, stripeRefundOf(refund, "re_3Again", "succeeded", movementID))), gateway.Unsure, ""},
			{"OneCannotBeRead", answered(200, stripeListOf(false, ours, strings.Replace(other, `"amount":1500`, `"amount":"x"`, 1))), gateway.Unsure, ""},
			{"OneHasTwoMarks", answered(200, stripeListOf(false, strings.Replace(other, `"metadata":{`, `"metadata":{"paidonce_transaction":"x",`, 1))), gateway.Unsure, ""},
			{"OfAnotherPayment", answered(200, stripeListOf(false, strings.Replace(other, stripePI, "pi_3Other", 1))), gateway.Unsure, ""},
			{"NoList", answered(200, ours), gateway.Unsure, ""},
			{"NoWordOfMore", answered(200, `{"object":"list","data":[]}`), gateway.Unsure, ""},
			{"NoData", answered(200, `{"object":"list","has_more":false}`), gateway.Unsure, ""},
			{"NoSuchPayment", answered(404, stripeProblem("invalid_request_error", "resource_missing")), gateway.Unsure, ""},
			{"Conflict", answered(409, ""), gateway.Later, ""},
			{"T109_Denied", answered(403, stripeProblem("invalid_request_error", "more_permissions_required")), gateway.Denied, ""},
		})
	})
	capture := stripeMovement(order.MovementCapture, "2000 EUR")
	intent := func(status string, received int64, mark string) gateway.Reply {
		return answered(200, stripeIntentOf(capture, status, received, mark))
	}
	t.Run("Capture", func(t *testing.T) {
		t.Parallel()
		playLookups(t, s, capture, []answerRow{
			{"Ours", intent("succeeded", 2000, movementID), gateway.Done, ""},
			{"OursAndLess", intent("succeeded", 1999, movementID), gateway.Unsure, ""},
			{"OursAndMore", intent("succeeded", 2001, movementID), gateway.Unsure, ""},
			{"T105_NotYet", intent("requires_capture", 0, ""), gateway.Absent, ""},
			{"T105_NotYetButMarked", intent("requires_capture", 0, movementID), gateway.Absent, ""},
			{"AnothersInAnotherAmount", intent("succeeded", 5000, ""), gateway.Declined, "succeeded"},
			{"AnotherMovements", intent("succeeded", 2000, "another"), gateway.Declined, "succeeded"},
			{"SomebodysInTheSameAmount", intent("succeeded", 2000, ""), gateway.Unsure, ""},
			{"Canceled", intent("canceled", 0, ""), gateway.Declined, "canceled"},
			{"CanceledAfterAPart", intent("canceled", 2000, ""), gateway.Unsure, ""},
			{"NotEvenAuthorized", intent("requires_payment_method", 0, ""), gateway.Declined, "requires_payment_method"},
			{"UnderWay", intent("processing", 0, movementID), gateway.Done, ""},
			{"AnothersUnderWay", intent("processing", 0, ""), gateway.Later, ""},
			{"InANewState", intent("resting", 0, ""), gateway.Unsure, ""},
			{"OfAnotherPayment", answered(200, strings.Replace(stripeIntentOf(capture, "succeeded", 2000, movementID), stripePI, "pi_3Other", 1)), gateway.Unsure, ""},
		})
	})
	bare := bareMovement(order.MovementCapture, "2000 EUR")
	t.Run("CaptureOfCharge", func(t *testing.T) {
		t.Parallel()
		playLookups(t, s, bare, []answerRow{
			{"T105_NotYet", answered(200, stripeChargeOf(bare, false, 0)), gateway.Absent, ""},
			{"SomebodysInTheSameAmount", answered(200, stripeChargeOf(bare, true, 2000)), gateway.Unsure, ""},
			{"AnothersInAnotherAmount", answered(200, stripeChargeOf(bare, true, 5000)), gateway.Declined, "succeeded"},
			{"Failed", answered(200, strings.Replace(stripeChargeOf(bare, false, 0), `"succeeded"`, `"failed"`, 1)), gateway.Unsure, ""},
		})
	})
	void := stripeMovement(order.MovementVoid, "5000 EUR")
	state := func(status string, received int64) gateway.Reply {
		return answered(200, stripeIntentOf(void, status, received, ""))
	}
	t.Run("Void", func(t *testing.T) {
		t.Parallel()
		playLookups(t, s, void, []answerRow{
			{"Canceled", state("canceled", 0), gateway.Done, ""},
			{"T105_NotYet", state("requires_capture", 0), gateway.Absent, ""},
			{"T105_NotEvenAuthorized", state("requires_action", 0), gateway.Absent, ""},
			{"Captured", state("succeeded", 5000), gateway.Declined, "succeeded"},
			{"UnderWay", state("processing", 0), gateway.Later, ""},
			{"InANewState", state("resting", 0), gateway.Unsure, ""},
		})
	})
}
