package cases

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// verify notes everything in a that does not hold now. An error is one of the
// runner's, not of the program.
func (p *player) verify(ctx context.Context, a *Assert, where string) error {
	for _, ref := range slices.Sorted(maps.Keys(a.Orders)) {
		if err := p.verifyOrder(ctx, a.Orders[ref], where+": order "+ref, ref); err != nil {
			return err
		}
	}
	if err := p.verifyRows(ctx, a, where); err != nil {
		return err
	}
	for i, want := range a.Outcomes {
		switch got := p.outcomes[i]; {
		case want.unchecked() || p.c.Setup.Refused():
		case got == nil:
			p.fail("%s: outcomes[%d]: request %d was never sent", where, i, i)
		case !want.Holds(got):
			p.fail("%s: outcomes[%d]: %v, expected %s", where, i, got, want)
		}
	}
	p.verifyCalls(a, where)
	if a.Outbound != nil {
		seen := p.Network.Outbound()[p.outboundBefore:]
		if !a.Outbound.Holds(int64(len(seen))) {
			p.fail("%s: outbound: %d, expected %s: %s", where, len(seen), a.Outbound, strings.Join(seen, ", "))
		}
	}
	for i := range a.Answers {
		p.verifyAnswers(&a.Answers[i], where)
	}
	p.verifyResponses(a, where)
	if err := p.verifyEvents(ctx, a, where); err != nil {
		return err
	}
	if len(a.LogsAbsent) > 0 {
		logs := p.Program.Logs()
		for _, text := range a.LogsAbsent {
			if i := strings.Index(logs, text); i >= 0 {
				p.fail("%s: logs_absent: %q is in a log: %s", where, text, lineAt(logs, i))
			}
		}
	}
	for i := range a.When {
		holds, err := p.holds(ctx, &a.When[i].If)
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		if err := p.verify(ctx, &a.When[i].Assert, fmt.Sprintf("%s: when[%d]", where, i)); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether the condition of a when is met.
func (p *player) holds(ctx context.Context, c *Condition) (bool, error) {
	if c.Request != nil {
		answers := p.answers[*c.Request]
		return len(answers) > 0 && slices.Contains(c.Status, answers[len(answers)-1].Code), nil
	}
	o, err := p.order(ctx, *c.Order)
	return o != nil && slices.Contains(c.StateIn, o.State), err
}

func (p *player) verifyOrder(ctx context.Context, a OrderAssert, where, ref string) error {
	o, err := p.order(ctx, ref)
	if err != nil {
		return err
	}
	switch {
	case a.Absent && o != nil:
		p.fail("%s: there is one, %s", where, o.State)
		return nil
	case a.Absent:
		return nil
	case o == nil:
		p.fail("%s: there is none", where)
		return nil
	}
	num := func(what string, want *Num, got int64) {
		if want != nil && !want.Holds(got) {
			p.fail("%s: %s is %d, expected %s", where, what, got, want)
		}
	}
	if a.StateIn != nil && !slices.Contains(a.StateIn, o.State) {
		p.fail("%s: state is %s, expected one of %v", where, o.State, a.StateIn)
	}
	if slices.Contains(a.StateNot, o.State) {
		p.fail("%s: state is %s, expected none of %v", where, o.State, a.StateNot)
	}
	if a.ToldIn != nil && !slices.Contains(a.ToldIn, o.Told) {
		p.fail("%s: told is %s, expected one of %v", where, o.Told, a.ToldIn)
	}
	num("captured", a.Captured, o.Captured)
	num("refunded", a.Refunded, o.Refunded)
	num("version", a.Version, o.Version)
	for _, flag := range a.Flags {
		if !slices.Contains(o.Flags, flag) {
			p.fail("%s: flags are %v, and %s is missing", where, o.Flags, flag)
		}
	}
	for _, flag := range a.FlagsAbsent {
		if slices.Contains(o.Flags, flag) {
			p.fail("%s: flags are %v, and %s is among them", where, o.Flags, flag)
		}
	}
	if a.FlagsOnly != nil && !sameSet(o.Flags, a.FlagsOnly) {
		p.fail("%s: flags are %v, expected exactly %v", where, o.Flags, a.FlagsOnly)
	}
	if a.Registered != nil && o.Registered != *a.Registered {
		p.fail("%s: registered is %t", where, o.Registered)
	}
	return nil
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

func (p *player) verifyRows(ctx context.Context, a *Assert, where string) error {
	compare := func(account string, want map[string]Num, before counts) error {
		if len(want) == 0 {
			return nil
		}
		all, err := p.count(ctx, account)
		if err != nil {
			return err
		}
		if account == AccountA {
			for ref := range p.registered {
				delete(all["orders"], ref)
			}
		}
		got := all.since(before)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if !want[name].Holds(got[name]) {
				p.fail("%s: %d new rows of %s in account %s, expected %s", where, got[name], name, account, want[name])
			}
		}
		return nil
	}
	if err := compare(AccountA, a.Rows, p.before); err != nil {
		return err
	}
	return compare(AccountB, a.Accounts[AccountB].Rows, nil)
}

func (p *player) verifyCalls(a *Assert, where string) {
	if len(a.Calls) == 0 {
		return
	}
	got := p.Merchant.Keys()
	for effect := range got {
		if effect != "total" {
			got["total"] += got[effect]
		}
	}
	for _, effect := range slices.Sorted(maps.Keys(a.Calls)) {
		if !a.Calls[effect].Holds(int64(got[effect])) {
			p.fail("%s: %d calls %s, expected %s", where, got[effect], effect, a.Calls[effect])
		}
	}
}

func (p *player) verifyAnswers(a *AnswerAssert, where string) {
	for _, r := range p.answers[a.Request] {
		if a.Status != nil && !slices.Contains(a.Status, r.Code) {
			continue
		}
		at := fmt.Sprintf("%s: answers: request %d, answered %d", where, a.Request, r.Code)
		for _, name := range a.HeaderPresent {
			if len(r.Header.Values(name)) == 0 {
				p.fail("%s: no header %s", at, name)
			}
		}
		for _, name := range a.HeaderAbsent {
			if len(r.Header.Values(name)) > 0 {
				p.fail("%s: header %s is %q", at, name, r.Header.Get(name))
			}
		}
		for name, text := range a.HeaderContains {
			if !strings.Contains(strings.Join(r.Header.Values(name), ", "), text) {
				p.fail("%s: header %s is %q, without %q", at, name, r.Header.Get(name), text)
			}
		}
		if a.BodyEquals != nil && string(r.Body) != *a.BodyEquals {
			p.fail("%s: body is %q, expected %q", at, r.Body, *a.BodyEquals)
		}
		for _, text := range a.BodyContains {
			if !bytes.Contains(r.Body, []byte(text)) {
				p.fail("%s: body %q is without %q", at, r.Body, text)
			}
		}
		for _, text := range a.BodyAbsent {
			if bytes.Contains(r.Body, []byte(text)) {
				p.fail("%s: body %q has %q", at, r.Body, text)
			}
		}
		if a.MaxMS != nil && r.Took.Milliseconds() > *a.MaxMS {
			p.fail("%s: took %s, at most %d ms", at, r.Took, *a.MaxMS)
		}
	}
}

// verifyResponses compares answers with each other.
func (p *player) verifyResponses(a *Assert, where string) {
	for _, group := range a.SameResponse {
		var first *Reply
		for _, i := range group {
			for _, r := range p.answers[i] {
				switch {
				case !r.accepted():
				case first == nil:
					first = &r
				case r.Code != first.Code || !bytes.Equal(r.Body, first.Body):
					p.fail("%s: same_response %v: %s and %s", where, group, describe(*first), describe(r))
				}
			}
		}
	}
	for _, group := range a.DifferentOrder {
		seen := make(map[string]int) // id → request
		for _, i := range group {
			for _, r := range p.answers[i] {
				if !r.accepted() {
					continue
				}
				id, err := orderIDOf(r)
				if err != nil {
					p.fail("%s: different_order: request %d: %v", where, i, err)
					continue
				}
				if other, ok := seen[id]; ok && other != i {
					p.fail("%s: different_order: requests %d and %d have order %s", where, other, i, id)
				}
				seen[id] = i
			}
		}
	}
	for _, i := range a.Replayed {
		if len(p.answers[i]) == 0 {
			p.fail("%s: replayed: request %d was never sent", where, i)
		}
		for _, r := range p.answers[i] {
			if r.Header.Get("Idempotent-Replayed") != "true" {
				p.fail("%s: replayed: request %d: %s without Idempotent-Replayed: true", where, i, describe(r))
			}
		}
	}
}

// verifyEvents looks at what is kept of events: bytes, payments and types.
func (p *player) verifyEvents(ctx context.Context, a *Assert, where string) error {
	for _, i := range a.PayloadsKept {
		kept, err := p.keeps(ctx, p.c.Requests[i].Body)
		if err != nil {
			return err
		}
		if !kept {
			p.fail("%s: payloads_kept: no row has the bytes of request %d", where, i)
		}
	}
	for _, id := range a.PaymentsKnown {
		known, err := p.texts(ctx, `SELECT id FROM payment_ids WHERE account_id = $1 AND id = $2`, AccountA, id)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			p.fail("%s: payments_known: %q is not", where, id)
		}
	}
	if a.EventTypes != nil {
		rows, err := p.newEvents(ctx, p.before["events"])
		if err != nil {
			return err
		}
		var types []string
		for _, row := range rows {
			types = append(types, row.Type)
		}
		if !sameSet(types, a.EventTypes) {
			p.fail("%s: event_types are %v, expected %v", where, types, a.EventTypes)
		}
	}
	return nil
}

// keeps reports whether a payload has exactly these bytes.
func (p *player) keeps(ctx context.Context, body []byte) (bool, error) {
	var kept bool
	err := p.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM event_payloads WHERE body = $1)`, body).Scan(&kept)
	return kept, err
}

// lineAt returns the line of text around position i.
func lineAt(text string, i int) string {
	start := strings.LastIndexByte(text[:i], '\n') + 1
	end := strings.IndexByte(text[i:], '\n')
	if end < 0 {
		return text[start:]
	}
	return text[start : i+end]
}
