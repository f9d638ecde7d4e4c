// Package merchant is a recording merchant: the other end of the program's
// callbacks, as a careful merchant would write it, with a memory.
//
// It checks what the program promises its merchants: every callback is signed
// (Standard Webhooks) at the program's time, carries its key twice, the same
// key for every attempt, and no order is called twice at once. What breaks a
// promise is kept as a sentence; see [Recorder.Violations].
//
// It also keeps its own side of the contract: a key seen before and a version
// lower than the newest are acknowledged and change nothing, so that what it
// delivered can be compared with what the program believes it told.
package merchant

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// Mode is how a [Recorder] answers.
type Mode string

// OK answers 200, Error 503, Gone 410 (never ask again), Hang not at all until
// the caller gives up.
const (
	OK    Mode = "ok"
	Error Mode = "error"
	Gone  Mode = "gone"
	Hang  Mode = "hang"
)

// Options of a [Recorder].
type Options struct {
	// Secrets returns the secrets that may have signed a callback.
	Secrets func() []string

	// Now is the program's clock: signatures are made by it.
	Now func() time.Time
}

// Call is one callback that arrived.
type Call struct {
	Key     string // Idempotency-Key: the order's id, the version and the effect
	Ref     string // the merchant's own name of the order
	Version int
	Effect  string
	After   string
	State   string
	Kept    int64
	Status  int  // what was answered; 0: nothing
	Applied bool // it changed something at the merchant's
}

// Goods is where a merchant stands with one order.
type Goods string

// Kept back is an order on hold; Returned one whose delivery was revoked.
const (
	Untouched Goods = ""
	KeptBack  Goods = "held"
	Delivered Goods = "delivered"
	Returned  Goods = "returned"
)

// Recorder is the merchant. Make one with New; it is safe for concurrent use.
type Recorder struct {
	opts   Options
	scheme *signature.Scheme

	mu         sync.Mutex
	mode       Mode
	modes      map[string]Mode // by reference of the order
	calls      []*Call
	orders     map[string]*order
	violations []string
	arrived    chan struct{} // closed and replaced at every arrival
	ended      chan struct{}
	endOnce    sync.Once
}

type order struct {
	busy    int // calls that have no answer yet
	newest  int // the highest version seen
	keys    map[string]string
	goods   Goods
	effects []string // those that changed something, in order
}

// New returns a Recorder that answers 200.
func New(opts Options) (*Recorder, error) {
	scheme, ok := signature.Lookup("standard")
	if !ok {
		return nil, fmt.Errorf("there is no signature scheme standard")
	}
	return &Recorder{
		opts: opts, scheme: scheme, mode: OK, modes: make(map[string]Mode), orders: make(map[string]*order),
		arrived: make(chan struct{}), ended: make(chan struct{}),
	}, nil
}

// Answer says how callbacks are answered from now on. A call that hangs already goes on hanging.
func (r *Recorder) Answer(m Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
}

// AnswerFor is Answer for the callbacks of one order; an empty mode ends the exception.
func (r *Recorder) AnswerFor(ref string, m Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == "" {
		delete(r.modes, ref)
		return
	}
	r.modes[ref] = m
}

// Close lets go of the calls that hang.
func (r *Recorder) Close() { r.endOnce.Do(func() { close(r.ended) }) }

// body is what a callback carries: the fields that are looked at.
type body struct {
	Type string `json:"type"`
	Data struct {
		OrderID     string `json:"order_id"`
		ExternalRef string `json:"external_ref"`
		Effect      string `json:"effect"`
		Version     int    `json:"version"`
		State       string `json:"state"`
		Kept        int64  `json:"kept"`
		After       string `json:"after"`
	} `json:"data"`
}

// ServeHTTP records a callback and answers it.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return // the caller went away
	}
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		r.violated("a callback's body is not JSON: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.inspect(req, raw, b)
	call := &Call{
		Key: req.Header.Get("Idempotency-Key"), Ref: b.Data.ExternalRef, Version: b.Data.Version,
		Effect: b.Data.Effect, After: b.Data.After, State: b.Data.State, Kept: b.Data.Kept,
	}
	mode := r.arrive(call, b)
	defer r.leave(b)
	switch mode {
	case Hang:
		select {
		case <-req.Context().Done():
		case <-r.ended:
		}
		// The connection is cut without an answer.
		panic(http.ErrAbortHandler)
	case Error, Gone:
		status := http.StatusServiceUnavailable
		if mode == Gone {
			status = http.StatusGone
		}
		r.answered(call, status)
		w.WriteHeader(status)
	default:
		r.accept(call, b)
		r.answered(call, http.StatusOK)
		w.WriteHeader(http.StatusOK)
	}
}

