package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

// dumped is a delivery on its way into a file.
type dumped struct {
	url    string
	header http.Header
	body   []byte
	args   []string // of the command, beside the file
}

// raw writes a delivery as a raw HTTP dump.
func (d dumped) raw() string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\n", d.url)
	for _, name := range slices.Sorted(maps.Keys(d.header)) {
		for _, v := range d.header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	return b.String() + "\r\n" + string(d.body)
}

const (
	squareURL = "https://shop.example/webhooks/square"
	mpID      = "ORDTEST01"
)

// deliverTo makes a genuine delivery of a scheme.
func deliverTo(t *testing.T, scheme, secret string) dumped {
	t.Helper()
	s, ok := signature.Lookup(scheme)
	require.True(t, ok)
	body := []byte(`{"id":"evt_1","type":"payment.updated","amount":50.00,"note":"café/menu & more","data":{"id":"pay_1","order":"ord_1"},"live_mode":false}` + "\n")
	signed, err := s.Sign(body, secret, now, signature.SignOptions{ID: "msg_1", URL: squareURL, Query: "data.id=" + mpID + "&type=order"})
	require.NoError(t, err)
	d := dumped{url: "/webhooks/x", header: signed.Header, body: signed.Body, args: []string{"--gateway", scheme, "--secret", secret}}
	if signed.Query != "" {
		d.url += "?" + signed.Query
	}
	if scheme == "square" {
		d.args = append(d.args, "--url", squareURL)
	}
	return d
}

