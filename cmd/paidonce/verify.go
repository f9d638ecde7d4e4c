package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/capture"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

type verifyCmd struct {
	Request string `arg:"" optional:"" placeholder:"FILE" help:"The request as it was written down: a raw HTTP dump, curl -v, a curl command or a HAR file; - is stdin."`

	Source  string    `placeholder:"ID" help:"Take gateway, secrets and URL from this source of the configuration, and try the secrets of its others too."`
	Gateway string    `placeholder:"NAME" help:"The gateway (paidonce gateways lists them), or the name of a scheme that others use too: svix, lithic, wise."`
	Secret  []string  `sep:"none" placeholder:"SECRET" help:"A secret to verify with; $$NAME is read from the environment, file:PATH from a file. Repeatable."`
	Other   []string  `sep:"none" placeholder:"LABEL=SECRET" help:"A secret that may have signed it by mistake (the one before, that of test mode). Repeatable."`
	Mode    string    `enum:",live,test" default:"" placeholder:"MODE" help:"The mode of the secrets, live or test."`
	Header  []string  `short:"H" sep:"none" placeholder:"NAME:VALUE" help:"A header, instead of or beside those of the request. Repeatable."`
	Headers string    `placeholder:"FILE" help:"Headers, one NAME: VALUE a line."`
	Body    string    `placeholder:"FILE" help:"The body, byte for byte; - is stdin."`
	URL     string    `name:"url" placeholder:"URL" help:"The endpoint's URL as it is configured at the gateway, where that is signed; its query, where that is. Default: public_url of the source, else the URL of a curl command or HAR file."`
	At      time.Time `placeholder:"TIME" help:"Check it as of that time (RFC 3339). Default: now."`
	JSON    bool      `help:"Print JSON."`
}

// Help is the text below the flags.
func (verifyCmd) Help() string {
	return `If it does not verify, the usual causes are undone one by one until it does: line ends, JSON that was parsed and written again, character sets, compression, secrets with quotes, of the other mode or decoded, headers that were wrapped, doubled or renamed, URLs, the clock. Nothing is sent, and no secret is printed. Exit code 0: it verifies; 1: it does not.

Examples:

    paidonce verify request.txt --gateway stripe --secret '$STRIPE_SECRET'
    paidonce verify request.har --source stripe
    paidonce verify --gateway square --secret file:key.txt --url https://shop.example/webhooks/square --headers headers.txt --body body.json`
}

// Run runs the command.
func (c verifyCmd) Run(e *env) error {
	in, source, err := c.input(e)
	if err != nil {
		return err
	}
	if len(in.Secrets) == 0 && len(in.Others) == 0 {
		if in.Scheme.Name == "paypal" {
			return usage("verify needs the webhook id and the certificate that Paypal-Cert-Url names: --secret WEBHOOK_ID:PEM (the receiver fetches it; this command asks nobody)")
		}
		return usage("verify needs a secret: --secret or --source")
	}
	f := diagnose.Diagnose(in)
	if c.JSON {
		if err := e.printJSON(f); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(e.stdout, f.Sentence)
		if f.Cause == diagnose.ClockSkew && c.At.IsZero() {
			fmt.Fprintln(e.stdout, "(To check a request of the past as of its time: --at TIME.)")
		}
		if c.guessedURL(in, source, f) {
			fmt.Fprintf(e.stdout, "(The URL is signed too. It was taken to be %s, where the request was sent: if another stands at the gateway, give that with --url.)\n", in.Request.URL)
		}
	}
	if !f.Verified {
		return errFailed
	}
	return nil
}

// guessedURL reports whether a URL is signed that nobody but the request named, so that it may be to blame.
func (c verifyCmd) guessedURL(in diagnose.Input, source gateway.Source, f diagnose.Finding) bool {
	if f.Proved || f.Reason == signature.Missing || c.URL != "" || source.PublicURL != "" || in.Request.URL == "" {
		return false
	}
	bare := in.Request
	bare.URL = ""
	return signature.ReasonOf(in.Scheme.Verify(bare, in.Secrets, in.Now)) == signature.Missing
}

// input gathers what is known about the delivery.
func (c verifyCmd) input(e *env) (in diagnose.Input, source gateway.Source, err error) {
	r, err := c.request(e)
	if err != nil {
		return in, source, err
	}
	scheme := c.Gateway
	if c.Source != "" {
		cfg, err := e.loadAccounts()
		if err != nil {
			return in, source, err
		}
		var g *gateway.Gateway
		if source, g, err = sourceOf(cfg, c.Source); err != nil {
			return in, source, err
		}
		if scheme != "" && scheme != g.Name {
			return in, source, usage("the source %s is one of gateway %s, not %s", source.ID, g.Name, scheme)
		}
		scheme, in.Secrets, in.Mode, in.Others = g.Name, g.LiveSecrets(source), source.Mode, othersOf(cfg, g, source)
	}
	if in.Scheme, err = schemeOf(scheme); err != nil {
		return in, source, err
	}
	if err := c.secrets(e, &in); err != nil {
		return in, source, err
	}
	in.Now = c.At
	if in.Now.IsZero() {
		in.Now = e.now()
	}
	in.Sender = source.CheckSender(r.Header)
	in.Request = signature.Request{
		Method: r.Method, URL: source.PublicURL, Path: r.Path(), Query: r.Query(), Header: r.Header, Body: r.Body, Tolerance: source.Tolerance,
	}
	in.Path = r.Path()
	if in.Request.URL == "" && strings.Contains(r.URL, "://") {
		in.Request.URL = r.URL // as it arrived, where nobody says what stands at the gateway
	}
	if c.URL != "" {
		in.Request.URL, in.Request.Path = c.URL, (capture.Request{URL: c.URL}).Path()
		if q := (capture.Request{URL: c.URL}).Query(); q != "" {
			in.Request.Query = q
		}
	}
	if g, ok := gateway.Lookup(scheme); ok {
		in.Templates = templates(g, source)
	}
	return in, source, nil
}

