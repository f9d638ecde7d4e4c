package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

func askingStripe() gateway.Source {
	s := stripeSource()
	s.AccessToken = "rk_test_made_up_for_tests"
	return s
}

func thin(typ, related string) []byte {
	return []byte(`{"id":"evt_test_65","object":"v2.core.event","type":"` + typ + `","created":"2026-01-01T09:00:00.000Z","livemode":false,"related_object":` + related + `}`)
}

// TestStripeKeyMode: refunds do not say of which mode they are, so a key of the
// other mode is refused at the start.
func TestStripeKeyMode(t *testing.T) {
	t.Parallel()
	for key, modes := range map[string][]string{
		"rk_test_1": {gateway.Test}, "sk_test_1": {gateway.Test}, "rk_live_1": {gateway.Live}, "sk_live_1": {gateway.Live}, "rk_1": {gateway.Test, gateway.Live},
	} {
		for _, mode := range []string{gateway.Test, gateway.Live} {
			s := askingStripe()
			s.AccessToken, s.Mode = key, mode
			err := gateway.Stripe.Check(s)
			if slices.Contains(modes, mode) {
				require.NoError(t, err, key)
			} else {
				require.ErrorContains(t, err, "access_token is a key of the other mode", key)
			}
		}
	}
}

// TestStripeThinReference: a source that says where its reference stands in events
// means the same place in an object that is asked for, and no other.
func TestStripeThinReference(t *testing.T) {
	t.Parallel()
	o := gateway.Object{Kind: "payment_intent", ID: "pi_1"}
	body := []byte(`{"id":"pi_1","object":"payment_intent","livemode":false,"status":"succeeded","currency":"eur","amount":5000,"amount_received":5000,` +
		`"metadata":{"order_id":"of_another_system","shop_order":"ord_7"}}`)
	for pointer, want := range map[string]string{
		"": "of_another_system", "/data/object/metadata/shop_order": "ord_7", "/data/object/metadata/none": "", "/data/previous": "", "/id": "",
	} {
		s := askingStripe()
		s.Reference = pointer
		evs, err := gateway.Stripe.Fetched(s, o, gateway.Answer{Body: body, Started: now})
		require.NoError(t, err)
		require.Equal(t, want, evs[0].Reference, pointer)
	}
}

// TestStripeThin: with a key, a thin event leads to the object it names, and to
// nothing that has not the form of one.
func TestStripeThin(t *testing.T) {
	t.Parallel()
	source := askingStripe()
	require.NoError(t, gateway.Stripe.Check(source))
	for _, tt := range []struct {
		related, object, path, ignored string
	}{
		{`{"id":"pi_1","type":"payment_intent","url":"/v1/payment_intents/pi_1"}`, "payment_intent/pi_1", "/v1/payment_intents/pi_1", ""},
		{`{"id":"ch_1","type":"charge","url":"/v1/charges/ch_1"}`, "charge/ch_1", "/v1/charges/ch_1", ""},
		{`{"id":"py_1","type":"charge"}`, "charge/py_1", "/v1/charges/py_1", ""},
		{`{"id":"cs_test_1","type":"checkout.session"}`, "checkout_session/cs_test_1", "/v1/checkout/sessions/cs_test_1", ""},
		{`{"id":"re_1","type":"refund"}`, "refund/re_1", "/v1/refunds/re_1", ""},
		{`{"id":"du_1","type":"dispute"}`, "dispute/du_1", "/v1/disputes/du_1", ""},
		{`{"id":"in_1","type":"invoice"}`, "invoice/in_1", "/v1/invoices/in_1", ""},
		{`{"id":"inpay_1","type":"invoice_payment"}`, "invoice_payment/inpay_1", "/v1/invoice_payments/inpay_1", ""},
		{`{"id":"cus_1","type":"customer"}`, "", "", gateway.UnknownType},
		{`{"id":"cs_test_1","type":"checkout_session"}`, "", "", gateway.UnknownType},
		{`{"id":"pi_1/../../x","type":"payment_intent"}`, "", "", gateway.UnknownType},
		{`{"id":"ch_1","type":"payment_intent"}`, "", "", gateway.UnknownType},
		{`null`, "", "", gateway.UnknownType},
	} {
		d := deliver(t, source, thin("v1.something.happened", tt.related))
		evs, err := gateway.Stripe.Events(source, d)
		require.NoError(t, err)
		require.Len(t, evs, 1)
		require.Equal(t, tt.object, evs[0].Fetch, tt.related)
		require.Equal(t, tt.ignored, evs[0].Ignored, tt.related)
		require.Empty(t, evs[0].Facts)
		require.Equal(t, "evt_test_65", evs[0].ID)
		objects, err := gateway.Stripe.Objects(source, d)
		require.NoError(t, err)
		if tt.object == "" {
			require.Empty(t, objects)
			continue
		}
		require.Len(t, objects, 1)
		require.Equal(t, tt.object, objects[0].String())
		call, err := gateway.Stripe.Fetch.Call(source, objects[0])
		require.NoError(t, err)
		require.Equal(t, tt.path, call.Path)
		require.Equal(t, "Bearer rk_test_made_up_for_tests", call.Header.Get("Authorization"))
		require.Equal(t, "2025-03-31.basil", call.Header.Get("Stripe-Version"))

		// Without a key nothing is asked.
		objects, err = gateway.Stripe.Objects(stripeSource(), d)
		require.NoError(t, err)
		require.Empty(t, objects)
	}
	require.NotEmpty(t, event(t, source, thin("v1.charge.captured", `"ch_1"`)).Broken)
	require.NotEmpty(t, event(t, source, thin("v1.charge.captured", `{"id":"ch_1","id":"ch_2","type":"charge"}`)).Broken)

	source.StripeAccount = "acct_1A2b"
	call, err := gateway.Stripe.Fetch.Call(source, gateway.Object{Kind: "charge", ID: "ch_1"})
	require.NoError(t, err)
	require.Equal(t, "acct_1A2b", call.Header.Get("Stripe-Account"))
	_, err = gateway.Stripe.Fetch.Call(source, gateway.Object{Kind: "charge", ID: "../ch_1"})
	require.Error(t, err)
	snapshot := sample(t, gateway.SampleRequest{Source: source, Type: "charge.captured"})
	objects, err := gateway.Stripe.Objects(source, deliver(t, source, snapshot))
	require.NoError(t, err)
	require.Empty(t, objects, "a snapshot event says everything itself")
}

