package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// Webhook is one webhook on its way to whoever receives those of the source.
type Webhook struct {
	Source   gateway.Source
	ID, Type string // of the event; for people
	Attempt  int    // 1, or more if it was not taken before
	Delivery gateway.Delivery
}

// event is something that happened.
type event struct {
	id, typ string
	about   *payment
	at      time.Time
	serial  int
	body    []byte // as a webhook brings it
	listed  []byte // as a list shows it
}

// outgoing is an event that is to be sent.
type outgoing struct {
	a       *account
	e       *event
	due     time.Time
	rank    int
	held    bool // until the next event of the source
	attempt int
}

// task is something that happens later.
type task struct {
	due time.Time
	run func()
}

// emit enters an event. n-th of its type about the payment, it has an id that nothing else has a part in.
func (a *account) emit(p *payment, typ string, make func(id string, at time.Time) (body, listed []byte)) {
	p.told[typ]++
	a.bank.serial++
	e := &event{typ: typ, about: p, at: a.bank.now(), serial: a.bank.serial}
	e.id = derive(24, "event", a.src.ID, p.id, typ, fmt.Sprint(p.told[typ]))
	e.body, e.listed = make(e.id, e.at)
	a.events = append(a.events, e)
}

// post puts what happened into the outbox. What must be sent before the call that caused it is answered is returned: nothing if
// nobody waits for an answer.
func (b *Bank) post(a *account, events []*event, step Step, set, waits bool) (early []*outgoing) {
	for _, e := range events {
		for _, o := range b.outbox {
			if o.a == a && o.held {
				o.held, o.due, o.rank = false, e.at, 2*e.serial+1
			}
		}
		f := step.of(hookFaults)
		if !set {
			f = b.opts.Odds.pick(hookFaults, b.draw("hook", a.src.ID, e.id))
		}
		if f == HookEarly && !waits {
			f = ""
		}
		if f != "" {
			a.counts.Faults[f]++
		}
		o := &outgoing{a: a, e: e, due: e.at, rank: 2 * e.serial}
		switch f {
		case HookDropped:
			continue
		case HookDoubled:
			again := *o
			b.outbox = append(b.outbox, &again)
		case HookDelayed:
			o.due, o.rank = o.due.Add(b.opts.Delay), o.rank+1<<40
		case HookReordered:
			o.due, o.held = o.due.Add(b.opts.Delay), true
		case HookEarly:
			early = append(early, o)
			continue
		}
		b.outbox = append(b.outbox, o)
	}
	return early
}

// later lets something happen when the delay is over.
func (b *Bank) later(run func()) { b.tasks = append(b.tasks, task{b.now().Add(b.opts.Delay), run}) }

// advance lets everything happen that is due, or all that is to happen.
func (b *Bank) advance(all bool) {
	for {
		i := slices.IndexFunc(b.tasks, func(t task) bool { return all || !b.now().Before(t.due) })
		if i < 0 {
			return
		}
		run := b.tasks[i].run
		b.tasks = slices.Delete(b.tasks, i, i+1)
		run()
	}
}

// Pump lets everything happen that is due by the bank's clock, sends the webhooks that are due, one after the other, and returns
// how many were taken. What is not taken is due again later. Nothing is sent without [Options].Deliver.
func (b *Bank) Pump(ctx context.Context) int { return b.pump(ctx, false) }

// Settle is [Pump] for everything that is still to come, whatever the clock says, until nothing is left but what is not taken. Of
// webhooks that were not taken each is tried once more.
func (b *Bank) Settle(ctx context.Context) int { return b.pump(ctx, true) }

func (b *Bank) pump(ctx context.Context, all bool) (taken int) {
	refused := map[*outgoing]bool{}
	for ctx.Err() == nil {
		b.mu.Lock()
		b.advance(all)
		var due []*outgoing
		if b.opts.Deliver != nil {
			b.outbox = slices.DeleteFunc(b.outbox, func(o *outgoing) bool {
				if refused[o] || !all && b.now().Before(o.due) {
					return false
				}
				due = append(due, o)
				return true
			})
		}
		b.mu.Unlock()
		if len(due) == 0 {
			break
		}
		slices.SortStableFunc(due, func(x, y *outgoing) int { return cmp.Compare(x.rank, y.rank) })
		for _, o := range b.send(ctx, due) {
			refused[o] = true
		}
		taken += len(due)
	}
	return taken - len(refused)
}

// send sends webhooks, and returns those that were not taken: they are in the outbox again.
func (b *Bank) send(ctx context.Context, all []*outgoing) (refused []*outgoing) {
	for _, o := range all {
		o.attempt++
		err := b.deliver(ctx, o)
		b.mu.Lock()
		if err == nil {
			o.a.counts.Sent++
		} else {
			o.a.counts.Refused++
			o.due = b.now().Add(time.Duration(min(o.attempt, 60)) * b.opts.Delay)
			b.outbox = append(b.outbox, o)
			refused = append(refused, o)
		}
		b.mu.Unlock()
	}
	return refused
}

func (b *Bank) deliver(ctx context.Context, o *outgoing) error {
	if b.opts.Deliver == nil {
		return errors.New("bank: nobody takes webhooks")
	}
	d, err := o.a.gw.Deliver(o.a.src, o.e.body, "", b.now())
	if err != nil {
		return fmt.Errorf("bank: webhook of source %s: %w", o.a.src.ID, err)
	}
	return b.opts.Deliver(ctx, Webhook{Source: o.a.src, ID: o.e.id, Type: o.e.typ, Attempt: o.attempt, Delivery: d})
}

// wake says that something may be due.
func (b *Bank) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// Run pumps until ctx ends: whenever a call was answered, and every so often, since the clock may have gone on.
func (b *Bank) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		b.Pump(ctx)
		select {
		case <-ctx.Done():
			return
		case <-b.news:
		case <-tick.C:
		}
	}
}

// PostTo returns a function for [Options].Deliver that sends webhooks by HTTP to base + "/" + the source's id. An answer other
// than 2xx is an error.
func PostTo(client *http.Client, base string) func(context.Context, Webhook) error {
	return func(ctx context.Context, w Webhook) error {
		url := strings.TrimSuffix(base, "/") + "/" + w.Source.ID
		if w.Delivery.Query != "" {
			url += "?" + w.Delivery.Query
		}
		r, err := http.NewRequestWithContext(ctx, w.Delivery.Method, url, strings.NewReader(string(w.Delivery.Body)))
		if err != nil {
			return fmt.Errorf("bank: %w", err)
		}
		r.Header = w.Delivery.Header.Clone()
		answer, err := client.Do(r)
		if err != nil {
			return fmt.Errorf("bank: %w", err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("bank: webhook of source %s was answered %d", w.Source.ID, answer.StatusCode)
		}
		return nil
	}
}
