package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/store"
)

// now is the receiver's clock in tests: nothing here depends on the real one.
var now = time.Unix(1_790_000_000, 0)

const (
	secret = "whsec_TESTONLY_cmVjZWl2ZXItdGVzdC1zZWNyZXQ"
	basic  = "hook:TESTONLY-basic-password"
)

// mall and strict are gateways of the tests: signed as Stripe signs, with payloads {"id", "type"} or a list of them.
// mall wants its own answer and queues behind a refused delivery, strict does neither, patient waits for
// longer than we do.
var (
	mall = &gateway.Gateway{
		Name: "mall", Scheme: "stripe", Deadline: 10 * time.Second, AckBody: "[taken]", AckType: "text/x-mall",
		QuarantineUnreadable: true, KeepHeaders: []string{"Content-Type", "User-Agent"},
		Secrets: secretsOf, Parse: parse,
	}
	patient = &gateway.Gateway{Name: "patient", Scheme: "stripe", Deadline: 10 * time.Minute, Secrets: secretsOf, Parse: parse}
	strict  = &gateway.Gateway{Name: "strict", Scheme: "stripe", Deadline: 10 * time.Second, Secrets: secretsOf, Parse: parse}
)

func secretsOf(s gateway.Source) []string { return s.Secrets }

func parse(_ gateway.Source, d gateway.Delivery) ([]order.Event, error) {
	type event struct{ ID, Type string }
	var list []event
	if bytes.HasPrefix(d.Body, []byte("[")) {
		if err := json.Unmarshal(d.Body, &list); err != nil {
			return nil, &gateway.ParseError{Code: "not_json", Detail: "the body is not JSON"}
		}
	} else {
		var one event
		if err := json.Unmarshal(d.Body, &one); err != nil {
			return nil, &gateway.ParseError{Code: "not_json", Detail: "the body is not JSON"}
		}
		list = append(list, one)
	}
	var out []order.Event
	for _, e := range list {
		switch e.Type {
		case "panic":
			panic("never print " + string(d.Body))
		case "index":
			_ = list[len(list)+len(d.Body)]
		}
		out = append(out, order.Event{ID: e.ID, Type: e.Type, Ignored: "unknown_type"})
	}
	return out, nil
}

func gateways(name string) (*gateway.Gateway, bool) {
	for _, g := range append([]*gateway.Gateway{mall, strict, patient, pinger, thin, remote}, gateway.All()...) {
		if g.Name == name {
			return g, true
		}
	}
	return nil, false
}

// sources are those of every test.
func sources(id string) (gateway.Source, bool) {
	s, ok := map[string]gateway.Source{
		"strict":  {Gateway: "strict"},
		"mall":    {Gateway: "mall"},
		"patient": {Gateway: "patient"},
		"basic":   {Gateway: "strict", Basic: basic},
		"small":   {Gateway: "strict", MaxBody: 64},
		"paused":  {Gateway: "strict", Paused: true, OnUnknownOrder: "create"},
		"nowhere": {Gateway: "nowhere"},
		"pinger":  {Gateway: "pinger"},
		"known":   {Gateway: "pinger", Basic: basic},
		"thin":    {Gateway: "thin"},
		"remote":  {Gateway: "remote"},
	}[id]
	s.ID, s.Account, s.Mode, s.Secrets = id, "acme", "live", []string{secret}
	return s, ok
}

// ledger is the Ingester of the tests: it remembers what was committed, and can be told to do otherwise.
type ledger struct {
	do func(context.Context, []store.Event) ([]store.Result, error)

	mu     sync.Mutex
	events []store.Event
}

func (l *ledger) Ingest(ctx context.Context, events []store.Event) ([]store.Result, error) {
	if l.do != nil {
		return l.do(ctx, events)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
	return applied(events), nil
}

func (l *ledger) committed() []store.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

func applied(events []store.Event) []store.Result {
	out := make([]store.Result, len(events))
	for i := range out {
		out[i] = store.Result{Outcome: store.Applied, Order: uuid.New(), After: 2}
	}
	return out
}

// logbook keeps every line that is logged, at every level.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lines are the records, oldest first.
func (b *logbook) lines(t *testing.T) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		out = append(out, m)
	}
	return out
}

func (b *logbook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type bench struct {
	*receiver.Receiver
	ledger *ledger
	board  board
	log    *logbook
}

func setup(t testing.TB, opts receiver.Options) *bench {
	t.Helper()
	b := &bench{ledger: &ledger{}, log: &logbook{}}
	if opts.Now == nil {
		opts.Now = func() time.Time { return now }
	}
	if opts.Logger == nil {
		opts.Logger = b.log.logger()
	}
	opts.Gateways = gateways
	if opts.Announcer == nil {
		opts.Announcer = &b.board
	}
	rc, err := receiver.New(sources, b.ledger, opts)
	require.NoError(t, err)
	b.Receiver = rc
	return b
}

// sign returns the signature of body, as Stripe makes it at the tests' time.
func sign(t testing.TB, body []byte) string {
	t.Helper()
	scheme, ok := signature.Lookup("stripe")
	require.True(t, ok)
	signed, err := scheme.Sign(body, secret, now, signature.SignOptions{})
	require.NoError(t, err)
	return signed.Header.Get("Stripe-Signature")
}

// request is a signed delivery.
func request(t testing.TB, path, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Stripe-Signature", sign(t, []byte(body)))
	return r
}

func (b *bench) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

const paid = `{"id":"evt_1","type":"paid"}`

// pipes is a listener without a network, for tests whose time is not real.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	select {
	case p.conns <- server:
	case <-p.done:
		require.Fail(t, "the listener is closed")
	}
	return client
}

// serve runs a server of h until the test ends, and returns its address.
func serve(t *testing.T, h http.Handler, opts receiver.ServerOptions) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- receiver.Serve(ctx, receiver.NewServer(h, opts), ln, time.Minute) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return ln.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

func (unread) Close() error { return nil }

var _ io.ReadCloser = unread{}
