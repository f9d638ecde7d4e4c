package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("primer", conformance{
	volatile:    map[string]string{"date": "2026-01-01T10:00:00.000000", "signedAt": "1767261600", "notificationConfig": `{"id":"other"}`},
	unknownType: map[string]string{"eventType": "WORKFLOW_RUN.FAILED"},
	typ:         "PAYMENT.STATUS",
	amount:      "payment.amount",
	currency:    "payment.currencyCode",
	noMode:      true,
	noTime:      true, // DISPUTE.OPENED has none
})

// primerIs sets the status of a payment and how much is captured and refunded by then.
func primerIs(status, captured, refunded string) map[string]string {
	return map[string]string{"payment.status": status, "payment.processor.amountCaptured": captured, "payment.processor.amountRefunded": refunded}
}

func TestPrimerFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "primer")
	is := func(kind, status string) map[string]string { return map[string]string{"type": kind, "status": status} }
	playFlows(t, []flow{
		{"Paid", s, []step{
			{typ: "PAYMENT.STATUS", set: primerIs("PENDING", "0", "0")},
			{typ: "PAYMENT.STATUS", at: 1, set: primerIs("AUTHORIZED", "0", "0")},
			{typ: "PAYMENT.STATUS", at: 2, set: primerIs("SETTLING", "0", "0")},
			{typ: "PAYMENT.STATUS", at: 3},
		}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "PAYMENT.STATUS", set: primerIs("PENDING", "0", "0")}, {typ: "PAYMENT.STATUS", at: 1, set: primerIs("AUTHORIZED", "0", "0")}}, "authorized 0-0-0 wait"},
		{"Declined", s, []step{{typ: "PAYMENT.STATUS", set: primerIs("PENDING", "0", "0")}, {typ: "PAYMENT.STATUS", at: 1, set: primerIs("DECLINED", "0", "0")}}, "failed 0-0-0 wait"},
		{"Cancelled", s, []step{{typ: "PAYMENT.STATUS", set: primerIs("AUTHORIZED", "0", "0")}, {typ: "PAYMENT.STATUS", at: 1, set: primerIs("CANCELLED", "0", "0")}}, "canceled 0-0-0 wait"},
		{"InPart", s, []step{{typ: "PAYMENT.STATUS", set: primerIs("AUTHORIZED", "0", "0")}, {typ: "PAYMENT.STATUS", at: 1, set: primerIs("PARTIALLY_SETTLED", "2000", "0")}}, "partially_paid 2000-0-0 wait"},
		{"RestIsSettling", s, []step{
			{typ: "PAYMENT.STATUS", set: primerIs("PARTIALLY_SETTLED", "2000", "0")}, {typ: "PAYMENT.STATUS", at: 1, set: primerIs("SETTLING", "2000", "0")},
		}, "partially_paid 2000-0-0 wait"},
		{"TwoRefunds", s, []step{
			{typ: "PAYMENT.STATUS"}, {typ: "PAYMENT.REFUND", at: 1, set: primerIs("SETTLED", "5000", "1000")}, {typ: "PAYMENT.REFUND", at: 2, set: primerIs("SETTLED", "5000", "2500")},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundFailed", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "PAYMENT.REFUND", at: 1, set: primerIs("SETTLED", "5000", "0")}}, "paid 5000-0-0 go"},
		{"DisputeOpen", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "DISPUTE.OPENED"}, {typ: "DISPUTE.STATUS", at: 1}, {typ: "DISPUTE.STATUS", at: 2, set: is("DISPUTE", "CHALLENGED")}}, "disputed 5000-0-0 pause"},
		{"DisputeWon", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "DISPUTE.OPENED"}, {typ: "DISPUTE.STATUS", at: 2, set: is("DISPUTE", "WON")}}, "paid 5000-0-0 go"},
		{"DisputeExpired", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "DISPUTE.STATUS", at: 1}, {typ: "DISPUTE.STATUS", at: 2, set: is("DISPUTE", "EXPIRED")}}, "charged_back 5000-0-5000 stop"},
		{"RetrievalExpired", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "DISPUTE.STATUS", at: 1, set: is("RETRIEVAL", "OPEN")}, {typ: "DISPUTE.STATUS", at: 2, set: is("RETRIEVAL", "EXPIRED")}}, "paid 5000-0-0 go"},
		{"WonAndLostInPrearbitration", s, []step{{typ: "PAYMENT.STATUS"}, {typ: "DISPUTE.STATUS", at: 1, set: is("DISPUTE", "WON")}, {typ: "DISPUTE.STATUS", at: 2, set: is("PREARBITRATION", "LOST")}}, "charged_back 5000-0-5000 stop"},
	})
}

// TestPrimerOpened: what tells no amount holds the whole order, and is flagged.
func TestPrimerOpened(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "primer")
	evs := []order.Event{step{typ: "PAYMENT.STATUS"}.event(t, s), step{typ: "DISPUTE.OPENED"}.event(t, s)}
	permute(evs, func(evs []order.Event) {
		v := fold(evs)
		require.Equal(t, order.WantPause, v.Want)
		require.Equal(t, order.FlagCurrencyMismatch, v.Flags)
	})
}

func TestPrimerTimes(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "primer")
	for text, want := range map[string]time.Time{
		"2026-01-01T09:00:00.000000":    now,
		"2026-01-01T09:00:00":           now,
		"2026-01-01T09:00:00Z":          now,
		"2026-01-01T10:00:00+01:00":     now,
		"2026-01-01T09:00:00.123456":    now.Add(123456 * time.Microsecond),
		"2026-01-01T09:00:00.123456789": now.Add(123456789),
		"2026-01-01 09:00:00":           {},
	} {
		ev := sampled(t, gateway.SampleRequest{Source: s, Type: "PAYMENT.STATUS", Set: set("payment.dateUpdated", `"`+text+`"`)})
		require.Equal(t, want, ev.At, text)
		require.Equal(t, want.IsZero(), ev.Broken != "", text)
	}
}

// TestPrimerProbe: the dashboard's test is answered, and nothing else is taken for it.
func TestPrimerProbe(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "primer")
	for body, want := range map[string]bool{
		`{"message":"Testing your webhook connection"}`:                                        true,
		"{\n  \"message\": \"Testing your webhook connection\"\n}":                             true,
		`{"message":"Testing"}`:                                                                false,
		`{"message":"x","message":"Testing your webhook connection"}`:                          false,
		`{"message":"Testing your webhook connection","x":"` + strings.Repeat("a", 300) + `"}`: false,
		`{"eventType":"PAYMENT.STATUS"}`:                                                       false,
		`Testing your webhook connection`:                                                      false,
		``:                                                                                     false,
	} {
		p, ok := gateway.Primer.Probe(s, gateway.Delivery{Method: http.MethodPost, Body: []byte(body)})
		require.Equal(t, want, ok, body)
		require.Empty(t, p.Body)
	}
	_, ok := gateway.Primer.Probe(s, gateway.Delivery{Method: http.MethodGet, Body: []byte(`{"message":"Testing your webhook connection"}`)})
	require.False(t, ok)
}