// alsoCalled are other names of schemes.
var alsoCalled = map[string]string{"svix": "standard", "lithic": "standard", "standardwebhooks": "standard"}

// schemeOf finds the scheme of a gateway, or one by its own name.
func schemeOf(name string) (*signature.Scheme, error) {
	if name == "" {
		return nil, usage("verify needs --gateway or --source")
	}
	if other, ok := alsoCalled[name]; ok {
		name = other
	}
	if g, ok := gateway.Lookup(name); ok {
		if g.Scheme == "" {
			return nil, usage("%s signs nothing, so there is nothing to verify: its API is asked about every delivery (paidonce gateways %s)", g.Title, g.Name)
		}
		name = g.Scheme
	}
	scheme, ok := signature.Lookup(name)
	if !ok {
		return nil, usage("there is no gateway %q; paidonce gateways lists them", name)
	}
	return scheme, nil
}

// secrets adds those of the command line.
func (c verifyCmd) secrets(e *env, in *diagnose.Input) error {
	for _, text := range c.Secret {
		secret, err := e.secret(text)
		if err != nil {
			return err
		}
		in.Secrets = append(in.Secrets, secret)
	}
	for i, text := range c.Other {
		// A secret without a label may end with the padding of base64.
		label, text, ok := strings.Cut(text, "=")
		if strings.Trim(text, "=") == "" || !ok {
			label, text = "the "+ordinal(i)+" --other", c.Other[i]
		}
		secret, err := e.secret(text)
		if err != nil {
			return err
		}
		in.Others = append(in.Others, diagnose.Labelled{Label: label, Secret: secret, Mode: modeIn(label)})
	}
	if c.Mode != "" {
		in.Mode = c.Mode
	}
	return nil
}

// ordinal is "first" for 0.
func ordinal(i int) string {
	if names := []string{"first", "second", "third", "fourth", "fifth"}; i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%dth", i+1)
}

// modeIn reads the mode off a label that a person chose.
func modeIn(label string) string {
	for _, mode := range []string{gateway.Live, gateway.Test} {
		if strings.Contains(strings.ToLower(label), mode) {
			return mode
		}
	}
	return ""
}

// request puts the delivery together from what was given.
func (c verifyCmd) request(e *env) (capture.Request, error) {
	r := capture.Request{Method: http.MethodPost, Header: http.Header{}}
	if c.Request == "" && c.Body == "" {
		return r, usage("verify needs a request: a FILE that holds it, or --body with --headers or -H")
	}
	if c.Request == "-" && c.Body == "-" {
		return r, usage("request and body cannot both come from stdin")
	}
	if c.Request != "" {
		text, err := e.readAll(c.Request)
		if err != nil {
			return r, err
		}
		if r, err = capture.Parse(text); err != nil {
			return r, usage("%s: %w", c.Request, err)
		}
	}
	if c.Headers != "" {
		text, err := e.readAll(c.Headers)
		if err != nil {
			return r, err
		}
		h, err := capture.ParseHeaders(text)
		if err != nil {
			return r, usage("%s: %w", c.Headers, err)
		}
		maps.Copy(r.Header, h)
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return r, usage("-H %s: want NAME:VALUE", name)
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if c.Body != "" {
		body, err := e.readAll(c.Body)
		if err != nil {
			return r, err
		}
		r.Body, r.HasBody = body, true
	}
	if !r.HasBody {
		return r, usage("%s holds no body (curl -v prints none): give it with --body FILE", c.Request)
	}
	return r, nil
}

// readAll reads a file, or stdin for "-".
func (e *env) readAll(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.stdin)
	}
	return readFile(name)
}

// secret reads a secret of the command line: $NAME or ${NAME} from the
// environment, file:PATH from a file, all else as it stands.
func (e *env) secret(text string) (string, error) {
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", usage("--secret: %w", err)
		}
		return strings.TrimRight(string(b), "\r\n"), nil // as the configuration reads one
	}
	if name, ok := strings.CutPrefix(text, "$"); ok {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
		value := e.getenv(name)
		if value == "" {
			return "", usage("--secret: the environment variable %s is not set, or empty", name)
		}
		return value, nil
	}
	if text == "" {
		return "", usage("--secret is empty")
	}
	return text, nil
}

// othersOf are the secrets of the configuration's other sources of that gateway.
func othersOf(cfg *config.Config, g *gateway.Gateway, source gateway.Source) []diagnose.Labelled {
	var all []diagnose.Labelled
	sources := cfg.Sources()
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		if s := sources[id]; id != source.ID && s.Gateway == g.Name {
			for _, secret := range g.LiveSecrets(s) {
				all = append(all, diagnose.Labelled{Label: "source " + id, Secret: secret, Mode: s.Mode})
			}
		}
	}
	return all
}

// templates are payloads of a gateway in its own key order.
func templates(g *gateway.Gateway, source gateway.Source) [][]byte {
	if g.Example != nil && source.ID == "" {
		source = g.Example("template")
	}
	var all [][]byte
	for _, t := range g.Types(source) {
		if body, err := g.Sample(gateway.SampleRequest{Source: source, Type: t.Name, Reference: "ord_1"}); err == nil {
			all = append(all, body)
		}
	}
	return all
}