// TestStripeAnswersMeanTheSame: what an object says when it is asked for is what
// the event that carries it says, but for the time.
func TestStripeAnswersMeanTheSame(t *testing.T) {
	t.Parallel()
	// The event knows more than its object: the session of a delayed method that
	// failed says "unpaid", an expired charge only that it is not captured, an
	// invoice that it is open.
	knowsMore := map[string]bool{
		"checkout.session.async_payment_failed": true, "charge.expired": true, "invoice.payment_failed": true,
	}
	source := askingStripe()
	for _, typ := range gateway.Stripe.Types(source) {
		r := gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7", Ref: "dp_7", Payment: "pi_7", At: now}
		object, answer, err := gateway.Stripe.Fetch.Sample(r)
		require.NoError(t, err)
		evs, err := gateway.Stripe.Fetched(source, object, gateway.Answer{Body: answer, Started: now})
		require.NoError(t, err)
		require.Len(t, evs, 1)
		require.Empty(t, evs[0].Broken, typ.Name)
		want := sampled(t, r)
		if !knowsMore[typ.Name] {
			require.Equal(t, want.Facts, evs[0].Facts, typ.Name)
			require.Equal(t, want.Payment, evs[0].Payment, typ.Name)
			require.Equal(t, want.Reference, evs[0].Reference, typ.Name)
		}
		r.Mode = gateway.Live
		_, answer, err = gateway.Stripe.Fetch.Sample(r)
		require.NoError(t, err)
		evs, err = gateway.Stripe.Fetched(source, object, gateway.Answer{Body: answer, Started: now})
		if err != nil {
			require.Contains(t, typ.Name, "checkout.session", "only sessions have the mode in their id")
			continue
		}
		for _, f := range evs[0].Facts {
			require.Equal(t, order.MisfitMode, f.Misfit, typ.Name)
		}
	}
}

// TestStripeThinFlow: a story told by thin events, asked in any order of calls.
func TestStripeThinFlow(t *testing.T) {
	t.Parallel()
	source := askingStripe()
	var evs []order.Event
	for i, typ := range []string{"payment_intent.amount_capturable_updated", "payment_intent.succeeded", "charge.succeeded", "refund.created", "charge.dispute.created"} {
		r := gateway.SampleRequest{Source: source, Type: typ, Reference: "ord_7"}
		if typ == "refund.created" {
			r.Amount = order.Amount{Minor: 1000, Currency: "EUR"}
		}
		object, answer, err := gateway.Stripe.Fetch.Sample(r)
		require.NoError(t, err)
		got, err := gateway.Stripe.Fetched(source, object, gateway.Answer{Body: answer, Started: now.Add(time.Duration(i) * time.Minute)})
		require.NoError(t, err)
		evs = append(evs, got...)
	}
	permute(evs, func(evs []order.Event) {
		v := fold(evs)
		require.Equal(t, "disputed 5000-1000-0 pause", fmt.Sprintf("%s %d-%d-%d %s", v.State, v.Captured, v.Refunded, v.Lost, v.Want), "in the order %v", types(evs))
	})
}
