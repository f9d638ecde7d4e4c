package signature_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func TestPaddle(t *testing.T) {
	t.Parallel()
	const at, secret = "1790000000", "pdl_ntfset_test_only"
	h1 := hexText(mac(secret, at+":"+event))
	forged := strings.Repeat("0", 64)
	one := func(value string) http.Header { return headers("Paddle-Signature", value) }
	good := one("ts=" + at + ";h1=" + h1)
	run(t, "paddle", secret, []attempt{
		{name: "Genuine", header: good},
		{name: "SecondOfTwoH1", header: one("ts=" + at + ";h1=" + forged + ";h1=" + h1)},
		{name: "FirstOfTwoH1", header: one("ts=" + at + ";h1=" + h1 + ";h1=" + forged)},
		{name: "UnknownLabel", header: one("ts=" + at + ";h2=" + forged + ";h1=" + h1)},
		{name: "TimeLast", header: one("h1=" + h1 + ";ts=" + at)},
		{name: "RotatedSecret", header: good, secrets: []string{"new", secret}},
		{name: "ExactlyTheToleranceOld", header: good, now: now.Add(300 * time.Second)},
		{name: "ExactlyTheToleranceAhead", header: good, now: now.Add(-300 * time.Second)},
		{name: "WiderTolerance", header: good, now: now.Add(time.Hour), tolerance: time.Hour},

		{name: "TooOld", header: good, now: now.Add(301 * time.Second), want: signature.Stale},
		{name: "TooNew", header: good, now: now.Add(-301 * time.Second), want: signature.Future},
		{name: "NarrowerTolerance", header: good, now: now.Add(6 * time.Second), tolerance: 5 * time.Second, want: signature.Stale},
		{name: "NoHeader", want: signature.Missing},
		{name: "NoTime", header: one("h1=" + h1), want: signature.Missing},
		{name: "NoH1", header: one("ts=" + at), want: signature.Missing},
		{name: "TwoTimes", header: one("ts=" + at + ";ts=" + at + ";h1=" + h1), want: signature.Ambiguous},
		{name: "Words", header: one("ts=x;h1=y"), want: signature.Malformed},
		{name: "Commas", header: one("ts=" + at + ",h1=" + h1), want: signature.Malformed},
		{name: "Spaces", header: one("ts=" + at + "; h1=" + h1), want: signature.Malformed},
		{name: "UpperCase", header: one("ts=" + at + ";h1=" + strings.ToUpper(h1)), want: signature.Malformed},
		{name: "LeadingZero", header: one("ts=0" + at + ";h1=" + hexText(mac(secret, "0"+at+":"+event))), want: signature.Malformed},
		{name: "AnotherTime", header: one("ts=1790000001;h1=" + h1), want: signature.Mismatch},
		{name: "FullStop", header: one("ts=" + at + ";h1=" + hexText(mac(secret, at+"."+event))), want: signature.Mismatch},
		{name: "AnotherBody", header: good, body: "{}", want: signature.Mismatch},
		{name: "HeaderTwice", header: headers("Paddle-Signature", "ts="+at+";h1="+h1, "Paddle-Signature", "ts="+at+";h1="+h1), want: signature.Ambiguous},
	})
}

func TestSquare(t *testing.T) {
	t.Parallel()
	const secret, address, name = "sq-test-only-key", "https://shop.example/webhooks/square", "X-Square-Hmacsha256-Signature"
	sig := base64Text(mac(secret, address+event))
	good := headers(name, sig)
	run(t, "square", secret, []attempt{
		{name: "Genuine", header: good, url: address},
		{name: "NameInLowerCase", header: http.Header{"x-square-hmacsha256-signature": {sig}}, url: address},
		{name: "RotatedSecret", header: good, url: address, secrets: []string{"new", secret}},

		{name: "NoURLConfigured", header: good, want: signature.Missing},
		{name: "NoHeader", url: address, want: signature.Missing},
		{name: "SlashAdded", header: good, url: address + "/", want: signature.Mismatch},
		{name: "HTTP", header: good, url: "http" + address[5:], want: signature.Mismatch},
		{name: "QueryAdded", header: good, url: address + "?a=1", want: signature.Mismatch},
		{name: "BodyAlone", header: headers(name, base64Text(mac(secret, event))), url: address, want: signature.Mismatch},
		{name: "AnotherBody", header: good, url: address, body: "{}", want: signature.Mismatch},
		{name: "AnotherSecret", header: good, url: address, secrets: []string{"x"}, want: signature.Mismatch},
		{name: "Twice", header: headers(name, sig, name, sig), url: address, want: signature.Ambiguous},
	})
}

