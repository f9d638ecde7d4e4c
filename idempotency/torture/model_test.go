package torture_test

import (
	"fmt"
	"time"
)

// The model of a key, in a few lines of Go: what each step of a schedule must lead to. It knows nothing of statements, and
// has no concurrency.

// lockTimeout of all policies of the model. It is long, so that no lock is renewed while a test runs: only the database's
// clock moves.
const lockTimeout = 10 * time.Minute

// route is where a request goes.
type route struct {
	path    string
	life    time.Duration
	relaxed bool
	alone   bool // without a transaction
}

var routes = []route{
	{path: "/strict", life: 48 * time.Hour},
	{path: "/relaxed", life: 24 * time.Hour, relaxed: true},
	{path: "/strict-alone", life: 48 * time.Hour, alone: true},
	{path: "/relaxed-alone", life: 24 * time.Hour, relaxed: true, alone: true},
}

// outcome is how a handler ends.
type outcome int

const (
	created outcome = iota
	noContent
	refusedByHandler
	tooMany
	failedByHandler
	panicked
	outcomes // how many there are
)

func (o outcome) code() int {
	return [...]int{201, 204, 422, 429, 500, 500}[o]
}

// What becomes of a key after an outcome.
type fate int

const (
	kept      fate = iota
	free           // for the same request
	forgotten      // for any
)

func (r route) fate(o outcome) fate {
	switch {
	case o <= noContent:
		return kept
	case r.relaxed:
		return forgotten
	case o == refusedByHandler:
		return kept
	}
	return free
}

// asked is what makes two requests the same.
type asked struct{ route, body int }

// record is a row.
type record struct {
	id       int // of the row: it may be deleted, and entered again
	asked    asked
	bound    bool
	state    string
	fence    int
	attempts int
	epoch    int
	locked   time.Duration // when, on the clock of the model
	expires  time.Duration
	owner    *flight // who has its transaction open
	run      *flight // whose answer is kept
}

// flight is a request whose handler runs.
type flight struct {
	name   string // of the run
	key    string
	asked  asked
	row    int // the row it holds, and the fence
	fence  int
	epoch  int
	killed bool // its session was ended

	// Of the test, not of the model.
	call *running
	code int
	body string
}

func (f *flight) route() route { return routes[f.asked.route] }

// model is all keys and the time.
type model struct {
	now  time.Duration
	rows map[string]*record
	ids  int

	effects map[string]bool // by run: what was committed
	charges map[string]bool // by row, epoch and key: what was charged elsewhere
}

func newModel() *model {
	return &model{rows: map[string]*record{}, effects: map[string]bool{}, charges: map[string]bool{}}
}

// verdict is what a request leads to.
type verdict struct {
	kind  string // "run", "replay", "reused", "busy", "own", "unknown", "panic"
	after int    // Retry-After in seconds; 0: none
	of    *flight
}

func (v verdict) String() string {
	if v.of != nil {
		return fmt.Sprintf("%s of %s", v.kind, v.of.name)
	}
	return fmt.Sprintf("%s (%d)", v.kind, v.after)
}

// send is what a request leads to that arrives now. If it is "run", f holds the key.
func (m *model) send(f *flight) verdict {
	r := m.rows[f.key]
	life := f.route().life
	if r == nil {
		m.ids++
		m.rows[f.key] = m.hold(f, &record{id: m.ids, asked: f.asked, fence: 1, attempts: 1, epoch: 1, expires: m.now + life})
		return verdict{kind: "run"}
	}
	left := r.locked + lockTimeout - m.now
	live := r.state == "PROCESSING" && left > 0
	expired := r.expires <= m.now
	switch {
	case expired && !live:
	case r.bound && r.asked != f.asked:
		return verdict{kind: "reused"}
	case r.state == "COMPLETED":
		return verdict{kind: "replay", of: r.run}
	case live:
		return verdict{kind: "busy", after: max(1, int((left+time.Second-1)/time.Second))}
	}
	if r.owner != nil { // its lock is old, and it is alive
		return verdict{kind: "busy", after: 1}
	}
	if expired || r.asked != f.asked {
		r.epoch++
	}
	if r.attempts++; expired || !r.bound {
		r.attempts, r.expires = 1, m.now+life
	}
	r.asked = f.asked
	r.fence++
	m.hold(f, r)
	return verdict{kind: "run"}
}

func (m *model) hold(f *flight, r *record) *record {
	r.state, r.bound, r.locked, r.run, r.owner = "PROCESSING", true, m.now, nil, nil
	f.row, f.fence, f.epoch = r.id, r.fence, r.epoch
	if !f.route().alone {
		r.owner = f
	}
	return r
}

// kill ends the session in which a handler's transaction is open.
func (m *model) kill(f *flight) {
	f.killed = true
	if r := m.rows[f.key]; r != nil && r.owner == f {
		r.owner = nil
	}
}

// finish is what the caller hears when a handler ends.
func (m *model) finish(f *flight, o outcome) verdict {
	if f.route().alone && o != panicked {
		m.charges[fmt.Sprint(f.row, f.epoch, f.key)] = true
	}
	r := m.rows[f.key]
	ours := r != nil && r.id == f.row && r.fence == f.fence && r.state == "PROCESSING"
	fate := f.route().fate(o)
	lost := f.killed && fate == kept // at the COMMIT
	if lost {
		fate = free
		if f.route().relaxed {
			fate = forgotten
		}
	}
	if ours {
		r.owner = nil
		switch fate {
		case kept:
			r.state, r.run = "COMPLETED", f
			if o <= noContent && !f.route().alone {
				m.effects[f.name] = true
			}
		default:
			r.state, r.bound = "FAILED", fate == free
		}
	}
	switch {
	case o == panicked:
		return verdict{kind: "panic"}
	case !ours:
		return verdict{kind: "busy", after: 1}
	case lost:
		return verdict{kind: "unknown", after: 1}
	}
	return verdict{kind: "own", of: f}
}

// sweep deletes what has expired and nobody works on.
func (m *model) sweep() (deleted int) {
	for key, r := range m.rows {
		stale := r.state != "PROCESSING" || r.locked+lockTimeout <= m.now && r.owner == nil
		if r.expires <= m.now && stale {
			delete(m.rows, key)
			deleted++
		}
	}
	return deleted
}
