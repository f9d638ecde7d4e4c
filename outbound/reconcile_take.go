package outbound

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// atOnce is how many events of a list one transaction takes in, more or less.
const atOnce = 64

// listed is one delivery of a list: its events, as they would be entered.
type listed struct {
	delivery gateway.Delivery
	rows     []store.Event
	differs  []bool // for each row, where that is known: it is known otherwise
}

// take takes a page in, as if webhooks had brought it: what is known is left alone, what is new is ingested and counted, objects are
// announced. On an error some of it may have been taken in, which is repeated without harm.
func (r *reconcileRun) take(ctx context.Context, page gateway.Page, span gateway.Span) error {
	objects := page.Objects
	var all []listed
	for _, d := range page.Deliveries {
		one, named, err := r.read(d)
		if err != nil {
			return err
		}
		objects = append(objects, named...)
		if len(one.rows) > 0 {
			all = append(all, one)
			r.report.Listed += len(one.rows)
		}
	}
	if err := r.takeEvents(ctx, all); err != nil {
		return err
	}
	return r.takeObjects(ctx, objects, span)
}

// read makes events of a delivery, and finds what it names to be asked about. Events that carry no fact are left out: a webhook need
// not bring them either. What cannot be read is kept aside.
func (r *reconcileRun) read(d gateway.Delivery) (listed, []gateway.Object, error) {
	events, err := r.gw.Read(r.source, d)
	var objects []gateway.Object
	if err == nil {
		objects, err = r.gw.Objects(r.source, d)
	}
	if err != nil {
		one, err := r.keptAside(d, err)
		return one, nil, err
	}
	one, err := r.rows(d, events)
	return one, objects, err
}

// keptAside is a delivery that no event can be made of, as one event under the hash of its bytes.
func (r *reconcileRun) keptAside(d gateway.Delivery, why error) (listed, error) {
	sum := sha256.Sum256(d.Body)
	e := order.Event{ID: "body:" + hex.EncodeToString(sum[:]), Type: typeUnreadable, Realm: r.realm, Broken: why.Error()}
	var parse *gateway.ParseError
	if errors.As(why, &parse) {
		e.Broken = parse.Detail
	}
	return r.rows(d, []order.Event{e})
}

// rows is what is stored of a delivery's events.
func (r *reconcileRun) rows(d gateway.Delivery, events []order.Event) (listed, error) {
	one := listed{delivery: d}
	id, err := uuid.NewV7()
	if err != nil {
		return one, fmt.Errorf("make a delivery id: %w", err)
	}
	for _, e := range events {
		if e.Ignored != "" || r.seen[e.ID] {
			continue
		}
		r.seen[e.ID] = true
		one.rows = append(one.rows, store.Event{
			Event: e, Account: r.source.Account, Source: r.source.ID, Delivery: id, Payload: d.Body, Header: r.gw.Listed(d, r.now()),
			MappingVersion: gateway.MappingVersion, OnUnknown: store.OnUnknown(r.source.OnUnknownOrder), Paused: r.source.Paused,
		})
	}
	return one, nil
}

func flat(all []listed) (rows []store.Event) {
	for _, one := range all {
		rows = append(rows, one.rows...)
	}
	return rows
}

// takeEvents finds out which events are new, and takes these in.
func (r *reconcileRun) takeEvents(ctx context.Context, all []listed) error {
	known, err := r.known(ctx, all)
	if err != nil {
		return err
	}
	var (
		wanted []listed
		rows   int
		n      int
	)
	for _, one := range all {
		fresh := listed{delivery: one.delivery}
		for _, row := range one.rows {
			what := known[n]
			if n++; what == store.EventKnown || what == store.EventReworded {
				r.report.Duplicates++
				continue
			}
			fresh.rows, fresh.differs = append(fresh.rows, row), append(fresh.differs, what == store.EventDiffers)
		}
		if len(fresh.rows) == 0 {
			continue
		}
		wanted, rows = append(wanted, fresh), rows+len(fresh.rows)
		if rows >= atOnce {
			if err := r.ingestAll(ctx, wanted); err != nil {
				return err
			}
			wanted, rows = nil, 0
		}
	}
	return r.ingestAll(ctx, wanted)
}