func TestDLocal(t *testing.T) {
	t.Parallel()
	const date, secret, login = "2026-09-21T13:33:20.000Z", "login1:secret:key", "login1"
	authorization := func(date, body string) string {
		return "V2-HMAC-SHA256, Signature: " + hexText(mac("secret:key", login+date+body))
	}
	with := func(date, auth string, more ...string) http.Header {
		return headers(append([]string{"X-Date", date, "Authorization", auth}, more...)...)
	}
	good := with(date, authorization(date, event), "X-Login", login)
	attempts := []attempt{
		{name: "Genuine", header: good},
		{name: "WithoutXLogin", header: with(date, authorization(date, event))},
		{name: "RotatedSecret", header: good, secrets: []string{"login1:new", secret}},
		{name: "OtherLoginBesideOurs", header: good, secrets: []string{"login2:secret:key", secret}},
		{name: "DaysLater", header: good, now: now.AddDate(0, 0, 7)},
		{name: "ToleranceAsked", header: good, now: time.Date(2026, 9, 21, 13, 33, 25, 0, time.UTC), tolerance: 5 * time.Second},

		{name: "ToleranceAskedAndTooOld", header: good, now: time.Date(2026, 9, 21, 13, 33, 26, 0, time.UTC), tolerance: 5 * time.Second, want: signature.Stale},
		{name: "AnotherXLogin", header: with(date, authorization(date, event), "X-Login", "login2"), want: signature.Mismatch},
		{name: "XLoginTwice", header: with(date, authorization(date, event), "X-Login", login, "X-Login", login), want: signature.Ambiguous},
		{name: "AnotherLogin", header: good, secrets: []string{"login2:secret:key"}, want: signature.Mismatch},
		{name: "NoDate", header: headers("Authorization", authorization("", event)), want: signature.Missing},
		{name: "AnotherDate", header: with("2026-09-21T13:33:21.000Z", authorization(date, event)), want: signature.Mismatch},
		{name: "DateTwice", header: with(date, authorization(date, event), "X-Date", date), want: signature.Ambiguous},
		{name: "NoAuthorization", header: headers("X-Date", date), want: signature.Missing},
		{name: "Bearer", header: with(date, "Bearer "+hexText(mac("secret:key", login+date+event))), want: signature.Malformed},
		{name: "Bare", header: with(date, hexText(mac("secret:key", login+date+event))), want: signature.Malformed},
		{name: "V1", header: with(date, strings.Replace(authorization(date, event), "V2", "V1", 1)), want: signature.Malformed},
		{name: "PrefixInLowerCase", header: with(date, strings.ToLower(authorization(date, event))), want: signature.Malformed},
		{name: "SignatureMissing", header: with(date, "V2-HMAC-SHA256, Signature: "), want: signature.Missing},
		{name: "AnotherBody", header: good, body: `{"amount":72.00}`, want: signature.Mismatch},
		{name: "SecretWithoutLogin", header: good, secrets: []string{"secretkey"}, want: signature.BadSecret},
		// The first bytes of the body as the last of the date.
		{name: "BodyInTheDate", header: with(date+"{", authorization(date, event)), body: event[1:], want: signature.Malformed},
		{name: "DateInTheBody", header: with(date[:10], authorization(date, event)), body: date[10:] + event, want: signature.Malformed},
	}
	for date, fine := range map[string]bool{
		"2026-09-21T13:33:20Z": true, "2026-09-21T13:33:20+00:00": true, "2026-09-21T10:33:20.123456789-0300": true,
		"2026-09-21 13:33:20Z": false, "2026-09-21T13:33:20": false, "2026-13-21T13:33:20Z": false, "2026-09-21T25:33:20Z": false,
		"2026-09-21T13:33:20.Z": false, "2026-09-21T13:33:20,5Z": false, "2026-09-21T13:33:20z": false, "1790000000": false,
		"2026-09-21T13:33:20+00": false, "2026-09-21T13:33:20+000:0": false, "2026-09-21T13:33:20.1234567890Z": false, "": false,
	} {
		a := attempt{name: "Date " + date, header: with(date, authorization(date, event)), want: signature.Malformed}
		if fine {
			a.want = ""
		} else if date == "" {
			a.want = signature.Missing
		}
		attempts = append(attempts, a)
	}
	run(t, "dlocal", secret, attempts)
}