// TestVerifyNamesWhatIsBroken: twenty and more deliveries, each broken in one
// way, and the sentence that names the way.
func TestVerifyNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	const (
		whsec  = "whsec_ZGlhZ25vc2UtdGVzdC1vbmx5LWtleS0wMDAwMDAwMQ=="
		stripe = "whsec_cmd_verify_test_only_1"
		shop   = "shpss_verify_test_only"
		square = "sq-verify-test-only"
		mp     = "mp-verify-test-only"
		github = "razorpay-verify-test-only"
	)
	body := func(change func([]byte) []byte) func(*dumped) { return func(d *dumped) { d.body = change(d.body) } }
	swap := func(old, with string) func(*dumped) {
		return body(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(with)) })
	}
	secret := func(s string) func(*dumped) { return func(d *dumped) { d.args[3] = s } }
	for _, tt := range []struct {
		name, scheme, secret string
		spoil                func(*dumped)
		says                 string
	}{
		{"genuine", "stripe", stripe, func(*dumped) {}, "The signature verifies."},
		{"newline lost", "shopify", shop, body(bytes.TrimSpace), "The line break at the end of the body was lost."},
		{"newline added", "razorpay", github, body(func(b []byte) []byte { return append(b, '\n') }), "A line break was added at the end of the body."},
		{"CRLF", "stripe", stripe, swap("\n", "\r\n"), "changed from LF to CRLF"},
		{"spacing", "shopify", shop, body(func(b []byte) []byte { return []byte(strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(string(b))) }), "its spaces changed"},
		{"unicode escapes", "stripe", stripe, swap("é", `\u00e9`), "its escapes changed"},
		{"slash escapes", "square", square, swap("/", `\/`), "its escapes changed"},
		{"number form", "shopify", shop, swap("50.00", "50"), "the form of a number changed"},
		{"key order", "razorpay", github, body(func(b []byte) []byte {
			var v map[string]any
			dec := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(b, []byte("&"), []byte("and"))))
			dec.UseNumber()
			require.NoError(t, dec.Decode(&v))
			out, err := json.Marshal(v)
			require.NoError(t, err)
			return out
		}), "alphabetical order"},
		{"BOM", "stripe", stripe, body(func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }), "byte order mark"},
		{"charset", "shopify", shop, swap("é", "\xe9"), "from UTF-8 to Latin-1"},
		{"double encoded", "standard", whsec, swap("é", "Ã©"), "read as Latin-1"},
		{"base64 body", "square", square, body(func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }), "The body is in base64"},
		{"secret quoted", "square", square, secret(`"` + square + `"`), "quotes around it"},
		{"secret with a line break", "shopify", shop, secret(shop + "\n"), "line break around it"},
		{"secret without its prefix", "stripe", stripe, secret(strings.TrimPrefix(stripe, "whsec_")), "lacks its prefix whsec_"},
		{"stale secret", "stripe", stripe, func(d *dumped) {
			d.args = append(d.args[:3], "whsec_new", "--other", "the one before the roll="+stripe)
		}, "another secret that was given (the one before the roll)"},
		{"secret of the other mode", "stripe", stripe, func(d *dumped) {
			d.args = append(d.args[:3], "whsec_live", "--mode", "live", "--other", "test mode="+stripe)
		}, "It was signed with the test secret"},
		{"wrong secret", "razorpay", github, secret("another"), "the secret is another endpoint's"},
		{"header folded", "stripe", stripe, func(d *dumped) {
			v := d.header.Get("Stripe-Signature")
			d.header.Set("Stripe-Signature", v[:30]+"\r\n "+v[30:])
		}, "was wrapped over several lines"},
		{"header twice", "square", square, func(d *dumped) {
			d.header["X-Square-Hmacsha256-Signature"] = append(d.header["X-Square-Hmacsha256-Signature"], d.header.Get("X-Square-Hmacsha256-Signature"))
		}, "is there more than once"},
		{"base64 for hex", "razorpay", github, func(d *dumped) {
			b, _ := hex.DecodeString(d.header.Get("X-Razorpay-Signature"))
			d.header.Set("X-Razorpay-Signature", base64.StdEncoding.EncodeToString(b))
		}, "in base64, and this gateway sends hexadecimal"},
		{"hex for base64", "shopify", shop, func(d *dumped) {
			b, _ := base64.StdEncoding.DecodeString(d.header.Get("X-Shopify-Hmac-Sha256"))
			d.header.Set("X-Shopify-Hmac-Sha256", hex.EncodeToString(b))
		}, "in hexadecimal, and this gateway sends base64"},
		{"clock", "stripe", stripe, func(d *dumped) { d.args = append(d.args, "--at", now.Add(1000*time.Second).Format(time.RFC3339)) }, "1000 s old"},
		{"URL scheme", "square", square, func(d *dumped) { d.args[5] = "http://shop.example/webhooks/square" }, "of the other scheme"},
		{"URL host", "square", square, func(d *dumped) { d.args[5] = "https://www.shop.example/webhooks/square" }, "without www."},
		{"URL path", "square", square, func(d *dumped) { d.args[5], d.url = "https://shop.example/", "/webhooks/square" }, "of another path"},
		{"URL slash", "square", square, func(d *dumped) { d.args[5] += "/" }, "the slash at its end"},
		{"id case", "mercadopago", mp, func(d *dumped) {
			// Signed as it was, and lower-cased on its way.
			mac := hmac.New(sha256.New, []byte(mp))
			fmt.Fprintf(mac, "id:%s;request-id:r1;ts:%d;", mpID, now.Unix())
			d.header = http.Header{"X-Request-Id": {"r1"}, "X-Signature": {fmt.Sprintf("ts=%d,v1=%x", now.Unix(), mac.Sum(nil))}}
			d.url = "/webhooks/mp?data.id=" + strings.ToLower(mpID) + "&type=order"
		}, "upper or lower case"},
		{"no signature", "paystack", "sk_test_verify_only", func(d *dumped) { d.header = http.Header{} }, "The signature is not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := deliverTo(t, tt.scheme, tt.secret)
			tt.spoil(&d)
			a := call(t, append([]string{"verify", write(t, "request.txt", d.raw())}, d.args...))
			require.Empty(t, a.stderr)
			require.Contains(t, a.stdout, tt.says)
			require.NotContains(t, a.stdout, tt.secret)
			want := exitFailed
			if tt.name == "genuine" {
				want = exitOK
			}
			require.Equal(t, want, a.code)
		})
	}
}

