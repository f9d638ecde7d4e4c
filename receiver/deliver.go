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
		if r.Method != http.MethodPost {
			return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod}
		}
		// The id is not logged: what stands there may be a secret in the wrong place.
		return &refusal{status: http.StatusNotFound, reason: reasonUnknownSource}
	}
	gw, ok := rc.opts.Gateways(src.Gateway)
	if r.Method != http.MethodPost && (!ok || gw.Probe == nil) {
		return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod}
	}
	l.source, l.account, l.gateway = src.ID, src.Account, src.Gateway
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
	d := gateway.Delivery{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body, ReceivedAt: now}
	if gw.Probe != nil {
		if probe, ok := gw.Probe(src, d); ok {
			rc.probed(l, probe, now)
			return nil
		}
	}
	if r.Method != http.MethodPost {
		return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod}
	}
	if refused := rc.verify(ctx, gw, src, d, now, l); refused != nil {
		return refused
	}

	select {
	case rc.slots <- struct{}{}:
		defer func() { <-rc.slots }()
	default:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonOverload}
	}
	rc.metrics.inFlight.Inc()
	defer rc.metrics.inFlight.Dec()

	has, refused := rc.read(gw, src, d, l)
	if refused != nil {
		return refused
	}
	if len(has.events) > 0 {
		if refused := rc.commit(ctx, src, gw, d, has.events, l); refused != nil {
			return refused
		}
	}
	if len(has.objects) > 0 {
		if refused := rc.announce(ctx, gw, src, has.objects, l); refused != nil {
			return refused
		}
	}
	if len(has.events)+len(has.objects) == 0 {
		l.reason = gateway.NoFact
	}
	l.ackBody, l.ackType = gw.AckBody, gw.AckType
	return nil
}

// read makes events of a verified delivery, and finds what it names that must be asked about. Of a delivery that nobody
// signed no event is made, whatever its mapping says, and it is never kept.
func (rc *Receiver) read(gw *gateway.Gateway, src gateway.Source, d gateway.Delivery, l *record) (contents, *refusal) {
	var c contents
	events, err := gw.Events(src, d)
	if err == nil {
		c.objects, err = gw.Objects(src, d)
	}
	if err == nil && len(events) == 0 && !gw.Announces() {
		err = errors.New("a delivery without an event")
	}
	switch {
	case unsigned(gw) && err != nil:
		refused := unreadable(err)
		if src.Basic == "" { // nobody can be held to what he sent
			rc.count(l, refused)
		}
		return contents{}, refused
	case unsigned(gw):
		return c, nil
	case err == nil:
		c.events = events
		return c, nil
	case gw.QuarantineUnreadable:
		return contents{events: quarantined(gw.Realm(src), d.Body, err)}, nil
	default:
		return contents{}, unreadable(err)
	}
}

// contents is what a delivery says.
type contents struct {
	events  []order.Event
	objects []gateway.Object
}

// unsigned reports whether nothing that the gateway's deliveries say may be believed.
func unsigned(gw *gateway.Gateway) bool { return gw.Scheme == "" && gw.Remote == nil }

// probed answers a probe. Its note is for the log, where a stranger who sends probes must not fill it.
func (rc *Receiver) probed(l *record, p gateway.Probe, now time.Time) {
	l.ackBody, l.ackType, l.probe = p.Body, p.Type, true
	if _, over := rc.notes.count(l.remote, now); !over {
		l.note = p.Note
	}
}

// verify asks whether the delivery is genuine.
func (rc *Receiver) verify(ctx context.Context, gw *gateway.Gateway, src gateway.Source, d gateway.Delivery, now time.Time, l *record) *refusal {
	if gw.Remote == nil {
		if err := gw.Verify(src, d, now); err != nil {
			l.diagnosis = rc.diagnose(gw, src, d, now)
			return rc.unverified(l, err)
		}
		return nil
	}
	if rc.opts.Verifier == nil {
		return &refusal{
			status: http.StatusServiceUnavailable, reason: reasonNoVerifier,
			err: fmt.Errorf("deliveries of gateway %s cannot be verified without the network, and nothing was set up for that", gw.Name),
		}
	}
	select {
	case rc.verifying <- struct{}{}:
		defer func() { <-rc.verifying }()
	default:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonOverload}
	}
	err := rc.opts.Verifier.Verify(ctx, gw, src, d, now)
	var why *signature.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &why):
		return rc.unverified(l, why)
	default:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonVerifier, err: err}
	}
}

// announce asks for the objects that a delivery names to be asked about. Where a source has too many of them open, a
// gateway that signed hears 503 and comes again; of one that does not, anybody may have sent it, and that is counted.
func (rc *Receiver) announce(ctx context.Context, gw *gateway.Gateway, src gateway.Source, objects []gateway.Object, l *record) *refusal {
	if rc.opts.Announcer == nil {
		return &refusal{
			status: http.StatusServiceUnavailable, reason: reasonNoAnnouncer,
			err: fmt.Errorf("gateway %s has to be asked, and nothing was set up for that", gw.Name),
		}
	}
	list := make([]store.Announcement, len(objects))
	for i, o := range objects {
		list[i] = store.Announcement{Account: src.Account, Source: src.ID, Gateway: gw.Name, Object: o.String(), Unsigned: unsigned(gw)}
	}
	select {
	case rc.announcing <- struct{}{}:
		defer func() { <-rc.announcing }()
	case <-ctx.Done():
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonDeadline, err: ctx.Err()}
	}
	announced, err := rc.opts.Announcer.Announce(ctx, list)
	switch {
	case errors.Is(err, store.ErrBadAnnouncement):
		return unreadable(err)
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonDeadline, err: err}
	case err != nil:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonAnnounce, err: err}
	}
	l.objects, l.announced = list, announced
	if announced.Dropped > 0 && !unsigned(gw) {
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonTooManyOpen}
	}
	return nil
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
	l.results = results
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
	rc.count(l, refused)
	return refused
}

// count enters a refusal against the sender's address, and makes it a 429 where there were too many.
func (rc *Receiver) count(l *record, refused *refusal) {
	if wait, over := rc.refusals.count(l.remote, rc.opts.Now()); over {
		refused.status, refused.retryAfter = http.StatusTooManyRequests, wait
	}
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

// longestDeadline is as far as we go along with gateways that wait longer: whatever holds a delivery up for that long is
// better met by the gateway's next try, and the server's own time-out must not be the first.
const longestDeadline = 30 * time.Second

// patience is how long a delivery may take: a second less than its gateway waits, so that the gateway hears a 503
// from us and not a time-out of its own.
func patience(deadline time.Duration) time.Duration {
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	deadline = min(deadline, longestDeadline)
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
