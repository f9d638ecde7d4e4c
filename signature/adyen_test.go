package signature_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// adyenBody has one item, not signed yet.
const adyenBody = `{"live":"true","notificationItems":[{"NotificationRequestItem":{` +
	`"additionalData":{"expiryDate":"12\/2012"},"amount":{"currency":"EUR","value":5000},` +
	`"eventCode":"AUTHORISATION","eventDate":"2026-09-21T10:00:00+02:00","merchantAccountCode":"CANARY",` +
	`"merchantReference":"ord_1","pspReference":"PSP1","success":"true"}}]}`

// adyenSign is the signature over the eight values joined by colons, made without
// the package under test.
func adyenSign(tb testing.TB, secret, message string) string {
	tb.Helper()
	key, err := hex.DecodeString(secret)
	require.NoError(tb, err)
	return base64.StdEncoding.EncodeToString(mac(string(key), message))
}

// adyenEnvelope wraps items as Adyen does.
func adyenEnvelope(items ...string) string {
	for i, item := range items {
		items[i] = `{"NotificationRequestItem":` + item + `}`
	}
	return `{"live":"true","notificationItems":[` + strings.Join(items, ",") + `]}`
}

func TestAdyen(t *testing.T) {
	t.Parallel()
	sig := adyenSign(t, adyenSecret, "PSP1::CANARY:ord_1:5000:EUR:AUTHORISATION:true")
	// item is one with that signature; edits replace what is in it, in pairs.
	item := func(edits ...string) string {
		s := `{"additionalData":{"hmacSignature":"` + sig + `"},"amount":{"currency":"EUR","value":5000},` +
			`"eventCode":"AUTHORISATION","merchantAccountCode":"CANARY","merchantReference":"ord_1",` +
			`"pspReference":"PSP1","success":"true"}`
		for i := 0; i < len(edits); i += 2 {
			require.Contains(t, s, edits[i])
			s = strings.Replace(s, edits[i], edits[i+1], 1)
		}
		return s
	}
	one := func(edits ...string) string { return adyenEnvelope(item(edits...)) }
	// signed is an item whose other signature is over message.
	signed := func(message string, edits ...string) string {
		return adyenEnvelope(item(append(edits, sig, adyenSign(t, adyenSecret, message))...))
	}
	other := strings.Repeat("00", 32)

	run(t, "adyen", adyenSecret, []attempt{
		{name: "Genuine", body: one()},
		{name: "TwoItems", body: adyenEnvelope(item(), item())},
		{name: "SecondKey", body: one(), secrets: []string{other, adyenSecret}},
		{name: "ItemsOfTwoKeys", body: adyenEnvelope(item(), item(sig, adyenSign(t, other, "PSP1::CANARY:ord_1:5000:EUR:AUTHORISATION:true"))), secrets: []string{other, adyenSecret}},
		{name: "LowerCaseKey", body: one(), secrets: []string{strings.ToLower(adyenSecret)}},
		{name: "BadKeyBesideAGoodOne", body: one(), secrets: []string{"xyz", adyenSecret}},
		{name: "EscapesAndSpaces", body: strings.ReplaceAll(one(`"PSP1"`, `"\u0050SP1"`, `{"currency":"EUR","value":5000}`, "{\n\"value\" : 5000 ,\t\"currency\" : \"EUR\"}"), "/", `\/`)},
		{name: "OriginalReferenceEmpty", body: one(`"success"`, `"originalReference":"","success"`)},
		{name: "OriginalReferenceNull", body: one(`"success"`, `"originalReference":null,"success"`)},
		{name: "OriginalReference", body: signed("PSP2:PSP1:CANARY:ord_1:5000:EUR:REFUND:true", `"PSP1"`, `"PSP2"`, `"success"`, `"originalReference":"PSP1","success"`, "AUTHORISATION", "REFUND")},
		{name: "ColonAndBackslashNotEscaped", body: signed(`PSP1::CANARY:a:b\c:5000:EUR:AUTHORISATION:true`, `"ord_1"`, `"a:b\\c"`)},
		{name: "NoAmount", body: signed("PSP1::CANARY:ord_1:::AUTHORISATION:true", `"amount":{"currency":"EUR","value":5000},`, "")},
		{name: "NegativeAmount", body: signed("PSP1::CANARY:ord_1:-5:EUR:AUTHORISATION:true", "5000", "-5")},
		{name: "UnsignedFieldChanged", body: one(`"success"`, `"reason":"x","success"`)},
		{name: "BracketsInAString", body: one(`"success"`, `"reason":"\"}]","shopper":"\\","success"`)},
		{name: "MetadataInTwoCases", body: one(`"hmacSignature"`, `"metadata.a":"1","metadata.A":"2","hmacSignature"`)},

		{name: "Empty", body: " ", want: signature.Malformed},
		{name: "NotJSON", body: "live=true", want: signature.Malformed},
		{name: "CutOff", body: one()[:80], want: signature.Malformed},
		{name: "SomethingAfterIt", body: one() + "{}", want: signature.Malformed},
		{name: "NotUTF8", body: one(`"success"`, "\"reason\":\"\xff\",\"success\""), want: signature.Malformed},
		{name: "NotAnObject", body: "[" + one() + "]", want: signature.Malformed},
		{name: "NoList", body: `{"live":"true","eventId":"1"}`, want: signature.Missing},
		{name: "ListNull", body: `{"notificationItems":null}`, want: signature.Missing},
		{name: "ListIsNoList", body: `{"notificationItems":{}}`, want: signature.Malformed},
		{name: "ZeroItems", body: `{"live":"true","notificationItems":[]}`, want: signature.Missing},
		{name: "ItemWithoutWrapper", body: `{"notificationItems":[` + item() + `]}`, want: signature.Malformed},
		{name: "ItemIsNoObject", body: `{"notificationItems":["x"]}`, want: signature.Malformed},
		{name: "ItemNull", body: adyenEnvelope(item(), "null"), want: signature.Malformed},
		{name: "AmountIsNoObject", body: one(`{"currency":"EUR","value":5000}`, "5000"), want: signature.Malformed},
		{name: "DataIsNoObject", body: one(`{"hmacSignature":"`+sig+`"}`, `"x"`), want: signature.Malformed},

		{name: "NoData", body: one(`"additionalData":{"hmacSignature":"`+sig+`"},`, ""), want: signature.Missing},
		{name: "DataNull", body: one(`{"hmacSignature":"`+sig+`"}`, "null"), want: signature.Missing},
		{name: "NoSignature", body: one(`"hmacSignature":"`+sig+`"`, ""), want: signature.Missing},
		{name: "SignatureNull", body: one(`"`+sig+`"`, "null"), want: signature.Missing},
		{name: "SignatureEmpty", body: one(sig, ""), want: signature.Missing},
		{name: "SignatureIsNoString", body: one(`"`+sig+`"`, "1"), want: signature.Malformed},
		{name: "SignatureHex", body: one(sig, "b0ea55c2fe60d4d1d605e9c385e0e7..."), want: signature.Malformed},
		{name: "SignatureUnpadded", body: one(sig, strings.TrimRight(sig, "=")), want: signature.Malformed},
		{name: "SecondItemUnsigned", body: adyenEnvelope(item(), item(sig, "")), want: signature.Missing},

		{name: "AnotherKey", body: one(), secrets: []string{other}, want: signature.Mismatch},
		{name: "KeyAsText", body: one(sig, base64.StdEncoding.EncodeToString(mac(adyenSecret, "PSP1::CANARY:ord_1:5000:EUR:AUTHORISATION:true"))), want: signature.Mismatch},
		{name: "PSPReference", body: one("PSP1", "PSP2"), want: signature.Mismatch},
		{name: "OriginalReferenceAdded", body: one(`"success"`, `"originalReference":"PSP0","success"`), want: signature.Mismatch},
		{name: "MerchantAccount", body: one(`"CANARY"`, `"CANARY2"`), want: signature.Mismatch},
		{name: "MerchantReference", body: one("ord_1", "ord_2"), want: signature.Mismatch},
		{name: "Value", body: one("5000", "50000"), want: signature.Mismatch},
		{name: "Currency", body: one("EUR", "JPY"), want: signature.Mismatch},
		{name: "EventCode", body: one("AUTHORISATION", "CAPTURE"), want: signature.Mismatch},
		{name: "Success", body: one(`"true"`, `"false"`), want: signature.Mismatch},
		{name: "FirstItemForged", body: adyenEnvelope(item("ord_1", "ord_2"), item()), want: signature.Mismatch},
		{name: "SecondItemForged", body: adyenEnvelope(item(), item("ord_1", "ord_2")), want: signature.Mismatch},

		// The same signed text, read otherwise.
		{name: "ValueAsString", body: one("5000", `"5000"`), want: signature.Malformed},
		{name: "ValueWithFraction", body: one("5000", "5000.0"), want: signature.Malformed},
		{name: "ValueWithExponent", body: one("5000", "5e3"), want: signature.Malformed},
		{name: "ValueMinusZero", body: signed("PSP1::CANARY:ord_1:-0:EUR:AUTHORISATION:true", "5000", "-0"), want: signature.Malformed},
		{name: "SuccessAsBoolean", body: one(`"true"`, "true"), want: signature.Malformed},
		{name: "ReferenceAsNumber", body: signed("PSP1::CANARY:7:5000:EUR:AUTHORISATION:true", `"ord_1"`, "7"), want: signature.Malformed},
		{name: "ColonMovedIntoPSP", body: signed("PSP1:CANARY:ord_1:x:5000:EUR:AUTHORISATION:true", `"PSP1"`, `"PSP1:CANARY"`, `"merchantAccountCode":"CANARY",`, ""), want: signature.Ambiguous},
		{name: "ColonInEventCode", body: signed("PSP1::CANARY:ord_1:5000:EUR:A:B:true", "AUTHORISATION", "A:B"), want: signature.Ambiguous},
		{name: "ColonInCurrency", body: signed("PSP1::CANARY:ord_1:5000:EUR:1:AUTHORISATION:true", "EUR", "EUR:1"), want: signature.Ambiguous},
		{name: "KeyTwice", body: one(`"success"`, `"merchantReference":"ord_2","success"`), want: signature.Ambiguous},
		{name: "KeyTwiceEscaped", body: one(`"success"`, `"merchant\u0052eference":"ord_2","success"`), want: signature.Ambiguous},
		{name: "KeyTwiceInAnotherCase", body: one(`"success"`, `"MERCHANTREFERENCE":"ord_2","success"`), want: signature.Ambiguous},
		{name: "KeyTwiceByUnicodeFolding", body: one(`"eventCode"`, `"ſuccess":"false","eventCode"`), want: signature.Ambiguous},
		{name: "KeyInAnotherCase", body: one(`"merchantReference"`, `"MerchantReference"`), want: signature.Ambiguous},
		{name: "UnsignedKeyTwice", body: one(`"success"`, `"eventDate":"1","EventDate":"2","success"`), want: signature.Ambiguous},
		{name: "UnsignedKeyTwiceByUnicodeFolding", body: one(`"success"`, `"reason":"1","reaſon":"2","success"`), want: signature.Ambiguous},
		{name: "AmountTwice", body: one(`"success"`, `"amount":{"currency":"EUR","value":1},"success"`), want: signature.Ambiguous},
		{name: "ValueTwice", body: one(`"value":5000`, `"value":5000,"value":1`), want: signature.Ambiguous},
		{name: "ValueTwiceInAnotherCase", body: one(`"value":5000`, `"value":5000,"Value":1`), want: signature.Ambiguous},
		{name: "DataTwice", body: one(`"success"`, `"additionalData":{},"success"`), want: signature.Ambiguous},
		{name: "SignatureTwice", body: one(`"hmacSignature"`, `"hmacSignature":"x","hmacSignature"`), want: signature.Ambiguous},
		{name: "SignatureInAnotherCase", body: one(`"hmacSignature"`, `"HmacSignature"`), want: signature.Ambiguous},
		{name: "MetadataTwice", body: one(`"hmacSignature"`, `"metadata.a":"1","metadata.a":"2","hmacSignature"`), want: signature.Ambiguous},
		{name: "ItemTwice", body: strings.Replace(one(), `}}]`, `},"NotificationRequestItem":{}}]`, 1), want: signature.Ambiguous},
		{name: "ListTwice", body: strings.Replace(one(), `{"live"`, `{"notificationitems":[],"live"`, 1), want: signature.Ambiguous},

		{name: "NoSecrets", body: one(), secrets: []string{}, want: signature.NoSecret},
		{name: "EmptySecret", body: one(), secrets: []string{""}, want: signature.NoSecret},
		{name: "KeyTooShort", body: one(), secrets: []string{adyenSecret[:62]}, want: signature.BadSecret},
		{name: "KeyNotHex", body: one(), secrets: []string{"z" + adyenSecret[1:]}, want: signature.BadSecret},
	})
}

