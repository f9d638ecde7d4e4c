package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/store"
)

// deliver is the way of one delivery. It returns nil where the answer is 200, and fills l as it goes.
func (rc *Receiver) deliver(w http.ResponseWriter, r *http.Request, l *record) *refusal {
	src, ok := rc.sources(chi.URLParam(r, "source"))
	if !ok {
		// The id is not logged: what stands there may be a secret in the wrong place.
		return &refusal{status: http.StatusNotFound, reason: reasonUnknownSource}
	}
	l.source, l.account, l.gateway = src.ID, src.Account, src.Gateway
	gw, ok := rc.opts.Gateways(src.Gateway)
	if !ok {
		return &refusal{
			status: http.StatusServiceUnavailable, reason: reasonNoGateway,
			err: fmt.Errorf("source %s names the gateway %q, which does not exist", src.ID, src.Gateway),
		}
	}

	// The gateway's clock started before ours. A request's own context ends when the client hangs up, and in net/http
	// also when the read time-out passes after the body was read; a delivery that got in is finished regardless, so
	// that the gateway's next try finds it done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience(gw.Deadline))
	defer cancel()

	body, held, refused := rc.readBody(w, r, src)
	defer rc.held.give(held)
	if refused != nil {
		return refused
	}
	l.read, l.bytes = true, len(body)

	now := rc.opts.Now()
	d := gateway.Delivery{Method: r.Method, Header: r.Header, Body: body, ReceivedAt: now}
	if err := gw.Verify(src, d, now); err != nil {
		return rc.unverified(l, err)
	}

	select {
	case rc.slots <- struct{}{}:
		defer func() { <-rc.slots }()
	default:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonOverload}
	}
	rc.metrics.inFlight.Inc()
	defer rc.metrics.inFlight.Dec()

	events, parseErr := gw.Events(src, d)
	if parseErr == nil && len(events) == 0 {
		parseErr = errors.New("a delivery without an event")
	}
	if parseErr != nil {
		if !gw.QuarantineUnreadable {
			return unreadable(parseErr)
		}
		events = quarantined(gw.Realm(src), body, parseErr)
	}
	return rc.commit(ctx, src, gw, d, events, l)
}

// commit ingests the events of one delivery. A delivery is answered 200 as a whole or not at all.
func (rc *Receiver) commit(ctx context.Context, src gateway.Source, gw *gateway.Gateway, d gateway.Delivery, events []order.Event, l *record) *refusal {
	id, err := uuid.NewV7()
	if err != nil {
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonIngest, err: fmt.Errorf("make a delivery id: %w", err)}
	}
	l.delivery, l.events = id, events

	began := rc.opts.Now()
	results, err := rc.ingest.Ingest(ctx, rows(src, gw, d, id, events))
	rc.metrics.ingest.WithLabelValues(gw.Name).Observe(rc.opts.Now().Sub(began).Seconds())

	switch {
	case errors.Is(err, store.ErrUnstorable):
		// It will be no better next time. Where that would block the gateway's queue, the bytes are kept.
		if !gw.QuarantineUnreadable || isQuarantined(events) {
			return unreadable(err)
		}
		return rc.commit(ctx, src, gw, d, quarantined(gw.Realm(src), d.Body, err), l)
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonDeadline, err: err}
	case err != nil:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonIngest, err: err}
	case len(results) != len(events):
		return &refusal{
			status: http.StatusServiceUnavailable, reason: reasonIngest,
			err: fmt.Errorf("%d results for %d events", len(results), len(events)),
		}
	}
	l.results, l.ackBody, l.ackType = results, gw.AckBody, gw.AckType
	return nil
}

// unverified is the refusal of a delivery whose signature does not hold. Only refused ones are counted against an
// address, so whoever signs correctly never sees a 429, whatever else comes from there.
func (rc *Receiver) unverified(l *record, err error) *refusal {
	refused := &refusal{status: http.StatusUnauthorized, reason: reasonUnverified}
	// A *signature.Error promises to hold nothing of a secret, a digest or the request. Other errors do not.
	var why *signature.Error
	if errors.As(err, &why) {
		refused.reason, refused.err = string(why.Reason), why
	}
	if wait, over := rc.refusals.count(l.remote, rc.opts.Now()); over {
		refused.status, refused.retryAfter = http.StatusTooManyRequests, wait
	}
	return refused
}

// unreadable is the refusal of a delivery that verified and that no event can be made of.
func unreadable(err error) *refusal {
	refused := &refusal{status: http.StatusBadRequest, reason: reasonUnreadable, err: err}
	var why *gateway.ParseError
	if errors.As(err, &why) {
		refused.reason = why.Code
	}
	return refused
}

// defaultDeadline stands in where a gateway does not say how long it waits.
const defaultDeadline = 10 * time.Second

// patience is how long a delivery may take: a second less than its gateway waits, so that the gateway hears a 503
// from us and not a time-out of its own.
func patience(deadline time.Duration) time.Duration {
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	if deadline <= 2*time.Second {
		return deadline / 2
	}
	return deadline - time.Second
}

// typeUnreadable is the type of the one event that stands for a body of which no event could be made.
const typeUnreadable = "unreadable"

// quarantined is a delivery that no event can be made of, as one event under the hash of its bytes: its retries are
// duplicates, and it can be evaluated again when the mapping has learned it.
func quarantined(realm string, body []byte, why error) []order.Event {
	sum := sha256.Sum256(body)
	e := order.Event{ID: "body:" + hex.EncodeToString(sum[:]), Type: typeUnreadable, Realm: realm, Broken: why.Error()}
	var parse *gateway.ParseError
	if errors.As(why, &parse) {
		e.Broken = parse.Detail
	}
	return []order.Event{e}
}

func isQuarantined(events []order.Event) bool {
	return len(events) == 1 && events[0].Type == typeUnreadable
}

// rows is what is stored of a delivery's events. All of them share one body and one set of headers.
func rows(src gateway.Source, gw *gateway.Gateway, d gateway.Delivery, id uuid.UUID, events []order.Event) []store.Event {
	header := storable(gw.Keep(d.Header))
	out := make([]store.Event, len(events))
	for i, e := range events {
		out[i] = store.Event{
			Event: e, Account: src.Account, Source: src.ID,
			Delivery: id, Payload: d.Body, Header: header, MappingVersion: gateway.MappingVersion,
			OnUnknown: store.OnUnknown(src.OnUnknownOrder), Paused: src.Paused,
		}
	}
	return out
}