func TestKushki(t *testing.T) {
	t.Parallel()
	const id, secret = "1790000000123", "20000000105986396000"
	sig := hexText(mac(secret, event+"."+id))
	with := func(id, sig string) http.Header {
		return headers("X-Kushki-Id", id, "X-Kushki-Signature", sig, "X-Kushki-SimpleSignature", hexText(mac(secret, id)))
	}
	good := with(id, sig)
	run(t, "kushki", secret, []attempt{
		{name: "Genuine", header: good},
		{name: "Seconds", header: with("1790000000", hexText(mac(secret, event+".1790000000"))), tolerance: time.Second},
		{name: "MillisecondsInTime", header: good, tolerance: time.Second},
		{name: "FewestMilliseconds", header: with("100000000000", hexText(mac(secret, event+".100000000000"))), now: time.Unix(100_000_000, 0), tolerance: time.Second},
		{name: "MostSeconds", header: with("99999999999", hexText(mac(secret, event+".99999999999"))), now: time.Unix(99_999_999_999, 0), tolerance: time.Second},
		{name: "LongAgo", header: good, now: now.AddDate(1, 0, 0)},
		{name: "EmptyBody", header: with(id, hexText(mac(secret, " ."+id))), body: " "},

		{name: "LongAgoAndToleranceAsked", header: good, now: now.AddDate(1, 0, 0), tolerance: time.Minute, want: signature.Stale},
		{name: "SimpleSignatureAlone", header: headers("X-Kushki-Id", id, "X-Kushki-SimpleSignature", hexText(mac(secret, id))), want: signature.Missing},
		{name: "SimpleSignatureAsTheOther", header: with(id, hexText(mac(secret, id))), want: signature.Mismatch},
		{name: "BodyAlone", header: with(id, hexText(mac(secret, event))), want: signature.Mismatch},
		{name: "AnotherBodyWithAGoodSimpleSignature", header: good, body: "{}", want: signature.Mismatch},
		{name: "NoID", header: headers("X-Kushki-Signature", sig), want: signature.Missing},
		{name: "AnotherID", header: with("1790000000124", sig), want: signature.Mismatch},
		{name: "IDIsAWord", header: with("a", hexText(mac(secret, event+".a"))), want: signature.Malformed},
		// The end of the body as the beginning of the id.
		{name: "BodyInTheID", header: with("5."+id, hexText(mac(secret, "1.5."+id))), body: "1", want: signature.Malformed},
		{name: "IDTwice", header: headers("X-Kushki-Id", id, "X-Kushki-Id", id, "X-Kushki-Signature", sig), want: signature.Ambiguous},
	})
}

