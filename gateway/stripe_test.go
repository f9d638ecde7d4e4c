package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("stripe", conformance{
	source:      ptr(stripeSource()),
	volatile:    map[string]string{"pending_webhooks": "7", "request": `{"id":"req_2","idempotency_key":"k2"}`},
	unknownType: map[string]string{"type": "product.updated"},
	amount:      "data.object.amount_received",
	currency:    "data.object.currency",
	typ:         "payment_intent.succeeded",
})

func TestStripeModeAndAccount(t *testing.T) {
	t.Parallel()
	connect := stripeSource()
	connect.StripeAccount = "acct_1Connected"
	live := stripeSource()
	live.Mode = gateway.Live
	for _, tt := range []struct {
		name   string
		source gateway.Source
		set    map[string]string
		want   order.Misfit
	}{
		{"Ours", stripeSource(), nil, ""},
		{"LiveOnTest", stripeSource(), set("livemode", "true"), order.MisfitMode},
		{"TestOnLive", live, set("livemode", "false"), order.MisfitMode},
		{"LiveOnLive", live, nil, ""},
		{"TextTrueOnLive", live, set("livemode", `"true"`), order.MisfitMode},
		{"TextFalseOnTest", stripeSource(), set("livemode", `"false"`), order.MisfitMode},
		{"NullOnTest", stripeSource(), set("livemode", "null"), order.MisfitMode},
		{"ZeroOnTest", stripeSource(), set("livemode", "0"), order.MisfitMode},
		{"AccountOnPlatform", stripeSource(), set("account", `"acct_T9"`), order.MisfitAccount},
		{"NullAccountOnPlatform", stripeSource(), set("account", "null"), ""},
		{"EmptyAccountOnPlatform", stripeSource(), set("account", `""`), order.MisfitAccount},
		{"NumberAccountOnPlatform", stripeSource(), set("account", "7"), order.MisfitAccount},
		{"ConnectedAccount", connect, nil, ""},
		{"NoAccountOnConnected", connect, set("account", "null"), order.MisfitAccount},
		{"OtherAccountOnConnected", connect, set("account", `"acct_1Other"`), order.MisfitAccount},
		{"BothWrong", connect, map[string]string{"account": "null", "livemode": "true"}, order.MisfitMode},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ev := sampled(t, gateway.SampleRequest{
				Source: tt.source, Type: "payment_intent.succeeded", Reference: "ord_7", Set: tt.set,
			})
			require.Len(t, ev.Facts, 1)
			require.Equal(t, tt.want, ev.Facts[0].Misfit)
			require.Equal(t, tt.want == "", ev.Own != nil, "an amount that must not count could make an order")
			require.Equal(t, "ord_7", ev.Reference, "the flag must find its order")
		})
	}
}

func TestRealm(t *testing.T) {
	t.Parallel()
	connect := stripeSource()
	connect.StripeAccount = "acct_1Connected"
	for want, source := range map[string]gateway.Source{
		"stripe:test": stripeSource(), "stripe:acct_1Connected:test": connect, "adyen:test": adyenSource(), "standard:test": standardSource(),
	} {
		require.Equal(t, want, of(t, source).Realm(source))
		live := source
		live.Mode = gateway.Live
		require.Equal(t, strings.Replace(want, ":test", ":live", 1), of(t, live).Realm(live))
		// The realm is the source's, also of an event of the other mode.
		ev := sampled(t, gateway.SampleRequest{Source: source, Type: of(t, source).Types(source)[0].Name, Mode: gateway.Live})
		require.Equal(t, want, ev.Realm)
	}
}

