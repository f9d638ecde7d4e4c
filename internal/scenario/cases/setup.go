package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/scenario/network"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// setUp brings about the orders that the case starts from, through the
// program's own write path and with its workers running, and takes stock.
func (p *player) setUp(ctx context.Context) error {
	for _, a := range p.c.Setup.GatewayHTTP {
		p.Network.Answer(a.Method, a.URL, replies(a))
	}
	for i := range p.c.Setup.Orders {
		if err := p.setUpOrder(ctx, &p.c.Setup.Orders[i]); err != nil {
			return fmt.Errorf("order %s: %w", p.c.Setup.Orders[i].Ref, err)
		}
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	var err error
	if p.before, err = p.count(ctx, AccountA); err != nil {
		return err
	}
	p.Merchant.Reset()
	p.outboundBefore = len(p.Network.Outbound())
	return nil
}

// setUpOrder registers an order and lets its money happen, one fact after another.
func (p *player) setUpOrder(ctx context.Context, o *Order) error {
	if err := p.register(ctx, o.Ref, o.Amount, o.Currency); err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	events, err := p.moneyOf(o)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := p.ingest(ctx, e); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// register makes the event that POST /v1/orders makes.
func (p *player) register(ctx context.Context, ref string, amount int64, currency string) error {
	return p.ingest(ctx, store.Event{Account: AccountA, Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", At: p.time(), Reference: ref, Strength: order.StrengthPerson,
		Command: &order.Command{Register: &order.Amount{Minor: amount, Currency: currency}},
	}})
}

// moneyOf returns the events of a payment that has taken place: running totals
// under no id, and of a dispute an id of the set-up's own.
func (p *player) moneyOf(o *Order) ([]store.Event, error) {
	var facts []order.Fact
	add := func(kind order.Kind, amount int64) {
		facts = append(facts, order.Fact{Kind: kind, Amount: amount, Currency: o.Currency})
	}
	captured := o.Amount
	if o.Captured != nil {
		captured = *o.Captured
	}
	switch o.Status {
	case "authorized":
		add(order.KindAuthorized, o.Amount)
	case "paid", "shipped":
		add(order.KindCaptured, captured)
	case "refunded":
		add(order.KindCaptured, captured)
		refunded := captured
		if o.Refunded != nil {
			refunded = *o.Refunded
		}
		add(order.KindRefunded, refunded)
	case "canceled":
		if o.Captured != nil {
			add(order.KindCaptured, *o.Captured)
		}
		if o.Refunded != nil {
			add(order.KindRefunded, *o.Refunded)
		}
	case "disputed":
		add(order.KindCaptured, captured)
		facts = append(facts, order.Fact{
			Kind: order.KindDisputed, Ref: "setup:" + o.Ref, Status: order.StatusOpen, Amount: captured, Currency: o.Currency,
		})
	}
	var events []store.Event
	if o.PaymentID != "" {
		base, err := p.paymentEvent(o)
		if err != nil {
			return nil, err
		}
		if len(facts) == 0 { // registered: only linked to its payment
			events = append(events, base)
		}
		for _, f := range facts {
			e := base
			e.ID, e.Type, e.Facts = base.ID+":"+string(f.Kind), "setup."+string(f.Kind), []order.Fact{f}
			events = append(events, e)
		}
	}
	if o.Status == "canceled" {
		events = append(events, store.Event{Account: AccountA, Source: store.APISource, Event: order.Event{
			ID: "setup:" + o.Ref + ":cancel", Type: "order.canceled", At: p.time(), Reference: o.Ref,
			Strength: order.StrengthPerson, Command: &order.Command{Cancel: true},
		}})
	}
	return events, nil
}

// paymentEvent is an event of the payment itself, a day before the case.
func (p *player) paymentEvent(o *Order) (store.Event, error) {
	var source gateway.Source
	if err := json.Unmarshal(p.c.Setup.Sources[o.Source], &source); err != nil {
		return store.Event{}, err
	}
	g, ok := gateway.Lookup(source.Gateway)
	if !ok {
		return store.Event{}, fmt.Errorf("there is no gateway %q", source.Gateway)
	}
	return store.Event{Account: AccountA, Source: o.Source, Event: order.Event{
		ID: "setup:" + o.Ref, Type: "setup.linked", At: p.time().Add(-24 * time.Hour), Realm: g.Realm(source),
		Payment: []string{o.PaymentID}, Reference: o.Ref, Strength: order.StrengthPayment,
	}}, nil
}

// ingest enters one event by the program's write path.
func (p *player) ingest(ctx context.Context, e store.Event) error {
	var err error
	if e.Delivery, err = uuid.NewV7(); err != nil {
		return err
	}
	results, err := p.Store.Apply(ctx, []store.Event{e})
	if err != nil {
		return fmt.Errorf("enter %s: %w", e.ID, err)
	}
	if o := results[0].Outcome; !slices.Contains(entered, o) {
		return fmt.Errorf("enter %s: it was %s (%s)", e.ID, o, results[0].Reason)
	}
	return nil
}

// replies are the answers of an outside host, as the network takes them.
func replies(a Answer) []network.Reply {
	list := make([]network.Reply, len(a.Answers))
	for i, r := range a.Answers {
		list[i] = network.Reply{Status: r.Status, ContentType: r.ContentType, Body: r.Body}
	}
	return list
}

// entered are the outcomes of events that the program made sense of.
var entered = []store.Outcome{store.Applied, store.NoChange, store.Flagged, store.Duplicate}
