package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/dev"
)

const (
	stripeSecret = "whsec_cmd_test_5ecret_0123456789"
	adyenKey     = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	callSecret   = "whsec_Y2FsbGJhY2stc2VjcmV0LW9mLTMyLWJ5dGVzLWxvbmc="
)

const offlineConfig = `
listen: 127.0.0.1:18080
accounts:
  shop:
    sources:
      pay: {gateway: stripe, mode: test, secrets: [` + stripeSecret + `]}
      cards: {gateway: adyen, mode: test, hmac_keys: [` + adyenKey + `], basic: "user:pass5ecret"}
`

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := write(t, "paidonce.yaml", offlineConfig)
	a := call(t, words("config check --config %s", good))
	require.Equal(t, answer{code: exitOK, stdout: good + ` is in order: 1 account, 2 sources (cards, pay).
Note: database_url is not set; only dev and the commands that work offline will run.
Note: account shop has no callback: what its orders owe waits until it has one.
Note: account shop has no API keys: nobody can register its orders.
`}, a)
	require.Equal(t, a, call(t, words("config check"), "PAIDONCE_CONFIG", good), "named by the variable")

	a = call(t, words("config check --print -c %s", good))
	require.Equal(t, exitOK, a.code)
	require.Contains(t, a.stdout, "gateway: stripe")
	require.NotContains(t, a.stdout, stripeSecret)

	bad := write(t, "paidonce.yaml", "lissten: :1\n"+strings.ReplaceAll(offlineConfig, "secrets:", "secret:"))
	a = call(t, words("config check -c %s", bad))
	require.Equal(t, exitFailed, a.code)
	require.Empty(t, a.stdout)
	require.Equal(t, "paidonce: the configuration has 3 problems; correct these places:\n"+
		"  "+bad+`:1:1: unknown key "lissten"; did you mean "listen"?`+"\n"+
		"  "+bad+":7:7: accounts.shop.sources.pay: has no secrets; without them nothing can be verified\n"+
		"  "+bad+`:7:42: accounts.shop.sources.pay: unknown key "secret"; did you mean "secrets"?`+"\n", a.stderr)

	a = call(t, words("config check --json -c %s", bad))
	require.Equal(t, exitFailed, a.code)
	require.Empty(t, a.stderr)
	var report struct {
		OK       bool
		Problems []struct{ Where, Path, Text string }
	}
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &report))
	require.False(t, report.OK)
	require.Len(t, report.Problems, 3)
	require.Equal(t, bad+":7:42", report.Problems[2].Where)
}

// What serve refuses is what config check refuses, in the same words.
func TestServeRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	bad := write(t, "paidonce.yaml", strings.ReplaceAll(offlineConfig, stripeSecret, "sk_live_pasted_the_wrong_key"))
	want := call(t, words("config check -c %s", bad))
	require.Equal(t, exitFailed, want.code)
	require.Contains(t, want.stderr, "accounts.shop.sources.pay.secrets[0]")
	require.NotContains(t, want.stderr, "sk_live")
	for _, command := range []string{"serve", "work", "migrate", "send pay x", "orders"} {
		require.Equal(t, want, call(t, words("%s -c %s", command, bad)), command)
	}
}

func TestNothingConfigured(t *testing.T) {
	t.Chdir(t.TempDir())
	a := call(t, words("serve"))
	require.Equal(t, answer{code: exitFailed, stderr: "paidonce: there is no paidonce.yaml here; begin with paidonce config example > paidonce.yaml, or try paidonce dev\n"}, a)
	a = call(t, words("orders"))
	require.Equal(t, answer{code: exitFailed, stderr: "paidonce: database_url: is not set; write it there or in PAIDONCE_DATABASE_URL; there is no paidonce.yaml here, nor what paidonce dev makes\n"}, a)

	// Where dev runs on a configuration that names no database, it keeps the address of its own.
	require.NoError(t, os.Mkdir(".paidonce", 0o700))
	require.NoError(t, os.WriteFile(dev.DatabaseFile, []byte("postgres://127.0.0.1:1/x"), 0o600))
	a = call(t, words("orders"))
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stderr, "for that of paidonce dev: export PAIDONCE_DATABASE_URL=file:$PWD/.paidonce/database_url")
}

