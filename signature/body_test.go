package signature_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// bodyRow is a scheme that signs the body alone, as its gateway describes it.
type bodyRow struct {
	scheme, secret, key, header string
	hash                        func() hash.Hash
	base64                      bool
	upper                       bool   // hexadecimal in upper case is taken
	before                      string // what stands before the signature
	list                        bool   // several signatures may be sent, with commas
	plain                       string // not an HMAC: the hash of this and the body
}

var bodyRows = []bodyRow{
	{scheme: "shopify", secret: "shopify-test-only", header: "X-Shopify-Hmac-Sha256", base64: true},
	{scheme: "razorpay", secret: "rzp-secret", header: "X-Razorpay-Signature"},
	{scheme: "gocardless", secret: "ED7D658C", header: "Webhook-Signature", upper: true},
	{scheme: "coinbase-commerce", secret: "30291a20-0bd1", header: "X-CC-Webhook-Signature"},
	{scheme: "checkout", secret: "cko-secret", header: "Cko-Signature", upper: true},
	{scheme: "lemonsqueezy", secret: "lsq-secret", header: "X-Signature", upper: true},
	{scheme: "klarna", secret: "klarna-secret", header: "Klarna-Signature", upper: true},
	{scheme: "paystack", secret: "sk_test_only", header: "x-paystack-signature", hash: sha512.New, upper: true},
	{scheme: "flutterwave-v4", secret: "flw-secret", header: "flutterwave-signature", base64: true},
	{scheme: "primer", secret: "primer-secret", header: "X-Signature-Primary", base64: true},
	{
		scheme: "adyen-platform", secret: strings.Repeat("aB", 32), key: strings.Repeat("\xab", 32),
		header: "hmacsignature", base64: true,
	},
	{scheme: "mollie", secret: "mollie-secret", header: "X-Mollie-Signature", before: "sha256=", list: true},
	{scheme: "worldpay", secret: "worldpay-secret", header: "Event-Signature", before: "1/SHA256/", upper: true, list: true},
	{scheme: "pagbank", secret: "TOKEN-test-only", header: "x-authenticity-token", plain: "TOKEN-test-only-", upper: true},
}

// digest is the signature of body without the package under test.
func (r bodyRow) digest(body string) []byte {
	h := r.hash
	if h == nil {
		h = sha256.New
	}
	if r.plain != "" {
		state := h()
		state.Write([]byte(r.plain + body))
		return state.Sum(nil)
	}
	key := r.key
	if key == "" {
		key = r.secret
	}
	state := hmac.New(h, []byte(key))
	state.Write([]byte(body))
	return state.Sum(nil)
}

func (r bodyRow) text(body string) string {
	if r.base64 {
		return base64Text(r.digest(body))
	}
	return hexText(r.digest(body))
}

// TestBody runs the same attempts on every scheme that signs the body.
func TestBody(t *testing.T) {
	t.Parallel()
	for _, r := range bodyRows {
		t.Run(r.scheme, func(t *testing.T) {
			t.Parallel()
			run(t, r.scheme, r.secret, r.attempts())
		})
	}
}

