package gateway_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const (
	adyenPaid = "QFQTPCQ8HXSKGK82"
	adyenMade = "JDD6LKT8MBLZNN84"
)

func callableAdyen() gateway.Source {
	s := adyenSource()
	s.AccessToken = "AQEyhmfxL4PJahZCw0m_test_only"
	return s
}

func adyenMovement(kind order.MovementKind, amount string) order.Movement {
	number, cur, _ := strings.Cut(amount, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic(err)
	}
	return order.Movement{ID: movementID, Kind: kind, Amount: order.Amount{Minor: n, Currency: cur}, Payment: []string{adyenPaid}, Reference: "ord_7"}
}

// adyenReceipt is the answer of the documentation's pages about captures, refunds and cancels.
func adyenReceipt(t testing.TB, m order.Movement) string {
	t.Helper()
	amount := ""
	if m.Kind != order.MovementVoid {
		theirs := m.Amount.Minor
		switch m.Amount.Currency {
		case "ISK", "CLP":
			theirs *= 100
		case "CVE", "IDR":
			require.Zero(t, theirs%100)
			theirs /= 100
		}
		amount = fmt.Sprintf(`,"amount":{"currency":%q,"value":%d}`, m.Amount.Currency, theirs)
	}
	return fmt.Sprintf(`{"merchantAccount":"ExampleShopECOM","paymentPspReference":%q,"pspReference":%q,"reference":%q,"status":"received"%s}`,
		adyenPaid, adyenMade, m.ID, amount)
}

var _ = calls("adyen", calling{
	source: callableAdyen(),
	lacking: map[string]gateway.Source{
		"access_token":      adyenSource(),
		"merchant_accounts": func() gateway.Source { s := callableAdyen(); s.MerchantAccounts = nil; return s }(),
		"api_url":           func() gateway.Source { s := callableAdyen(); s.Mode = gateway.Live; return s }(),
	},
	made: map[string]order.Movement{
		"Capture": adyenMovement(order.MovementCapture, "2000 EUR"),
		"Refund": func() order.Movement {
			m := adyenMovement(order.MovementRefund, "1500 EUR")
			m.Reason = "customer request"
			return m
		}(),
		"RefundInWords": func() order.Movement {
			m := adyenMovement(order.MovementRefund, "1500 EUR")
			m.Reason = `came <broken> & "late"`
			return m
		}(),
		"RefundISK": adyenMovement(order.MovementRefund, "1500 ISK"),
		"RefundCVE": adyenMovement(order.MovementRefund, "1500 CVE"),
		"RefundJPY": adyenMovement(order.MovementRefund, "1500 JPY"),
		"Void":      adyenMovement(order.MovementVoid, "5000 EUR"),
	},
	impossible: map[string]order.Movement{
		"no pspReference":     {ID: movementID, Kind: order.MovementRefund, Amount: order.Amount{Minor: 1, Currency: "EUR"}, Payment: []string{"../../v71/payments", "a b"}},
		"2 pspReferences":     {ID: movementID, Kind: order.MovementRefund, Amount: order.Amount{Minor: 1, Currency: "EUR"}, Payment: []string{adyenMade, adyenPaid}},
		"as Adyen counts":     adyenMovement(order.MovementCapture, "1501 IDR"),
		"64 bits":             adyenMovement(order.MovementCapture, "9223372036854775807 ISK"),
		"there is no payout ": func() order.Movement { m := adyenMovement("payout", "1 EUR"); return m }(),
	},
	done:   adyenReceipt,
	silent: map[string]string{"Void": "a cancellation that may still be refused is no fact"},
})

// TestAdyenRequests: the requests, to the byte.
func TestAdyenRequests(t *testing.T) {
	t.Parallel()
	for name, m := range callers["adyen"].made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, err := gateway.Adyen.Calls.Make(callableAdyen(), m)
			require.NoError(t, err)
			golden(t, "testdata/calls/adyen/"+name+".golden", goldenCall(call, gateway.Adyen.Calls.Authorize(callableAdyen(), call)))
		})
	}
	call, err := gateway.Adyen.Calls.Make(adyenSource(), adyenMovement(order.MovementRefund, "1 EUR"))
	require.ErrorContains(t, err, "access_token")
	require.Empty(t, call)
}

