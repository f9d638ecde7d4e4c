package signature_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func sha512Hex(s string) string {
	sum := sha512.Sum512([]byte(s))
	return hexText(sum[:])
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hexText(sum[:])
}

func TestMidtrans(t *testing.T) {
	t.Parallel()
	const secret = "SB-Mid-server-test-only"
	signed := func(message string, edits ...string) string {
		body := `{"transaction_status":"settlement","status_code":"200","signature_key":"SIG","order_id":"ord_1","gross_amount":"10000.00","canary":"CANARY"}`
		return swap(t, body, append(edits, "SIG", sha512Hex(message+secret))...)
	}
	const message = "ord_120010000.00"
	run(t, "midtrans", secret, []attempt{
		{name: "Genuine", body: signed(message)},
		{name: "UpperCase", body: swap(t, signed(message), sha512Hex(message+secret), strings.ToUpper(sha512Hex(message+secret)))},
		{name: "SpacesAndEscapes", body: swap(t, signed(message), `"ord_1"`, ` "\u006frd_1" `)},
		{name: "StatusOfTheTransactionIsNotCovered", body: swap(t, signed(message), "settlement", "deny")},
		{name: "NoDecimals", body: signed("ord_120010000", "10000.00", "10000")},
		{name: "RotatedSecret", body: signed(message), secrets: []string{"new", secret}},

		{name: "AnotherOrder", body: swap(t, signed(message), "ord_1", "ord_2"), want: signature.Mismatch},
		{name: "AnotherStatus", body: swap(t, signed(message), `"200"`, `"201"`), want: signature.Mismatch},
		{name: "AnotherAmount", body: swap(t, signed(message), "10000.00", "10.00"), want: signature.Mismatch},
		{name: "AmountReformatted", body: swap(t, signed(message), "10000.00", "10000"), want: signature.Mismatch},
		{name: "AnotherSecret", body: signed(message), secrets: []string{"x"}, want: signature.Mismatch},
		{name: "NoSecret", body: signed(message), secrets: []string{""}, want: signature.NoSecret},
		{name: "AmountIsANumber", body: swap(t, signed(message), `"10000.00"`, `10000.00`), want: signature.Malformed},
		{name: "NoOrder", body: swap(t, signed(message), `"order_id":"ord_1",`, ""), want: signature.Missing},
		{name: "OrderNull", body: swap(t, signed(message), `"ord_1"`, "null"), want: signature.Missing},
		{name: "OrderEmpty", body: swap(t, signed("20010000.00"), `"ord_1"`, `""`), want: signature.Missing},
		{name: "NoSignature", body: swap(t, signed(message), "signature_key", "other"), want: signature.Missing},
		{name: "SignatureEmpty", body: swap(t, signed(message), sha512Hex(message+secret), ""), want: signature.Missing},
		{name: "SHA256", body: swap(t, signed(message), sha512Hex(message+secret), sha256Hex(message+secret)), want: signature.Mismatch},
		{name: "KeyTwice", body: swap(t, signed(message), `"order_id"`, `"order_id":"ord_2","order_id"`), want: signature.Ambiguous},
		{name: "KeyTwiceInTwoCases", body: swap(t, signed(message), `"order_id"`, `"Order_ID":"ord_2","order_id"`), want: signature.Ambiguous},
		{name: "OtherKeyTwice", body: swap(t, signed(message), `"canary"`, `"transaction_status":"x","canary"`), want: signature.Ambiguous},
		{name: "NotJSON", body: "order_id=ord_1", want: signature.Malformed},
		{name: "AList", body: "[" + signed(message) + "]", want: signature.Malformed},
		{name: "MoreBehindIt", body: signed(message) + "{}", want: signature.Malformed},
		// The same bytes cut elsewhere.
		{name: "StatusOfNoAnswer", body: signed("ord_112010000.00", `"200"`, `"120"`), want: signature.Malformed},
		{name: "CutInTheStatus", body: signed(message, `"ord_1"`, `"ord_12"`, `"200"`, `"001"`, `"10000.00"`, `"0000.00"`), want: signature.Malformed},
		{name: "CutInTheOrder", body: signed(message, `"ord_1"`, `"ord_"`, `"200"`, `"1200"`), want: signature.Malformed},
		{name: "AmountWithALeadingZero", body: signed("ord_12000.00", "10000.00", "0.00", `"200"`, `"20"`), want: signature.Malformed},
	})
}

