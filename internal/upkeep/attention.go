package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/internal/doctor"
	"github.com/paidonce/paidonce/store"
)

// AttentionOptions are optional settings of an [Attention].
type AttentionOptions struct {
	// Sources returns the configured sources, and is asked at every run: of others it is nothing to note that they receive nothing.
	// Default: there are none.
	Sources func() []store.SourceKey

	Now        func() time.Time      // default time.Now
	Registerer prometheus.Registerer // default: none
}

// attentionCount is how many of a kind are counted.
const attentionCount = 1000

// Attention counts what needs a person, as `paidonce doctor` lists it: the metrics paidonce_attention and
// paidonce_attention_oldest_seconds, by kind. The process whose turn it was shows what it saw for some minutes; every other one shows 0.
type Attention struct {
	store doctor.Store
	opts  AttentionOptions

	count, oldest *prometheus.Desc

	mu     sync.Mutex
	seen   doctor.Report
	seenAt time.Time
}

// NewAttention returns the counting of what needs a person in st.
func NewAttention(st doctor.Store, opts AttentionOptions) (*Attention, error) {
	if st == nil {
		return nil, errors.New("upkeep: nil store")
	}
	if opts.Sources == nil {
		opts.Sources = func() []store.SourceKey { return nil }
	}
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	a := &Attention{
		store: st, opts: opts,
		count: prometheus.NewDesc("paidonce_attention", fmt.Sprintf("What needs a person, by kind, up to %d of each; paidonce doctor lists it. 0: nothing, or another process looks.", attentionCount),
			[]string{"kind"}, nil),
		oldest: prometheus.NewDesc("paidonce_attention_oldest_seconds", "How long that stands so which needs a person the longest, by kind. 0: nothing does, or another process looks.",
			[]string{"kind"}, nil),
	}
	if opts.Registerer != nil {
		if err := opts.Registerer.Register(a); err != nil {
			return nil, fmt.Errorf("upkeep: %w", err)
		}
	}
	return a, nil
}

// Task is the counting as something that is done every minute.
func (a *Attention) Task() Task { return Task{Name: "attention_counted", Run: a.Run} }

// Run looks once. Nothing is done by it: it returns 0.
func (a *Attention) Run(ctx context.Context) (int64, error) {
	r, err := doctor.Look(ctx, a.store, doctor.Options{Limit: attentionCount, Sources: a.opts.Sources()})
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.seenAt = r, a.opts.Now()
	return 0, nil
}

// Describe implements [prometheus.Collector].
func (a *Attention) Describe(to chan<- *prometheus.Desc) {
	to <- a.count
	to <- a.oldest
}

// Collect implements [prometheus.Collector]. A time goes on while nobody looks again.
func (a *Attention) Collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	passed := a.opts.Now().Sub(a.seenAt)
	piles := map[doctor.Kind]doctor.Pile{}
	if passed <= forgetAfter {
		for _, p := range a.seen.Piles {
			piles[p.Kind] = p
		}
	}
	for _, k := range doctor.Kinds() {
		oldest := time.Duration(0)
		p, there := piles[k.Kind]
		if there {
			oldest = max(0, a.seen.At.Sub(p.Oldest)+passed)
		}
		to <- prometheus.MustNewConstMetric(a.count, prometheus.GaugeValue, float64(p.Count), string(k.Kind))
		to <- prometheus.MustNewConstMetric(a.oldest, prometheus.GaugeValue, oldest.Seconds(), string(k.Kind))
	}
}
