package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxRuns is how often a handler is run in all when its transaction meets deadlocks and the like.
const maxRuns = 4

// execute runs the handler in its unit of work until that is committed, or given up.
func (c *call) execute(h hold) {
	for run := 1; c.run(h, run < maxRuns); run++ {
		pause := time.Duration(run) * (5*time.Millisecond + rand.N(20*time.Millisecond))
		sleep(context.WithoutCancel(c.r.Context()), pause)
	}
}

// run is one effect transaction: the row's lock, the handler, the stored answer, COMMIT; and only then a byte to the caller.
// It reports whether it should be done again, which it answers itself unless mayRepeat.
func (c *call) run(h hold, mayRepeat bool) (again bool) {
	p, conn := c.q.policy, c.conn.Conn()
	started, stop := context.WithTimeout(context.Background(), p.LockTimeout) // ends when the lock is old
	defer stop()
	ctx, cancel := c.m.store.detached(c.r.Context())
	held, err := begin(ctx, conn, h, p)
	cancel()
	if err != nil {
		abandon(c.r.Context(), conn)
		if mayRepeat && retriable(err) {
			return true
		}
		c.settle(h, c.unbegun(err), err)
		c.unavailable("the unit of work could not begin", err)
		return false
	}
	if !held {
		abandon(c.r.Context(), conn)
		c.fencedOut(h)
		return false
	}
	rec := newRecorder(c.w.Header())
	v, late := c.invoke(conn, h, rec)
	failure := v.failure
	if late {
		failure = context.DeadlineExceeded
	}
	if failure != nil && retriable(failure) && rec.code >= 500 && mayRepeat {
		abandon(c.r.Context(), conn)
		return true
	}
	o := p.outcome(rec.code, failure)
	refusal := rec.code >= 400 && rec.code < 500
	counted := refusal && failure == nil && (p.KeepWrites || v.keepWrites)
	if o != Keep && !counted || late {
		c.fail(h, rec, o, failure)
		return false
	}
	ctx, cancel = c.m.store.detached(c.r.Context())
	if o == Keep {
		err = commit(ctx, conn, h, c.answer(h, rec, v, false), rec.code < 400 || p.KeepWrites || v.keepWrites)
	} else {
		err = commitFreed(ctx, conn, h, o, statusError(rec.code))
	}
	cancel()
	switch {
	case err == nil && o != Keep:
		c.m.metrics.count(failed, p)
		c.send(rec)
	case err == nil:
		if started.Err() != nil {
			c.m.metrics.count(lateFinish, p)
			c.m.log.WarnContext(c.r.Context(), "idempotent call finished after its lock's time-out; nobody had taken it over", c.attrs(h)...)
		}
		c.executed(rec)
	case errors.Is(err, errNoTransaction), refused(err):
		abandon(c.r.Context(), conn)
		if mayRepeat && retriable(err) {
			return true
		}
		c.notCommitted(h, err)
	default:
		abandon(c.r.Context(), conn)
		c.recoverCommit(h, rec, err)
	}
	return false
}

// unbegun is what becomes of a key whose handler was not run, as if that had answered 503.
func (c *call) unbegun(err error) Outcome {
	if o := c.q.policy.outcome(http.StatusServiceUnavailable, err); o != Keep {
		return o
	}
	return Retry
}

// invoke runs the handler. If it does not return, because it panics or ends its goroutine, everything is settled on the way out.
func (c *call) invoke(conn *pgx.Conn, h hold, rec *recorder) (v verdict, late bool) {
	u := &unit{hold: h, tx: &unitTx{conn: conn}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), c.q.policy.Deadline)
	defer cancel()
	returned := false
	defer func() {
		if returned {
			return
		}
		u.end()
		abandon(ctx, conn)
		c.m.metrics.count(failed, c.q.policy)
		c.settle(h, c.q.policy.outcome(http.StatusInternalServerError, ErrPanicked), ErrPanicked)
	}()
	c.next.ServeHTTP(rec, c.request(context.WithValue(ctx, unitKey{}, u)))
	returned = true
	rec.finish()
	return u.end(), ctx.Err() != nil
}