func TestWompi(t *testing.T) {
	t.Parallel()
	const secret = "test_events_only"
	const list = `["transaction.id","transaction.status","transaction.amount_in_cents"]`
	signed := func(message string, edits ...string) string {
		body := `{"event":"transaction.updated","data":{"transaction":{"id":"12-3","amount_in_cents":4490000,"reference":"ord_1",` +
			`"currency":"COP","status":"APPROVED","paid":true}},"signature":{"properties":` + list + `,"checksum":"SIG"},` +
			`"timestamp":1790000000,"canary":"CANARY"}`
		return swap(t, body, append(edits, "SIG", sha256Hex(message+secret))...)
	}
	const message = "12-3APPROVED44900001790000000"
	sig := sha256Hex(message + secret)
	header := func(v string) http.Header { return headers("X-Event-Checksum", v) }
	run(t, "wompi", secret, []attempt{
		{name: "Genuine", body: signed(message)},
		{name: "UpperCase", body: swap(t, signed(message), sig, strings.ToUpper(sig))},
		{name: "WithHeader", body: signed(message), header: header(strings.ToUpper(sig))},
		{name: "OtherOrder", body: signed("449000012-3APPROVED1790000000", list, `["transaction.amount_in_cents","transaction.id","transaction.status"]`)},
		{name: "MoreProperties", body: signed("12-3APPROVED4490000COPtrue1790000000", list, swap(t, list, "]", `,"transaction.currency","transaction.paid"]`))},
		{name: "EscapesAndSpaces", body: swap(t, signed(message), `"12-3"`, ` "\u0031\u0032-3" `)},
		{name: "UncoveredChanged", body: swap(t, signed(message), "ord_1", "ord_2")},

		{name: "AnotherAmount", body: swap(t, signed(message), "4490000", "100"), want: signature.Mismatch},
		{name: "AnotherStatus", body: swap(t, signed(message), "APPROVED", "DECLINED"), want: signature.Mismatch},
		{name: "AnotherTime", body: swap(t, signed(message), "1790000000", "1790000001"), want: signature.Mismatch},
		{name: "AnotherSecret", body: signed(message), secrets: []string{"x"}, want: signature.Mismatch},
		{name: "HeaderDiffers", body: signed(message), header: header(strings.Repeat("0", 64)), want: signature.Ambiguous},
		{name: "HeaderAlone", body: swap(t, signed(message), `,"checksum":"`+sig+`"`, ""), header: header(sig), want: signature.Missing},
		{name: "HeaderTwice", body: signed(message), header: headers("X-Event-Checksum", sig, "X-Event-Checksum", sig), want: signature.Ambiguous},
		{name: "DigitMovedToTheTime", body: signed(message, "4490000", "449000", "1790000000", "01790000000"), want: signature.Malformed},
		{name: "DigitMovedFromTheTime", body: signed(message, "4490000", "44900001", "1790000000", "790000000"), want: signature.Malformed},
		{name: "DigitMovedToTheStatus", body: signed(message, "4490000", "490000", "APPROVED", "APPROVED4"), want: signature.Malformed},
		{name: "StatusNotCovered", body: signed("12-344900001790000000", list, `["transaction.id","transaction.amount_in_cents"]`), want: signature.Missing},
		{name: "NothingCovered", body: signed("1790000000", list, `[]`), want: signature.Missing},
		{name: "PropertyTwice", body: signed("12-312-3APPROVED44900001790000000", list, swap(t, list, "[", `["transaction.id",`)), want: signature.Ambiguous},
		{name: "PropertyNotThere", body: signed(message, list, swap(t, list, "]", `,"transaction.other"]`)), want: signature.Missing},
		{name: "PropertyIsAnObject", body: signed(message, list, swap(t, list, "]", `,"transaction"]`)), want: signature.Malformed},
		{name: "PropertyOfNothing", body: signed(message, list, swap(t, list, "]", `,"transaction.id.x"]`)), want: signature.Malformed},
		{name: "PropertyEmpty", body: signed(message, list, swap(t, list, "]", `,""]`)), want: signature.Malformed},
		{name: "PropertyIsANumber", body: signed(message, list, swap(t, list, "]", `,1]`)), want: signature.Malformed},
		{name: "TooManyProperties", body: signed(message, list, swap(t, list, "]", strings.Repeat(`,"a"`, signature.MaxElements)+"]")), want: signature.Ambiguous},
		{name: "AmountIsAFraction", body: signed("12-3APPROVED4490000.01790000000", "4490000", "4490000.0"), want: signature.Malformed},
		{name: "AmountHasAnExponent", body: signed("12-3APPROVED449e41790000000", "4490000", "449e4"), want: signature.Malformed},
		{name: "NoTime", body: swap(t, signed(message), `"timestamp"`, `"other"`), want: signature.Missing},
		{name: "TimeIsAString", body: swap(t, signed(message), `1790000000`, `"1790000000"`), want: signature.Malformed},
		{name: "NoSignature", body: swap(t, signed(message), `"signature"`, `"other"`), want: signature.Missing},
		{name: "NoList", body: swap(t, signed(message), `"properties"`, `"other"`), want: signature.Missing},
		{name: "AmountTwice", body: swap(t, signed(message), `"reference"`, `"amount_in_cents":1,"reference"`), want: signature.Ambiguous},
		{name: "DataTwice", body: swap(t, signed(message), `"canary"`, `"Data":{},"canary"`), want: signature.Ambiguous},
		{name: "NotJSON", body: "a=1", want: signature.Malformed},
	})
}