// TestAdyenAddress: live Adyen is called at an address of one's own.
func TestAdyenAddress(t *testing.T) {
	t.Parallel()
	s := callableAdyen()
	require.Equal(t, "https://checkout-test.adyen.com", gateway.Adyen.Calls.BaseURL(s))
	s.Mode, s.APIURL = gateway.Live, "https://1797a841fbb37ca7-Shop-checkout-live.adyenpayments.com/checkout"
	require.NoError(t, gateway.Adyen.Check(s))
	require.NoError(t, gateway.Adyen.Calls.Ready(s))
	require.Equal(t, s.APIURL, gateway.Adyen.Calls.BaseURL(s))
}

// TestAdyenAnswers: every answer that the documentation tells of, and what is to be done.
func TestAdyenAnswers(t *testing.T) {
	t.Parallel()
	refund := adyenMovement(order.MovementRefund, "1500 EUR")
	receipt := adyenReceipt(t, refund)
	problem := func(code, typ string) string {
		return fmt.Sprintf(`{"status":422,"errorCode":%q,"message":"Zebra","errorType":%q,"pspReference":"F7WCWRG6JPHR8HG2"}`, code, typ)
	}
	playAnswers(t, callableAdyen(), refund, []answerRow{
		{"Received", answered(201, receipt), gateway.Done, ""},
		{"T107_ReceivedWithOK", answered(200, receipt), gateway.Done, ""},
		{"ReceivedWithoutOurReference", answered(201, strings.Replace(receipt, `"reference":"`+movementID+`",`, "", 1)), gateway.Done, ""},
		{"T101_ReceivedForAnotherRequest", answered(201, strings.Replace(receipt, movementID, "another", 1)), gateway.Unsure, ""},
		{"NotReceived", answered(201, strings.Replace(receipt, "received", "refused", 1)), gateway.Unsure, ""},
		{"OfThePaymentItself", answered(201, strings.Replace(receipt, adyenMade, adyenPaid, 1)), gateway.Unsure, ""},
		{"OfNothing", answered(201, strings.Replace(receipt, adyenMade, "", 1)), gateway.Unsure, ""},
		{"OfAnotherCurrency", answered(201, strings.Replace(receipt, "EUR", "USD", 1)), gateway.Unsure, ""},
		{"OfANegativeAmount", answered(201, strings.Replace(receipt, "1500", "-1500", 1)), gateway.Unsure, ""},
		{"OfAFraction", answered(201, strings.Replace(receipt, "1500", "1500.0", 1)), gateway.Unsure, ""},
		{"WithAKeyTwice", answered(201, strings.Replace(receipt, `{`, `{"status":"received",`, 1)), gateway.Unsure, ""},

		{"T103_InProgress", answered(409, problem("704", "validation"), "Transient-Error", "true"), gateway.Later, ""},
		{"T103_InProgressUnprocessable", answered(422, problem("704", "validation"), "Transient-Error", "true"), gateway.Later, ""},
		{"T103_InProgressWithoutTheHeader", answered(422, problem("704", "validation")), gateway.Later, "704"},
		{"T103_InProgressForGood", answered(422, problem("704", "validation"), "Transient-Error", "false"), gateway.Unsure, "704"},
		{"T102_KeysUnavailable", answered(503, problem("703", "internal"), "Transient-Error", "true"), gateway.Later, ""},
		{"T102_Internal", answered(500, problem("903", "internal")), gateway.Later, ""},
		{"T105_FailedForGood", answered(500, problem("903", "internal"), "Transient-Error", "false"), gateway.Unsure, ""},
		{"T102_InternalUnprocessable", answered(422, problem("903", "internal")), gateway.Later, "903"},

		{"T109_NoSuchKey", answered(401, problem("000", "security")), gateway.Denied, ""},
		{"T109_RoleMissing", answered(403, problem("010", "security")), gateway.Denied, ""},
		{"T109_RoleMissingUnprocessable", answered(422, problem("010", "validation")), gateway.Denied, "010"},
		{"T109_NotTheirAccount", answered(403, problem("901", "security")), gateway.Denied, ""},
		{"T109_SecurityOfAnotherKind", answered(422, problem("999", "security")), gateway.Denied, "999"},
		{"T109_TooMany", answered(429, problem("", ""), "Retry-After", "3"), gateway.Later, ""},

		{"T106_NoSuchPayment", answered(422, problem("167", "validation")), gateway.Declined, "167"},
		{"T106_NoAmount", answered(422, problem("100", "validation")), gateway.Declined, "100"},
		{"T106_BadAmount", answered(422, problem("137", "validation")), gateway.Declined, "137"},
		{"T106_BadCurrency", answered(422, problem("138", "validation")), gateway.Declined, "138"},
		{"T106_OtherEnvironment", answered(422, problem("906", "configuration")), gateway.Declined, "906"},
		{"T106_Malformed", answered(400, problem("702", "validation")), gateway.Declined, "702"},
		{"T106_NewForm", answered(422, `{"type":"https://docs.adyen.com/errors/unprocessable-entity","errorCode":"00_422","title":"Zebra","detail":"Zebra","status":422}`), gateway.Declined, "00_422"},
		{"NotAdyen", answered(404, "<html>Zebra</html>"), gateway.Later, ""},
		{"NotAnError", answered(422, `{"message":"Zebra"}`), gateway.Later, ""},
		{"CodesTwice", answered(422, `{"errorCode":"167","errorCode":"704"}`), gateway.Later, ""},
	})
}

