package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paidonce/paidonce/internal/scenario/merchant"
)

// step plays one step. An error ends the case.
func (p *player) step(ctx context.Context, s *Step) error {
	if err := p.faults.settled(); err != nil {
		return err
	}
	for _, i := range p.Program.Running("serve") {
		p.addrs[i] = p.Program.Addr(i)
	}
	switch s.Kind {
	case "send":
		return p.send(ctx, s)
	case "parallel":
		return p.parallel(ctx, s)
	case "wait":
		return p.quiet(ctx)
	case "check":
		return p.verify(ctx, &s.Check, "check")
	case "register_order":
		return p.registerOrder(ctx, s.Register)
	case "read_order":
		return p.readOrder(ctx, s.Read)
	case "advance_clock_s":
		p.clock += time.Duration(s.Advance) * time.Second
		return p.Program.SetClock(p.time())
	case "start":
		return p.start(ctx, s.Process, s.Instance)
	case "stop":
		return p.stop(ctx, s.Process, s.Instance)
	case "kill":
		return p.kill(ctx, s.Process, s.Instance)
	case "restart":
		return p.restart(ctx, s.Process, s.Instance)
	case "reload":
		return p.Program.Reload(ctx, s.Reload.Source, s.Reload.Secrets)
	case "merchant":
		p.merchant = s.Merchant
		p.Merchant.Answer(merchant.Mode(s.Merchant))
		return nil
	case "fault":
		return p.startFault(ctx, s)
	case "clear_faults":
		if err := p.awaitKills(ctx, "", 0); err != nil {
			return err
		}
		return p.faults.clear(ctx)
	case "delete_rows":
		_, err := p.Pool.Exec(ctx, `DELETE FROM processed_events WHERE source_id <> 'api'`)
		return err
	case "expire_keys":
		return p.expireKeys(ctx)
	case "loop_start":
		return p.startSweep(ctx)
	case "loop_stop":
		return p.stopSweep()
	}
	return fmt.Errorf("no step %q", s.Kind)
}

// time is where the program's clock stands.
func (p *player) time() time.Time { return time.Unix(p.c.Now, 0).Add(p.clock) }

// registerOrder registers an order and remembers whether that made its row: an
// order that a webhook brought about stays one that the webhook brought about.
func (p *player) registerOrder(ctx context.Context, o StepOrder) error {
	had, err := p.order(ctx, o.Ref)
	if err != nil {
		return err
	}
	if had == nil {
		p.registered[o.Ref] = true
	}
	return p.register(ctx, o.Ref, o.Amount, o.Currency)
}