func TestConfigExampleAndReference(t *testing.T) {
	t.Parallel()
	require.Equal(t, answer{stdout: config.Example}, call(t, words("config example")))
	a := call(t, words("config reference"))
	require.Contains(t, a.stdout, "limits.max_body  (PAIDONCE_LIMITS_MAX_BODY)\n")
	var settings []config.Setting
	require.NoError(t, json.Unmarshal([]byte(call(t, words("config reference --json")).stdout), &settings))
	require.Equal(t, config.Reference(), settings)
}

func TestGatewaysAndVersion(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(call(t, words("gateways")).stdout), "\n")
	require.Regexp(t, `^GATEWAY +NAME +.*DOCUMENTATION$`, lines[0])
	require.Len(t, lines, 1+len(gateway.All()))
	for i, g := range gateway.All() {
		require.Regexp(t, "^"+regexp.QuoteMeta(g.Title)+" +"+g.Name+" +"+string(g.Evidence)+" .* "+regexp.QuoteMeta(g.Docs)+"$", lines[i+1])
	}
	require.Contains(t, call(t, words("gateways stripe")).stdout, "payment_intent.succeeded")
	require.Contains(t, call(t, words("gateways standard")).stdout, "map.facts")
	require.Contains(t, call(t, words("gateways square")).stdout, "\n    square:\n      gateway: square\n      mode: live\n")
	require.Regexp(t, `^paidonce \S+ .*go1\.`, call(t, words("version")).stdout)
	require.Contains(t, call(t, words("version --json")).stdout, `"version":`)
}

// endpointServer answers like serve: it verifies, and notes the events.
type endpointServer struct {
	*httptest.Server
	mu     sync.Mutex
	events []string // "path id type"
}

func serveEndpoint(t *testing.T) *endpointServer {
	cfg, err := config.Parse("x", []byte(offlineConfig), func(string) string { return "" })
	require.NoError(t, err)
	s := &endpointServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		source, ok := cfg.Sources()[strings.TrimPrefix(r.URL.Path, "/webhooks/")]
		if err != nil || !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		g, _ := gateway.Lookup(source.Gateway)
		d := gateway.Delivery{Method: r.Method, Header: r.Header, Body: body}
		if g.Verify(source, d, now.Add(time.Second)) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		events, err := g.Events(source, d)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range events {
			s.events = append(s.events, r.URL.Path+" "+e.ID+" "+e.Type)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestSend(t *testing.T) {
	t.Parallel()
	s, cfg := serveEndpoint(t), write(t, "paidonce.yaml", offlineConfig)

	a := call(t, words("send pay payment_intent.succeeded -c %s --to %s --id evt_1 --order ord_1 --amount 50.00", cfg, s.URL))
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "payment_intent.succeeded to "+s.URL+"/webhooks/pay: 200\n")
	require.Contains(t, a.stdout, " explain evt_1\n")
	a = call(t, words("send cards AUTHORISATION -c %s --to %s --order ord_1 --json", cfg, s.URL))
	require.Equal(t, exitOK, a.code, a.stderr)
	var sent struct {
		Status int
		Body   string
	}
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &sent))
	require.Equal(t, 200, sent.Status)
	require.Contains(t, sent.Body, `"ord_1"`)
	require.Len(t, s.events, 2)
	require.Equal(t, "/webhooks/pay evt_1 payment_intent.succeeded", s.events[0])

	a = call(t, words("send pay payment_intent.succeeded -c %s --to %s/elsewhere", cfg, s.URL))
	require.Equal(t, exitFailed, a.code, "an answer that is no 2xx")
	require.Contains(t, a.stdout, ": 404")

	for _, tt := range []struct{ args, want string }{
		{"send nobody x", `paidonce: there is no source "nobody"; the configuration has cards, pay` + "\n"},
		{"send paypal x", `the configuration has cards, pay (PayPal is a gateway: configure a source of it, see paidonce gateways paypal)`},
		{"send pay payment_intent.paid", "payment_intent.paid"},
		{"send pay payment_intent.succeeded --amount 12,50", "paidonce: --amount 12,50: want minor units such as 5000, or a decimal number such as 50.00"},
		{"send pay payment_intent.succeeded --amount 12.505", "paidonce: --amount 12.505: "},
		{"send pay payment_intent.succeeded --to shop.example", "paidonce: --to shop.example: want a URL such as http://127.0.0.1:8080"},
	} {
		a := call(t, words("%s -c %s", tt.args, cfg))
		require.Equal(t, exitUsage, a.code, tt.args)
		require.Contains(t, a.stderr, tt.want)
	}

	a = call(t, words("send pay payment_intent.succeeded -c %s --to http://127.0.0.1:1", cfg))
	require.Equal(t, exitFailed, a.code)
	require.Regexp(t, `^paidonce: http://127.0.0.1:1/webhooks/pay cannot be reached: .*; is paidonce dev or serve running\?\n$`, a.stderr)
}

