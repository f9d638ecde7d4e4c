package signature_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func TestStripe(t *testing.T) {
	t.Parallel()
	const at = "1790000000"
	v1 := stripeV1(stripeSecret, at)
	forged := strings.Repeat("d", 64)
	one := func(value string) http.Header { return headers("Stripe-Signature", value) }
	good := one("t=" + at + ",v1=" + v1)

	attempts := []attempt{
		{name: "Genuine", header: good},
		{name: "RotatedSecretNew", header: good, secrets: []string{stripeSecret, "whsec_old"}},
		{name: "RotatedSecretOld", header: good, secrets: []string{"whsec_new", stripeSecret}},
		{name: "EmptySecretBesideAGoodOne", header: good, secrets: []string{"", stripeSecret}},
		{name: "SecondOfTwoV1", header: one("t=" + at + ",v1=" + forged + ",v1=" + v1)},
		{name: "BrokenV1BesideAGoodOne", header: one("t=" + at + ",v1=zz,v1=,v1=" + v1)},
		{name: "OtherVersionsPassedOver", header: one("t=" + at + ",v0=" + forged + ",v1=" + v1 + ",x=1")},
		{name: "UpperCaseHex", header: one("t=" + at + ",v1=" + strings.ToUpper(v1))},
		{name: "TimeLast", header: one("v1=" + v1 + ",t=" + at)},
		{name: "NameInAnotherSpelling", header: http.Header{"stripe-signature": good["Stripe-Signature"]}},
		{name: "ExactlyTheToleranceOld", header: good, now: now.Add(300*time.Second + 999*time.Millisecond)},
		{name: "ExactlyTheToleranceAhead", header: good, now: now.Add(-300 * time.Second)},
		{name: "MostElements", header: one("t=" + at + strings.Repeat(",v1=00", signature.MaxElements-2) + ",v1=" + v1)},

		{name: "NoHeader", header: http.Header{}, want: signature.Missing},
		{name: "NilHeader", want: signature.Missing},
		{name: "EmptyHeader", header: one(""), want: signature.Missing},
		{name: "TimeAlone", header: one("t=" + at), want: signature.Missing},
		{name: "EmptyDigest", header: one("t=" + at + ",v1="), want: signature.Malformed},
		{name: "EmptyDigestAlone", header: one("v1="), want: signature.Missing},
		{name: "OnlyV0", header: one("t=" + at + ",v0=" + v1), want: signature.Missing},
		{name: "NoTime", header: one("v1=" + v1), want: signature.Missing},
		{name: "Garbage", header: one("garbage"), want: signature.Malformed},
		{name: "ElementWithoutLabel", header: one("t=" + at + ",v1=" + v1 + ",x"), want: signature.Malformed},
		{name: "TooManyElements", header: one("t=" + at + strings.Repeat(",v1=00", signature.MaxElements) + ",v1=" + v1), want: signature.Malformed},
		{name: "SpaceBetweenElements", header: one("t=" + at + ", v1=" + v1), want: signature.Malformed},
		{name: "SpaceAfterTheDigest", header: one("t=" + at + ",v1=" + v1 + " "), want: signature.Malformed},
		{name: "NotHex", header: one("t=" + at + ",v1=dummy" + v1[5:]), want: signature.Malformed},
		{name: "Base64", header: one("t=" + at + ",v1=" + base64.StdEncoding.EncodeToString(mac(stripeSecret, at+"."+event))), want: signature.Malformed},
		{name: "OddHex", header: one("t=" + at + ",v1=" + v1[1:]), want: signature.Malformed},
		{name: "SpaceInDigest", header: one("t=" + at + ",v1= " + v1), want: signature.Malformed},
		{name: "TooLongForADigest", header: one("t=" + at + ",v1=" + strings.Repeat(v1, 3)), want: signature.Malformed},
		{name: "TruncatedDigest", header: one("t=" + at + ",v1=" + v1[:62]), want: signature.Mismatch},
		{name: "LongerDigest", header: one("t=" + at + ",v1=" + v1 + "00"), want: signature.Mismatch},
		{name: "AnotherDigest", header: one("t=" + at + ",v1=" + forged), want: signature.Mismatch},
		{name: "AnotherSecret", header: good, secrets: []string{"whsec_other"}, want: signature.Mismatch},
		{name: "SecretDecoded", header: one("t=" + at + ",v1=" + stripeV1(strings.TrimPrefix(stripeSecret, "whsec_"), at)), want: signature.Mismatch},
		{name: "OneByteOfTheBody", header: good, body: strings.Replace(event, "evt_1", "evt_2", 1), want: signature.Mismatch},
		{name: "AnotherTime", header: one("t=1790000001,v1=" + v1), want: signature.Mismatch},

		{name: "HeaderTwice", header: headers("Stripe-Signature", "t="+at+",v1="+forged, "Stripe-Signature", "t="+at+",v1="+v1), want: signature.Ambiguous},
		{name: "HeaderTwiceTheSame", header: headers("Stripe-Signature", good.Get("Stripe-Signature"), "Stripe-Signature", good.Get("Stripe-Signature")), want: signature.Ambiguous},
		{name: "HeaderTwiceInTwoSpellings", header: http.Header{"stripe-signature": {"t=1,v1=" + forged}, "STRIPE-SIGNATURE": good["Stripe-Signature"]}, want: signature.Ambiguous},
		{name: "TwoHeadersJoined", header: one("t=" + at + ",v1=" + forged + ",t=" + at + ",v1=" + v1), want: signature.Ambiguous},
		{name: "TwoHeadersJoinedWithASpace", header: one("t=" + at + ",v1=" + forged + ", t=" + at + ",v1=" + v1), want: signature.Malformed},
		{name: "TimeOfOneV1OfAnother", header: headers("Stripe-Signature", "t="+at+",v1="+forged, "Stripe-Signature", "t=1,v1="+v1), want: signature.Ambiguous},
		{name: "TwoTimes", header: one("t=1789990001,t=" + at + ",v1=" + v1), want: signature.Ambiguous},

		{name: "TooOld", header: good, now: now.Add(301 * time.Second), want: signature.Stale},
		{name: "TooNew", header: good, now: now.Add(-301 * time.Second), want: signature.Future},
		{name: "OneHourAhead", header: good, now: now.Add(-time.Hour), want: signature.Future},
		{name: "ClockNeverSet", header: good, now: time.Unix(-1<<40, 0), want: signature.Future},
		{name: "OldAndForgedIsForged", header: one("t=" + at + ",v1=" + forged), now: now.Add(time.Hour), want: signature.Mismatch},

		{name: "NoSecrets", header: good, secrets: []string{}, want: signature.NoSecret},
		{name: "EmptySecretsOnly", header: one("t=" + at + ",v1=" + stripeV1("", at)), secrets: []string{"", ""}, want: signature.NoSecret},
	}
	// Case 129: a valid MAC over a time that is no plain number.
	for name, text := range map[string]string{
		"TimeIsAWord": "abc", "TimeIsEmpty": "", "TimeHasAnExponent": "1e9", "TimeHasASign": "+" + at, "TimeIsNegative": "-" + at,
		"TimeOverflows": "99999999999999999999", "TimeHasAFraction": at + ".0", "TimeHasALeadingZero": "0" + at,
		"TimeHasAnUnderscore": "1_790_000_000", "TimeIsHexadecimal": "0x6AB13B80", "TimeInOtherDigits": "١٧٩٠٠٠٠٠٠٠", "TimeHasASpace": " " + at,
	} {
		attempts = append(attempts, attempt{
			name: name, header: one("t=" + text + ",v1=" + stripeV1(stripeSecret, text)), want: signature.Malformed,
		})
	}
	attempts = append(attempts, attempt{
		name:   "TimeInMilliseconds",
		header: one("t=" + at + "000,v1=" + stripeV1(stripeSecret, at+"000")),
		want:   signature.Future,
	})
	run(t, "stripe", stripeSecret, attempts)
}

