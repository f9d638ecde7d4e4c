package outbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// list reads what happened since the cursor and takes it in. The cursor follows behind: to what can be missing from the list no more,
// whatever the gateway's clock is.
func (r *reconcileRun) list(ctx context.Context) error {
	from := r.from()
	w := newWalk(from, r.now().Add(-r.req.grace), r.opts.Span, r.opts.MinSpan, r.opts.MaxSpan)
	began := w.at
	r.report.From = &began
	for !w.over() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case r.report.Calls >= r.req.Calls:
			return errMore
		}
		asked, span := r.now(), w.span()
		page, err := r.page(ctx, span, "")
		if err != nil {
			return err
		}
		if page.Next != "" && w.halve() {
			if span.Until.After(r.seenTo) {
				r.seenTo = span.Until
			}
			if err := r.save(ctx); err != nil { // what was on the page is taken in, and the claim kept
				return err
			}
			continue
		}
		if err := r.pages(ctx, span, page.Next); err != nil {
			return err
		}
		w.next()
		if !r.req.DryRun && !w.at.Before(r.seenTo) {
			clear(r.seen)
		}
		r.reach(w.at, asked)
		if err := r.save(ctx); err != nil {
			return err
		}
		if r.req.Progress != nil {
			r.req.Progress(w.at.Sub(began), w.end.Sub(began))
		}
	}
	return nil
}

// from is where the list is read from.
func (r *reconcileRun) from() time.Time {
	listing := r.gw.Listing
	overlap := listing.Delay + r.opts.Skew
	from := r.claim.Reached
	switch {
	case !from.IsZero():
	case !r.claim.First.IsZero(): // what happened before it may have been lost, too
		from = r.claim.First.Add(-overlap)
	default:
		from = r.claim.Now.Add(-overlap - r.req.grace)
	}
	oldest := r.claim.Now.Add(-listing.Reach)
	if listing.Reach == 0 || !from.Before(oldest) {
		return from
	}
	if !r.claim.Reached.IsZero() {
		r.note(fmt.Sprintf("%s's list goes back to %s: what happened before, since %s, is not found in it any more",
			r.gw.Title, oldest.UTC().Format(time.RFC3339), from.UTC().Format(time.RFC3339)))
	}
	return oldest
}

// reach moves the cursor: everything up to the given time was read by a call that began then.
func (r *reconcileRun) reach(until, asked time.Time) {
	if safe := asked.Add(-r.gw.Listing.Delay - r.opts.Skew); until.After(safe) {
		until = safe
	}
	if until.After(r.reached) && until.After(r.claim.Reached) {
		r.reached = until
		r.report.Until = &until
	}
}

// pages reads the further pages of a span that cannot be halved any more.
func (r *reconcileRun) pages(ctx context.Context, span gateway.Span, next string) error {
	for n := 1; next != ""; n++ {
		if n >= r.opts.Pages {
			return &Error{Kind: Refused, gateway: r.gw.Name, text: fmt.Sprintf("its list has more than %d pages for %s", r.opts.Pages, span.Until.Sub(span.From))}
		}
		page, err := r.page(ctx, span, next)
		if err != nil {
			return err
		}
		if page.Next == next {
			return &Error{Kind: Refused, gateway: r.gw.Name, text: "a page of its list is followed by itself"}
		}
		if err := r.save(ctx); err != nil {
			return err
		}
		next = page.Next
	}
	return nil
}

// page reads a page and takes it in.
func (r *reconcileRun) page(ctx context.Context, span gateway.Span, token string) (gateway.Page, error) {
	call, err := r.gw.Listing.Call(r.source, span, token)
	if err != nil {
		return gateway.Page{}, fmt.Errorf("the call for %s's list cannot be made: %w", r.gw.Name, err)
	}
	asked := r.now()
	body, err := r.ask(ctx, call)
	if err != nil {
		return gateway.Page{}, err
	}
	page, err := r.gw.Listing.Read(r.source, gateway.Answer{Body: body, Started: asked})
	if err != nil {
		return gateway.Page{}, fmt.Errorf("a page of %s's list cannot be read: %w", r.gw.Name, err)
	}
	return page, r.take(ctx, page, span)
}

// tries is how often a call is made that has to wait a little for its turn.
const tries = 20

// ask makes a call, and waits in between where the gateway or the source's pace wants it, but not for long.
func (r *reconcileRun) ask(ctx context.Context, call gateway.Call) ([]byte, error) {
	for try := 1; ; try++ {
		body, err := r.askOnce(ctx, call)
		var e *Error
		turnedAway := errors.As(err, &e) && e.Kind == Retry && e.After > 0
		if err == nil || !turnedAway || e.Status != 0 {
			r.report.Calls++
		}
		if !turnedAway || e.After > r.opts.MaxPause || try == tries {
			return body, err
		}
		if err := r.opts.Pause(ctx, e.After); err != nil {
			return nil, err
		}
		if err := r.save(ctx); err != nil { // the lease goes on
			return nil, err
		}
	}
}

func (r *reconcileRun) askOnce(ctx context.Context, call gateway.Call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Deadline)
	defer cancel()
	return r.lister.List(ctx, r.gw, r.source, call)
}
