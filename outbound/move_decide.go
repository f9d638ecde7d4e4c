package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// Results of calls that move money, in logs and metrics.
const (
	resultDone       = "done"
	resultDeclined   = "declined"
	resultLater      = "later"
	resultDenied     = "denied"
	resultUnanswered = "unanswered"
	resultUnsure     = "unsure"
	resultReused     = "reused"
	resultAbsent     = "absent"      // it is proven that nothing was done
	resultWindow     = "window_over" // the key may be forgotten: no call was made, and none will be
	resultCannotCall = "cannot_call" // the source is not configured for it
	resultNotSettled = "not_settled" // the database did not take the answer
)

// Code words of ours, for why a transaction stands as it does.
const (
	codeUnanswered = "unanswered"
	codeWindow     = "key_window_over"
	codeReused     = store.CodeKeyReused
	codeUnsure     = "outcome_unknown"
	codeAbsent     = "not_done"
	codeCannotCall = store.CodeCannotCall
	codeDenied     = store.CodeCredentialsDenied
)

// ruled is what follows from what came of a call.
type ruled struct {
	answer store.MoveAnswer
	result string
	level  levelOf
	fetch  []gateway.Object
}

// levelOf is how loudly it is logged.
type levelOf int

const (
	quiet levelOf = iota
	warn
	alarm
)

// past reports whether a call must not be repeated any more, since the gateway may have forgotten its key.
func (o MoveOptions) past(c store.MoveClaim, life time.Duration) bool {
	return c.SentAt != nil && c.Since.Sub(*c.SentAt) >= life-min(o.Margin, life/4)
}

// wait is the n-th of waits, counting from 1, or the last, at least after, give or take a fifth.
func wait(waits []time.Duration, n int, after time.Duration) time.Duration {
	if len(waits) == 0 {
		return after
	}
	w := waits[min(max(n, 1), len(waits))-1]
	return max(after, time.Duration(float64(w)*(1-jitter+2*jitter*rand.Float64())))
}

// looksUp reports whether the claim is about finding out what became of a call, and not about making it.
func looksUp(c store.MoveClaim) bool { return c.Status == store.TransactionUncertain }

// unsure is a transaction of which the same call would tell no more: it is looked up, or waits for somebody who knows.
func (o MoveOptions) unsure(c store.MoveClaim, canLook bool, after time.Duration, code, detail string) store.MoveAnswer {
	a := store.MoveAnswer{Status: store.TransactionUncertain, Code: code, Detail: detail}
	n := 1
	if looksUp(c) {
		n = c.Lookups
	}
	a.Stop = !canLook || n > len(o.Lookup)
	a.Wait = wait(o.Lookup, n, after)
	return a
}

// unanswered is what follows from a call without an answer. err is an [*Error].
func (o MoveOptions) unanswered(c store.MoveClaim, canLook bool, err error) ruled {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Kind: Retry, gateway: c.Gateway, text: "the call ended in an unknown way"}
	}
	text := e.Error()
	a := store.MoveAnswer{Status: c.Status, Wait: e.After, Code: c.Code, Detail: text}
	switch {
	case e.Kind == Retry && e.Status == 0 && e.After > 0: // no call was made
		a.Free = true
		return ruled{answer: a, result: resultTurnedAway}
	case e.Kind == Refused && e.Status == 0: // it cannot be made
		a.Free, a.Code, a.Wait = true, codeCannotCall, wait(o.Denied, c.Attempts, 0)
		return ruled{answer: a, result: resultCannotCall, level: alarm}
	case e.Kind == Denied: // no token was given, so the call was not made
		a.Code, a.Wait = codeDenied, wait(o.Denied, c.Attempts, e.After)
		return ruled{answer: a, result: resultDenied, level: alarm}
	case looksUp(c):
		return ruled{answer: o.unsure(c, canLook, e.After, c.Code, text), result: resultUnanswered}
	case errors.Is(err, context.Canceled): // we stop, or the job took too long: it may have been sent all the same
		a.Code, a.Wait = codeUnanswered, wait(o.Retry, 1, 0)
		return ruled{answer: a, result: resultUnanswered}
	default:
		a.Code, a.Wait = codeUnanswered, wait(o.Retry, c.Attempts, e.After)
		return ruled{answer: a, result: resultUnanswered, level: warn}
	}
}