// TestAdyenPublished are items with their keys from the tests of Adyen's Ruby
// library (MIT, spec/utils/hmac_validator_spec.rb and spec/mocks/responses), cut
// down to what is signed.
func TestAdyenPublished(t *testing.T) {
	t.Parallel()
	const key = "74F490DD33F7327BAECC88B2947C011FC02D014A473AAA33A8EC93E4DC069174"
	for _, v := range []struct{ name, key, psp, account, reference, value, sig string }{
		{"Basic", "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", "7914073381342284", "TestMerchant", "TestPayment-1407325143704", "1130", "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="},
		{"Backslash", key, "T7FD4VM4D3RZNN82", "AntoniStroinski", "\\\\slashes are fun", "1000", "nIgT81gaB5oJpn2jPXupDq68iRo2wUlBsuYjtYfwKqo="},
		{"Colon", key, "M8NB66SBZSGLNK82", "AntoniStroinski", ":slashes are fun", "1000", "2EQYm7YJpKO4EtHSPu55SQTyWf8dkW5u2nD1tJFpViA="},
		{"ForwardSlash", key, "X3GWNS6KJ8NKGK82", "AntoniStroinski", "//slashes are fun", "1000", "9Z0xdpG9Xi3zcmXv14t/BvMBut77O/Xq9D4CQXSDUi4="},
		{"Mixed", key, "ZVWN7D3WSMK2WN82", "AntoniStroinski", "\\:/\\/slashes are fun", "1000", "CZErGCNQaSsxbaQfZaJlakqo7KPP+mIa8a+wx3yNs9A="},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			body := adyenEnvelope(fmt.Sprintf(`{"additionalData":{"hmacSignature":%q},"amount":{"value":%s,"currency":"EUR"},`+
				`"pspReference":%q,"eventCode":"AUTHORISATION","merchantAccountCode":%q,"merchantReference":%q,"success":"true"}`,
				v.sig, v.value, v.psp, v.account, v.reference))
			require.NoError(t, signature.Verify("adyen", signature.Request{Body: []byte(body)}, []string{v.key}, now))
		})
	}
}

