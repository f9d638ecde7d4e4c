package bank

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Books are what somebody takes for true about payments: the bank's own, or ours.
type Books struct{ Payments []Payment }

// Payment is one payment in [Books]. Amounts are in minor units of ISO 4217.
type Payment struct {
	Source    string
	IDs       []string // every id that it, its order and its captures have
	Reference string
	Sums      map[string]Sums // by currency
	Voided    bool
	Movements []Movement // in the order in which they were done
}

// Sums are the money of a payment in one currency. What a refund that failed gave back is not in Refunded; one that is pending is.
type Sums struct{ Authorized, Captured, Refunded int64 }

// Movement is one movement in [Books].
type Movement struct {
	Kind   order.MovementKind
	Amount order.Amount
	Given  string       // the id that the caller gave it, where the gateway takes one; see the gateways' files
	Key    string       // the idempotency key of the call that did it, whether or not it means anything there
	Ref    string       // the gateway's id; empty of what has none of its own
	Status order.Status // ok, pending, failed

	// Opening: it was part of the payment from the beginning, and nobody asked for it here.
	Opening bool
	At      time.Time
}

// Opening is a payment as a shopper makes it.
type Opening struct {
	Source    string
	Reference string
	Amount    order.Amount
	Captured  bool // as a whole; else it is authorized

	// ChargeOnly makes a charge of Stripe that belongs to no payment intent.
	ChargeOnly bool

	// Unmarked hides the metadata of refunds, which Mercado Pago's reference has, and no page promises.
	Unmarked bool

	// Hooks are faults of the webhooks that tell of it, instead of drawn ones.
	Hooks Step
}

// payment is what the bank knows of a payment.
type payment struct {
	Opening
	id       string // under which the API knows it first
	charge   string // Stripe's
	order    string // PayPal's
	auth     string // PayPal's; empty of what was captured at once
	voided   bool
	closed   bool // nothing more can be captured, though something is left
	moves    []*move
	created  time.Time
	updated  time.Time
	metadata map[string]string // Stripe's
	told     map[string]int    // events by type
}

// move is a movement with what the gateway's API shows of it beside.
type move struct {
	Movement
	of       *move             // the capture that a refund is of (PayPal)
	invoice  string            // PayPal
	custom   string            // PayPal
	reason   string            // Stripe
	note     string            // PayPal
	metadata map[string]string // Stripe, Mercado Pago
	updated  time.Time
}

// Open enters a payment, and lets its webhooks tell of it.
func (b *Bank) Open(o Opening) (Payment, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[o.Source]
	switch _, known := order.Exponent(o.Amount.Currency); {
	case a == nil:
		return Payment{}, fmt.Errorf("bank: there is no source %q", o.Source)
	case !known || o.Amount.Minor <= 0 || o.Amount.Minor == order.All:
		return Payment{}, fmt.Errorf("bank: %d %q is no amount of a payment", o.Amount.Minor, o.Amount.Currency)
	}
	p := &payment{Opening: o, created: b.now(), metadata: make(map[string]string), told: make(map[string]int)}
	p.updated = p.created
	n, first := len(a.payments), len(a.events)
	if err := a.api.open(a, p, fmt.Sprint(n)); err != nil {
		return Payment{}, err
	}
	a.payments = append(a.payments, p)
	for _, id := range p.ids() {
		a.ids[id] = p
	}
	b.post(a, a.events[first:], o.Hooks, o.Hooks != nil, false)
	return p.snapshot(), nil
}

// Books returns what is true.
func (b *Bank) Books() Books {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all Books
	for _, a := range b.accounts {
		for _, p := range a.payments {
			all.Payments = append(all.Payments, p.snapshot())
		}
	}
	slices.SortStableFunc(all.Payments, func(x, y Payment) int {
		return strings.Compare(x.Source+"\x00"+x.IDs[0], y.Source+"\x00"+y.IDs[0])
	})
	return all
}

func (p *payment) snapshot() Payment {
	s := Payment{Source: p.Source, IDs: p.ids(), Reference: p.Reference, Voided: p.voided, Sums: map[string]Sums{
		p.Amount.Currency: {Authorized: p.Amount.Minor, Captured: p.captured(), Refunded: p.refunded(nil)},
	}}
	for _, m := range p.moves {
		s.Movements = append(s.Movements, m.Movement)
	}
	return s
}