// TestSendToAnybody: every gateway's events go signed to any receiver, without a
// configuration.
func TestSendToAnybody(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got gateway.Delivery
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && r.URL.Path == "/hooks/own" {
			got = gateway.Delivery{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body}
		}
	}))
	t.Cleanup(s.Close)
	for _, g := range gateway.All() {
		source := g.Example("send")
		if g.Scheme == "" {
			a := call(t, words("send %s x --secret y --to %s", g.Name, s.URL))
			require.Equal(t, exitUsage, a.code)
			require.Contains(t, a.stderr, "signs nothing")
			continue
		}
		secret := append(source.SigningKeys, g.LiveSecrets(source)...)[0]
		typ := g.Types(source)[0].Name
		a := call(t, []string{"send", g.Name, typ, "--secret", "$KEY", "--to", s.URL + "/hooks/own", "--order", "ord7", "--amount", "12.34"}, "KEY", secret)
		require.Equal(t, exitOK, a.code, "%s: %s", g.Name, a.stderr)
		require.NotContains(t, a.stdout, secret)
		if g.Remote != nil {
			continue // whose public key is found on the network
		}
		source.PublicURL = s.URL + "/hooks/own"
		mu.Lock()
		err := g.Verify(source, got, now)
		mu.Unlock()
		require.NoError(t, err, g.Name)
	}
	a := call(t, []string{"send", "stripe", "payment_intent.succeeded", "--secret", "whsec_x"})
	require.Equal(t, exitUsage, a.code)
	require.Contains(t, a.stderr, "say with --to where to send it")
	a = call(t, []string{"send", "stripe", "payment_intent.succeeded", "--secret", "whsec_x", "--print"})
	require.Equal(t, exitOK, a.code)
	require.Contains(t, a.stdout, "curl -sS -X POST https://shop.example/webhooks/stripe")
}

// TestSendToAnAskedGateway: what a delivery only names has to exist at the gateway.
func TestSendToAnAskedGateway(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	cfg := write(t, "paidonce.yaml", "accounts:\n  shop:\n    sources:\n      mollie: {gateway: mollie-classic, mode: test, access_token: test_0123456789}\n")
	a := call(t, words("send mollie payment.paid --order ord_1 -c %s --to %s", cfg, s.URL))
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "Mollie (classic webhooks) is asked about it at https://api.mollie.com.\nThat id is made up")
	require.Contains(t, a.stdout, "--payment ID")
	a = call(t, words("send mollie payment.paid --payment tr_7UhSN1zuXS -c %s --to %s", cfg, s.URL))
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "It only names payment/tr_7UhSN1zuXS")
	require.NotContains(t, a.stdout, "made up")
}

// TestSendWithoutAKey: nobody has the keys of gateways whose public ones are found on
// the network.
func TestSendWithoutAKey(t *testing.T) {
	t.Parallel()
	cfg := write(t, "paidonce.yaml", "accounts:\n  shop:\n    sources:\n      pp: {gateway: paypal, mode: live, webhook_id: 4JH86294D6297924G}\n")
	a := call(t, words("send pp PAYMENT.CAPTURE.COMPLETED -c %s", cfg))
	require.Equal(t, answer{code: exitFailed, stderr: "paidonce: source pp: no key to sign with: PayPal signs with keys of its own, which are found on the network; try the source in its sandbox\n"}, a)
}

// What --print prints is a command that a shell takes as it is meant.
func TestSendPrint(t *testing.T) {
	t.Parallel()
	cfg := write(t, "paidonce.yaml", offlineConfig)
	a := call(t, []string{
		"send", "pay", "payment_intent.succeeded", "-c", cfg, "--print", "--id", "evt_1", "--order", "it's 1",
		"--set", "data.object.description=a 'quoted' text",
	})
	require.Equal(t, exitOK, a.code)
	golden(t, "send_print.golden", a.stdout)
	require.NotContains(t, a.stdout, stripeSecret)
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, currency string
		want           int64
	}{
		{"5000", "EUR", 5000}, {"50.00", "EUR", 5000}, {"0", "EUR", 0}, {"5000", "JPY", 5000}, {"5000.0", "JPY", 5000}, {"1.234", "KWD", 1234},
	} {
		n, err := amount(tt.text, tt.currency)
		require.NoError(t, err)
		require.Equal(t, tt.want, n, tt.text)
	}
	for _, text := range []string{"", "-5", "1.234", "1e3", "5 000", "50,00", "99999999999999999999"} {
		_, err := amount(text, "EUR")
		require.Error(t, err, text)
	}
}

