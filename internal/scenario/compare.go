package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const (
	// quietWithin is how long it may take until nothing is owed any more. A
	// killed worker's claim lapses after 20 s and is seen by a ticker of 5 s.
	quietWithin = 45 * time.Second

	pollEvery = 20 * time.Millisecond
)

// quiet waits until the merchant of this scenario is owed nothing: no object of
// the account is to be asked about within 10 s (what the API does not know is
// asked about for an hour), and no effect of an order is open or
// claimed that is still wanted.
func (p *play) quiet(ctx context.Context) error {
	end := time.NewTimer(quietWithin)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		owed, err := p.owed(ctx)
		if err != nil || len(owed) == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-end.C:
			return fmt.Errorf("not quiet within %s: %s", quietWithin, strings.Join(owed, ", "))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// owed says what the account's orders still owe, but for what was given up.
func (p *play) owed(ctx context.Context) ([]string, error) {
	type row struct {
		Ref, Told, Want string
		State           *string
		Object          *string // of a gateway that is still to be asked about
	}
	rows, _ := p.target.Pool.Query(ctx, `
		SELECT o.external_ref, o.told, o.want, t.effect_state, NULL AS object
		FROM orders o LEFT JOIN order_transitions t
		  ON t.account_id = o.account_id AND t.order_id = o.id AND t.effect_state IN ('open', 'claimed', 'dead')
		WHERE o.account_id = $1
		UNION ALL
		SELECT '', '', '', NULL, object FROM fetches WHERE account_id = $1 AND (next_at < now() + interval '10 s' OR claimed_until IS NOT NULL)
		ORDER BY 1, 5`, accountOf(p.scenario.Name))
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, fmt.Errorf("look at what is owed: %w", err)
	}
	var list []string
	for _, o := range all {
		if o.Object != nil {
			list = append(list, *o.Object+" is still to be asked about")
			continue
		}
		effect := order.Next(order.Told(o.Told), order.Want(o.Want))
		claimed := o.State != nil && *o.State == "claimed"
		dead := o.State != nil && *o.State == "dead"
		if claimed || effect != order.EffectNone && !dead {
			list = append(list, fmt.Sprintf("%s owes %s", o.Ref, effect))
		}
	}
	return list, nil
}

// orderRow is an order as the database has it.
type orderRow struct {
	State    string
	Flags    []string
	Captured int64
	Refunded int64
	Told     string
	Version  int
	Dead     bool
}

func (p *play) order(ctx context.Context, ref string) (orderRow, bool, error) {
	rows, _ := p.target.Pool.Query(ctx, `
		SELECT state, flags, captured, refunded, told, version, EXISTS (
		  SELECT FROM order_transitions t WHERE t.account_id = o.account_id AND t.order_id = o.id AND t.effect_state = 'dead')
		FROM orders o WHERE account_id = $1 AND external_ref = $2`, accountOf(p.scenario.Name), ref)
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[orderRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return o, false, nil
	}
	return o, err == nil, err
}

// compare notes what is not as expected.
func (p *play) compare(ctx context.Context, e *Expect, when string) error {
	for _, ref := range slices.Sorted(maps.Keys(e.Orders)) {
		if err := p.compareOrder(ctx, when+": order "+ref, ref, e.Orders[ref]); err != nil {
			return err
		}
	}
	if e.Statuses != nil {
		p.mu.Lock()
		got := maps.Clone(p.statuses)
		p.mu.Unlock()
		counts(p, when+": statuses", got, e.Statuses)
	}
	if e.Outcomes != nil {
		got, err := p.outcomes(ctx)
		if err != nil {
			return err
		}
		counts(p, when+": outcomes", got, e.Outcomes)
	}
	if e.Calls != nil {
		counts(p, when+": calls", p.actor.merchant.Keys(), e.Calls)
	}
	if e.Asked != nil {
		counts(p, when+": asked", p.asked(), e.Asked)
	}
	return nil
}

// counts compares counts in which 0 and absent are the same.
func counts[K comparable](p *play, what string, got map[K]int, want map[K]Count) {
	right := true
	for k := range want {
		right = right && want[k].holds(got[k])
	}
	for k, n := range got {
		right = right && want[k].holds(n)
	}
	if !right {
		got = maps.Clone(got)
		maps.DeleteFunc(got, func(_ K, n int) bool { return n == 0 })
		p.wrong("%s are %v, expected %v", what, got, want)
	}
}

func (p *play) compareOrder(ctx context.Context, where, ref string, want OrderEnd) error {
	got, found, err := p.order(ctx, ref)
	switch {
	case err != nil:
		return fmt.Errorf("read order %s: %w", ref, err)
	case want.Absent && found:
		p.wrong("%s: there is one, %s", where, got.State)
		return nil
	case want.Absent:
		return nil
	case !found:
		p.wrong("%s: there is none", where)
		return nil
	}
	differs := func(what string, got, want any) { p.wrong("%s: %s is %v, expected %v", where, what, got, want) }
	if want.State != "" && got.State != want.State {
		differs("state", got.State, want.State)
	}
	if flags := slices.Sorted(slices.Values(want.Flags)); want.Flags != nil && !slices.Equal(slices.Sorted(slices.Values(got.Flags)), flags) {
		differs("flags", got.Flags, flags)
	}
	if want.Captured != nil && got.Captured != *want.Captured {
		differs("captured", got.Captured, *want.Captured)
	}
	if want.Refunded != nil && got.Refunded != *want.Refunded {
		differs("refunded", got.Refunded, *want.Refunded)
	}
	if want.Told != "" && got.Told != want.Told {
		differs("told", got.Told, want.Told)
	}
	if want.Version != 0 && got.Version != want.Version {
		differs("version", got.Version, want.Version)
	}
	if want.VersionMax != 0 && got.Version > want.VersionMax {
		p.wrong("%s: version is %d, expected at most %d", where, got.Version, want.VersionMax)
	}
	if effects := p.actor.merchant.Effects(ref); want.Effects != nil && !slices.Equal(effects, want.Effects) {
		differs("what the merchant did", effects, want.Effects)
	}
	if goods := string(p.actor.merchant.Goods(ref)); want.Goods != "" && goods != want.Goods {
		differs("goods", goods, want.Goods)
	}
	if want.Dead != got.Dead {
		differs("a dead effect", got.Dead, want.Dead)
	}
	return nil
}

// outcomes counts the account's events by what they did. An event that was
// acknowledged and left no row of its own was a duplicate; what APIs answered was
// in no delivery.
func (p *play) outcomes(ctx context.Context) (map[string]int, error) {
	type row struct {
		Outcome string
		N       int
		Answers int
	}
	rows, _ := p.target.Pool.Query(ctx, `
		SELECT coalesce(outcome, 'none'), count(*)::int, (count(*) FILTER (WHERE `+sqlAnswered+`))::int FROM processed_events e
		WHERE account_id = $1 AND source_id <> $2 GROUP BY 1`, accountOf(p.scenario.Name), store.APISource)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, fmt.Errorf("count outcomes: %w", err)
	}
	got := make(map[string]int)
	events := 0
	for _, r := range all {
		got[r.Outcome] = r.N
		events += r.N - r.Answers
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got["duplicate"] = p.accepted - events
	return got, nil
}
