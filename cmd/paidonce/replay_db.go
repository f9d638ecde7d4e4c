package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// refold is what taking stored deliveries in once more came to.
type refold struct {
	Applied    bool                 `json:"applied"`    // false: a dry run
	Deliveries int                  `json:"deliveries"` // that were read
	Chosen     int                  `json:"chosen"`     // of these
	Events     int                  `json:"events"`
	Known      int                  `json:"known"` // as they are: they change nothing
	Orders     []store.OrderChange  `json:"orders"`
	Entered    []store.EnteredEvent `json:"entered"`
	Skipped    []store.SkippedEvent `json:"skipped"`
	Next       string               `json:"next,omitempty"` // where to go on, if it was interrupted
}

func (c replayCmd) fromDB(ctx context.Context, e *env) error {
	where, after, err := c.terms(e)
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
	work, err := e.replayOf(ctx, cfg, st, where)
	if err != nil {
		return err
	}
	work.After, work.Apply = after, c.Apply
	total, err := work.Count(ctx, st)
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(e.stdout, "%s to read.\n", deliveries(total))
	}
	progress, read, out := e.newBar(), 0, refold{Applied: c.Apply, Orders: []store.OrderChange{}, Entered: []store.EnteredEvent{}, Skipped: []store.SkippedEvent{}}
	counts := refoldCounts{orders: map[uuid.UUID]bool{}, entered: map[string]int{}, skipped: map[string]int{}}
	work.Each = func(r reevaluate.Replayed) error {
		read += r.Deliveries
		counts.add(r)
		if c.JSON {
			out.Orders, out.Entered, out.Skipped = append(out.Orders, r.Orders...), append(out.Entered, r.Entered...), append(out.Skipped, r.Skipped...)
		} else if len(r.Orders)+len(r.Entered)+len(r.Skipped) > 0 {
			progress.clear()
			c.showMoves(e, r.Orders)
			e.showReevaluated(store.Reevaluated{Entered: r.Entered, Skipped: r.Skipped})
		}
		progress.show(read, max(total, read), "deliveries")
		return nil
	}
	all, err := reevaluate.Reader{Config: cfg}.Replay(ctx, st, work)
	progress.clear()
	out.Deliveries, out.Chosen, out.Events, out.Known = all.Deliveries, all.Chosen, all.Known+all.Read, all.Known
	if err != nil && !all.Next.At.IsZero() {
		out.Next = all.Next.String()
	}
	if c.JSON {
		err = errors.Join(err, e.printJSON(out))
	} else {
		c.sumRefold(e, out, counts, err)
	}
	if err != nil && out.Next != "" {
		fmt.Fprintf(e.stderr, "paidonce: to go on where it ended: the same with --after %s\n", out.Next)
	}
	if err == nil && len(counts.skipped) > 0 {
		return errFailed
	}
	return err
}

// terms reads the flags.
func (c replayCmd) terms(e *env) (where reevaluate.Where, after store.DeliveryKey, err error) {
	switch {
	case c.To != "":
		return where, after, usage("replay --from-db sends nothing anywhere; --to belongs to files")
	case c.DryRun && c.Apply:
		return where, after, usage("replay --from-db: --dry-run or --apply, not both")
	}
	if where, err = reevaluate.ParseWhere(c.Where, e.now()); err != nil {
		return where, after, usage("--where: %w", err)
	}
	switch {
	case c.Source != "" && where.Source != "":
		return where, after, usage("replay --from-db: --source is --where source=")
	case c.Source != "":
		where.Source, where.Sources = c.Source, []string{c.Source}
	}
	if c.After != "" {
		if after, err = store.ParseDeliveryKey(c.After); err != nil {
			return where, after, usage("--after: %w; it is printed where a replay is interrupted", err)
		}
	}
	return where, after, nil
}

// replayOf chooses what is to be taken in once more.
func (e *env) replayOf(ctx context.Context, cfg *config.Config, st *store.Store, where reevaluate.Where) (w reevaluate.Replay, err error) {
	w.Filter, err = e.filterOf(ctx, cfg, st, where)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return w, err
	}
	unknown := err
	if w.Missing, err = reevaluate.MissingOf(ctx, st, where); err != nil || w.Missing != nil {
		return w, err // an order that is lost, too, is found by what bytes say of it
	}
	return w, unknown
}

// showMoves prints what becomes of orders: in one line, and what of them changes.
func (c replayCmd) showMoves(e *env, orders []store.OrderChange) {
	would := ""
	if !c.Apply {
		would = "would "
	}
	for _, o := range orders {
		head := fmt.Sprintf("%s %s%s", o.Ref, would, moves(o, c.Apply))
		fmt.Fprintln(e.stdout, e.paint(e.stdout, bold, head)+" (account "+o.Account+")")
		for _, line := range orderDiff(o) {
			fmt.Fprintf(e.stdout, "  %-10s  %s\n", line[0], line[1])
		}
	}
}

// moves says in a few words what becomes of an order, as in "move from pending to paid".
func moves(o store.OrderChange, done bool) string {
	verb := func(would, did string) string {
		if done {
			return did
		}
		return would
	}
	switch {
	case o.New:
		return verb("be made", "was made") + ", " + string(o.After.State)
	case o.Before.State != o.After.State:
		return verb("move", "moved") + " from " + string(o.Before.State) + " to " + string(o.After.State)
	}
	return verb("stay ", "stayed ") + string(o.After.State) + ", and change" + verb("", "d")
}

// refoldCounts counts outcomes, skips and orders for the last line.
type refoldCounts struct {
	orders           map[uuid.UUID]bool
	entered, skipped map[string]int
}

func (c *refoldCounts) add(r reevaluate.Replayed) {
	for _, o := range r.Orders {
		c.orders[o.ID] = true
	}
	for _, ev := range r.Entered {
		c.entered[string(ev.Outcome)]++
	}
	for _, s := range r.Skipped {
		c.skipped[s.Code]++
	}
}

// summed is a sum, and what it is made of.
func summed(of map[string]int) (sum int, parts string) {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%d %s", of[word], word))
		sum += of[word]
	}
	if sum > 0 {
		parts = " (" + strings.Join(words, ", ") + ")"
	}
	return sum, parts
}

func (c replayCmd) sumRefold(e *env, out refold, counts refoldCounts, err error) {
	missing, outcomes := summed(counts.entered)
	skipped, codes := summed(counts.skipped)
	chosen := ""
	if out.Chosen != out.Deliveries {
		chosen = fmt.Sprintf(", %d chosen", out.Chosen)
	}
	fmt.Fprintf(e.stdout, "%s read%s: %s, %d known, %d missing%s, %d skipped%s.\n", deliveries(out.Deliveries), chosen, plural(out.Events, "event"), out.Known,
		missing, outcomes, skipped, codes)
	moved := plural(len(counts.orders), "order")
	switch {
	case err != nil:
	case out.Applied && missing > 0:
		fmt.Fprintf(e.stdout, "%s entered, %s moved.\n", plural(missing, "event"), moved)
	case out.Applied:
		fmt.Fprintln(e.stdout, "Nothing changed.")
	case missing > 0:
		fmt.Fprintf(e.stdout, "%s would move. This was a dry run; --apply does it.\n", moved)
	default:
		fmt.Fprintln(e.stdout, "Would change nothing.")
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
