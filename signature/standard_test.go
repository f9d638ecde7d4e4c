package signature_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func TestStandard(t *testing.T) {
	t.Parallel()
	const at, id = "1790000000", "msg_1"
	key := decodedStandardKey(t)
	b64 := standardV1(key, id, at)
	zeros := base64.StdEncoding.EncodeToString(make([]byte, 32))
	webhook := func(id, t, sigs string) http.Header {
		return headers("Webhook-Id", id, "Webhook-Timestamp", t, "Webhook-Signature", sigs)
	}
	with := func(h http.Header, pairs ...string) http.Header {
		h = h.Clone()
		for name, v := range headers(pairs...) {
			h[name] = append(h[name], v...)
		}
		return h
	}
	without := func(h http.Header, name string) http.Header {
		h = h.Clone()
		h.Del(name)
		return h
	}
	good := webhook(id, at, "v1,"+b64)
	svix := headers("Svix-Id", id, "Svix-Timestamp", at, "Svix-Signature", "v1,"+b64)

	private, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(privateSecret, "whsk_"))
	require.NoError(t, err)
	ed := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(id+"."+at+"."+event)))
	v1a := webhook(id, at, "v1a,"+ed)
	public := []string{publicSecret}

	// Base64 that decodes to the same bytes and is written in another way.
	urlSafe := base64.URLEncoding.EncodeToString(mac(key, id+"."+at+"."+event))
	require.NotEqual(t, urlSafe, b64, "this digest shows no difference of the alphabets; use another id")
	loose := b64[:42] + string(b64[42]+1) + "=" // the two unused bits are not zero

	run(t, "standard", standardSecret, []attempt{
		{name: "Genuine", header: good},
		{name: "Svix", header: svix},
		{name: "BothNamesTheSame", header: with(good, "Svix-Id", id, "Svix-Timestamp", at, "Svix-Signature", "v1,"+b64)},
		{name: "NamesMixed", header: headers("Svix-Id", id, "Webhook-Timestamp", at, "Svix-Signature", "v1,"+b64)},
		{name: "SecretWithoutPrefix", header: good, secrets: []string{strings.TrimPrefix(standardSecret, "whsec_")}},
		{name: "SecondSecret", header: good, secrets: []string{"whsec_" + zeros, standardSecret}},
		{name: "SecondSignature", header: webhook(id, at, "v1,"+zeros+" v1,"+b64)},
		{name: "UnknownVersions", header: webhook(id, at, "v2,"+zeros+" v1a,"+ed+" v1,"+b64)},
		{name: "BrokenItems", header: webhook(id, at, "v1, nocomma  v1,"+b64)},
		{name: "IDWithFullStop", header: webhook("evt.abc", at, "v1,"+standardV1(key, "evt.abc", at))},
		{name: "ExactlyTheToleranceOld", header: good, now: now.Add(300 * time.Second)},
		{name: "ExactlyTheToleranceAhead", header: good, now: now.Add(-300 * time.Second)},
		{name: "Ed25519", header: v1a, secrets: public},
		{name: "Ed25519BesideHMAC", header: webhook(id, at, "v1,"+zeros+" v1a,"+ed), secrets: []string{standardSecret, publicSecret}},
		{name: "BadSecretBesideAGoodOne", header: good, secrets: []string{"whsec_!", standardSecret}},

		{name: "NoHeaders", header: http.Header{}, want: signature.Missing},
		{name: "NoID", header: without(good, "Webhook-Id"), want: signature.Missing},
		{name: "NoTimestamp", header: without(good, "Webhook-Timestamp"), want: signature.Missing},
		{name: "NoSignature", header: without(good, "Webhook-Signature"), want: signature.Missing},
		{name: "OnlySpaces", header: webhook(id, at, "  "), want: signature.Missing},
		{name: "OnlyV1a", header: v1a, want: signature.Missing},
		{name: "OnlyV1ForAPublicKey", header: good, secrets: public, want: signature.Missing},
		{name: "PartialSignature", header: webhook(id, at, "v1,"), want: signature.Malformed},
		{name: "NotBase64", header: webhook(id, at, "v1,***"), want: signature.Malformed},
		{name: "Hex", header: webhook(id, at, "v1,"+hexText(mac(key, id+"."+at+"."+event))), want: signature.Mismatch},
		{name: "UnpaddedBase64", header: webhook(id, at, "v1,"+strings.TrimRight(b64, "=")), want: signature.Malformed},
		{name: "URLAlphabet", header: webhook(id, at, "v1,"+urlSafe), want: signature.Malformed},
		{name: "UnusedBits", header: webhook(id, at, "v1,"+loose), want: signature.Malformed},
		{name: "LineBreakInBase64", header: webhook(id, at, "v1,"+b64[:20]+"\n"+b64[20:]), want: signature.Malformed},
		{name: "TooManyItems", header: webhook(id, at, strings.Repeat("v1,AA== ", signature.MaxElements)+"v1,"+b64), want: signature.Malformed},
		{name: "IDWithSpace", header: webhook("msg 1", at, "v1,"+standardV1(key, "msg 1", at)), want: signature.Malformed},
		{name: "IDNotASCII", header: webhook("msg_é", at, "v1,"+standardV1(key, "msg_é", at)), want: signature.Malformed},
		{name: "TimestampWithSign", header: webhook(id, "+"+at, "v1,"+standardV1(key, id, "+"+at)), want: signature.Malformed},
		{name: "TimestampSignedWithSign", header: webhook(id, "+"+at, "v1,"+b64), want: signature.Malformed},
		{name: "TimestampWithLeadingZero", header: webhook(id, "0"+at, "v1,"+b64), want: signature.Malformed},

		{name: "LiteralSecretAsKey", header: webhook(id, at, "v1,"+standardV1(standardSecret, id, at)), want: signature.Mismatch},
		{name: "AnotherSecret", header: good, secrets: []string{"whsec_" + zeros}, want: signature.Mismatch},
		{name: "OneByteOfTheBody", header: good, body: event + " ", want: signature.Mismatch},
		{name: "AnotherID", header: webhook("msg_2", at, "v1,"+b64), want: signature.Mismatch},
		{name: "AnotherTime", header: webhook(id, "1790000001", "v1,"+b64), want: signature.Mismatch},
		{name: "Ed25519AsV1", header: webhook(id, at, "v1,"+ed), want: signature.Mismatch},
		{name: "Ed25519OtherBody", header: v1a, body: event + " ", secrets: public, want: signature.Mismatch},
		{name: "HMACAsV1a", header: webhook(id, at, "v1a,"+b64), secrets: public, want: signature.Mismatch},
		{name: "HMACKeyedWithThePublicKeyAsV1a", header: webhook(id, at, "v1a,"+standardV1(string(private[32:]), id, at)), secrets: public, want: signature.Mismatch},
		{name: "HMACKeyedWithThePublicKeyAsV1", header: webhook(id, at, "v1,"+standardV1(string(private[32:]), id, at)), secrets: public, want: signature.Missing},

		{name: "SignatureTwice", header: with(good, "Webhook-Signature", "v1,"+b64), want: signature.Ambiguous},
		{name: "IDTwice", header: with(good, "Webhook-Id", id), want: signature.Ambiguous},
		{name: "TimestampTwice", header: with(good, "Webhook-Timestamp", at), want: signature.Ambiguous},
		{name: "AnotherIDUnderTheOtherName", header: with(svix, "Webhook-Id", "msg_2"), want: signature.Ambiguous},
		{name: "OtherNameTwice", header: with(svix, "Svix-Id", id), want: signature.Ambiguous},
		{name: "IDWithATimeInIt", header: webhook("msg.1790000000", at, "v1,"+standardV1(key, "msg.1790000000", at)), want: signature.Ambiguous},

		{name: "TooOld", header: good, now: now.Add(301 * time.Second), want: signature.Stale},
		{name: "TooNew", header: good, now: now.Add(-301 * time.Second), want: signature.Future},
		{name: "Ed25519TooOld", header: v1a, secrets: public, now: now.Add(301 * time.Second), want: signature.Stale},

		{name: "NoSecrets", header: good, secrets: []string{}, want: signature.NoSecret},
		{name: "EmptySecret", header: webhook(id, at, "v1,"+standardV1("", id, at)), secrets: []string{""}, want: signature.NoSecret},
		{name: "PrefixAlone", header: webhook(id, at, "v1,"+standardV1("", id, at)), secrets: []string{"whsec_"}, want: signature.BadSecret},
		{name: "SecretNotBase64", header: good, secrets: []string{"whsec_not base64"}, want: signature.BadSecret},
		{name: "PrivateKeyDoesNotVerify", header: v1a, secrets: []string{privateSecret}, want: signature.BadSecret},
		{name: "PublicKeyOf64Bytes", header: v1a, secrets: []string{"whpk_" + strings.TrimPrefix(privateSecret, "whsk_")}, want: signature.BadSecret},
	})
}

