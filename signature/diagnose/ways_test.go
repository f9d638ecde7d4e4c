package diagnose_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

// nested is a payload as gateways send them: accents, addresses, decimals, a large
// integer, an empty object.
const nested = `{"id":"evt_1","object":"event","created":1790000000,"data":{"amount":129900,"description":"Café crème & croissants à l'hôtel","email":"josé@shop.example","extra":{},"fee":12.50,"items":[{"qty":2,"price":72.00,"sku":"X/1"},{"qty":1,"price":5.95,"sku":"Y"}],"trace":987654321012345678,"url":"https://shop.example/a?x=1"},"live":false,"type":"paid"}`

func shopify(t testing.TB) diagnose.Input {
	return genuine(t, "shopify", "shop-diagnose-test-only", []byte(nested), signature.SignOptions{})
}

// TestUndoesBodies: more ways to spoil a body, each proved.
func TestUndoesBodies(t *testing.T) {
	t.Parallel()
	swap := strings.NewReplacer
	for _, tt := range []struct {
		name  string
		spoil func(string) string
		cause diagnose.Cause
		says  string
	}{
		{"TwoNewlines", func(b string) string { return b + "\n\n" }, diagnose.Newline, "Line breaks were added"},
		{"ExtraByte", func(b string) string { return b + "x" }, diagnose.ExtraBytes, "its last byte is not signed"},
		{"LastByteLost", func(b string) string { return b[:len(b)-1] }, diagnose.Truncated, "its last byte is missing"},
		{"ZeroBytes", func(b string) string { return b + "\x00\x00\x00" }, diagnose.Whitespace, "zero bytes"},
		{"Windows1252", func(b string) string { return swap("é", "\xe9", "è", "\xe8", "à", "\xe0", "ô", "\xf4").Replace(b) }, diagnose.Charset, "converted from UTF-8"},
		{"UTF16", utf16LE, diagnose.Charset, "UTF-16"},
		{"Decomposed", func(b string) string {
			return swap("é", "e\u0301", "è", "e\u0300", "à", "a\u0300", "ô", "o\u0302").Replace(b)
		}, diagnose.Normalized, "decomposed"},
		{"OneAccentLost", func(b string) string { return strings.Replace(b, "è", "\ufffd", 1) }, diagnose.Charset, "Accents of the body were lost"},
		{"NoBreakSpaces", func(b string) string { return strings.ReplaceAll(b, " ", "\u00a0") }, diagnose.Charset, "no-break spaces"},
		{"TypographicQuotes", func(b string) string { return strings.ReplaceAll(b, "'", "\u2019") }, diagnose.Quoted, "typographic"},
		{"Logged", func(b string) string { return "'" + b + "'" }, diagnose.Quoted, "quotes around it"},
		{"PythonBytes", func(b string) string {
			return "b'" + swap("é", `\xc3\xa9`, "è", `\xc3\xa8`, "à", `\xc3\xa0`, "ô", `\xc3\xb4`, "'", `\'`).Replace(b) + "'"
		}, diagnose.Quoted, "as Python shows bytes"},
		{"HTML", html.EscapeString, diagnose.HTMLEscaped, "escaped for HTML"},
		{"Backslashes", func(b string) string { return strings.ReplaceAll(b, `"`, `\"`) }, diagnose.Quoted, "backslashes"},
		{"Percent", url.QueryEscape, diagnose.FormDecoded, "read as a form"},
		{"FormField", func(b string) string { return "payload=" + url.QueryEscape(b) }, diagnose.FormDecoded, "read as a form"},
		{"Envelope", func(b string) string { return `{"body":` + string(marshal(b)) + `,"isBase64Encoded":false}` }, diagnose.Wrapped, "wrapped in another document"},
		{"EnvelopeBase64", func(b string) string { return `{"body":"` + base64.StdEncoding.EncodeToString([]byte(b)) + `"}` }, diagnose.Wrapped, "base64 there"},
		{"EnvelopeJSON", func(b string) string { return `{"event":` + b + `}` }, diagnose.Wrapped, "wrapped in another document"},
		{"Exponent", func(b string) string { return strings.Replace(b, "129900", "1.299e5", 1) }, diagnose.JSONNumbers, "form of a number"},
		{"NumberAsString", func(b string) string { return strings.Replace(b, "129900", `"129900"`, 1) }, diagnose.JSONNumbers, "form of a number"},
		{"PythonDump", func(b string) string {
			return string(python([]byte(swap("é", `\u00e9`, "è", `\u00e8`, "à", `\u00e0`, "ô", `\u00f4`, "12.50", "12.5", "72.00", "72.0").Replace(b))))
		}, diagnose.JSONNumbers, "its spaces changed and its escapes changed"},
		{"JavaScript", func(b string) string { return swap("12.50", "12.5", "72.00", "72").Replace(b) }, diagnose.JSONNumbers, "form of a number"},
		{"RoundedInteger", func(b string) string { return strings.Replace(b, "987654321012345678", "987654321012345700", 1) }, diagnose.JSONNumbers, "form of a number"},
		{"PHPEmpty", func(b string) string { return strings.Replace(b, "{}", "[]", 1) }, diagnose.JSONEmpty, "empty list"},
		{"PHP", func(b string) string { return swap("{}", "[]", "12.50", "12.5", "72.00", "72").Replace(b) }, diagnose.JSONNumbers, "an empty object became an empty list"},
		{"KeysMoved", func(b string) string { return `{"type":"paid",` + strings.Replace(b[1:], `,"type":"paid"`, "", 1) }, diagnose.JSONKeyOrder, "order of its keys changed"},
		{"KeysSorted", func(b string) string {
			return swap(`"id":"evt_1","object":"event","created":1790000000,`, `"created":1790000000,`, `},"live"`, `},"id":"evt_1","live"`, `,"type":"paid"`, `,"object":"event","type":"paid"`, `"qty":2,"price":72.00`, `"price":72.00,"qty":2`, `"qty":1,"price":5.95`, `"price":5.95,"qty":1`).Replace(b)
		}, diagnose.JSONKeyOrder, "alphabetical order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := shopify(t)
			in.Request.Body = []byte(tt.spoil(nested))
			require.NotEqual(t, nested, string(in.Request.Body))
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
			require.Equal(t, tt.name != "KeysSorted", f.Proved)
			require.NotContains(t, f.Sentence, "evt_1")
		})
	}
}

