// Package interop asks the gateways' own libraries what they think of package
// signature: they sign and we verify, we sign and they verify, and both refuse what
// was tampered with. And it asks their own doubles of their APIs what they think of
// our requests.
package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"
	razorpay "github.com/razorpay/razorpay-go/utils"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	stripe "github.com/stripe/stripe-go/v84/webhook"
	svix "github.com/svix/svix-webhooks/go"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

const (
	squareURL = "https://shop.example/webhooks/square"
	whsec     = "whsec_aW50ZXJvcC10ZXN0LW9ubHkta2V5LTAwMDE="
)

// delivery is a signed request.
type delivery struct {
	header http.Header
	body   []byte
	query  string
}

// library is a gateway's own library.
type library struct {
	name   string // with the language
	scheme string
	secret string
	url    string
	query  string

	// bodies are what is signed. Default: payloads.
	bodies []string

	verify func(*testing.T, library, delivery) bool
	sign   func(*testing.T, library, string) delivery // nil: it only verifies
}

// payloads have what is easily spoilt: accents, escapes, spaces, no JSON at all.
var payloads = []string{
	`{"id":"evt_1","type":"payment.succeeded","data":{"amount":72.00,"note":"café \u00e9 <&> \/"}}`,
	"{\n  \"id\" : \"evt_2\" ,\n  \"event\": {\"id\": \"x\"}\n}\n",
	`{"events":[{"id":"EV1"}],"日本":"\ud83d\ude00"}`,
}

const adyenBody = `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"7914073381342284","originalReference":"","merchantAccountCode":"TestMerchant",` +
	`"merchantReference":"Order: 5/7 \\ é","amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true","eventDate":"2026-01-01T10:00:00+01:00","additionalData":{}}},` +
	`{"NotificationRequestItem":{"pspReference":"8515073381342285","originalReference":"7914073381342284","merchantAccountCode":"TestMerchant",` +
	`"merchantReference":"x","amount":{"value":0,"currency":"JPY"},"eventCode":"REFUND","success":"false","additionalData":{"a":"b"}}}]}`

func libraries() []library {
	const key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	const razor, pad = "razorpay-interop-test", "pdl_ntfset_01interop_testonly"
	node := func(sdk, scheme, secret string, signs bool) library {
		l := library{name: "node/" + sdk, scheme: scheme, secret: secret, verify: nodeVerify(sdk)}
		if signs {
			l.sign = nodeSign(sdk)
		}
		return l
	}
	square := node("square", "square", "sq-interop-test", false)
	square.url = squareURL
	mercado := node("mercadopago", "mercadopago", "mp-interop-test", false)
	mercado.query, mercado.bodies = "data.id=123456789&type=payment", []string{`{"data":{"id":"123456789"}}`}
	adyen := node("adyen", "adyen", key, true)
	adyen.bodies = []string{adyenBody}
	braintree := node("braintree", "braintree", "integration_public_key:integration_private_key", true)
	braintree.bodies = []string{"transaction_settled", "dispute_opened", "subscription_charged_successfully"}
	redsys := node("redsys", "redsys", "sq7HjrUOBfKmC576ILgskD5srU870gJ7", false)
	redsys.bodies = samples("redsys")
	commerce := node("coinbase-commerce", "coinbase-commerce", "interop-test", true)
	commerce.bodies = payloads[:2]

	return []library{
		{name: "go/stripe-go", scheme: "stripe", secret: "whsec_interop", verify: goStripe, sign: goStripeSign},
		{name: "go/standard-webhooks", scheme: "standard", secret: whsec, verify: goStandard, sign: goStandardSign},
		{name: "go/svix", scheme: "standard", secret: whsec, verify: goSvix, sign: goSvixSign},
		{name: "go/paddle", scheme: "paddle", secret: pad, verify: goPaddle},
		{name: "go/razorpay", scheme: "razorpay", secret: razor, verify: goRazorpay},
		node("stripe", "stripe", "whsec_interop", true),
		node("standardwebhooks", "standard", whsec, true),
		node("svix", "standard", whsec, true),
		node("lithic", "standard", whsec, false),
		node("adyen-platform", "adyen-platform", key, true),
		node("razorpay", "razorpay", razor, false),
		node("paddle", "paddle", pad, false),
		node("shopify", "shopify", "shpss_interop", false),
		node("gocardless", "gocardless", "gocardless-interop", false),
		adyen, square, mercado, braintree, redsys, commerce,
	}
}

