package torture_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/idempotency"
)

// play plays a schedule, and returns how the program first differed from the model, with all that came before.
func (h *hall) play(s schedule) (err error) {
	h.s.exec(`TRUNCATE idempotency_keys`)
	p := &play{hall: h, model: newModel(), route: s.Route, name: fmt.Sprintf("play-%d", h.plays.Add(1))}
	h.mu.Lock()
	h.charges = map[string]bool{}
	h.mu.Unlock()
	defer func() {
		p.abandon()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, p.log.String())
		}
	}()
	for _, one := range s.Steps {
		if err := p.step(one); err != nil {
			return err
		}
	}
	return p.end()
}

// play is one schedule that is being played.
type play struct {
	*hall
	model  *model
	name   string
	route  int
	runs   int
	flying []*flight
	log    strings.Builder
}

func (p *play) note(format string, args ...any) {
	fmt.Fprintf(&p.log, "%12s  %s\n", p.model.now, fmt.Sprintf(format, args...))
}

func (p *play) step(s step) error {
	var f *flight
	if len(p.flying) > 0 {
		f = p.flying[s.Which%len(p.flying)]
	}
	switch {
	case s.Do == "send" && len(p.flying) < 6:
		// Two callers, two keys each, so that keys of one name belong to two of them.
		who, a := max(0, s.Who-4), asked{route: p.route, body: s.Which / 8}
		if s.What >= 10 {
			a.route = s.What % len(routes)
		}
		return p.send(fmt.Sprintf("%s-%d-", p.name, who%2), fmt.Sprint(who/2), a, s.Which%2)
	case s.Do == "finish" && f != nil:
		return p.finish(f, outcome(s.What)%outcomes)
	case s.Do == "kill" && f != nil && !f.route().alone && !f.killed:
		p.note("kill the session of %s", f.name)
		p.s.exec(`SELECT pg_terminate_backend($1, 10000)`, int(f.call.pid))
		p.model.kill(f)
	case s.Do == "leave" && f != nil:
		p.note("the caller of %s leaves", f.name)
		f.call.leave()
	case s.Do == "pass":
		d := passes[s.What%len(passes)]
		p.s.pass(d)
		p.model.now += d
	case s.Do == "sweep":
		res, err := p.keep.Sweep(context.Background())
		p.note("sweep: %d", res.Expired)
		if err != nil {
			return err
		}
		if want := p.model.sweep(); res.Expired != int64(want) {
			return fmt.Errorf("the sweep deleted %d, not %d", res.Expired, want)
		}
	}
	return nil
}

func (p *play) send(caller, key string, a asked, spelling int) error {
	p.runs++
	f := &flight{name: fmt.Sprintf("%s-run-%d", p.name, p.runs), key: caller + key, asked: a}
	want := p.model.send(f)
	p.kinds[want.kind]++
	rec := p.start(f, caller, spelling)
	p.note("send %s to %s as %s, body %d: %s", f.key, f.route().path, f.name, a.body, want)
	if rec == nil {
		p.flying = append(p.flying, f)
		if want.kind != "run" {
			return fmt.Errorf("%s was executed, and should have been %s", f.name, want)
		}
		return p.look(caller, key)
	}
	if want.kind == "run" {
		return fmt.Errorf("%s was not executed: %d %s", f.name, rec.Code, rec.Body)
	}
	if err := check(f, rec, want); err != nil {
		return err
	}
	return p.look(caller, key)
}

// check compares an answer with what it should be.
func check(f *flight, rec *recorded, want verdict) error {
	got, err := rec.verdict()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w, and should have been %s", f.name, err, want)
	case got.kind != want.kind, want.after != 0 && got.after != want.after:
		return fmt.Errorf("%s was %s, and should have been %s: %d %s", f.name, got, want, rec.Code, rec.Body)
	case want.kind == "replay" && (rec.Code != want.of.code || rec.Body.String() != want.of.body):
		return fmt.Errorf("%s got %d %q instead of the answer of %s: %d %q", f.name, rec.Code, rec.Body, want.of.name, want.of.code, want.of.body)
	}
	return nil
}

func (p *play) finish(f *flight, o outcome) error {
	want := p.model.finish(f, o)
	p.kinds[want.kind]++
	p.note("%s ends with %d: %s", f.name, o.code(), want)
	rec := p.land(f, o)
	f.code, f.body = rec.Code, rec.Body.String()
	if err := check(f, rec, want); err != nil {
		return err
	}
	if want.kind == "own" && (rec.Code != o.code() || o != noContent && !strings.Contains(f.body, strconv.Quote(f.name))) {
		return fmt.Errorf("%s answered %d %q", f.name, rec.Code, f.body)
	}
	committed := p.s.count(`SELECT count(*) FROM effects WHERE key = $1`, f.name)
	if want := p.model.effects[f.name]; committed != 0 != want || committed > 1 {
		return fmt.Errorf("%s has left %d effects", f.name, committed)
	}
	caller := f.key[:len(f.key)-1]
	return p.look(caller, f.key[len(caller):])
}

// land has a handler end, and returns the answer.
func (p *play) land(f *flight, o outcome) *recorded {
	for i := range p.flying {
		if p.flying[i] == f {
			p.flying = append(p.flying[:i], p.flying[i+1:]...)
			break
		}
	}
	f.call.orders <- o
	rec := <-f.call.done
	f.call.leave()
	p.mu.Lock()
	delete(p.flights, f.name)
	p.mu.Unlock()
	return rec
}

// look compares what the store tells of a key with the model.
func (p *play) look(caller, key string) error {
	if p.blind {
		return nil
	}
	got, err := p.keep.Inspect(context.Background(), scope(caller), key)
	r := p.model.rows[caller+key]
	if r == nil {
		if !errors.Is(err, idempotency.ErrNotFound) {
			return fmt.Errorf("%s%s should not be there: %w", caller, key, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	got.LockAge = max(0, got.LockAge)
	want := fmt.Sprint(r.state, r.fence, r.attempts, r.bound, r.expires <= p.model.now)
	if have := fmt.Sprint(got.State, got.Fence, got.Attempts, got.Bound, got.Expired); have != want {
		return fmt.Errorf("%s%s is %s, not %s", caller, key, have, want)
	}
	return nil
}

// end lets everything come to rest: whatever has happened, no key hears 409 for ever, and each still stands for one effect.
func (p *play) end() error {
	for len(p.flying) > 0 {
		if err := p.finish(p.flying[0], failedByHandler); err != nil {
			return err
		}
	}
	p.s.pass(lockTimeout)
	p.model.now += lockTimeout
	for _, key := range sortedKeys(p.model.rows) {
		a, caller := p.model.rows[key].asked, key[:len(key)-1]
		if err := p.send(caller, key[len(caller):], a, 0); err != nil {
			return err
		}
		if len(p.flying) > 0 {
			if err := p.finish(p.flying[0], created); err != nil {
				return err
			}
		}
		if err := p.send(caller, key[len(caller):], a, 1); err != nil {
			return err
		}
		if len(p.flying) > 0 {
			return fmt.Errorf("%s is executed again", key)
		}
	}
	if have, want := p.s.count(`SELECT count(*) FROM effects WHERE starts_with(key, $1)`, p.name+"-"), len(p.model.effects); have != want {
		return fmt.Errorf("%d effects, not %d", have, want)
	}
	if have, want := len(p.charges), len(p.model.charges); have != want {
		return fmt.Errorf("%d charges, not %d", have, want)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// abandon ends what a failed play has left.
func (p *play) abandon() {
	for len(p.flying) > 0 {
		p.land(p.flying[0], failedByHandler)
	}
}
