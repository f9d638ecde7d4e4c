package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type eventsReevaluateCmd struct {
	Where []string `sep:"none" placeholder:"TERM" help:"Only events of which this holds; several: joined by commas, or the flag again."`
	Apply bool     `help:"Do it; without, it is a dry run."`
	Limit int      `placeholder:"N" help:"Stop once so many events are replaced; those of one order stay together. 0: all (default)."`
	JSON  bool     `help:"Print JSON."`
}

// Help is the text below the flags.
func (eventsReevaluateCmd) Help() string {
	return `Reads the kept bytes of events with the mapping and the options of today. Where they mean something else now, their facts are
replaced (the old ones are kept), and the payments and orders that they concern are folded anew. A dry run, the default, shows
for every order what would become of it, and writes nothing. Events of our own API stay as they are.

Terms: account=, source=, gateway=, type=, outcome=, reason=, event=, order=, since=, until= (RFC 3339, or how long ago: 24h), and
mapping_version<N (read by an older mapping). At least one is needed; all must hold.

It can be stopped and begun again, and works while events come in. It exits with 1 if an event could not be read again.

Examples:

    paidonce events reevaluate --where outcome=quarantined
    paidonce events reevaluate --where 'mapping_version<2' --where gateway=stripe,since=720h --apply
    paidonce events reevaluate --where order=ord_1 --json`
}

// reevaluation is what reading events again came to.
type reevaluation struct {
	Applied bool                 `json:"applied"` // false: a dry run
	Read    int                  `json:"read"`
	Orders  []store.OrderChange  `json:"orders"`
	Events  []store.EventChange  `json:"events"`  // that mean something else today
	Entered []store.EnteredEvent `json:"entered"` // that bytes hold which could not be read at all before
	Skipped []store.SkippedEvent `json:"skipped"`
}

// Run runs the command.
func (c eventsReevaluateCmd) Run(ctx context.Context, e *env) error {
	where, err := c.where(e)
	if err != nil {
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
	filter, err := e.filterOf(ctx, cfg, st, where)
	if err != nil {
		return err
	}
	total, progress := 0, e.newBar()
	if progress.w != nil {
		if total, err = st.CountToReevaluate(ctx, filter); err != nil {
			return err
		}
	}
	read := 0
	all, err := reevaluate.Reader{Config: cfg}.Run(ctx, st, reevaluate.Work{
		Filter: filter, Apply: c.Apply, Limit: c.Limit,
		Each: func(r store.Reevaluated) error {
			read += r.Read
			if !c.JSON {
				progress.clear()
				e.showReevaluated(r)
			}
			progress.show(read, max(total, read), "events")
			return nil
		},
	})
	out := reevaluation{
		Applied: c.Apply, Read: all.Read, Orders: orEmpty(all.Orders), Events: orEmpty(all.Events), Entered: orEmpty(all.Entered), Skipped: orEmpty(all.Skipped),
	}
	progress.clear()
	if c.JSON {
		err = errors.Join(err, e.printJSON(out))
	} else {
		e.sumReevaluation(out)
	}
	if err == nil && len(out.Skipped) > 0 {
		return errFailed
	}
	return err
}

// orEmpty is a list that is [] in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (c eventsReevaluateCmd) where(e *env) (reevaluate.Where, error) {
	w, err := reevaluate.ParseWhere(c.Where, e.now())
	switch {
	case err != nil:
		return w, usage("--where: %w", err)
	case len(c.Where) == 0:
		return w, usage("events reevaluate: say which events with --where: %s", reevaluate.Words)
	case c.Limit < 0:
		return w, usage("--limit %d: want 0 or more", c.Limit)
	}
	return w, nil
}

// filterOf turns a gateway into its sources, and an order into its events.
func (e *env) filterOf(ctx context.Context, cfg *config.Config, st *store.Store, w reevaluate.Where) (store.ReevaluateFilter, error) {
	f := w.ReevaluateFilter
	if err := e.known(ctx, st, w.Account, w.Source); err != nil {
		return f, err
	}
	if w.Gateway != "" {
		var ids []string
		for id, s := range cfg.Sources() {
			if s.Gateway == w.Gateway && (w.Source == "" || w.Source == id) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return f, usage("--where: no source of gateway %s is configured", w.Gateway)
		}
		f.Sources = ids
	}
	if w.Order == "" {
		return f, nil
	}
	f.Events = []store.EventKey{}
	add := func(events []store.StoredEvent) {
		for _, ev := range events {
			f.Events = append(f.Events, store.EventKey{Account: ev.Account, Source: ev.Source, ID: ev.ID})
		}
	}
	orders, err := st.FindOrders(ctx, w.Account, w.Order)
	for _, o := range orders {
		t, err := st.Timeline(ctx, o.Account, o.ID)
		if err != nil {
			return f, err
		}
		add(t.Events)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return f, err
	}
	naming, err := st.EventsNaming(ctx, w.Account, "", w.Order)
	if err == nil && len(naming) == 0 {
		err = fmt.Errorf("order %q: %w", w.Order, store.ErrNotFound)
	}
	add(naming)
	return f, err
}