// samples are bodies in a gateway's real shape, unsigned.
func samples(name string) []string {
	g, ok := gateway.Lookup(name)
	if !ok {
		return nil
	}
	source := g.Example("interop")
	var all []string
	for _, t := range g.Types(source) {
		if body, err := g.Sample(gateway.SampleRequest{Source: source, Type: t.Name, Reference: "ord1234"}); err == nil {
			all = append(all, string(body))
		}
	}
	return all
}

func (l library) request(d delivery) signature.Request {
	return signature.Request{Method: http.MethodPost, URL: l.url, Query: d.query, Header: d.header, Body: d.body}
}

func (l library) bodiesOr(payloads []string) []string {
	if l.bodies != nil {
		return l.bodies
	}
	return payloads
}

// TestWeSignTheyVerify, and a tampered copy is refused by both.
func TestWeSignTheyVerify(t *testing.T) {
	t.Parallel()
	for _, l := range libraries() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			skipWithoutNode(t, l)
			scheme, ok := signature.Lookup(l.scheme)
			require.True(t, ok)
			bodies := l.bodiesOr(payloads)
			if l.scheme == "braintree" { // what it signs is no kind of event, but its payload
				bodies = samples("braintree")
			}
			require.NotEmpty(t, bodies)
			for _, body := range bodies {
				signed, err := scheme.Sign([]byte(body), l.secret, time.Now(), signature.SignOptions{URL: l.url, Query: l.query})
				require.NoError(t, err)
				d := delivery{signed.Header, signed.Body, signed.Query}
				require.NoError(t, scheme.Verify(l.request(d), []string{l.secret}, time.Now()))
				require.True(t, l.verify(t, l, d), "refused: %s", body)
				for _, bad := range tampered(l, d) {
					require.Error(t, scheme.Verify(l.request(bad), []string{l.secret}, time.Now()))
					require.False(t, l.verify(t, l, bad), "taken: %s", bad.body)
				}
				stranger := l
				stranger.secret = otherSecret(l)
				require.False(t, l.verify(t, stranger, d))
				require.Error(t, scheme.Verify(l.request(d), []string{stranger.secret}, time.Now()))
			}
		})
	}
}

// TestTheySignWeVerify, and a tampered copy is refused by both.
func TestTheySignWeVerify(t *testing.T) {
	t.Parallel()
	for _, l := range libraries() {
		if l.sign == nil {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			skipWithoutNode(t, l)
			scheme, ok := signature.Lookup(l.scheme)
			require.True(t, ok)
			for _, body := range l.bodiesOr(payloads) {
				d := l.sign(t, l, body)
				require.NoError(t, scheme.Verify(l.request(d), []string{l.secret}, time.Now()), body)
				require.Error(t, scheme.Verify(l.request(d), []string{otherSecret(l)}, time.Now()))
				for _, bad := range tampered(l, d) {
					require.Error(t, scheme.Verify(l.request(bad), []string{l.secret}, time.Now()))
					require.False(t, l.verify(t, l, bad))
				}
			}
		})
	}
}

