package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

var _ = conforms("adyen", conformance{
	source:      ptr(adyenSource()),
	bare:        ptr(bareAdyen()),
	variants:    map[string]gateway.Source{"basic": adyenSource(), "bare": bareAdyen(), "manual": manualAdyen()},
	volatile:    map[string]string{"reason": "again", "operations": `["REFUND"]`},
	unknownType: map[string]string{"eventCode": "REPORT_AVAILABLE"},
	amount:      "amount.value",
	currency:    "amount.currency",
	typ:         "AUTHORISATION",
	strict:      true,
})

func TestAdyenEventID(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: adyenSource(), Type: "CAPTURE", Payment: "PAY1", Ref: "CAP1", At: now}
	require.Equal(t, "CAP1:CAPTURE:true:2026-01-01T09:00:00Z", sampled(t, r).ID)
	require.Equal(t, []string{"PAY1"}, sampled(t, r).Payment)

	r.Set = set("eventDate", "2026-01-01T10:00:00+01:00") // the same moment, written elsewhere
	require.Equal(t, "CAP1:CAPTURE:true:2026-01-01T09:00:00Z", sampled(t, r).ID)
	r.Set = set("eventDate", "2026-01-01T09:00:00.125Z")
	require.Equal(t, "CAP1:CAPTURE:true:2026-01-01T09:00:00.125Z", sampled(t, r).ID)
	r.Set = set("success", "false")
	require.Equal(t, "CAP1:CAPTURE:false:2026-01-01T09:00:00Z", sampled(t, r).ID)

	r.Source, r.Set = bareAdyen(), nil
	require.Equal(t, "CAP1:CAPTURE:true", sampled(t, r).ID)
	require.True(t, sampled(t, r).At.IsZero(), "a time that nobody vouches for")

	r.Ref = strings.Repeat("x", 512)
	long := sampled(t, r)
	require.True(t, strings.HasPrefix(long.ID, "item:"))
	require.NotEmpty(t, long.Facts)
	r.Ref = strings.Repeat("x", 511) + "y"
	require.NotEqual(t, long.ID, sampled(t, r).ID)
}

func TestAdyenDates(t *testing.T) {
	t.Parallel()
	for _, date := range []string{`null`, `""`, `"yesterday"`, `1767258000`, `"2026-01-01 09:00:00"`, `"1969-12-31T00:00:00Z"`, `"2026-01-01T09:00:00Z","eventDate":"2026-01-01T09:00:01Z"`} {
		body := sample(t, gateway.SampleRequest{Source: adyenSource(), Type: "CAPTURE", At: now})
		text := strings.Replace(string(body), `"eventDate":"2026-01-01T09:00:00+00:00"`, `"eventDate":`+date, 1)
		require.NotEqual(t, string(body), text)
		ev := mapped(t, adyenSource(), text)
		require.NotEmpty(t, ev.Broken, "the order of events cannot be told from %s", date)

		ev = mapped(t, bareAdyen(), text)
		require.Empty(t, ev.Broken, "a field that is not believed cannot break")
		require.Equal(t, int64(1), ev.Facts[0].Seq)
	}
	// Disputes go by their stage, with or without dates.
	ev := sampled(t, gateway.SampleRequest{Source: adyenSource(), Type: "SECOND_CHARGEBACK", Set: set("eventDate", "null")})
	require.Empty(t, ev.Broken)
	require.Equal(t, int64(4), ev.Facts[0].Seq)
}

func TestAdyenModeAndAccount(t *testing.T) {
	t.Parallel()
	live := adyenSource()
	live.Mode = gateway.Live
	any := adyenSource()
	any.MerchantAccounts = nil
	two := adyenSource()
	two.MerchantAccounts = []string{"A", "ExampleShopECOM"}
	for _, tt := range []struct {
		name   string
		source gateway.Source
		set    map[string]string
		want   order.Misfit
	}{
		{"Ours", adyenSource(), nil, ""},
		{"LiveOnTest", adyenSource(), set("live", "true"), order.MisfitMode},
		{"TestOnLive", live, set("live", "false"), order.MisfitMode},
		{"LiveOnLive", live, nil, ""},
		{"BooleanOnLive", live, set("live", `{"x":true}`), order.MisfitMode},
		{"NullOnTest", adyenSource(), set("live", "null"), order.MisfitMode},
		{"OtherCase", live, set("live", "True"), order.MisfitMode},
		{"OtherAccount", adyenSource(), set("merchantAccountCode", "SomebodyElse"), order.MisfitAccount},
		{"NoAccount", adyenSource(), set("merchantAccountCode", "null"), order.MisfitAccount},
		{"AnyAccount", any, set("merchantAccountCode", "SomebodyElse"), ""},
		{"SecondAccount", two, set("merchantAccountCode", "ExampleShopECOM"), ""},
		{"BothWrong", adyenSource(), map[string]string{"live": "true", "merchantAccountCode": "X"}, order.MisfitMode},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, typ := range gateway.Adyen.Types(tt.source) {
				ev := sampled(t, gateway.SampleRequest{Source: tt.source, Type: typ.Name, Reference: "ord_7", Set: tt.set})
				require.NotEmpty(t, ev.Facts)
				for _, f := range ev.Facts {
					require.Equal(t, tt.want, f.Misfit, typ.Name)
				}
				require.Equal(t, tt.want == "" && typ.Name == "AUTHORISATION", ev.Own != nil)
			}
		})
	}
	body := sample(t, gateway.SampleRequest{Source: adyenSource(), Type: "AUTHORISATION"})
	ev := mapped(t, adyenSource(), strings.Replace(string(body), `"live":"false"`, `"live":"false","live":"false"`, 1))
	require.Equal(t, order.MisfitMode, ev.Facts[0].Misfit, "two live are as unclear as none")
}

