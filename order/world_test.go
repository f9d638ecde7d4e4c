package order_test

import (
	"fmt"
	"math/rand"
	"time"

	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

// dice decides what happens next, so that one world runs under rapid (which shrinks what fails) and under a seed.
type dice interface {
	roll(n int, label string) int // 0 to n-1
}

type rapidDice struct{ t *rapid.T }

func (d rapidDice) roll(n int, label string) int { return rapid.IntRange(0, n-1).Draw(d.t, label) }

type seedDice struct{ r *rand.Rand }

func (d seedDice) roll(n int, _ string) int { return d.r.Intn(n) }

func pick[T any](d dice, label string, from ...T) T { return from[d.roll(len(from), label)] }

// merchant is the other side of the calls. It knows keys and, if it keeps the contract, drops a version lower than the
// newest it has seen.
type merchant struct {
	versions bool // keeps rule 2 of the contract

	told    order.Told
	seen    map[string]bool
	newest  int
	fulfils int
	log     []string
}

// receive is a request that reaches the merchant.
func (m *merchant) receive(r order.Row) {
	key := fmt.Sprintf("%d:%s", r.Version, r.Effect)
	switch {
	case m.seen[key]:
		m.log = append(m.log, key+" again")
		return
	case m.versions && r.Version < m.newest:
		m.log = append(m.log, key+" stale")
		return
	}
	m.seen[key] = true
	m.newest = max(m.newest, r.Version)
	m.log = append(m.log, key)
	switch {
	case r.Effect == order.EffectFulfil:
		m.told = order.ToldFulfilled
		m.fulfils++
	case r.Effect == order.EffectHold && m.told == order.ToldNothing:
		m.told = order.ToldHeld
	case r.Effect == order.EffectRevoke && m.told == order.ToldFulfilled:
		m.told = order.ToldRevoked
	case r.Effect == order.EffectRelease && r.After == order.ToldHeld && m.told == order.ToldHeld:
		m.told = order.ToldNothing
	case r.Effect == order.EffectRelease && r.After == order.ToldRevoked:
		m.told = order.ToldFulfilled
	}
}

// orderTable is where an order and its rows are kept between transactions: what a store does, with its constraints.
type orderTable struct {
	version int
	told    order.Told
	view    order.View
	fence   int64
	rows    map[int]order.Row
	undoes  map[int]int
}

func (w *orderTable) live() []int {
	var versions []int
	for v, r := range w.rows {
		if r.EffectState.Live() {
			versions = append(versions, v)
		}
	}
	return versions
}

// open reads the order's book, every row as a copy.
func (w *orderTable) open() *order.Book {
	var row *order.Row
	for _, v := range w.live() {
		r := w.rows[v]
		row = &r
		if u := w.undoes[v]; u != 0 {
			undone := w.rows[u]
			row.Undoes = &undone
		}
	}
	b := order.NewBook(w.version, w.told, w.view, w.fence, row)
	b.MaxAttempts = 3
	return b
}

// save writes a book as a store does: closed rows, reopened rows, new rows, each under the constraint that at most one
// row is live.
func (w *orderTable) save(b *order.Book) error {
	closed, reopened := b.Changed()
	if b.Clean() {
		closed, reopened = nil, nil
	}
	for i, rows := range [][]*order.Row{closed, reopened, b.New()} {
		for _, r := range rows {
			if _, known := w.rows[r.Version]; known == (i == 2) {
				return fmt.Errorf("row %d: known %t in step %d", r.Version, known, i)
			}
			if i == 2 && r.Version != w.version+1 {
				return fmt.Errorf("row %d follows %d", r.Version, w.version)
			}
			if (i == 0) == r.EffectState.Live() && i < 2 {
				return fmt.Errorf("row %d is %s in step %d", r.Version, r.EffectState, i)
			}
			if err := soundRow(*r); err != nil {
				return err
			}
			c := *r
			c.Undoes = nil
			w.rows[r.Version], w.undoes[r.Version] = c, 0
			if r.Undoes != nil && r.EffectState.Live() {
				w.undoes[r.Version] = r.Undoes.Version
			}
			w.version = max(w.version, r.Version)
			if live := w.live(); len(live) > 1 {
				return fmt.Errorf("rows %v are live", live)
			}
		}
	}
	if b.Version != w.version {
		return fmt.Errorf("version %d, but the last row is %d", b.Version, w.version)
	}
	w.told, w.view, w.fence = b.Told, b.View, b.Fence
	// What was not reported as changed must not have changed.
	if again := w.open(); again.Open != nil || b.Open != nil {
		if again.Open == nil || b.Open == nil {
			return fmt.Errorf("stored live row %v, in the book %v", again.Open, b.Open)
		}
		x, y := *again.Open, *b.Open
		x.Undoes, y.Undoes = nil, nil
		if x != y {
			return fmt.Errorf("stored live row %+v, in the book %+v", x, y)
		}
	}
	return nil
}

func soundRow(r order.Row) error {
	switch {
	case (r.EffectState == order.EffectClaimed) == r.ClaimedUntil.IsZero(),
		(r.EffectState == order.EffectOpen) == r.NextAt.IsZero(),
		(r.Effect == order.EffectNone) != (r.EffectState == ""),
		r.EffectState == order.EffectCanceled && r.Tried,
		r.Undoes != nil && r.Tried,
		(r.EffectState == order.EffectAssumed || r.EffectState == order.EffectDone) && !r.Tried,
		(r.EffectState == order.EffectAssumed || r.EffectState == order.EffectCanceled) != (r.Why != ""):
		return fmt.Errorf("row %+v", r)
	}
	return nil
}

// call is a request that left for the merchant.
type call struct {
	row   order.Row
	fence int64
}

// rules are what a world is like.
type rules struct {
	versions bool // the merchant drops lower versions
	late     bool // requests may arrive long after they were given up
}

// world is an order, its worker and its merchant, and everything that can go wrong between them.
type world struct {
	dice
	rules
	now      time.Time
	order    *order.Order
	table    orderTable
	merchant merchant

	events   []order.Event
	out      *call   // the call of the claim that holds
	lost     []*call // given up: the request may still arrive, and its answer too
	fulfils  int     // fulfil claims
	lastSent int
}

func newWorld(d dice, r rules) *world {
	w := &world{
		dice: d, rules: r, now: epoch, order: stub(),
		table:    orderTable{rows: map[int]order.Row{}, undoes: map[int]int{}, told: order.ToldNothing},
		merchant: merchant{versions: r.versions, told: order.ToldNothing, seen: map[string]bool{}},
	}
	seq := int64(0)
	for range 1 + d.roll(10, "events") {
		seq++
		w.events = append(w.events, order.Event{Facts: []order.Fact{w.fact(seq)}})
	}
	if d.roll(3, "paid first") > 0 {
		w.events[0].Facts = []order.Fact{capturedTotal(4, 0)}
	}
	return w
}

// fact is one turn of a story in which money comes and goes again and again, so that want flips often.
func (w *world) fact(seq int64) order.Fact {
	return pick(w.dice, "fact",
		capturedTotal(4, seq), capturedTotal(0, seq),
		refund("x", order.StatusOK, 4, seq), refund("x", order.StatusFailed, 4, seq), refund("y", order.StatusOK, 1, seq),
		dispute("d", order.StatusOpen, all, seq), dispute("d", order.StatusWon, all, seq), dispute("d", order.StatusLost, all, seq),
		dispute("e", order.StatusLost, 1, seq), capture("z", order.StatusOK, 4, seq), capture("z", order.StatusFailed, 4, seq),
		phase(order.StatusCanceled, seq), reversal("v", 4), authorized(4),
	)
}

// tx runs f on the order's book as one transaction under its lock.
func (w *world) tx(f func(*order.Book)) error {
	b := w.table.open()
	if !b.Clean() {
		return fmt.Errorf("a book is not clean before anything happened")
	}
	f(b)
	return w.table.save(b)
}

// change changes the order and plans.
func (w *world) change(cause string, f func(*order.Order)) error {
	f(w.order)
	return w.tx(func(b *order.Book) { b.Step(cause, w.order.View(), w.now) })
}

func (w *world) ingest() error {
	if len(w.events) == 0 {
		return nil
	}
	e := w.events[0]
	w.events = w.events[1:]
	return w.change("facts", func(o *order.Order) { join(o, pick(w.dice, "payment", "A", "A", "A", "B"), e.Facts...) })
}

func (w *world) register(total int64) error {
	return w.change("registered", func(o *order.Order) {
		o.Registered, o.Total, o.Currency = true, max(total, o.Total), "EUR"
	})
}

const lease = 20 * time.Second

// claim is a worker that looks at the order: it gives a lapsed claim back, plans, and claims what is due.
func (w *world) claim() (err error) {
	txErr := w.tx(func(b *order.Book) {
		lapsed := b.Open != nil && b.Open.EffectState == order.EffectClaimed && !b.Open.ClaimedUntil.After(w.now)
		if got := b.Expire(w.now); got != lapsed {
			err = fmt.Errorf("expired %t, lapsed %t", got, lapsed)
		}
		if lapsed && w.out != nil {
			w.lost, w.out = append(w.lost, w.out), nil
		}
		due := b.Due()
		r := b.Claim(w.now, lease)
		if isDue := !due.IsZero() && !due.After(w.now); (r != nil) != isDue {
			err = fmt.Errorf("claimed %v, due %v", r, due)
		}
		if r == nil {
			return
		}
		if w.out != nil {
			err = fmt.Errorf("two calls at once")
		}
		kept := b.View.Kept
		switch {
		case r.Effect != order.Next(b.Told, b.View.Want):
			err = fmt.Errorf("claimed %s, which is not owed", r.Effect)
		case r.Effect == order.EffectFulfil && (b.View.Want != order.WantGo || kept == 0 && b.View.Total > 0):
			err = fmt.Errorf("fulfil claimed in %+v", b.View)
		case r.Effect == order.EffectRevoke && (kept != 0 || w.fulfils == 0):
			err = fmt.Errorf("revoke claimed in %+v after %d fulfils", b.View, w.fulfils)
		case r.Version < w.lastSent:
			err = fmt.Errorf("version %d sent after %d", r.Version, w.lastSent)
		case b.Due() != w.now.Add(lease):
			err = fmt.Errorf("claimed until %v", b.Due())
		}
		if r.Effect == order.EffectFulfil {
			w.fulfils++
		}
		w.lastSent = r.Version
		w.out = &call{*r, r.Fence}
	})
	if err == nil {
		err = txErr
	}
	return err
}

// answer ends the call that is out in one of the ways in which calls end.
func (w *world) answer() error {
	c := w.out
	if c == nil {
		return nil
	}
	next := w.now.Add(time.Duration(w.roll(40, "backoff")) * time.Second)
	switch w.roll(7, "answer") {
	case 0, 1: // done
		w.merchant.receive(c.row)
		return w.settle(c, order.Result{Done: true}, true)
	case 2: // done, and the answer is lost
		w.merchant.receive(c.row)
		return w.settle(c, order.Result{Next: next, Err: "timeout"}, true)
	case 3: // the request is lost, or refused
		return w.settle(c, order.Result{Next: next, Err: "503"}, true)
	case 4: // refused for good
		return w.settle(c, order.Result{Dead: true, Err: "410"}, true)
	case 5: // given up while the request is still on its way
		if w.late {
			w.lost = append(w.lost, c)
		}
		return w.settle(c, order.Result{Next: next, Err: "timeout"}, true)
	default: // the process dies: nobody settles, the claim lapses; the request may have left before
		if w.roll(2, "left") == 0 {
			w.merchant.receive(c.row)
		}
		return nil
	}
}

func (w *world) settle(c *call, r order.Result, holds bool) (err error) {
	if holds {
		w.out = nil
	}
	txErr := w.tx(func(b *order.Book) {
		before := *b
		if got := b.Settle(c.row.Version, c.fence, r, w.now); got != holds {
			err = fmt.Errorf("result of %d:%s taken %t", c.row.Version, c.row.Effect, got)
		}
		if !holds && (!b.Clean() || b.Told != before.Told) {
			err = fmt.Errorf("a late result changed something")
		}
	})
	if err == nil {
		err = txErr
	}
	return err
}

// arrive lets a request arrive that was given up, and then its answer.
func (w *world) arrive() error {
	if len(w.lost) == 0 {
		return nil
	}
	c := w.lost[0]
	w.lost = w.lost[1:]
	if w.late {
		w.merchant.receive(c.row)
	}
	return w.settle(c, order.Result{Done: true}, false)
}

// retry is a person.
func (w *world) retry() (err error) {
	txErr := w.tx(func(b *order.Book) {
		superseded, ok := b.Retry(w.now)
		switch e := b.Open; {
		case superseded && ok:
			err = fmt.Errorf("superseded and ok")
		case ok && b.Due() != w.now:
			err = fmt.Errorf("retried, but due %v", b.Due())
		case superseded && e != nil && e.Effect == order.Next(b.Told, b.View.Want):
			err = fmt.Errorf("superseded, but owed")
		}
	})
	if err == nil {
		err = txErr
	}
	return err
}
