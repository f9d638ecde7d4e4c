package bank

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Fault is one way in which the bank misbehaves.
type Fault string

// Faults of calls. A call meets one of them at most. "While" it lasts, the same call meets it up to three times in a row.
const (
	// LostBefore: the connection ends without an answer, and nothing was done.
	LostBefore Fault = "lost_before"
	// LostAfter: what was asked for is done, and the connection ends without an answer.
	LostAfter Fault = "lost_after"
	// HangBefore: nothing is done, and nothing is answered until the caller hangs up.
	HangBefore Fault = "hang_before"
	// HangAfter: it is done, and nothing is answered until the caller hangs up.
	HangAfter Fault = "hang_after"
	// CutAnswer: it is done, and the connection is reset in the middle of the answer.
	CutAnswer Fault = "cut_answer"
	// Garbage: it is done, and the answer is 200 with a page in HTML.
	Garbage Fault = "garbage"
	// Slow: the call is under way while [Options].Pause lasts, and then done, whether or not the caller is still there.
	Slow Fault = "slow"

	// Busy: for a while the answer is that the same call is under way. Nothing is done. Of calls with a key.
	Busy Fault = "busy"
	// Late: the connection ends, and the call stays under way: it is done only when [Options].Delay is over or it was asked for
	// three times more. Until then nobody can see it. Of calls with a key.
	Late Fault = "late"

	// Failure: a failure before anything began. Nothing is kept.
	Failure Fault = "failure"
	// KeptFailure: a failure after it began, with nothing done. It is kept under the key where the gateway keeps failures.
	KeptFailure Fault = "kept_failure"
	// KeptFailureDone: the same, but it was done.
	KeptFailureDone Fault = "kept_failure_done"

	// TooMany: 429 with Retry-After, for a while.
	TooMany Fault = "too_many"
	// Denied: the credentials are not accepted, for a while.
	Denied Fault = "denied"
)

// Fates of refunds.
const (
	// RefundFails: the refund is done, and some time later it fails: a webhook tells.
	RefundFails Fault = "refund_fails"
	// RefundPends: the refund is pending at first, and done some time later. (All modifications of Adyen are only received.)
	RefundPends Fault = "refund_pends"
)

// Faults of webhooks. An event meets one of them at most.
const (
	// HookDropped: nobody is told. What happened still stands in the lists.
	HookDropped Fault = "hook_dropped"
	// HookDoubled: it is sent twice.
	HookDoubled Fault = "hook_doubled"
	// HookDelayed: it is sent when [Options].Delay is over.
	HookDelayed Fault = "hook_delayed"
	// HookReordered: it is sent after the one that comes next.
	HookReordered Fault = "hook_reordered"
	// HookEarly: it is sent before the call that caused it is answered.
	HookEarly Fault = "hook_early"
)

var (
	callFaults = []Fault{
		LostBefore, LostAfter, HangBefore, HangAfter, CutAnswer, Garbage, Slow, Busy, Late, Failure, KeptFailure, KeptFailureDone, TooMany, Denied,
	}
	refundFates = []Fault{RefundFails, RefundPends}
	hookFaults  = []Fault{HookDropped, HookDoubled, HookDelayed, HookReordered, HookEarly}

	// doing faults are about what is done, and met only by a call that is not repeated.
	doing = []Fault{Slow, Busy, Late, KeptFailure, KeptFailureDone}

	// lasting faults last for a while.
	lasting = []Fault{Busy, TooMany, Denied}
)

// Faults returns every fault there is, those of calls first.
func Faults() []Fault { return slices.Concat(callFaults, refundFates, hookFaults) }

// Odds are how likely each fault is, in thousandths. Those of calls add up to 1000 at most, and so do the fates of refunds and the
// faults of webhooks.
type Odds map[Fault]int

// DefaultOdds make about every third call fail, every third webhook go astray, and every tenth refund fail or take its time.
func DefaultOdds() Odds {
	o := Odds{
		RefundFails: 50, RefundPends: 50,
		HookDropped: 50, HookDoubled: 80, HookDelayed: 80, HookReordered: 80, HookEarly: 80,
	}
	for _, f := range callFaults {
		o[f] = 25
	}
	return o
}

func (o Odds) check() error {
	for _, group := range [][]Fault{callFaults, refundFates, hookFaults} {
		sum := 0
		for _, f := range group {
			if o[f] < 0 {
				return fmt.Errorf("bank: odds of %s are negative", f)
			}
			sum += o[f]
		}
		if sum > 1000 {
			return fmt.Errorf("bank: odds of %s and its like are more than 1000", group[0])
		}
	}
	for f := range o {
		if !slices.Contains(Faults(), f) {
			return fmt.Errorf("bank: there is no fault %q", f)
		}
	}
	return nil
}

// pick returns the fault of a group that the draw falls on; "" if it falls on none.
func (o Odds) pick(group []Fault, draw uint64) Fault {
	x := int(draw % 1000)
	for _, f := range group {
		if x < o[f] {
			return f
		}
		x -= o[f]
	}
	return ""
}

// draw makes a number of the seed and what it is about.
func (b *Bank) draw(about ...string) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%d", b.opts.Seed)
	for _, text := range about {
		fmt.Fprintf(h, "\x00%d:%s", len(text), text)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// history is what the same call met before.
type history struct {
	asked  int // how often it came
	faults int // in a row
	while  Fault
	left   int // how often it meets while again
}

// fault draws the fault of a call by its content and how often it came. Nothing else has a part in it.
func (a *account) fault(c *call) Fault {
	b, content := a.bank, c.r.content()
	h := a.calls[content]
	if h == nil {
		h = &history{}
		a.calls[content] = h
	}
	h.asked++
	f := h.while
	if h.left > 0 {
		h.left--
	} else {
		f = b.opts.Odds.pick(callFaults, b.draw("call", a.src.ID, content, strconv.Itoa(h.asked)))
		if slices.Contains(lasting, f) {
			h.while, h.left = f, int(b.draw("while", a.src.ID, content, strconv.Itoa(h.asked))%3)
		}
	}
	if h.faults >= b.opts.Patience || !f.befits(c) {
		f, h.left = "", 0
	}
	if f == "" {
		h.faults = 0
		return ""
	}
	h.faults++
	return f
}

// befits reports whether a call can meet the fault: of what is only read nothing is done and nothing kept.
func (f Fault) befits(c *call) bool {
	switch f {
	case Busy, Late:
		return c.key != ""
	case KeptFailure, KeptFailureDone:
		return c.op.moves()
	}
	return true
}
