package signature

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a request was refused: a word for logs and metrics, never for
// the caller, who learns nothing but "no".
type Reason string

// The reasons. Of a request, all of them mean: answer 401 and store nothing.
const (
	// Missing: there is no signature, or something it needs (its time, its id)
	// is not there.
	Missing Reason = "missing"

	// Malformed: what is there cannot be read by the rules of the scheme.
	Malformed Reason = "malformed"

	// Ambiguous: it can be read in two ways.
	Ambiguous Reason = "ambiguous"

	// Mismatch: the signature is well formed, and no live secret made it for
	// these bytes.
	Mismatch Reason = "mismatch"

	// Stale: genuine, but signed too long ago: a replay, a delivery that waited,
	// or our clock is ahead.
	Stale Reason = "stale"

	// Future: genuine, but signed in the future: our clock is behind.
	Future Reason = "future"

	// NoSecret: nothing to check with; the configuration is at fault.
	NoSecret Reason = "no_secret"

	// BadSecret: there are secrets, and none is well formed; the configuration
	// is at fault.
	BadSecret Reason = "bad_secret"

	// UnknownScheme: the table has no scheme of that name.
	UnknownScheme Reason = "unknown_scheme"
)

// Error is the only type of error of this package. Nothing in it comes from a
// secret, from an expected digest or from the bytes of a request.
type Error struct {
	Scheme string // name of the scheme; "basic" for [CheckBasic]
	Reason Reason
	Detail string // what exactly, for people; may be empty

	// For Stale and Future: now minus the signed time (negative if that is in
	// the future), and the largest skew that is accepted. Whole seconds.
	Skew, Tolerance time.Duration
}

// Error describes the refusal in one line, like "signature: stripe: missing: no t".
func (e *Error) Error() string {
	text := fmt.Sprintf("signature: %s: %s", e.Scheme, e.Reason)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Skew != 0 {
		text += fmt.Sprintf(": skew %s, tolerance %s", e.Skew, e.Tolerance)
	}
	return text
}

// ReasonOf returns the reason in err or in an error it wraps, and "" if there is
// none, so also for nil.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func refuse(r Reason, detail string) *Error {
	return &Error{Reason: r, Detail: detail}
}