func utf16LE(s string) string {
	out := []byte{0xff, 0xfe}
	for _, r := range s {
		out = append(out, byte(r), byte(r>>8))
	}
	return string(out)
}

func marshal(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// TestUndoesSecretsAndHeaders: more ways to spoil what is around the body.
func TestUndoesSecretsAndHeaders(t *testing.T) {
	t.Parallel()
	secret := func(f func(string) string) func(*diagnose.Input) {
		return func(in *diagnose.Input) { in.Secrets = []string{f(in.Secrets[0])} }
	}
	value := func(f func(string) string) func(*diagnose.Input) {
		return func(in *diagnose.Input) {
			header(in, "Stripe-Signature", func(v string) []string { return []string{f(v)} })
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*diagnose.Input)
		cause diagnose.Cause
		says  string
	}{
		{"Export", secret(func(s string) string { return `export STRIPE="` + s + `"` }), diagnose.SecretPrefix, "name of its variable"},
		{"YAML", secret(func(s string) string { return "secret: " + s }), diagnose.SecretPrefix, "name of its variable"},
		{"Semicolon", secret(func(s string) string { return s + ";" }), diagnose.SecretSpace, "character at its end"},
		{"Brackets", secret(func(s string) string { return "<" + s + ">" }), diagnose.SecretQuotes, "brackets"},
		{"Wrapped", secret(func(s string) string { return s[:9] + "\n" + s[9:] }), diagnose.SecretSpace, "line break inside"},
		{"Twice", secret(func(s string) string { return s + s }), diagnose.SecretPrefix, "twice"},
		{"Base64Line", secret(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s + "\n")) }), diagnose.SecretEncoding, "echo without -n"},
		{"EscapedLine", secret(func(s string) string { return s + `\n` }), diagnose.SecretSpace, `two characters \n`},
		{"Milliseconds", value(func(v string) string { return strings.Replace(v, "1790000000", "1790000000000", 1) }), diagnose.SignedTime, "milliseconds"},
		{"TimeMoved", value(func(v string) string { return strings.Replace(v, "1790000000", "1790000042", 1) }), diagnose.SignedTime, "changed by 42 s"},
		{"List", value(func(v string) string { return "['" + v + "']" }), diagnose.HeaderQuoted, "printed as a list"},
		{"Prefixed", func(in *diagnose.Input) {
			in.Request.Header = http.Header{"X-Original-Stripe-Signature": in.Request.Header["Stripe-Signature"]}
		}, diagnose.HeaderName, "instead of Stripe-Signature"},
		{"CutEven", value(func(v string) string { return v[:len(v)-8] }), diagnose.HeaderCut, "incomplete"},
		{"Brotli", func(in *diagnose.Input) { in.Request.Body = []byte("\x1b\x03\x00\xf8\x8d\x94\x01\xff\x00rest") }, diagnose.Compressed, "not text"},
		{"EmptyBody", func(in *diagnose.Input) { in.Request.Body = nil }, diagnose.NoBody, "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := stripe(t)
			tt.spoil(&in)
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
			requireNoSecret(t, f.Sentence, in)
		})
	}
}