// TestStandardSplitOnce: the bytes of one genuine message cannot be sent as
// another id, time and body.
func TestStandardSplitOnce(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("standard")
	body := `{"note":".1790000000.{\"type\":\"payment.paid\"}"}`
	signed, err := s.Sign([]byte(body), standardSecret, now, signature.SignOptions{ID: "msg_1"})
	require.NoError(t, err)

	id, moved, _ := strings.Cut(body, ".1790000000.")
	h := signed.Header.Clone()
	h.Set("Webhook-Id", "msg_1.1790000000."+id)
	err = s.Verify(signature.Request{Header: h, Body: []byte(moved)}, []string{standardSecret}, now)
	require.Equal(t, signature.Ambiguous, signature.ReasonOf(err))
}

func TestStandardSignOptions(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("standard")
	sign := func(body, id string) http.Header {
		t.Helper()
		signed, err := s.Sign([]byte(body), standardSecret, now, signature.SignOptions{ID: id})
		require.NoError(t, err)
		require.Equal(t, body, string(signed.Body))
		return signed.Header
	}
	require.Equal(t, "msg_7", sign("{}", "msg_7").Get("Webhook-Id"))
	require.Equal(t, "1790000000", sign("{}", "msg_7").Get("Webhook-Timestamp"))
	require.Equal(t, "msg_44136fa355b3678a1146ad16f7e8649e", sign("{}", "").Get("Webhook-Id"))
	require.NotEqual(t, sign("{}", "").Get("Webhook-Id"), sign("[]", "").Get("Webhook-Id"))

	for _, id := range []string{"a b", "a\nb", "é"} {
		_, err := s.Sign(nil, standardSecret, now, signature.SignOptions{ID: id})
		require.Equal(t, signature.Malformed, signature.ReasonOf(err), "%q", id)
	}
	_, err := s.Sign(nil, standardSecret, now, signature.SignOptions{ID: "a.1"})
	require.Equal(t, signature.Ambiguous, signature.ReasonOf(err))
	_, err = s.Sign(nil, standardSecret, time.Unix(-1, 0), signature.SignOptions{})
	require.Equal(t, signature.Malformed, signature.ReasonOf(err))
}
