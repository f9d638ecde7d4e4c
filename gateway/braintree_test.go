package gateway_test

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("braintree", conformance{
	unknownType: map[string]string{"kind": "brand_new_kind"},
	typ:         "transaction_settled",
	amount:      "subject.transaction.amount",
	currency:    "subject.transaction.currency-iso-code",
	badAmounts:  decimals,
	noMode:      true,
	alone:       []string{"local_payment_expired", "local_payment_reversed"}, // they name the payment by its other id
	unreadable: map[string]string{
		"Empty": "", "JSON": `{"bt_payload":"PG5vdGlmaWNhdGlvbi8+"}`, "NoPayload": "bt_signature=a|b", "Twice": payload("<notification/>") + "&" + payload("<notification/>"),
		"NotBase64": "bt_payload=%3Cnotification%2F%3E", "NotXML": payload("kind"), "Truncated": payload("<notification><kind>check</kind>"),
		"OtherRoot": payload("<other><kind>check</kind></other>"), "TwoRoots": payload("<notification/><notification/>"), "TextBehind": payload("<notification/>x"),
		"DTD":      payload(`<!DOCTYPE notification [<!ENTITY a "b">]><notification><kind>&a;</kind></notification>`),
		"DTDAlone": payload(`<!DOCTYPE notification><notification><kind>check</kind></notification>`),
		"Entity":   payload(`<notification><kind>&nbsp;</kind></notification>`),
		"Inside":   payload(`<notification><!ENTITY a "b"><kind>check</kind></notification>`),
		"Spaces":   payload(`<notification xmlns:x="y"><x:kind>check</x:kind></notification>`),
		"NotUTF8":  payload("<notification><kind>\xff</kind></notification>"),
		"Latin1":   payload(`<?xml version="1.0" encoding="ISO-8859-1"?><notification/>`),
		"TooDeep":  payload("<notification>" + strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100) + "</notification>"),
		"Crossing": payload("<notification><a><b></a></b></notification>"),
	},
})

// payload is the form that carries XML.
func payload(xml string) string {
	return url.Values{"bt_payload": {base64.StdEncoding.EncodeToString([]byte(xml)) + "\n"}}.Encode()
}

func braintreeSource() gateway.Source {
	s := gateway.Braintree.Example("main")
	s.ID = "braintree"
	return s
}

// xmlEvent maps a notification that says what a sample would not.
func xmlEvent(t *testing.T, xml string) order.Event {
	t.Helper()
	return event(t, braintreeSource(), []byte("<notification><timestamp type=\"datetime\">2026-01-01T09:00:00Z</timestamp>"+xml+"</notification>"))
}

func TestBraintreeXML(t *testing.T) {
	t.Parallel()
	const kind, open = `<kind>transaction_settled</kind><subject><transaction>`, `<id>tx1</id><type>sale</type><currency-iso-code>EUR</currency-iso-code>`
	const end = `</transaction></subject>`
	ev := xmlEvent(t, kind+open+`<amount>50.00</amount><order-id>R&amp;D &#x41;<![CDATA[<1>]]></order-id>`+end)
	require.Empty(t, ev.Broken)
	require.Equal(t, "R&D A<1>", ev.Reference)
	require.Equal(t, int64(5000), ev.Facts[0].Amount)
	require.True(t, strings.HasPrefix(ev.ID, "body:"))

	for name, xml := range map[string]string{
		"AmountTwice": kind + open + `<amount>50.00</amount><amount>60.00</amount>` + end,
		"IDTwice":     kind + `<id>tx0</id>` + open + `<amount>50.00</amount>` + end,
		"AmountNil":   kind + open + `<amount nil="true"/>` + end,
		"AmountDeep":  kind + open + `<amount><a>50.00</a></amount>` + end,
		"NoCurrency":  kind + `<id>tx1</id><type>sale</type><amount>50.00</amount>` + end,
		"OtherType":   kind + `<id>tx1</id><type>gift</type><currency-iso-code>EUR</currency-iso-code><amount>50.00</amount>` + end,
		"NoKind":      `<subject/>`,
		"KindTwice":   `<kind>check</kind>` + kind + open + `<amount>50.00</amount>` + end,
	} {
		require.NotEmpty(t, xmlEvent(t, xml).Broken, name)
	}
	require.Equal(t, gateway.NoFact, xmlEvent(t, `<kind>check</kind><subject><check type="boolean">true</check></subject>`).Ignored)
}

