package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// follow makes the claimed transaction's call, or looks it up, and settles it. since is when the claim was asked for.
func (m *Mover) follow(ctx context.Context, c store.MoveClaim, since time.Duration) error {
	if c.Expired {
		m.metrics.expired.Inc()
	}
	m.metrics.lag.Observe(max(0, c.Lag.Seconds()))
	begin := m.opts.Elapsed()
	r := m.guarded(ctx, c, since)
	s, err := m.settle(ctx, c, r.answer)
	if errors.Is(err, store.ErrUnstorable) && len(r.answer.Events) > 0 {
		// What it says cannot be kept, but that it was done can: its webhooks tell the rest.
		m.opts.Logger.ErrorContext(ctx, "gateway's answer could not be entered", "transaction", c.ID, "err", err)
		r.answer.Events = nil
		s, err = m.settle(ctx, c, r.answer)
	}
	if err != nil {
		m.metrics.calls.WithLabelValues(c.Gateway, string(c.Kind), resultNotSettled).Inc()
		return err // its promise lapses: the call is made again, under the same key
	}
	m.metrics.calls.WithLabelValues(c.Gateway, string(c.Kind), r.result).Inc()
	m.log(ctx, c, r, s, m.opts.Elapsed()-begin)
	if len(r.fetch) > 0 {
		m.announce(ctx, c, r.fetch)
	}
	return nil
}

func (m *Mover) settle(ctx context.Context, c store.MoveClaim, a store.MoveAnswer) (store.MoveSettled, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.opts.SettleTimeout)
	defer cancel()
	return m.store.SettleMove(ctx, c, a)
}

// announce has objects asked about that the answer told too little of. If that is lost, their webhooks or a reconciliation come.
func (m *Mover) announce(ctx context.Context, c store.MoveClaim, objects []gateway.Object) {
	list := make([]store.Announcement, len(objects))
	for i, o := range objects {
		list[i] = store.Announcement{Account: c.Account, Source: c.Source, Gateway: c.Gateway, Object: o.String()}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.opts.SettleTimeout)
	defer cancel()
	if _, err := m.store.Announce(ctx, list); err != nil {
		m.opts.Logger.WarnContext(ctx, "what a call has changed is not asked about", "transaction", c.ID, "err", err)
	}
}

// guarded is call, where a panic is an answer that is not known.
func (m *Mover) guarded(ctx context.Context, c store.MoveClaim, since time.Duration) (r ruled) {
	defer func() {
		if v := recover(); v != nil {
			// The text of a runtime error holds types and indices; any other value may quote the answer.
			text := fmt.Sprintf("%T", v)
			if bug, ok := v.(runtime.Error); ok {
				text = bug.Error()
			}
			m.opts.Logger.ErrorContext(ctx, "panic while money was moved", "transaction", c.ID, "panic", text, "stack", string(debug.Stack()))
			r = m.opts.unanswered(c, true, &Error{Kind: Retry, gateway: c.Gateway, text: "a panic in this program"})
			r.result, r.level = resultPanic, alarm
		}
	}()
	return m.call(ctx, c, since)
}

// call makes the call, or the lookup, and says what follows from it.
func (m *Mover) call(ctx context.Context, c store.MoveClaim, since time.Duration) ruled {
	if m.opts.Elapsed()-since > m.opts.Lease-m.opts.Deadline-m.opts.SettleTimeout {
		return ruled{answer: store.MoveAnswer{Status: c.Status, Free: true, Code: c.Code, Detail: "not called: too late for its claim"}, result: resultLate}
	}
	gw, src, why := m.callee(c)
	if why != "" {
		return m.opts.unanswered(c, true, &Error{Kind: Refused, gateway: c.Gateway, text: why})
	}
	canLook := gw.Calls.Look != nil
	look := looksUp(c)
	if !look && m.opts.past(c, gw.Calls.KeyLife) {
		return ruled{answer: m.opts.unsure(c, canLook, 0, codeWindow, "no answer came in the time in which the gateway surely knows the key"), result: resultWindow, level: alarm}
	}
	req, err := m.request(gw, src, c)
	if err != nil {
		return m.opts.unanswered(c, canLook, &Error{Kind: Refused, gateway: c.Gateway, text: "the call cannot be made: " + err.Error()})
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.Deadline)
	defer cancel()
	reply, err := m.caller.Call(ctx, gw, src, gw.Calls.BaseURL(src), req)
	if err != nil {
		return m.opts.unanswered(c, canLook, err)
	}
	reply.Started = c.Since
	v, err := gw.Judge(src, c.Movement, reply, look)
	if err != nil {
		return m.opts.unanswered(c, canLook, &Error{Kind: Retry, Status: reply.Status, gateway: c.Gateway, text: "its answer cannot be read"})
	}
	if !look && v.Ruling == gateway.Unsure && v.Code == "" && reply.Status/100 == 2 && c.Attempts <= unreadableTries {
		v.Ruling = gateway.Later // what was answered under the key is answered again, and perhaps whole
	}
	r := m.opts.judged(c, canLook, v)
	if r.answer.Events, err = events(src, c, reply, v.Events, look); err != nil {
		m.opts.Logger.ErrorContext(ctx, "gateway's answer could not be kept", "transaction", c.ID, "err", err)
	}
	return r
}

