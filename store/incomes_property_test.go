package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// till is a simple account of one order: what came in cash, what a gateway captured, and no way to be told apart by when.
type till struct {
	total    int64
	canceled bool
	incomes  []tillIncome
	payments []int64 // of each what was captured at last
	refunds  []int64 // of each what was given back
}

type tillIncome struct {
	order.Amount
	voided bool
}

func drawTill(t *rapid.T) till {
	amount := rapid.Int64Range(1, 4)
	w := till{total: amount.Draw(t, "total"), canceled: rapid.IntRange(0, 5).Draw(t, "canceled") == 0}
	for range rapid.IntRange(0, 4).Draw(t, "incomes") {
		in := tillIncome{order.Amount{Minor: amount.Draw(t, "income"), Currency: "EUR"}, rapid.Bool().Draw(t, "voided")}
		if rapid.IntRange(0, 4).Draw(t, "currency") == 0 {
			in.Currency = "USD"
		}
		w.incomes = append(w.incomes, in)
	}
	for range rapid.IntRange(0, 2).Draw(t, "payments") {
		c := amount.Draw(t, "captured")
		w.payments, w.refunds = append(w.payments, c), append(w.refunds, rapid.Int64Range(0, c).Draw(t, "refunded"))
	}
	return w
}

type tillView struct {
	State, Want    string
	Captured, Kept int64
	Flags          []string
}

// view is what the order must be, whatever came first.
func (w till) view() tillView {
	v := tillView{State: "pending", Want: "wait", Flags: []string{}}
	ever, live := false, false
	for _, in := range w.incomes {
		live = true
		switch {
		case in.Currency != "EUR":
			v.Flags = append(v.Flags, "currency_mismatch")
			continue
		case !in.voided:
			v.Captured += in.Minor
		}
		ever = true
	}
	v.Kept = v.Captured
	for i, c := range w.payments {
		ever, live = true, true
		v.Captured += c
		v.Kept += c - w.refunds[i]
	}
	switch {
	case v.Kept >= w.total:
		v.State, v.Want = "paid", "go"
	case v.Captured > 0 && v.Kept == 0:
		v.State, v.Want = "refunded", "stop"
	case v.Captured >= w.total:
		v.State, v.Want = "partially_refunded", "go"
	case v.Kept > 0:
		v.State = "partially_paid"
	case w.canceled:
		v.State = "canceled"
	}
	if v.Kept == 0 && ever && live {
		v.Want = "stop"
	}
	if w.canceled && v.Want == "go" {
		v.Want = "wait"
	}
	if v.Kept > w.total {
		v.Flags = append(v.Flags, "overpaid")
	}
	if v.Captured > 0 && v.Captured < w.total {
		v.Flags = append(v.Flags, "underpaid")
	}
	if w.canceled && v.Kept > 0 {
		v.Flags = append(v.Flags, "paid_after_cancel")
	}
	slices.Sort(v.Flags)
	v.Flags = slices.Compact(v.Flags)
	return v
}

