package diagnose_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

var now = time.Unix(1_790_000_000, 0)

const (
	stripeSecret   = "whsec_diagnosetestonly00000000000001"
	standardSecret = "whsec_ZGlhZ25vc2UtdGVzdC1vbmx5LWtleS0wMDAwMDAwMQ=="
	payload        = `{"id":"evt_1","type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"pi_1","amount":5000,"rate":72.00,"currency":"eur","metadata":{"order_id":"ord_1","note":"café & co <3","url":"https://a.example/b"}}},"created":1790000000}` + "\n"
)

func scheme(t testing.TB, name string) *signature.Scheme {
	t.Helper()
	s, ok := signature.Lookup(name)
	require.True(t, ok, "no scheme %q", name)
	return s
}

// genuine is a delivery that verifies.
func genuine(t testing.TB, name, secret string, body []byte, opt signature.SignOptions) diagnose.Input {
	t.Helper()
	s := scheme(t, name)
	signed, err := s.Sign(body, secret, now, opt)
	require.NoError(t, err)
	r := signature.Request{Method: http.MethodPost, URL: opt.URL, Query: signed.Query, Header: signed.Header, Body: signed.Body}
	require.NoError(t, s.Verify(r, []string{secret}, now))
	return diagnose.Input{Scheme: s, Request: r, Secrets: []string{secret}, Now: now}
}

func stripe(t testing.TB) diagnose.Input {
	return genuine(t, "stripe", stripeSecret, []byte(payload), signature.SignOptions{})
}

// rewritten parses JSON and writes it again, in the way given.
func rewritten(t testing.TB, write func(v any) ([]byte, error)) func(*diagnose.Input) {
	return func(in *diagnose.Input) {
		var v any
		d := json.NewDecoder(bytes.NewReader(in.Request.Body))
		d.UseNumber()
		require.NoError(t, d.Decode(&v))
		b, err := write(v)
		require.NoError(t, err)
		in.Request.Body = b
	}
}

func header(in *diagnose.Input, name string, change func(string) []string) {
	v := in.Request.Header.Get(name)
	in.Request.Header = in.Request.Header.Clone()
	in.Request.Header[name] = change(v)
}

func replace(old, with string) func(*diagnose.Input) {
	return func(in *diagnose.Input) {
		in.Request.Body = bytes.ReplaceAll(in.Request.Body, []byte(old), []byte(with))
	}
}

func zipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// latin1 is UTF-8 read as Latin-1 and written as UTF-8.
func latin1(b []byte) []byte {
	var out []rune
	for _, c := range b {
		out = append(out, rune(c))
	}
	return []byte(string(out))
}

