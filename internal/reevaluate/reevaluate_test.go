package reevaluate_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func TestRead(t *testing.T) {
	t.Parallel()
	source := gateway.Source{ID: "s", Account: "shop", Gateway: "stripe", Mode: "live", OnUnknownOrder: "create", Paused: true}
	body, err := gateway.Stripe.Sample(gateway.SampleRequest{Source: source, Type: "payment_intent.succeeded", ID: "evt_1", Payment: "pi_1", Reference: "ord_1"})
	require.NoError(t, err)
	cfg := &config.Config{Accounts: map[string]config.Account{"shop": {Sources: map[string]gateway.Source{
		"s": source, "odd": {ID: "odd", Gateway: "nosuch"},
	}}}}
	d := store.StoredDelivery{Account: "shop", Source: "s", Delivery: uuid.New(), Header: map[string]string{"Content-Type": "x"}, Body: body}

	events, err := reevaluate.Reader{Config: cfg}.Read(d)
	require.NoError(t, err)
	require.Len(t, events, 1)
	e := events[0]
	require.Equal(t, "evt_1", e.ID)
	require.Equal(t, "ord_1", e.Reference)
	require.NotEmpty(t, e.Facts)
	require.Equal(t, []any{"shop", "s", d.Delivery, store.OnUnknownCreate, true, int16(gateway.MappingVersion)},
		[]any{e.Account, e.Source, e.Delivery, e.OnUnknown, e.Paused, e.MappingVersion})
	require.Nil(t, e.Payload, "its bytes are kept already")

	d.Body = []byte("no JSON")
	_, err = reevaluate.Reader{Config: cfg}.Read(d)
	var parse *gateway.ParseError
	require.ErrorAs(t, err, &parse)
	d.Source = "odd"
	_, err = reevaluate.Reader{Config: cfg}.Read(d)
	require.ErrorContains(t, err, `there is no gateway "nosuch"`)
	d.Source = "gone"
	_, err = reevaluate.Reader{Config: cfg}.Read(d)
	require.ErrorIs(t, err, reevaluate.ErrUnknownSource)
}

func TestReadWithAnotherMapping(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Accounts: map[string]config.Account{"shop": {Sources: map[string]gateway.Source{"s": {ID: "s", Gateway: "stripe"}}}}}
	d := store.StoredDelivery{Account: "shop", Source: "s", Header: map[string]string{"content-type": "x"}, Body: []byte("b")}
	r := reevaluate.Reader{Config: cfg, Reparse: func(s gateway.Source, d gateway.Delivery) ([]order.Event, error) {
		require.Equal(t, "stripe", s.Gateway)
		require.Equal(t, "x", d.Header.Get("Content-Type"))
		if string(d.Body) != "b" {
			return nil, errors.New("not that")
		}
		return []order.Event{{ID: "one"}, {ID: "two"}}, nil
	}}
	events, err := r.Read(d)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, []string{events[0].ID, events[1].ID})
	d.Body = nil
	_, err = r.Read(d)
	require.EqualError(t, err, "not that")
}

func TestSame(t *testing.T) {
	t.Parallel()
	hash, other := ":0123456789abcdef01234567", ":fedcba9876543210fedcba98"
	for _, tt := range []struct {
		id, today string
		want      bool
	}{
		{"payment/tr_1" + hash, "payment/tr_1" + other, true},
		{"payment/tr_1" + hash, "payment/tr_2" + other, false},
		{"payment/tr_1" + hash, "payment/tr_1", false},
		{"payment/tr_1", "payment/tr_1" + hash, false},
		{"evt_1", "evt_2", false},
		{"evt:1234", "evt:5678", false},
	} {
		require.Equal(t, tt.want, reevaluate.Same(tt.id, store.Event{Event: order.Event{ID: tt.today}}), "%s, %s", tt.id, tt.today)
	}
}

// What a gateway answered is read again as the answer that it was, and found again though its id is another.
func TestReadAnAnswer(t *testing.T) {
	t.Parallel()
	source := gateway.Source{ID: "s", Account: "shop", Gateway: "mollie", Mode: "test"}
	object, body, err := gateway.Mollie.Fetch.Sample(gateway.SampleRequest{Source: source, Type: "payment.paid", Payment: "tr_1", Reference: "ord_1"})
	require.NoError(t, err)
	cfg := &config.Config{Accounts: map[string]config.Account{"shop": {Sources: map[string]gateway.Source{"s": source}}}}
	events, err := reevaluate.Reader{Config: cfg}.Read(store.StoredDelivery{
		Account: "shop", Source: "s", Body: body,
		Header: map[string]string{gateway.HeaderObject: object.String(), gateway.HeaderStarted: "2026-01-01T00:00:00Z"},
	})
	require.NoError(t, err)
	require.NotEmpty(t, events[0].Facts)
	require.True(t, reevaluate.Same(object.String()+":0123456789abcdef01234567", events[0]))
}
