// Package bank is a double of the APIs with which Stripe, Adyen, PayPal and Mercado Pago move money: it captures, refunds and
// voids, shows payments and lists what happened, and sends the webhooks of what it did. Tests, scenarios and paidonce dev run
// against it.
//
// It keeps books of its own ([Bank.Books]): every movement that is really done is one entry, with the id that its caller gave it.
// What a caller believes can be held against them ([Compare]). A call is refused where the gateway refuses it, with the gateway's
// codes and shapes of errors, and repeated as the gateway repeats it: the same key, endpoint and body give the answer that is
// kept; another body an error; a call that is still under way a conflict; and a key that has expired, or another key, moves the
// money again. That last one is what tests are for.
//
// It misbehaves by default ([DefaultOdds]): answers are lost before the effect or after it, failures are kept under the key,
// webhooks are dropped, doubled or early, refunds fail when everybody thinks that they are done. Which call meets which fault
// is drawn from a seed and from the call's own content, so that it is the same whatever else happens at the same time. [Bank.Script]
// forces faults one by one.
//
// Time is the clock that is handed in. What is to happen later happens once that clock says so and somebody asks: a call comes in,
// or [Bank.Pump] is called. Nothing sleeps.
//
// What the gateways do is taken from their documentation; each file names the pages. Where these are silent the file says so, and
// the bank does what is worse for a careless caller.
package bank

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// Options are the settings of a [Bank].
type Options struct {
	// Now is the bank's clock, by which keys and tokens expire and delays end. Required.
	Now func() time.Time

	// Seed decides which calls meet which faults.
	Seed uint64

	// Odds are how likely each fault is. Nil: [DefaultOdds]; empty: nothing goes wrong unless a script says so.
	Odds Odds

	// Patience is how many faults in a row the same call can meet, at most; the next one is served well, so that whoever goes on
	// asking comes through. Scripts go beyond. Default 6.
	Patience int

	// Deliver takes a webhook to whoever receives it; an error makes the bank try again later. Nil: webhooks stay in the lists.
	Deliver func(context.Context, Webhook) error

	// Pause is how long a slow answer takes: it returns when the bank may go on. Default: until the caller hangs up.
	Pause func(context.Context)

	// Delay is how long by the bank's clock it takes until what is late happens: a delayed webhook, a late effect, a refund that
	// fails. Default 1 minute.
	Delay time.Duration

	// ListLag is how long something that happened is missing from the lists. Default 0.
	ListLag time.Duration
}

func (o Options) withDefaults() Options {
	if o.Odds == nil {
		o.Odds = DefaultOdds()
	}
	if o.Patience == 0 {
		o.Patience = 6
	}
	if o.Pause == nil {
		o.Pause = func(ctx context.Context) { <-ctx.Done() }
	}
	if o.Delay == 0 {
		o.Delay = time.Minute
	}
	return o
}

// Bank is the four APIs, for any number of sources. It is safe for concurrent use.
type Bank struct {
	opts     Options
	listener net.Listener
	server   *http.Server
	wg       sync.WaitGroup
	closing  chan struct{}
	news     chan struct{} // something may have become due

	mu       sync.Mutex
	accounts map[string]*account
	tasks    []task
	outbox   []*outgoing
	serial   int // of events, over all sources
}

// account is what the bank has for one source.
type account struct {
	bank     *Bank
	src      gateway.Source
	gw       *gateway.Gateway
	api      *api
	payments []*payment
	ids      map[string]*payment // by every id that a payment or one of its movements has
	events   []*event            // as they happened
	keys     map[string]*entry
	tokens   map[string]time.Time // until when they are valid
	calls    map[string]*history  // by their content
	scripts  []*script
	counts   Counts
}

// Start opens a bank on loopback. Close ends it.
func Start(opts Options) (*Bank, error) {
	if opts.Now == nil {
		return nil, errors.New("bank: no clock")
	}
	opts = opts.withDefaults()
	if err := opts.Odds.check(); err != nil {
		return nil, err
	}
	b := &Bank{opts: opts, closing: make(chan struct{}), news: make(chan struct{}, 1), accounts: make(map[string]*account)}
	var err error
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	b.wg.Go(func() { _ = b.server.Serve(b.listener) })
	return b, nil
}

// Close ends the bank, and the calls that wait.
func (b *Bank) Close() {
	close(b.closing)
	_ = b.server.Close()
	b.wg.Wait()
}

// Source enters a source, whose id and credentials are complete, and returns it so that its API is called here, by its options
// api_url and api_allow_private. Its credentials are the only ones that are accepted: access_token, of PayPal client_id and
// client_secret.
func (b *Bank) Source(src gateway.Source) (gateway.Source, error) {
	gw, ok := gateway.Lookup(src.Gateway)
	way := apis[src.Gateway]
	switch {
	case !ok || way == nil:
		return src, fmt.Errorf("bank: no API of a gateway %q here", src.Gateway)
	case src.ID == "":
		return src, errors.New("bank: a source without an id")
	}
	if missing := way.needs(src); missing != "" {
		return src, fmt.Errorf("bank: source %s has no %s, and nobody could call for it", src.ID, missing)
	}
	src.APIURL, src.APIAllowPrivate = "http://"+b.listener.Addr().String()+"/"+src.ID, true
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts[src.ID] != nil {
		return src, fmt.Errorf("bank: source %s was entered before", src.ID)
	}
	b.accounts[src.ID] = &account{
		bank: b, src: src, gw: gw, api: way, ids: make(map[string]*payment), keys: make(map[string]*entry),
		tokens: make(map[string]time.Time), calls: make(map[string]*history),
		counts: Counts{Calls: make(map[Kind]int), Faults: make(map[Fault]int)},
	}
	return src, nil
}

// now is the time by the bank's clock, in UTC.
func (b *Bank) now() time.Time { return b.opts.Now().UTC() }

// Counts are how often things happened to a source.
type Counts struct {
	Calls     map[Kind]int  // that were understood, by what they asked for
	Faults    map[Fault]int // that were met
	Strangers int           // calls with wrong credentials
	Invalid   int           // calls that cannot begin: of nothing that is here, or not well-formed
	Replays   int           // answers that were given again
	Conflicts int           // calls that came while the same one was under way
	Reused    int           // keys that came with another call
	Sent      int           // webhooks that were taken
	Refused   int           // webhooks that were not
}

// Counts returns what happened to a source so far.
func (b *Bank) Counts(source string) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[source]
	if a == nil {
		return Counts{}
	}
	c := a.counts
	c.Calls, c.Faults = make(map[Kind]int), make(map[Fault]int)
	for kind, n := range a.counts.Calls {
		c.Calls[kind] = n
	}
	for fault, n := range a.counts.Faults {
		c.Faults[fault] = n
	}
	return c
}