// TestWrongSecretIsNotTheBody: however the gateway writes its JSON, a wrong secret
// is not put down to that.
func TestWrongSecretIsNotTheBody(t *testing.T) {
	t.Parallel()
	alphabetical := `{"created":1,"data":{"amount":1,"id":"pi_1"},"id":"evt_1","type":"paid"}`
	for name, body := range map[string]string{
		"Compact": nested, "Indented": string(indent([]byte(nested), "  ")), "Python": string(python([]byte(nested))),
		"Alphabetical": alphabetical, "Questions": `{"id":"evt_1","note":"ready?"}`,
	} {
		in := genuine(t, "shopify", "shop-diagnose-test-only", []byte(body), signature.SignOptions{})
		in.Secrets = []string{"another-one"}
		in.Templates = [][]byte{[]byte(strings.Replace(alphabetical, "evt_1", "evt_2", 1))}
		f := diagnose.Diagnose(in)
		require.Equal(t, diagnose.WrongSecret, f.Cause, name)
		require.Contains(t, f.Sentence, "the secret is another endpoint's", name)
		require.False(t, f.Proved)
	}
}

// TestSpeaksOfTheRightThing: a gateway without an HMAC over the body is not told
// about secrets and bodies that it does not have.
func TestSpeaksOfTheRightThing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scheme, secret, body, other string
		says                        string
	}{
		{"xendit", "token-test-only", nested, "another", "The token in X-Callback-Token is not the one that was given"},
		{"flutterwave-v3", "token-test-only", nested, "another", "The token in Verif-Hash is not the one"},
		{"midtrans", "SB-Mid-server-x", `{"order_id":"o","status_code":"200","gross_amount":"10000.00"}`, "SB-Mid-server-y", "the server key is another merchant's"},
		{"wompi", "test_events_x", `{"data":{"transaction":{"id":"1","status":"APPROVED","amount_in_cents":100}},"timestamp":1790000000}`, "test_events_y", "the events secret is another"},
		{"payu-latam", "MD5:x", "merchant_id=1&reference_sale=o&value=10.00&currency=COP&state_pol=4", "MD5:y", "the API key is another account's"},
		{"braintree", "public:private", "<n/>", "public:other", "the private key is not the one of that public key"},
		{"braintree", "public:private", "<n/>", "other:private", "not among those that signed"},
		{"redsys", "sq7HjrUOBfKmC576ILgskD5srU870gJ7", `{"Ds_Order":"1"}`, "aq7HjrUOBfKmC576ILgskD5srU870gJ7", "the key is another terminal's"},
		{"adyen", strings.Repeat("ab", 32), `{"notificationItems":[{"NotificationRequestItem":{"pspReference":"1"}}]}`, strings.Repeat("cd", 32), "the HMAC key is another endpoint's"},
		{"mercadopago", "mp-test-only", `{"data":{"id":"1"}}`, "mp-other", "the body has no part in it"},
	} {
		in := genuine(t, tt.scheme, tt.secret, []byte(tt.body), signature.SignOptions{})
		f := diagnose.Diagnose(in)
		require.True(t, f.Verified)
		in.Secrets = []string{tt.other}
		f = diagnose.Diagnose(in)
		require.Equal(t, diagnose.WrongSecret, f.Cause, tt.scheme)
		require.Contains(t, f.Sentence, tt.says)
	}
}