func (r bodyRow) attempts() []attempt {
	sig := r.text(event)
	one := func(sig string) http.Header { return headers(r.header, r.before+sig) }
	good := one(sig)
	otherSecret := "another-secret"
	if r.key != "" {
		otherSecret = strings.Repeat("00", 32)
	}
	other := base64Text(r.digest(event))
	if r.base64 {
		other = hexText(r.digest(event))
	}
	list := []attempt{
		{name: "Genuine", header: good},
		{name: "RotatedSecretNew", header: good, secrets: []string{r.secret, otherSecret}},
		{name: "RotatedSecretOld", header: good, secrets: []string{otherSecret, r.secret}},
		{name: "EmptySecretBesideAGoodOne", header: good, secrets: []string{"", r.secret}},
		{name: "NameInLowerCase", header: http.Header{strings.ToLower(r.header): {r.before + sig}}},
		{name: "NameInUpperCase", header: http.Header{strings.ToUpper(r.header): {r.before + sig}}},
		{name: "LongAgo", header: good, now: now.AddDate(-10, 0, 0), tolerance: 1},

		{name: "NoHeader", header: headers("X-Other", sig), want: signature.Missing},
		{name: "NilHeader", want: signature.Missing},
		{name: "EmptyHeader", header: headers(r.header, ""), want: signature.Missing},
		{name: "OneByteOfTheBody", header: good, body: strings.Replace(event, "evt_1", "evt_2", 1), want: signature.Mismatch},
		{name: "UnicodeNormalised", header: one(r.text(`{"n":"\u00e9"}`)), body: `{"n":"é"}`, want: signature.Mismatch},
		{name: "LineBreakAdded", header: good, body: event + "\n", want: signature.Mismatch},
		{name: "SpacesOfJSON", header: good, body: strings.ReplaceAll(event, ":", ": "), want: signature.Mismatch},
		{name: "AnotherSecret", header: good, secrets: []string{otherSecret}, want: signature.Mismatch},
		{name: "NoSecrets", header: good, secrets: []string{}, want: signature.NoSecret},
		{name: "EmptySecretsOnly", header: good, secrets: []string{"", ""}, want: signature.NoSecret},
		{name: "Zeros", header: one(r.encode(make([]byte, len(r.digest(""))))), want: signature.Mismatch},
		{name: "LastByteCutOff", header: one(r.encode(r.digest(event)[1:])), want: signature.Mismatch},
		{name: "FirstByteOnly", header: one(r.encode(r.digest(event)[:1])), want: signature.Mismatch},
		{name: "LastCharacterCutOff", header: one(sig[:len(sig)-1]), want: signature.Malformed},
		{name: "SpaceBefore", header: one(" " + sig), want: signature.Malformed},
		{name: "SpaceAfter", header: one(sig + " "), want: signature.Malformed},
		{name: "LineBreakInside", header: one(sig[:8] + "\n" + sig[8:]), want: signature.Malformed},
		{name: "InQuotes", header: one(`"` + sig + `"`), want: signature.Malformed},
		{name: "TooLong", header: one(strings.Repeat(sig, 5)), want: signature.Malformed},
		{name: "TheSecretItself", header: one(r.secret + "!"), want: signature.Malformed},
		{name: "HeaderTwiceTheSame", header: headers(r.header, r.before+sig, r.header, r.before+sig), want: signature.Ambiguous},
		{name: "HeaderTwiceInTwoSpellings", header: http.Header{strings.ToLower(r.header): {r.before + sig}, strings.ToUpper(r.header): {"00"}}, want: signature.Ambiguous},
		{name: "TwoJoined", header: headers(r.header, r.before+sig+", "+r.before+sig), want: signature.Malformed},
		{name: "OtherEncoding", header: one(other), want: signature.Malformed},
	}
	if r.base64 {
		list = append(list,
			attempt{name: "Unpadded", header: one(strings.TrimRight(sig, "=")), want: signature.Malformed},
			attempt{name: "URLAlphabet", header: one(base64.URLEncoding.EncodeToString(r.digest(urlBody(r)))), body: urlBody(r), want: signature.Malformed},
			attempt{name: "UnusedBitsSet", header: one(sig[:42] + flip(sig[42]) + "="), want: signature.Malformed},
		)
	} else {
		upper := attempt{name: "UpperCase", header: one(strings.ToUpper(sig))}
		if !r.upper {
			upper.want = signature.Malformed
		}
		list = append(list, upper)
	}
	return r.adjust(list)
}

// adjust takes out of the common attempts what the scheme sees otherwise.
func (r bodyRow) adjust(list []attempt) []attempt {
	for i := range list {
		a := &list[i]
		switch {
		case r.scheme == "mollie" && strings.HasPrefix(a.name, "HeaderTwice"):
			a.want = "" // the library takes any of several
		case r.list && (a.name == "TwoJoined" || a.name == "SpaceAfter"):
			a.want = "" // spaces around elements are not part of them
		case r.base64 && a.name == "OtherEncoding":
			a.want = signature.Mismatch // hexadecimal is base64, of other bytes
		}
	}
	return list
}

func (r bodyRow) encode(b []byte) string {
	if r.base64 {
		return base64Text(b)
	}
	return hexText(b)
}

// urlBody is a body whose signature differs between the two alphabets of base64.
func urlBody(r bodyRow) string {
	body := `{"n":1}`
	for !strings.ContainsAny(base64Text(r.digest(body)), "+/") {
		body += " "
	}
	return body
}

// flip returns the next letter of base64, in which only unused bits differ.
func flip(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return string(alphabet[strings.IndexByte(alphabet, c)+1])
}

func TestShopify(t *testing.T) {
	t.Parallel()
	const secret, old, events = "shopify-test-only", "X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"
	sig := base64Text(mac(secret, event))
	run(t, "shopify", secret, []attempt{
		{name: "OfEvents", header: headers(events, sig)},
		{name: "BothTheSame", header: headers(old, sig, events, sig)},
		{name: "BothAndTheyDiffer", header: headers(old, sig, events, base64Text(mac("x", event))), want: signature.Ambiguous},
		{name: "OfEventsTwice", header: headers(events, sig, events, sig), want: signature.Ambiguous},
	})
}

