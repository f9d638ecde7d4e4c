package outbound

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Results of a call, in logs and metrics.
const (
	resultChanged    = "changed"             // taken in
	resultUnchanged  = "unchanged"           // it says what was taken in before
	resultTurnedAway = "turned_away"         // no call was made, to keep a pace or because the host does not answer
	resultUnreadable = store.FetchUnreadable // the answer was kept aside
	resultCannotAsk  = "cannot_ask"          // the source is not configured for it
	resultLost       = "not_ingested"
	resultPanic      = "panic"
	resultLate       = "late" // no call was made: the process had slept through most of its claim
)

// came is what came of a claim.
type came struct {
	answer store.FetchAnswer
	result string
	events []store.Event
	did    []store.Result
	err    error // of the database, for the log
	signed bool  // what announced the object was signed, so that it is no stranger's invention
}

// follow asks about the claimed object and settles it. since is when the claim was asked for.
func (f *Fetcher) follow(ctx context.Context, c store.FetchClaim, since time.Duration) error {
	if c.Expired {
		f.metrics.expired.Inc()
	}
	f.metrics.lag.Observe(max(0, c.Lag.Seconds()))
	begin := f.opts.Elapsed()
	r := f.guarded(ctx, c, since)
	f.metrics.calls.WithLabelValues(c.Gateway, r.result).Inc()

	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.opts.SettleTimeout)
	defer cancel()
	s, err := f.store.SettleFetch(settle, c, r.answer)
	if err != nil {
		return err // its promise lapses; what was taken in stays so
	}
	f.log(ctx, c, r, s, f.opts.Elapsed()-begin)
	return nil
}

// guarded is ask, where a panic is a failure like another: without that, the object would stay claimed until the lease
// ends.
func (f *Fetcher) guarded(ctx context.Context, c store.FetchClaim, since time.Duration) (r came) {
	defer func() {
		if v := recover(); v != nil {
			// The text of a runtime error holds types and indices; any other value may quote the answer.
			text := fmt.Sprintf("%T", v)
			if bug, ok := v.(runtime.Error); ok {
				text = bug.Error()
			}
			f.opts.Logger.ErrorContext(ctx, "panic while a gateway was asked", "source", c.Source, "panic", text, "stack", string(debug.Stack()))
			r = f.failed(c, f.opts.Gone, 0, "a panic in this program", resultPanic)
		}
	}()
	return f.ask(ctx, c, since)
}

// ask makes the call and takes its answer in.
func (f *Fetcher) ask(ctx context.Context, c store.FetchClaim, since time.Duration) came {
	if c.Attempt > max(len(f.opts.Retry), len(f.opts.Gone), len(f.opts.Denied))+1 {
		return came{answer: store.FetchAnswer{Dead: true, Err: "its calls were never settled"}, result: resultLost}
	}
	if f.opts.Elapsed()-since > f.opts.Lease-f.opts.Deadline-f.opts.IngestTimeout-f.opts.SettleTimeout {
		return came{answer: store.FetchAnswer{Free: true, Err: "not asked: too late for its claim"}, result: resultLate}
	}
	src, ok := f.source(c.Source)
	if !ok || src.Account != c.Account {
		return f.failed(c, f.opts.Denied, 0, "the source is not configured any more", resultCannotAsk)
	}
	gw, ok := f.opts.Gateways(src.Gateway)
	o, isObject := gateway.ParseObject(c.Object)
	if !ok || gw.Fetch == nil || !isObject {
		return f.failed(c, f.opts.Denied, 0, "the source's gateway has no such objects", resultCannotAsk)
	}
	call, err := gw.Fetch.Call(src, o)
	if err != nil {
		return f.failed(c, f.opts.Denied, 0, "the call cannot be made: "+err.Error(), resultCannotAsk)
	}
	answer, err := f.call(ctx, gw, src, call)
	var r came
	if err != nil {
		r = f.refused(c, err)
	} else {
		r = f.take(ctx, gw, src, o, c, answer)
	}
	r.signed = gw.Scheme != "" || gw.Remote != nil
	return r
}

func (f *Fetcher) call(ctx context.Context, gw *gateway.Gateway, src gateway.Source, call gateway.Call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Deadline)
	defer cancel()
	return f.asker.Do(ctx, gw, src, call)
}