// TestAdyenJoins: a movement's receipt and the notification of what became of it are one entry, whichever comes first, with and
// without the sender's credentials; and a receipt that is read late takes nothing back.
func TestAdyenJoins(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		s := callableAdyen()
		if bare {
			s.Basic = ""
		}
		for _, row := range []struct {
			kind             order.MovementKind
			typ, success     string
			failed           string // what undoes it
			leaving, arrived int64  // what can be refunded, and captured, once all is told
		}{
			{order.MovementRefund, "REFUND", "true", "", 3500, 0},
			{order.MovementRefund, "REFUND", "false", "", 5000, 0},
			{order.MovementRefund, "REFUND", "true", "REFUND_FAILED", 5000, 0},
			{order.MovementCapture, "CAPTURE", "true", "", 1500, 3500},
			{order.MovementCapture, "CAPTURE", "false", "", 0, 5000},
			{order.MovementCapture, "CAPTURE", "true", "CAPTURE_FAILED", 0, 5000},
		} {
			m := adyenMovement(row.kind, "1500 EUR")
			v := judged(t, s, m, answered(201, adyenReceipt(t, m)), false)
			require.Equal(t, adyenMade, v.Ref)
			require.Len(t, v.Events, 1)

			source := s
			source.Capture = gateway.CaptureManual
			of := func(typ, success string) order.Event {
				return sampled(t, gateway.SampleRequest{
					Source: source, Type: typ, Payment: adyenPaid, Ref: adyenMade, Reference: movementID, At: now,
					Amount: m.Amount, Set: map[string]string{"success": success},
				})
			}
			was := []order.Event{sampled(t, gateway.SampleRequest{
				Source: source, Type: "AUTHORISATION", Payment: adyenPaid, Reference: "ord_7", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now.Add(-20 * time.Minute),
			})}
			if row.kind == order.MovementRefund {
				was = append(was, sampled(t, gateway.SampleRequest{
					Source: source, Type: "CAPTURE", Payment: adyenPaid, Ref: "CAPTURED00000001", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now.Add(-2 * time.Minute),
				}))
			}
			told := []order.Event{of(row.typ, row.success)}
			if row.failed != "" {
				failed := of(row.failed, "true")
				told = append(told, failed)
			}

			// Until the notification comes, the money is on its way: it is not moved again.
			l := ledgerOf(append(was[:len(was):len(was)], v.Events...))
			left, err := l.Movable(row.kind, "EUR")
			require.NoError(t, err)
			require.EqualValues(t, 3500, left)

			want := ledgerOf(append(was[:len(was):len(was)], told...))
			for _, all := range orders(append(told[:len(told):len(told)], v.Events...)) {
				l := ledgerOf(append(was[:len(was):len(was)], all...))
				require.Equal(t, want, l, "bare %t: %s %s", bare, row.typ, row.success)
			}
			left, _ = want.Movable(order.MovementRefund, "EUR")
			require.Equal(t, row.leaving, left)
			left, _ = want.Movable(order.MovementCapture, "EUR")
			require.Equal(t, row.arrived, left)

			// The notification names the movement: so it is known where no answer came.
			require.Equal(t, movementID, told[0].Reference)
			require.Equal(t, order.StrengthModification, told[0].Strength)
		}
	}
}
