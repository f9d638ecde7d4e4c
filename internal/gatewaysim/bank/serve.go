package bank

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// ServeHTTP answers for all sources: the first part of the path says for which.
func (b *Bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, path, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	query, queryErr := url.ParseQuery(r.URL.RawQuery)
	b.mu.Lock()
	a := b.accounts[id]
	b.mu.Unlock()
	switch {
	case !ok || a == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case err != nil || queryErr != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	req := &request{
		method: r.Method, path: "/" + path, rawQuery: r.URL.RawQuery, query: query, header: r.Header, body: body,
		key: r.Header.Get(a.api.keyHeader),
	}
	rep, fault := b.answer(r.Context(), a, req)
	b.write(w, r, rep, fault)
}

// answer does what a call asks for, and says what is answered and what becomes of the answer.
func (b *Bank) answer(ctx context.Context, a *account, r *request) (reply, Fault) {
	b.mu.Lock()
	c, rep := b.begin(a, r)
	if rep != nil {
		defer b.mu.Unlock()
		return *rep, c.met()
	}
	if c.fault == Slow {
		b.mu.Unlock()
		b.pause(ctx)
		b.mu.Lock()
		b.advance(false)
	}
	done, events := b.execute(c)
	early := b.post(a, events, c.step, c.set, true)
	fault := c.met()
	b.mu.Unlock()
	b.send(context.WithoutCancel(ctx), early)
	b.wake()
	return done, fault
}

// met counts the fault that the call met.
func (c *call) met() Fault {
	if c.fault != "" {
		c.a.counts.Faults[c.fault]++
	}
	return c.fault
}

// pause waits for as long as a slow answer takes.
func (b *Bank) pause(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-b.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	b.opts.Pause(ctx)
}

// begin takes a call in. The answer is nil if it is to be done.
func (b *Bank) begin(a *account, r *request) (*call, *reply) {
	b.advance(false)
	c := &call{a: a, r: r}
	if rep := a.api.refuse(a, r); rep != nil {
		a.counts.Strangers++
		return c, rep
	}
	op, rep := a.api.find(a, r)
	if rep != nil {
		a.counts.Invalid++
		return c, rep
	}
	c.op = op
	a.counts.Calls[op.kind]++
	if op.moves() && a.api.keyed(r) {
		c.key = r.key
	}
	if c.step, c.set = a.step(c); c.set {
		if c.fault = c.step.of(callFaults); !c.fault.befits(c) {
			c.fault = ""
		}
	} else {
		c.fault = a.fault(c)
	}
	if rep := c.front(); rep != nil {
		return c, rep
	}
	if c.key == "" {
		return c, nil
	}
	if e := a.lookup(c); e != nil {
		if slices.Contains(doing, c.fault) {
			c.fault = "" // nothing is done
		}
		rep := a.repeated(c, e)
		return c, &rep
	}
	if c.fault == Busy {
		rep := a.api.busy(c)
		a.counts.Conflicts++
		return c, &rep
	}
	e := &entry{print: a.api.print(r), path: r.path, created: b.now(), busy: true}
	a.keys[c.key] = e
	if c.fault == Late {
		e.finish = sync.OnceFunc(func() {
			_, events := b.execute(c)
			b.post(a, events, c.step, c.set, false)
		})
		b.later(e.finish)
		return c, &reply{}
	}
	return c, nil
}

// front answers what ends before anything begins.
func (c *call) front() *reply {
	var rep reply
	switch c.fault {
	case LostBefore, HangBefore:
	case Denied:
		rep = c.a.api.denied(c)
	case TooMany:
		rep = c.a.api.tooMany(c)
	case Failure:
		rep = c.a.api.failed(c)
	default:
		return nil
	}
	return &rep
}

// execute does what a call asks for, and keeps its answer. It returns the answer, and the events that tell of what was done.
func (b *Bank) execute(c *call) (reply, []*event) {
	if c.fault == KeptFailure {
		rep := c.a.api.kept(c)
		c.a.keep(c, rep)
		return rep, nil
	}
	first := len(c.a.events)
	rep := c.op.do(c)
	events := c.a.events[first:]
	if c.fault != KeptFailureDone {
		c.a.keep(c, rep)
		return rep, events
	}
	failure := c.a.api.kept(c)
	if c.a.api.keeps(failure) {
		rep = failure
	}
	c.a.keep(c, rep)
	return failure, events
}

// write gives an answer, or fails to.
func (b *Bank) write(w http.ResponseWriter, r *http.Request, rep reply, fault Fault) {
	switch fault {
	case HangBefore, HangAfter:
		select {
		case <-r.Context().Done():
		case <-b.closing:
		}
		panic(http.ErrAbortHandler) // not even an empty answer
	case LostBefore, LostAfter, Late:
		panic(http.ErrAbortHandler)
	case Garbage:
		rep = reply{status: http.StatusOK, header: map[string]string{"Content-Type": "text/html"}, body: []byte("<html><body>It works!</body></html>")}
	case CutAnswer:
		cut(w, rep)
		return
	}
	for name, value := range rep.header {
		w.Header().Set(name, value)
	}
	if len(rep.body) > 0 && w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(rep.status)
	_, _ = w.Write(rep.body)
}

// cut sends an answer up to the middle of its body and resets the connection.
func cut(w http.ResponseWriter, rep reply) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n", rep.status, http.StatusText(rep.status))
	if len(rep.body) > 0 {
		fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n", len(rep.body))
		out.Write(rep.body[:len(rep.body)/2])
	}
	_, _ = conn.Write(out.Bytes())
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
