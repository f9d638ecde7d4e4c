package scenario

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/gatewaysim"
	"github.com/paidonce/paidonce/internal/scenario/merchant"
)

// stranger is the name of a secret that no source has.
const stranger = "stranger"

// defaultSources are there in every scenario.
var defaultSources = map[string]Source{
	"stripe":   {Gateway: "stripe"},
	"adyen":    {Gateway: "adyen"},
	"standard": {Gateway: "standard"},
}

// standardMap is where sources of the gateway standard find things.
var standardMap = gateway.Map{
	Type: "/type", Payment: "/data/payment", Reference: "/data/order", Amount: "/data/amount", Currency: "/data/currency",
	Facts: map[string]string{
		"payment.authorized": "authorized", "payment.succeeded": "captured", "payment.refunded": "refunded",
	},
}

// sourcesOf returns the sources of a scenario with their defaults: those that
// every scenario has, changed and added to by its own.
func sourcesOf(s *Scenario) map[string]Source {
	all := maps.Clone(defaultSources)
	maps.Copy(all, s.Sources)
	for name, source := range all {
		if source.Gateway == "" {
			source.Gateway = name
		}
		if source.Mode == "" {
			source.Mode = gateway.Live
		}
		if len(source.Secrets) == 0 {
			source.Secrets = []string{"main"}
		}
		all[name] = source
	}
	return all
}

func (d *Delivery) sourceName() string {
	if d.Source == "" {
		return "stripe"
	}
	return d.Source
}

// secretOf makes up a test secret: always the same for the same names.
func secretOf(scenario, name string) string {
	sum := sha256.Sum256([]byte("paidonce test secret\n" + scenario + "\n" + name))
	return hex.EncodeToString(sum[:])
}

// gatewaySource is a source as the program's configuration has it: the example
// of its gateway, with secrets of the names given.
func gatewaySource(scenario, name string, s Source, secretNames []string) gateway.Source {
	var g gateway.Source
	gw, ok := gateway.Lookup(s.Gateway)
	for i, secret := range secretNames {
		if !ok {
			break // check said so
		}
		one := gw.Example(strings.Join([]string{scenario, name, secret}, " "))
		if i == 0 {
			g = one
			continue
		}
		g.Secrets, g.HMACKeys = append(g.Secrets, one.Secrets...), append(g.HMACKeys, one.HMACKeys...)
	}
	g.ID, g.Account, g.Gateway, g.Mode, g.MaxBody = scenario+"."+name, accountOf(scenario), s.Gateway, s.Mode, 1<<20
	g.Capture, g.StripeAccount, g.OnUnknownOrder, g.Reference = s.Capture, s.Account, s.OnUnknownOrder, s.Reference
	if s.NoBasic {
		g.Basic = ""
	}
	if s.AccessToken {
		g.AccessToken = "rk_" + secretOf(scenario, name+" token")
	}
	if s.Gateway == gateway.Standard.Name {
		m := standardMap
		g.Map = &m
	}
	return g
}

// accountOf is the account of a scenario. Names of the configuration are never
// in the way: they would have to begin with the same letters on purpose.
func accountOf(scenario string) string { return "scenario-" + scenario }

// Set is a number of scenarios that are ready to be played: their accounts have
// secrets, and their merchant listens. Close ends it.
type Set struct {
	scenarios []Scenario
	actors    map[string]*actor // by scenario
	listener  net.Listener
	server    *http.Server
	served    chan struct{}
	sim       *gatewaysim.Sim // the gateways' APIs
}

// actor is what belongs to one scenario.
type actor struct {
	account  config.Account
	apiKey   string
	sources  map[string]Source // with defaults
	merchant *merchant.Recorder
}

