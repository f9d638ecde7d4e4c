package reevaluate

import (
	"context"
	"errors"
	"slices"

	"github.com/paidonce/paidonce/store"
)

// Missing chooses events that are missing, by what their bytes say today. All that is set holds.
type Missing struct {
	Type, Event string      // its type, and its id
	Orders      []OrderName // it names one of these, or a payment that is known to be one's
}

// OrderName is what an order is called.
type OrderName struct {
	Account string // "": any
	Ref     string
}

// MissingOf returns what is asked of events that are missing: nil if nothing is, or if it is something that only known ones have,
// such as an outcome. An order that the database has lost, too, is found by its reference.
func MissingOf(ctx context.Context, st *store.Store, w Where) (*Missing, error) {
	if w.Type == "" && w.Event == "" && w.Order == "" || w.Outcome != "" || w.Reason != "" || w.Mapping > 0 {
		return nil, nil
	}
	m := &Missing{Type: w.Type, Event: w.Event}
	if w.Order == "" {
		return m, nil
	}
	m.Orders = []OrderName{{Account: w.Account, Ref: w.Order}}
	orders, err := st.FindOrders(ctx, w.Account, w.Order)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, o := range orders { // it may have been called by its id
		m.Orders = append(m.Orders, OrderName{o.Account, o.Ref})
	}
	return m, nil
}

// in tells of each of some deliveries whether one of its events is missing and chosen.
func (m *Missing) in(ctx context.Context, st *store.Store, held []store.HeldEvents, known [][]store.Recognition) ([]bool, error) {
	found := make([]bool, len(held))
	if m == nil {
		return found, nil
	}
	var missing []store.Event
	var at []int
	for i, h := range held {
		for n, ev := range h.Events {
			if known[i][n] == store.HeldMissing && (m.Type == "" || ev.Type == m.Type) && (m.Event == "" || ev.ID == m.Event) {
				missing, at = append(missing, ev), append(at, i)
			}
		}
	}
	var payments map[store.PaymentName]store.BookedPayment
	if m.Orders != nil && len(missing) > 0 {
		var err error
		if payments, err = booked(ctx, st, missing); err != nil {
			return nil, err
		}
	}
	for n, ev := range missing {
		found[at[n]] = found[at[n]] || m.Orders == nil || m.ofOrder(ev, payments)
	}
	return found, nil
}

func (m *Missing) ofOrder(ev store.Event, payments map[store.PaymentName]store.BookedPayment) bool {
	is := func(ref string) bool {
		return ref != "" && slices.ContainsFunc(m.Orders, func(o OrderName) bool {
			return o.Ref == ref && (o.Account == "" || o.Account == ev.Account)
		})
	}
	return is(ev.Reference) || slices.ContainsFunc(ev.Payment, func(id string) bool {
		return is(payments[store.PaymentName{Account: ev.Account, Realm: ev.Realm, ID: id}].Order)
	})
}

// choice is a filter that is asked about deliveries in their order.
type choice struct {
	st     *store.Store
	filter store.ReevaluateFilter
	last   store.DeliveryKey
	next   []store.DeliveryKey // that it chooses, up to last
	end    bool                // there are none behind last
}

// of tells which of some deliveries are chosen.
func (c *choice) of(ctx context.Context, keys []store.DeliveryKey) (func(store.StoredDelivery) bool, error) {
	if c == nil {
		return func(store.StoredDelivery) bool { return true }, nil
	}
	chosen := map[string]bool{}
	for _, k := range keys {
		yes, err := c.has(ctx, k)
		if err != nil {
			return nil, err
		}
		chosen[k.String()] = yes
	}
	return func(d store.StoredDelivery) bool { return chosen[d.Key().String()] }, nil
}

func (c *choice) has(ctx context.Context, k store.DeliveryKey) (bool, error) {
	for {
		for len(c.next) > 0 && c.next[0].Compare(k) < 0 {
			c.next = c.next[1:]
		}
		if len(c.next) > 0 || c.end {
			return len(c.next) > 0 && c.next[0].Compare(k) == 0, nil
		}
		keys, err := c.st.ListKept(ctx, c.filter, c.last, replayKeys)
		if err != nil {
			return false, err
		}
		c.next, c.end = keys, len(keys) < replayKeys
		if !c.end {
			c.last = keys[len(keys)-1]
		}
	}
}