// TestFindsTheOneThing breaks a genuine delivery in one way each, and wants that
// way named.
func TestFindsTheOneThing(t *testing.T) {
	t.Parallel()
	const sig = "Stripe-Signature"
	for _, tt := range []struct {
		name   string
		in     func(testing.TB) diagnose.Input // default: Stripe's
		spoil  func(*diagnose.Input)
		cause  diagnose.Cause
		says   string
		proved bool
	}{
		{name: "Nothing", spoil: func(*diagnose.Input) {}, cause: diagnose.None, says: "verifies", proved: true},
		{name: "NewlineLost", spoil: func(in *diagnose.Input) { in.Request.Body = bytes.TrimSuffix(in.Request.Body, []byte("\n")) }, cause: diagnose.Newline, says: "at the end of the body was lost", proved: true},
		{name: "NewlineAdded", spoil: func(in *diagnose.Input) { in.Request.Body = append(bytes.Clone(in.Request.Body), '\n') }, cause: diagnose.Newline, says: "was added at the end", proved: true},
		{name: "LFBecameCRLF", spoil: replace("\n", "\r\n"), cause: diagnose.LineEnds, says: "from LF to CRLF", proved: true},
		{name: "BOM", spoil: func(in *diagnose.Input) { in.Request.Body = append([]byte("\xef\xbb\xbf"), in.Request.Body...) }, cause: diagnose.ByteOrderMark, says: "byte order mark", proved: true},
		{name: "Indented", spoil: func(in *diagnose.Input) { in.Request.Body = indent(in.Request.Body, "  ") }, cause: diagnose.JSONSpacing, says: "spaces changed", proved: true},
		{name: "Python", spoil: func(in *diagnose.Input) { in.Request.Body = python(in.Request.Body) }, cause: diagnose.JSONSpacing, says: "spaces changed", proved: true},
		{name: "UnicodeEscaped", spoil: replace("é", `\u00e9`), cause: diagnose.JSONEscapes, says: "escapes changed", proved: true},
		{name: "SlashesEscaped", spoil: replace("/", `\/`), cause: diagnose.JSONEscapes, says: "escapes changed", proved: true},
		{name: "HTMLEscaped", spoil: replace("&", `\u0026`), cause: diagnose.JSONEscapes, says: "escapes changed", proved: true},
		{name: "NumberShort", spoil: replace("72.00", "72"), cause: diagnose.JSONNumbers, says: "form of a number", proved: true},
		{name: "NumberLong", spoil: replace("5000", "5000.0"), cause: diagnose.JSONNumbers, says: "form of a number", proved: true},
		{name: "KeyOrderWithTemplate", spoil: func(in *diagnose.Input) {
			in.Templates = [][]byte{[]byte(strings.ReplaceAll(payload, "evt_1", "evt_2"))}
			rewritten(t, json.Marshal)(in)
		}, in: ascii, cause: diagnose.JSONKeyOrder, says: "order of its keys", proved: true},
		{name: "KeyOrderUnknown", spoil: rewritten(t, json.Marshal), cause: diagnose.JSONKeyOrder, says: "alphabetical order"},
		{name: "Mojibake", spoil: func(in *diagnose.Input) { in.Request.Body = latin1(in.Request.Body) }, cause: diagnose.Charset, says: "read as Latin-1", proved: true},
		{name: "ToLatin1", spoil: replace("é", "\xe9"), cause: diagnose.Charset, says: "converted from UTF-8 to Latin-1", proved: true},
		{name: "Gzip", spoil: func(in *diagnose.Input) { in.Request.Body = zipped(in.Request.Body) }, cause: diagnose.Compressed, says: "still compressed (gzip)", proved: true},
		{name: "Base64Body", spoil: func(in *diagnose.Input) {
			in.Request.Body = []byte(base64.StdEncoding.EncodeToString(in.Request.Body))
		}, cause: diagnose.Base64Body, says: "base64", proved: true},
		{name: "JSONString", spoil: func(in *diagnose.Input) { in.Request.Body, _ = json.Marshal(string(in.Request.Body)) }, cause: diagnose.JSONString, says: "JSON string", proved: true},
		{name: "CutOff", spoil: func(in *diagnose.Input) { in.Request.Body = in.Request.Body[:100] }, cause: diagnose.Truncated, says: "incomplete"},
		{name: "ContentLength", spoil: func(in *diagnose.Input) {
			in.Request.Body = in.Request.Body[:20]
			in.Request.Header = in.Request.Header.Clone()
			in.Request.Header.Set("Content-Length", "247")
		}, cause: diagnose.Truncated, says: "Content-Length says 247"},
		{name: "SecretQuoted", spoil: func(in *diagnose.Input) { in.Secrets = []string{`"` + stripeSecret + `"`} }, cause: diagnose.SecretQuotes, says: "quotes around it", proved: true},
		{name: "SecretLine", spoil: func(in *diagnose.Input) { in.Secrets = []string{stripeSecret + "\n"} }, cause: diagnose.SecretSpace, says: "line break around it", proved: true},
		{name: "SecretWithoutPrefix", spoil: func(in *diagnose.Input) { in.Secrets = []string{strings.TrimPrefix(stripeSecret, "whsec_")} }, cause: diagnose.SecretPrefix, says: "lacks its prefix whsec_", proved: true},
		{name: "SecretNamed", spoil: func(in *diagnose.Input) { in.Secrets = []string{"STRIPE_SECRET=" + stripeSecret} }, cause: diagnose.SecretPrefix, says: "name of its variable", proved: true},
		{name: "SecretStale", spoil: func(in *diagnose.Input) {
			in.Secrets, in.Others = []string{"whsec_other"}, []diagnose.Labelled{{Label: "the secret before", Secret: stripeSecret}}
		}, cause: diagnose.OtherSecret, says: "the secret before", proved: true},
		{name: "SecretOfOtherMode", spoil: func(in *diagnose.Input) {
			in.Secrets, in.Mode = []string{"whsec_other"}, "live"
			in.Others = []diagnose.Labelled{{Label: "source stripe-test", Secret: stripeSecret, Mode: "test"}}
		}, cause: diagnose.SecretMode, says: "signed with the test secret", proved: true},
		{name: "SecretWrong", spoil: func(in *diagnose.Input) { in.Secrets = []string{"whsec_somebodyelse"} }, cause: diagnose.WrongSecret, says: "another endpoint's"},
		{name: "NoSecret", spoil: func(in *diagnose.Input) { in.Secrets = nil }, cause: diagnose.BadSecret, says: "no secret"},
		{name: "HeaderMissing", spoil: func(in *diagnose.Input) { in.Request.Header = http.Header{} }, cause: diagnose.HeaderMissing, says: "not there"},
		{name: "HeaderUnderscores", spoil: func(in *diagnose.Input) {
			in.Request.Header = http.Header{"HTTP_STRIPE_SIGNATURE": {in.Request.Header.Get(sig)}}
		}, cause: diagnose.HeaderName, says: "instead of Stripe-Signature", proved: true},
		{name: "HeaderFolded", spoil: func(in *diagnose.Input) {
			header(in, sig, func(v string) []string { return []string{v[:40] + "\r\n " + v[40:]} })
		}, cause: diagnose.HeaderFolded, says: "wrapped", proved: true},
		{name: "HeaderTwice", spoil: func(in *diagnose.Input) { header(in, sig, func(v string) []string { return []string{v, v} }) }, cause: diagnose.HeaderTwice, says: "more than once", proved: true},
		{name: "HeaderJoined", spoil: func(in *diagnose.Input) {
			header(in, sig, func(v string) []string { return []string{v + ", " + v} })
		}, cause: diagnose.HeaderTwice, says: "more than once", proved: true},
		{name: "HeaderQuoted", spoil: func(in *diagnose.Input) {
			header(in, sig, func(v string) []string { return []string{`"` + v + `"`} })
		}, cause: diagnose.HeaderQuoted, says: "quotes around its value", proved: true},
		{name: "HeaderEscaped", spoil: func(in *diagnose.Input) {
			header(in, sig, func(v string) []string {
				return []string{strings.NewReplacer("=", "%3D", ",", "%2C").Replace(v)}
			})
		}, cause: diagnose.HeaderQuoted, says: "percent-encoded", proved: true},
		{name: "HeaderCut", spoil: func(in *diagnose.Input) { header(in, sig, func(v string) []string { return []string{v[:len(v)-7]} }) }, cause: diagnose.HeaderCut, says: "incomplete"},
		{name: "HeaderBase64", spoil: func(in *diagnose.Input) {
			header(in, sig, func(v string) []string {
				digits := v[strings.Index(v, "v1=")+3:]
				b, _ := hex.DecodeString(digits)
				return []string{strings.Replace(v, digits, base64.StdEncoding.EncodeToString(b), 1)}
			})
		}, cause: diagnose.HeaderEncoding, says: "in base64, and this gateway sends hexadecimal", proved: true},
		{name: "ClockAhead", spoil: func(in *diagnose.Input) { in.Now = now.Add(400 * time.Second) }, cause: diagnose.ClockSkew, says: "400 s old", proved: true},
		{name: "ClockBehind", spoil: func(in *diagnose.Input) { in.Now = now.Add(-900 * time.Second) }, cause: diagnose.ClockSkew, says: "from 900 s in the future", proved: true},
		{name: "Standard/DecodedSecret", in: standard, spoil: func(in *diagnose.Input) {
			in.Secrets = []string{"diagnose-test-only-key-00000001"}
		}, cause: diagnose.SecretEncoding, says: "decoded from base64", proved: true},
		{name: "Standard/Hex", in: standard, spoil: func(in *diagnose.Input) {
			header(in, "Webhook-Signature", func(v string) []string {
				b, _ := base64.StdEncoding.DecodeString(v[3:])
				return []string{"v1," + hex.EncodeToString(b)}
			})
		}, cause: diagnose.HeaderEncoding, says: "in hexadecimal, and this gateway sends base64", proved: true},
		{name: "Standard/HeaderNames", in: standard, spoil: func(in *diagnose.Input) {
			h := http.Header{}
			for name, v := range in.Request.Header {
				h["HTTP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = v
			}
			in.Request.Header = h
		}, cause: diagnose.HeaderName, says: "other names", proved: true},
		{name: "TwoThings", spoil: func(in *diagnose.Input) {
			in.Secrets = []string{`'` + stripeSecret + `'`}
			in.Request.Body = bytes.TrimSuffix(in.Request.Body, []byte("\n"))
		}, cause: diagnose.SecretQuotes, says: "And then: The line break", proved: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			make := tt.in
			if make == nil {
				make = stripe
			}
			in := make(t)
			tt.spoil(&in)
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
			require.Equal(t, tt.proved, f.Proved)
			require.Equal(t, tt.cause == diagnose.None, f.Verified)
			requireNoSecret(t, f.Sentence, in)
		})
	}
}

