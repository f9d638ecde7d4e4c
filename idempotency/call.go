package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

// call is one request with a key.
type call struct {
	m     *Middleware
	w     http.ResponseWriter
	r     *http.Request
	next  http.Handler
	q     request
	body  []byte
	print canonical.Fingerprint
	conn  *pgxpool.Conn // while this call has one
}

// free gives the connection back: before the caller is written to, who may read slowly, and before another one is asked for. One that
// is in a transaction is thrown away.
func (c *call) free() {
	if c.conn != nil {
		c.conn.Release()
		c.conn = nil
	}
}

func (c *call) write(p *problem) {
	c.free()
	c.m.write(c.w, p)
}

func (c *call) refuse(p *problem) {
	c.free()
	c.m.refuse(c.w, c.q.policy, p)
}

// maxClaims bounds how often a call looks again after losing a race for the row.
const maxClaims = 5

// The first and the longest pause of a call that waits for another one.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 400 * time.Millisecond
)

// serve enters the key, and does what its state asks for. While another call has it, it may wait.
func (c *call) serve() {
	var err error
	if c.q.digests, err = c.digest(); err != nil {
		c.m.log.ErrorContext(c.r.Context(), "idempotency cipher does not seal", "err", err)
		c.refuse(unavailable("the key could not be stored"))
		return
	}
	left, busy := c.attempt()
	if !busy {
		return
	}
	c.m.metrics.count(decidedInFlight, c.q.policy)
	if wait := c.q.policy.InFlight.wait; wait > 0 {
		ctx, cancel := context.WithTimeout(c.r.Context(), wait) // a caller that goes away frees it
		defer cancel()
		for pause := firstPause; busy && sleep(ctx, pause); pause = min(2*pause, lastPause) {
			left, busy = c.attempt()
		}
		if !busy {
			return
		}
	}
	c.write(inProgress(left))
}

// sleep reports whether d has passed, and not ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt answers the call, unless another one is being executed under its key: then it reports busy, and how long that one's
// lock still lasts. It holds no connection when it returns.
func (c *call) attempt() (left time.Duration, busy bool) {
	defer c.free() // also when the handler panics
	var err error
	if c.conn, err = c.m.store.acquire(c.r.Context()); err != nil {
		c.unavailable("no connection to the database", err)
		return 0, false
	}
	h, left, next := c.enter()
	switch {
	case next != execute:
		return left, next == busyKey
	case c.q.policy.NoTx:
		c.free()
		c.executeAlone(h)
	default:
		c.execute(h)
	}
	return 0, false
}

// step is what comes after a key was looked up.
type step int

const (
	answered step = iota
	busyKey
	execute
)

// enter claims the key, takes it over, or answers by what is known of it.
func (c *call) enter() (h hold, left time.Duration, next step) {
	id := uuid.Must(uuid.NewV7()) // fails only if there is no randomness
	var missed row
	for try := 1; try <= maxClaims; try++ {
		r, won, err := c.claim(id, try == 1)
		switch {
		case errors.Is(err, errRace), retriable(err): // the latter where transactions are serializable by default
			continue
		case err != nil:
			c.unavailable("the key could not be claimed", err)
			return hold{}, 0, answered
		case won:
			return r.hold, 0, execute
		}
		switch r.decide() {
		case mismatch:
			c.reused(r)
			return hold{}, 0, answered
		case replay:
			c.replay(r)
			return hold{}, 0, answered
		case inFlight:
			return hold{}, r.lockLeft, busyKey
		case takeOver:
		}
		ctx, cancel := c.m.store.detached(c.r.Context())
		h, ok, err := takeover(ctx, c.conn.Conn(), r, &c.q)
		cancel()
		switch {
		case retriable(err):
			continue
		case err != nil:
			// Should it be ours now without our knowing, it is so until the lock is old: the next fence may as well be that of
			// another call which was faster, and whose key we must not give away.
			c.unavailable("the key could not be taken over", err)
			return hold{}, 0, answered
		case ok:
			if r.status == statusProcessing {
				c.m.metrics.count(tookOver, c.q.policy)
				c.m.log.WarnContext(c.r.Context(), "idempotency key taken over from a call that is taken to be dead", c.attrs(h)...)
			}
			return h, 0, execute
		case r.status == statusProcessing && missed.fence == r.fence:
			return hold{}, 0, busyKey // its lock is old, but its transaction is open: it lives
		case r.status != statusProcessing:
			sleep(context.WithoutCancel(ctx), time.Duration(try)*time.Millisecond) // the sweeper has the row for a moment
		}
		missed = r
	}
	c.unavailable("the key's row kept changing", errRace)
	return hold{}, 0, answered
}

