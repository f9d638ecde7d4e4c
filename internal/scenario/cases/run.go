package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// SkipError says that a case was not played, for the one reason that the format
// allows: a gateway is not in the registry.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return "skipped: " + e.Reason }

// Run plays a case, as often as it has rounds, each on a stage of its own. The
// error joins all that did not hold; it is a [*SkipError] if nothing was played.
func Run(ctx context.Context, c *Case, opts Options) error {
	if err := skip(c, opts); err != nil {
		return err
	}
	rounds := make([]error, c.rounds())
	var wg sync.WaitGroup
	places := make(chan struct{}, roundsAtOnce)
	for i := range rounds {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			rounds[i] = runOnce(ctx, c, opts)
			if rounds[i] != nil && len(rounds) > 1 {
				rounds[i] = fmt.Errorf("round %d of %d: %w", i+1, len(rounds), rounds[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(rounds...)
}

// roundsAtOnce is how many rounds of a case are played at once: each is alone on
// its stage.
const roundsAtOnce = 4

func skip(c *Case, opts Options) error {
	for _, id := range slices.Sorted(maps.Keys(c.Setup.sources)) {
		if g := c.Setup.sources[id].Gateway; !opts.HasGateway(g) {
			return &SkipError{fmt.Sprintf("the gateway %s of source %s is not in the registry", g, id)}
		}
	}
	return nil
}

func runOnce(ctx context.Context, c *Case, opts Options) error {
	stage, err := opts.Open(ctx, c)
	if err != nil {
		return fmt.Errorf("set the stage: %w", err)
	}
	defer stage.Close()
	p := newPlayer(c, stage)
	p.quietWithin = cmp.Or(opts.QuietWithin, quietWithin)
	if opts.Note != nil {
		p.note = func(format string, args ...any) { opts.Note(fmt.Sprintf(format, args...)) }
	}
	if c.Setup.Refused() {
		return p.refused(ctx)
	}
	return p.play(ctx)
}

// player plays one round.
type player struct {
	*Stage

	c              *Case
	clock          time.Duration     // how far the program's clock was moved
	answers        [][]Reply         // by request, in the order in which they came
	outcomes       [][]string        // by request: what the first send left; nil: never sent
	etags          map[string]string // by reference
	addrs          map[int]string    // of the instances of serve, as last seen
	registered     map[string]bool   // the orders whose row a register_order made
	before         counts            // the rows that the set-up left
	faults         faults
	loop           *loop
	orphans        orphans
	outboundBefore int
	quietWithin    time.Duration
	merchant       string // how the merchant answers: ok, error, hang
	wrong          []error
	note           func(format string, args ...any) // says what is no fault of the program
}

func newPlayer(c *Case, stage *Stage) *player {
	return &player{
		Stage: stage, c: c, merchant: "ok", etags: make(map[string]string), addrs: make(map[int]string),
		registered: make(map[string]bool), note: func(string, ...any) {},
		answers: make([][]Reply, len(c.Requests)), outcomes: make([][]string, len(c.Requests)),
	}
}

// fail notes something that does not hold.
func (p *player) fail(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Errorf(format, args...))
}

// play plays steps and looks at the end. What fails inside a step is noted, so
// that one run shows all that is wrong; what the runner itself cannot do ends it.
func (p *player) play(ctx context.Context) error {
	defer func() { _ = p.loop.stop() }()
	defer p.faults.stop()
	if err := p.setUp(ctx); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	steps := p.c.Steps
	if steps == nil {
		for i := range p.c.Requests {
			steps = append(steps, Step{Kind: "send", Send: i, Instance: 1}, Step{Kind: "wait", Wait: "quiet"})
		}
	}
	for i := range steps {
		if err := p.step(ctx, &steps[i]); err != nil {
			p.fail("steps[%d] %s: %w", i, steps[i].Kind, err)
			return errors.Join(p.wrong...)
		}
	}
	if err := p.settle(ctx); err != nil {
		p.fail("at the end: %w", err)
	}
	if err := p.verify(ctx, &p.c.Assert, "assert"); err != nil {
		return err
	}
	if err := p.always(ctx); err != nil {
		return err
	}
	return errors.Join(p.wrong...)
}

// refusedWithin is how long a program may take to refuse a configuration.
const refusedWithin = 10 * time.Second

// refused checks that the program does not start with the case's configuration.
func (p *player) refused(ctx context.Context) error {
	ended, err := p.Program.Refused(ctx)
	if err != nil {
		return err
	}
	for _, e := range ended {
		switch {
		case e.Code < 0 || e.Took > refusedWithin:
			p.fail("%s: still ran after %s; it must refuse the configuration", e.Command, refusedWithin)
		case e.Code == 0:
			p.fail("%s: ended with code 0; it must refuse the configuration", e.Command)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(p.c.Setup.Sources)), func(id string) bool { return strings.Contains(e.Output, id) }) {
			p.fail("%s: does not say which source is wrong: %s", e.Command, e.Output)
		}
		for _, source := range p.c.Setup.sources {
			for _, secret := range source.secrets() {
				if strings.Contains(e.Output, secret) {
					p.fail("%s: prints a secret", e.Command)
				}
			}
		}
	}
	if err := p.verify(ctx, &p.c.Assert, "assert"); err != nil {
		return err
	}
	return errors.Join(p.wrong...)
}
