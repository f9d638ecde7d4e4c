package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/paidonce/paidonce/store"
)

// ReconcileRequest is what a person asks for.
type ReconcileRequest struct {
	// Since is from where on lists are read. Zero: from where the last run has come to, or from the first event of a source.
	Since time.Time

	// DryRun writes nothing and asks nobody about anything: it reads the list and says what in it is not known.
	DryRun bool

	// Calls bounds the calls to the list. Default: [ReconcileOptions].Calls.
	Calls int

	// Progress hears how much of the time that is gone through was read.
	Progress func(done, all time.Duration)

	grace time.Duration
	cause store.ReconcileCause
}

// ErrNotReconciled says that no source of that id is reconciled: it is not configured, or another one that knows the same payments is.
var ErrNotReconciled = errors.New("this source is not reconciled by itself")

// Sources returns the ids of the sources that are reconciled, and what is noted of all.
func (r *Reconciler) Sources() (ids []string, notes []store.ReconcileKey) {
	units, keys := r.plan()
	for _, u := range units {
		ids = append(ids, u.source.ID)
	}
	return ids, keys
}

// Reconcile runs over a source now, whether it is due or not. What the run could not do its report says; the error is of the database,
// a [*store.ReconcileBusyError], or [ErrNotReconciled].
func (r *Reconciler) Reconcile(ctx context.Context, source string, req ReconcileRequest) (store.ReconcileRun, error) {
	units, _ := r.plan()
	at := slices.IndexFunc(units, func(u unit) bool { return u.source.ID == source })
	if at < 0 {
		return store.ReconcileRun{}, fmt.Errorf("source %s: %w", source, ErrNotReconciled)
	}
	req.cause = store.ReconcileByCommand
	return r.run(ctx, units[at], req)
}

// reconcileRun is one run over one source.
type reconcileRun struct {
	*Reconciler
	unit
	req   ReconcileRequest
	claim store.ReconcileClaim
	began time.Duration // when the claim was had

	reached, scanned time.Time
	report           store.ReconcileReport
	late             []time.Duration // of what was healed

	// What stood in a span that was halved comes again: it is known here by its id until seenTo was passed. A dry run, in which nothing
	// becomes known, remembers all of it.
	seen   map[string]bool
	seenTo time.Time
}

// now is the database's time, or a little before.
func (r *reconcileRun) now() time.Time { return r.claim.Now.Add(r.opts.Elapsed() - r.began) }

// run claims a source and works on it.
func (r *Reconciler) run(ctx context.Context, u unit, req ReconcileRequest) (store.ReconcileRun, error) {
	start := store.ReconcileStart{ReconcileKey: u.reconcileKey(), Cause: req.cause, Lease: r.opts.Lease, Since: req.Since, Same: u.same}
	if u.gw.Listing != nil {
		start.Reach = u.gw.Listing.Reach
	}
	if req.Calls == 0 {
		req.Calls = r.opts.Calls
	}
	one := &reconcileRun{Reconciler: r, unit: u, req: req, seen: map[string]bool{}}
	begin := r.store.ClaimReconcile
	if req.DryRun {
		begin = r.store.ReconcileOutlook
	}
	var err error
	if one.claim, err = begin(ctx, start); err != nil {
		return store.ReconcileRun{}, err
	}
	one.began = r.opts.Elapsed()
	end := one.guarded(ctx)
	run := store.ReconcileRun{
		Account: u.source.Account, ID: one.claim.Run, Source: u.source.ID, Gateway: u.gw.Name, Cause: req.cause, Result: end.Result,
		StartedAt: one.claim.Now, ReconcileReport: end.Report,
	}
	if req.DryRun {
		return run, nil
	}
	took := r.opts.Elapsed() - one.began
	ended := one.claim.Now.Add(took)
	run.EndedAt = &ended
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.SettleTimeout)
	defer cancel()
	if err := r.store.EndReconcile(settle, one.claim, end); err != nil {
		r.metrics.ended(u, store.ReconcileLost)
		return run, err
	}
	r.metrics.ended(u, end.Result)
	one.log(ctx, end, took)
	return run, nil
}

// guarded is work, where a panic is a failure like another.
func (r *reconcileRun) guarded(ctx context.Context) (end store.ReconcileEnd) {
	defer func() {
		if v := recover(); v != nil {
			// The text of a runtime error holds types and indices; any other value may quote the answer.
			text := fmt.Sprintf("%T", v)
			if bug, ok := v.(runtime.Error); ok {
				text = bug.Error()
			}
			r.opts.Logger.ErrorContext(ctx, "panic while a source was reconciled", "source", r.source.ID, "panic", text, "stack", string(debug.Stack()))
			end = r.ended(ctx, errors.New("a panic in this program"))
		}
	}()
	return r.ended(ctx, r.work(ctx))
}