func TestMercadoPago(t *testing.T) {
	t.Parallel()
	const secret, request, millis = "mp-test-only-secret", "2066ca19-c6f1", "1790000000683"
	sign := func(manifest string) string { return hexText(mac(secret, manifest)) }
	with := func(ts, v1 string, more ...string) http.Header {
		return headers(append([]string{"X-Signature", "ts=" + ts + ",v1=" + v1}, more...)...)
	}
	full := sign("id:123;request-id:" + request + ";ts:" + millis + ";")
	good := with(millis, full, "X-Request-Id", request)
	lower := sign("id:ord01;request-id:" + request + ";ts:" + millis + ";")
	raw := sign("id:ORD01;request-id:" + request + ";ts:" + millis + ";")
	const query = "data.id=123&type=payment"
	run(t, "mercadopago", secret, []attempt{
		{name: "Genuine", header: good, query: query},
		{name: "TypeFirst", header: good, query: "type=payment&data.id=123"},
		{name: "NameEscaped", header: good, query: "data%2Eid=123"},
		{name: "BodyIsNotSigned", header: good, query: query, body: `{"other":"body"}`},
		{name: "SignedInLowerCase", header: with(millis, lower, "X-Request-Id", request), query: "data.id=ORD01"},
		{name: "SignedAsItStands", header: with(millis, raw, "X-Request-Id", request), query: "data.id=ORD01"},
		{name: "Seconds", header: with("1790000000", sign("id:123;request-id:"+request+";ts:1790000000;"), "X-Request-Id", request), query: query, tolerance: time.Second},
		{name: "MillisecondsInTime", header: good, query: query, tolerance: time.Second},
		{name: "LongAgo", header: good, query: query, now: now.AddDate(1, 0, 0)},
		{name: "NoID", header: with(millis, sign("request-id:"+request+";ts:"+millis+";"), "X-Request-Id", request)},
		{name: "NoRequestID", header: with(millis, sign("id:123;ts:"+millis+";")), query: query},
		{name: "TimeAlone", header: with(millis, sign("ts:"+millis+";"))},
		{name: "SpacesAndUpperCase", header: headers("X-Signature", " TS = "+millis+" , V1="+full+", v2=aa", "X-Request-Id", request), query: query},
		{name: "SecondOfTwoV1", header: headers("X-Signature", "ts="+millis+",v1=00,v1="+full, "X-Request-Id", request), query: query},
		{name: "RotatedSecret", header: good, query: query, secrets: []string{"new", secret}},

		{name: "LongAgoAndToleranceAsked", header: good, query: query, now: now.AddDate(1, 0, 0), tolerance: time.Minute, want: signature.Stale},
		{name: "AheadAndToleranceAsked", header: good, query: query, now: now.Add(-time.Hour), tolerance: time.Minute, want: signature.Future},
		{name: "AnotherID", header: good, query: "data.id=124", want: signature.Mismatch},
		{name: "IDTakenOut", header: good, want: signature.Mismatch},
		{name: "RequestIDTakenOut", header: with(millis, full), query: query, want: signature.Mismatch},
		{name: "IDOfIPN", header: good, query: "id=123&topic=payment", want: signature.Mismatch},
		{name: "NameInUpperCase", header: good, query: "DATA.ID=123", want: signature.Mismatch},
		{name: "IDTwice", header: good, query: query + "&data.id=123", want: signature.Ambiguous},
		{name: "IDTwiceInTwoSpellings", header: good, query: query + "&data%2eid=124", want: signature.Ambiguous},
		{name: "BrokenEscape", header: good, query: "data.id=%zz", want: signature.Malformed},
		{name: "RequestIDTwice", header: with(millis, full, "X-Request-Id", request, "X-Request-Id", request), query: query, want: signature.Ambiguous},
		{name: "HeaderTwice", header: headers("X-Signature", "ts="+millis+",v1="+full, "X-Signature", "ts="+millis+",v1="+full), query: query, want: signature.Ambiguous},
		{name: "TwoTimes", header: headers("X-Signature", "ts="+millis+",ts="+millis+",v1="+full, "X-Request-Id", request), query: query, want: signature.Ambiguous},
		{name: "NoTime", header: headers("X-Signature", "v1="+full, "X-Request-Id", request), query: query, want: signature.Missing},
		{name: "TimeIsAWord", header: with("x", sign("id:123;ts:x;")), query: query, want: signature.Malformed},
		{name: "OnlyV2", header: headers("X-Signature", "ts="+millis+",v2="+full, "X-Request-Id", request), query: query, want: signature.Missing},
		{name: "NoHeader", query: query, want: signature.Missing},
		{name: "Garbage", header: headers("X-Signature", "garbage"), query: query, want: signature.Missing},
		{name: "NoFinalSemicolon", header: with(millis, sign("id:123;request-id:"+request+";ts:"+millis), "X-Request-Id", request), query: query, want: signature.Mismatch},
		{name: "UpperCaseDigest", header: with(millis, strings.ToUpper(full), "X-Request-Id", request), query: query, want: signature.Malformed},
		// One pair posing as two, both ways.
		{name: "RequestIDInTheID", header: with(millis, full), query: "data.id=" + url.QueryEscape("123;request-id:"+request), want: signature.Malformed},
		{name: "TimeInTheRequestID", header: headers("X-Signature", "ts="+millis+",v1="+sign("request-id:a;ts:1;ts:"+millis+";"), "X-Request-Id", "a;ts:1"), want: signature.Malformed},
	})
}

// TestMercadoPagoSign: the id goes into the query, from the options or the body.
func TestMercadoPagoSign(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("mercadopago")
	for name, tt := range map[string]struct{ body, query, want string }{
		"FromTheOptions": {`{"data":{"id":"1"}}`, "data.id=2&type=order", "data.id=2&type=order"},
		"String":         {`{"type":"payment","data":{"id":"1"}}`, "", "data.id=1&type=payment"},
		"Number":         {`{"data":{"id":12345678901234567890}}`, "", "data.id=12345678901234567890"},
		"NoID":           {`{"data":{"id":null}}`, "", ""},
		"NotJSON":        {"a=1", "", ""},
	} {
		signed, err := s.Sign([]byte(tt.body), "mp-test-only-secret", now, signature.SignOptions{Query: tt.query})
		require.NoError(t, err, name)
		require.Equal(t, tt.want, signed.Query, name)
		req := signature.Request{Query: signed.Query, Header: signed.Header, Body: signed.Body, Tolerance: time.Second}
		require.NoError(t, s.Verify(req, []string{"mp-test-only-secret"}, now), name)
	}
	_, err := s.Sign(nil, "mp-test-only-secret", now, signature.SignOptions{Query: "data.id=a%3Bb"})
	require.Equal(t, signature.Malformed, signature.ReasonOf(err))
}