// Prepare makes up what the scenarios need and starts their recording merchant
// on a free port of loopback. Names must be different.
func Prepare(scenarios []Scenario) (*Set, error) {
	sim, err := gatewaysim.New()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sim.Close()
		return nil, fmt.Errorf("listen for callbacks: %w", err)
	}
	set := &Set{scenarios: scenarios, actors: make(map[string]*actor), listener: listener, served: make(chan struct{}), sim: sim}
	mux := http.NewServeMux()
	for i := range scenarios {
		s := &scenarios[i]
		if set.actors[s.Name] != nil {
			listener.Close()
			sim.Close()
			return nil, fmt.Errorf("two scenarios are called %s", s.Name)
		}
		a, err := newActor(s, "http://"+listener.Addr().String()+"/"+s.Name, sim)
		if err != nil {
			listener.Close()
			sim.Close()
			return nil, err
		}
		set.actors[s.Name] = a
		mux.Handle("/"+s.Name, a.merchant)
	}
	set.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(set.served)
		_ = set.server.Serve(listener) // http.ErrServerClosed: Close ends it
	}()
	return set, nil
}

func newActor(s *Scenario, url string, sim *gatewaysim.Sim) (*actor, error) {
	a := &actor{sources: sourcesOf(s), apiKey: "key_" + secretOf(s.Name, "api key")}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(secretOf(s.Name, "callback"))[:32])
	var err error
	a.merchant, err = merchant.New(merchant.Options{
		Secrets: func() []string { return []string{secret} },
		Now:     time.Now, //nolint:forbidigo // scenarios are played in real time, as gateways send
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(a.apiKey))
	a.account = config.Account{
		APIKeys: []config.APIKey{{
			Name: "scenario", SHA256: hex.EncodeToString(sum[:]), Roles: []string{config.RoleRead, config.RoleWrite, config.RoleOperate},
		}},
		TimeZone:    "UTC",
		Idempotency: config.Idempotency{Profile: config.ProfileStrict},
		Callback: config.Callback{
			URL: url, Secret: config.Secret(secret), AllowPrivate: true, Timeout: config.MaxCallbackTimeout,
		},
		Sources: make(map[string]gateway.Source),
	}
	for name, source := range a.sources {
		g, err := sim.Source(gatewaySource(s.Name, name, source, source.Secrets))
		if err != nil {
			return nil, err
		}
		a.account.Sources[g.ID] = g
	}
	return a, nil
}

// Accounts returns the accounts that the program must have in its configuration
// when it starts, by name, complete with defaults.
func (s *Set) Accounts() map[string]config.Account {
	all := make(map[string]config.Account)
	for name, a := range s.actors {
		all[accountOf(name)] = a.account
	}
	return all
}

// File returns the accounts as a configuration file for a process of its own,
// with the secrets in clear: they are made up, and still nobody else's business.
func (s *Set) File() ([]byte, error) {
	accounts := make(map[string]any)
	for name, a := range s.actors {
		sources := make(map[string]json.RawMessage)
		for id, source := range a.account.Sources {
			raw, err := json.Marshal(source)
			if err != nil {
				return nil, err
			}
			sources[id] = raw
		}
		accounts[accountOf(name)] = map[string]any{
			"api_keys": a.account.APIKeys,
			"callback": map[string]any{
				"url": a.account.Callback.URL, "secret": string(a.account.Callback.Secret), "allow_private": true,
			},
			"sources": sources,
		}
	}
	// JSON is YAML.
	return json.MarshalIndent(map[string]any{"accounts": accounts}, "", "  ")
}

// Names returns the names of the scenarios, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.actors)) }

// DialContext and RootCAs are what a program needs that verifies deliveries by
// keys from the network: they lead to simulated hosts, and nowhere else but to
// loopback.
func (s *Set) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.sim.DialContext(ctx, network, address)
}

// RootCAs are what vouches for them: see DialContext.
func (s *Set) RootCAs() *x509.CertPool { return s.sim.RootCAs() }

// Close ends the merchant and the simulated APIs.
func (s *Set) Close() {
	for _, a := range s.actors {
		a.merchant.Close()
	}
	_ = s.server.Close()
	<-s.served
	s.sim.Close()
}
