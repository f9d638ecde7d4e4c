package outbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

// WaitingStore is what a [Reconciler] needs of the store for orders that wait.
type WaitingStore interface {
	FindWaiting(ctx context.Context, c store.ReconcileClaim, realm string, after time.Time, age time.Duration, limit int) (through time.Time, more bool, err error)
	DueWaiting(ctx context.Context, c store.ReconcileClaim, realm string, limit int) ([]store.WaitingPayments, error)
	AskedWaiting(ctx context.Context, c store.ReconcileClaim, orders []uuid.UUID, base, most time.Duration, times int) error
	Waiting(ctx context.Context, c store.ReconcileClaim, limit int) ([]store.WaitingOrder, int, error)
	UncertainTransactions(ctx context.Context, account string, sources []string, age time.Duration, limit int) ([]store.UncertainTransaction, int, error)
}

// WaitingOptions are about orders whose gateway should have told by now how they go on. The zero value is ready to use.
type WaitingOptions struct {
	// StuckAfter is how long after the last event of its payment an order that is not over is asked about; the next time comes twice
	// as long after, and so on, at most AskMost, until it was asked about AskTimes. Transactions that are uncertain for longer than
	// StuckAfter are reported. Default 1 h, 7 days and 12.
	StuckAfter, AskMost time.Duration
	AskTimes            int

	// AskLimit is about how many orders a run asks at most, and AnswerLimit how many answers it looks at. Default 50 and 200.
	AskLimit, AnswerLimit int

	// ScanLimit is how many events are looked through at once for orders that wait, and ScanRounds how often a run does so. The first
	// run of a source begins ScanBack ago. Default 2000, 10 and 30 days.
	ScanLimit, ScanRounds int
	ScanBack              time.Duration
}

func (o WaitingOptions) withDefaults() WaitingOptions {
	setDefault(&o.StuckAfter, time.Hour)
	setDefault(&o.AskMost, 7*24*time.Hour)
	setDefault(&o.AskTimes, 12)
	setDefault(&o.AskLimit, 50)
	setDefault(&o.AnswerLimit, 200)
	setDefault(&o.ScanLimit, 2000)
	setDefault(&o.ScanRounds, 10)
	setDefault(&o.ScanBack, 30*24*time.Hour)
	return o
}

func (o WaitingOptions) check() error {
	var errs []error
	for name, n := range map[string]time.Duration{
		"StuckAfter": o.StuckAfter, "AskMost": o.AskMost, "ScanBack": o.ScanBack, "AskTimes": time.Duration(o.AskTimes),
		"AskLimit": time.Duration(o.AskLimit), "AnswerLimit": time.Duration(o.AnswerLimit),
		"ScanLimit": time.Duration(o.ScanLimit), "ScanRounds": time.Duration(o.ScanRounds),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; it must be 0 (default) or more", name))
		}
	}
	return errors.Join(errs...)
}

// waiting sees to orders that wait: which are new, which are to be asked about, and how all stand.
func (r *reconcileRun) waiting(ctx context.Context) error {
	if !r.req.DryRun {
		if err := r.find(ctx); err != nil {
			return err
		}
		if err := r.askWaiting(ctx); err != nil {
			return err
		}
	}
	if r.asks != nil {
		r.note(r.asks.Error())
	}
	var err error
	if r.report.Orders, r.report.Open, err = r.store.Waiting(ctx, r.claim, store.MaxFindings); err != nil {
		return err
	}
	r.report.Transactions, r.report.Uncertain, err = r.store.UncertainTransactions(ctx, r.source.Account, r.same, r.opts.StuckAfter, store.MaxFindings)
	return err
}

// find looks for orders that wait since the last time.
func (r *reconcileRun) find(ctx context.Context) error {
	r.scanned = r.claim.Scanned
	if r.scanned.IsZero() {
		r.scanned = r.claim.Now.Add(-r.opts.ScanBack)
	}
	for range r.opts.ScanRounds {
		through, more, err := r.store.FindWaiting(ctx, r.claim, r.realm, r.scanned, r.opts.StuckAfter, r.opts.ScanLimit)
		if err != nil {
			return err
		}
		r.scanned = through
		if !more {
			return nil
		}
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// askWaiting has the gateway asked about orders whose turn it is.
func (r *reconcileRun) askWaiting(ctx context.Context) error {
	limit := r.opts.AskLimit
	if r.asks != nil {
		limit = 0 // those that wait no more are forgotten all the same
	}
	due, err := r.store.DueWaiting(ctx, r.claim, r.realm, limit)
	if err != nil || len(due) == 0 {
		return err
	}
	for _, w := range due {
		names := r.objectsOf(w)
		if err := r.announce(ctx, names, asksFor(names, w.Order)); err != nil {
			return err
		}
		if len(names) > 0 {
			r.report.Asked++
		}
		if err := r.store.AskedWaiting(ctx, r.claim, []uuid.UUID{w.Order}, r.opts.StuckAfter, r.opts.AskMost, r.opts.AskTimes); err != nil {
			return err
		}
	}
	return r.save(ctx)
}