// Random incomes, voids and webhooks, in any order and from several goroutines, end in the one state that a simple account
// of them says.
func TestIncomesVoidsAndWebhooksInAnyOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawTill(rt)
		ref := "ord_" + uuid.NewString()
		e := register(ref, w.total)
		// An order is canceled while no money is there, or not at all.
		apply(t, s, e)
		if w.canceled {
			says(t, s, ref, order.Command{Cancel: true})
		}
		lanes := make([][]func() error, rapid.IntRange(1, 3).Draw(rt, "goroutines"))
		acts := w.acts(t, s, ref)
		var arrival []int // of each act as often as it has parts, which come in their order
		for i, act := range acts {
			arrival = append(arrival, slices.Repeat([]int{i}, len(act))...)
		}
		for _, i := range rapid.Permutation(arrival).Draw(rt, "arrival") {
			lanes[i%len(lanes)] = append(lanes[i%len(lanes)], acts[i][0])
			acts[i] = acts[i][1:]
		}
		var wg sync.WaitGroup
		for _, lane := range lanes {
			wg.Go(func() {
				for _, act := range lane {
					if err := act(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.Equal(rt, w.view(), tillOf(t, pool, ref))
		agreeWithFacts(rt, s, pool, readOrder(t, pool, ref).ID)
	})
	audittest.Clean(t, pool)
	require.Zero(t, s.Retries().Deadlock)
}

// acts are what happens to the order. The parts of one happen in their order, and other things come between.
func (w till) acts(t *testing.T, s *store.Store, ref string) (acts [][]func() error) {
	t.Helper()
	ctx := t.Context()
	for i, in := range w.incomes {
		n := cash(towards(ref), from(fmt.Sprint(i)), func(n *store.NewIncome) { n.Amount = in.Amount })
		if i%2 == 0 {
			n.Ref = fmt.Sprint(ref, i)
		}
		var id uuid.UUID
		enter := func() error {
			return s.InTx(ctx, func(tx store.Tx) error {
				in, err := s.CreateIncome(ctx, tx, n)
				id = in.ID
				return err
			})
		}
		take := func() error {
			return s.InTx(ctx, func(tx store.Tx) error {
				_, _, err := s.VoidIncome(ctx, tx, account, id)
				return err
			})
		}
		act := []func() error{enter}
		if n.Ref != "" {
			act = append(act, enter) // a repeat
		}
		if in.voided {
			act = append(act, take, take)
			if n.Ref != "" {
				act = append(act, enter) // does not bring it back
			}
		}
		acts = append(acts, act)
	}
	for i, c := range w.payments {
		p := fmt.Sprint("pi_", ref, i)
		hook := func(e store.Event) []func() error {
			return []func() error{func() error { _, err := s.Apply(ctx, []store.Event{e}); return err }}
		}
		paid := hook(captured("evt_c_"+p, p, ref, c))
		acts = append(acts, paid, paid)
		if r := w.refunds[i]; r > 0 {
			e := refunded("evt_r_"+p, p, r)
			e.Reference, e.Strength = ref, order.StrengthPayment
			acts = append(acts, hook(e))
		}
	}
	return acts
}

func tillOf(t *testing.T, pool *pgxpool.Pool, ref string) tillView {
	t.Helper()
	o := readOrder(t, pool, ref)
	slices.Sort(o.Flags)
	return tillView{o.State, o.Want, o.Captured, o.Kept, o.Flags}
}

// agreeWithFacts folds what is stored anew: the order's row is what its events say, and every income is in them.
func agreeWithFacts(t *rapid.T, s *store.Store, pool *pgxpool.Pool, id uuid.UUID) {
	ctx := context.WithoutCancel(t.Context())
	o := order.Order{Payments: map[string]*order.Ledger{}}
	tl, err := s.Timeline(ctx, account, id)
	require.NoError(t, err)
	o.Registered, o.Total, o.Currency, o.Canceled = true, *tl.Order.Total, *tl.Order.Currency, tl.Order.Canceled
	offline := 0
	for _, e := range tl.Events {
		if len(e.Payment) == 0 {
			continue
		}
		if o.Payments[e.Payment[0]] == nil {
			o.Payments[e.Payment[0]] = order.NewLedger()
		}
		o.Payments[e.Payment[0]].JoinEvent(order.Event{ID: e.ID, Payment: e.Payment, Facts: e.Facts, Command: e.Command})
		if e.Type == "income.received" {
			offline++
		}
	}
	v := o.View()
	require.Equal(t, v.State, tl.Order.State)
	require.Equal(t, v.Captured, tl.Order.Captured)
	require.Equal(t, v.Flags.Names(), tl.Order.Flags)
	var rows int
	require.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM incomes WHERE order_id = $1`, tl.Order.ID).Scan(&rows))
	require.Equal(t, rows, offline, "an event for every row, a row for every event")
}
