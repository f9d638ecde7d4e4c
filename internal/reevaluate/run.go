package reevaluate

import (
	"context"

	"github.com/paidonce/paidonce/store"
)

// Work is what is to be read again.
type Work struct {
	Filter store.ReevaluateFilter
	Apply  bool // otherwise it is a dry run
	Limit  int  // see [store.ReevaluateOptions]

	// Each, if set, is told of every group of orders when it is done.
	Each func(store.Reevaluated) error
}

// Run has a store read kept bytes again, and has the gateways asked about what events only name today. It returns all that
// came of it; with an error, what came of it until then.
func (r Reader) Run(ctx context.Context, st *store.Store, w Work) (store.Reevaluated, error) {
	var out store.Reevaluated
	err := st.Reevaluate(ctx, store.ReevaluateOptions{
		Filter: w.Filter, Read: r.Read, Same: Same, Apply: w.Apply, Limit: w.Limit,
		Each: func(part store.Reevaluated) error {
			out.Read += part.Read
			out.Orders, out.Events = append(out.Orders, part.Orders...), append(out.Events, part.Events...)
			out.Entered, out.Skipped = append(out.Entered, part.Entered...), append(out.Skipped, part.Skipped...)
			if w.Each != nil {
				if err := w.Each(part); err != nil {
					return err
				}
			}
			if w.Apply {
				return r.announce(ctx, st, part)
			}
			return ctx.Err()
		},
	})
	return out, err
}

// announce has the gateways asked about what events only name today.
func (r Reader) announce(ctx context.Context, st *store.Store, part store.Reevaluated) error {
	lists := map[store.SourceKey][]store.Announcement{}
	add := func(account, source, object string) {
		if object != "" {
			k := store.SourceKey{Account: account, ID: source}
			lists[k] = append(lists[k], store.Announcement{
				Account: account, Source: source, Gateway: r.Config.Accounts[account].Sources[source].Gateway, Object: object,
			})
		}
	}
	for _, ev := range part.Events {
		add(ev.Account, ev.Source, ev.After.Fetch)
	}
	for _, ev := range part.Entered {
		add(ev.Account, ev.Source, ev.Fetch)
	}
	for _, list := range lists {
		if _, err := st.Announce(ctx, list); err != nil {
			return err
		}
	}
	return nil
}