// TestWompiSign: what is missing is added, and nothing else is changed.
func TestWompiSign(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("wompi")
	const head = `{"data":{"transaction":{"id":"1","amount_in_cents":5,"status":"VOIDED"}}`
	const list = `"properties":["transaction.id","transaction.status","transaction.amount_in_cents"]`
	for before, after := range map[string]string{
		head + `,"timestamp":1790000000}`:                                           `{"signature":{` + list + `,"checksum":"SIG"},` + head[1:] + `,"timestamp":1790000000}`,
		head + `,"signature":null,"timestamp":1790000000}`:                          head + `,"signature":{` + list + `,"checksum":"SIG"},"timestamp":1790000000}`,
		head + `,"signature":{"checksum":"x"},"timestamp":1790000000}`:              head + `,"signature":{` + list + `,"checksum":"SIG"},"timestamp":1790000000}`,
		head + `,"signature":{"checksum":"x",` + list + `},"timestamp":1790000000}`: head + `,"signature":{"checksum":"SIG",` + list + `},"timestamp":1790000000}`,
		head + `,"signature":{` + list + `},"timestamp":1790000000}`:                head + `,"signature":{"checksum":"SIG",` + list + `},"timestamp":1790000000}`,
	} {
		signed, err := s.Sign([]byte(before), "secret", now, signature.SignOptions{})
		require.NoError(t, err)
		sig := sha256Hex("1VOIDED51790000000secret")
		require.Equal(t, strings.Replace(after, "SIG", sig, 1), string(signed.Body))
		require.Equal(t, sig, signed.Header.Get("X-Event-Checksum"))
	}
}

