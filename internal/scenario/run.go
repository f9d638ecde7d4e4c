package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// Target is the program that scenarios are played against. Its configuration
// holds the accounts of the [Set].
type Target struct {
	// URL is where serve listens: http://127.0.0.1:8080.
	URL string

	// Pool is on the program's database, to see what became of things.
	Pool *pgxpool.Pool

	// Workers controls the only processes that call merchants. Nil: scenarios
	// that kill or start workers fail.
	Workers Workers

	// Parallel is how many scenarios are played at once. Default 4. Those that
	// kill workers are played last, one by one.
	Parallel int

	// Now is the time that deliveries are signed at. Default time.Now.
	Now func() time.Time

	client *http.Client
}

// Workers are processes of the program that call merchants.
type Workers interface {
	// Start starts them; they may still be on their way when it returns.
	Start(ctx context.Context) error

	// Kill ends them with SIGKILL and returns when they are gone.
	Kill(ctx context.Context) error
}

// Progress is told after each scenario.
type Progress struct {
	Done, Total int
	Name        string
	Shows       string
	Took        time.Duration
	Problems    []string // what was not as expected; empty: all was
}

// Summary is what all scenarios together did.
type Summary struct {
	Scenarios  int       `json:"scenarios"`
	Failed     int       `json:"failed"`
	Deliveries int       `json:"deliveries"` // HTTP requests to webhooks
	Events     int       `json:"events"`     // that were kept
	Duplicates int       `json:"duplicates"` // events that were known and acknowledged again
	Orders     int       `json:"orders"`
	Effects    int       `json:"effects"` // distinct keys that merchants were called with
	Failures   []Failure `json:"failures,omitempty"`
}

// Failure is a scenario in which something was not as expected.
type Failure struct {
	Name     string   `json:"name"`
	Problems []string `json:"problems"`
}

func (t Target) withDefaults() Target {
	if t.Parallel == 0 {
		t.Parallel = 4
	}
	if t.Now == nil {
		t.Now = time.Now //nolint:forbidigo // scenarios are played in real time, as gateways send
	}
	t.client = &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return t
}

// killsWorkers reports whether a scenario disturbs those beside it.
func (s *Scenario) killsWorkers() bool {
	return slices.ContainsFunc(s.Steps, func(s Step) bool { return s.Worker != "" })
}

// Run plays all scenarios once. progress, which may be nil, is called after each,
// from one goroutine at a time. The error is about Run itself (ctx ended); what
// scenarios find stands in the Summary.
func (s *Set) Run(ctx context.Context, t Target, progress func(Progress)) (Summary, error) {
	if t.URL == "" || t.Pool == nil {
		return Summary{}, errors.New("scenario: a Target needs URL and Pool")
	}
	t = t.withDefaults()
	defer t.client.CloseIdleConnections()
	r := &running{set: s, target: t, progress: progress, sum: Summary{Scenarios: len(s.scenarios)}}

	var wg sync.WaitGroup
	places := make(chan struct{}, t.Parallel)
	for i := range s.scenarios {
		if s.scenarios[i].killsWorkers() {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			r.one(ctx, &s.scenarios[i])
		})
	}
	wg.Wait()
	for i := range s.scenarios {
		if s.scenarios[i].killsWorkers() {
			r.one(ctx, &s.scenarios[i])
		}
	}
	slices.SortFunc(r.sum.Failures, func(a, b Failure) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	return r.sum, ctx.Err()
}

// running is one Run.
type running struct {
	set      *Set
	target   Target
	progress func(Progress)

	mu   sync.Mutex
	sum  Summary
	done int
}

// one plays one scenario and adds it up.
func (r *running) one(ctx context.Context, s *Scenario) {
	began := r.target.Now()
	p := newPlay(s, r.set.actors[s.Name], r.target, r.set.sim)
	if err := p.run(ctx); err != nil {
		p.wrong("%v", err)
	}
	n, err := p.size(ctx)
	if err != nil {
		p.wrong("%v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.sum.Deliveries += p.requests
	r.sum.Events += n.Events
	r.sum.Duplicates += p.accepted - n.Events + n.Answers
	r.sum.Orders += n.Orders
	for _, n := range p.actor.merchant.Keys() {
		r.sum.Effects += n
	}
	if len(p.problems) > 0 {
		r.sum.Failed++
		r.sum.Failures = append(r.sum.Failures, Failure{Name: s.Name, Problems: p.problems})
	}
	if r.progress != nil {
		r.progress(Progress{
			Done: r.done, Total: len(r.set.scenarios), Name: s.Name, Shows: s.Shows,
			Took: r.target.Now().Sub(began), Problems: p.problems,
		})
	}
}

// size is what a scenario left in the database.
type size struct {
	Events  int // of gateways
	Answers int // of these, what an API answered
	Orders  int
}

func (p *play) size(ctx context.Context) (size, error) {
	rows, _ := p.target.Pool.Query(ctx, `
		SELECT count(*), count(*) FILTER (WHERE `+sqlAnswered+`), (SELECT count(*) FROM orders WHERE account_id = $1)
		FROM processed_events e WHERE account_id = $1 AND source_id <> $2`, accountOf(p.scenario.Name), store.APISource)
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[size])
	if err != nil {
		return size{}, fmt.Errorf("count events and orders: %w", err)
	}
	return n, nil
}

// sqlAnswered reports whether an event e is what a gateway's API answered.
const sqlAnswered = `EXISTS (SELECT FROM event_payloads p
	WHERE p.account_id = e.account_id AND p.source_id = e.source_id AND p.event_id = e.event_id AND p.header ? '` + gateway.HeaderObject + `')`
