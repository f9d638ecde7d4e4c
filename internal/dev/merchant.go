package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/signature"
)

// merchant is the shop that dev runs: it checks who calls and prints what it is
// told to do.
type merchant struct {
	secret string
	scheme *signature.Scheme
	out    io.Writer
	now    func() time.Time
	stop   context.CancelFunc
	done   chan struct{}
}

// startMerchant listens where the callback of the account dev leads, if that is
// an address of this machine.
func startMerchant(ctx context.Context, cfg *config.Config, out io.Writer, now func() time.Time) (*merchant, error) {
	cb := cfg.Accounts["dev"].Callback
	u, err := url.Parse(cb.URL)
	if err != nil {
		return nil, fmt.Errorf("the callback of the account dev: %w", err)
	}
	if u.Port() == "" || !net.ParseIP(u.Hostname()).IsLoopback() {
		return nil, nil // somebody has put a merchant of their own there
	}
	scheme, ok := signature.Lookup("standard")
	if !ok {
		return nil, errors.New("there is no signature scheme standard")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("the merchant of dev cannot listen: %w; is paidonce dev running here already?", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &merchant{secret: string(cb.Secret), scheme: scheme, out: out, now: now, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		// How it ends is nothing to tell: a call that is cut off comes again.
		_ = receiver.Serve(run, receiver.NewServer(m, receiver.ServerOptions{}), ln, time.Second)
	}()
	return m, nil
}

func (m *merchant) close() {
	m.stop()
	<-m.done
}

// ServeHTTP takes one call.
func (m *merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	req := signature.Request{Method: r.Method, Header: r.Header, Body: body}
	if err := m.scheme.Verify(req, []string{m.secret}, m.now()); err != nil {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	var call struct {
		Data struct {
			Ref      string `json:"external_ref"`
			Effect   string `json:"effect"`
			Version  int    `json:"version"`
			State    string `json:"state"`
			Kept     int64  `json:"kept"`
			Currency string `json:"currency"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		http.Error(w, "the body is no JSON", http.StatusBadRequest)
		return
	}
	d := call.Data
	fmt.Fprintf(m.out, "merchant: %s order %s, %s, kept %s %s (key %s)\n",
		d.Effect, d.Ref, d.State, order.Format(d.Kept, d.Currency), d.Currency, r.Header.Get("Idempotency-Key"))
	w.WriteHeader(http.StatusNoContent)
}