func TestPayU(t *testing.T) {
	t.Parallel()
	const api, own = "4Vj8test", "test:123"
	algorithms := map[string]func(string) string{
		"MD5:" + api:                     func(s string) string { sum := md5.Sum([]byte(s)); return hexText(sum[:]) },
		"SHA1:" + api:                    func(s string) string { sum := sha1.Sum([]byte(s)); return hexText(sum[:]) },
		"SHA256:" + api:                  sha256Hex,
		"HMAC-SHA256:" + api + ":" + own: func(s string) string { return hexText(mac(own, s)) },
	}
	form := func(value, sign string, more ...string) string {
		return swap(t, "merchant_id=508029&state_pol=4&reference_sale=ord_1&value=VALUE&currency=USD&sign=SIGN&description=CANARY",
			append([]string{"VALUE", value, "SIGN", sign}, more...)...)
	}
	const message = api + "~508029~ord_1~150.0~USD~4"
	for secret, digest := range algorithms {
		var others []string
		for other := range algorithms {
			if other != secret {
				others = append(others, other)
			}
		}
		run(t, "payu-latam", secret, []attempt{
			{name: secret, body: form("150.00", digest(message))},
			{name: secret + "UpperCase", body: form("150.00", strings.ToUpper(digest(message)))},
			{name: secret + "BesideAnother", body: form("150.00", digest(message)), secrets: []string{others[0], secret}},
			{name: secret + "OtherAlgorithms", body: form("150.00", digest(message)), secrets: others, want: signature.Mismatch},
			{name: secret + "ValueAsItStands", body: form("150.00", digest(api+"~508029~ord_1~150.00~USD~4")), want: signature.Mismatch},
			{name: secret + "AnotherState", body: form("150.00", digest(message), "state_pol=4", "state_pol=6"), want: signature.Mismatch},
			{name: secret + "SignTwice", body: form("150.00", digest(message)) + "&sign=00", want: signature.Ambiguous},
		})
	}

	const secret = "MD5:" + api
	md5Hex := algorithms[secret]
	good := form("150.00", md5Hex(message))
	// more are fields that nobody needs.
	more := func(n int) (s string) {
		for i := range n {
			s += fmt.Sprintf("&x%d=1", i)
		}
		return s
	}
	attempts := []attempt{
		{name: "MostFields", body: good + more(993)},
		{name: "TildeInTheReference", body: form("150.00", md5Hex(api+"~508029~a~b~150.0~USD~4"), "ord_1", "a~b")},
		{name: "ReferenceEscaped", body: form("150.00", md5Hex(api+"~508029~pedido ñ~150.0~USD~4"), "ord_1", "pedido+%C3%B1")},
		{name: "NamesEscaped", body: swap(t, good, "sign=", "%73ign=")},

		{name: "AnotherReference", body: swap(t, good, "ord_1", "ord_2"), want: signature.Mismatch},
		{name: "AnotherCurrency", body: swap(t, good, "USD", "COP"), want: signature.Mismatch},
		{name: "AnotherMerchant", body: swap(t, good, "508029", "508020"), want: signature.Mismatch},
		{name: "SecretWithoutAlgorithm", body: good, secrets: []string{api}, want: signature.BadSecret},
		{name: "UnknownAlgorithm", body: good, secrets: []string{"MD4:" + api}, want: signature.BadSecret},
		{name: "HMACWithoutSecret", body: good, secrets: []string{"HMAC-SHA256:" + api}, want: signature.BadSecret},
		{name: "NoSign", body: swap(t, good, "sign=", "sig="), want: signature.Missing},
		{name: "NoValue", body: swap(t, good, "value=150.00&", ""), want: signature.Missing},
		{name: "ValueTwice", body: "value=1.00&" + good, want: signature.Ambiguous},
		{name: "ValueTwiceInTwoSpellings", body: "%76alue=1.00&" + good, want: signature.Ambiguous},
		{name: "OtherFieldTwice", body: good + "&description=x", want: signature.Ambiguous},
		{name: "TildeInTheCurrency", body: swap(t, good, "USD", "U~D"), want: signature.Malformed},
		{name: "Semicolon", body: swap(t, good, "&state", ";state"), want: signature.Malformed},
		{name: "BrokenEscape", body: good + "&a=%", want: signature.Malformed},
		{name: "NoEqualsSign", body: good + "&a", want: signature.Malformed},
		{name: "EmptyElement", body: good + "&", want: signature.Malformed},
		{name: "TooManyFields", body: good + more(994), want: signature.Malformed},
		{name: "JSON", body: `{"sign":"x"}`, want: signature.Malformed},
	}
	for value, want := range map[string]string{
		"150.25": "150.25", "150.20": "150.2", "150.2": "150.2", "150": "150.0", "0.00": "0.0", "0.05": "0.05", "1234567890123.00": "1234567890123.0",
	} {
		attempts = append(attempts, attempt{name: "Value " + value, body: form(value, md5Hex(api+"~508029~ord_1~"+want+"~USD~4"))})
	}
	for _, value := range []string{"150.250", "0150.00", "-1.00", "1e2", "150,00", "150.", ".5", "%2B1.00", "1.00 ", "NaN"} {
		plain, err := url.QueryUnescape(value)
		require.NoError(t, err)
		attempts = append(attempts, attempt{name: "Value " + value, body: form(value, md5Hex(api+"~508029~ord_1~"+plain+"~USD~4")), want: signature.Malformed})
	}
	run(t, "payu-latam", secret, attempts)
}

