package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/paidonce/paidonce/internal/gatewaysim"
	"github.com/paidonce/paidonce/internal/scenario/merchant"
	"github.com/paidonce/paidonce/order"
)

// play is one scenario on its way.
type play struct {
	scenario *Scenario
	actor    *actor
	target   Target
	sim      *gatewaysim.Sim
	client   *http.Client
	began    time.Time // the payload's own time; in the past, as events are
	totals   map[string]order.Amount

	sent   int // deliveries numbered so far
	called <-chan struct{}

	mu       sync.Mutex
	states   map[state]int // by which delivery the gateway's API says what it says
	statuses map[int]int
	accepted int // events in deliveries that were answered 200
	requests int
	problems []string
}

func newPlay(s *Scenario, a *actor, t Target, sim *gatewaysim.Sim) *play {
	return &play{
		scenario: s, actor: a, target: t, sim: sim, client: t.client, began: t.Now().Truncate(time.Second).Add(-time.Hour),
		totals: make(map[string]order.Amount), states: make(map[state]int), statuses: make(map[int]int), called: a.merchant.Arrived(),
	}
}

// wrong notes something that is not as expected.
func (p *play) wrong(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// run plays the scenario and compares the end. What is not as expected is noted;
// an error means that it could not be played.
func (p *play) run(ctx context.Context) error {
	for i := range p.scenario.Orders {
		if err := p.register(ctx, &p.scenario.Orders[i]); err != nil {
			return fmt.Errorf("register %s: %w", p.scenario.Orders[i].Ref, err)
		}
	}
	for i := range p.scenario.Steps {
		s := &p.scenario.Steps[i]
		if err := p.step(ctx, s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if err := p.quiet(ctx); err != nil {
		return err
	}
	if err := p.compare(ctx, &p.scenario.Expect, "at the end"); err != nil {
		return err
	}
	for _, v := range p.actor.merchant.Violations() {
		p.wrong("the merchant: %s", v)
	}
	return p.audit(ctx)
}

func (p *play) step(ctx context.Context, s *Step) error {
	called := p.actor.merchant.Arrived()
	defer func() { p.called = called }()
	switch {
	case s.Register != nil:
		return p.register(ctx, s.Register)
	case s.Recur != nil:
		return p.recur(ctx, s.Recur)
	case s.Merchant != "":
		p.actor.merchant.Answer(merchant.Mode(s.Merchant))
		return nil
	case s.Wait == "called":
		select {
		case <-p.called:
			return nil
		case <-time.After(quietWithin):
			return errors.New("the merchant was not called")
		case <-ctx.Done():
			return ctx.Err()
		}
	case s.Wait == "quiet":
		return p.quiet(ctx)
	case s.Worker != "":
		return p.worker(ctx, s.Worker)
	case s.Check != nil:
		return p.compare(ctx, s.Check, "in between")
	default:
		return p.deliver(ctx, s)
	}
}

func (p *play) worker(ctx context.Context, what string) error {
	if p.target.Workers == nil {
		return errors.New("there are no worker processes to kill or start")
	}
	if what == "kill" {
		return p.target.Workers.Kill(ctx)
	}
	return p.target.Workers.Start(ctx)
}

// shot is one request with the time it waits first.
type shot struct {
	*request
	delay time.Duration
}

// deliver sends the deliveries of a step, in their order, shuffled, or at once.
func (p *play) deliver(ctx context.Context, s *Step) error {
	var shots []shot
	for i := range s.Deliver {
		d := &s.Deliver[i]
		p.sent++
		r, err := p.request(d, p.sent)
		if err != nil {
			return err
		}
		for range max(1, d.Copies) {
			shots = append(shots, shot{r, d.Delay})
		}
	}
	if s.Shuffle != nil {
		//nolint:gosec // an order that can be repeated is what is wanted here
		rand.New(rand.NewPCG(*s.Shuffle, 0)).Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
	}
	if !s.Parallel {
		for _, one := range shots {
			if err := p.fire(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		wg    sync.WaitGroup
		start = make(chan struct{})
		errs  = make([]error, len(shots))
	)
	for i, one := range shots {
		wg.Go(func() {
			<-start
			errs[i] = p.fire(ctx, one)
		})
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}

// fire sends one request and notes its answer.
func (p *play) fire(ctx context.Context, s shot) error {
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := p.make(s.change); err != nil {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	code, err := p.send(ctx, s.request)
	if err != nil {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	p.mu.Lock()
	p.requests++
	p.statuses[code]++
	if code == http.StatusOK {
		p.accepted += s.events
	}
	p.mu.Unlock()
	if code != s.status {
		p.wrong("%s: answered %d, expected %d", s.where, code, s.status)
	}
	return nil
}
