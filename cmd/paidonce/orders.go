package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type ordersCmd struct {
	List ordersListCmd `cmd:"" default:"withargs" help:"List orders, newest first (the default)."`
	Show ordersShowCmd `cmd:"" help:"Show one order with its payments, events and versions."`
}

// Help is the text below the flags.
func (ordersCmd) Help() string {
	return `Examples:

    paidonce orders --state partially_paid
    paidonce orders list --stubs --older 1h
    paidonce orders show ord_1`
}

type ordersListCmd struct {
	Account string        `placeholder:"NAME" help:"Only of this account."`
	State   string        `enum:",pending,authorized,partially_paid,paid,partially_refunded,refunded,disputed,charged_back,failed,canceled,expired" default:"" placeholder:"STATE" help:"Only in this state: pending, authorized, partially_paid, paid, partially_refunded, refunded, disputed, charged_back, failed, canceled or expired."`
	Flag    string        `placeholder:"FLAG" help:"Only with this flag, such as overpaid or dispute_open."`
	Stubs   bool          `help:"Only those that have a payment and that nobody registered."`
	Older   time.Duration `placeholder:"DURATION" help:"Only those made longer ago."`
	Limit   int           `default:"50" help:"At most so many; 0: all (default: ${default})."`
	JSON    bool          `help:"Print JSON."`
}

// Run runs the command.
func (c ordersListCmd) Run(ctx context.Context, e *env) error {
	if c.Flag != "" {
		if _, err := order.ParseFlags([]string{c.Flag}); err != nil {
			return usage("--flag: %w", err)
		}
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	found := []store.Order{}
	filter := store.OrderFilter{Account: c.Account, State: c.State, Flag: c.Flag, Stubs: c.Stubs, Older: c.Older}
	for {
		filter.Limit = pageOf(c.Limit, len(found))
		page, next, err := st.ListOrders(ctx, filter)
		if err != nil {
			return err
		}
		found = append(found, page...)
		if next == uuid.Nil || (c.Limit > 0 && len(found) >= c.Limit) {
			break
		}
		filter.Before = next
	}
	if c.JSON {
		return e.printJSON(found)
	}
	rows := make([][]string, len(found))
	for i, o := range found {
		rows[i] = []string{
			o.Account, o.Ref, string(o.State), total(o), orderMoney(o, o.Kept), string(o.Told),
			strings.Join(o.Flags, ","), strconv.Itoa(o.Version), when(o.CreatedAt),
		}
	}
	table(e.stdout, []string{"ACCOUNT", "ORDER", "STATE", "TOTAL", "KEPT", "TOLD", "FLAGS", "VERSION", "MADE"}, rows)
	return nil
}

// allPages reads page after page until there are limit (0: all).
func allPages[T any](limit int, page func(after *T, size int) ([]T, error)) ([]T, error) {
	found := []T{}
	var after *T
	for {
		size := pageOf(limit, len(found))
		next, err := page(after, size)
		if err != nil {
			return nil, err
		}
		found = append(found, next...)
		if len(next) < size || limit > 0 && len(found) >= limit {
			return found, nil
		}
		after = &next[len(next)-1]
	}
}

// pageOf is how many rows to ask for when have are there and limit (0: all) are
// wanted.
func pageOf(limit, have int) int {
	const most = 1000
	if limit <= 0 {
		return most
	}
	return min(most, limit-have)
}

func total(o store.Order) string {
	if o.Total == nil {
		return "unknown"
	}
	return orderMoney(o, *o.Total)
}

func orderMoney(o store.Order, minor int64) string {
	if o.Currency == nil {
		return strconv.FormatInt(minor, 10)
	}
	return money(minor, *o.Currency)
}

type ordersShowCmd struct {
	Name    string `arg:"" help:"The order: its external_ref or id."`
	Account string `placeholder:"NAME" help:"Look in this account only."`
	JSON    bool   `help:"Print JSON."`
}

// Run runs the command.
func (c ordersShowCmd) Run(ctx context.Context, e *env) error {
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	orders, err := st.FindOrders(ctx, c.Account, c.Name)
	if err != nil {
		return err
	}
	timelines := make([]store.Timeline, len(orders))
	for i, o := range orders {
		if timelines[i], err = st.Timeline(ctx, o.Account, o.ID); err != nil {
			return err
		}
	}
	if c.JSON {
		return e.printJSON(timelines)
	}
	for _, t := range timelines {
		e.showOrder(t)
	}
	return nil
}

func (e *env) showOrder(t store.Timeline) {
	o := t.Order
	table(e.stdout, []string{"ORDER", o.Ref}, [][]string{
		{"id", o.ID.String()},
		{"account", o.Account},
		{"state", string(o.State)},
		{"flags", strings.Join(o.Flags, ", ")},
		{"total", total(o)},
		{"captured", orderMoney(o, o.Captured)},
		{"refunded", orderMoney(o, o.Refunded)},
		{"lost", orderMoney(o, o.Lost)},
		{"kept", orderMoney(o, o.Kept)},
		{"merchant was told", string(o.Told)},
		{"version", strconv.Itoa(o.Version)},
		{"made", when(o.CreatedAt)},
		{"registered", whenPtr(o.RegisteredAt)},
	})
	var rows [][]string
	for _, v := range t.Versions {
		move := string(v.To)
		if v.From != "" && v.From != v.To {
			move = string(v.From) + " -> " + move
		}
		effect := string(v.Effect)
		if v.Effect != order.EffectNone {
			effect += " (" + string(v.EffectState) + ")"
		}
		rows = append(rows, []string{strconv.Itoa(v.Version), when(v.At), move, effect, v.EventID})
	}
	fmt.Fprintln(e.stdout)
	table(e.stdout, []string{"VERSION", "AT", "STATE", "EFFECT", "BECAUSE OF"}, rows)
	rows = nil
	for _, ev := range t.Events {
		rows = append(rows, []string{ev.ID, ev.Source, ev.Type, string(ev.Outcome), ev.Reason, when(ev.ReceivedAt)})
	}
	fmt.Fprintln(e.stdout)
	table(e.stdout, []string{"EVENT", "SOURCE", "TYPE", "OUTCOME", "REASON", "RECEIVED"}, rows)
}
