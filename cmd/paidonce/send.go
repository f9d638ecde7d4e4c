package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/order"
)

type sendCmd struct {
	Source string `arg:"" help:"The source to send to: an id of the configuration; with --secret also the name of a gateway."`
	Type   string `arg:"" help:"The type of event; paidonce gateways NAME lists them."`

	Order    string            `placeholder:"REF" help:"The order that the payment is for: its external_ref."`
	Amount   string            `placeholder:"N" help:"The amount in minor units (5000), or with a decimal point (50.00). Default: 5000."`
	Currency string            `placeholder:"CUR" default:"EUR" help:"Its currency (default: ${default})."`
	Payment  string            `placeholder:"ID" help:"The gateway's id of the payment. Default: one that belongs to the order."`
	Ref      string            `placeholder:"ID" help:"The gateway's id of the refund, capture or dispute. Default: one that belongs to the payment."`
	ID       string            `placeholder:"ID" help:"The id of the event; the same one again is a duplicate. Default: a new one."`
	Mode     string            `enum:",live,test" default:"" placeholder:"MODE" help:"live or test. Default: the source's."`
	At       time.Time         `placeholder:"TIME" help:"When it happened (RFC 3339). Default: now."`
	Set      map[string]string `placeholder:"PATH=VALUE" mapsep:"none" help:"Overwrite a value of the payload before it is signed. Repeatable."`
	Body     string            `type:"existingfile" placeholder:"FILE" help:"Send this payload instead of a generated one."`
	To       string            `placeholder:"URL" help:"Where to send it, also to a receiver of your own (default: the serve of the configuration on this machine)."`
	Secret   string            `placeholder:"SECRET" help:"Sign with this secret, or private key; $$NAME is read from the environment, file:PATH from a file. Needs no configuration: SOURCE is then a gateway, and --to says where to."`
	URL      string            `name:"public-url" placeholder:"URL" help:"The URL that is signed, where one is (square). Default: --to."`
	Print    bool              `help:"Print it as a curl command and send nothing."`
	JSON     bool              `help:"Print JSON: what was sent and what was answered."`
}

// Help is the text below the flags.
func (sendCmd) Help() string {
	return `The event is made here, with the secret of the source: no gateway is asked. Events about one order are about one payment of it, unless --payment says otherwise.

Examples:

    paidonce send stripe payment_intent.succeeded --order ord_1 --amount 50.00 --currency EUR
    paidonce send adyen REFUND --order ord_1 --amount 1000 --set reason=damaged
    paidonce send stripe charge.refunded --order ord_1 --print
    paidonce send square payment.updated --secret '$SQUARE_KEY' --to https://shop.example/hooks/square`
}

// Run runs the command.
func (c sendCmd) Run(ctx context.Context, e *env) error {
	source, g, to, err := c.target(e)
	if err != nil {
		return err
	}
	now := e.now()
	body, err := c.body(source, g, now)
	if err != nil {
		return err
	}
	d, err := g.Deliver(source, body, c.ID, now)
	if err != nil {
		return err
	}
	header, body := d.Header, d.Body
	to = withQuery(to, d.Query)
	if c.Print {
		fmt.Fprintln(e.stdout, curl(to, header, body))
		return nil
	}
	status, answer, err := post(ctx, to, header, body)
	if err != nil {
		return err
	}
	if c.JSON {
		err = e.printJSON(map[string]any{
			"url": to, "header": header, "body": string(body), "status": status, "answer": answer,
		})
	} else {
		c.tell(e, g, source, d, to, status, answer)
	}
	if err == nil && status/100 != 2 {
		return errFailed
	}
	return err
}

// target is the source to send to, and where that is.
func (c sendCmd) target(e *env) (gateway.Source, *gateway.Gateway, string, error) {
	var source gateway.Source
	if c.Secret == "" {
		cfg, err := e.loadAccounts()
		if err != nil {
			return source, nil, "", err
		}
		source, g, err := sourceOf(cfg, c.Source)
		if err != nil {
			return source, nil, "", err
		}
		to, err := endpoint(c.To, cfg, source.ID)
		return source, g, to, err
	}
	g, ok := gateway.Lookup(c.Source)
	switch {
	case !ok:
		return source, nil, "", usage("there is no gateway %q; paidonce gateways lists them", c.Source)
	case g.Scheme == "":
		return source, nil, "", usage("%s signs nothing, so there is nothing to do with --secret", g.Title)
	case c.To == "" && !c.Print:
		return source, nil, "", usage("with --secret say with --to where to send it")
	}
	secret, err := e.secret(c.Secret)
	if err != nil {
		return source, nil, "", err
	}
	source = g.Example(secret)
	source.ID = g.Name
	switch {
	case len(source.SigningKeys) > 0:
		source.SigningKeys = []string{secret}
	case len(source.HMACKeys) > 0:
		source.HMACKeys = []string{secret}
	default:
		source.Secrets = []string{secret}
	}
	to, err := endpoint(cond(c.To != "", c.To, "https://shop.example"), nil, g.Name)
	source.PublicURL = cond(c.URL != "", c.URL, to)
	return source, g, to, err
}

