package outbound_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// entry is an event in the list of the chronicle, a gateway of the tests.
type entry struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Payment  string    `json:"payment,omitempty"`
	Order    string    `json:"order,omitempty"`
	Captured int64     `json:"captured,omitempty"`
	Refunded int64     `json:"refunded,omitempty"`
	Status   string    `json:"status,omitempty"` // of the payment as a whole
}

// chronicle has a list of what happened: GET /events?from=&until=&page=, times in seconds. Its webhooks bring one entry each.
var chronicle = func() *gateway.Gateway {
	g := &gateway.Gateway{
		Name: "chronicle", Title: "Chronicle", Scheme: "stripe", Evidence: gateway.Solid, Covers: gateway.Coverage{Of: "body"},
		Parse: parseEntry,
		Listing: &gateway.Listing{
			Live: "https://example.com", Test: "https://example.com", Reach: 30 * 24 * time.Hour, Delay: chronicleDelay,
			Ready: func(s gateway.Source) error {
				if s.AccessToken == "" {
					return errors.New("has no access_token")
				}
				return nil
			},
			Call: func(s gateway.Source, span gateway.Span, page string) (gateway.Call, error) {
				return gateway.Call{
					Path:   fmt.Sprintf("/events?from=%d&until=%d&page=%s", span.From.Unix(), span.Until.Unix(), page),
					Header: map[string][]string{"Authorization": {"Bearer " + s.AccessToken}},
				}, nil
			},
			Read: readEntries,
		},
		Fetch: &gateway.Fetch{
			Live: "https://example.com", Test: "https://example.com",
			About: func(_ gateway.Source, ids []string) []gateway.Object {
				return []gateway.Object{{Kind: "payment", ID: ids[0]}}
			},
			Call: pinger.Fetch.Call, Parse: parseState,
		},
	}
	return g
}()

// deaf is a gateway that cannot be asked anything.
var deaf = &gateway.Gateway{Name: "deaf", Title: "Deaf", Scheme: "stripe", Evidence: gateway.Solid, Covers: gateway.Coverage{Of: "body"}}

const chronicleDelay = 5 * time.Minute

func parseEntry(_ gateway.Source, d gateway.Delivery) ([]order.Event, error) {
	var e entry
	if json.Unmarshal(d.Body, &e) != nil || e.ID == "" {
		return nil, &gateway.ParseError{Code: "shape", Detail: "this is no entry"}
	}
	ev := order.Event{ID: e.ID, Type: "entry", At: e.At, Reference: e.Order, Strength: order.StrengthPayment}
	if e.Payment == "" {
		ev.Ignored = gateway.NoFact
		return []order.Event{ev}, nil
	}
	ev.Payment = []string{e.Payment}
	if e.Captured > 0 {
		ev.Facts = append(ev.Facts, order.Fact{Kind: order.KindCaptured, Ref: e.ID, Status: order.StatusOK, Amount: e.Captured, Currency: "EUR"})
	}
	if e.Refunded > 0 {
		ev.Facts = append(ev.Facts, order.Fact{Kind: order.KindRefunded, Ref: e.ID, Status: order.StatusOK, Amount: e.Refunded, Currency: "EUR"})
	}
	if e.Status != "" {
		ev.Facts = append(ev.Facts, order.Fact{Kind: order.KindPhase, Status: order.Status(e.Status), Seq: e.At.Unix()})
	}
	return []order.Event{ev}, nil
}

// chroniclePage is a page of the list. Objects are names of payments to ask about.
type chroniclePage struct {
	Entries []json.RawMessage `json:"entries"`
	Objects []string          `json:"objects,omitempty"`
	Next    string            `json:"next,omitempty"`
}

func readEntries(_ gateway.Source, a gateway.Answer) (gateway.Page, error) {
	var p chroniclePage
	if json.Unmarshal(a.Body, &p) != nil || p.Entries == nil {
		return gateway.Page{}, &gateway.ParseError{Code: "shape", Detail: "the answer is no list"}
	}
	page := gateway.Page{Next: p.Next}
	for _, raw := range p.Entries {
		page.Deliveries = append(page.Deliveries, gateway.Delivery{Body: raw})
	}
	for _, id := range p.Objects {
		page.Objects = append(page.Objects, gateway.Object{Kind: "payment", ID: id})
	}
	return page, nil
}