// fail undoes what the handler did, frees the key, and hands on what the handler answered.
func (c *call) fail(h hold, rec *recorder, o Outcome, failure error) {
	abandon(c.r.Context(), c.conn.Conn())
	if o == Keep {
		o = Retry
	}
	cause := failure
	if cause == nil {
		cause = statusError(rec.code)
	}
	c.m.metrics.count(failed, c.q.policy)
	if owned, known := c.settle(h, o, cause); known && !owned {
		c.fencedOut(h)
		return
	}
	switch {
	case errors.Is(failure, context.DeadlineExceeded) && rec.code < 500:
		p := newProblem(http.StatusServiceUnavailable, CodeDeadline, "it took too long, and nothing of it was kept: send it again with the same key")
		p.retryAfter, p.status = time.Second, StatusExecuted
		c.write(p)
	case failure != nil && retriable(failure):
		c.write(conflict())
	case failure != nil && rec.code < 400: // it says two things, and nothing was kept
		c.m.log.ErrorContext(c.r.Context(), "idempotent call answered success, and said that it failed", append(c.attrs(h), "err", logged(failure))...)
		p := newProblem(http.StatusInternalServerError, CodeFailed, "it failed, and nothing of it was kept")
		p.status = StatusExecuted
		c.write(p)
	default:
		c.send(rec)
	}
}

func conflict() *problem {
	p := newProblem(http.StatusServiceUnavailable, CodeFailed, "others were in the way, and nothing of it was kept: send it again with the same key")
	p.retryAfter, p.status = time.Second, StatusExecuted
	return p
}

// notCommitted answers a call whose transaction the database refused to commit: a deferred constraint, or a statement that
// had failed before and that the handler passed over.
func (c *call) notCommitted(h hold, err error) {
	c.m.metrics.count(failed, c.q.policy)
	owned, known := c.settle(h, c.q.policy.outcome(http.StatusInternalServerError, err), err)
	if known && !owned {
		c.fencedOut(h)
		return
	}
	c.m.log.ErrorContext(c.r.Context(), "idempotent call answered success, and was not committed", append(c.attrs(h), "err", logged(err))...)
	if retriable(err) {
		c.write(conflict())
		return
	}
	p := newProblem(http.StatusInternalServerError, CodeFailed, "it could not be committed, and nothing of it was kept")
	if momentary(err) {
		p = newProblem(http.StatusServiceUnavailable, CodeFailed, "it could not be committed in time, and nothing of it was kept: send it again with the same key")
		p.retryAfter = time.Second
	}
	p.status = StatusExecuted
	c.write(p)
}

// recoverTimeout is how long it is tried to find out what became of a COMMIT.
const recoverTimeout = 10 * time.Second

// recoverCommit finds out what became of a COMMIT whose answer was lost. The release that it tries waits for the row as long as
// the old session has it; so if it succeeds there was no commit, and if it finds nothing to release the row tells.
func (c *call) recoverCommit(h hold, rec *recorder, lost error) {
	c.m.metrics.count(unknownCommit, c.q.policy)
	c.free()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), recoverTimeout)
	defer cancel()
	o := c.q.policy.outcome(http.StatusInternalServerError, lost)
	var err error
	for pause := firstPause; ; pause *= 2 {
		var committed, other bool
		err = c.m.store.onPool(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			owned, err := release(ctx, conn, h, o, "connection lost during COMMIT")
			if err != nil || owned {
				return err
			}
			fence, status, err := read(ctx, conn, h.id)
			committed = err == nil && fence == h.fence && status == statusCompleted
			other = err == nil && fence != h.fence || errors.Is(err, pgx.ErrNoRows)
			return err
		})
		switch {
		case committed:
			c.executed(rec)
			return
		case other:
			c.fencedOut(h)
			return
		}
		if err == nil || !sleep(ctx, pause) {
			break
		}
	}
	c.m.log.ErrorContext(c.r.Context(), "idempotent call lost its connection during COMMIT", append(c.attrs(h), "err", logged(lost), "recovery_err", err)...)
	p := newProblem(http.StatusServiceUnavailable, CodeOutcomeUnknown, "whether it was done is not certain: send it again with the same key, which tells, and does nothing twice")
	p.retryAfter, p.status = time.Second, StatusExecuted
	c.write(p)
}

// executed sends an answer that is stored.
func (c *call) executed(rec *recorder) {
	c.m.metrics.count(executedOnce, c.q.policy)
	c.send(rec)
}

func (c *call) send(rec *recorder) {
	c.free()
	rec.sent.Set(HeaderStatus, StatusExecuted)
	rec.send(c.w)
}
