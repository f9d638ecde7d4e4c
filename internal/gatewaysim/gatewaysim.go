// Package gatewaysim is the APIs of gateways, as far as Paidonce asks them, for
// tests, scenarios and paidonce dev --replay: what an object is now, tokens, and
// the keys that deliveries are signed with.
//
// A source that was entered ([Sim.Source]) is asked on loopback, by its options
// api_url and api_allow_private, so that any process of the released program can
// be led here. Only certificates have an address that no option moves: for those
// a program gets [Sim.DialContext] and [Sim.RootCAs].
//
// It believes nothing that gateways would not: a call that does not carry the
// source's credentials is answered 401, an object that nobody set 404. It says
// what it is told ([Sim.Set]), and fails as it is told ([Sim.Fail]).
package gatewaysim

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/scenario/network"
)

// Sim is a number of simulated APIs. It is safe for concurrent use.
type Sim struct {
	listener net.Listener
	server   *http.Server
	outside  *network.Network // hosts that have a certificate
	roots    *x509.CertPool
	wg       sync.WaitGroup
	closing  chan struct{}

	mu      sync.Mutex
	sources map[string]*api
	keys    map[string]*answer // by URL
	hosts   []string           // of keys
}

// api is what one source's API has.
type api struct {
	answers map[string]*answer
	grants  map[string]bool
	objects map[gateway.Object]*answer
	fault   *Fault // of all of it
	calls   int
}

// answer is what one call is answered.
type answer struct {
	header http.Header // that the call must carry
	bearer bool        // the call must carry a token
	body   []byte
	fault  *Fault
	calls  int
}

// bearer is the token that every grant gives.
const bearer = "simulated-token"

// New starts a Sim on loopback. Close ends it.
func New() (*Sim, error) {
	authority, err := network.NewAuthority()
	if err != nil {
		return nil, fmt.Errorf("gatewaysim: %w", err)
	}
	s := &Sim{
		roots: x509.NewCertPool(), closing: make(chan struct{}),
		sources: make(map[string]*api), keys: make(map[string]*answer),
	}
	s.roots.AppendCertsFromPEM(authority.PEM())
	if s.outside, err = network.New(network.Options{Authority: authority, Outside: http.HandlerFunc(s.serveKey)}); err != nil {
		return nil, fmt.Errorf("gatewaysim: %w", err)
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.outside.Close()
		return nil, fmt.Errorf("gatewaysim: %w", err)
	}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serveAPI), ReadHeaderTimeout: time.Minute}
	s.wg.Go(func() { _ = s.server.Serve(s.listener) })
	return s, nil
}

// Close ends it, and calls that hang.
func (s *Sim) Close() {
	close(s.closing)
	_ = s.server.Close()
	s.outside.Close()
	s.wg.Wait()
}

// RootCAs are what a program must trust to fetch certificates here.
func (s *Sim) RootCAs() *x509.CertPool { return s.roots }

// DialContext leads hosts of certificates here, and addresses of loopback where
// they are. Nothing else can be reached.
func (s *Sim) DialContext(ctx context.Context, nw, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	ours := slices.Contains(s.hosts, host)
	s.mu.Unlock()
	if ours {
		return network.Dial(ctx, s.outside.Addr(), nw, address)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return nil, errors.New("gatewaysim: there is no network here")
	}
	return new(net.Dialer).DialContext(ctx, nw, address)
}

// Source enters a source whose id and credentials are complete. What it returns
// is asked here, if its gateway is asked at all. It is for the source of
// [gateway.Gateway].Example: the key that its deliveries name is here too.
func (s *Sim) Source(src gateway.Source) (gateway.Source, error) {
	g, ok := gateway.Lookup(src.Gateway)
	if !ok {
		return src, fmt.Errorf("gatewaysim: there is no gateway %q", src.Gateway)
	}
	if !slices.ContainsFunc(g.Options, func(o gateway.Option) bool { return o.Name == "api_url" }) {
		return src, nil
	}
	src.APIURL, src.APIAllowPrivate = "http://"+s.listener.Addr().String()+"/"+src.ID, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[src.ID] = &api{
		answers: make(map[string]*answer), grants: make(map[string]bool), objects: make(map[gateway.Object]*answer),
	}
	if g.Remote != nil && g.Remote.Example != nil {
		ref, found := g.Remote.Example(src)
		return src, s.addKey(src, ref, found)
	}
	return src, nil
}