func TestAdyenStrength(t *testing.T) {
	t.Parallel()
	for _, typ := range gateway.Adyen.Types(adyenSource()) {
		ev := sampled(t, gateway.SampleRequest{Source: adyenSource(), Type: typ.Name, Reference: "ord_7", Payment: "PAY1"})
		want := order.StrengthModification
		switch typ.Name {
		case "AUTHORISATION", "PENDING", "OFFER_CLOSED":
			want = order.StrengthPayment
		}
		require.Equal(t, want, ev.Strength, typ.Name)
		require.Equal(t, []string{"PAY1"}, ev.Payment, typ.Name)
		require.Equal(t, "ord_7", ev.Reference)
	}
	s := adyenSource()
	s.Reference = "/originalReference"
	require.NoError(t, gateway.Adyen.Check(s))
	ev := sampled(t, gateway.SampleRequest{Source: s, Type: "CAPTURE", Reference: "ord_7", Payment: "PAY1"})
	require.Equal(t, "PAY1", ev.Reference)
}

// TestAdyenUnsuccessful: what did not happen is no fact, or says so; what was
// undone and what was lost counts whatever success says.
func TestAdyenUnsuccessful(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"AUTHORISATION": "phase failed", "PENDING": "", "OFFER_CLOSED": "", "CAPTURE": "captured denied", "CAPTURE_FAILED": "captured failed",
		"CANCELLATION": "", "TECHNICAL_CANCEL": "", "CANCEL_OR_REFUND": "", "EXPIRE": "", "REFUND": "refunded denied",
		"REFUND_FAILED": "refunded failed", "REFUNDED_REVERSED": "refunded failed", "REQUEST_FOR_INFORMATION": "disputed open",
		"NOTIFICATION_OF_CHARGEBACK": "disputed open", "CHARGEBACK": "disputed open", "CHARGEBACK_REVERSED": "", "PREARBITRATION_WON": "",
		"PREARBITRATION_LOST": "disputed lost", "SECOND_CHARGEBACK": "disputed lost",
	}
	for _, typ := range gateway.Adyen.Types(adyenSource()) {
		expected, ok := want[typ.Name]
		require.True(t, ok, typ.Name)
		ev := sampled(t, gateway.SampleRequest{Source: adyenSource(), Type: typ.Name, Set: set("success", "false")})
		require.Empty(t, ev.Broken)
		if expected == "" {
			require.Equal(t, gateway.NoFact, ev.Ignored, typ.Name)
			continue
		}
		require.Len(t, ev.Facts, 1, typ.Name)
		require.Equal(t, expected, string(ev.Facts[0].Kind)+" "+string(ev.Facts[0].Status), typ.Name)
	}
}

// TestAdyenBatch: an item that cannot be understood is quarantined by itself,
// under an id that its repetitions share.
func TestAdyenBatch(t *testing.T) {
	t.Parallel()
	good := sample(t, gateway.SampleRequest{Source: adyenSource(), Type: "AUTHORISATION", Payment: "PAY1", Reference: "ord_7"})
	item := string(good)[strings.Index(string(good), `{"NotificationRequestItem"`) : len(good)-2]
	odd := strings.Replace(item, `"pspReference":"PAY1"`, `"pspReference":null`, 1)
	odder := strings.Replace(odd, `"ord_7"`, `"ord_8"`, 1)
	body := `{"live":"false","notificationItems":[` + strings.Join([]string{odd, item, odder, strings.Replace(odd, "visa", "mc", 1)}, ",") + `]}`
	evs := events(t, adyenSource(), []byte(body))
	require.Len(t, evs, 4)
	require.Empty(t, evs[1].Broken)
	require.Equal(t, "ord_7", evs[1].Reference)
	require.NotEmpty(t, evs[0].Broken)
	require.NotEmpty(t, evs[2].Broken)
	require.NotEqual(t, evs[0].ID, evs[2].ID)
	require.Equal(t, evs[0].ID, evs[3].ID, "the id is of what is signed")
	again := events(t, adyenSource(), []byte(body))
	require.Equal(t, evs, again)
}

