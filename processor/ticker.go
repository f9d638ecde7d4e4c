package processor

import (
	"context"
	"time"
)

// ticker makes good for looks that were promised and did not come: jobs that a person deleted, that River gave up, or
// that a killed process was running; jobs that were turned away; and claims that lapsed.
type ticker struct {
	w      *Workers
	silent map[string]bool // accounts reported as having no endpoint
}

// maxClaims is how many lapsed claims a tick comes back to: what a dozen processes can have had out.
const maxClaims = 256

func (t *ticker) tick(ctx context.Context) error {
	w := t.w
	claims, err := w.store.RenewClaims(ctx, maxClaims)
	if err != nil {
		return err
	}
	w.metrics.renewed.Add(float64(claims))
	due, err := w.store.LapsedAccounts(ctx, w.opts.TickGrace)
	if err != nil {
		return err
	}
	var (
		oldest time.Duration
		silent = map[string]bool{}
		most   = map[string]int{}
	)
	for _, d := range due {
		oldest = max(oldest, d.Since)
		endpoint, ok := w.endpoint(d.Account)
		switch {
		case !ok:
			silent[d.Account] = true // a job would only be turned away
		case !w.circuits.Closed(endpoint):
			most[d.Account] = 1 // for the probe
		default:
			most[d.Account] = w.opts.TickLimit
		}
	}
	w.metrics.overdue.Set(oldest.Seconds())
	t.report(ctx, silent)
	renewed, err := w.store.Renew(ctx, most, w.opts.TickGrace)
	if err != nil {
		return err
	}
	for account, n := range renewed {
		w.metrics.renewed.Add(float64(n))
		if n == w.opts.TickLimit {
			w.share.TurnedAway(account) // there are more: its workers go on to them
		}
	}
	dead, err := w.store.DeadCount(ctx)
	if err != nil {
		return err
	}
	w.metrics.dead.Set(float64(dead))
	return nil
}

// report says once for every account that its effects wait for an endpoint.
func (t *ticker) report(ctx context.Context, silent map[string]bool) {
	for account := range silent {
		if !t.silent[account] {
			t.w.opts.Logger.WarnContext(ctx, "effects are due and the account has no callback", "account_id", account)
		}
	}
	t.silent = silent
	t.w.metrics.silent.Set(float64(len(silent)))
}