// refused is what follows from a call without an answer.
func (f *Fetcher) refused(c store.FetchClaim, err error) came {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Kind: Retry, gateway: c.Gateway, text: "the call ended in an unknown way"}
	}
	text := e.Error()
	switch {
	case errors.Is(err, context.Canceled): // we stop, or the job took too long
		return came{answer: store.FetchAnswer{Free: true, Wait: e.After, Err: text}, result: resultTurnedAway}
	case e.Kind == Retry && e.Status == 0 && e.After > 0:
		return came{answer: store.FetchAnswer{Free: true, Wait: e.After, Err: text}, result: resultTurnedAway}
	case e.Kind == Gone, e.Kind == Refused:
		return f.failed(c, f.opts.Gone, e.After, text, string(e.Kind))
	case e.Kind == Denied:
		return f.failed(c, f.opts.Denied, e.After, text, string(e.Kind))
	default:
		return f.failed(c, f.opts.Retry, e.After, text, string(e.Kind))
	}
}

// jitter spreads waits by a fifth either way, so that what failed together does not come back together.
const jitter = 0.2

// failed is a failed call: it comes again after the wait that the schedule has for this attempt, at least after, or is
// given up.
func (f *Fetcher) failed(c store.FetchClaim, waits []time.Duration, after time.Duration, text, result string) came {
	attempt := c.Attempt
	if c.Failing != "" && c.Failing != result {
		attempt = 1
	}
	a := store.FetchAnswer{Failing: result, Err: text, Dead: attempt > len(waits)}
	if len(waits) > 0 {
		wait := waits[min(attempt, len(waits))-1]
		a.Wait = max(after, time.Duration(float64(wait)*(1-jitter+2*jitter*rand.Float64())))
	}
	return came{answer: a, result: result}
}

// take ingests what the API answered, unless it is what it answered before and nobody else told of the object since.
func (f *Fetcher) take(ctx context.Context, gw *gateway.Gateway, src gateway.Source, o gateway.Object, c store.FetchClaim, body []byte) came {
	events, err := gw.Fetched(src, o, gateway.Answer{Body: body, Started: c.AskedAt})
	if err != nil {
		return f.keepAside(ctx, gw, src, c, body, err)
	}
	digest := gateway.Digest(events)
	done := store.FetchAnswer{Done: true, Digest: digest}
	if digest == c.Digest && !c.Overtaken {
		return came{answer: done, result: resultUnchanged}
	}
	rows, did, err := f.commit(ctx, src, c, body, events)
	switch {
	case errors.Is(err, store.ErrUnstorable):
		return f.keepAside(ctx, gw, src, c, body, err)
	case err != nil:
		return f.notIngested(c, err)
	}
	done.Told = true
	return came{answer: done, result: resultChanged, events: rows, did: did}
}

// keepAside stores an answer that cannot be read as a quarantined event, under the hash of its bytes, and comes again:
// it may have been a passing mistake of the gateway's. Of several in a row the first is kept and the last: a page about
// an error differs each time, and strangers choose how many there are.
func (f *Fetcher) keepAside(ctx context.Context, gw *gateway.Gateway, src gateway.Source, c store.FetchClaim, body []byte, why error) came {
	sum := sha256.Sum256(body)
	e := order.Event{ID: "body:" + hex.EncodeToString(sum[:]), Type: typeUnreadable, Realm: gw.Realm(src), Broken: why.Error()}
	var parse *gateway.ParseError
	if errors.As(why, &parse) {
		e.Broken = parse.Detail
	}
	r := f.failed(c, f.opts.Gone, 0, "the answer cannot be read: "+e.Broken, resultUnreadable)
	if c.Failing == resultUnreadable && !r.answer.Dead {
		return r
	}
	rows, did, err := f.commit(ctx, src, c, body, []order.Event{e})
	if err != nil {
		return f.notIngested(c, err)
	}
	r.events, r.did = rows, did
	return r
}

// typeUnreadable is the type of the one event that stands for an answer of which no event could be made.
const typeUnreadable = "unreadable"

// notIngested is an answer that could not be taken in: that is ours to mend, so it costs no attempt.
func (f *Fetcher) notIngested(c store.FetchClaim, err error) came {
	r := f.failed(c, f.opts.Retry, 0, "the answer could not be ingested", resultLost)
	r.answer.Dead, r.answer.Free, r.err = false, true, err
	return r
}