// ids are the ids that the payment goes by, the first one first: those of its captures too, where they are payments to others.
func (p *payment) ids() []string {
	ids := []string{p.id}
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(p.charge)
	add(p.order)
	add(p.auth)
	for _, m := range p.moves {
		if m.Kind == order.MovementCapture {
			add(m.Ref)
		}
	}
	return ids
}

func (p *payment) captured() (sum int64) {
	for _, m := range p.moves {
		if m.Kind == order.MovementCapture && m.Status != order.StatusFailed {
			sum += m.Amount.Minor
		}
	}
	return sum
}

// refunded is what was given back of a capture; nil: of all of them.
func (p *payment) refunded(of *move) (sum int64) {
	for _, m := range p.moves {
		if m.Kind == order.MovementRefund && m.Status != order.StatusFailed && (of == nil || m.of == of) {
			sum += m.Amount.Minor
		}
	}
	return sum
}

// returned is what was refunded and is not under way any more.
func (p *payment) returned() (sum int64) {
	for _, m := range p.moves {
		if m.Kind == order.MovementRefund && m.Status == order.StatusOK {
			sum += m.Amount.Minor
		}
	}
	return sum
}

// find returns the movement of a kind under the gateway's id.
func (p *payment) find(kind order.MovementKind, ref string) *move {
	for _, m := range p.moves {
		if m.Kind == kind && m.Ref == ref {
			return m
		}
	}
	return nil
}

// What is wrong with a movement that is asked for. Each gateway has its own words for them.
var (
	errVoided    = errors.New("it was voided")
	errNothing   = errors.New("nothing is left")
	errTooMuch   = errors.New("more than is left")
	errUncapture = errors.New("nothing was captured")
)

// capturable returns how much can be captured.
func (p *payment) capturable() (int64, error) {
	switch left := p.Amount.Minor - p.captured(); {
	case p.voided:
		return 0, errVoided
	case p.closed, left <= 0:
		return 0, errNothing
	default:
		return left, nil
	}
}

// refundable returns how much can be given back of a capture; nil: of all of them.
func (p *payment) refundable(of *move) (int64, error) {
	captured := p.captured()
	if of != nil {
		captured = of.Amount.Minor
	}
	switch left := captured - p.refunded(of); {
	case captured == 0:
		return 0, errUncapture
	case left <= 0:
		return 0, errNothing
	default:
		return left, nil
	}
}

// enter does a movement: it is in the books from then on.
func (c *call) enter(p *payment, m *move) *move {
	m.At, m.updated, m.Key = c.a.bank.now(), c.a.bank.now(), c.r.key
	m.Amount.Currency = p.Amount.Currency
	if m.Status == "" {
		m.Status = order.StatusOK
	}
	p.moves = append(p.moves, m)
	if m.Kind == order.MovementCapture && m.Ref != "" {
		c.a.ids[m.Ref] = p
	}
	p.touch(c.a.bank.now())
	return m
}

// touch makes the time of the last change go forward, also if the clock does not.
func (p *payment) touch(now time.Time) {
	if least := p.updated.Add(time.Millisecond); now.Before(least) {
		now = least
	}
	p.updated = now
}

// made counts the movements of a kind: part of the ids of the next one.
func (p *payment) made(kind order.MovementKind) (n int) {
	for _, m := range p.moves {
		if m.Kind == kind {
			n++
		}
	}
	return n
}

// refund does a refund, which the step or the draw may have in pending first, or fail later. told is called when it is in the
// books, and changed whenever its status is another.
func (c *call) refund(p *payment, m *move, told, changed func()) {
	b := c.a.bank
	pends, fails := slices.Contains(c.step, RefundPends), slices.Contains(c.step, RefundFails)
	if !c.set {
		fate := b.opts.Odds.pick(refundFates, b.draw("fate", c.a.src.ID, p.id, m.Given, c.key, fmt.Sprint(p.made(order.MovementRefund))))
		pends, fails = fate == RefundPends, fate == RefundFails
	}
	if pends {
		m.Status = order.StatusPending
	}
	c.enter(p, m)
	told()
	become := func(status order.Status, f Fault) {
		c.a.counts.Faults[f]++
		b.later(func() {
			first := len(c.a.events)
			m.Status, m.updated = status, b.now()
			p.touch(b.now())
			changed()
			b.post(c.a, c.a.events[first:], nil, c.set, false)
		})
	}
	if pends {
		become(order.StatusOK, RefundPends)
	}
	if fails {
		become(order.StatusFailed, RefundFails)
	}
}
