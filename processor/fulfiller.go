package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
)

// Call is one effect that a merchant is asked to bring about.
type Call struct {
	Account     string
	Order       uuid.UUID
	ExternalRef string // the merchant's own name of the order
	Version     int    // of the transition that owes the effect; the same for every attempt
	Effect      order.Effect
	// After is what the merchant had been told before this effect: it tells the two meanings of release apart.
	After order.Told
	// Attempt counts from 1.
	Attempt int
	// AskedAt is when the effect became owed, by the database's clock.
	AskedAt time.Time
	// View is the order as it stood when the effect was claimed, which may be later than Version.
	View order.View
}

// Key identifies the effect: the same for every attempt, never used for another.
func (c Call) Key() string { return fmt.Sprintf("%s:%d:%s", c.Order, c.Version, c.Effect) }

// MarshalJSON returns the body of a callback, in the shape Standard Webhooks recommends: type, timestamp and data.
// Amounts are minor units.
func (c Call) MarshalJSON() ([]byte, error) {
	flags := c.View.Flags.Names()
	if flags == nil {
		flags = []string{}
	}
	return json.Marshal(callBody{
		Type:      "order." + string(c.Effect),
		Timestamp: c.AskedAt.UTC().Format(time.RFC3339Nano),
		Data: callData{
			OrderID: c.Order, ExternalRef: c.ExternalRef, Effect: c.Effect, Version: c.Version, State: c.View.State,
			Total: c.View.Total, Currency: c.View.Currency, Kept: c.View.Kept, Captured: c.View.Captured,
			Refunded: c.View.Refunded, Flags: flags, After: c.After,
		},
	})
}

type callBody struct {
	Type      string   `json:"type"`
	Timestamp string   `json:"timestamp"`
	Data      callData `json:"data"`
}

type callData struct {
	OrderID     uuid.UUID    `json:"order_id"`
	ExternalRef string       `json:"external_ref"`
	Effect      order.Effect `json:"effect"`
	Version     int          `json:"version"`
	State       order.State  `json:"state"`
	Total       int64        `json:"total"`
	Currency    string       `json:"currency"`
	Kept        int64        `json:"kept"`
	Captured    int64        `json:"captured"`
	Refunded    int64        `json:"refunded"`
	Flags       []string     `json:"flags"`
	After       order.Told   `json:"after"`
}

// Fulfiller brings effects about: [Callback] asks the merchant over HTTP, and a program that embeds this package does
// it itself. It must keep four rules, since a call whose answer was lost is made again and facts may overtake it:
//
//  1. A [Call.Key] seen before: return nil, do nothing.
//  2. A [Call.Version] lower than the newest seen for that order: return nil, do nothing.
//  3. Revoke of something never fulfilled: return nil, do nothing.
//  4. Release after order.ToldHeld: lift the hold; a fulfil follows. Release after order.ToldRevoked: deliver after
//     all, also if no fulfil ever arrived.
type Fulfiller interface {
	// Fulfil returns nil once the effect is durable. It must return when ctx ends ([WorkerOptions.Deadline]); one that
	// does not may meet its own next attempt. An error is tried again; see [Refused], [Dead] and [RetryAfter].
	// It is called from many goroutines, but never from two for one order at once.
	Fulfil(ctx context.Context, c Call) error
}

// Endpointer is implemented by a [Fulfiller] that reaches its accounts in different ways.
type Endpointer interface {
	// Endpoint names what the account's calls are made to: calls to one endpoint share a circuit. ok is false where
	// there is none yet: the account's effects then stay open, untried, until there is.
	Endpoint(account string) (name string, ok bool)
}

// FulfillerFunc makes a function a [Fulfiller].
type FulfillerFunc func(ctx context.Context, c Call) error

// Fulfil calls f.
func (f FulfillerFunc) Fulfil(ctx context.Context, c Call) error { return f(ctx, c) }

// Refused marks err as a no that may be a mistake, such as 404 from a shop that is being deployed: the effect is tried
// again for [WorkerOptions.RefusedFor], then dead.
func Refused(err error) error { return &answer{class: classRefused, err: err} }

// Dead marks err as a no that repeating cannot change: the effect is dead until a person retries it.
func Dead(err error) error { return &answer{class: classDead, err: err} }

// RetryAfter marks err as one that is not worth another try before wait is over. The schedule's own wait is kept if it
// is longer; more than [MaxRetryAfter] counts as that.
func RetryAfter(err error, wait time.Duration) error {
	return &answer{class: classRetry, wait: wait, err: err}
}

// MaxRetryAfter is the longest time that an answer may put the next try off: the longest wait of the schedule.
const MaxRetryAfter = 24 * time.Hour

// class says what an answer means for the effect.
type class int

const (
	classRetry class = iota
	classRefused
	classDead
)

// answer is an error that says what comes next.
type answer struct {
	class  class
	wait   time.Duration
	status int // of HTTP, for the log; 0: none
	err    error
}

func (a *answer) Error() string { return a.err.Error() }
func (a *answer) Unwrap() error { return a.err }

// result is how one call ended.
type result struct {
	done     bool
	class    class // if not done
	wait     time.Duration
	status   int
	timedOut bool
	text     string
}

// name is the result's word in metrics and logs.
func (r result) name() string {
	switch {
	case r.done:
		return "done"
	case r.timedOut:
		return "timeout"
	case r.class == classRefused:
		return "refused"
	case r.class == classDead:
		return "rejected"
	default:
		return "retry"
	}
}

// resultOf reads what a Fulfiller returned.
func resultOf(err error) result {
	if err == nil {
		return result{done: true}
	}
	r := result{text: err.Error()}
	var a *answer
	if errors.As(err, &a) {
		r.class, r.wait, r.status = a.class, a.wait, a.status
		return r
	}
	var t interface{ Timeout() bool } // context.DeadlineExceeded, and what net returns
	r.timedOut = errors.As(err, &t) && t.Timeout()
	return r
}
