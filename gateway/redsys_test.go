package gateway_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("redsys", conformance{
	source:        ptr(redsysByData()),
	variants:      map[string]gateway.Source{"order": redsysSource(), "data": redsysByData()},
	unknownType:   map[string]string{"Ds_TransactionType": "99"},
	typ:           "0",
	amount:        "Ds_Amount",
	currency:      "Ds_Currency",
	badAmounts:    []string{`null`, `"abc"`, `"-5000"`, `"50.00"`, `50.5`, `"5e3"`, `""`, `" 5000"`, `"05000"`, `"9223372036854775808"`, `"9223372036854775807"`, `true`, `{}`},
	badCurrencies: []string{`EUR`, `000`, `0978`, ``, `97 8`, `999`},
	noMode:        true,
	noTime:        true,
	payment:       func(r gateway.SampleRequest) string { return "999008881/" + r.Payment },
	unreadable: map[string]string{
		"Empty": "", "NoParameters": "Ds_SignatureVersion=HMAC_SHA256_V1", "NotBase64": "Ds_MerchantParameters=%7B%7D", "NotJSON": parameters("Ds_Order=1"),
		"Twice": parameters("{}") + "&" + parameters("{}"), "Array": parameters("[]"), "NotUTF8": parameters("{\"a\":\"\xff\"}"),
		"Envelope": `{"Ds_MerchantParameters":`, "EnvelopeTwice": `{"Ds_MerchantParameters":"e30=","Ds_MerchantParameters":"e30="}`,
		"TooDeep": parameters(`{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`),
	},
})

// parameters is the form that carries the JSON of a notification.
func parameters(json string) string {
	return url.Values{"Ds_MerchantParameters": {base64.StdEncoding.EncodeToString([]byte(json))}}.Encode()
}

func redsysSource() gateway.Source {
	s := gateway.Redsys.Example("main")
	s.ID = "redsys"
	return s
}

// redsysByData is a source whose orders are named in Ds_MerchantData.
func redsysByData() gateway.Source {
	s := redsysSource()
	s.Reference = "/ds_merchantdata"
	return s
}

func TestRedsysForms(t *testing.T) {
	t.Parallel()
	const json = `{"Ds_Date":"01%2F01%2F2026","DS_ORDER":"0001ABCD","Ds_Currency":978,"ds_amount":"5000","Ds_Response":"0000","Ds_TransactionType":"0","Ds_AuthorisationCode":"123456","Ds_MerchantData":"R%26D+1+%C3%A9"}`
	s := redsysByData()
	plain, urls := base64.StdEncoding.EncodeToString([]byte(json)), base64.RawURLEncoding.EncodeToString([]byte(json))
	require.NotEqual(t, plain, urls)
	var first order.Event
	for i, body := range []string{
		json, "Ds_SignatureVersion=HMAC_SHA256_V1&Ds_MerchantParameters=" + url.QueryEscape(plain),
		"Ds_SignatureVersion=HMAC_SHA512_V2&Ds_MerchantParameters=" + urls,
		`{"Ds_SignatureVersion":"HMAC_SHA256_V1","Ds_MerchantParameters":"` + plain + `"}`,
	} {
		ev := event(t, s, []byte(body))
		require.Empty(t, ev.Broken)
		require.Equal(t, "R&D 1 é", ev.Reference)
		require.Equal(t, []string{"0001ABCD"}, ev.Payment)
		require.Equal(t, "0001ABCD:0:0000:123456:5000:978:01/01/2026:", ev.ID)
		require.Equal(t, order.Fact{Kind: order.KindCaptured, Ref: "123456", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}, ev.Facts[0])
		if i == 0 {
			first = ev
		}
		require.Equal(t, first, ev, "one notification, however it is wrapped")
	}
	s.Reference = ""
	require.Equal(t, "0001ABCD", event(t, s, []byte(json)).Reference)
	twice := strings.Replace(json, `"Ds_Response"`, `"DS_AMOUNT":"9000","Ds_Response"`, 1)
	require.NotEmpty(t, mapped(t, s, parameters(twice)).Broken, "two amounts that differ in case, which the verifier refuses too")
}

