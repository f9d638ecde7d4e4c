package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

const account = "acme"

func open(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	return openWith(t, store.Options{})
}

func openWith(t *testing.T, opts store.Options) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := storetest.Open(t)
	s, err := store.New(pool, opts)
	require.NoError(t, err)
	return s, pool
}

var day = time.Date(2026, 9, 21, 8, 0, 0, 0, time.UTC)

// captured says that all of payment p of order ref was captured.
func captured(id, p, ref string, minor int64) store.Event {
	return store.Event{
		Account: account, Source: "stripe", Payload: []byte(`{"id":"` + id + `"}`),
		Event: order.Event{
			ID: id, Type: "payment_intent.succeeded", At: day, Realm: "stripe:live", Payment: []string{p},
			Reference: ref, Strength: order.StrengthPayment,
			Facts: []order.Fact{{Kind: order.KindCaptured, Amount: minor, Currency: "EUR"}},
			Own:   &order.Amount{Minor: minor, Currency: "EUR"},
		},
	}
}

func refunded(id, p string, minor int64) store.Event {
	e := captured(id, p, "", minor)
	e.Type, e.Own, e.Strength = "refund.updated", nil, 0
	e.Facts = []order.Fact{{Kind: order.KindRefunded, Ref: "re_" + id, Status: order.StatusOK, Amount: minor, Currency: "EUR"}}
	return e
}

func register(ref string, minor int64) store.Event {
	return store.Event{Account: account, Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", At: day.Add(-time.Hour), Reference: ref,
		Command: &order.Command{Register: &order.Amount{Minor: minor, Currency: "EUR"}},
	}}
}

func apply(t *testing.T, s *store.Store, events ...store.Event) []store.Result {
	t.Helper()
	res, err := s.Apply(t.Context(), events)
	require.NoError(t, err)
	require.Len(t, res, len(events))
	return res
}

type orderRow struct {
	ID       uuid.UUID
	State    string
	Flags    []string
	Want     string
	Told     string
	Captured int64
	Kept     int64
	Version  int
	Wake     *time.Time
}

func readOrder(t *testing.T, pool *pgxpool.Pool, ref string) orderRow {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `
		SELECT id, state, flags, want, told, captured, kept, version, wake_at FROM orders WHERE account_id = $1 AND external_ref = $2`,
		account, ref)
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[orderRow])
	require.NoError(t, err, "order %s", ref)
	return o
}

func count(t *testing.T, pool *pgxpool.Pool, what string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(context.WithoutCancel(t.Context()), "SELECT count(*) FROM "+what, args...).Scan(&n))
	return n
}

func TestApplyPaysARegisteredOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	res := apply(t, s, register("ord_1", 5000))
	require.Equal(t, store.Applied, res[0].Outcome)
	require.True(t, res[0].NewOrder)
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "pending", o.State)
	require.Equal(t, 1, o.Version, "its registration made it")
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE from_state IS NULL AND version = 1 AND event_id = 'register:ord_1'"))
	require.Equal(t, 0, count(t, pool, "river_job"), "nothing is owed yet")

	res = apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	require.Equal(t, store.Applied, res[0].Outcome)
	o = readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.Empty(t, o.Flags)
	require.Equal(t, "go", o.Want)
	require.EqualValues(t, 5000, o.Captured)
	require.NotNil(t, o.Wake)
	require.Equal(t, res[0].After, o.Version)
	require.Equal(t, o.ID, res[0].Order)
	require.Equal(t, 1, count(t, pool, "river_job WHERE kind = 'drain' AND args->>'account_id' = $1 AND args->>'order_id' = $2", account, o.ID.String()))
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'open'"))
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE from_state = 'pending' AND to_state = 'paid' AND event_id = 'evt_1' AND kept = 5000"))
	require.Equal(t, 1, count(t, pool, "event_payloads"))

	res = apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	require.Equal(t, store.Duplicate, res[0].Outcome)
	require.Equal(t, o.ID, res[0].Order)
	res = apply(t, s, captured("evt_2", "pi_1", "ord_1", 5000))
	require.Equal(t, store.NoChange, res[0].Outcome)
	require.Equal(t, store.ReasonAlreadyKnown, res[0].Reason)
	require.Equal(t, o, readOrder(t, pool, "ord_1"))
	require.Equal(t, 1, count(t, pool, "river_job"))
}

func TestApplyBeforeTheOrderIsRegistered(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	res := apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	require.Equal(t, store.Waiting, res[0].Outcome)
	require.Equal(t, store.ReasonUnregistered, res[0].Reason)
	require.Equal(t, []string{"unregistered"}, readOrder(t, pool, "ord_1").Flags)

	res = apply(t, s, register("ord_1", 5000))
	require.Equal(t, store.Applied, res[0].Outcome)
	require.False(t, res[0].NewOrder)
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'open'"))
}

func TestApplyOneBatchOfEverything(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	var events []store.Event
	for i := range 30 {
		ref, p := fmt.Sprintf("ord_%d", i), fmt.Sprintf("pi_%d", i)
		events = append(events, register(ref, 5000), captured("evt_"+ref, p, ref, 5000), captured("evt_"+ref, p, ref, 5000))
		if i%2 == 0 {
			events = append(events, refunded("evt_r_"+ref, p, 1000))
		}
	}
	apply(t, s, events...)
	require.Equal(t, "partially_refunded", readOrder(t, pool, "ord_0").State)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, 30, count(t, pool, "river_job"))
	require.Equal(t, 30+30+15, count(t, pool, "processed_events"))
}