// tell says what was sent, what came back, and what to do next.
func (c sendCmd) tell(e *env, g *gateway.Gateway, source gateway.Source, d gateway.Delivery, to string, status int, answer string) {
	fmt.Fprintf(e.stdout, "%s to %s: %d", c.Type, to, status)
	if answer != "" {
		fmt.Fprintf(e.stdout, " %s", answer)
	}
	fmt.Fprintln(e.stdout)
	if status/100 != 2 || c.Secret != "" {
		return
	}
	// What was sent is read as the server reads it, to name the event.
	events, err := g.Events(source, d)
	if err != nil {
		return // quarantined: there is no more to say about it
	}
	for _, event := range events {
		fmt.Fprintf(e.stdout, "See: %s explain %s\n", selfCommand(e.getenv), shellWord(event.ID))
	}
	objects, err := g.Objects(source, d)
	if err != nil {
		return
	}
	for _, o := range objects {
		fmt.Fprintf(e.stdout, "It only names %s: %s is asked about it at %s.\n", o, g.Title, g.Fetch.BaseURL(source))
		if c.Payment == "" && c.Body == "" {
			fmt.Fprintln(e.stdout, "That id is made up, and the gateway does not know it: name a payment of its test mode with --payment ID.")
		}
	}
}

// body makes the payload.
func (c sendCmd) body(source gateway.Source, g *gateway.Gateway, now time.Time) ([]byte, error) {
	if c.Body != "" {
		return readFile(c.Body)
	}
	req := gateway.SampleRequest{
		Source: source, Type: c.Type, ID: c.ID, Reference: c.Order, Payment: c.Payment, Ref: c.Ref,
		Amount: order.Amount{Minor: 5000, Currency: strings.ToUpper(c.Currency)}, Mode: c.Mode, At: c.At, Set: c.Set,
	}
	if req.At.IsZero() {
		req.At = now.Truncate(time.Second)
	}
	if c.Amount != "" {
		minor, err := amount(c.Amount, req.Amount.Currency)
		if err != nil {
			return nil, err
		}
		req.Amount.Minor = minor
	}
	body, err := g.Sample(req)
	if err != nil {
		return nil, usage("%w", err)
	}
	return body, nil
}

// amount reads minor units, or a decimal number if it has a point: 5000 and
// 50.00 are the same EUR.
func amount(text, currency string) (int64, error) {
	if strings.Contains(text, ".") {
		minor, err := order.ParseDecimal(text, currency)
		if err != nil {
			return 0, usage("--amount %s: %w", text, err)
		}
		return minor, nil
	}
	minor, err := strconv.ParseInt(text, 10, 64)
	if err != nil || minor < 0 {
		return 0, usage("--amount %s: want minor units such as 5000, or a decimal number such as 50.00", text)
	}
	return minor, nil
}

// sourceOf finds a source of the configuration with its gateway.
func sourceOf(cfg *config.Config, id string) (gateway.Source, *gateway.Gateway, error) {
	sources := cfg.Sources()
	source, ok := sources[id]
	if !ok {
		hint := ""
		if g, known := gateway.Lookup(id); known {
			hint = fmt.Sprintf(" (%s is a gateway: configure a source of it, see paidonce gateways %s)", g.Title, id)
		}
		return source, nil, usage("there is no source %q; the configuration has %s%s", id, orNone(slices.Sorted(maps.Keys(sources))), hint)
	}
	g, ok := gateway.Lookup(source.Gateway)
	if !ok {
		return source, nil, fmt.Errorf("source %s: there is no gateway %q", id, source.Gateway)
	}
	return source, g, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// endpoint is the URL of a source: to as it stands if it has a path, else with
// the path of the source, else that of the serve of the configuration.
func endpoint(to string, cfg *config.Config, source string) (string, error) {
	if to == "" && cfg != nil {
		to = app.URL(cfg.Listen)
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", usage("--to %s: want a URL such as http://127.0.0.1:8080", to)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/webhooks/" + source
	}
	return u.String(), nil
}

// withQuery adds what a gateway signs of a query to a URL.
func withQuery(to, query string) string {
	switch {
	case query == "":
		return to
	case strings.Contains(to, "?"):
		return to + "&" + query
	default:
		return to + "?" + query
	}
}

// client sends to our own program: it follows nothing and waits for as long as
// any gateway would.
var client = &http.Client{
	Timeout:       30 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func post(ctx context.Context, to string, header http.Header, body []byte) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, "", fmt.Errorf("%s cannot be reached: %w; is paidonce dev or serve running?", to, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, "", fmt.Errorf("read the answer of %s: %w", to, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text)), nil
}

// curl writes a request as a command.
func curl(to string, header http.Header, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -sS -X POST %s", shellWord(to))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			fmt.Fprintf(&b, " \\\n  -H %s", shellWord(name+": "+value))
		}
	}
	fmt.Fprintf(&b, " \\\n  --data-binary %s", shellWord(string(body)))
	return b.String()
}

// shellWord quotes a text so that a POSIX shell takes it as one word.
func shellWord(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,", r)
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