func TestStripeReference(t *testing.T) {
	t.Parallel()
	const meta, client = "data.object.metadata", "data.object.client_reference_id"
	first := func(set map[string]string) map[string]string {
		set["data.object.billing_reason"] = "subscription_create"
		return set
	}
	for _, tt := range []struct {
		name, typ string
		pointer   string
		set       map[string]string
		want      string
	}{
		{"OrderID", "payment_intent.succeeded", "", set(meta, `{"order_id":"a","external_ref":"b"}`), "a"},
		{"ExternalRef", "payment_intent.succeeded", "", set(meta, `{"external_ref":"b"}`), "b"},
		{"EmptyOrderID", "payment_intent.succeeded", "", set(meta, `{"order_id":"","external_ref":"b"}`), "b"},
		{"NumberIsNone", "payment_intent.succeeded", "", set(meta, `{"order_id":7}`), ""},
		{"NoMetadata", "payment_intent.succeeded", "", set(meta, `null`), ""},
		{"MetadataBeforeClientReference", "checkout.session.completed", "", map[string]string{meta: `{"order_id":"a"}`, client: "c"}, "a"},
		{"ClientReferenceBeforeExternalRef", "checkout.session.completed", "", map[string]string{meta: `{"external_ref":"b"}`, client: "c"}, "c"},
		{"ClientReferenceOfSessionsOnly", "payment_intent.succeeded", "", map[string]string{meta: `{}`, client: "c"}, ""},
		{"FirstInvoiceOfASubscription", "invoice.paid", "", first(map[string]string{
			meta: `{}`, "data.object.parent": `{"subscription_details":{"metadata":{"order_id":"s"}}}`,
		}), "s"},
		{"FirstInvoiceBeforeBasil", "invoice.paid", "", first(map[string]string{
			meta: `{}`, "data.object.subscription_details": `{"metadata":{"external_ref":"s"}}`,
		}), "s"},
		{"OwnMetadataOfAnInvoice", "invoice.paid", "", first(map[string]string{
			meta: `{"external_ref":"i"}`, "data.object.parent": `{"subscription_details":{"metadata":{"order_id":"s"}}}`,
		}), "i"},
		{"RenewalHasNoOrder", "invoice.paid", "", map[string]string{
			meta: `{}`, "data.object.billing_reason": "subscription_cycle",
			"data.object.parent": `{"subscription_details":{"metadata":{"order_id":"s"}}}`,
		}, ""},
		{"Pointer", "payment_intent.succeeded", "/data/object/metadata/our~1ref", set(meta, `{"order_id":"a","our/ref":"p"}`), "p"},
		{"PointerToANumber", "payment_intent.succeeded", "/data/object/metadata/n", set(meta, `{"n":9007199254740993}`), "9007199254740993"},
		{"PointerIntoAList", "payment_intent.succeeded", "/data/object/payment_method_types/1", set("data.object.payment_method_types", `["card","ref_1"]`), "ref_1"},
		{"PointerToNothing", "payment_intent.succeeded", "/data/object/metadata/nothing", set(meta, `{"order_id":"a"}`), ""},
		{"PointerThroughText", "payment_intent.succeeded", "/type/x", set(meta, `{"order_id":"a"}`), ""},
		{"PointerToAFraction", "payment_intent.succeeded", "/data/object/metadata/n", set(meta, `{"n":1.5}`), ""},
		{"PointerWithALeadingZero", "payment_intent.succeeded", "/data/object/payment_method_types/00", nil, ""},
		{"PointerPastTheList", "payment_intent.succeeded", "/data/object/payment_method_types/1", nil, ""},
		{"PointerWithEscapedTilde", "payment_intent.succeeded", "/data/object/metadata/~01", set(meta, `{"~1":"a","/":"b"}`), "a"},
		{"TooLong", "payment_intent.succeeded", "", set(meta, `{"order_id":"`+strings.Repeat("x", 256)+`"}`), ""},
		{"AsLongAsCanBe", "payment_intent.succeeded", "", set(meta, `{"order_id":"`+strings.Repeat("x", 255)+`"}`), strings.Repeat("x", 255)},
		{"LineBreak", "payment_intent.succeeded", "", set(meta, `{"order_id":"a\nb"}`), ""},
		{"Unicode", "payment_intent.succeeded", "", set(meta, `{"order_id":"Bestellung №7 – ü"}`), "Bestellung №7 – ü"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stripeSource()
			s.Reference = tt.pointer
			ev := sampled(t, gateway.SampleRequest{Source: s, Type: tt.typ, Set: tt.set})
			require.Empty(t, ev.Broken)
			require.Equal(t, tt.want, ev.Reference)
			if tt.want == "" {
				require.Zero(t, ev.Strength)
			} else {
				require.Equal(t, order.StrengthPayment, ev.Strength)
			}
		})
	}
}

func TestReferencePattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, reference, want string }{
		{"", "ord_7", "ord_7"},
		{`^ord_\d+$`, "ord_7", "ord_7"},
		{`^ord_\d+$`, "3546900", ""},
		{`^shop-a:(.+)$`, "shop-a:ord_7", "ord_7"},
		{`^shop-a:(.+)$`, "shop-b:ord_7", ""},
		{`^shop-a:(.*)$`, "shop-a:", ""},
		{`\d+`, "ord_7", "7"},
		{`^(?:a|b)-(\d+)$`, "b-7", "7"},
	} {
		for _, source := range []gateway.Source{stripeSource(), adyenSource(), standardSource()} {
			s := source
			s.ReferencePattern = tt.pattern
			g := of(t, s)
			require.NoError(t, g.Check(s))
			typ := map[string]string{"stripe": "payment_intent.succeeded", "adyen": "AUTHORISATION", "standard": "payment.succeeded"}[g.Name]
			ev := sampled(t, gateway.SampleRequest{Source: s, Type: typ, Reference: tt.reference})
			require.Equal(t, tt.want, ev.Reference, "%s %q", g.Name, tt.pattern)
			require.Equal(t, tt.want == "", ev.Strength == 0)
			require.NotEmpty(t, ev.Facts, "an event without our reference is still about its payment")
		}
	}
}

// TestStripeStrength: only the payment's own events may make an order.
func TestStripeStrength(t *testing.T) {
	t.Parallel()
	for _, typ := range gateway.Stripe.Types(stripeSource()) {
		ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: typ.Name, Reference: "ord_7"})
		want := order.StrengthPayment
		if strings.Contains(typ.Name, "refund") || strings.Contains(typ.Name, "dispute") {
			want = order.StrengthModification
			require.Nil(t, ev.Own, "%s: an amount that is not the payment's own", typ.Name)
		}
		if typ.Name == "invoice_payment.paid" {
			require.Empty(t, ev.Reference)
			continue
		}
		require.Equal(t, want, ev.Strength, typ.Name)
	}
}

// TestStripeReleased: only versions before 2025-03-31 book the uncaptured rest
// as a refund, and an unknown version is not taken for one of them.
func TestStripeReleased(t *testing.T) {
	t.Parallel()
	for version, released := range map[string]bool{
		`"2024-06-20"`: true, `"2025-03-30.preview"`: true, `"2025-02-24.acacia"`: true, `"2011-01-01"`: true,
		`"2025-03-31.basil"`: false, `"2025-03-31"`: false, `"2031-01-01.future"`: false, `null`: false, `""`: false, `"old"`: false,
		`"0000000000000"`: false, `7`: false,
	} {
		ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.captured", Set: map[string]string{
			"api_version": version, "data.object.amount_captured": "2000", "data.object.amount_refunded": "3000",
		}})
		want := []order.Fact{
			{Kind: order.KindCaptured, Amount: 2000, Currency: "EUR"}, {Kind: order.KindRefunded, Amount: 3000, Currency: "EUR"},
		}
		if released {
			want = append(want, order.Fact{Kind: order.KindReleased, Amount: 3000, Currency: "EUR"})
		}
		require.Equal(t, want, ev.Facts, version)
	}
}

// TestStripeChargeThatIsNoMoney: an authorisation, and a debit under way.
func TestStripeChargeThatIsNoMoney(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]map[string]string{
		"Authorised": {"data.object.captured": "false"},
		"Pending":    {"data.object.status": "pending"},
		"Failed":     {"data.object.status": "failed"},
	} {
		for _, typ := range []string{"charge.succeeded", "charge.captured", "charge.refunded"} {
			ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: typ, Reference: "ord_7", Set: set})
			require.Empty(t, ev.Facts, name)
			require.Empty(t, ev.Ignored, "it joins the ids of the charge and its intent")
			require.Len(t, ev.Payment, 2)
		}
	}
	lone := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded", Payment: "ch_1", Set: map[string]string{
		"data.object.captured": "false", "data.object.metadata": "{}",
	}})
	require.Equal(t, gateway.NoFact, lone.Ignored, "one id and no reference say nothing")
}

// TestStripeRefundedWithoutTotal: an event about a refund that does not say how
// much is not taken for one that refunds nothing.
func TestStripeRefundedWithoutTotal(t *testing.T) {
	t.Parallel()
	ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.refunded", Set: set("data.object.amount_refunded", "null")})
	require.Contains(t, ev.Broken, "amount_refunded")
	ev = sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded", Set: set("data.object.amount_refunded", "null")})
	require.Empty(t, ev.Broken)
}