// cut makes the page of a list that begins at the given place.
func cutPage(list []entry, page string, size int) []byte {
	from, _ := strconv.Atoi(page)
	from = min(from, len(list))
	p := chroniclePage{Entries: []json.RawMessage{}}
	for _, e := range list[from:min(from+size, len(list))] {
		raw, _ := json.Marshal(e)
		p.Entries = append(p.Entries, raw)
	}
	if from+size < len(list) {
		p.Next = strconv.Itoa(from + size)
	}
	body, _ := json.Marshal(p)
	return body
}

// world is a gateway whose list lags behind, changes while it is read, and whose clock is wrong; and a store in memory.
type world struct {
	t     *rapid.T
	now   time.Duration // the database's clock, from noon on
	skew  time.Duration // the gateway's clock is so much ahead
	size  int           // of its pages
	newer bool          // it lists the newest first
	all   []*happened

	dies func() bool // whether the next call is the last of this run

	cursor time.Time
	busy   bool
	taken  map[string]bool // by id and time
}

// happened is an entry, from when on it is in the list, and where it goes when the object that it is about changes.
type happened struct {
	at, visible time.Time // the gateway's clock
	moves       []time.Time
}

func (w *world) clock() time.Time { return noon.Add(w.now) }

// its is the gateway's clock.
func (w *world) its() time.Time { return w.clock().Add(w.skew) }

// when is the time of an entry as the list has it now.
func (h *happened) when(now time.Time) time.Time {
	at := h.at
	for _, m := range h.moves {
		if !m.After(now) {
			at = m
		}
	}
	return at
}

