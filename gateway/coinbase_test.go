package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

const coinbaseAt = "event.data."

var _ = conforms("coinbase-commerce", conformance{
	volatile:    map[string]string{"id": "of another delivery", "attempt_number": "5", "scheduled_for": "2026-01-03T00:00:00Z"},
	unknownType: map[string]string{"event.type": "invoice:paid"},
	typ:         "charge:confirmed",
	amount:      coinbaseAt + "pricing.local.amount",
	currency:    coinbaseAt + "pricing.local.currency",
	badAmounts:  decimals,
	noMode:      true,
})

// received sets what came in on the chain, and of what status it is.
func received(amounts ...string) map[string]string {
	var all []string
	for _, a := range amounts {
		amount, status, _ := strings.Cut(a, " ")
		all = append(all, fmt.Sprintf(`{"status":%q,"value":{"local":{"amount":%q,"currency":"EUR"}}}`, status, amount))
	}
	return map[string]string{coinbaseAt + "payments": "[" + strings.Join(all, ",") + "]"}
}

func TestCoinbaseFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "coinbase-commerce")
	canceled := received()
	canceled[coinbaseAt+"timeline"] = `[{"status":"NEW"},{"status":"CANCELED"}]`
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "charge:created"}, {typ: "charge:pending", at: 1}, {typ: "charge:confirmed", at: 9}}, "paid 5000-0-0 go"},
		{"Pending", s, []step{{typ: "charge:created"}, {typ: "charge:pending", at: 1}}, "pending 0-0-0 wait"},
		{"Expired", s, []step{{typ: "charge:created"}, {typ: "charge:failed", at: 60}}, "expired 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "charge:created"}, {typ: "charge:failed", at: 60, set: canceled}}, "canceled 0-0-0 wait"},
		{"AlmostThePrice", s, []step{{typ: "charge:created"}, {typ: "charge:confirmed", at: 9, set: received("49.99 CONFIRMED")}}, "paid 5000-0-0 go"},
		{"Underpaid", s, []step{{typ: "charge:pending"}, {typ: "charge:failed", at: 9, set: received("20.00 CONFIRMED")}}, "partially_paid 2000-0-0 wait"},
		{"UnderpaidThenResolved", s, []step{
			{typ: "charge:failed", at: 9, set: received("20.00 CONFIRMED")}, {typ: "charge:resolved", at: 99, set: received("20.00 CONFIRMED")},
		}, "partially_paid 2000-0-0 wait"},
		{"UnderpaidThenTheRest", s, []step{
			{typ: "charge:failed", at: 9, set: received("20.00 CONFIRMED")}, {typ: "charge:confirmed", at: 99, set: received("20.00 CONFIRMED", "30.00 confirmed")},
		}, "paid 5000-0-0 go"},
		{"DelayedAndWorthLess", s, []step{{typ: "charge:failed"}, {typ: "charge:delayed", at: 9, set: received("48.00 CONFIRMED")}}, "partially_paid 4800-0-0 wait"},
		{"DelayedInFull", s, []step{{typ: "charge:failed"}, {typ: "charge:delayed", at: 9}}, "paid 5000-0-0 go"},
		{"SeenTwiceConfirmedOnce", s, []step{{typ: "charge:delayed", set: received("30.00 CONFIRMED", "20.00 PENDING")}}, "partially_paid 3000-0-0 wait"},
	})
}

// TestCoinbaseIDs: charges are known by code and id, and a delivery's own numbers
// are no part of an event's.
func TestCoinbaseIDs(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "coinbase-commerce")
	ev := step{typ: "charge:confirmed"}.event(t, s)
	require.Len(t, ev.Payment, 2)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$`, ev.ID)
	old := step{typ: "charge:confirmed", set: set(coinbaseAt+"id", "null")}.event(t, s)
	require.Equal(t, ev.Payment[:1], old.Payment)
}

// TestCoinbaseSums: what came in is added up exactly, and never wraps round.
func TestCoinbaseSums(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "coinbase-commerce")
	great := "92233720368547758.00 CONFIRMED"
	read := func(set map[string]string) string {
		return mapped(t, s, string(sample(t, gateway.SampleRequest{Source: s, Type: "charge:delayed", Set: set}))).Broken
	}
	require.Empty(t, read(received(great)))
	require.Contains(t, read(received(great, great)), "too great")
	require.Contains(t, read(received(strings.Split(strings.Repeat("0.01 CONFIRMED,", 101), ",")[:101]...)), "more than 100")
}
