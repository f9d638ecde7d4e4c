package reevaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paidonce/paidonce/store"
)

// Replay is which kept deliveries are to be taken in once more, and how.
type Replay struct {
	Filter  store.ReevaluateFilter // chooses deliveries: what it asks of events holds for one that the delivery brought
	Missing *Missing               // chooses deliveries too: by events that they hold and that are missing; nil: none
	After   store.DeliveryKey      // go on behind this one
	Apply   bool                   // otherwise it is a dry run

	// Each, if set, is told what came of some more deliveries. An error of it ends the work. What it was told of is not
	// kept, so that the lists of what Replay returns are empty then.
	Each func(Replayed) error

	// Together is how many missing events a dry run tries together at most. Default 20,000.
	Together int
}

// Replayed is what taking deliveries in once more came to.
type Replayed struct {
	Deliveries int // read, or skipped
	Chosen     int // of these; all of them where nobody asks for what is missing
	Known      int // events of what is chosen that are known as they are: they change nothing
	store.Reevaluated

	// Next is behind the deliveries that are done: what is asked for from there on completes this.
	Next store.DeliveryKey
}

const (
	replayKeys  = 5_000 // deliveries that are listed at once
	replayBatch = 64    // whose bytes are read, and whose events are entered in one transaction
)

// SkipOtherMeaning is the code of a [store.SkippedEvent] that a replay leaves to [Reader.Run].
const SkipOtherMeaning = "other_meaning"

// Replay takes kept deliveries in once more, the oldest first, by the way of every delivery: what is known stays as it is, and what is
// missing is entered. It never replaces what an event was taken to say: where its bytes say something else today, it is skipped, and
// is [Reader.Run]'s. It may be stopped at any time, and done as often as anybody wants.
//
// A dry run tries what is missing together, by the payments and orders that it is about, and takes it back; so it says what all of
// it would come to, whatever batches it would be entered in. That is known at the end only, so Next stays at the beginning until then.
//
// With an error, what was returned until then has happened.
func (r Reader) Replay(ctx context.Context, st *store.Store, w Replay) (Replayed, error) {
	p := &replaying{r: r, st: st, w: w, all: Replayed{Next: w.After}}
	p.w.Together = cmp.Or(w.Together, 20_000)
	if w.Missing != nil {
		p.choice = &choice{st: st, filter: w.Filter, last: w.After}
	}
	for last := w.After; ; {
		keys, err := st.ListKept(ctx, w.listed(), last, replayKeys)
		if err != nil {
			return p.all, err
		}
		for chunk := range slices.Chunk(keys, replayBatch) {
			last = chunk[len(chunk)-1]
			if err := p.some(ctx, chunk); err != nil {
				return p.all, err
			}
		}
		if len(keys) < replayKeys {
			return p.all, p.try(ctx, last)
		}
	}
}

// Count returns how many deliveries a replay reads.
func (w Replay) Count(ctx context.Context, st *store.Store) (int, error) {
	return st.CountKept(ctx, w.listed(), w.After)
}

// listed is the filter of what is read: what bytes hold is known only then.
func (w Replay) listed() store.ReevaluateFilter {
	if w.Missing != nil {
		return w.Filter.OfBytes()
	}
	return w.Filter
}

// replaying is a replay under way.
type replaying struct {
	r       Reader
	st      *store.Store
	w       Replay
	choice  *choice // nil: what is listed is what is chosen
	all     Replayed
	missing []store.Event // that a dry run has found and not tried yet
}

// some takes some deliveries in.
func (p *replaying) some(ctx context.Context, keys []store.DeliveryKey) error {
	part := Replayed{Deliveries: len(keys)}
	missing, err := p.read(ctx, keys, &part)
	if err != nil {
		return err
	}
	last := keys[len(keys)-1]
	if !p.w.Apply {
		p.missing = append(p.missing, missing...)
		if len(p.missing) == 0 {
			part.Next = last
		}
		if err := p.tell(part); err != nil {
			return err
		}
		if len(p.missing) >= p.w.Together {
			return p.try(ctx, last)
		}
		return ctx.Err()
	}
	entered, err := p.st.Replay(ctx, missing, true)
	if err != nil {
		return fmt.Errorf("take %d deliveries in once more: %w", len(keys), err)
	}
	part.add(entered)
	part.Next = last
	if err := p.r.announce(ctx, p.st, entered); err != nil {
		return err
	}
	return errors.Join(p.tell(part), ctx.Err())
}