// commit ingests events with the bytes that say so.
func (f *Fetcher) commit(ctx context.Context, src gateway.Source, c store.FetchClaim, body []byte, events []order.Event) ([]store.Event, []store.Result, error) {
	delivery, err := uuid.NewV7()
	if err != nil {
		return nil, nil, fmt.Errorf("make a delivery id: %w", err)
	}
	header := map[string]string{
		gateway.HeaderObject: c.Object, gateway.HeaderStarted: c.AskedAt.UTC().Format(time.RFC3339Nano),
	}
	rows := make([]store.Event, len(events))
	for i, e := range events {
		rows[i] = store.Event{
			Event: e, Account: src.Account, Source: src.ID, Delivery: delivery, Payload: body, Header: header,
			MappingVersion: gateway.MappingVersion, OnUnknown: store.OnUnknown(src.OnUnknownOrder), Paused: src.Paused,
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.opts.IngestTimeout)
	defer cancel()
	did, err := f.ingest.Ingest(ctx, rows)
	if err == nil && len(did) != len(rows) {
		err = fmt.Errorf("%d results for %d events", len(did), len(rows))
	}
	return rows, did, err
}

// maxLoggedIDs and maxLoggedID bound what one line takes.
const (
	maxLoggedIDs = 20
	maxLoggedID  = 128
)

// log writes the one line of a call.
func (f *Fetcher) log(ctx context.Context, c store.FetchClaim, r came, s store.FetchSettled, took time.Duration) {
	level, alarm := slog.LevelInfo, ""
	switch {
	case s.Stale:
		f.metrics.stale.Inc()
	case s.Dead && (r.signed || c.Digest != ""):
		level, alarm = slog.LevelError, "the object is given up: the gateway could not be asked about it"
	case s.Dead: // most likely a stranger made it up
	case r.result == string(Denied) || r.result == resultCannotAsk:
		level = slog.LevelWarn
		if f.alarms.due(c.Source) {
			level, alarm = slog.LevelError, "the gateway does not let us ask: see to the source's credentials"
		}
	case r.result == string(Gone) && !r.signed && c.Digest == "": // the same
	case !r.answer.Done && r.result != resultTurnedAway:
		level = slog.LevelWarn
	}
	if !f.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("account_id", c.Account), slog.String("source", c.Source), slog.String("gateway", c.Gateway),
		slog.String("object", cut(c.Object)), slog.Int("attempt", c.Attempt), slog.String("result", r.result),
		slog.Duration("duration", took), slog.Duration("lag", c.Lag),
	}
	if len(r.events) > 0 {
		ids := make([]string, 0, min(len(r.events), maxLoggedIDs))
		outcomes := map[store.Outcome]int{}
		for i, e := range r.events {
			if i < maxLoggedIDs {
				ids = append(ids, cut(e.ID))
			}
			outcomes[r.did[i].Outcome]++
		}
		attrs = append(attrs, slog.Any("event_ids", ids), slog.Any("outcomes", outcomes))
	}
	if s.Resolved > 0 {
		attrs = append(attrs, slog.Int("resolved", s.Resolved))
	}
	if s.Stale {
		attrs = append(attrs, slog.Bool("stale", true))
	}
	if !r.answer.Done {
		attrs = append(attrs, slog.Duration("wait", r.answer.Wait), slog.Bool("dead", s.Dead), slog.String("err", r.answer.Err))
	}
	if r.err != nil {
		attrs = append(attrs, slog.String("ingest_err", r.err.Error()))
	}
	if alarm != "" {
		attrs = append(attrs, slog.String("alarm", alarm))
	}
	f.opts.Logger.LogAttrs(ctx, level, "gateway asked", attrs...)
}

// cut shortens a name, which is plain text, for the log.
func cut(s string) string { return s[:min(len(s), maxLoggedID)] }

// alarms says when a source may be reported again.
type alarms struct {
	elapsed func() time.Duration
	mu      sync.Mutex
	last    map[string]time.Duration
}

// alarmEvery is how long after an alarm about a source the next one follows.
const alarmEvery = 10 * time.Minute

func (a *alarms) due(source string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.elapsed()
	if last, ok := a.last[source]; ok && now-last < alarmEvery {
		return false
	}
	a.last[source] = now
	return true
}