// work does all that there is to do. One part that fails holds up no other.
func (r *reconcileRun) work(ctx context.Context) error {
	var answered, listed error
	if !r.req.DryRun { // first: what is announced again by what follows would have to be answered again
		answered = r.answers(ctx)
	}
	if r.lists == nil {
		listed = r.list(ctx)
	} else {
		r.note(r.lists.Error())
	}
	if errors.Is(listed, store.ErrReconcileLost) {
		return listed
	}
	waiting := r.waiting(ctx)
	for _, err := range []error{listed, answered, waiting} {
		if err != nil {
			return err
		}
	}
	return nil
}

// errMore ends a run that has done as much as it may.
var errMore = errors.New("there is more")

// ended is how the run ends, and when the next one is due.
func (r *reconcileRun) ended(ctx context.Context, err error) store.ReconcileEnd {
	r.lateness()
	end := store.ReconcileEnd{Result: store.ReconcileDone, Wait: r.opts.Every}
	var e *Error
	switch {
	case err == nil:
	case errors.Is(err, errMore):
		end.Result, end.Wait = store.ReconcileMore, 0
	case ctx.Err() != nil:
		end.Result, end.Wait = store.ReconcileStopped, 0
	default:
		end.Result, end.Wait, r.report.Error = store.ReconcileFailed, r.opts.again(r.claim.Failures), err.Error()
		if errors.As(err, &e) && e.Kind == Retry && e.After > 0 {
			end.Hold = e.After
			end.Wait = max(end.Wait, e.After)
		}
	}
	end.ReconcileProgress = store.ReconcileProgress{Reached: r.reached, Scanned: r.scanned, Report: r.report}
	return end
}

// again is how long after a run failed the next one begins, after so many that failed before it.
func (o ReconcileOptions) again(before int) time.Duration {
	wait := o.Every
	for range before {
		if wait *= 2; wait >= time.Hour {
			return max(o.Every, time.Hour)
		}
	}
	return wait
}

func (r *reconcileRun) note(text string) {
	if !slices.Contains(r.report.Notes, text) && len(r.report.Notes) < store.MaxFindings {
		r.report.Notes = append(r.report.Notes, text)
	}
}

// save records how far the run has come. In a dry run there is nothing to record.
func (r *reconcileRun) save(ctx context.Context) error {
	if r.req.DryRun {
		return nil
	}
	r.lateness()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.SettleTimeout)
	defer cancel()
	return r.store.SaveReconcile(ctx, r.claim, store.ReconcileProgress{Reached: r.reached, Scanned: r.scanned, Report: r.report})
}

// lateness sums up how late what was healed was.
func (r *reconcileRun) lateness() {
	if len(r.late) == 0 {
		return
	}
	slices.Sort(r.late)
	r.report.LateP50, r.report.LateMax = int64(r.late[(len(r.late)-1)/2]/time.Second), int64(r.late[len(r.late)-1]/time.Second)
}

// log writes the one line of a run.
func (r *reconcileRun) log(ctx context.Context, end store.ReconcileEnd, took time.Duration) {
	level, alarm := slog.LevelInfo, ""
	rep := &end.Report
	switch {
	case rep.Unexplained > 0:
		level, alarm = slog.LevelError, "a gateway says otherwise than our ledger"
	case end.Result == store.ReconcileFailed:
		level = slog.LevelWarn
		if end.Hold == 0 && r.alarms.due(r.source.ID) {
			level, alarm = slog.LevelError, "the gateway's list is not read: what webhooks lose is not found"
		}
	case rep.Moved > 0, rep.Differs > 0, rep.KeptAside > 0:
		level = slog.LevelWarn
	case rep.Calls+rep.Healed+rep.Open+rep.Asked == 0: // nobody was asked, and nothing waits
		level = slog.LevelDebug
	}
	if !r.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("account", r.source.Account), slog.String("source", r.source.ID), slog.String("gateway", r.gw.Name),
		slog.String("cause", string(r.req.cause)), slog.String("result", string(end.Result)), slog.Duration("duration", took),
		slog.Int("calls", rep.Calls), slog.Int("listed", rep.Listed), slog.Int("healed", rep.Healed), slog.Int("moved", rep.Moved),
		slog.Int("asked", rep.Asked), slog.Int("open", rep.Open),
	}
	if rep.Healed > 0 {
		attrs = append(attrs, slog.Int64("late_max_seconds", rep.LateMax))
	}
	for _, a := range []slog.Attr{
		slog.Int("differs", rep.Differs), slog.Int("kept_aside", rep.KeptAside), slog.Int("announced", rep.Announced),
		slog.Int("unexplained", rep.Unexplained), slog.Int("uncertain", rep.Uncertain),
	} {
		if a.Value.Int64() > 0 {
			attrs = append(attrs, a)
		}
	}
	if rep.Error != "" {
		attrs = append(attrs, slog.String("err", rep.Error), slog.Duration("again_in", end.Wait))
	}
	if alarm != "" {
		attrs = append(attrs, slog.String("alarm", alarm))
	}
	r.opts.Logger.LogAttrs(ctx, level, "source reconciled", attrs...)
}
