package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// quietFor is how long nothing may happen, and quietWithin how long that may
// take to come about. Both are the format's.
const (
	quietFor    = 300 * time.Millisecond
	quietWithin = 30 * time.Second
	pollEvery   = 20 * time.Millisecond
)

// quiet waits until no River job is running or due and no claim is live, for
// quietFor. Three things are seen for what they are:
//
//   - a job whose process was killed is not running, whatever its row says until
//     River's rescuer has looked;
//   - a promise to look at an order, or to ask a gateway about an object, that is
//     overdue is work to do, since the ticker is about to renew it, unless a fault
//     or the merchant keeps it so; one for later is not, save that a gateway
//     which did not know an object yet is asked again within seconds;
//   - the time until a dead process's claim lapses is no part of quietWithin;
//
// and without any worker, jobs that are due are nobody's.
func (p *player) quiet(ctx context.Context) error {
	return p.until(ctx, func(a activity) (string, error) { return p.busy(ctx, a) })
}

// settle is what happens after the last step: quiet, and if workers run, no
// order owes its merchant anything any more.
func (p *player) settle(ctx context.Context) error {
	if err := p.faults.settled(); err != nil {
		return err
	}
	if len(p.Program.Running("work")) == 0 {
		return p.quiet(ctx)
	}
	return p.until(ctx, func(a activity) (string, error) {
		if busy, err := p.busy(ctx, a); busy != "" || err != nil {
			return busy, err
		}
		owed, err := p.owed(ctx)
		return strings.Join(owed, ", "), err
	})
}

// busy says what still goes on; empty: nothing.
func (p *player) busy(ctx context.Context, a activity) (string, error) {
	workers := len(p.Program.Running("work")) > 0
	jobs := slices.DeleteFunc(slices.Clone(a.Jobs), func(job string) bool {
		key, _, _ := strings.Cut(job, " ")
		return p.orphans.has(key) || !workers
	})
	var busy []string
	if len(jobs) > 0 {
		busy = append(busy, "jobs "+strings.Join(jobs, ", "))
	}
	if a.Claims > 0 {
		busy = append(busy, fmt.Sprintf("%d live claims", a.Claims))
	}
	if a.Overdue > 0 && workers && p.merchant == "ok" {
		broken, err := p.faults.active(ctx)
		if err != nil {
			return "", err
		}
		if !broken {
			busy = append(busy, fmt.Sprintf("%d orders or objects to look at", a.Overdue))
		}
	}
	return strings.Join(busy, "; "), nil
}

// until polls until nothing goes on for quietFor.
func (p *player) until(ctx context.Context, look func(activity) (string, error)) error {
	start := now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var since time.Time
	for {
		a, err := p.activity(ctx)
		if err != nil {
			return err
		}
		busy, err := look(a)
		if err != nil {
			return err
		}
		at := now()
		switch {
		case busy != "" && at.Sub(latest(start, p.orphans.lapse())) > p.quietWithin:
			return fmt.Errorf("not quiet within %s: %s", p.quietWithin, busy)
		case busy != "":
			since = time.Time{}
		case since.IsZero():
			since = at
		case at.Sub(since) >= quietFor:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