// addKey puts the key where it is looked for.
func (s *Sim) addKey(src gateway.Source, ref gateway.KeyRef, found []byte) error {
	if ref.URL != "" {
		u, err := url.Parse(ref.URL)
		if err != nil {
			return fmt.Errorf("gatewaysim: key of source %s: %w", src.ID, err)
		}
		if s.keys[ref.URL] == nil { // one for all sources
			s.keys[ref.URL] = &answer{body: found}
			s.hosts = append(s.hosts, u.Host)
		}
		return nil
	}
	if !gjson.GetBytes(found, "key").Exists() {
		found = append(append([]byte(`{"key":`), found...), '}')
	}
	ask, err := json.Marshal(map[string]string{"client_id": src.ClientID, "secret": src.ClientSecret, "key_id": ref.ID})
	if err != nil {
		return err
	}
	// https://plaid.com/docs/api/webhooks/webhook-verification/#get-webhook-verification-key
	s.sources[src.ID].answers[callKey(http.MethodPost, "/webhook_verification_key/get", ask)] = &answer{body: found}
	return nil
}

// Set makes the API of a source say body when it is asked about an object.
func (s *Sim) Set(src gateway.Source, o gateway.Object, body []byte) error {
	g, ok := gateway.Lookup(src.Gateway)
	if !ok || g.Fetch == nil {
		return fmt.Errorf("gatewaysim: gateway %q is not asked", src.Gateway)
	}
	call, err := g.Fetch.Call(src, o)
	if err != nil {
		return fmt.Errorf("gatewaysim: call about a %s of source %s: %w", o.Kind, src.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.sources[src.ID]
	if a == nil {
		return fmt.Errorf("gatewaysim: source %s was not entered", src.ID)
	}
	one := a.object(o)
	one.header, one.bearer, one.body = call.Header, call.Grant != nil, body
	a.answers[callKey(call.Method, call.Path, call.Body)] = one
	if call.Grant != nil {
		a.grants[callKey(call.Grant.Method, call.Grant.Path, call.Grant.Body)] = true
	}
	return nil
}

// object returns the answer about an object, which may not be set yet.
func (a *api) object(o gateway.Object) *answer {
	if a.objects[o] == nil {
		a.objects[o] = &answer{}
	}
	return a.objects[o]
}

// Calls is how often a source's API was asked about an object; for the zero
// Object, how often it was asked about anything but a token.
func (s *Sim) Calls(source string, o gateway.Object) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.sources[source]
	switch {
	case a == nil:
		return 0
	case o == gateway.Object{}:
		return a.calls
	default:
		return a.object(o).calls
	}
}

// callKey tells the calls of an API apart.
func callKey(method, path string, body []byte) string {
	if method == "" {
		method = http.MethodGet
	}
	return method + " " + path + "\n" + string(body)
}

// serveAPI answers for all sources: the first part of the path says for which.
func (s *Sim) serveAPI(w http.ResponseWriter, r *http.Request) {
	source, path, ok := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if !ok || err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := callKey(r.Method, "/"+path, body)
	s.mu.Lock()
	a := s.sources[source]
	if a == nil {
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		return
	}
	grant := a.grants[key]
	if !grant {
		a.calls++
	}
	var say answer
	one := a.answers[key]
	fault := a.fault.take()
	if one != nil {
		one.calls++
		if fault == nil {
			fault = one.fault.take()
		}
		say = *one
	}
	s.mu.Unlock()

	switch {
	case fault != nil:
		s.fail(w, r, fault)
	case grant:
		_, _ = io.WriteString(w, `{"access_token":"`+bearer+`","token_type":"Bearer","expires_in":3600}`)
	case one == nil:
		w.WriteHeader(http.StatusNotFound)
	case !say.allows(r.Header):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(say.body)
	}
}

// allows reports whether a call carries what the gateway file says it does.
func (a *answer) allows(got http.Header) bool {
	for name, values := range a.header {
		if !slices.Equal(got.Values(name), values) {
			return false
		}
	}
	return !a.bearer || got.Get("Authorization") == "Bearer "+bearer
}

// serveKey answers for the hosts that have certificates.
func (s *Sim) serveKey(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	key := s.keys["https://"+r.Host+r.RequestURI]
	var fault *Fault
	if key != nil {
		key.calls++
		fault = key.fault.take()
	}
	s.mu.Unlock()
	switch {
	case key == nil || r.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
	case fault != nil:
		s.fail(w, r, fault)
	default:
		_, _ = io.Copy(w, bytes.NewReader(key.body))
	}
}