// inspect checks the promises that one callback can break alone.
func (r *Recorder) inspect(req *http.Request, raw []byte, b body) {
	key := fmt.Sprintf("%s:%d:%s", b.Data.OrderID, b.Data.Version, b.Data.Effect)
	if req.Method != http.MethodPost {
		r.violated("%s: a callback is %s, not POST", key, req.Method)
	}
	for _, name := range []string{"Idempotency-Key", "Webhook-Id"} {
		if got := req.Header.Get(name); got != key {
			r.violated("%s: %s is %q", key, name, got)
		}
	}
	if !slices.Contains([]string{"fulfil", "hold", "release", "revoke"}, b.Data.Effect) || b.Type != "order."+b.Data.Effect {
		r.violated("%s: type %q, effect %q", key, b.Type, b.Data.Effect)
	}
	err := r.scheme.Verify(signature.Request{Method: req.Method, Header: req.Header, Body: raw}, r.opts.Secrets(), r.opts.Now())
	if err != nil {
		r.violated("%s: the signature does not verify: %v", key, err)
	}
}

// arrive enters a call and decides how to answer it.
func (r *Recorder) arrive(call *Call, b body) Mode {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orders[b.Data.OrderID]
	if o == nil {
		o = &order{keys: make(map[string]string)}
		r.orders[b.Data.OrderID] = o
	}
	o.busy++
	if o.busy > 1 {
		r.violatedLocked("%s: the order is called twice at once", call.Key)
	}
	before, _, _ := strings.Cut(call.Key, ":")
	if before != b.Data.OrderID {
		r.violatedLocked("%s: the key belongs to another order", call.Key)
	}
	r.calls = append(r.calls, call)
	close(r.arrived)
	r.arrived = make(chan struct{})
	if mode, ok := r.modes[call.Ref]; ok {
		return mode
	}
	return r.mode
}

func (r *Recorder) leave(b body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders[b.Data.OrderID].busy--
}

func (r *Recorder) answered(call *Call, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call.Status = status
}

// accept does what the effect asks for, by the four rules of the contract.
func (r *Recorder) accept(call *Call, b body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orders[b.Data.OrderID]
	if _, seen := o.keys[call.Key]; seen || call.Version < o.newest {
		return
	}
	o.newest = call.Version
	o.keys[call.Key] = call.Effect
	goods := o.goods
	switch call.Effect {
	case "fulfil":
		goods = Delivered
	case "hold":
		goods = KeptBack
	case "revoke":
		if goods == Delivered {
			goods = Returned
		}
	case "release":
		goods = Untouched
		if call.After == "revoked" {
			goods = Delivered
		}
	}
	if call.Effect == "fulfil" && o.goods == Delivered {
		r.violatedLocked("%s: delivered twice", call.Key)
	}
	o.goods = goods
	o.effects = append(o.effects, call.Effect)
	call.Applied = true
}

// Calls returns the callbacks that arrived, in their order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Call, len(r.calls))
	for i, c := range r.calls {
		all[i] = *c
	}
	return all
}

// Keys returns how many distinct keys arrived of each effect.
func (r *Recorder) Keys() map[string]int {
	seen := make(map[string]string)
	for _, c := range r.Calls() {
		seen[c.Key] = c.Effect
	}
	counts := make(map[string]int)
	for effect := range maps.Values(seen) {
		counts[effect]++
	}
	return counts
}

// Effects returns what was done for an order, in order, each key once.
func (r *Recorder) Effects(ref string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.Ref == ref {
			id, _, _ := strings.Cut(c.Key, ":")
			if o := r.orders[id]; o != nil {
				return slices.Clone(o.effects)
			}
		}
	}
	return nil
}

// Goods returns where the merchant stands with an order.
func (r *Recorder) Goods(ref string) Goods {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.Ref == ref {
			id, _, _ := strings.Cut(c.Key, ":")
			if o := r.orders[id]; o != nil {
				return o.goods
			}
		}
	}
	return Untouched
}

// Arrived returns a channel that is closed when the next callback arrives.
func (r *Recorder) Arrived() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived
}

// Violations returns what the program promised and did not keep.
func (r *Recorder) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.violations)
}

// Reset forgets the calls, not the orders: what arrives after is counted anew.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

func (r *Recorder) violated(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violatedLocked(format, args...)
}

func (r *Recorder) violatedLocked(format string, args ...any) {
	r.violations = append(r.violations, fmt.Sprintf(format, args...))
}