// showReevaluated prints a group: the orders that move, then what their events mean now.
func (e *env) showReevaluated(r store.Reevaluated) {
	for _, o := range r.Orders {
		head := fmt.Sprintf("order %s of account %s", o.Ref, o.Account)
		if o.New {
			head += " (new)"
		}
		fmt.Fprintln(e.stdout, e.paint(e.stdout, bold, head))
		for _, line := range orderDiff(o) {
			fmt.Fprintf(e.stdout, "  %-10s  %s\n", line[0], line[1])
		}
	}
	for _, ev := range r.Events {
		fmt.Fprintf(e.stdout, "event %s of source %s, %s\n", ev.ID, ev.Source, ev.After.Type)
		fmt.Fprintf(e.stdout, "  - %s\n  + %s\n", meaningText(ev.Before), meaningText(ev.After))
	}
	for _, ev := range r.Entered {
		fmt.Fprintf(e.stdout, "event %s of source %s, %s (new)\n  + %s\n", ev.ID, ev.Source, ev.Type, meaningText(ev.EventMeaning))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(e.stdout, "skipped: event %s of source %s: %s\n", s.ID, s.Source, s.Why)
	}
}

// orderDiff is what changes of an order, a name and a text each, and what follows for the merchant.
func orderDiff(o store.OrderChange) [][2]string {
	var lines [][2]string
	a, b := o.Before, o.After
	add := func(name, before, after string) {
		if before != after {
			lines = append(lines, [2]string{name, orDash(before) + " -> " + orDash(after)})
		}
	}
	amount := func(s store.OrderStanding, minor int64) string {
		switch {
		case s.Version == 0:
			return ""
		case s.Currency == "":
			return strconv.FormatInt(minor, 10) + " minor units"
		}
		return money(minor, s.Currency)
	}
	add("state", string(a.State), string(b.State))
	total := func(s store.OrderStanding) string {
		if !s.Registered {
			return ""
		}
		return money(s.Total, s.Currency)
	}
	add("total", total(a), total(b))
	for _, sum := range []struct {
		name          string
		before, after int64
	}{
		{"authorized", a.Authorized, b.Authorized},
		{"captured", a.Captured, b.Captured},
		{"refunded", a.Refunded, b.Refunded},
		{"lost", a.Lost, b.Lost},
		{"kept", a.Kept, b.Kept},
		{"at risk", a.AtRisk, b.AtRisk},
	} {
		if sum.before != sum.after {
			add(sum.name, amount(a, sum.before), amount(b, sum.after))
		}
	}
	add("flags", strings.Join(a.Flags.Names(), ", "), strings.Join(b.Flags.Names(), ", "))
	add("version", versionOf(a), versionOf(b))
	add("want", string(a.Want), string(b.Want))
	lines = append(lines, [2]string{"told", string(b.Told) + "; " + follows(b)})
	return lines
}

// follows says what the merchant hears of it.
func follows(s store.OrderStanding) string {
	if s.Owed != order.EffectNone {
		return "owed: " + string(s.Owed)
	}
	return "nothing is owed"
}

func versionOf(s store.OrderStanding) string {
	if s.Version == 0 {
		return ""
	}
	return strconv.Itoa(s.Version)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// meaningText says what an event was taken for, and what it did.
func meaningText(m store.EventMeaning) string {
	if m.Fetch != "" {
		return string(m.Outcome) + ": the gateway has to be asked about " + m.Fetch
	}
	said := meaning(order.Event{Facts: m.Facts, Reference: m.Reference, Ignored: m.Ignored, Broken: m.Broken})
	if m.Broken != "" || m.Ignored != "" {
		return said // that is its outcome too
	}
	if len(m.Payment) > 0 {
		said = strings.TrimSpace(said+" (payment "+strings.Join(m.Payment, " = ")+")") + ": "
	}
	did := string(m.Outcome)
	if m.Reason != "" {
		did += " (" + m.Reason + ")"
	}
	if m.Order != "" {
		did += ", order " + m.Order
	}
	return said + did
}

func (e *env) sumReevaluation(out reevaluation) {
	move := " would move"
	if out.Applied {
		move = " moved"
	}
	counts := map[string]int{}
	for _, s := range out.Skipped {
		counts[s.Code]++
	}
	skipped := ""
	if len(out.Skipped) > 0 {
		var parts []string
		for _, code := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[code], code))
		}
		skipped = fmt.Sprintf(", %d skipped (%s)", len(out.Skipped), strings.Join(parts, ", "))
	}
	entered := ""
	if len(out.Entered) > 0 {
		entered = ", " + plural(len(out.Entered), "new event")
	}
	fmt.Fprintf(e.stdout, "%s read again: %d of another meaning today, %s%s%s%s.\n",
		plural(out.Read, "event"), len(out.Events), plural(len(out.Orders), "order"), move, entered, skipped)
	if !out.Applied && len(out.Events) > 0 {
		fmt.Fprintln(e.stdout, "This was a dry run, each group of orders by itself; --apply does it.")
	}
}