// sample writes the payload of one event into a file.
func sample(t *testing.T, file string, req gateway.SampleRequest) {
	t.Helper()
	g, ok := gateway.Lookup(req.Source.Gateway)
	require.True(t, ok)
	body, err := g.Sample(req)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.Write(append(body, '\n'))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestReplay(t *testing.T) {
	t.Parallel()
	s, cfg, dir := serveEndpoint(t), write(t, "paidonce.yaml", offlineConfig), t.TempDir()
	stripe := gateway.Source{Gateway: "stripe", Mode: "test"}
	for _, id := range []string{"evt_1", "evt_2"} { // two lines in one file
		sample(t, filepath.Join(dir, "pay", "1.jsonl"), gateway.SampleRequest{Source: stripe, Type: "payment_intent.succeeded", ID: id, Reference: "ord_1"})
	}
	sample(t, filepath.Join(dir, "adyen", "1.json"), gateway.SampleRequest{Source: gateway.Source{Gateway: "adyen", Mode: "test"}, Type: "AUTHORISATION", Payment: "PSP1"})

	a := call(t, words("replay %s -c %s --to %s", dir, cfg, s.URL))
	require.Equal(t, answer{stdout: "3 payloads sent, 0 not accepted.\n"}, a)
	require.Len(t, s.events, 3)
	require.True(t, strings.HasPrefix(s.events[0], "/webhooks/cards PSP1:"), "folder adyen is the only source of that gateway")
	require.Equal(t, []string{"/webhooks/pay evt_1 payment_intent.succeeded", "/webhooks/pay evt_2 payment_intent.succeeded"}, s.events[1:])

	a = call(t, words("replay %s -c %s --dry-run", dir, cfg))
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "captured 50.00 EUR for ord_1")
	require.Contains(t, a.stdout, "3 payloads, 3 events, 0 refused. Nothing was sent.")
	require.Len(t, s.events, 3)

	// One that is refused does not hold up the others, and is told.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pay", "0.json"), []byte(`{"no": "event"}`), 0o600))
	a = call(t, words("replay %s -c %s --to %s --json", dir, cfg, s.URL))
	require.Equal(t, exitFailed, a.code)
	require.JSONEq(t, `{"deliveries": 4, "statuses": {"200": 3, "400": 1}, "failed": [{"file": "`+filepath.Join(dir, "pay", "0.json")+`", "status": 400}]}`, a.stdout)
	a = call(t, words("replay %s -c %s --dry-run", dir, cfg))
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stdout, "1 refused")

	// Nothing is sent while it is not clear where to.
	sample(t, filepath.Join(dir, "unclear", "1.json"), gateway.SampleRequest{Source: stripe, Type: "payment_intent.succeeded"})
	before := len(s.events)
	a = call(t, words("replay %s -c %s --to %s", dir, cfg, s.URL))
	require.Equal(t, exitUsage, a.code)
	require.Contains(t, a.stderr, `say with --source which source it is for; its folder "unclear" fits none`)
	require.Len(t, s.events, before)
	a = call(t, words("replay %s -c %s --to %s --source pay", filepath.Join(dir, "unclear"), cfg, s.URL))
	require.Equal(t, exitOK, a.code, a.stderr)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	code := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"status":"as it is"}`)
	}))
	defer s.Close()
	require.Equal(t, answer{stdout: "{\"status\":\"as it is\"}\n"}, call(t, words("health %s", s.URL)))
	a := call(t, words("health"), "PAIDONCE_ADMIN_LISTEN", strings.TrimPrefix(s.URL, "http://"))
	require.Equal(t, exitOK, a.code)
	code = http.StatusServiceUnavailable
	require.Equal(t, exitFailed, call(t, words("health %s", s.URL)).code)
	require.Equal(t, exitFailed, call(t, words("health http://127.0.0.1:1/")).code)
}
