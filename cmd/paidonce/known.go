package main

import (
	"context"
	"maps"
	"slices"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store"
)

// known refuses the name of an account or a source that neither the
// configuration nor the database has: a misspelt one would select nothing, and
// that look like success. Empty names are not given.
func (e *env) known(ctx context.Context, st *store.Store, account, source string) error {
	cfg, err := e.load()
	if err != nil {
		return err
	}
	if account != "" && !slices.Contains(cfg.AccountNames(), account) {
		if ok, err := st.Known(ctx, account, ""); err != nil {
			return err
		} else if !ok {
			return usage("there is no account %q; the configuration has %s", account, orNone(cfg.AccountNames()))
		}
	}
	if source == "" || source == config.OwnSource {
		return nil
	}
	sources := cfg.Sources()
	if s, ok := sources[source]; ok && (account == "" || s.Account == account) {
		return nil
	}
	if ok, err := st.Known(ctx, account, source); err != nil || ok {
		return err
	}
	if account != "" {
		maps.DeleteFunc(sources, func(id string, _ gateway.Source) bool { return sources[id].Account != account })
		return usage("account %s has no source %q; it has %s", account, source, orNone(slices.Sorted(maps.Keys(sources))))
	}
	return usage("there is no source %q; the configuration has %s", source, orNone(slices.Sorted(maps.Keys(sources))))
}

// knownOrder is known for an account and an order, which is a row.
func (e *env) knownOrder(ctx context.Context, st *store.Store, account, name string) error {
	if err := e.known(ctx, st, account, ""); err != nil || name == "" {
		return err
	}
	_, err := st.FindOrders(ctx, account, name)
	return err
}