// TestAdyenEnvelope: what the verifier would refuse is unreadable, not a panic.
func TestAdyenEnvelope(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, `{"notificationItems":null}`, `{"notificationItems":[]}`, `{"notificationItems":{}}`, `{"notificationItems":"x"}`,
		`{"notificationItems":[{}],"notificationItems":[]}`,
	} {
		_, err := gateway.Adyen.Events(adyenSource(), gateway.Delivery{Body: []byte(body)})
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, body)
		require.True(t, gateway.Adyen.QuarantineUnreadable)
	}
	for _, item := range []string{`null`, `7`, `{}`, `[]`, `{"NotificationRequestItem":null}`, `{"NotificationRequestItem":[]}`, `{"NotificationRequestItem":{},"NotificationRequestItem":{}}`} {
		evs, err := gateway.Adyen.Events(adyenSource(), gateway.Delivery{Body: []byte(`{"live":"false","notificationItems":[` + item + `]}`)})
		require.NoError(t, err, item)
		require.Len(t, evs, 1)
		require.NotEmpty(t, evs[0].Broken, item)
		require.NotEmpty(t, evs[0].ID)
	}
}

// TestAdyenUnreadableItems: each has an id of its own.
func TestAdyenUnreadableItems(t *testing.T) {
	t.Parallel()
	body := `{"live":"false","notificationItems":[7,{"a":1},{"a":2},{"a":1}]}`
	evs, err := gateway.Adyen.Events(adyenSource(), gateway.Delivery{Body: []byte(body)})
	require.NoError(t, err)
	require.NotEqual(t, evs[0].ID, evs[1].ID)
	require.NotEqual(t, evs[1].ID, evs[2].ID)
	require.Equal(t, evs[1].ID, evs[3].ID)
}

// TestAdyenDisputeStatus: a chargeback is open while it can be defended, and
// only if the sender is known.
func TestAdyenDisputeStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]order.Status{
		`"Undefended"`: order.StatusOpen, `"Pending"`: order.StatusOpen, `"Responded"`: order.StatusOpen, `"Accepted"`: order.StatusLost,
		`"Lost"`: order.StatusLost, `"Expired"`: order.StatusLost, `"undefended"`: order.StatusLost, `null`: order.StatusLost, `{}`: order.StatusLost,
	} {
		r := gateway.SampleRequest{Source: adyenSource(), Type: "CHARGEBACK", Set: set("additionalData", `{"disputeStatus":`+status+`}`)}
		require.Equal(t, want, sampled(t, r).Facts[0].Status, status)
		r.Source = bareAdyen()
		require.Equal(t, order.StatusLost, sampled(t, r).Facts[0].Status, status)
	}
	for action, want := range map[string]string{
		`"cancel"`: "phase captured", `"refund"`: "refunded", `"other"`: "phase refunded", `null`: "phase refunded", `7`: "phase refunded",
	} {
		r := gateway.SampleRequest{Source: adyenSource(), Type: "CANCEL_OR_REFUND", Set: set("additionalData", `{"modification.action":`+action+`}`)}
		require.Equal(t, want, kinds(sampled(t, r)), action)
		r.Source = bareAdyen()
		require.Equal(t, "phase refunded", kinds(sampled(t, r)), action)
	}
}

func kinds(ev order.Event) string {
	var out []string
	for _, f := range ev.Facts {
		out = append(out, string(f.Kind))
	}
	return strings.Join(out, " ")
}

// TestAdyenNeedsBothProofs: the HMAC does not cover the sender, and the
// credentials do not cover the item.
func TestAdyenNeedsBothProofs(t *testing.T) {
	t.Parallel()
	s := adyenSource()
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "AUTHORISATION"}))

	bad := d
	bad.Header = d.Header.Clone()
	bad.Header.Del("Authorization")
	require.Equal(t, signature.Missing, signature.ReasonOf(gateway.Adyen.Verify(s, bad, now)))
	bad.Header.Set("Authorization", "Basic aG9va3M6d3Jvbmc=")
	require.Equal(t, signature.Mismatch, signature.ReasonOf(gateway.Adyen.Verify(s, bad, now)))
	require.NoError(t, gateway.Adyen.Verify(bareAdyen(), bad, now), "a source without credentials does not look at them")

	bad = d
	bad.Body = []byte(strings.Replace(string(d.Body), "5000", "9000", 1))
	require.Equal(t, signature.Mismatch, signature.ReasonOf(gateway.Adyen.Verify(s, bad, now)))
}
