package idempotency

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// statusError is a handler's answer as the reason of a failure.
type statusError int

func (e statusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// errLost is why a handler's context ends when its key may be another call's.
var errLost = errors.New("idempotency: the lock of the key could not be renewed")

// executeAlone runs the handler without a transaction, renewing the key's lock meanwhile.
func (c *call) executeAlone(h hold) {
	p := c.q.policy
	rec := &streamer{recorder: newRecorder(c.w.Header()), w: c.w}
	rec.header.Set(HeaderStatus, StatusExecuted) // also where it streams
	v, late, lost := c.invokeAlone(h, rec)
	failure := v.failure
	if late && rec.code >= 500 {
		failure = context.DeadlineExceeded
	}
	if o := p.outcome(rec.code, failure); o != Keep {
		cause := failure
		if cause == nil {
			cause = statusError(rec.code)
		}
		c.m.metrics.count(failed, p)
		if owned, known := c.settle(h, o, cause); known && !owned && !rec.streamed {
			c.fencedOut(h)
			return
		}
		c.free()
		rec.send(c.w)
		return
	}
	switch stored, known := c.keep(h, c.answer(h, rec.recorder, v, rec.streamed)); {
	case !known:
		// What was done was done: the caller hears of it, and that a repetition would not.
		c.m.metrics.count(unstored, p)
		rec.sent.Set(HeaderWarning, "not-stored")
		rec.send(c.w)
	case !stored:
		if rec.streamed {
			c.m.metrics.count(fencedOut, p)
			return
		}
		c.fencedOut(h)
	default:
		if lost {
			c.m.metrics.count(lateFinish, p)
		}
		c.m.metrics.count(executedOnce, p)
		rec.send(c.w)
	}
}

// invokeAlone is invoke without a transaction.
func (c *call) invokeAlone(h hold, rec *streamer) (v verdict, late, lost bool) {
	p := c.q.policy
	u := &unit{hold: h}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), p.Deadline)
	defer cancel()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var heart sync.WaitGroup
	heart.Go(func() { c.beat(beating, h, func() { lose(errLost) }) })
	stopped := sync.OnceFunc(func() {
		stop()
		heart.Wait()
	})
	returned := false
	defer func() {
		stopped()
		if !returned {
			u.end()
			c.m.metrics.count(failed, p)
			c.settle(h, p.outcome(http.StatusInternalServerError, ErrPanicked), ErrPanicked)
		}
	}()
	c.next.ServeHTTP(rec, c.request(context.WithValue(ctx, unitKey{}, u)))
	returned = true
	stopped()
	rec.finish()
	cause := context.Cause(ctx)
	return u.end(), errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, errLost)
}

// beat renews the lock four times within its time-out, until ctx ends. It calls lose when the key is another call's, and
// when two beats in a row have failed: before the lock is old enough for others.
func (c *call) beat(ctx context.Context, h hold, lose func()) {
	every := c.q.policy.LockTimeout / 4
	for misses := 0; sleep(ctx, every); {
		owned, err := c.beatOnce(ctx, h, every)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !owned:
			lose()
			return
		case err == nil:
			misses = 0
		default:
			if misses++; misses == 2 {
				c.m.log.WarnContext(ctx, "idempotency lock could not be renewed", append(c.attrs(h), "err", logged(err))...)
				lose()
				return
			}
		}
	}
}

func (c *call) beatOnce(ctx context.Context, h hold, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.m.store.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	return beat(ctx, conn.Conn(), h)
}

// keep stores an answer, again and again for a while. It reports whether that was done by this call, and whether that is known.
func (c *call) keep(h hold, a *answer) (stored, known bool) {
	patience, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), c.m.store.opts.KeepTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, time.Second) {
		err := c.m.store.onPool(patience, func(ctx context.Context, conn *pgx.Conn) (err error) {
			if stored, err = completeAlone(ctx, conn, h, a); err != nil || stored {
				return err
			}
			fence, status, err := read(ctx, conn, h.id) // an earlier try may have done it, and its answer been lost
			stored = err == nil && fence == h.fence && status == statusCompleted
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if err == nil {
			return stored, true
		}
		c.m.log.WarnContext(patience, "idempotent call's answer is not stored yet", append(c.attrs(h), "err", logged(err))...)
		if !sleep(patience, pause) {
			return false, false
		}
	}
}