func TestRedsysResponses(t *testing.T) {
	t.Parallel()
	said := func(typ, response string) string {
		ev := sampled(t, gateway.SampleRequest{Source: redsysSource(), Type: typ, Reference: "0001ORDER", Set: set("Ds_Response", response)})
		switch {
		case ev.Broken != "":
			return "broken"
		case ev.Ignored != "":
			return ev.Ignored
		}
		var out []string
		for _, f := range ev.Facts {
			out = append(out, strings.TrimSpace(string(f.Kind)+" "+string(f.Status)))
		}
		return strings.Join(out, ", ")
	}
	for _, tt := range []struct{ typ, response, want string }{
		{"0", "0000", "captured ok"},
		{"0", "0099", "captured ok"},
		{"0", "0100", "phase failed"},
		{"0", "0190", "phase failed"},
		{"0", "0900", "phase failed"},
		{"0", "0400", "phase failed"},
		{"0", "9915", "phase failed"},
		{"0", "9998", "phase processing"},
		{"0", "9999", "phase processing"},
		{"0", "-1", "broken"},
		{"0", "+50", "broken"},
		{"0", "", "broken"},
		{"0", "00000", "broken"},
		{"0", "null", "broken"},
		{"1", "0000", "phase authorized, authorized"},
		{"1", "0900", "phase failed"},
		{"2", "0900", "captured ok"},
		{"2", "0000", "captured ok"},
		{"2", "0400", gateway.NoFact},
		{"2", "0190", gateway.NoFact},
		{"3", "0900", "refunded ok"},
		{"3", "0950", gateway.NoFact},
		{"7", "0000", "phase processing"},
		{"7", "0190", "phase failed"},
		{"9", "0400", "phase canceled"},
		{"9", "0190", gateway.NoFact},
		{"34", "0900", ""},
	} {
		if tt.typ == "34" {
			ev := sampled(t, gateway.SampleRequest{Source: redsysSource(), Type: "3", Set: set("Ds_TransactionType", tt.typ)})
			require.Equal(t, gateway.UnknownType, ev.Ignored, "a refund of nothing that we know")
			continue
		}
		require.Equal(t, tt.want, said(tt.typ, tt.response), "%s %s", tt.typ, tt.response)
	}
}

// TestRedsysMerchants: two merchant codes that number their payments alike have two
// payments.
func TestRedsysMerchants(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: redsysByData(), Type: "0", Reference: "ord_7", Payment: "000000000001"}
	first := sampled(t, r)
	r.Set = set("Ds_MerchantCode", "999008882")
	second := sampled(t, r)
	require.Equal(t, []string{"999008881/000000000001"}, first.Payment)
	require.Equal(t, []string{"999008882/000000000001"}, second.Payment)
}

func TestRedsysCurrencies(t *testing.T) {
	t.Parallel()
	for _, cur := range []string{"EUR", "USD", "GBP", "JPY", "AUD", "KWD", "ALL"} {
		m := order.Amount{Minor: 12345, Currency: cur}
		ev := sampled(t, gateway.SampleRequest{Source: redsysSource(), Type: "0", Reference: "0001", Amount: m})
		require.Equal(t, &m, ev.Own)
	}
	ev := sampled(t, gateway.SampleRequest{Source: redsysSource(), Type: "0", Reference: "0001", Set: set("Ds_Currency", "36")})
	require.Equal(t, "AUD", ev.Own.Currency, "a number that lost its zero")
}

func TestRedsysFlows(t *testing.T) {
	t.Parallel()
	s := redsysByData()
	auth := func(code string) map[string]string { return set("Ds_AuthorisationCode", code) }
	refused := map[string]string{"Ds_Response": "0190", "Ds_AuthorisationCode": "      "}
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "0"}}, "paid 5000-0-0 go"},
		{"RefusedThenPaid", s, []step{{typ: "0", set: refused}, {typ: "0", at: 2}}, "paid 5000-0-0 go"},
		{"Refused", s, []step{{typ: "0", set: set("Ds_Response", "9999")}, {typ: "0", at: 2, set: refused}}, "failed 0-0-0 wait"},
		{"Preauthorized", s, []step{{typ: "1", set: refused}, {typ: "1", at: 2}}, "authorized 0-0-0 wait"},
		{"Confirmed", s, []step{{typ: "1"}, {typ: "2", at: 60}}, "paid 5000-0-0 go"},
		{"ConfirmedInParts", s, []step{{typ: "1"}, {typ: "2", at: 60, amt: 2000, set: auth("AAA111")}, {typ: "2", at: 90, amt: 3000, set: auth("BBB222")}}, "paid 5000-0-0 go"},
		{"Canceled", s, []step{{typ: "1"}, {typ: "9", at: 60}}, "canceled 0-0-0 wait"},
		{"Deferred", s, []step{{typ: "O"}, {typ: "P", at: 60}}, "paid 5000-0-0 go"},
		{"DeferredCanceled", s, []step{{typ: "O"}, {typ: "Q", at: 60}}, "canceled 0-0-0 wait"},
		{"Authenticated", s, []step{{typ: "7"}}, "pending 0-0-0 wait"},
		{"AuthenticatedAndConfirmed", s, []step{{typ: "7"}, {typ: "8", at: 60}}, "paid 5000-0-0 go"},
		{"RefundedInParts", s, []step{{typ: "0"}, {typ: "3", at: 60, amt: 1000, ref: "RRR111"}, {typ: "3", at: 90, amt: 1500, ref: "RRR222"}}, "partially_refunded 5000-2500-0 go"},
		{"RefundRefused", s, []step{{typ: "0"}, {typ: "3", at: 60, set: set("Ds_Response", "0950")}}, "paid 5000-0-0 go"},
	})
}
