package bank_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// clock is the bank's clock, which a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// inbox takes webhooks.
type inbox struct {
	mu   sync.Mutex
	hook []bank.Webhook
	fail int // so many are not taken
}

func (i *inbox) take(_ context.Context, w bank.Webhook) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail > 0 {
		i.fail--
		return fmt.Errorf("not now")
	}
	i.hook = append(i.hook, w)
	return nil
}

// types are what came, in their order.
func (i *inbox) types() (all []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range i.hook {
		all = append(all, w.Type)
	}
	return all
}

func (i *inbox) clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hook = nil
}

// stage is a bank with a source of each gateway, its clock, and who takes its webhooks.
type stage struct {
	*bank.Bank
	*clock
	*inbox
	t       testing.TB
	client  *http.Client
	sources map[string]gateway.Source
}

var start = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// credentials complete an example.
func credentials(s gateway.Source) gateway.Source {
	s.ID = "a." + s.Gateway
	switch s.Gateway {
	case "paypal":
		s.ClientID, s.ClientSecret = cmp.Or(s.ClientID, "client"), cmp.Or(s.ClientSecret, "secret")
	case "adyen":
		s.Capture = gateway.CaptureManual
		s.AccessToken = cmp.Or(s.AccessToken, "key")
	case "mercadopago":
		s.Topic = "payment"
	case "stripe":
		s.AccessToken = cmp.Or(s.AccessToken, "rk_test_1")
	}
	return s
}

var gateways = []string{"stripe", "adyen", "paypal", "mercadopago"}

// open starts a bank that behaves, unless opts say otherwise.
func open(t testing.TB, opts bank.Options) *stage {
	t.Helper()
	s := &stage{clock: &clock{at: start}, inbox: &inbox{}, t: t, sources: map[string]gateway.Source{}}
	if opts.Odds == nil {
		opts.Odds = bank.Odds{}
	}
	opts.Now = s.now
	if opts.Deliver == nil {
		opts.Deliver = s.take
	}
	b, err := bank.Start(opts)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	s.Bank = b
	// A client that keeps no connection repeats nothing by itself.
	s.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, name := range gateways {
		g, ok := gateway.Lookup(name)
		require.True(t, ok)
		src, err := b.Source(credentials(g.Example("bank")))
		require.NoError(t, err)
		s.sources[name] = src
	}
	return s
}

// pay opens a payment of 50.00 EUR.
func (s *stage) pay(gw, reference string, captured bool) bank.Payment {
	s.t.Helper()
	p, err := s.Open(bank.Opening{Source: s.sources[gw].ID, Reference: reference, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: captured})
	require.NoError(s.t, err)
	return p
}

// ask is one request; what is empty is not sent.
type ask struct {
	method, path, body string
	key                string
	header             map[string]string
	strange            bool // with wrong credentials
}

// got is what was answered.
type got struct {
	status int
	header http.Header
	body   gjson.Result
	text   string
	err    error
}

var keyHeaders = map[string]string{"stripe": "Idempotency-Key", "adyen": "idempotency-key", "paypal": "PayPal-Request-Id", "mercadopago": "X-Idempotency-Key"}

// do makes a request to a gateway's API.
func (s *stage) do(gw string, a ask) got { return s.doIn(s.t.Context(), gw, a) }