// TestAdyenSignKeepsTheBody: Sign changes the signature and nothing else, wherever
// it finds or puts it.
func TestAdyenSignKeepsTheBody(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("adyen")
	sig := adyenSign(t, adyenSecret, "P:::::::")
	for name, tt := range map[string]struct{ before, after string }{
		"Replaced":     {`{"pspReference":"P","additionalData":{"a":1,"hmacSignature":"old","b":2}}`, `{"pspReference":"P","additionalData":{"a":1,"hmacSignature":"SIG","b":2}}`},
		"ReplacedNull": {`{"pspReference":"P","additionalData":{"hmacSignature": null }}`, `{"pspReference":"P","additionalData":{"hmacSignature": "SIG" }}`},
		"Added":        {`{"pspReference":"P","additionalData": { "a":1e9 } }`, `{"pspReference":"P","additionalData": {"hmacSignature":"SIG", "a":1e9 } }`},
		"AddedToEmpty": {`{"pspReference":"P","additionalData":{}}`, `{"pspReference":"P","additionalData":{"hmacSignature":"SIG"}}`},
		"DataAdded":    {`{ "pspReference":"P" }`, `{"additionalData":{"hmacSignature":"SIG"}, "pspReference":"P" }`},
		"DataNull":     {`{"pspReference":"P","additionalData":null}`, `{"pspReference":"P","additionalData":{"hmacSignature":"SIG"}}`},
	} {
		body := adyenEnvelope(tt.before, tt.before)
		signed, err := s.Sign([]byte(body), adyenSecret, now, signature.SignOptions{})
		require.NoError(t, err, name)
		after := strings.Replace(tt.after, "SIG", sig, 1)
		require.Equal(t, adyenEnvelope(after, after), string(signed.Body), name)
		require.Empty(t, signed.Header, name)
		require.NoError(t, s.Verify(signature.Request{Body: signed.Body}, []string{adyenSecret}, now), name)
	}

	signed, err := s.Sign([]byte(adyenEnvelope(`{}`)), adyenSecret, now, signature.SignOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Verify(signature.Request{Body: signed.Body}, []string{adyenSecret}, now))
}

func TestAdyenErrorSaysWhichItem(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("adyen")
	signed, err := s.Sign([]byte(adyenEnvelope(`{}`, `{}`)), adyenSecret, now, signature.SignOptions{})
	require.NoError(t, err)
	body := strings.Replace(string(signed.Body), `]}`, `,{"NotificationRequestItem":{}}]}`, 1)
	err = s.Verify(signature.Request{Body: []byte(body)}, []string{adyenSecret}, now)
	require.EqualError(t, err, "signature: adyen: missing: item 3 of 3: no hmacSignature")
}