// requireNoSecret: nothing of a secret, of the signature or of the body is said.
func requireNoSecret(t *testing.T, sentence string, in diagnose.Input) {
	t.Helper()
	for _, secret := range append(in.Secrets, stripeSecret, standardSecret, "ord_1", "pi_1") {
		if len(secret) > 4 {
			require.NotContains(t, sentence, secret)
		}
	}
	for _, values := range in.Request.Header {
		for _, v := range values {
			if len(v) > 20 {
				require.NotContains(t, sentence, v[len(v)-16:])
			}
		}
	}
}

func ascii(t testing.TB) diagnose.Input {
	body := strings.NewReplacer("é", "e", "&", "and", "<", "", "\n", "", "72.00", "72").Replace(payload)
	return genuine(t, "stripe", stripeSecret, []byte(body), signature.SignOptions{})
}

func standard(t testing.TB) diagnose.Input {
	return genuine(t, "standard", standardSecret, []byte(payload), signature.SignOptions{ID: "msg_1"})
}

func indent(b []byte, with string) []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, bytes.TrimSpace(b), "", with)
	return out.Bytes()
}

// python writes JSON with a space after commas and colons.
func python(b []byte) []byte {
	out := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(strings.TrimSpace(string(b)))
	return []byte(out)
}

// TestBoundsItsWork: a hostile body costs no more than what was allowed.
func TestBoundsItsWork(t *testing.T) {
	t.Parallel()
	in := stripe(t)
	in.Secrets = []string{"whsec_other"}
	in.Attempts = 50
	f := diagnose.Diagnose(in)
	require.LessOrEqual(t, f.Attempts, 50)
	require.False(t, f.Proved)

	in.Attempts = 0
	in.Request.Body = []byte(strings.Repeat("[", 50000))
	require.LessOrEqual(t, diagnose.Diagnose(in).Attempts, 20000)
}

// FuzzDiagnose: no panic whatever arrives, and nothing is called genuine that no
// secret signed.
func FuzzDiagnose(f *testing.F) {
	f.Add([]byte(payload), "t=1,v1=00", stripeSecret)
	f.Add([]byte("\x1f\x8b"), "", "")
	f.Add([]byte(`{"a":[1,{"b":"\u00e9"}]}`), "t=1790000000,v1=abc", "x")
	f.Fuzz(func(t *testing.T, body []byte, sig, secret string) {
		in := diagnose.Input{
			Scheme: scheme(t, "stripe"), Secrets: []string{secret}, Now: now, Attempts: 300,
			Request: signature.Request{Method: "POST", Header: http.Header{"Stripe-Signature": {sig}}, Body: body},
		}
		got := diagnose.Diagnose(in)
		require.False(t, got.Proved && len(sig) < 60, got.Sentence)
		require.NotEmpty(t, got.Sentence)
	})
}