// TestStripeBodies are bodies that must be signed and checked as they came: the
// empty one (case 001), escapes (017), line ends (023), compressed (099), a byte
// order mark (107), bytes that are not UTF-8.
func TestStripeBodies(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("stripe")
	for _, body := range []string{
		"", "null", `"pong"`, "[]", "{}",
		`{"note":"\u001b[0m \u00E9 C:\\users\\u0041","url":"https:\/\/x"}`,
		"{ \"b\" : 1,\r\n  \"a\" : 2 }\r\n", "\x1f\x8b\x08\x00", "\xef\xbb\xbf{}", "\xff\xfe",
	} {
		v1 := mac(stripeSecret, strconv.Itoa(signedAt)+"."+body)
		req := signature.Request{
			Header: headers("Stripe-Signature", "t=1790000000,v1="+hexText(v1)),
			Body:   []byte(body),
		}
		require.NoError(t, s.Verify(req, []string{stripeSecret}, now), "%q", body)
		req.Body = append(req.Body, '\n')
		require.Equal(t, signature.Mismatch, signature.ReasonOf(s.Verify(req, []string{stripeSecret}, now)))
	}
}

func TestStripeSkewIsInTheError(t *testing.T) {
	t.Parallel()
	req := signature.Request{
		Header: headers("Stripe-Signature", "t=1790000000,v1="+stripeV1(stripeSecret, "1790000000")),
		Body:   []byte(event),
	}
	var refused *signature.Error
	require.ErrorAs(t, signature.Verify("stripe", req, []string{stripeSecret}, now.Add(-10*time.Minute)), &refused)
	require.Equal(t, signature.Error{
		Scheme: "stripe", Reason: signature.Future, Skew: -10 * time.Minute, Tolerance: 5 * time.Minute,
	}, *refused)
	require.EqualError(t, refused, "signature: stripe: future: skew -10m0s, tolerance 5m0s")
}
