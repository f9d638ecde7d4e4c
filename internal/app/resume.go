package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/paidonce/paidonce/store"
)

// resumeEvery is how often sources that are not paused are looked at for events
// that were stored while they were. Once would do, were it not for another
// process, in which the source is still paused for a moment longer.
const resumeEvery = time.Minute

// resumeSoon asks for a look now.
func (p *program) resumeSoon() {
	select {
	case p.resume <- struct{}{}:
	default: // one is asked for already
	}
}

// resumeLoop folds the events of sources that are no longer paused.
func (p *program) resumeLoop(st *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		p.resumeSoon()
		tick := time.NewTicker(resumeEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-p.resume:
			case <-tick.C:
			}
			p.resumeSources(ctx, st)
		}
	}
}

func (p *program) resumeSources(ctx context.Context, st *store.Store) {
	sources := p.live.current.Load().sources
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		source := sources[id]
		if source.Paused {
			continue
		}
		n, err := st.Resume(ctx, source.Account, id)
		switch {
		case err != nil && ctx.Err() == nil:
			p.log.WarnContext(ctx, "paused events not resumed", "source", id, "events", n, "err", err)
		case n > 0:
			p.log.InfoContext(ctx, "paused events resumed", "source", id, "events", n)
		}
	}
}
