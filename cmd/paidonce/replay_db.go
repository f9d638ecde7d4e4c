package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// replayBatch is how many deliveries one transaction folds.
const replayBatch = 64

// refold is what folding stored deliveries again came to.
type refold struct {
	Deliveries int            `json:"deliveries"`
	Events     int            `json:"events"`
	Applied    bool           `json:"applied"` // false: a dry run
	Outcomes   map[string]int `json:"outcomes"`
	Changes    []change       `json:"changes"` // events that are not duplicates
	Skipped    []skip         `json:"skipped"`
}

type change struct {
	Account string `json:"account"`
	Source  string `json:"source"`
	Event   string `json:"event"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Order   string `json:"order,omitempty"`
	Before  int    `json:"order_version_before,omitempty"`
	After   int    `json:"order_version_after,omitempty"`
}

type skip struct {
	Source     string `json:"source"`
	ReceivedAt string `json:"received_at"`
	Why        string `json:"why"`
}

func (c replayCmd) fromDB(ctx context.Context, e *env) error {
	if c.To != "" || c.DryRun {
		return usage("replay --from-db sends nothing, and is a dry run unless --apply is given")
	}
	filter := store.DeliveryFilter{Account: c.Account, Source: c.Source}
	var err error
	if filter.Since, err = e.timeOf("--since", c.Since); err != nil {
		return err
	}
	if filter.Until, err = e.timeOf("--until", c.Until); err != nil {
		return err
	}
	cfg, err := e.loadAccounts()
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

	out := refold{Applied: c.Apply, Outcomes: map[string]int{}, Changes: []change{}, Skipped: []skip{}}
	progress := e.newBar()
	var last *store.StoredDelivery
	for {
		page, err := st.Deliveries(ctx, filter, last, replayBatch)
		if err != nil {
			return err
		}
		if err := c.fold(ctx, cfg, st, page, &out); err != nil {
			return err
		}
		if len(page) < replayBatch {
			break
		}
		last = &page[len(page)-1]
		progress.show(out.Deliveries, out.Deliveries+replayBatch, "deliveries")
	}
	progress.clear()
	if c.JSON {
		return e.printJSON(out)
	}
	c.showRefold(e, out)
	return nil
}

// fold takes some deliveries through the one transaction of all events, and
// back again in a dry run.
func (c replayCmd) fold(ctx context.Context, cfg *config.Config, st *store.Store, page []store.StoredDelivery, out *refold) error {
	var events []store.Event
	reader := reevaluate.Reader{Config: cfg}
	for _, d := range page {
		if d.Source == store.APISource {
			continue // what the merchant said itself is not a gateway's delivery
		}
		out.Deliveries++
		read, err := reader.Read(d)
		if err != nil {
			out.Skipped = append(out.Skipped, skip{Source: d.Source, ReceivedAt: when(d.ReceivedAt), Why: err.Error()})
			continue
		}
		events = append(events, read...)
	}
	if len(events) == 0 {
		return nil
	}
	var results []store.Result
	var err error
	if c.Apply {
		results, err = st.Apply(ctx, events)
	} else {
		results, err = st.DryRun(ctx, events)
	}
	if err != nil {
		return fmt.Errorf("fold stored deliveries again: %w", err)
	}
	for i, r := range results {
		out.Events++
		out.Outcomes[string(r.Outcome)]++
		if r.Outcome == store.Duplicate {
			continue
		}
		ch := change{
			Account: events[i].Account, Source: events[i].Source, Event: events[i].ID,
			Outcome: string(r.Outcome), Reason: r.Reason, Before: r.Before, After: r.After,
		}
		if r.After > 0 {
			ch.Order = r.Order.String()
		}
		out.Changes = append(out.Changes, ch)
	}
	return nil
}

func (c replayCmd) showRefold(e *env, out refold) {
	if len(out.Changes) > 0 {
		rows := make([][]string, len(out.Changes))
		for i, ch := range out.Changes {
			version := ""
			if ch.After > 0 {
				version = fmt.Sprintf("%d -> %d", ch.Before, ch.After)
			}
			rows[i] = []string{ch.Account, ch.Source, ch.Event, ch.Outcome, ch.Reason, ch.Order, version}
		}
		table(e.stdout, []string{"ACCOUNT", "SOURCE", "EVENT", "OUTCOME", "REASON", "ORDER", "VERSION"}, rows)
	}
	for _, s := range out.Skipped {
		fmt.Fprintf(e.stdout, "skipped: source %s, received %s: %s\n", s.Source, s.ReceivedAt, s.Why)
	}
	var counts []string
	for _, word := range slices.Sorted(maps.Keys(out.Outcomes)) {
		counts = append(counts, fmt.Sprintf("%d %s", out.Outcomes[word], word))
	}
	fmt.Fprintf(e.stdout, "%s read: %s (%s).\n", deliveries(out.Deliveries), plural(out.Events, "event"), orNone(counts))
	switch {
	case out.Applied:
		fmt.Fprintf(e.stdout, "%s entered.\n", plural(len(out.Changes), "change"))
	case len(out.Changes) > 0:
		fmt.Fprintln(e.stdout, "This was a dry run, each batch by itself; --apply does it.")
	default:
		fmt.Fprintln(e.stdout, "Nothing would change.")
	}
}

// meaning says in a few words what an event says.
func meaning(ev order.Event) string {
	switch {
	case ev.Broken != "":
		return "quarantined: " + ev.Broken
	case ev.Ignored != "":
		return "ignored: " + ev.Ignored
	}
	var facts []string
	for _, f := range ev.Facts {
		facts = append(facts, factText(f))
	}
	text := strings.Join(facts, "; ")
	if ev.Reference != "" {
		text += " for " + ev.Reference
	}
	return text
}