// unreadableTries is how often a call is made again whose answer says that it was done, and not what.
const unreadableTries = 6

// callee finds who is called, or says why nobody is.
func (m *Mover) callee(c store.MoveClaim) (*gateway.Gateway, gateway.Source, string) {
	src, ok := m.source(c.Source)
	if !ok || src.Account != c.Account {
		return nil, src, "the source is not configured any more"
	}
	gw, ok := m.opts.Gateways(src.Gateway)
	if !ok || gw.Calls == nil || gw.Name != c.Gateway {
		return nil, src, "the source's gateway is not called"
	}
	if gw.Calls.Ready != nil {
		if err := gw.Calls.Ready(src); err != nil {
			return nil, src, err.Error()
		}
	}
	return gw, src, ""
}

// request is the stored call with its key and the credentials of now, or the question what became of it.
func (m *Mover) request(gw *gateway.Gateway, src gateway.Source, c store.MoveClaim) (gateway.Call, error) {
	if looksUp(c) {
		if gw.Calls.Look == nil {
			return gateway.Call{}, errors.New("the gateway cannot be asked")
		}
		call, err := gw.Calls.Look(src, c.Movement)
		if err != nil {
			return call, err
		}
		return gw.Calls.Authorize(src, call), nil
	}
	call := gateway.Call{Method: c.Method, Path: c.Path, Header: http.Header{}, Body: c.Body}
	for name, value := range c.Header {
		call.Header.Set(name, value)
	}
	call.Header.Set(gw.Calls.KeyHeader, c.Key)
	return gw.Calls.Authorize(src, call), nil
}

// events are what the gateway says happened, with the bytes that say so.
func events(src gateway.Source, c store.MoveClaim, reply gateway.Reply, said []order.Event, look bool) ([]store.Event, error) {
	if len(said) == 0 {
		return nil, nil
	}
	delivery, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make a delivery id: %w", err)
	}
	header, err := gateway.KeepReply(c.Movement, reply, look)
	if err != nil {
		return nil, err
	}
	rows := make([]store.Event, len(said))
	for i, e := range said {
		rows[i] = store.Event{
			Event: e, Account: src.Account, Source: src.ID, Delivery: delivery, Payload: reply.Body, Header: header,
			MappingVersion: gateway.MappingVersion, OnUnknown: store.OnUnknown(src.OnUnknownOrder), Paused: src.Paused,
		}
	}
	return rows, nil
}

// log writes one line per call.
func (m *Mover) log(ctx context.Context, c store.MoveClaim, r ruled, s store.MoveSettled, took time.Duration) {
	if s.Stale {
		m.metrics.stale.Inc()
	}
	level := slog.LevelInfo
	switch r.level {
	case quiet:
	case warn:
		level = slog.LevelWarn
	case alarm:
		level = slog.LevelError
	}
	attrs := []any{
		"account", c.Account, "source", c.Source, "gateway", c.Gateway, "transaction", c.ID, "order", c.Order, "kind", c.Kind, "result", r.result,
		"status", r.answer.Status, "epoch", c.Epoch, "attempt", c.Attempts, "took", took.Round(time.Millisecond),
	}
	if looksUp(c) {
		attrs = append(attrs, "lookup", c.Lookups)
	}
	if r.answer.Code != "" {
		attrs = append(attrs, "code", r.answer.Code)
	}
	if r.answer.Detail != "" {
		attrs = append(attrs, "detail", r.answer.Detail)
	}
	if r.answer.GatewayRef != "" {
		attrs = append(attrs, "gateway_ref", r.answer.GatewayRef)
	}
	if r.answer.Stop {
		attrs = append(attrs, "needs", "a webhook or a person")
	} else if r.answer.Wait > 0 && r.answer.Status.Open() {
		attrs = append(attrs, "again_in", r.answer.Wait.Round(time.Millisecond))
	}
	if s.Stale {
		attrs = append(attrs, "stale", true)
	}
	m.opts.Logger.Log(ctx, level, "money moved at gateway", attrs...)
}