func TestMollie(t *testing.T) {
	t.Parallel()
	const secret, name = "mollie-secret", "X-Mollie-Signature"
	sig, other := hexText(mac(secret, event)), strings.Repeat("0", 64)
	run(t, "mollie", secret, []attempt{
		{name: "WithoutPrefix", header: headers(name, sig)},
		{name: "SecondOfTwoLines", header: headers(name, "sha256="+other, name, "sha256="+sig)},
		{name: "FirstOfTwoLines", header: headers(name, sig, name, "zz")},
		{name: "NoneOfTwoLines", header: headers(name, "sha256="+other, name, other), want: signature.Mismatch},
		{name: "AnotherHash", header: headers(name, "sha512="+sig), want: signature.Missing},
		{name: "PrefixInUpperCase", header: headers(name, "SHA256="+sig), want: signature.Missing},
		{name: "PrefixTwice", header: headers(name, "sha256=sha256="+sig), want: signature.Malformed},
		{name: "PrefixAlone", header: headers(name, "sha256="), want: signature.Malformed},
		{name: "TooMany", header: headers(name, strings.Repeat("sha256=00,", signature.MaxElements)+sig), want: signature.Malformed},
	})
}

func TestPrimer(t *testing.T) {
	t.Parallel()
	const primary, secondary = "X-Signature-Primary", "X-Signature-Secondary"
	fresh, old := base64Text(mac("new-secret", event)), base64Text(mac("old-secret", event))
	both := headers(primary, fresh, secondary, old)
	run(t, "primer", "old-secret", []attempt{
		{name: "OldSecretDuringRotation", header: both},
		{name: "NewSecretDuringRotation", header: both, secrets: []string{"new-secret"}},
		{name: "SecondaryAlone", header: headers(secondary, old)},
		{name: "BrokenPrimary", header: headers(primary, "!", secondary, old)},
		{name: "NeitherOfBoth", header: both, secrets: []string{"third"}, want: signature.Mismatch},
		{name: "NewSecretAfterRotation", header: headers(primary, fresh), want: signature.Mismatch},
		{name: "SecondaryTwice", header: headers(primary, fresh, secondary, old, secondary, old), want: signature.Ambiguous},
	})
}

func TestWorldpay(t *testing.T) {
	t.Parallel()
	const secret, name = "worldpay-secret", "Event-Signature"
	sig, other := hexText(mac(secret, event)), strings.Repeat("0", 64)
	run(t, "worldpay", secret, []attempt{
		{name: "SecondOfTwo", header: headers(name, "1/SHA256/"+other+",2/SHA256/"+sig)},
		{name: "FirstOfTwo", header: headers(name, "2/SHA256/"+sig+", 1/SHA256/"+other)},
		{name: "UnknownHashBesideAGoodOne", header: headers(name, "1/SHA512/"+other+",2/SHA256/"+sig)},
		{name: "NoKeyID", header: headers(name, "SHA256/"+sig), want: signature.Missing},
		{name: "Bare", header: headers(name, sig), want: signature.Missing},
		{name: "AnotherHash", header: headers(name, "1/SHA512/"+sig), want: signature.Missing},
		{name: "HashInLowerCase", header: headers(name, "1/sha256/"+sig), want: signature.Missing},
		{name: "MoreBehindIt", header: headers(name, "1/SHA256/"+sig+"/x"), want: signature.Malformed},
	})
}

func TestKlarnaKeyID(t *testing.T) {
	t.Parallel()
	const id = "krn:partner:global:notification:signing-key:1"
	s, _ := signature.Lookup("klarna")
	signed, err := s.Sign([]byte(event), "klarna-secret", now, signature.SignOptions{KeyID: id})
	require.NoError(t, err)
	require.Equal(t, id, signed.Header.Get("Klarna-Signing-Key-Id"))
	run(t, "klarna", "klarna-secret", []attempt{
		{name: "AnyKeyID", header: signed.Header},
		{name: "KeyIDTwice", header: headers("Klarna-Signature", signed.Header.Get("Klarna-Signature"), "Klarna-Signing-Key-Id", id, "Klarna-Signing-Key-Id", id), want: signature.Ambiguous},
	})
}

// TestPagBankLengthExtension: who has a hash of token, hyphen and body can compute
// that of a longer body, for it is no HMAC. Such a body is refused, though its
// hash is right.
func TestPagBankLengthExtension(t *testing.T) {
	t.Parallel()
	const token, body = "TOKEN-test-only", `{"id":"ORDE_1"}`
	whole := token + "-" + body
	glue := append([]byte{0x80}, make([]byte, 63-(len(whole)+8)%64)...)
	bits := uint64(len(whole)) * 8
	for i := 7; i >= 0; i-- {
		glue = append(glue, byte(bits>>(8*i)))
	}
	require.Zero(t, (len(whole)+len(glue))%64)
	extended := body + string(glue) + `{"id":"ORDE_2"}`
	sum := sha256.Sum256([]byte(token + "-" + extended))
	run(t, "pagbank", token, []attempt{
		{name: "Extended", header: headers("X-Authenticity-Token", hex.EncodeToString(sum[:])), body: extended, want: signature.Malformed},
	})
}