func TestBraintree(t *testing.T) {
	t.Parallel()
	const secret, payload = "public_key:private:key", "PG5vdGlmaWNhdGlvbj4+CANARY=\n"
	digest := func(message string) string {
		key := sha1.Sum([]byte("private:key"))
		h := hmac.New(sha1.New, key[:])
		h.Write([]byte(message))
		return hexText(h.Sum(nil))
	}
	form := func(sig, payload string) string {
		return "bt_signature=" + url.QueryEscape(sig) + "&bt_payload=" + url.QueryEscape(payload)
	}
	sig := digest(payload)
	ours := "public_key|" + sig
	zeros := strings.Repeat("0", 40)
	const challenge = "20f9f8ed05f77439fe955c977e4c8a53"
	run(t, "braintree", secret, []attempt{
		{name: "Genuine", body: form(ours, payload)},
		{name: "OtherOrder", body: "bt_payload=" + url.QueryEscape(payload) + "&bt_signature=" + url.QueryEscape(ours)},
		{name: "LineBreakLost", body: form(ours, strings.TrimSpace(payload))},
		{name: "SecondOfTwoKeys", body: form("other|"+zeros+"&"+ours, payload)},
		{name: "ElementWithoutKey", body: form("zzz&"+ours, payload)},
		{name: "RotatedSecret", body: form(ours, payload), secrets: []string{"new:key", secret}},
		{name: "AnotherPrivateKeyFirst", body: form(ours, payload), secrets: []string{"public_key:other", secret}},
		{name: "FieldAdded", body: form(ours, payload) + "&x=1"},

		{name: "LineBreakAdded", body: form(ours, payload+"\n"), want: signature.Mismatch},
		{name: "AnotherPayload", body: form(ours, "QQ==\n"), want: signature.Mismatch},
		{name: "AnotherSecret", body: form(ours, payload), secrets: []string{"public_key:other"}, want: signature.Mismatch},
		{name: "KeyIsTheTextOfThePrivateKey", body: form("public_key|"+hexText(mac("private:key", payload)), payload), want: signature.Mismatch},
		{name: "AnotherPublicKey", body: form("other|"+sig, payload), want: signature.Missing},
		{name: "PublicKeyInAnotherCase", body: form("Public_Key|"+sig, payload), want: signature.Missing},
		{name: "SecondUnderOurKey", body: form("public_key|"+zeros+"&"+ours, payload), want: signature.Mismatch},
		{name: "UpperCase", body: form(strings.ToUpper(ours), payload), want: signature.Missing},
		{name: "DigestInUpperCase", body: form("public_key|"+strings.ToUpper(sig), payload), want: signature.Malformed},
		{name: "TruncatedDigest", body: form(ours[:len(ours)-2], payload), want: signature.Mismatch},
		{name: "NoSignature", body: "bt_payload=" + url.QueryEscape(payload), want: signature.Missing},
		{name: "NoPayload", body: "bt_signature=" + url.QueryEscape(ours), want: signature.Missing},
		{name: "PayloadEmpty", body: form("public_key|"+digest(""), ""), want: signature.Missing},
		{name: "PlusNotEscaped", body: "bt_signature=" + url.QueryEscape(ours) + "&bt_payload=" + strings.ReplaceAll(url.QueryEscape(payload), "%2B", "+"), want: signature.Malformed},
		{name: "IllegalCharacter", body: form("public_key|"+digest(payload+"!"), payload+"!"), want: signature.Malformed},
		{name: "CarriageReturn", body: form("public_key|"+digest("QQ==\r\n"), "QQ==\r\n"), want: signature.Malformed},
		{name: "PayloadTwice", body: form(ours, payload) + "&bt_payload=QQ%3D%3D", want: signature.Ambiguous},
		{name: "SignatureTwice", body: form(ours, payload) + "&bt_signature=x", want: signature.Ambiguous},
		{name: "NotAForm", body: "<notification/>", want: signature.Malformed},
		{name: "TooManyPairs", body: form(strings.Repeat("a|b&", signature.MaxElements)+ours, payload), want: signature.Malformed},
		// Anybody can have a challenge signed.
		{name: "Challenge", body: form("public_key|"+digest(challenge), challenge), want: signature.Malformed},
		{name: "ChallengeWithALineBreak", body: form("public_key|"+digest(challenge+"\n"), challenge+"\n"), want: signature.Malformed},
		{name: "SecretWithoutColon", body: form(ours, payload), secrets: []string{"one-text"}, want: signature.BadSecret},
	})

	answer, err := signature.BraintreeChallenge(secret, challenge)
	require.NoError(t, err)
	require.Equal(t, "public_key|"+digest(challenge), answer)
	for _, bad := range []string{"", challenge[:19], challenge + "0", strings.ToUpper(challenge), payload, "zzf9f8ed05f77439fe955c977e4c8a53"} {
		answer, err := signature.BraintreeChallenge(secret, bad)
		require.Equal(t, signature.Malformed, signature.ReasonOf(err), bad)
		require.Empty(t, answer)
	}
	_, err = signature.BraintreeChallenge("", challenge)
	require.Equal(t, signature.NoSecret, signature.ReasonOf(err))
	_, err = signature.BraintreeChallenge("private", challenge)
	require.Equal(t, signature.BadSecret, signature.ReasonOf(err))
}

// TestBraintreeSign: XML becomes a form, and a form is signed in place.
func TestBraintreeSign(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("braintree")
	signed, err := s.Sign([]byte("<notification/>"), "pub:priv", now, signature.SignOptions{})
	require.NoError(t, err)
	fields, err := url.ParseQuery(string(signed.Body))
	require.NoError(t, err)
	require.Equal(t, base64Text([]byte("<notification/>"))+"\n", fields.Get("bt_payload"))
	require.NoError(t, s.Verify(signature.Request{Body: signed.Body}, []string{"pub:priv"}, now))

	again, err := s.Sign(signed.Body, "other:priv", now, signature.SignOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Verify(signature.Request{Body: again.Body}, []string{"other:priv"}, now))
	require.Error(t, s.Verify(signature.Request{Body: again.Body}, []string{"pub:priv"}, now))
}
