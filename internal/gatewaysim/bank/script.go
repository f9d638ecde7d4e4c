package bank

import (
	"slices"
)

// Kind is what a call asks for.
type Kind string

// The kinds of calls.
const (
	Capture Kind = "capture"
	Refund  Kind = "refund"
	Void    Kind = "void"
	Read    Kind = "read" // one payment, or one thing of it
	List    Kind = "list" // what happened, or what there is
	Token   Kind = "token"
)

// Match says which calls a script is for. The zero value matches all of them but those for a token.
type Match struct {
	Source  string
	Kind    Kind
	Payment string // one of its ids; a list that names none is about no payment
}

// Step is what one call meets: one fault of calls, one fate if it is a refund, and faults of the webhooks that it causes. Empty:
// all goes well.
type Step []Fault

// script is what calls are to meet.
type script struct {
	match Match
	steps []Step
}

// Script makes the next calls that match meet these steps, one after the other, and no other fault. Of several scripts that match
// the oldest goes first.
func (b *Bank) Script(m Match, steps ...Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &script{m, slices.Clone(steps)}
	for id, a := range b.accounts {
		if m.Source == "" || m.Source == id {
			a.scripts = append(a.scripts, one)
		}
	}
}

// step takes the next step that is scripted for a call; ok is false if there is none.
func (a *account) step(c *call) (s Step, ok bool) {
	for _, one := range a.scripts {
		m := one.match
		if len(one.steps) == 0 || m.Kind != c.op.kind && (m.Kind != "" || c.op.kind == Token) || m.Payment != "" && (c.op.about == nil || a.ids[m.Payment] != c.op.about) {
			continue
		}
		s, one.steps = one.steps[0], one.steps[1:]
		return s, true
	}
	return nil, false
}

// of returns the fault of the step that is of a group; "" if there is none.
func (s Step) of(group []Fault) Fault {
	for _, f := range s {
		if slices.Contains(group, f) {
			return f
		}
	}
	return ""
}