// otherSecret is well formed, and not the library's.
func otherSecret(l library) string {
	switch l.scheme {
	case "standard":
		return "whsec_YW5vdGhlci1pbnRlcm9wLXRlc3Qta2V5LTAwMQ=="
	case "adyen", "adyen-platform":
		return strings.Repeat("AB", 32)
	case "braintree":
		return "integration_public_key:another_private_key"
	case "redsys":
		return "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	}
	return l.secret + "x"
}

// tampered are copies of d that say something else.
func tampered(l library, d delivery) []delivery {
	var all []delivery
	change := func(old, with string) {
		if body := bytes.Replace(d.body, []byte(old), []byte(with), 1); !bytes.Equal(body, d.body) {
			all = append(all, delivery{d.header, body, d.query})
		}
	}
	switch l.scheme {
	case "mercadopago":
		return []delivery{{d.header, d.body, "data.id=123456780&type=payment"}}
	case "adyen":
		change(`"value":1130`, `"value":1131`)
		change(`"success":"false"`, `"success":"true"`)
	case "braintree":
		i := bytes.Index(d.body, []byte("bt_payload=")) + len("bt_payload=") + 8
		change(string(d.body[i:i+8]), "QUJDREVG")
	case "redsys":
		i := bytes.Index(d.body, []byte("Ds_MerchantParameters=")) + len("Ds_MerchantParameters=") + 40
		change(string(d.body[i:i+4]), "QUJD")
	default:
		change("evt_1", "evt_9")
		change("evt_2", "evt_9")
		change("EV1", "EV9")
		change("}", "} ")
	}
	return all
}

// flat is a header as the libraries of node take it.
func flat(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// oracle is the process that asks the libraries of node.
var oracle struct {
	once sync.Once
	mu   sync.Mutex
	in   io.Writer
	out  *bufio.Reader
	err  error
}

// skipWithoutNode skips a library whose package is not installed.
func skipWithoutNode(t *testing.T, l library) {
	t.Helper()
	if !strings.HasPrefix(l.name, "node/") {
		return
	}
	if _, err := os.Stat("node_modules"); err != nil {
		if os.Getenv("INTEROP_NODE") != "" {
			t.Fatal("node_modules is not there: npm ci")
		}
		t.Skip("the libraries of node are not installed: npm ci")
	}
}

type answer struct {
	OK     bool              `json:"ok"`
	Why    string            `json:"why"`
	Header map[string]string `json:"header"`
	Body   *string           `json:"body"`
}

func ask(t *testing.T, question map[string]any) answer {
	t.Helper()
	oracle.once.Do(func() {
		cmd := exec.Command("node", "oracle.mjs")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			oracle.err = err
			return
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			oracle.err = err
			return
		}
		oracle.in, oracle.out, oracle.err = in, bufio.NewReader(out), cmd.Start()
	})
	require.NoError(t, oracle.err)
	line, err := json.Marshal(question)
	require.NoError(t, err)
	oracle.mu.Lock()
	defer oracle.mu.Unlock()
	_, err = oracle.in.Write(append(line, '\n'))
	require.NoError(t, err)
	text, err := oracle.out.ReadBytes('\n')
	require.NoError(t, err)
	var a answer
	require.NoError(t, json.Unmarshal(text, &a))
	return a
}

func nodeVerify(sdk string) func(*testing.T, library, delivery) bool {
	return func(t *testing.T, l library, d delivery) bool {
		return ask(t, map[string]any{
			"sdk": sdk, "op": "verify", "secret": l.secret, "header": flat(d.header), "body": string(d.body), "url": l.url, "query": d.query,
		}).OK
	}
}

func nodeSign(sdk string) func(*testing.T, library, string) delivery {
	return func(t *testing.T, l library, body string) delivery {
		a := ask(t, map[string]any{"sdk": sdk, "op": "sign", "secret": l.secret, "body": body, "header": map[string]string{}})
		require.Empty(t, a.Why)
		d := delivery{header: http.Header{}, body: []byte(body)}
		for name, value := range a.Header {
			d.header.Set(name, value)
		}
		if a.Body != nil {
			d.body = []byte(*a.Body)
		}
		return d
	}
}

func goStripe(_ *testing.T, l library, d delivery) bool {
	return stripe.ValidatePayload(d.body, d.header.Get("Stripe-Signature"), l.secret) == nil
}

func goStripeSign(_ *testing.T, l library, body string) delivery {
	s := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: []byte(body), Secret: l.secret, Timestamp: time.Now()})
	return delivery{header: http.Header{"Stripe-Signature": {s.Header}}, body: []byte(body)}
}

func goStandard(_ *testing.T, l library, d delivery) bool {
	w, err := standardwebhooks.NewWebhook(l.secret)
	return err == nil && w.Verify(d.body, d.header) == nil
}

func goStandardSign(t *testing.T, l library, body string) delivery {
	w, err := standardwebhooks.NewWebhook(l.secret)
	require.NoError(t, err)
	now := time.Now()
	sig, err := w.Sign("msg_1", now, []byte(body))
	require.NoError(t, err)
	return standardDelivery("Webhook", sig, now, body)
}

func goSvix(_ *testing.T, l library, d delivery) bool {
	w, err := svix.NewWebhook(l.secret)
	return err == nil && w.Verify(d.body, d.header) == nil
}

func goSvixSign(t *testing.T, l library, body string) delivery {
	w, err := svix.NewWebhook(l.secret)
	require.NoError(t, err)
	now := time.Now()
	sig, err := w.Sign("msg_1", now, []byte(body))
	require.NoError(t, err)
	return standardDelivery("Svix", sig, now, body)
}

func standardDelivery(prefix, sig string, now time.Time, body string) delivery {
	return delivery{body: []byte(body), header: http.Header{
		prefix + "-Id": {"msg_1"}, prefix + "-Timestamp": {unix(now)}, prefix + "-Signature": {sig},
	}}
}

func goPaddle(t *testing.T, l library, d delivery) bool {
	r, err := http.NewRequest(http.MethodPost, "/", bytes.NewReader(d.body))
	require.NoError(t, err)
	r.Header = d.header
	ok, err := paddle.NewWebhookVerifier(l.secret).Verify(r)
	return ok && err == nil
}

func goRazorpay(_ *testing.T, l library, d delivery) bool {
	return razorpay.VerifyWebhookSignature(string(d.body), d.header.Get("X-Razorpay-Signature"), l.secret)
}