// TestUndoesFields: signed fields inside the body, and the query of a URL.
func TestUndoesFields(t *testing.T) {
	t.Parallel()
	const midtrans = `{"order_id":"o","status_code":"200","gross_amount":"10000.00"}`
	const redsys = "sq7HjrUOBfKmC576ILgskD5srU870gJ7"
	form := func(b []byte, name string, f func(string) string) []byte {
		v, err := url.ParseQuery(string(b))
		require.NoError(t, err)
		v.Set(name, f(v.Get(name)))
		return []byte(v.Encode())
	}
	for _, tt := range []struct {
		name, scheme, secret, body string
		spoil                      func(*diagnose.Input)
		cause                      diagnose.Cause
		says                       string
	}{
		{"Midtrans/Short", "midtrans", "SB-Mid-server-x", midtrans, replace("10000.00", "10000"), diagnose.JSONNumbers, "form of a number"},
		{"Midtrans/Number", "midtrans", "SB-Mid-server-x", midtrans, replace(`"200"`, "200"), diagnose.JSONNumbers, "form of a number"},
		{"Redsys/Written", "redsys", redsys, `{"Ds_Order":"1","Ds_Date":"01/01"}`, func(in *diagnose.Input) {
			in.Request.Body = form(in.Request.Body, "Ds_MerchantParameters", func(string) string {
				return base64.StdEncoding.EncodeToString([]byte(`{"Ds_Order": "1", "Ds_Date": "01\/01"}`))
			})
		}, diagnose.JSONSpacing, "parsed, written again"},
		{"Redsys/Decoded", "redsys", redsys, `{"Ds_Order":"1"}`, func(in *diagnose.Input) {
			in.Request.Body = form(in.Request.Body, "Ds_MerchantParameters", func(string) string { return `{"Ds_Order":"1"}` })
		}, diagnose.Base64Body, "was decoded from base64"},
		{"Redsys/Cut", "redsys", redsys, `{"Ds_Order":"1"}`, func(in *diagnose.Input) {
			in.Request.Body = form(in.Request.Body, "Ds_Signature", func(v string) string { return v[:len(v)-6] })
		}, diagnose.HeaderCut, "Ds_Signature is incomplete"},
		{"Braintree/Cut", "braintree", "public:private", "<n/>", func(in *diagnose.Input) {
			in.Request.Body = form(in.Request.Body, "bt_signature", func(v string) string { return v[:len("public|")] })
		}, diagnose.HeaderCut, "bt_signature is incomplete"},
		{"Braintree/Lines", "braintree", "public:private", "<n>" + strings.Repeat("x", 40) + "</n>", func(in *diagnose.Input) {
			in.Request.Body = form(in.Request.Body, "bt_payload", func(v string) string { return strings.ReplaceAll(v, "\n", "\r\n") })
		}, diagnose.LineEnds, "bt_payload has its line ends changed"},
		{"MercadoPago/NoQuery", "mercadopago", "mp-test-only", `{"data":{"id":"77"}}`, func(in *diagnose.Input) { in.Request.Query = "" }, diagnose.SignedID, "lacks its query"},
		{"MercadoPago/OtherID", "mercadopago", "mp-test-only", `{"data":{"id":"77"}}`, func(in *diagnose.Input) { in.Request.Query = "data.id=78" }, diagnose.SignedID, "the one in the body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := genuine(t, tt.scheme, tt.secret, []byte(tt.body), signature.SignOptions{})
			tt.spoil(&in)
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
		})
	}
}

// TestHostileBodies: none of them hangs, panics or fills the memory.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"Deep": strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "Bomb": string(zipped(make([]byte, 32<<20))),
		"Number": `{"a":` + strings.Repeat("9", 50000) + `}`, "Exponent": `{"a":1e999999999,"b":1e-99999999` + strings.Repeat(`,"c":1E999999`, 60) + `}`,
		"Escapes": `{"a":"` + strings.Repeat(`\u`, 9000) + `"}`, "Questions": strings.Repeat("?", 65536),
		"Form": strings.Repeat("a=b&", 16000), "Keys": `{` + strings.TrimSuffix(strings.Repeat(`"k":1,`, 9000), ",") + `}`,
		"Large": "[" + strings.TrimSuffix(strings.Repeat(strings.Replace(nested, "evt_1", "evt_2", 1)+",", 120), ",") + "]",
	} {
		in := shopify(t)
		in.Request.Body = []byte(body)
		start := time.Now()
		f := diagnose.Diagnose(in)
		require.False(t, f.Proved, name)
		require.LessOrEqual(t, f.Attempts, 20000)
		require.Lessf(t, time.Since(start), 30*time.Second, "%s: %d attempts", name, f.Attempts)
		require.NotContains(t, f.Sentence, "evt_1")
		if name == "Deep" { // the work is not spent on its indentation
			require.Greater(t, f.Attempts, 500)
		}
	}
}