// send sends one request, again and again while the step asks for it.
func (p *player) send(ctx context.Context, s *Step) error {
	r, err := p.prepare(ctx, s.Send)
	if err != nil {
		return err
	}
	addr, err := p.addr(s.Instance)
	if err != nil {
		return err
	}
	before, err := p.texts(ctx, countQueries["events"], AccountA)
	if err != nil {
		return err
	}
	end := now().Add(time.Duration(s.RetryForS) * time.Second)
	for {
		reply := send(ctx, addr, r)
		p.answers[s.Send] = append(p.answers[s.Send], reply)
		if p.outcomes[s.Send] == nil {
			if p.outcomes[s.Send], err = p.outcomeOf(ctx, before, nil, []Reply{reply}); err != nil {
				return err
			}
		}
		pause := retryAfter(reply)
		if !slices.Contains(s.RetryWhile, reply.Code) || now().Add(pause).After(end) {
			p.allowed(s.Send, reply, s.Status)
			return ctx.Err()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addr is where an instance of serve listens, or did before it was ended: what
// is sent there then finds nobody, which is an answer too.
func (p *player) addr(instance int) (string, error) {
	if addr, ok := p.addrs[instance]; ok {
		return addr, nil
	}
	return "", fmt.Errorf("serve %d has never run", instance)
}

// retryAfter is how long an answer asks to wait: a second if it does not say.
func retryAfter(reply Reply) time.Duration {
	if s, err := strconv.Atoi(reply.Header.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	return time.Second
}

// allowed notes an answer whose code is not in its list.
func (p *player) allowed(i int, reply Reply, instead []int) {
	list := p.c.Expect.Statuses[i]
	if instead != nil {
		list = instead
	}
	if !slices.Contains(list, reply.Code) {
		p.fail("requests[%d]: answered %s, expected one of %v", i, describe(reply), list)
	}
}

func describe(r Reply) string {
	if r.Code == 0 {
		return fmt.Sprintf("0 (%v)", r.Err)
	}
	body := r.Body
	if len(body) > 200 {
		body = append(slices.Clone(body[:200]), "…"...)
	}
	return fmt.Sprintf("%d %q", r.Code, body)
}

// parallel sends several requests, or copies of them, from one starting shot.
func (p *player) parallel(ctx context.Context, s *Step) error {
	addr, err := p.addr(1)
	if err != nil {
		return err
	}
	requests := make(map[int]Request)
	for _, i := range s.Parallel {
		r, err := p.prepare(ctx, i)
		if err != nil {
			return err
		}
		requests[i] = r
	}
	before, err := p.texts(ctx, countQueries["events"], AccountA)
	if err != nil {
		return err
	}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		shot    = make(chan struct{})
		replies = make(map[int][]Reply)
	)
	for _, i := range s.Parallel {
		for copy := range s.Copies {
			after := time.Duration(s.AtMS[i]+copy*s.StaggerMS) * time.Millisecond
			wg.Go(func() {
				<-shot
				if after > 0 {
					select {
					case <-time.After(after):
					case <-ctx.Done():
					}
				}
				reply := send(ctx, addr, requests[i])
				mu.Lock()
				defer mu.Unlock()
				replies[i] = append(replies[i], reply)
			})
		}
	}
	close(shot)
	wg.Wait()
	for _, i := range slices.Compact(slices.Sorted(slices.Values(s.Parallel))) {
		p.answers[i] = append(p.answers[i], replies[i]...)
		for _, reply := range replies[i] {
			p.allowed(i, reply, nil)
		}
		if p.outcomes[i] == nil {
			body := requests[i].Body
			if len(requests) == 1 {
				body = nil // every new row is this request's
			}
			if p.outcomes[i], err = p.outcomeOf(ctx, before, body, replies[i]); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// outcomeOf says what a request left behind: a word for each event that was not
// there before. With a body, only events that came with it count, which tells
// requests apart that were sent together.
func (p *player) outcomeOf(ctx context.Context, before map[string]bool, body []byte, replies []Reply) ([]string, error) {
	rows, err := p.newEvents(ctx, before)
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, row := range rows {
		if body == nil || slices.ContainsFunc(row.Bodies, func(b []byte) bool { return bytes.Equal(b, body) }) {
			words = append(words, row.Outcome)
		}
	}
	if len(words) > 0 {
		return words, nil
	}
	if slices.ContainsFunc(replies, Reply.accepted) {
		return []string{"duplicate"}, nil
	}
	return []string{"none"}, nil
}

// accepted reports whether the answer is a 2xx.
func (r Reply) accepted() bool { return r.Code >= 200 && r.Code < 300 }

// prepare fills in placeholders and compares the clock with the request's.
func (p *player) prepare(ctx context.Context, i int) (Request, error) {
	r := p.c.Requests[i]
	if r.AtS != nil && time.Duration(*r.AtS)*time.Second != p.clock {
		return r, fmt.Errorf("requests[%d] belongs at %d s, and the clock stands at %s", i, *r.AtS, p.clock)
	}
	var err error
	if r.Path, err = p.fill(ctx, r.Path); err != nil {
		return r, err
	}
	r.Headers = maps.Clone(r.Headers)
	for name, value := range r.Headers {
		if r.Headers[name], err = p.fill(ctx, value); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (p *player) fill(ctx context.Context, text string) (string, error) {
	var errs []error
	filled := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name, ref, _ := strings.Cut(strings.Trim(found, "{}"), ":")
		switch name {
		case "api_key":
			return p.APIKeys[AccountA]
		case "api_key_b":
			return p.APIKeys[AccountB]
		case "etag":
			if etag, ok := p.etags[ref]; ok {
				return etag
			}
			errs = append(errs, fmt.Errorf("order %s was not read before", ref))
		case "order_id":
			id, err := p.orderID(ctx, ref)
			errs = append(errs, err)
			return id
		}
		return ""
	})
	return filled, errors.Join(errs...)
}

// readOrder remembers the ETag of an order, which is its version. Where serve
// runs it is asked, else the version is read in the database.
func (p *player) readOrder(ctx context.Context, ref string) error {
	if running := p.Program.Running("serve"); len(running) > 0 {
		id, err := p.orderID(ctx, ref)
		if err != nil {
			return err
		}
		reply := send(ctx, p.Program.Addr(running[0]), Request{
			Method: http.MethodGet, Path: "/v1/orders/" + id,
			Headers: map[string]string{"Authorization": "Bearer " + p.APIKeys[AccountA]},
		})
		if reply.Code != http.StatusOK || reply.Header.Get("ETag") == "" {
			return fmt.Errorf("read order %s: %s", ref, describe(reply))
		}
		p.etags[ref] = reply.Header.Get("ETag")
		return nil
	}
	o, err := p.order(ctx, ref)
	if err != nil || o == nil {
		return fmt.Errorf("read order %s: there is none: %w", ref, err)
	}
	p.etags[ref] = strconv.Quote(strconv.FormatInt(o.Version, 10))
	return nil
}

// orderIDOf returns /data/id of an answer.
func orderIDOf(r Reply) (string, error) {
	var body struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return "", fmt.Errorf("%s has no /data/id: %w", describe(r), err)
	}
	if body.Data.ID == "" {
		return "", fmt.Errorf("%s has no /data/id", describe(r))
	}
	return body.Data.ID, nil
}

func (p *player) expireKeys(ctx context.Context) error {
	_, err := p.Pool.Exec(ctx, `UPDATE idempotency_keys SET expires_at = now() - interval '1 second'`)
	return err
}