// judged is what follows from a verdict.
func (o MoveOptions) judged(c store.MoveClaim, canLook bool, v gateway.Verdict) ruled {
	look := looksUp(c)
	keep := store.MoveAnswer{Status: c.Status, Code: v.Code, Detail: v.Detail}
	switch v.Ruling {
	case gateway.Done:
		return ruled{answer: store.MoveAnswer{Status: store.TransactionSucceeded, GatewayRef: v.Ref, Detail: v.Detail}, result: resultDone, fetch: v.Fetch}
	case gateway.Declined:
		keep.Status = store.TransactionFailed // of a lookup, too: it has found that it came to nothing
		return ruled{answer: keep, result: resultDeclined, fetch: v.Fetch, level: warn}
	case gateway.Later:
		if look {
			return ruled{answer: o.unsure(c, canLook, v.After, c.Code, v.Detail), result: resultLater}
		}
		keep.Wait = wait(o.Retry, c.Attempts, v.After)
		return ruled{answer: keep, result: resultLater}
	case gateway.Denied:
		keep.Code, keep.Wait = codeDenied, wait(o.Denied, max(c.Attempts, c.Lookups), v.After)
		if look {
			keep.Code = c.Code // why it is looked up
		}
		return ruled{answer: keep, result: resultDenied, level: alarm}
	case gateway.Reused:
		// It is our mistake, and another key would hide it: a person must look. What became of the first call can still be found.
		return ruled{answer: o.unsure(c, canLook, v.After, codeReused, v.Detail), result: resultReused, level: alarm}
	case gateway.Absent:
		return o.absent(c, v)
	case gateway.Unsure:
		if !look && !canLook { // the one way to ask is the same call: under its key it does nothing twice
			keep.Code, keep.Wait = cmp.Or(v.Code, codeUnsure), wait(o.Retry, c.Attempts, v.After)
			return ruled{answer: keep, result: resultUnsure, level: warn, fetch: v.Fetch}
		}
	}
	code := c.Code
	if !look {
		code = cmp.Or(v.Code, codeUnsure)
	}
	return ruled{answer: o.unsure(c, canLook, v.After, code, v.Detail), result: resultUnsure, level: warn, fetch: v.Fetch}
}

// absent: it is proven that the gateway has done nothing. So the next call may go under another key, unless the key itself was what
// was wrong, or that was tried often enough.
func (o MoveOptions) absent(c store.MoveClaim, v gateway.Verdict) ruled {
	switch {
	case !looksUp(c): // only a lookup proves anything
		return ruled{answer: o.unsure(c, true, v.After, codeUnsure, v.Detail), result: resultUnsure, level: warn}
	case c.Code == codeReused:
		return ruled{answer: store.MoveAnswer{
			Status: store.TransactionUncertain, Stop: true, Code: codeReused, Detail: "the gateway has done nothing; it took the key for another request's",
		}, result: resultReused, level: alarm}
	case c.Attempts > 1 && c.Since.Sub(*c.SentAt) < o.Settled:
		// One of the calls before was not answered, and may be under way still: what is not there yet may come.
		return ruled{answer: o.unsure(c, true, o.Settled-c.Since.Sub(*c.SentAt), c.Code, "not there yet"), result: resultUnsure}
	case c.Code != codeUnsure && c.Code != codeWindow:
		// The gateway has refused it, in words that may have been about an earlier try of ours. There was none.
		return ruled{answer: store.MoveAnswer{Status: store.TransactionFailed, Code: c.Code, Detail: v.Detail}, result: resultDeclined, level: warn}
	case c.Epoch >= o.Epochs:
		return ruled{answer: store.MoveAnswer{
			Status: store.TransactionFailed, Code: codeAbsent, Detail: fmt.Sprintf("the gateway has done nothing, under %d keys one after another", c.Epoch),
		}, result: resultAbsent, level: alarm}
	}
	return ruled{answer: store.MoveAnswer{
		Status: store.TransactionPending, Wait: wait(o.Retry, 2*c.Epoch, v.After), Code: codeAbsent, Detail: v.Detail,
	}, result: resultAbsent, level: warn}
}