// TestBraintreeSubscription: of the transactions of a subscription the newest was
// charged, wherever it stands.
func TestBraintreeSubscription(t *testing.T) {
	t.Parallel()
	one := func(id, created string) string {
		return `<transaction><id>` + id + `</id><amount>49.99</amount><currency-iso-code>EUR</currency-iso-code><created-at type="datetime">` + created + `</created-at></transaction>`
	}
	wrap := func(list string) string {
		return `<kind>subscription_charged_successfully</kind><subject><subscription><id>s1</id><transactions type="array">` + list + `</transactions></subscription></subject>`
	}
	old, now := one("old", "2025-12-01T09:00:00Z"), one("now", "2026-01-01T09:00:00Z")
	for _, list := range []string{old + now, now + old, now} {
		ev := xmlEvent(t, wrap(list))
		require.Equal(t, []string{"now"}, ev.Payment)
		require.Equal(t, "now", ev.Facts[0].Ref)
		require.Equal(t, int64(4999), ev.Facts[0].Amount)
	}
	require.NotEmpty(t, xmlEvent(t, wrap(now+one("what", "today"))).Broken, "nobody knows which")
	require.Equal(t, gateway.NoFact, xmlEvent(t, wrap("")).Ignored)
}

func TestBraintreeAccounts(t *testing.T) {
	t.Parallel()
	for _, typ := range gateway.Braintree.Types(braintreeSource()) {
		r := gateway.SampleRequest{Source: braintreeSource(), Type: typ.Name}
		r.Source.MerchantAccounts = []string{"ours"}
		body := sample(t, r)
		require.Empty(t, event(t, r.Source, body).Facts[0].Misfit, typ.Name)

		r.Source.MerchantAccounts = []string{"another"}
		ev := event(t, r.Source, body)
		for _, f := range ev.Facts {
			if typ.Name != "local_payment_expired" && typ.Name != "local_payment_reversed" { // they name none, and move none
				require.Equal(t, order.MisfitAccount, f.Misfit, typ.Name)
			}
		}
	}
	r := gateway.SampleRequest{Source: braintreeSource(), Type: "transaction_settled", Set: set("subject.transaction.merchant-account-id", "null")}
	require.Empty(t, sampled(t, r).Facts[0].Misfit)
	r.Source.MerchantAccounts = []string{"ours"}
	require.Equal(t, order.MisfitAccount, sampled(t, r).Facts[0].Misfit, "money of nobody knows whom")
}

func TestBraintreeChallenge(t *testing.T) {
	t.Parallel()
	const challenge = "20f9f8ed05f77439fe955c977e4c8a53"
	s := braintreeSource()
	probe, ok := gateway.Braintree.Probe(s, gateway.Delivery{Method: "GET", Query: "bt_challenge=" + challenge})
	require.True(t, ok)
	require.Regexp(t, `^example_public_key\|[0-9a-f]{40}$`, probe.Body)
	require.NotContains(t, probe.Note, challenge)
	for name, d := range map[string]gateway.Delivery{
		"POST": {Method: "POST", Query: "bt_challenge=" + challenge}, "None": {Method: "GET"}, "Other": {Method: "GET", Query: "challenge=" + challenge},
		"Two": {Method: "GET", Query: "bt_challenge=" + challenge + "&bt_challenge=" + challenge}, "Long": {Method: "GET", Query: "bt_challenge=" + challenge + "00"},
		"Text": {Method: "GET", Query: "bt_challenge=PG5vdGlmaWNhdGlvbi8%2B"},
	} {
		_, ok := gateway.Braintree.Probe(s, d)
		require.False(t, ok, name)
	}
	// What was answered is no signature of a delivery.
	d := gateway.Delivery{Method: "POST", Body: []byte(url.Values{"bt_payload": {challenge}, "bt_signature": {probe.Body}}.Encode())}
	require.Error(t, gateway.Braintree.Verify(s, d, now))
}

