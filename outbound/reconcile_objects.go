package outbound

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// takeObjects announces what stood in the list and has to be asked about, save what was asked about since. What stands in it again may
// have changed again, and is only not counted twice.
func (r *reconcileRun) takeObjects(ctx context.Context, objects []gateway.Object, span gateway.Span) error {
	names, again := make([]string, 0, len(objects)), map[string]bool{}
	for _, o := range objects {
		name := o.String()
		if !slices.Contains(names, name) {
			names = append(names, name)
			again[name] = r.seen[name]
			r.seen[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	wanted, fresh, err := r.store.ToAsk(ctx, r.key(), names, span.Until.Add(r.opts.Skew))
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case again[name]:
		case slices.Contains(wanted, name):
			r.report.Listed++
			r.report.Announced++
		default:
			r.report.Listed++
			r.report.Duplicates++
		}
	}
	if r.req.DryRun {
		return nil
	}
	asks := make([]store.ReconcileAsk, len(fresh))
	for i, name := range fresh {
		asks[i].Object = name
	}
	return r.announce(ctx, wanted, asks)
}

// announce has objects asked about, and remembers those whose answers are of interest.
func (r *reconcileRun) announce(ctx context.Context, names []string, asks []store.ReconcileAsk) error {
	if len(names) == 0 {
		return nil
	}
	// First: an answer that comes at once must find it.
	if err := r.store.NoteAsks(ctx, r.key(), asks); err != nil {
		return err
	}
	list := make([]store.Announcement, len(names))
	for i, name := range names {
		list[i] = store.Announcement{Account: r.source.Account, Source: r.source.ID, Gateway: r.gw.Name, Object: name}
	}
	announced, err := r.store.Announce(ctx, list)
	if err != nil {
		return err
	}
	if announced.Dropped > 0 {
		return fmt.Errorf("too many objects wait to be asked about (fetch.open): %d more do not fit", announced.Dropped)
	}
	return nil
}

// answers counts what the answers brought that earlier runs had asked for.
func (r *reconcileRun) answers(ctx context.Context) error {
	got, err := r.store.TakeAnswers(ctx, r.claim, r.realm, r.opts.AnswerLimit)
	for _, h := range got.Healed {
		r.healed(h, false)
	}
	for _, c := range got.Contradictions {
		r.report.Unexplained++
		r.metrics.unexplained.WithLabelValues(r.source.ID).Inc()
		if len(r.report.Contradictions) < store.MaxFindings {
			r.report.Contradictions = append(r.report.Contradictions, c)
		}
	}
	return err
}

// objectsOf are what to ask about to learn how an order's payments stand.
func (r *reconcileRun) objectsOf(w store.WaitingPayments) []string {
	var told []gateway.Object
	for _, text := range w.Objects {
		if o, ok := gateway.ParseObject(text); ok {
			told = append(told, o)
		}
	}
	var names []string
	for _, ids := range w.Payments {
		for _, o := range r.gw.AboutPayment(r.source, ids, told) {
			names = append(names, o.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// asksFor notes which order each object is asked about for.
func asksFor(names []string, id uuid.UUID) []store.ReconcileAsk {
	asks := make([]store.ReconcileAsk, len(names))
	for i, name := range names {
		asks[i] = store.ReconcileAsk{Object: name, Order: id}
	}
	return asks
}
