package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// keys are an RSA pair in all forms in which a secret may be written, and another.
type keys struct {
	private                           *rsa.PrivateKey
	public, pkcs1, pkcs8, rsaPrivate  string
	certificate, fingerprint          string
	other, otherCertificate, elliptic string
}

var testKeys = sync.OnceValue(func() keys {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	text := func(kind string, der []byte, err error) string {
		must(err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	certify := func(k *rsa.PrivateKey) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test.example"}, NotAfter: now}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
		must(err)
		return der
	}
	var k keys
	var err error
	k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	der, err := x509.MarshalPKIXPublicKey(&k.private.PublicKey)
	k.public = text("PUBLIC KEY", der, err)
	k.pkcs1 = text("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.private.PublicKey), nil)
	der, err = x509.MarshalPKCS8PrivateKey(k.private)
	k.pkcs8 = text("PRIVATE KEY", der, err)
	k.rsaPrivate = text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k.private), nil)
	cert := certify(k.private)
	sum := sha1.Sum(cert)
	k.certificate, k.fingerprint = text("CERTIFICATE", cert, nil), strings.ToUpper(hexText(sum[:]))
	der, err = x509.MarshalPKIXPublicKey(&other.PublicKey)
	k.other = text("PUBLIC KEY", der, err)
	k.otherCertificate = text("CERTIFICATE", certify(other), nil)
	der, err = x509.MarshalPKIXPublicKey(&ec.PublicKey)
	k.elliptic = text("PUBLIC KEY", der, err)
	return k
})

// sign is the PKCS #1 v1.5 signature of a message, in base64.
func (k keys) sign(tb testing.TB, h crypto.Hash, message string) string {
	tb.Helper()
	state := h.New()
	state.Write([]byte(message))
	sig, err := rsa.SignPKCS1v15(nil, k.private, h, state.Sum(nil))
	require.NoError(tb, err)
	return base64Text(sig)
}

// TestPublicKeys: schemes with the RSA signature of the body in a header, or of a
// message with it.
func TestPublicKeys(t *testing.T) {
	t.Parallel()
	k := testKeys()
	for scheme, tt := range map[string]struct {
		header string
		hash   crypto.Hash
	}{
		"conekta": {"DIGEST", crypto.SHA256},
		"wise":    {"X-Signature-SHA256", crypto.SHA256},
		"ebanx":   {"X-Signature-Content", crypto.SHA1},
	} {
		sig := k.sign(t, tt.hash, event)
		raw, err := base64.StdEncoding.DecodeString(sig)
		require.NoError(t, err)
		good := headers(tt.header, sig)
		otherHash := crypto.SHA1
		if tt.hash == crypto.SHA1 {
			otherHash = crypto.SHA256
		}
		pss, err := rsa.SignPSS(rand.Reader, k.private, crypto.SHA256, sum256(event), nil)
		require.NoError(t, err)
		run(t, scheme, k.public, []attempt{
			{name: scheme, header: good},
			{name: scheme + "PKCS1", header: good, secrets: []string{k.pkcs1}},
			{name: scheme + "Certificate", header: good, secrets: []string{k.certificate}},
			{name: scheme + "LineBreaksAroundThePEM", header: good, secrets: []string{"\n" + k.public + "\r\n\n"}},
			{name: scheme + "Rotated", header: good, secrets: []string{k.other, k.public}},
			{name: scheme + "BadKeyBesideAGoodOne", header: good, secrets: []string{"x", k.public}},

			{name: scheme + "NoHeader", want: signature.Missing},
			{name: scheme + "AnotherBody", header: good, body: "{}", want: signature.Mismatch},
			{name: scheme + "AnotherKey", header: good, secrets: []string{k.other}, want: signature.Mismatch},
			{name: scheme + "OtherHash", header: headers(tt.header, k.sign(t, otherHash, event)), want: signature.Mismatch},
			{name: scheme + "PSS", header: headers(tt.header, base64Text(pss)), want: signature.Mismatch},
			{name: scheme + "Truncated", header: headers(tt.header, base64Text(raw[1:])), want: signature.Mismatch},
			{name: scheme + "Longer", header: headers(tt.header, base64Text(append([]byte{0}, raw...))), want: signature.Mismatch},
			{name: scheme + "Hexadecimal", header: headers(tt.header, hexText(raw)), want: signature.Mismatch},
			{name: scheme + "URLAlphabet", header: headers(tt.header, base64.RawURLEncoding.EncodeToString(raw)), want: signature.Malformed},
			{name: scheme + "LineBreak", header: headers(tt.header, sig[:76]+"\n"+sig[76:]), want: signature.Malformed},
			{name: scheme + "TooLong", header: headers(tt.header, strings.Repeat("AAAA", 1000)), want: signature.Malformed},
			{name: scheme + "Twice", header: headers(tt.header, sig, tt.header, sig), want: signature.Ambiguous},
			{name: scheme + "PrivateKey", header: good, secrets: []string{k.pkcs8}, want: signature.BadSecret},
			{name: scheme + "RSAPrivateKey", header: good, secrets: []string{k.rsaPrivate}, want: signature.BadSecret},
			{name: scheme + "EllipticKey", header: good, secrets: []string{k.elliptic}, want: signature.BadSecret},
			{name: scheme + "TwoKeysInOne", header: good, secrets: []string{k.public + k.other}, want: signature.BadSecret},
			{name: scheme + "NoKey", header: good, secrets: []string{""}, want: signature.NoSecret},
		})
	}
}

