package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/store"
)

type explainCmd struct {
	Name    string `arg:"" help:"An order (its external_ref or id) or an event (its id)."`
	Account string `placeholder:"NAME" help:"Look in this account only."`
	Source  string `placeholder:"ID" help:"Look at events of this source only."`
	JSON    bool   `help:"Print JSON."`
}

// Help is the text below the flags.
func (explainCmd) Help() string {
	return `Examples:

    paidonce explain ord_1
    paidonce explain evt_1PtoA2 --json`
}

// Run runs the command.
func (c explainCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.load()
	if err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	reports, err := c.reports(ctx, cfg, st)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]any{"reports": reports})
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		fmt.Fprint(e.stdout, r.Text())
	}
	return nil
}

// reports explains everything that has this name: orders, or else events.
func (c explainCmd) reports(ctx context.Context, cfg *config.Config, st *store.Store) ([]explain.Report, error) {
	var reports []explain.Report
	if c.Source == "" {
		orders, err := st.FindOrders(ctx, c.Account, c.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		for _, o := range orders {
			t, err := st.Timeline(ctx, o.Account, o.ID)
			if err != nil {
				return nil, err
			}
			r := explain.Order(t)
			if account, ok := cfg.Accounts[o.Account]; !ok {
				r.NoCallback(t, "Account "+o.Account+" is not in this configuration, so nobody is called for it.", "Put account "+o.Account+" with its callback into the configuration.")
			} else if account.Callback.URL == "" {
				r.NoCallback(t, "Account "+o.Account+" has no callback, so nobody is called for it.", "Account "+o.Account+" has no callback; set accounts."+o.Account+".callback.")
			}
			reports = append(reports, r)
		}
		if len(reports) > 0 {
			return reports, nil
		}
	}
	events, err := st.FindEvents(ctx, c.Account, c.Source, c.Name)
	if errors.Is(err, store.ErrNotFound) {
		if events, err = st.EventsNaming(ctx, c.Account, c.Source, c.Name); err != nil {
			return nil, err
		}
		if len(events) == 0 {
			err = store.ErrNotFound
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("no order and no event is called %q%s; what was refused with 4xx is not stored, and stands in the log of serve", c.Name, c.within())
	}
	if err != nil {
		return nil, err
	}
	for _, event := range events {
		var timeline *store.Timeline
		if event.OrderID != nil {
			t, err := st.Timeline(ctx, event.Account, *event.OrderID)
			if err != nil {
				return nil, err
			}
			timeline = &t
		}
		reports = append(reports, explain.Event(event, timeline))
	}
	return reports, nil
}

func (c explainCmd) within() string {
	var in []string
	if c.Account != "" {
		in = append(in, "account "+c.Account)
	}
	if c.Source != "" {
		in = append(in, "source "+c.Source)
	}
	if len(in) == 0 {
		return ""
	}
	return " in " + strings.Join(in, ", ")
}