// TestStripeExpandedIDs: what names another object may hold it.
func TestStripeExpandedIDs(t *testing.T) {
	t.Parallel()
	ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded", Set: set("data.object.payment_intent", `{"id":"pi_9","object":"payment_intent"}`)})
	require.Equal(t, "pi_9", ev.Payment[0])
	for _, bad := range []string{`7`, `["pi_9"]`, `{"object":"payment_intent"}`, `{"id":"pi_9","id":"pi_8"}`, `{"id":7}`, `"pi_\u0000"`, `"pi_\ud800"`, `""`} {
		body := sample(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded", Payment: "pi_THEID"})
		ev := event(t, stripeSource(), []byte(strings.Replace(string(body), `"pi_THEID"`, bad, 1)))
		require.NotEmpty(t, ev.Broken, bad)
	}
}

// TestStripeEventID: without one that can be kept there is nothing to keep.
func TestStripeEventID(t *testing.T) {
	t.Parallel()
	body := sample(t, gateway.SampleRequest{Source: stripeSource(), Type: "payment_intent.succeeded", ID: "evt_THEID"})
	for id, code := range map[string]string{
		`null`: "no_event_id", `7`: "no_event_id", `""`: "no_event_id", `"a\u0000b"`: "no_event_id", `"a\nb"`: "no_event_id",
		`"\ud800"`: "no_event_id", `"` + strings.Repeat("x", 513) + `"`: "no_event_id", `"evt_1","id":"evt_2"`: "duplicate_key",
		`"evt_1","i\u0064":"evt_2"`: "duplicate_key",
	} {
		_, err := gateway.Stripe.Events(stripeSource(), deliver(t, stripeSource(), []byte(strings.Replace(string(body), `"evt_THEID"`, id, 1))))
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, id)
		require.Equal(t, code, parse.Code, id)
	}
	ev := event(t, stripeSource(), []byte(strings.Replace(string(body), "evt_THEID", "evt_1#0123456789abcdef0123456789abcdef", 1)))
	require.Equal(t, "evt_1%230123456789abcdef0123456789abcdef", ev.ID, "an id that looks like one of ours for a second meaning")
	require.Equal(t, ev.ID, order.BaseID(ev.ID))
}

// TestStripeType: a type that is missing, or too long for a table, is unreadable.
func TestStripeType(t *testing.T) {
	t.Parallel()
	body := sample(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded"})
	for _, typ := range []string{`null`, `""`, `7`, `"a\u0000"`, `"` + strings.Repeat("x", 257) + `"`} {
		ev := event(t, stripeSource(), []byte(strings.Replace(string(body), `"type":"charge.succeeded"`, `"type":`+typ, 1)))
		require.Equal(t, "unreadable", ev.Type)
		require.NotEmpty(t, ev.Broken)
	}
	ev := event(t, stripeSource(), []byte(strings.Replace(string(body), `"type":"charge.succeeded"`, `"type":"`+strings.Repeat("x", 256)+`"`, 1)))
	require.Equal(t, gateway.UnknownType, ev.Ignored)
}

// TestDepthCountsNoText: brackets inside a text are text.
func TestDepthCountsNoText(t *testing.T) {
	t.Parallel()
	body := sample(t, gateway.SampleRequest{Source: stripeSource(), Type: "charge.succeeded", Set: map[string]string{
		"data.object.description": `"\"` + strings.Repeat("[", 200) + `\\"`, "data.object.statement_descriptor": strings.Repeat("{", 200),
	}})
	require.Contains(t, string(body), `"\"[[`)
	require.Empty(t, event(t, stripeSource(), body).Broken)
}

// TestStripeThinEvents are pointers, whatever type they name.
func TestStripeThinEvents(t *testing.T) {
	t.Parallel()
	ev := event(t, stripeSource(), []byte(`{"id":"evt_test_1","object":"v2.core.event","type":"payment_intent.succeeded",
		"created":"2026-01-01T09:00:00.000Z","livemode":false,"data":{"object":{"id":"pi_1","amount_received":5000,"currency":"eur"}}}`))
	require.Equal(t, gateway.NeedsFetch, ev.Ignored)
	require.Empty(t, ev.Facts)
	require.Equal(t, now, ev.At)
}

// TestStripeTime: an event without a time still tells of money, and not of what
// needs an order of its own.
func TestStripeTime(t *testing.T) {
	t.Parallel()
	for _, created := range []string{"null", `"1767258000"`, "-1", "0", "1.5", "253402300800", "99999999999999999999"} {
		ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "payment_intent.succeeded", Set: set("created", created)})
		require.Empty(t, ev.Broken, created)
		require.True(t, ev.At.IsZero(), created)
		require.NotEmpty(t, ev.Facts)
		for _, typ := range []string{"payment_intent.canceled", "charge.dispute.created", "payment_intent.amount_capturable_updated"} {
			ev = sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: typ, Set: set("created", created)})
			require.NotEmpty(t, ev.Broken, "%s created %s", typ, created)
		}
	}
}
