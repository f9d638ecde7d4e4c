package interop_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	mock "github.com/stripe/stripe-mock/server"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const (
	mockIntent   = "pi_3Interop"
	mockCharge   = "ch_3Interop"
	mockMovement = "0199f1c2-7a54-7c31-9b1e-3f2a5d0c8e11"
)

// stripeMock is Stripe's own double of its API: it checks every request against Stripe's OpenAPI description, and answers with
// objects of Stripe's shape, made of its fixtures and of what was asked for.
type stripeMock struct {
	base     string
	fixtures map[string]map[string]any // by kind of object; what is changed here, the next answer has
}

func startStripeMock(t *testing.T) *stripeMock {
	t.Helper()
	description, err := mock.LoadSpec(embedded.OpenAPISpec, "")
	require.NoError(t, err)
	fixtures, err := mock.LoadFixtures(embedded.OpenAPIFixtures, "")
	require.NoError(t, err)
	stub, err := mock.NewStubServer(fixtures, description, false, false)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(stub.HandleRequest))
	t.Cleanup(server.Close)
	m := &stripeMock{base: server.URL, fixtures: map[string]map[string]any{}}
	for name, fixture := range fixtures.Resources {
		if object, ok := fixture.(map[string]any); ok {
			m.fixtures[string(name)] = object
		}
	}
	return m
}

// set changes the fixture of a kind of object.
func (m *stripeMock) set(t *testing.T, name string, members map[string]any) {
	t.Helper()
	require.Contains(t, m.fixtures, name)
	for member, v := range members {
		m.fixtures[name][member] = v
	}
}

