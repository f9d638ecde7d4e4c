package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type eventsCmd struct {
	List eventsListCmd `cmd:"" default:"withargs" help:"List events, the last received first (the default)."`
	Show eventsShowCmd `cmd:"" help:"Show one event: its facts, and the bytes that brought it."`

	Reevaluate eventsReevaluateCmd `cmd:"" help:"Read kept bytes with today's mapping, and rebuild what they meant."`
}

// Help is the text below the flags.
func (eventsCmd) Help() string {
	return `Examples:

    paidonce events --outcome quarantined --since 24h
    paidonce events list --source stripe --reason unknown_type --json
    paidonce events show evt_1PtoA2 --payload
    paidonce events reevaluate --where outcome=quarantined`
}

type eventsListCmd struct {
	Account string `placeholder:"NAME" help:"Only of this account."`
	Source  string `placeholder:"ID" help:"Only of this source."`
	Outcome string `enum:",applied,no_change,waiting,ignored,flagged,quarantined" default:"" placeholder:"WORD" help:"Only with this outcome: applied, no_change, waiting, ignored, flagged or quarantined."`
	Reason  string `placeholder:"WORD" help:"Only with this reason."`
	Type    string `placeholder:"TYPE" help:"Only of this type."`
	Since   string `placeholder:"TIME" help:"Only those received since: a time (RFC 3339), or how long ago (24h)."`
	Until   string `placeholder:"TIME" help:"Only those received before."`
	Limit   int    `default:"50" help:"At most so many; 0: all (default: ${default})."`
	JSON    bool   `help:"Print JSON."`
}

// Run runs the command.
func (c eventsListCmd) Run(ctx context.Context, e *env) error {
	filter := store.EventFilter{
		Account: c.Account, Source: c.Source, Outcome: store.Outcome(c.Outcome), Reason: c.Reason, Type: c.Type,
	}
	var err error
	if filter.Since, err = e.timeOf("--since", c.Since); err != nil {
		return err
	}
	if filter.Until, err = e.timeOf("--until", c.Until); err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	found := []store.StoredEvent{}
	for {
		filter.Limit = pageOf(c.Limit, len(found))
		page, next, err := st.ListEvents(ctx, filter)
		if err != nil {
			return err
		}
		found = append(found, page...)
		if next.ID == "" || (c.Limit > 0 && len(found) >= c.Limit) {
			break
		}
		filter.Before = next
	}
	if c.JSON {
		return e.printJSON(found)
	}
	rows := make([][]string, len(found))
	for i, ev := range found {
		rows[i] = []string{
			ev.Account, ev.Source, ev.ID, ev.Type, string(ev.Outcome), ev.Reason, moved(ev), strconv.Itoa(ev.Deliveries), when(ev.ReceivedAt),
		}
	}
	table(e.stdout, []string{"ACCOUNT", "SOURCE", "EVENT", "TYPE", "OUTCOME", "REASON", "VERSION", "DELIVERIES", "RECEIVED"}, rows)
	return nil
}

// moved is "1 -> 2" for an event that moved its order.
func moved(ev store.StoredEvent) string {
	if ev.Before == nil || ev.After == nil {
		return ""
	}
	if *ev.Before == *ev.After {
		return strconv.Itoa(*ev.After)
	}
	return fmt.Sprintf("%d -> %d", *ev.Before, *ev.After)
}

// timeOf reads a time, or how long ago it was; empty is no time.
func (e *env) timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return e.now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("%s %s: want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h", flag, text)
	}
	return t, nil
}

type eventsShowCmd struct {
	ID      string `arg:"" help:"The event's id."`
	Account string `placeholder:"NAME" help:"Look in this account only."`
	Source  string `placeholder:"ID" help:"Look at this source only."`
	Payload bool   `help:"Print only the bytes that brought it, as they came."`
	JSON    bool   `help:"Print JSON."`
}

// Run runs the command.
func (c eventsShowCmd) Run(ctx context.Context, e *env) error {
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	events, err := st.FindEvents(ctx, c.Account, c.Source, c.ID)
	if err != nil {
		return err
	}
	if c.Payload {
		if len(events) > 1 {
			return usage("%s events are called %s; say which with --account and --source, or by its whole id: %s", strconv.Itoa(len(events)), c.ID, idsOf(events))
		}
		p, err := st.Payload(ctx, store.EventKey{Account: events[0].Account, Source: events[0].Source, ID: events[0].ID})
		if err != nil {
			return err
		}
		_, err = e.stdout.Write(p.Body)
		return err
	}
	if c.JSON {
		return e.printJSON(events)
	}
	for _, ev := range events {
		if err := e.showEvent(ctx, st, ev); err != nil {
			return err
		}
	}
	return nil
}

func idsOf(events []store.StoredEvent) string {
	var ids []string
	for _, ev := range events {
		ids = append(ids, ev.Account+"/"+ev.Source+"/"+ev.ID)
	}
	return strings.Join(ids, ", ")
}

func (e *env) showEvent(ctx context.Context, st *store.Store, ev store.StoredEvent) error {
	orderID := ""
	if ev.OrderID != nil {
		orderID = ev.OrderID.String()
	}
	table(e.stdout, []string{"EVENT", ev.ID}, [][]string{
		{"account", ev.Account},
		{"source", ev.Source},
		{"type", ev.Type},
		{"received", when(ev.ReceivedAt)},
		{"happened", whenPtr(ev.OccurredAt)},
		{"deliveries", strconv.Itoa(ev.Deliveries) + " or more, the last " + when(ev.LastDeliveredAt)},
		{"outcome", string(ev.Outcome)},
		{"reason", ev.Reason},
		{"order", orderID},
		{"order's version", moved(ev)},
		{"payment", strings.Join(ev.Payment, ", ")},
		{"reference", ev.Reference},
	})
	for _, f := range ev.Facts {
		fmt.Fprintf(e.stdout, "fact: %s\n", factText(f))
	}
	if ev.Command != nil {
		text, err := json.Marshal(ev.Command)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "command: %s\n", text)
	}
	key := store.EventKey{Account: ev.Account, Source: ev.Source, ID: ev.ID}
	before, err := st.ReplacedMeanings(ctx, key)
	if err != nil {
		return err
	}
	for _, m := range before {
		fmt.Fprintf(e.stdout, "until %s (mapping %d): %s\n", when(m.Until), m.MappingVersion, meaningText(m.EventMeaning))
	}
	p, err := st.Payload(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		fmt.Fprintln(e.stdout, "payload: not kept any more")
	case err != nil:
		return err
	default:
		fmt.Fprintf(e.stdout, "payload: %d bytes; --payload prints them\n", len(p.Body))
	}
	return nil
}

func factText(f order.Fact) string {
	parts := []string{string(f.Kind)}
	if f.Ref != "" {
		parts = append(parts, f.Ref)
	}
	if f.Status != "" {
		parts = append(parts, string(f.Status))
	}
	if f.Currency != "" {
		parts = append(parts, money(f.Amount, f.Currency))
	}
	if f.Misfit != "" {
		parts = append(parts, "(not counted: wrong "+string(f.Misfit)+")")
	}
	return strings.Join(parts, " ")
}