func (s *stage) doIn(ctx context.Context, gw string, a ask) got {
	src := s.sources[gw]
	r, err := http.NewRequestWithContext(ctx, a.method, src.APIURL+a.path, strings.NewReader(a.body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	if gw == "stripe" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	token := src.AccessToken
	if a.strange {
		token = "stranger"
	}
	switch {
	case a.path == "/v1/oauth2/token":
		r.SetBasicAuth(src.ClientID, map[bool]string{false: src.ClientSecret, true: "stranger"}[a.strange])
	case gw == "adyen":
		r.Header.Set("X-API-Key", token)
	case gw == "paypal" && !a.strange:
		r.Header.Set("Authorization", "Bearer "+s.token())
	default:
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if a.key != "" {
		r.Header.Set(keyHeaders[gw], a.key)
	}
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return got{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return got{status: answer.StatusCode, header: answer.Header, body: gjson.ParseBytes(text), text: string(text), err: err}
}

// token gets a token of PayPal's API, however often that takes.
func (s *stage) token() string {
	for range 100 {
		got := s.doIn(s.t.Context(), "paypal", ask{method: "POST", path: "/v1/oauth2/token", body: "grant_type=client_credentials"})
		if token := got.body.Get("access_token").String(); got.err == nil && token != "" {
			return token
		}
	}
	s.t.Fatal("no token")
	return ""
}

// refund is the request that gives cents of a payment back.
func (s *stage) refund(gw string, p bank.Payment, cents int64, given, key string) ask {
	amount := order.Format(cents, "EUR")
	switch gw {
	case "stripe":
		return ask{method: "POST", path: "/v1/refunds", key: key, body: url.Values{
			"payment_intent": {p.IDs[0]}, "amount": {fmt.Sprint(cents)}, "metadata[paidonce_transaction]": {given},
		}.Encode()}
	case "adyen":
		return ask{method: "POST", path: "/v71/payments/" + p.IDs[0] + "/refunds", key: key, body: fmt.Sprintf(
			`{"merchantAccount":"ExampleShopECOM","amount":{"value":%d,"currency":"EUR"},"reference":%q}`, cents, given)}
	case "paypal":
		return ask{
			method: "POST", path: "/v2/payments/captures/" + p.IDs[0] + "/refund", key: key,
			header: map[string]string{"Prefer": "return=representation"},
			body:   fmt.Sprintf(`{"amount":{"value":%q,"currency_code":"EUR"},"custom_id":%q}`, amount, given),
		}
	default:
		return ask{
			method: "POST", path: "/v1/payments/" + p.IDs[0] + "/refunds", key: key,
			header: map[string]string{"X-Render-In-Process-Refunds": "true"},
			body:   fmt.Sprintf(`{"amount":%s,"metadata":{"paidonce_transaction":%q}}`, amount, given),
		}
	}
}

// capture is the request that takes cents of an authorization.
func (s *stage) capture(gw string, p bank.Payment, cents int64, given, key string) ask {
	amount := order.Format(cents, "EUR")
	switch gw {
	case "stripe":
		return ask{method: "POST", path: "/v1/payment_intents/" + p.IDs[0] + "/capture", key: key, body: url.Values{
			"amount_to_capture": {fmt.Sprint(cents)}, "metadata[paidonce_transaction]": {given},
		}.Encode()}
	case "adyen":
		return ask{method: "POST", path: "/v71/payments/" + p.IDs[0] + "/captures", key: key, body: fmt.Sprintf(
			`{"merchantAccount":"ExampleShopECOM","amount":{"value":%d,"currency":"EUR"},"reference":%q}`, cents, given)}
	case "paypal":
		return ask{
			method: "POST", path: "/v2/payments/authorizations/" + p.IDs[0] + "/capture", key: key,
			header: map[string]string{"Prefer": "return=representation"},
			body:   fmt.Sprintf(`{"amount":{"value":%q,"currency_code":"EUR"},"invoice_id":%q}`, amount, given),
		}
	default:
		return ask{method: "PUT", path: "/v1/payments/" + p.IDs[0], key: key, body: fmt.Sprintf(`{"capture":true,"transaction_amount":%s}`, amount)}
	}
}

// void is the request that lets go of an authorization.
func (s *stage) void(gw string, p bank.Payment, given, key string) ask {
	switch gw {
	case "stripe":
		return ask{method: "POST", path: "/v1/payment_intents/" + p.IDs[0] + "/cancel", key: key}
	case "adyen":
		return ask{method: "POST", path: "/v71/payments/" + p.IDs[0] + "/cancels", key: key, body: fmt.Sprintf(
			`{"merchantAccount":"ExampleShopECOM","reference":%q}`, given)}
	case "paypal":
		return ask{method: "POST", path: "/v2/payments/authorizations/" + p.IDs[0] + "/void", key: key}
	default:
		return ask{method: "PUT", path: "/v1/payments/" + p.IDs[0], key: key, body: `{"status":"cancelled"}`}
	}
}

// book is what the bank has of a payment.
func (s *stage) book(p bank.Payment) bank.Payment {
	s.t.Helper()
	for _, one := range s.Books().Payments {
		if one.Source == p.Source && one.IDs[0] == p.IDs[0] {
			return one
		}
	}
	s.t.Fatalf("no payment %s", p.IDs[0])
	return bank.Payment{}
}

// asked are the movements that were asked for.
func asked(p bank.Payment) []bank.Movement {
	return slices.DeleteFunc(slices.Clone(p.Movements), func(m bank.Movement) bool { return m.Opening })
}

// each runs a test for every gateway.
func each(t *testing.T, test func(t *testing.T, gw string)) {
	t.Helper()
	for _, gw := range gateways {
		t.Run(gw, func(t *testing.T) {
			t.Parallel()
			test(t, gw)
		})
	}
}

// members are the names of the members of an object, sorted.
func members(v gjson.Result) []string { return slices.Sorted(maps.Keys(v.Map())) }

// call makes a call of package gateway, with its grant.
func (s *stage) call(gw string, c gateway.Call) got {
	a := ask{method: c.Method, path: c.Path, body: string(c.Body), header: map[string]string{}}
	if a.method == "" {
		a.method = http.MethodGet
	}
	for name := range c.Header {
		a.header[name] = c.Header.Get(name)
	}
	if c.Grant != nil {
		a.header["Authorization"] = "Bearer " + s.token()
	}
	return s.do(gw, a)
}
