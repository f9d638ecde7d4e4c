package app

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// keepSource is how long a source stays in the configuration after its last
// event. Without it the gateway would be answered 404, give up, and may turn the
// endpoint off: what it sent meanwhile would be lost.
const keepSource = 30 * 24 * time.Hour

// checkSources refuses a configuration that leaves out a source which still
// receives.
func (p *program) checkSources(ctx context.Context, cfg *config.Config) error {
	if !p.strict {
		return nil
	}
	var keys []store.SourceKey
	for id, source := range cfg.Sources() {
		keys = append(keys, store.SourceKey{Account: source.Account, ID: id})
	}
	found, err := p.store.ReceivedBesides(ctx, keys, keepSource)
	if err != nil || len(found) == 0 {
		return err
	}
	var names []string
	for _, r := range found {
		names = append(names, fmt.Sprintf("source %s of account %s (last event %s)", r.ID, r.Account, r.At.UTC().Format(time.DateOnly)))
	}
	return fmt.Errorf("the configuration has no %s, which received events in the last 30 days: they would be answered 404 and lost; put source %s back with paused: true, and take it out 30 days after the gateway sent the last one",
		strings.Join(names, ", no "), found[0].ID)
}

// receipts notes which sources receive, in front of the ingester and of what announces objects.
type receipts struct {
	receiver.Ingester
	store *store.Store
	warn  func(ctx context.Context, err error)

	wake    chan struct{}
	mu      sync.Mutex
	noted   map[store.SourceKey]bool // false: not written yet
	pending bool
}

// notedFor is how long a source that was noted is not noted again.
const notedFor = time.Hour

func newReceipts(ing receiver.Ingester, st *store.Store, warn func(context.Context, error)) *receipts {
	return &receipts{Ingester: ing, store: st, warn: warn, wake: make(chan struct{}, 1), noted: map[store.SourceKey]bool{}}
}

// Ingest is the ingester's; what it took in is noted.
func (r *receipts) Ingest(ctx context.Context, events []store.Event) ([]store.Result, error) {
	results, err := r.Ingester.Ingest(ctx, events)
	if err == nil {
		keys := make([]store.SourceKey, len(events))
		for i := range events {
			keys[i] = store.SourceKey{Account: events[i].Account, ID: events[i].Source}
		}
		r.note(keys)
	}
	return results, err
}

// Announce is the store's; that the source received is noted.
func (r *receipts) Announce(ctx context.Context, objects []store.Announcement) (store.Announced, error) {
	announced, err := r.store.Announce(ctx, objects)
	if err == nil && len(objects) > 0 {
		r.note([]store.SourceKey{{Account: objects[0].Account, ID: objects[0].Source}})
	}
	return announced, err
}

func (r *receipts) note(keys []store.SourceKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		if _, known := r.noted[key]; !known {
			r.noted[key], r.pending = false, true
		}
	}
	if r.pending {
		select {
		case r.wake <- struct{}{}:
		default: // asked for already
		}
	}
}

// run writes what is new, until ctx ends and once more after.
func (r *receipts) run(ctx context.Context) error {
	tick := time.NewTicker(notedFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			r.write(last)
			return nil
		case <-tick.C:
			r.mu.Lock()
			maps.DeleteFunc(r.noted, func(_ store.SourceKey, written bool) bool { return written })
			r.mu.Unlock()
		case <-r.wake:
			r.write(ctx)
		}
	}
}

func (r *receipts) write(ctx context.Context) {
	var keys []store.SourceKey
	r.mu.Lock()
	for key, written := range r.noted {
		if !written {
			keys = append(keys, key)
			r.noted[key] = true
		}
	}
	r.pending = false
	r.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	if err := r.store.NoteReceived(ctx, keys); err != nil {
		r.warn(ctx, err)
		r.mu.Lock()
		for _, key := range keys {
			delete(r.noted, key) // its next event asks again
		}
		r.mu.Unlock()
	}
}