// send makes a call as the product does, and returns what is answered.
func (m *stripeMock) send(t *testing.T, call gateway.Call, key string) gateway.Reply {
	t.Helper()
	method := call.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, m.base+call.Path, bytes.NewReader(call.Body))
	require.NoError(t, err)
	req.Header = call.Header.Clone()
	if key != "" {
		req.Header.Set(gateway.Stripe.Calls.KeyHeader, key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return gateway.Reply{Status: resp.StatusCode, Header: resp.Header, Body: body, Started: time.Unix(1767258000, 0)}
}

// accepted is send for a call that the description allows.
func (m *stripeMock) accepted(t *testing.T, call gateway.Call, key string) gateway.Reply {
	t.Helper()
	r := m.send(t, call, key)
	require.Equal(t, http.StatusOK, r.Status, "%s %s: %s", call.Method, call.Path, r.Body)
	return r
}

func mockSource() gateway.Source {
	s := gateway.Stripe.Example("interop")
	s.ID, s.AccessToken, s.StripeAccount = "stripe", "sk_test_interop", "acct_1A2b3C"
	return s
}

// TestStripeMock: every request that we make of Stripe is one that its OpenAPI description allows, and its answers are read as
// what they are.
func TestStripeMock(t *testing.T) {
	t.Parallel()
	m := startStripeMock(t)
	s := mockSource()
	calls := gateway.Stripe.Calls
	marked := map[string]any{"paidonce_transaction": mockMovement}
	// The mock has one object of each kind, in the state that it is given.
	m.set(t, "refund", map[string]any{"payment_intent": mockIntent, "charge": mockCharge, "amount": 1500, "currency": "usd", "metadata": marked})

	for _, row := range []struct {
		name    string
		kind    order.MovementKind
		reason  string
		charge  bool
		intent  map[string]any // what the PaymentIntent is afterwards
		charged map[string]any
		found   gateway.Ruling
	}{
		{name: "Refund", kind: order.MovementRefund, found: gateway.Done},
		{name: "RefundWithReason", kind: order.MovementRefund, reason: "duplicate", found: gateway.Done},
		{name: "RefundInWords", kind: order.MovementRefund, reason: `came & "late"`, found: gateway.Done},
		{name: "RefundOfCharge", kind: order.MovementRefund, charge: true, found: gateway.Done},
		{
			name: "Capture", kind: order.MovementCapture, reason: "shipped", found: gateway.Done,
			intent: map[string]any{"status": "succeeded", "amount_received": 1500, "metadata": marked},
		},
		{
			name: "CaptureOfCharge", kind: order.MovementCapture, charge: true, found: gateway.Unsure,
			charged: map[string]any{"status": "succeeded", "captured": true, "amount": 1500, "amount_captured": 1500},
		},
		{
			name: "Void", kind: order.MovementVoid, reason: "abandoned", found: gateway.Done,
			intent: map[string]any{"status": "canceled", "amount_received": 0, "metadata": map[string]any{}},
		},
	} {
		movement := order.Movement{
			ID: mockMovement, Kind: row.kind, Amount: order.Amount{Minor: 1500, Currency: "USD"}, Payment: []string{mockCharge, mockIntent}, Reason: row.reason,
		}
		if row.charge {
			movement.Payment = []string{mockCharge}
		}
		if row.intent != nil {
			m.set(t, "payment_intent", row.intent)
		}
		if row.charged != nil {
			m.set(t, "charge", row.charged)
		}
		call, err := calls.Make(s, movement)
		require.NoError(t, err, row.name)
		r := m.accepted(t, calls.Authorize(s, call), mockMovement)
		require.Equal(t, mockMovement, r.Header.Get(calls.KeyHeader), "the key has not arrived")
		v, err := gateway.Stripe.Judge(s, movement, r, false)
		require.NoError(t, err, row.name)
		require.Equal(t, gateway.Done, v.Ruling, "%s: %s: %s", row.name, v.Detail, r.Body)
		require.Len(t, v.Events, 1, row.name)
		require.Len(t, v.Events[0].Facts, 1, row.name)

		look, err := calls.Look(s, movement)
		require.NoError(t, err, row.name)
		r = m.accepted(t, calls.Authorize(s, look), "")
		found, err := gateway.Stripe.Judge(s, movement, r, true)
		require.NoError(t, err, row.name)
		require.Equal(t, row.found, found.Ruling, "%s: %s: %s", row.name, found.Detail, r.Body)
		require.Equal(t, row.found == gateway.Done, len(found.Events) == 1, row.name)

		// It does look: what the description does not know, is not of its type or comes from a stranger is refused.
		bad := calls.Authorize(s, call)
		bad.Body = append(bytes.Clone(bad.Body), "&paidonce=1"...)
		refused, err := gateway.Stripe.Judge(s, movement, m.send(t, bad, mockMovement), false)
		require.NoError(t, err)
		require.Equal(t, gateway.Declined, refused.Ruling, row.name)
		require.Equal(t, "invalid_request_error", refused.Code)
		if row.kind != order.MovementVoid {
			bad.Body = bytes.ReplaceAll(call.Body, []byte("=1500"), []byte("=a+lot"))
			require.Equal(t, http.StatusBadRequest, m.send(t, bad, mockMovement).Status, row.name)
		}
		denied, err := gateway.Stripe.Judge(s, movement, m.send(t, call, mockMovement), false)
		require.NoError(t, err)
		require.Equal(t, gateway.Denied, denied.Ruling, row.name)
	}

	t.Run("Listing", func(t *testing.T) {
		m.set(t, "event", map[string]any{
			"type": "refund.created", "api_version": "2026-08-26.dahlia", "data": map[string]any{"object": m.fixtures["refund"]},
		})
		for _, page := range []string{"", "evt_1"} {
			call, err := gateway.Stripe.Listing.Call(s, gateway.Span{From: time.Unix(1767258000, 0), Until: time.Unix(1767261600, 1)}, page)
			require.NoError(t, err)
			r := m.accepted(t, call, "")
			listed, err := gateway.Stripe.Listing.Read(s, gateway.Answer{Body: r.Body})
			require.NoError(t, err, "%s", r.Body)
			require.Len(t, listed.Deliveries, 1)
			evs, err := gateway.Stripe.Read(s, listed.Deliveries[0])
			require.NoError(t, err)
			require.Equal(t, order.KindRefunded, evs[0].Facts[0].Kind)
			require.Contains(t, evs[0].Payment, mockIntent)
			require.Empty(t, evs[0].Facts[0].Misfit)
		}
	})

	t.Run("Fetch", func(t *testing.T) {
		objects := gateway.Stripe.Fetch.About(s, []string{mockCharge, mockIntent})
		require.Len(t, objects, 2)
		objects = append(objects,
			gateway.Object{Kind: "refund", ID: "re_1"}, gateway.Object{Kind: "dispute", ID: "du_1"}, gateway.Object{Kind: "invoice", ID: "in_1"},
			gateway.Object{Kind: "checkout_session", ID: "cs_test_1"}, gateway.Object{Kind: "invoice_payment", ID: "inpay_1"})
		for _, o := range objects {
			call, err := gateway.Stripe.Fetch.Call(s, o)
			require.NoError(t, err)
			r := m.accepted(t, call, "")
			evs, err := gateway.Stripe.Fetched(s, o, gateway.Answer{Body: r.Body, Started: r.Started})
			require.NoError(t, err, "%s: %s", o, r.Body)
			require.Len(t, evs, 1)
			require.Empty(t, evs[0].Broken, "%s: %s", o, r.Body)
		}
	})
}
