package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// An embedded program's own rows commit with the order, and its own code fulfils.
func TestEmbeddedProgram(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	_, err := pool.Exec(t.Context(), `CREATE TABLE stock (ref text PRIMARY KEY, reserved int CHECK (reserved <= 1))`)
	require.NoError(t, err)

	shipped := make(chan processor.Call, 4)
	refuse := errors.New("the warehouse is closed")
	closed := true
	p, err := processor.New(pool, processor.FulfillerFunc(func(_ context.Context, c processor.Call) error {
		shipped <- c
		return nil
	}), processor.Options{
		InTx: func(ctx context.Context, tx pgx.Tx, tr processor.Transition) error {
			if tr.To != string(order.StatePaid) || tr.From == tr.To {
				return nil
			}
			if closed {
				return refuse
			}
			_, err := tx.Exec(ctx, `INSERT INTO stock VALUES ($1, 1)`, tr.Ref)
			return err
		},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()

	register := store.Event{Account: "shop", Source: store.APISource, Event: order.Event{
		ID: "register:ord_1", Type: "order.registered", Reference: "ord_1",
		Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
	}}
	paid := store.Event{Account: "shop", Source: "stripe", Event: order.Event{
		ID: "evt_1", Type: "payment_intent.succeeded", At: time.Unix(1_790_000_000, 0), Realm: "stripe:live", Payment: []string{"pi_1"},
		Reference: "ord_1", Strength: order.StrengthPayment,
		Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}},
	}}
	_, err = p.Ingest(ctx, []store.Event{register})
	require.NoError(t, err)
	_, err = p.Ingest(ctx, []store.Event{paid})
	require.ErrorIs(t, err, refuse)
	var events int
	require.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM processed_events WHERE event_id = 'evt_1'`).Scan(&events))
	require.Zero(t, events, "the program refused, so nothing of ours stays")

	closed = false
	_, err = p.Ingest(ctx, []store.Event{paid})
	require.NoError(t, err)
	_, err = p.Ingest(ctx, []store.Event{paid})
	require.NoError(t, err)
	var reserved int
	require.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM stock`).Scan(&reserved))
	require.Equal(t, 1, reserved)
	select {
	case c := <-shipped:
		require.Equal(t, order.EffectFulfil, c.Effect)
		require.Equal(t, "ord_1", c.ExternalRef)
	case <-time.After(30 * time.Second):
		t.Fatal("not fulfilled")
	}
	stop()
	require.NoError(t, <-done)
	require.Empty(t, shipped)
}

func TestNewRefusesNothingToWorkWith(t *testing.T) {
	t.Parallel()
	_, err := processor.New(nil, nil, processor.Options{})
	require.ErrorContains(t, err, "nil pool or Fulfiller")
}