// TestVerifyReadsAllForms: the same delivery from a file, from its parts and from
// a source of the configuration.
func TestVerifyReadsAllForms(t *testing.T) {
	t.Parallel()
	cfg := write(t, "paidonce.yaml", offlineConfig)
	d := deliverTo(t, "stripe", stripeSecret)
	raw, file := write(t, "raw.txt", d.raw()), write(t, "body.json", string(d.body))
	headers := write(t, "headers.txt", "Stripe-Signature: "+d.header.Get("Stripe-Signature")+"\n")
	key := write(t, "key", stripeSecret+"\n")
	for _, args := range [][]string{
		{"verify", raw, "--source", "pay", "-c", cfg},
		{"verify", raw, "--gateway", "stripe", "--secret", "file:" + key},
		{"verify", raw, "--gateway", "stripe", "--secret", "$STRIPE_SECRET"},
		{"verify", "--body", file, "--headers", headers, "--gateway", "stripe", "--secret", "${STRIPE_SECRET}"},
		{"verify", write(t, "curl.txt", "Note: a note\n*   Trying 127.0.0.1:443...\n> POST /webhooks/x HTTP/1.1\n> Stripe-Signature: "+d.header.Get("Stripe-Signature")+"\n>\n} [9 bytes data]\n"), "--body", file, "--gateway", "stripe", "--secret", stripeSecret},
		{"verify", "--body", file, "--headers", write(t, "headers.json", `{"Stripe-Signature":"`+d.header.Get("Stripe-Signature")+`"}`), "--gateway", "stripe", "--secret", stripeSecret},
		{"verify", "--body", file, "-H", "stripe-signature: " + d.header.Get("Stripe-Signature"), "--source", "pay", "-c", cfg},
	} {
		require.Equal(t, answer{code: exitOK, stdout: "The signature verifies.\n"}, call(t, args, "STRIPE_SECRET", stripeSecret), args)
	}
	var f diagnose.Finding
	a := call(t, []string{"verify", raw, "--gateway", "stripe", "--secret", "whsec_x", "--json"})
	require.Equal(t, exitFailed, a.code)
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &f))
	require.Equal(t, diagnose.WrongSecret, f.Cause)
	require.Equal(t, signature.Mismatch, f.Reason)
}

// TestVerifyShowsNoSecret: however a secret is given, and however wrongly, it is not
// printed.
func TestVerifyShowsNoSecret(t *testing.T) {
	t.Parallel()
	d := deliverTo(t, "stripe", stripeSecret)
	raw := write(t, "raw.txt", d.raw())
	const key = "-----BEGIN PRIVATE KEY-----\nCANARYkey0123456789\n-----END PRIVATE KEY-----\n"
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--gateway", "conekta", "-H", "Digest: YWJjZA==", "--secret", key}, "cannot be one of this gateway"},
		{[]string{"--gateway", "stripe", "--secret", "-CANARYhyphen"}, "the secret is another endpoint's"},
		{[]string{"--gateway", "stripe", "--secret", "whsec_CANARY", "--other", "CANARYbare"}, "the secret is another endpoint's"},
		{[]string{"--gateway", "stripe", "--secret", "whsec_CANARY", "--other", "old=" + stripeSecret}, "another secret that was given (old)"},
		{[]string{"--gateway", "stripe", "--secret", "whsec_CANARY", "--other", stripeSecret}, "another secret that was given (the first --other)"},
	} {
		a := call(t, append([]string{"verify", raw}, tt.args...))
		require.Equal(t, exitFailed, a.code, a.stderr)
		require.Contains(t, a.stdout, tt.says)
		require.NotContains(t, a.stdout+a.stderr, "CANARY")
		require.NotContains(t, a.stdout+a.stderr, stripeSecret)
	}
}

