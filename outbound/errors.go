package outbound

import (
	"fmt"
	"time"

	"github.com/paidonce/paidonce/store"
)

// Kind says what follows from a call that failed.
type Kind string

// The kinds of [Error].
const (
	// Retry: ask again later, not before After. The gateway is down, slow, or
	// asked us to wait; or we keep our own pace.
	Retry Kind = "retry"

	// Gone: the gateway does not know the object (404, 410). It may be younger
	// than what the API shows, so a caller may ask a few times more.
	Gone Kind = store.FetchGone

	// Denied: the gateway does not accept the source's credentials (401, 403). A
	// person must look; asking again helps once they have.
	Denied Kind = "denied"

	// Refused: asking again in the same way would end the same: any other 4xx, a
	// redirect, a private address, an answer that is too large, a base URL that
	// cannot be called.
	Refused Kind = store.FetchRefused
)

// Error is the only type of error of [Client.Do].
type Error struct {
	Kind Kind

	// After is how long to wait at least. Zero: as the caller sees fit.
	After time.Duration

	// Status is the HTTP status that the gateway answered. Zero: there was no
	// answer, or no call.
	Status int

	gateway string
	text    string
	cause   error // the end of a context, or nil
}

// Error is one line for logs: nothing in it comes from a request or an answer
// but the status.
func (e *Error) Error() string {
	text := fmt.Sprintf("ask %s: %s", e.gateway, e.text)
	if e.After > 0 {
		text += fmt.Sprintf("; not before %s", e.After.Round(time.Millisecond))
	}
	return text
}

// Unwrap returns the end of the context that ended the call, or nil.
func (e *Error) Unwrap() error { return e.cause }
