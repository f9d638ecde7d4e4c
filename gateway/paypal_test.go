package gateway_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

var _ = conforms("paypal", conformance{
	keys:        []string{paypalCertificate()},
	volatile:    map[string]string{"summary": "again", "zts": "1767258001"},
	unknownType: map[string]string{"event_type": "BILLING.SUBSCRIPTION.CREATED"},
	typ:         "PAYMENT.CAPTURE.COMPLETED",
	amount:      "resource.amount.value",
	currency:    "resource.amount.currency_code",
	badAmounts:  decimals,
	noMode:      true, // webhook_id tells, which is signed
	alone:       []string{"PAYMENT.AUTHORIZATION.CREATED", "PAYMENT.AUTHORIZATION.VOIDED"},
	object: func(body []byte) gateway.Object {
		o := gateway.Object{Kind: "capture", ID: gjson.GetBytes(body, "id").String()}
		switch {
		case gjson.GetBytes(body, "purchase_units").Exists():
			o.Kind = "order"
		case gjson.GetBytes(body, "expiration_time").Exists():
			o.Kind = "authorization"
		}
		return o
	},
})

// paypalCertificate is what the network would have found.
func paypalCertificate() string {
	pem, err := os.ReadFile("example/paypal-cert.pem")
	if err != nil {
		panic(err)
	}
	return string(pem)
}

func paypalSource() gateway.Source {
	s := gateway.PayPal.Example("main")
	s.ID = "paypal"
	return s
}

func TestPayPalCertificateURL(t *testing.T) {
	t.Parallel()
	live := paypalSource()
	live.Mode = gateway.Live
	const (
		ours    = "https://api.paypal.com/v1/notifications/certs/CERT-1a"
		sandbox = "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1a"
	)
	for _, tt := range []struct {
		name   string
		source gateway.Source
		urls   []string
		want   signature.Reason
	}{
		{"Live", live, []string{ours}, ""},
		{"Sandbox", paypalSource(), []string{sandbox}, ""},
		{"SandboxOnALiveSource", live, []string{sandbox}, signature.Malformed},
		{"None", live, nil, signature.Missing},
		{"Two", live, []string{ours, ours}, signature.Ambiguous},
		{"HTTP", live, []string{"http" + strings.TrimPrefix(ours, "https")}, signature.Malformed},
		{"Port", live, []string{"https://api.paypal.com:443/v1/notifications/certs/CERT-1a"}, signature.Malformed},
		{"User", live, []string{"https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1a"}, signature.Malformed},
		{"Host", live, []string{"https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1a"}, signature.Malformed},
		{"OtherHostOfPayPal", live, []string{"https://www.paypal.com/v1/notifications/certs/CERT-1a"}, signature.Malformed},
		{"Path", live, []string{"https://api.paypal.com/v1/other/CERT-1a"}, signature.Malformed},
		{"Dots", live, []string{ours + "/../../../../evil"}, signature.Malformed},
		{"EncodedDots", live, []string{ours + "/%2e%2e/evil"}, signature.Malformed},
		{"Query", live, []string{ours + "?a=b"}, signature.Malformed},
		{"Fragment", live, []string{ours + "#a"}, signature.Malformed},
		{"Upper", live, []string{strings.ToUpper(ours)}, signature.Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := gateway.Delivery{Header: http.Header{"Paypal-Cert-Url": tt.urls}}
			ref, err := gateway.PayPal.Remote.Key(tt.source, d)
			if tt.want != "" {
				require.Equal(t, tt.want, signature.ReasonOf(err))
				require.Empty(t, ref)
				return
			}
			require.NoError(t, err)
			require.Equal(t, gateway.KeyRef{URL: tt.urls[0], CommonName: ".paypal.com"}, ref)
		})
	}
}