// List answers, and time passes meanwhile.
func (w *world) List(_ context.Context, _ *gateway.Gateway, _ gateway.Source, c gateway.Call) ([]byte, error) {
	w.now += time.Duration(rapid.IntRange(0, 20_000).Draw(w.t, "took")) * time.Millisecond
	if w.dies() {
		return nil, &outbound.Error{Kind: outbound.Retry, Status: 503}
	}
	var from, until int64
	var page string
	_, _ = fmt.Sscanf(c.Path, "/events?from=%d&until=%d&page=%s", &from, &until, &page)
	now := w.its()
	var list []entry
	for i, h := range w.all {
		at := h.when(now)
		if now.Before(h.visible) || at.After(now) || at.Unix() < from || at.Unix() >= until {
			continue
		}
		list = append(list, entry{ID: fmt.Sprintf("evt_%d_%d", i, at.UnixMilli()), At: at, Payment: "p", Captured: 1})
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if w.newer {
			a, b = b, a
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return cutPage(list, page, w.size), nil
}

func (w *world) Ingest(_ context.Context, events []store.Event) ([]store.Result, error) {
	for _, e := range events {
		w.taken[e.ID] = true
	}
	return make([]store.Result, len(events)), nil
}

func (w *world) ClaimReconcile(_ context.Context, s store.ReconcileStart) (store.ReconcileClaim, error) {
	require.False(w.t, w.busy)
	w.busy = true
	return store.ReconcileClaim{Account: s.Account, Source: s.Source, Now: w.clock(), Reached: w.cursor, First: noon, Scanned: noon}, nil
}

func (w *world) SaveReconcile(_ context.Context, _ store.ReconcileClaim, p store.ReconcileProgress) error {
	if !p.Reached.IsZero() {
		require.False(w.t, p.Reached.Before(w.cursor), "a cursor never goes back by itself")
		w.cursor = p.Reached
	}
	return nil
}

func (w *world) EndReconcile(ctx context.Context, c store.ReconcileClaim, e store.ReconcileEnd) error {
	w.busy = false
	return w.SaveReconcile(ctx, c, e.ReconcileProgress)
}

func (w *world) KnownEvents(_ context.Context, _ []string, events []store.Event) ([]store.Knowledge, error) {
	out := make([]store.Knowledge, len(events))
	for i, e := range events {
		out[i] = store.EventNew
		if w.taken[e.ID] {
			out[i] = store.EventKnown
		}
	}
	return out, nil
}

func (w *world) NoteReconcile(context.Context, []store.ReconcileKey) error { return nil }

func (w *world) DueReconciles(_ context.Context, l []store.SourceKey) ([]store.SourceKey, error) {
	return l, nil
}

func (w *world) ReconcileOutlook(context.Context, store.ReconcileStart) (store.ReconcileClaim, error) {
	return store.ReconcileClaim{}, errors.New("not asked for")
}

func (w *world) ReconcileCursors(context.Context, string) ([]store.ReconcileCursor, error) {
	return nil, nil
}

func (w *world) ToAsk(context.Context, store.SourceKey, []string, time.Time) (wanted, fresh []string, err error) {
	return nil, nil, nil
}

func (w *world) NoteAsks(context.Context, store.SourceKey, []store.ReconcileAsk) error { return nil }

func (w *world) Announce(context.Context, []store.Announcement) (store.Announced, error) {
	return store.Announced{}, nil
}

func (w *world) TakeAnswers(context.Context, store.ReconcileClaim, string, int) (store.ReconcileAnswers, error) {
	return store.ReconcileAnswers{}, nil
}

func (w *world) FindWaiting(_ context.Context, _ store.ReconcileClaim, _ string, after time.Time, _ time.Duration, _ int) (time.Time, bool, error) {
	return after, false, nil
}

func (w *world) DueWaiting(context.Context, store.ReconcileClaim, string, int) ([]store.WaitingPayments, error) {
	return nil, nil
}

func (w *world) AskedWaiting(context.Context, store.ReconcileClaim, []uuid.UUID, time.Duration, time.Duration, int) error {
	return nil
}

func (w *world) Waiting(context.Context, store.ReconcileClaim, int) ([]store.WaitingOrder, int, error) {
	return nil, 0, nil
}

func (w *world) UncertainTransactions(context.Context, string, []string, time.Duration, int) ([]store.UncertainTransaction, int, error) {
	return nil, 0, nil
}

// Whatever is in the list in the end was taken in: however late it came into the list, whatever moved while it was read, wherever runs
// were cut short, and wherever the gateway's clock stands.
func TestTheCursorSkipsNothing(t *testing.T) {
	t.Parallel()
	src := gateway.Source{ID: "shop", Account: "acme", Gateway: "chronicle", Mode: gateway.Live, AccessToken: "token"}
	rapid.Check(t, func(t *rapid.T) {
		const skew = 2 * time.Minute
		seconds := func(name string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(1000*low, 1000*high).Draw(t, name)) * time.Millisecond
		}
		w := &world{
			t: t, taken: map[string]bool{}, size: rapid.IntRange(1, 7).Draw(t, "size"), newer: rapid.Bool().Draw(t, "newer"),
			skew: seconds("skew", -120, 120), now: 30 * time.Minute, dies: func() bool { return false },
		}
		for range rapid.IntRange(0, 60).Draw(t, "entries") {
			h := &happened{at: noon.Add(w.skew + seconds("at", 0, 2*3600))}
			h.visible = h.at.Add(min(seconds("delay", 0, 400), chronicleDelay))
			for range rapid.IntRange(0, 2).Draw(t, "moves") { // to a later time, at that time
				h.moves = append(h.moves, h.visible.Add(seconds("move", 0, 1800)))
			}
			slices.SortFunc(h.moves, time.Time.Compare)
			w.all = append(w.all, h)
		}
		elapsed := func() time.Duration { return w.now }
		reconciler := func() *outbound.Reconciler { // a new process each time
			r, err := outbound.NewReconciler(w, w, w, func() []gateway.Source { return []gateway.Source{src} }, outbound.ReconcileOptions{
				Gateways: func(string) (*gateway.Gateway, bool) { return chronicle, true }, Elapsed: elapsed, Skew: skew,
				Span:  time.Duration(rapid.SampledFrom([]int{1, 7, 60, 3600}).Draw(t, "span")) * time.Second,
				Calls: rapid.IntRange(1, 40).Draw(t, "calls"),
			})
			require.NoError(t, err)
			return r
		}
		// Runs, some of which die, while all of it happens.
		for w.now < 3*time.Hour {
			left := rapid.IntRange(0, 30).Draw(t, "lives")
			w.dies = func() bool { left--; return left < 0 }
			_, err := reconciler().Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
			require.NoError(t, err)
			w.now += seconds("pause", 0, 1200)
		}
		// And one that does not.
		w.now += chronicleDelay + 2*skew + time.Minute
		w.dies = func() bool { return false }
		for {
			run, err := reconciler().Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
			require.NoError(t, err)
			require.Empty(t, run.Error)
			if run.Result == store.ReconcileDone {
				break
			}
			require.Equal(t, store.ReconcileMore, run.Result)
		}
		for i, h := range w.all {
			at := h.when(w.its())
			require.True(t, w.taken[fmt.Sprintf("evt_%d_%d", i, at.UnixMilli())], "entry %d of %s is in the list and was skipped", i, at)
		}
	})
}