// claim is the statement, once more on another connection if the one of the pool turns out to be dead.
func (c *call) claim(id uuid.UUID, again bool) (row, bool, error) {
	ctx, cancel := c.m.store.detached(c.r.Context())
	defer cancel()
	r, won, err := claim(ctx, c.conn.Conn(), id, &c.q)
	switch {
	case err == nil, errors.Is(err, errRace), retriable(err):
		return r, won, err
	case again && pgconn.SafeToRetry(err):
		c.free()
		if c.conn, err = c.m.store.acquire(c.r.Context()); err != nil {
			return row{}, false, err
		}
		return c.claim(id, false)
	}
	c.forsake(hold{id, 1, 0}, err)
	return row{}, false, err
}

// forsake frees a key that this call may have entered without hearing of it, so that the next one need not wait for the lock's
// end. It is tried once. The id of the row is this call's own, so nobody else's key is freed.
func (c *call) forsake(h hold, err error) {
	if !refused(err) && !pgconn.SafeToRetry(err) {
		c.settle(h, c.unbegun(err), err)
	}
}

// settle frees the key, on this call's connection if that is of use, else on another one; once, with its own deadline. It reports
// whether the key was still this call's, and whether that is known.
func (c *call) settle(h hold, o Outcome, cause error) (owned, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), abandonTimeout)
	defer cancel()
	var err error
	if c.conn == nil || c.conn.Conn().IsClosed() || c.conn.Conn().PgConn().TxStatus() != 'I' {
		c.free()
		c.conn, err = c.m.store.pool.Acquire(ctx)
	}
	if err == nil {
		owned, err = release(ctx, c.conn.Conn(), h, o, errorClass(cause))
	}
	if err != nil {
		c.m.log.WarnContext(ctx, "idempotency key is not released: it is locked until its time-out", append(c.attrs(h), "err", errorClass(err))...)
	}
	return owned, err == nil
}

// request is what the handler gets: the body once more, and a context that does not end with the caller's patience.
func (c *call) request(ctx context.Context) *http.Request {
	r := c.r.WithContext(ctx)
	if c.r.Body != nil {
		r.Body = io.NopCloser(bytes.NewReader(c.body))
		r.ContentLength = int64(len(c.body))
		r.TransferEncoding = nil
		if len(c.body) == 0 {
			r.Body = http.NoBody
		}
	}
	return r
}

func (c *call) unavailable(what string, err error) {
	level := slog.LevelError
	if c.r.Context().Err() != nil {
		level = slog.LevelInfo // nobody waits for the answer, and perhaps nothing else is wrong
	}
	c.m.log.Log(c.r.Context(), level, "idempotency keys are unavailable", "what", what, "err", err)
	c.refuse(unavailable(what + "; nothing was done: send it again with the same key"))
}

// reused answers a call whose key stands for another request.
func (c *call) reused(r row) {
	p := newProblem(http.StatusUnprocessableEntity, CodeKeyReused, "the key stands for another request, which may have been done: only a request that is meant as another one takes a new key")
	if r.elsewhere {
		p.Detail = "the key stands for a request to another method or path, which may have been done: only a request that is meant as another one takes a new key"
		c.refuse(p) // two bodies of two operations have no places in common
		return
	}
	p.DiffersAt = c.differences(r.digests)
	for _, at := range p.DiffersAt {
		p.Errors = append(p.Errors, fieldError{Pointer: at, Code: "differs", Detail: "is not what the key was first used with"})
	}
	c.refuse(p)
}

// fencedOut answers a call that was taken to be dead, and whose key another one has got: nothing of it was kept.
func (c *call) fencedOut(h hold) {
	c.m.metrics.count(fencedOut, c.q.policy)
	c.m.log.WarnContext(c.r.Context(), "idempotency key was taken over while its call ran; the call is undone", c.attrs(h)...)
	c.write(inProgress(0))
}

func (c *call) attrs(h hold) []any {
	return []any{"key_digest", c.q.scope.digest(c.q.key), "policy", c.q.policy.Name, "fence", h.fence}
}