// TestVerifyTakesTheURLOfTheCapture: where the URL is signed and nobody says it, it is
// where the request was sent, which the answer says if that may be to blame.
func TestVerifyTakesTheURLOfTheCapture(t *testing.T) {
	t.Parallel()
	sent := func(url string) string {
		a := call(t, words("send square payment.updated --secret sq-key --to %s --print", url))
		require.Equal(t, exitOK, a.code, a.stderr)
		return a.stdout
	}
	genuine := sent(squareURL)
	verify := func(command string, args ...string) answer {
		return call(t, append([]string{"verify", write(t, "curl.txt", command), "--gateway", "square"}, args...))
	}
	require.Equal(t, answer{stdout: "The signature verifies.\n"}, verify(genuine, "--secret", "sq-key"))

	a := verify(strings.Replace(genuine, squareURL, "http://10.0.0.1:3000/own", 1), "--secret", "sq-key")
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stdout, "It was taken to be http://10.0.0.1:3000/own, where the request was sent")

	a = verify(genuine, "--secret", "other", "--url", squareURL)
	require.Equal(t, exitFailed, a.code)
	require.NotContains(t, a.stdout, "taken to be")

	a = verify(strings.Replace(genuine, "X-Square-Hmacsha256-Signature", "X-Other", 1), "--secret", "sq-key")
	require.Equal(t, exitFailed, a.code)
	require.NotContains(t, a.stdout, "taken to be")
}

// TestVerifyTellsOfTheSender: a genuine delivery without the credentials that the
// source asks of its sender is refused by the receiver, so it does not verify here.
func TestVerifyTellsOfTheSender(t *testing.T) {
	t.Parallel()
	cfg := write(t, "paidonce.yaml", `
accounts:
  shop:
    sources:
      cards: {gateway: adyen, mode: test, hmac_keys: [`+adyenKey+`], basic: "user:pass5ecret"}
      cko: {gateway: checkout, mode: test, secrets: [cko-verify-test-only], authorization: sender5ecret}
`)
	for _, name := range []string{"cards", "cko"} {
		loaded, err := config.Load(cfg, func(string) string { return "" })
		require.NoError(t, err)
		source := loaded.Sources()[name]
		g, ok := gateway.Lookup(source.Gateway)
		require.True(t, ok)
		body, err := g.Sample(gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name, Reference: "ord_1"})
		require.NoError(t, err)
		signed, err := g.Deliver(source, body, "", now)
		require.NoError(t, err)
		d := dumped{url: "/webhooks/" + name, header: signed.Header, body: signed.Body}
		a := call(t, []string{"verify", write(t, "r.txt", d.raw()), "--source", name, "-c", cfg})
		require.Equal(t, exitOK, a.code, a.stdout)
		for _, change := range []func(){func() { d.header.Set("Authorization", "other") }, func() { d.header.Del("Authorization") }} {
			change()
			a = call(t, []string{"verify", write(t, "r.txt", d.raw()), "--source", name, "-c", cfg})
			require.Equal(t, exitFailed, a.code, name)
			require.Contains(t, a.stdout, "The signature verifies, and the credentials in the Authorization header are missing or others")
			require.NotContains(t, a.stdout, "5ecret")
		}
	}
}

// TestVerifyCalledWrongly says what is missing.
func TestVerifyCalledWrongly(t *testing.T) {
	t.Parallel()
	raw := write(t, "raw.txt", "POST / HTTP/1.1\nA: b\n\n{}")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"verify"}, "verify needs a request"},
		{[]string{"verify", raw}, "verify needs --gateway or --source"},
		{[]string{"verify", raw, "--gateway", "nope"}, `there is no gateway "nope"`},
		{[]string{"verify", raw, "--gateway", "stripe"}, "verify needs a secret"},
		{[]string{"verify", raw, "--gateway", "stripe", "--secret", "$NOT_SET"}, "NOT_SET is not set"},
		{[]string{"verify", write(t, "x.txt", "prose"), "--gateway", "stripe", "--secret", "x"}, "it is no raw HTTP request"},
		{[]string{"verify", write(t, "v.txt", "> POST / HTTP/1.1\n> A: b\n"), "--gateway", "stripe", "--secret", "x"}, "holds no body"},
	} {
		a := call(t, tt.args)
		require.Equal(t, exitUsage, a.code, tt.args)
		require.Contains(t, a.stderr, tt.want)
	}
}