func sum256(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func TestEBANX(t *testing.T) {
	t.Parallel()
	k := testKeys()
	const kind, fingerprint, content = "X-Signature-Type", "X-Signature-Fingerprint", "X-Signature-Content"
	sig := k.sign(t, crypto.SHA1, event)
	run(t, "ebanx", k.certificate, []attempt{
		{name: "AllHeaders", header: headers(kind, "rsa,sha1", fingerprint, k.fingerprint, content, sig)},
		{name: "OldNames", header: headers("X-SignatureType", "rsa,sha1", "X-SignatureFingerprint", k.fingerprint, "X-SignatureContent", sig)},
		{name: "FingerprintInLowerCase", header: headers(fingerprint, strings.ToLower(k.fingerprint), content, sig)},
		{name: "SecondCertificate", header: headers(fingerprint, k.fingerprint, content, sig), secrets: []string{k.otherCertificate, k.certificate}},
		{name: "AnyFingerprintForABareKey", header: headers(fingerprint, "4ABAD89CF66B99998465470550EB15E3E271A246", content, sig), secrets: []string{k.public}},

		{name: "AnotherFingerprint", header: headers(fingerprint, "4ABAD89CF66B99998465470550EB15E3E271A246", content, sig), want: signature.Mismatch},
		{name: "FingerprintTwice", header: headers(fingerprint, k.fingerprint, fingerprint, k.fingerprint, content, sig), want: signature.Ambiguous},
		{name: "AnotherType", header: headers(kind, "rsa,sha256", content, sig), want: signature.Malformed},
		{name: "TypesDiffer", header: headers(kind, "rsa,sha1", "X-SignatureType", "none", content, sig), want: signature.Ambiguous},
		{name: "ContentsDiffer", header: headers(content, sig, "X-SignatureContent", "AAAA"), want: signature.Ambiguous},
	})
}

func TestMidtransSnap(t *testing.T) {
	t.Parallel()
	k := testKeys()
	const path, at = "/v1.0/debit/notify", "2026-09-21T21:13:20+07:00"
	const body, minified = "{ \"a\" : [1, \"x y\"],\n \"CANARY\": 1.50 }", `{"a":[1,"x y"],"CANARY":1.50}`
	sig := k.sign(t, crypto.SHA256, "POST:"+path+":"+sha256Hex(minified)+":"+at)
	good := headers("X-Signature", sig, "X-Timestamp", at)
	run(t, "midtrans-snap", k.public, []attempt{
		{name: "Genuine", header: good, path: path, body: body},
		{name: "Minified", header: good, path: path, body: minified},
		{name: "ToleranceAsked", header: good, path: path, body: body, tolerance: time.Second},

		{name: "ToleranceAskedAndTooOld", header: good, path: path, body: body, tolerance: time.Second, now: now.Add(time.Minute), want: signature.Stale},
		{name: "NoPath", header: good, body: body, want: signature.Missing},
		{name: "AnotherPath", header: good, path: path + "/", body: body, want: signature.Mismatch},
		{name: "AnotherBody", header: good, path: path, body: strings.Replace(body, "1.50", "1.5", 1), want: signature.Mismatch},
		{name: "NotJSON", header: good, path: path, body: "x", want: signature.Malformed},
		{name: "NoTime", header: headers("X-Signature", sig), path: path, body: body, want: signature.Missing},
		{name: "AnotherTime", header: headers("X-Signature", sig, "X-Timestamp", "2026-09-21T21:13:21+07:00"), path: path, body: body, want: signature.Mismatch},
		{name: "TimeIsAWord", header: headers("X-Signature", sig, "X-Timestamp", "now"), path: path, body: body, want: signature.Malformed},
	})
}

func TestPayPal(t *testing.T) {
	t.Parallel()
	k := testKeys()
	const webhook, id, at = "4JH86294D6297924G", "b9d46480-2162-11ee", "2026-09-21T13:33:20Z"
	const cert = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-ad47cb8d"
	message := func(body string) string {
		return fmt.Sprintf("%s|%s|%s|%d", id, at, webhook, crc32.ChecksumIEEE([]byte(body)))
	}
	sig := k.sign(t, crypto.SHA256, message(event))
	// with is the genuine header with changes; an empty value takes a name out.
	with := func(pairs ...string) http.Header {
		h := headers("Paypal-Transmission-Id", id, "Paypal-Transmission-Time", at, "Paypal-Transmission-Sig", sig,
			"Paypal-Auth-Algo", "SHA256withRSA", "Paypal-Cert-Url", cert, "Paypal-Auth-Version", "v2")
		for i := 0; i < len(pairs); i += 2 {
			h.Del(pairs[i])
			if pairs[i+1] != "" {
				h.Set(pairs[i], pairs[i+1])
			}
		}
		return h
	}
	high := "{}" // a body whose checksum is a negative number to those who have no unsigned ones
	for crc32.ChecksumIEEE([]byte(high)) < 1<<31 {
		high += " "
	}
	twice := with()
	twice.Add("Paypal-Transmission-Id", id)
	attempts := []attempt{
		{name: "Genuine", header: with()},
		{name: "Certificate", header: with(), secrets: []string{webhook + ":" + k.certificate}},
		{name: "SandboxCertificate", header: with("Paypal-Cert-Url", strings.Replace(cert, "api.", "api.sandbox.", 1))},
		{name: "DaysLater", header: with(), now: now.AddDate(0, 0, 3)},
		{name: "NoVersion", header: with("Paypal-Auth-Version", "")},
		{name: "HighChecksum", header: with("Paypal-Transmission-Sig", k.sign(t, crypto.SHA256, message(high))), body: high},
		{name: "TwoWebhooks", header: with(), secrets: []string{"OTHER:" + k.public, webhook + ":" + k.public}},

		{name: "DaysLaterAndToleranceAsked", header: with(), now: now.AddDate(0, 0, 3), tolerance: time.Hour, want: signature.Stale},
		{name: "SignedChecksum", header: with("Paypal-Transmission-Sig", k.sign(t, crypto.SHA256,
			fmt.Sprintf("%s|%s|%s|%d", id, at, webhook, int32(crc32.ChecksumIEEE([]byte(high)))))), body: high, want: signature.Mismatch},
		{name: "AnotherWebhook", header: with(), secrets: []string{"OTHER:" + k.public}, want: signature.Mismatch},
		{name: "AnotherKey", header: with(), secrets: []string{webhook + ":" + k.other}, want: signature.Mismatch},
		{name: "AnotherBody", header: with(), body: "{}", want: signature.Mismatch},
		{name: "AnotherID", header: with("Paypal-Transmission-Id", "x"), want: signature.Mismatch},
		{name: "AnotherTime", header: with("Paypal-Transmission-Time", "2026-09-21T13:33:21Z"), want: signature.Mismatch},
		{name: "BarInTheID", header: with("Paypal-Transmission-Id", "a|b"), want: signature.Malformed},
		{name: "TimeIsAWord", header: with("Paypal-Transmission-Time", "now"), want: signature.Malformed},
		{name: "SHA1", header: with("Paypal-Auth-Algo", "SHA1withRSA", "Paypal-Transmission-Sig", k.sign(t, crypto.SHA1, message(event))), want: signature.Malformed},
		{name: "SHA1UnderTheOtherName", header: with("Paypal-Transmission-Sig", k.sign(t, crypto.SHA1, message(event))), want: signature.Mismatch},
		{name: "AlgorithmInAnotherCase", header: with("Paypal-Auth-Algo", "sha256WithRSA"), want: signature.Malformed},
		{name: "NoAlgorithm", header: with("Paypal-Auth-Algo", ""), want: signature.Missing},
		{name: "NoID", header: with("Paypal-Transmission-Id", ""), want: signature.Missing},
		{name: "NoTime", header: with("Paypal-Transmission-Time", ""), want: signature.Missing},
		{name: "NoSignature", header: with("Paypal-Transmission-Sig", ""), want: signature.Missing},
		{name: "NoCertificateURL", header: with("Paypal-Cert-Url", ""), want: signature.Missing},
		{name: "IDTwice", header: twice, want: signature.Ambiguous},
		{name: "PEMAlone", header: with(), secrets: []string{k.public}, want: signature.BadSecret},
		{name: "IDAlone", header: with(), secrets: []string{webhook}, want: signature.BadSecret},
		{name: "PrivateKey", header: with(), secrets: []string{webhook + ":" + k.pkcs8}, want: signature.BadSecret},
	}
	const path = "/v1/notifications/certs/CERT-1"
	for _, bad := range []string{
		"http://api.paypal.com" + path, "https://api.paypal.com.evil.example" + path, "https://evil.example" + path,
		"https://api.paypal.com@evil.example" + path, "https://api.paypal.com:443" + path, "https://API.paypal.com" + path,
		"https://api.paypal.com/v1/notifications/certs/", "https://api.paypal.com/v1/notifications/certs/../x", "https://api.paypal.com" + path + "?a=1",
		"https://api.paypal.com" + path + "#a", "https://api.paypal.com" + path + "/x", "https://api.paypal.com/v1/notifications/certs/a%2f..",
		"https://api.paypal.com/v2/notifications/certs/CERT-1", " https://api.paypal.com" + path, "https://api.paypal.com" + path + " ",
		"https://api.paypal.com/v1/notifications/certs/" + strings.Repeat("a", 129), "https://api.paypal.com\\@evil.example" + path,
	} {
		attempts = append(attempts, attempt{name: "CertURL " + bad, header: with("Paypal-Cert-Url", bad), want: signature.Malformed})
		_, err := signature.PayPalCertURL(headers("Paypal-Cert-Url", bad))
		require.Equal(t, signature.Malformed, signature.ReasonOf(err), bad)
	}
	run(t, "paypal", webhook+":"+k.public, attempts)

	found, err := signature.PayPalCertURL(with())
	require.NoError(t, err)
	require.Equal(t, cert, found)
	_, err = signature.PayPalCertURL(nil)
	require.Equal(t, signature.Missing, signature.ReasonOf(err))
}

// jwkPair is a key of Plaid's form, public and private, and the key itself.
func jwkPair(kid string) (public, private string, key *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	d, err := key.Bytes()
	if err != nil {
		panic(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	public = fmt.Sprintf(`{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":%q,"x":%q,"y":%q,"created_at":1,"expired_at":null}`,
		kid, text(point[1:33]), text(point[33:]))
	return public, strings.Replace(public, "}", `,"d":"`+text(d)+`"}`, 1), key
}

func TestPlaid(t *testing.T) {
	t.Parallel()
	const kid = "bfbd5111-8e33"
	public, private, key := jwkPair(kid)
	otherPublic, _, _ := jwkPair(kid)
	otherKid, _, _ := jwkPair("other")
	text := base64.RawURLEncoding.EncodeToString
	raw := func(head, claims string) (string, []byte) {
		input := text([]byte(head)) + "." + text([]byte(claims))
		r, s, err := ecdsa.Sign(rand.Reader, key, sum256(input))
		require.NoError(t, err)
		sig := make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
		return input, sig
	}
	token := func(head, claims string) http.Header {
		input, sig := raw(head, claims)
		return headers("Plaid-Verification", input+"."+text(sig))
	}
	const head = `{"alg":"ES256","kid":"` + kid + `","typ":"JWT"}`
	claims := `{"iat":1790000000,"request_body_sha256":"` + sha256Hex(event) + `"}`
	good := token(head, claims)
	input, sig := raw(head, claims)
	der, err := key.Sign(rand.Reader, sum256(input), crypto.SHA256)
	require.NoError(t, err)
	plain := func(v string) http.Header { return headers("Plaid-Verification", v) }
	hmacKey := public // the classic confusion: the public key as the key of an HMAC
	hs := text([]byte(strings.Replace(head, "ES256", "HS256", 1))) + "." + text([]byte(claims))

	run(t, "plaid", public, []attempt{
		{name: "Genuine", header: good},
		{name: "SecondKey", header: good, secrets: []string{otherKid, public}},
		{name: "SameKidOtherKeyFirst", header: good, secrets: []string{otherPublic, public}},
		{name: "NoTyp", header: token(swap(t, head, `,"typ":"JWT"`, ""), claims)},
		{name: "MoreClaims", header: token(head, swap(t, claims, "{", `{"x":[1],`))},
		{name: "UpperCaseDigest", header: token(head, swap(t, claims, sha256Hex(event), strings.ToUpper(sha256Hex(event))))},
		{name: "ExactlyTheToleranceOld", header: good, now: now.Add(300 * time.Second)},
		{name: "ExactlyTheToleranceAhead", header: good, now: now.Add(-300 * time.Second)},

		{name: "TooOld", header: good, now: now.Add(301 * time.Second), want: signature.Stale},
		{name: "TooNew", header: good, now: now.Add(-301 * time.Second), want: signature.Future},
		{name: "AnotherBody", header: good, body: "{}", want: signature.Mismatch},
		{name: "AnotherKey", header: good, secrets: []string{otherPublic}, want: signature.Mismatch},
		{name: "AnotherKid", header: token(swap(t, head, kid, "other"), claims), want: signature.Mismatch},
		{name: "NoKid", header: token(swap(t, head, `"kid"`, `"x"`), claims), want: signature.Missing},
		{name: "AlgNone", header: plain(text([]byte(`{"alg":"none","kid":"`+kid+`"}`)) + "." + text([]byte(claims)) + "."), want: signature.Malformed},
		{name: "AlgNoneSigned", header: token(swap(t, head, "ES256", "none"), claims), want: signature.Malformed},
		{name: "AlgHS256", header: plain(hs + "." + text(mac(hmacKey, hs))), want: signature.Malformed},
		{name: "AlgES384", header: token(swap(t, head, "ES256", "ES384"), claims), want: signature.Malformed},
		{name: "AlgInLowerCase", header: token(swap(t, head, "ES256", "es256"), claims), want: signature.Malformed},
		{name: "AlgTwice", header: token(swap(t, head, "{", `{"alg":"none",`), claims), want: signature.Ambiguous},
		{name: "AlgInAnotherCase", header: token(swap(t, head, "{", `{"ALG":"ES256",`), claims), want: signature.Ambiguous},
		{name: "Critical", header: token(swap(t, head, "{", `{"crit":["b64"],"b64":false,`), claims), want: signature.Malformed},
		{name: "NoIat", header: token(head, swap(t, claims, "iat", "x")), want: signature.Missing},
		{name: "IatIsAString", header: token(head, swap(t, claims, "1790000000", `"1790000000"`)), want: signature.Malformed},
		{name: "IatIsAFraction", header: token(head, swap(t, claims, "1790000000", "1790000000.0")), want: signature.Malformed},
		{name: "IatHasAnExponent", header: token(head, swap(t, claims, "1790000000", "179e7")), want: signature.Malformed},
		{name: "IatTwice", header: token(head, swap(t, claims, "{", `{"iat":1,`)), want: signature.Ambiguous},
		{name: "NoDigest", header: token(head, swap(t, claims, "request_body_sha256", "x")), want: signature.Missing},
		{name: "DigestIsEmpty", header: token(head, swap(t, claims, sha256Hex(event), "")), want: signature.Mismatch},
		{name: "DigestIsBase64", header: token(head, swap(t, claims, sha256Hex(event), base64Text(sum256(event)))), want: signature.Malformed},
		{name: "ClaimsAreNoJSON", header: token(head, "x"), want: signature.Malformed},
		{name: "HeaderIsNoJSON", header: token("x", claims), want: signature.Malformed},
		{name: "ClaimsChanged", header: plain(text([]byte(head)) + "." + text([]byte(swap(t, claims, "1790000000", "1790000001"))) + "." + text(sig)), want: signature.Mismatch},
		{name: "SignatureInDER", header: plain(input + "." + text(der)), want: signature.Malformed},
		{name: "SignatureOfZeros", header: plain(input + "." + text(make([]byte, 64))), want: signature.Mismatch},
		{name: "SignatureTruncated", header: plain(input + "." + text(sig[:63])), want: signature.Malformed},
		{name: "SignatureEmpty", header: plain(input + "."), want: signature.Malformed},
		{name: "Padded", header: plain(input + "." + base64.URLEncoding.EncodeToString(sig)), want: signature.Malformed},
		{name: "TwoParts", header: plain(input), want: signature.Malformed},
		{name: "FourParts", header: plain(input + "." + text(sig) + "." + text(sig)), want: signature.Malformed},
		{name: "LineBreak", header: plain(input[:10] + "\n" + input[10:] + "." + text(sig)), want: signature.Malformed},
		{name: "TooLong", header: plain(strings.Repeat("A", 9000) + ".A.A"), want: signature.Malformed},
		{name: "NoHeader", want: signature.Missing},
		{name: "Twice", header: headers("Plaid-Verification", good.Get("Plaid-Verification"), "Plaid-Verification", good.Get("Plaid-Verification")), want: signature.Ambiguous},
		{name: "PrivateKey", header: good, secrets: []string{private}, want: signature.BadSecret},
		{name: "ExpiredKey", header: good, secrets: []string{swap(t, public, `"expired_at":null`, `"expired_at":1789999999`)}, want: signature.BadSecret},
		{name: "NoKey", header: good, secrets: []string{""}, want: signature.NoSecret},
	})

	found, err := signature.PlaidKeyID(good)
	require.NoError(t, err)
	require.Equal(t, kid, found)
	_, err = signature.PlaidKeyID(nil)
	require.Equal(t, signature.Missing, signature.ReasonOf(err))

	// Two signatures of the same text are the same.
	s, _ := signature.Lookup("plaid")
	first, err := s.Sign([]byte(event), private, now, signature.SignOptions{})
	require.NoError(t, err)
	second, err := s.Sign([]byte(event), private, now, signature.SignOptions{})
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.True(t, json.Valid([]byte(private)))
}