func TestBraintreeFlows(t *testing.T) {
	t.Parallel()
	s := braintreeSource()
	credit := map[string]string{"subject.transaction.type": "credit", "subject.transaction.id": "R1", "subject.transaction.refunded-transaction-id": braintreeID(t)}
	playFlows(t, []flow{
		{"Settled", s, []step{{typ: "transaction_settled"}, {typ: "transaction_disbursed", at: 900}}, "paid 5000-0-0 go"},
		{"Declined", s, []step{{typ: "transaction_settlement_declined"}}, "failed 0-0-0 wait"},
		{"SettledThenReturned", s, []step{{typ: "transaction_settled"}, {typ: "transaction_settlement_declined", at: 9}}, "failed 0-0-0 stop"},
		{"Subscription", s, []step{{typ: "subscription_charged_successfully"}, {typ: "transaction_settled", at: 900}}, "paid 5000-0-0 go"},
		{"SubscriptionNotCharged", s, []step{{typ: "subscription_charged_unsuccessfully"}}, "failed 0-0-0 wait"},
		{"Refunded", s, []step{{typ: "transaction_settled"}, {typ: "transaction_settled", at: 9, amt: 1000, set: credit}}, "partially_refunded 5000-1000-0 go"},
		{"RefundFails", s, []step{
			{typ: "transaction_settled"}, {typ: "transaction_settled", at: 9, amt: 1000, set: credit}, {typ: "refund_failed", at: 19, amt: 1000, ref: "R1"},
		}, "paid 5000-0-0 go"},
		{"RefundReturned", s, []step{
			{typ: "transaction_settled"}, {typ: "transaction_settled", at: 9, amt: 1000, set: credit}, {typ: "transaction_settlement_declined", at: 19, amt: 1000, set: credit},
		}, "paid 5000-0-0 go"},
		{"LocalPayment", s, []step{{typ: "local_payment_completed"}, {typ: "local_payment_funded", at: 9}}, "paid 5000-0-0 go"},
		{"LocalPaymentApproved", s, []step{{typ: "local_payment_completed"}}, "pending 0-0-0 wait"},
		{"LocalPaymentExpired", s, []step{{typ: "local_payment_completed"}, {typ: "local_payment_expired", at: 9}}, "expired 0-0-0 wait"},
		{"LocalPaymentReversed", s, []step{{typ: "local_payment_completed"}, {typ: "local_payment_reversed", at: 9}}, "canceled 0-0-0 wait"},
		{"DisputeOpen", s, []step{
			{typ: "transaction_settled"}, {typ: "dispute_opened", at: 5}, {typ: "dispute_disputed", at: 6}, {typ: "dispute_under_review", at: 7},
		}, "disputed 5000-0-0 pause"},
		{"DisputeWon", s, []step{{typ: "transaction_settled"}, {typ: "dispute_opened", at: 5}, {typ: "dispute_won", at: 9}}, "paid 5000-0-0 go"},
		{"RetrievalExpired", s, []step{
			{typ: "transaction_settled"},
			{typ: "dispute_opened", at: 5, set: set("subject.dispute.kind", "retrieval")},
			{typ: "dispute_expired", at: 9, set: set("subject.dispute.kind", "retrieval")},
		}, "paid 5000-0-0 go"},
		{"DisputeAccepted", s, []step{{typ: "transaction_settled"}, {typ: "dispute_opened", at: 5}, {typ: "dispute_accepted", at: 9}}, "charged_back 5000-0-5000 stop"},
	})
}

// braintreeID is the transaction that the samples of ord_7 name.
func braintreeID(t *testing.T) string {
	return sampled(t, gateway.SampleRequest{Source: braintreeSource(), Type: "transaction_settled", Reference: "ord_7"}).Payment[0]
}

// FuzzBraintreeXML: whatever XML was signed, it is read or refused without a panic,
// what is read has the form that is promised, and the same bytes mean the same.
func FuzzBraintreeXML(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(payloads, "braintree", "*.xml"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(body))
	}
	f.Add(`<notification><kind nil="true">a</kind><a type="array"><b/><b>]</b></a>&lt;<![CDATA[}]]></notification>`)
	f.Fuzz(func(t *testing.T, xml string) {
		s := braintreeSource()
		d := gateway.Delivery{Body: []byte(payload(xml))}
		evs, err := gateway.Braintree.Events(s, d)
		if err != nil {
			var parse *gateway.ParseError
			require.ErrorAs(t, err, &parse)
			return
		}
		requireForm(t, s, evs)
		again, err := gateway.Braintree.Events(s, d)
		require.NoError(t, err)
		require.Equal(t, evs, again)
	})
}