// tell adds a part to the whole.
func (p *replaying) tell(part Replayed) error {
	p.all.Deliveries += part.Deliveries
	p.all.Chosen += part.Chosen
	p.all.Known += part.Known
	if p.w.Each == nil {
		p.all.add(part.Reevaluated)
	} else {
		p.all.Read += part.Read
	}
	if !part.Next.At.IsZero() {
		p.all.Next = part.Next
	}
	if p.w.Each == nil {
		return nil
	}
	part.Next = p.all.Next
	return p.w.Each(part)
}

func (r *Replayed) add(more store.Reevaluated) {
	r.Read += more.Read
	r.Orders, r.Entered = append(r.Orders, more.Orders...), append(r.Entered, more.Entered...)
	r.Skipped = append(r.Skipped, more.Skipped...)
}

// read returns the events of some deliveries that are missing.
func (p *replaying) read(ctx context.Context, keys []store.DeliveryKey, part *Replayed) ([]store.Event, error) {
	chosen, err := p.choice.of(ctx, keys)
	if err != nil {
		return nil, err
	}
	deliveries, err := p.st.ReadKept(ctx, keys)
	if err != nil {
		return nil, err
	}
	// What cannot be read cannot be chosen for what it holds.
	unreadable := func(d store.StoredDelivery, why error) {
		if chosen(d) {
			part.Chosen++
			part.skip(d, "", store.SkipUnreadable, why.Error())
		}
	}
	var held []store.HeldEvents
	for _, d := range deliveries {
		events, err := p.r.Read(d)
		if err != nil {
			unreadable(d, err)
			continue
		}
		held = append(held, store.HeldEvents{StoredDelivery: d, Events: events})
	}
	known, err := p.recognise(ctx, &held, unreadable)
	if err != nil {
		return nil, err
	}
	holds, err := p.w.Missing.in(ctx, p.st, held, known)
	if err != nil {
		return nil, err
	}
	var missing []store.Event
	for i, h := range held {
		if holds[i] || chosen(h.StoredDelivery) {
			part.Chosen++
			missing = append(missing, p.sort(h, known[i], part)...)
		}
	}
	return missing, nil
}

// sort returns what is missing of a delivery, and notes the rest.
func (p *replaying) sort(h store.HeldEvents, known []store.Recognition, part *Replayed) (missing []store.Event) {
	for n, ev := range h.Events {
		switch known[n] {
		case store.HeldKnown:
			part.Known++
		case store.HeldOther:
			part.skip(h.StoredDelivery, ev.ID, SkipOtherMeaning, "its bytes mean something else today; paidonce events reevaluate replaces what they meant")
		case store.HeldMissing:
			if p.w.Apply {
				ev.Payload, ev.Header = h.Body, h.Header
			}
			missing = append(missing, ev)
		}
	}
	return missing
}

// recognise asks how events stand. A delivery with one that nobody can store today is skipped as a whole.
func (p *replaying) recognise(ctx context.Context, held *[]store.HeldEvents, unreadable func(store.StoredDelivery, error)) ([][]store.Recognition, error) {
	for {
		known, err := p.st.Recognise(ctx, *held, Same)
		var bad *store.HeldError
		if !errors.As(err, &bad) {
			return known, err
		}
		unreadable((*held)[bad.Index].StoredDelivery, bad)
		*held = slices.Delete(*held, bad.Index, bad.Index+1)
	}
}

func (r *Replayed) skip(d store.StoredDelivery, event, code, why string) {
	if event == "" {
		event = "of delivery " + d.Delivery.String()
	}
	r.Read++
	r.Skipped = append(r.Skipped, store.SkippedEvent{Account: d.Account, Source: d.Source, ID: event, Code: code, Why: why})
}

// try says what the events that a dry run has found missing would come to.
func (p *replaying) try(ctx context.Context, last store.DeliveryKey) error {
	if p.w.Apply || len(p.missing) == 0 {
		return ctx.Err()
	}
	groups, err := p.group(ctx)
	if err != nil {
		return err
	}
	p.missing = nil
	for i, g := range groups {
		tried, err := p.st.Replay(ctx, g, false)
		if err != nil {
			return fmt.Errorf("try %d events that are missing: %w", len(g), err)
		}
		part := Replayed{Reevaluated: tried}
		if i == len(groups)-1 {
			part.Next = last
		}
		if err := p.tell(part); err != nil {
			return err
		}
	}
	return ctx.Err()
}
