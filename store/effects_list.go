package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// Effect is an effect that an order owes or owed.
type Effect struct {
	Account  string            `json:"account"`
	Order    uuid.UUID         `json:"order"`
	Ref      string            `json:"external_ref"`
	Version  int               `json:"version"`
	Effect   order.Effect      `json:"effect"`
	State    order.EffectState `json:"state"`
	After    order.Told        `json:"after"`
	Attempts int               `json:"attempts"`
	AskedAt  time.Time         `json:"asked_at"`

	NextAt       *time.Time `json:"next_at,omitempty"`       // open: not tried before
	ClaimedUntil *time.Time `json:"claimed_until,omitempty"` // claimed: a call is out until then
	SettledAt    *time.Time `json:"settled_at,omitempty"`    // done, canceled, assumed
	LastError    string     `json:"last_error,omitempty"`
	Why          string     `json:"why,omitempty"` // canceled, assumed

	OrderState order.State `json:"order_state"` // as it is now
	// Parked: it is open, was tried, and is not wanted at present; it waits for the order to change.
	Parked bool `json:"parked,omitempty"`
}

// Key identifies the effect towards the merchant.
func (e Effect) Key() string { return fmt.Sprintf("%s:%d:%s", e.Order, e.Version, e.Effect) }

// EffectFilter chooses effects; every field that is set must match.
type EffectFilter struct {
	Account string
	Order   uuid.UUID
	Ref     string // the merchant's external_ref
	Version int    // of the order, which names the effect within it
	States  []order.EffectState
	Effects []order.Effect
	// AskedFrom (inclusive) and AskedUntil (exclusive) bound when the effect became owed.
	AskedFrom, AskedUntil time.Time
}

// conditions returns the filter as conditions on order_transitions t and orders o.
func (f EffectFilter) conditions() (*conditions, error) {
	c := &conditions{}
	c.add("t.effect IS NOT NULL")
	if f.Account != "" {
		c.add("t.account_id = ?", f.Account)
	}
	if f.Order != uuid.Nil {
		c.add("t.order_id = ?", f.Order)
	}
	if f.Ref != "" {
		c.add("o.external_ref = ?", f.Ref)
	}
	if f.Version != 0 {
		c.add("t.version = ?", f.Version)
	}
	if len(f.Effects) > 0 {
		c.add("t.effect = ANY(?)", f.Effects)
	}
	if !f.AskedFrom.IsZero() {
		c.add("t.at >= ?", f.AskedFrom)
	}
	if !f.AskedUntil.IsZero() {
		c.add("t.at < ?", f.AskedUntil)
	}
	if len(f.States) > 0 {
		words := make([]string, len(f.States))
		for i, s := range f.States {
			if !knownEffectState(s) {
				return nil, fmt.Errorf("there is no effect state %q", s)
			}
			words[i] = "'" + string(s) + "'"
		}
		c.add("t.effect_state IN (" + strings.Join(words, ", ") + ")")
	}
	return c, nil
}

func knownEffectState(s order.EffectState) bool {
	switch s {
	case order.EffectOpen, order.EffectClaimed, order.EffectDone, order.EffectCanceled, order.EffectAssumed, order.EffectDead:
		return true
	}
	return false
}

const fromEffects = `
	FROM order_transitions t
	JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id`

// Effects returns up to limit effects that match f, by account, order (which is by age) and version. To go on, pass the
// last one as after; nil begins.
func (s *Store) Effects(ctx context.Context, f EffectFilter, after *Effect, limit int) ([]Effect, error) {
	c, err := f.conditions()
	if err != nil {
		return nil, err
	}
	if after != nil {
		c.add("(t.account_id, t.order_id, t.version) > (?, ?, ?)", after.Account, after.Order, after.Version)
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT t.account_id, t.order_id, o.external_ref, t.version, t.effect, t.effect_state, t.after, t.attempts, t.at,
			t.next_at, t.claimed_until, t.settled_at, coalesce(t.last_error, ''), coalesce(t.why, ''), o.state, o.told, o.want`+
		fromEffects+c.where()+`
		ORDER BY t.account_id, t.order_id, t.version
		LIMIT `+c.arg(limit), c.args...)
	effects, err := pgx.CollectRows(rows, scanEffect)
	if err != nil {
		return nil, fmt.Errorf("list effects: %w", err)
	}
	return effects, nil
}

func scanEffect(row pgx.CollectableRow) (e Effect, err error) {
	var (
		told order.Told
		want order.Want
	)
	err = row.Scan(&e.Account, &e.Order, &e.Ref, &e.Version, &e.Effect, &e.State, &e.After, &e.Attempts, &e.AskedAt,
		&e.NextAt, &e.ClaimedUntil, &e.SettledAt, &e.LastError, &e.Why, &e.OrderState, &told, &want)
	e.Parked = e.State == order.EffectOpen && order.Next(told, want) != e.Effect
	return e, err
}

// CountEffects returns how many effects match f.
func (s *Store) CountEffects(ctx context.Context, f EffectFilter) (n int, err error) {
	c, err := f.conditions()
	if err != nil {
		return 0, err
	}
	if err := s.pool.QueryRow(ctx, `SELECT count(*)`+fromEffects+c.where(), c.args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count effects: %w", err)
	}
	return n, nil
}