// known says what is known of each event, in order. A delivery that cannot be stored is replaced by one that is kept aside.
func (r *reconcileRun) known(ctx context.Context, all []listed) ([]store.Knowledge, error) {
	for {
		known, err := r.store.KnownEvents(ctx, r.same, flat(all))
		var bad *store.EventError
		if !errors.As(err, &bad) || !errors.Is(err, store.ErrUnstorable) {
			return known, err
		}
		at, n := 0, bad.Index
		for n >= len(all[at].rows) {
			n -= len(all[at].rows)
			at++
		}
		if all[at].rows[n].Type == typeUnreadable {
			return nil, err
		}
		if all[at], err = r.keptAside(all[at].delivery, bad.Err); err != nil {
			return nil, err
		}
	}
}

// ingestAll takes deliveries in together; where one of them cannot be, each by itself.
func (r *reconcileRun) ingestAll(ctx context.Context, all []listed) error {
	if len(all) == 0 {
		return nil
	}
	rows := flat(all)
	if r.req.DryRun {
		r.tally(rows, foreseen(all))
		return nil
	}
	results, err := r.ingestRows(ctx, rows)
	switch {
	case err == nil:
		r.tally(rows, results)
		return nil
	case !errors.Is(err, store.ErrUnstorable):
		return fmt.Errorf("what stood in the list was not ingested: %w", err)
	case len(all) > 1:
		for _, one := range all {
			if err := r.ingestAll(ctx, []listed{one}); err != nil {
				return err
			}
		}
		return nil
	case rows[0].Type == typeUnreadable:
		return fmt.Errorf("what stood in the list was not ingested: %w", err)
	}
	aside, err := r.keptAside(all[0].delivery, err)
	if err != nil {
		return err
	}
	return r.ingestAll(ctx, []listed{aside})
}

func (r *reconcileRun) ingestRows(ctx context.Context, rows []store.Event) ([]store.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.IngestTimeout)
	defer cancel()
	results, err := r.ingest.Ingest(ctx, rows)
	if err == nil && len(results) != len(rows) {
		err = fmt.Errorf("%d results for %d events", len(results), len(rows))
	}
	return results, err
}

// foreseen is as much as a dry run knows of what would be: what an event would do to an order is not among it.
func foreseen(all []listed) (results []store.Result) {
	for _, one := range all {
		for i, e := range one.rows {
			var res store.Result
			switch {
			case e.Broken != "":
				res.Outcome = store.Quarantined
			case one.differs[i]:
				res.Reason = store.ReasonIDReused
			}
			results = append(results, res)
		}
	}
	return results
}

// tally counts what was taken in.
func (r *reconcileRun) tally(rows []store.Event, results []store.Result) {
	for i, e := range rows {
		res := results[i]
		if res.Outcome == store.Duplicate { // its webhook came first
			r.report.Duplicates++
			continue
		}
		h := store.HealedEvent{ID: e.ID, Type: e.Type, Outcome: res.Outcome}
		if res.Order != uuid.Nil {
			id := res.Order
			h.Order = &id
		}
		if !e.At.IsZero() {
			at := e.At
			late := max(0, r.now().Sub(at))
			h.OccurredAt, h.Late = &at, int64(late/time.Second)
		}
		r.healed(h, res.Reason == store.ReasonIDReused)
	}
}

// healed counts something that no webhook had brought.
func (r *reconcileRun) healed(h store.HealedEvent, differs bool) {
	switch {
	case h.Outcome == store.Quarantined:
		r.report.KeptAside++
	case differs:
		r.report.Differs++
	default:
		r.report.Healed++
		if h.OccurredAt != nil {
			r.late = append(r.late, time.Duration(h.Late)*time.Second)
		}
	}
	if h.Outcome == store.Applied {
		r.report.Moved++
	}
	if len(r.report.Events) < store.MaxFindings {
		r.report.Events = append(r.report.Events, h)
	}
	if !r.req.DryRun {
		r.metrics.healed.WithLabelValues(r.source.ID, string(h.Outcome)).Inc()
	}
}