// TestPayPalExample: what the example names is what verifies, and nothing else.
func TestPayPalExample(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "PAYMENT.CAPTURE.COMPLETED"}))
	want, found := gateway.PayPal.Remote.Example(s)
	got, err := gateway.PayPal.Remote.Key(s, d)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, paypalCertificate(), string(found))
	require.NoError(t, gateway.PayPal.Verify(s, d, now, string(found)))
	require.Equal(t, signature.Mismatch, signature.ReasonOf(gateway.PayPal.Verify(gateway.PayPal.Example("other"), d, now, string(found))))
	require.Equal(t, signature.NoSecret, signature.ReasonOf(gateway.PayPal.Verify(s, d, now)), "without a key nothing is genuine")
	require.NotContains(t, gateway.PayPal.Keep(d.Header), "Paypal-Transmission-Sig", "with it, other bodies could be made")
}

func TestPayPalCheck(t *testing.T) {
	t.Parallel()
	root := paypalSource().RootPEM
	for _, tt := range []struct {
		name   string
		change func(*gateway.Source)
		want   string
	}{
		{"Example", func(*gateway.Source) {}, ""},
		{"ExampleRootLive", func(s *gateway.Source) { s.Mode = gateway.Live }, "root_pem is the root of our example"},
		{"LiveByTheSystemsRoots", func(s *gateway.Source) { s.Mode, s.RootPEM = gateway.Live, "" }, ""},
		{"NoWebhookID", func(s *gateway.Source) { s.WebhookID = "" }, "webhook_id is missing"},
		{"WebhookID", func(s *gateway.Source) { s.WebhookID = "a|b" }, "webhook_id is no id"},
		{"Secrets", func(s *gateway.Source) { s.Secrets = []string{"x"} }, "secrets is no option"},
		{"TwoRoots", func(s *gateway.Source) { s.RootPEM = root + paypalCertificate() }, ""},
		{"NoPEM", func(s *gateway.Source) { s.RootPEM = "api.paypal.com" }, "root_pem is not certificates"},
		{"Rest", func(s *gateway.Source) { s.RootPEM = root + "and more" }, "root_pem is not certificates"},
		{"AKey", func(s *gateway.Source) { s.RootPEM = s.SigningKeys[0] }, "root_pem holds something that is no certificate"},
		{"VerifyBy", func(s *gateway.Source) { s.VerifyBy = "hope" }, "verify_by must be"},
		{"APIWithoutID", func(s *gateway.Source) { s.VerifyBy, s.RootPEM, s.ClientID = "api", "", "" }, "client_id and client_secret are needed"},
		{"APIWithRoot", func(s *gateway.Source) { s.VerifyBy, s.ClientID, s.ClientSecret = "api", "x", "y" }, "root_pem is not used"},
		{"API", func(s *gateway.Source) { s.VerifyBy, s.RootPEM, s.ClientID, s.ClientSecret = "api", "", "x", "y" }, ""},
		{"IDForCalls", func(s *gateway.Source) { s.ClientID, s.ClientSecret = "x", "y" }, ""},
		{"NoApp", func(s *gateway.Source) { s.ClientID, s.ClientSecret = "", "" }, ""},
		{"IDWithoutSecret", func(s *gateway.Source) { s.ClientID, s.ClientSecret = "x", "" }, "client_id and client_secret go together"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := paypalSource()
			tt.change(&s)
			err := gateway.PayPal.Check(s)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestPayPalAsks(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	d := deliver(t, s, []byte(`{"id":"WH-1", "event_type":"X","n":1.50,"e":"\u00e9\/"}`))
	_, ok, err := gateway.PayPal.Remote.Ask(s, d)
	require.NoError(t, err)
	require.False(t, ok, "the certificate is enough")

	s.VerifyBy, s.ClientID, s.ClientSecret = "api", "app", "se:cret"
	call, ok, err := gateway.PayPal.Remote.Ask(s, d)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "/v1/notifications/verify-webhook-signature", call.Path)
	require.Contains(t, string(call.Body), `,"webhook_event":`+string(d.Body)+`}`, "byte for byte")
	var asked map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(call.Body, &asked))
	require.Len(t, asked, 7)
	require.Equal(t, `"`+s.WebhookID+`"`, string(asked["webhook_id"]))
	require.Equal(t, `"`+d.Header.Get("Paypal-Transmission-Sig")+`"`, string(asked["transmission_sig"]))
	require.Equal(t, "/v1/oauth2/token", call.Grant.Path)
	require.Equal(t, "Basic YXBwOnNlOmNyZXQ=", call.Grant.Header.Get("Authorization"))
	require.Equal(t, "https://api-m.sandbox.paypal.com", gateway.PayPal.Remote.BaseURL(s))

	for name, change := range map[string]func(*gateway.Delivery){
		"NotJSON":   func(d *gateway.Delivery) { d.Body = []byte(`{"id":1},"webhook_id":"other"`) },
		"NoSig":     func(d *gateway.Delivery) { d.Header.Del("Paypal-Transmission-Sig") },
		"TwoTimes":  func(d *gateway.Delivery) { d.Header.Add("Paypal-Transmission-Time", "2026-01-01T00:00:00Z") },
		"OtherHost": func(d *gateway.Delivery) { d.Header.Set("Paypal-Cert-Url", "https://evil.example/") },
	} {
		bad := d
		bad.Header = d.Header.Clone()
		change(&bad)
		_, _, err := gateway.PayPal.Remote.Ask(s, bad)
		require.NotEmpty(t, signature.ReasonOf(err), name)
	}

	answered := func(body string) error { return gateway.PayPal.Remote.Answered(gateway.Answer{Body: []byte(body)}) }
	require.NoError(t, answered(`{"verification_status":"SUCCESS"}`))
	require.Equal(t, signature.Mismatch, signature.ReasonOf(answered(`{"verification_status":"FAILURE"}`)))
	for _, body := range []string{`{}`, ``, `{"verification_status":"success"}`, `{"verification_status":true}`, `{"verification_status":"FAILURE","verification_status":"SUCCESS"}`} {
		err := answered(body)
		require.Error(t, err)
		require.Empty(t, signature.ReasonOf(err), "nobody knows")
	}
}

func TestPayPalReference(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.COMPLETED", Reference: "ord_7", Set: set("resource.invoice_id", "inv_1")}
	require.Equal(t, "ord_7", sampled(t, r).Reference)
	r.Reference = ""
	require.Equal(t, "inv_1", sampled(t, r).Reference)
	r.Reference, r.Source.Reference = "ord_7", "/resource/invoice_id"
	require.Equal(t, "inv_1", sampled(t, r).Reference)
}

// TestPayPalRefundOfWhat: a refund that names no capture of PayPal's is nobody's.
func TestPayPalRefundOfWhat(t *testing.T) {
	t.Parallel()
	for links, want := range map[string]string{
		`[{"rel":"up","href":"https://api.paypal.com/v2/payments/captures/CAP1"}]`:                                                                    "CAP1",
		`[{"rel":"self","href":"https://api.paypal.com/v2/payments/captures/X"},{"rel":"up","href":"https://api.paypal.com/v2/payments/captures/Y"}]`: "Y",
		`[{"rel":"up","href":"https://api.paypal.com/v2/checkout/orders/ORD1"}]`:                                                                      "",
		`[{"rel":"up","href":"https://api.paypal.com/v2/payments/captures/CAP1/refund"}]`:                                                             "",
		`[{"rel":"up","href":"https://api.paypal.com/v2/payments/captures/"}]`:                                                                        "",
		`[]`:   "",
		`null`: "",
	} {
		ev := sampled(t, gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.REFUNDED", Reference: "ord_7", Set: set("resource.links", links)})
		if want == "" {
			require.Contains(t, ev.Broken, "names no payment", links)
			continue
		}
		require.Equal(t, []string{want}, ev.Payment)
	}
}

// TestPayPalStatuses: what the status of a refund and the outcome of a dispute mean.
func TestPayPalStatuses(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.REFUNDED"}
	for status, want := range map[string]order.Status{
		`"COMPLETED"`: order.StatusOK, `"PENDING"`: order.StatusPending, `"FAILED"`: order.StatusFailed, `"CANCELLED"`: order.StatusFailed, `null`: order.StatusOK,
	} {
		r.Set = set("resource.status", status)
		require.Equal(t, want, sampled(t, r).Facts[0].Status, status)
	}
	r.Set = set("resource.status", "MAYBE")
	require.NotEmpty(t, sampled(t, r).Broken)

	r.Type = "CUSTOMER.DISPUTE.RESOLVED"
	for code, want := range map[string]order.Status{
		`"RESOLVED_BUYER_FAVOUR"`: order.StatusLost, `"ACCEPTED"`: order.StatusLost, `"RESOLVED_SELLER_FAVOUR"`: order.StatusWon,
		`"RESOLVED_WITH_PAYOUT"`: order.StatusWon, `"CANCELED_BY_BUYER"`: order.StatusWon, `"DENIED"`: order.StatusWon, `"NONE"`: order.StatusWon, `null`: order.StatusOpen,
		`"SPLIT_ONE_DAY"`: order.StatusOpen, `7`: order.StatusOpen,
	} {
		r.Set = set("resource.dispute_outcome.outcome_code", code)
		require.Equal(t, want, sampled(t, r).Facts[0].Status, code)
	}
	r.Type, r.Set = "CUSTOMER.DISPUTE.UPDATED", map[string]string{"resource.status": "RESOLVED", "resource.dispute_outcome": `{"outcome_code":"ACCEPTED"}`}
	require.Equal(t, order.StatusLost, sampled(t, r).Facts[0].Status)
}

// TestPayPalAuthorizationStatus: an authorisation that is looked at, or was denied,
// authorises nothing.
func TestPayPalAuthorizationStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]order.Status{
		`"CREATED"`: order.StatusAuthorized, `"CAPTURED"`: order.StatusAuthorized, `null`: order.StatusAuthorized,
		`"PENDING"`: order.StatusProcessing, `"DENIED"`: order.StatusFailed,
	} {
		ev := sampled(t, gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.AUTHORIZATION.CREATED", Set: set("resource.status", status)})
		require.Equal(t, want, ev.Facts[0].Status, status)
		require.Equal(t, want == order.StatusAuthorized, len(ev.Facts) == 2, status)
	}
}

// TestPayPalDisputeOfTwo: one dispute may be about two payments of two orders.
func TestPayPalDisputeOfTwo(t *testing.T) {
	t.Parallel()
	evs := events(t, paypalSource(), sample(t, gateway.SampleRequest{
		Source: paypalSource(), Type: "CUSTOMER.DISPUTE.CREATED", ID: "WH-1", Ref: "PP-1", Set: set("resource.disputed_transactions", `[
			{"seller_transaction_id":"CAP1","custom":"ord_1","gross_amount":{"currency_code":"EUR","value":"20.00"}},
			{"seller_transaction_id":"CAP2","invoice_number":"ord_2"}]`),
	}))
	require.Len(t, evs, 2)
	require.Equal(t, "WH-1:CAP1", evs[0].ID)
	require.Equal(t, "WH-1:CAP2", evs[1].ID)
	require.Equal(t, []string{"CAP2"}, evs[1].Payment)
	require.Equal(t, "ord_1", evs[0].Reference)
	require.Equal(t, "ord_2", evs[1].Reference)
	require.Equal(t, int64(2000), evs[0].Facts[0].Amount)
	require.Equal(t, int64(order.All), evs[1].Facts[0].Amount, "how much is at stake is not said")
}

func TestPayPalFlows(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	total := func(n string) map[string]string {
		return set("resource.seller_payable_breakdown.total_refunded_amount.value", n)
	}
	capture := func(id string) map[string]string { return set("resource.id", id) }
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "PAYMENT.CAPTURE.PENDING"}, {typ: "PAYMENT.CAPTURE.COMPLETED", at: 9}}, "paid 5000-0-0 go"},
		{"AuthorizedThenPaid", s, []step{{typ: "PAYMENT.AUTHORIZATION.CREATED"}, {typ: "PAYMENT.CAPTURE.COMPLETED", at: 9}}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "PAYMENT.AUTHORIZATION.CREATED"}}, "authorized 0-0-0 wait"},
		{"Voided", s, []step{{typ: "PAYMENT.AUTHORIZATION.CREATED"}, {typ: "PAYMENT.AUTHORIZATION.VOIDED", at: 9}}, "canceled 0-0-0 wait"},
		{"TwoCaptures", s, []step{
			{typ: "PAYMENT.AUTHORIZATION.CREATED"},
			{typ: "PAYMENT.CAPTURE.COMPLETED", at: 5, amt: 2000, set: capture("C1")},
			{typ: "PAYMENT.CAPTURE.COMPLETED", at: 6, amt: 3000, set: capture("C2")},
		}, "paid 5000-0-0 go"},
		{"Denied", s, []step{{typ: "PAYMENT.CAPTURE.PENDING"}, {typ: "PAYMENT.CAPTURE.DENIED", at: 9}}, "failed 0-0-0 wait"},
		{"DeclinedThenPaid", s, []step{
			{typ: "PAYMENT.CAPTURE.DECLINED", set: capture("C1")}, {typ: "PAYMENT.CAPTURE.COMPLETED", at: 9, set: capture("C2")},
		}, "paid 5000-0-0 go"},
		{"RefundedInParts", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"},
			{typ: "PAYMENT.CAPTURE.REFUNDED", at: 5, amt: 1000, ref: "R1", set: total("10.00")},
			{typ: "PAYMENT.CAPTURE.REFUNDED", at: 6, amt: 1500, ref: "R2", set: total("25.00")},
		}, "partially_refunded 5000-2500-0 go"},
		{"OneOfTwoRefundsIsLost", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"}, {typ: "PAYMENT.CAPTURE.REFUNDED", at: 6, amt: 1500, ref: "R2", set: total("25.00")},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundFails", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"}, {typ: "PAYMENT.REFUND.PENDING", at: 5}, {typ: "PAYMENT.CAPTURE.REFUNDED", at: 6}, {typ: "PAYMENT.REFUND.FAILED", at: 9},
		}, "paid 5000-0-0 go"},
		{"Reversed", s, []step{{typ: "PAYMENT.CAPTURE.COMPLETED"}, {typ: "PAYMENT.CAPTURE.REVERSED", at: 9}}, "charged_back 5000-0-5000 stop"},
		{"DisputeOpen", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"}, {typ: "CUSTOMER.DISPUTE.CREATED", at: 5}, {typ: "CUSTOMER.DISPUTE.UPDATED", at: 6},
		}, "disputed 5000-0-0 pause"},
		{"DisputeWon", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"},
			{typ: "CUSTOMER.DISPUTE.CREATED", at: 5},
			{typ: "CUSTOMER.DISPUTE.RESOLVED", at: 9, set: set("resource.dispute_outcome.outcome_code", "RESOLVED_SELLER_FAVOUR")},
		}, "paid 5000-0-0 go"},
		{"DisputeLostAndReversed", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"},
			{typ: "CUSTOMER.DISPUTE.CREATED", at: 5, amt: 3000, ref: "D1"},
			{typ: "CUSTOMER.DISPUTE.RESOLVED", at: 9, amt: 3000, ref: "D1"},
			{typ: "PAYMENT.CAPTURE.REVERSED", at: 9, amt: 3000, ref: "R1"},
		}, "partially_refunded 5000-0-3000 pause"},
		{"DisputeSettledForAPart", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"},
			{typ: "CUSTOMER.DISPUTE.CREATED", at: 5, ref: "D1"},
			{typ: "CUSTOMER.DISPUTE.RESOLVED", at: 9, ref: "D1", set: set("resource.dispute_outcome.amount_refunded.value", "10.00")},
			{typ: "PAYMENT.CAPTURE.REFUNDED", at: 9, amt: 1000, ref: "R1"},
		}, "partially_refunded 5000-1000-0 go"},
		{"DisputeOfUnknownOutcome", s, []step{
			{typ: "PAYMENT.CAPTURE.COMPLETED"},
			{typ: "CUSTOMER.DISPUTE.RESOLVED", at: 9, set: set("resource.dispute_outcome.outcome_code", "SPLIT_ONE_DAY")},
		}, "disputed 5000-0-0 pause"},
		{"SaleOfVersion1", s, []step{
			{typ: "PAYMENT.SALE.PENDING"}, {typ: "PAYMENT.SALE.COMPLETED", at: 1}, {typ: "PAYMENT.SALE.REFUNDED", at: 5, amt: 1000},
		}, "partially_refunded 5000-1000-0 go"},
	})
}
