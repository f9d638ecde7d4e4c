package idempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Outcome is what becomes of a key once its handler has ended.
type Outcome int

const (
	// Keep stores the response: every later call with the key gets it again.
	Keep Outcome = iota
	// Retry stores nothing, and frees the key for the same request: another body is still refused.
	Retry
	// Forget stores nothing, and frees the key for any request, as if it had never been used.
	Forget
)

// String returns the outcome's name in metrics.
func (o Outcome) String() string {
	switch o {
	case Keep:
		return "keep"
	case Retry:
		return "retry"
	case Forget:
		return "forget"
	}
	return "unknown"
}

// InFlight is what a call hears while another one with its key is being executed. The zero value is [Reject].
type InFlight struct{ wait time.Duration }

// Reject answers 409 idempotency_key_in_progress with Retry-After at once.
func Reject() InFlight { return InFlight{} }

// Wait looks again, without holding a database connection in between, until the first call has ended or d has passed, and then
// rejects. At most one minute.
func Wait(d time.Duration) InFlight { return InFlight{wait: d} }

// Policy is how one route treats its keys. [Strict] and [Relaxed] are the two profiles; a route that needs something else
// changes a field of one. Zero values of TTL, LockTimeout, Deadline, MaxResponse, Classify, Headers and Isolation mean the default.
type Policy struct {
	// Name tells policies apart in the table and in metrics: 1 to 50 of a-z, 0-9, -, _.
	Name string

	// Require refuses calls without a key (400 idempotency_key_missing). Otherwise they run unprotected.
	Require bool

	// TTL is how long a key is remembered, from its first use. Neither completion nor replays extend it. Default 48 hours.
	TTL time.Duration

	// LockTimeout is how long a call that says nothing is taken to be alive. After it, another call may take the key over,
	// unless the transaction of the first is still open. Default 30 seconds, at least 100 milliseconds.
	LockTimeout time.Duration

	// Deadline is how long the handler may take. Its context ends then, and in a unit of work all that it wrote is rolled back.
	// Default five sixths of LockTimeout.
	Deadline time.Duration

	// MaxBody is the longest request body that may come with a key, in bytes, inclusive. The body is held in memory, so
	// where it is 0, which means no limit, something outside should set one ([http.MaxBytesReader] is understood).
	MaxBody int64

	// MaxResponse is the longest response body that is stored, in bytes, inclusive. A longer one reaches the caller whole, and
	// later calls hear 409 idempotency_result_unavailable: the work is never done again. Default 1 MiB.
	MaxResponse int64

	// Classify decides by the status of the handler's answer, and by err: what was handed to [Fail], [context.DeadlineExceeded],
	// [ErrPanicked], or nil. It must be pure. Default: what Strict does.
	Classify func(status int, err error) Outcome

	// InFlight is what a call hears while another one with its key is being executed. Default [Reject].
	InFlight InFlight

	// NoReplayHeader leaves Idempotent-Replayed out of replays. Idempotency-Status tells in any case.
	NoReplayHeader bool

	// Headers are the response headers that are stored and replayed. Default [DefaultHeaders]. Set-Cookie and headers of
	// the connection cannot be among them.
	Headers []string

	// NoTx runs the handler without a transaction: for routes whose effect is outside of this database. The key's lock is
	// then renewed while the handler runs. See the package comment for what is lost by it.
	NoTx bool

	// KeepWrites commits what the handler wrote although it answered 400 or more. Otherwise only the answer is stored.
	// A handler can decide the same for one call: [KeepWrites].
	KeepWrites bool

	// Isolation of the unit of work. Default READ COMMITTED.
	Isolation pgx.TxIsoLevel

	// Redact changes a response body before it is stored, to leave something out that must not lie in a table. Whoever sets
	// it declares that replays may differ from the first answer. The first caller always gets the original.
	Redact func(contentType string, body []byte) []byte
}

// Strict is the profile of a payments API: keys are required, live for 48 hours, and every answer but temporary failures
// (5xx, 408, 425, 429) is kept, so that a refused request is refused again in the same words.
func Strict() Policy {
	return Policy{Name: "strict", Require: true, TTL: 48 * time.Hour, Classify: keepAnswers}
}

// Relaxed is the profile of a public API: keys are optional, live for 24 hours, and come with bodies of at most 102400 bytes.
// Only successes (2xx) are kept; after anything else the key is free again, also for a corrected body.
func Relaxed() Policy {
	return Policy{Name: "relaxed", TTL: 24 * time.Hour, MaxBody: 100 << 10, Classify: keepSuccesses}
}

func keepAnswers(status int, err error) Outcome {
	switch {
	case err != nil, status >= 500:
		return Retry
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return Retry // these speak of the moment, not of the request
	}
	return Keep
}

func keepSuccesses(status int, err error) Outcome {
	if err == nil && status >= 200 && status < 300 {
		return Keep
	}
	return Forget
}

// DefaultHeaders returns the response headers that are stored where [Policy.Headers] is nil: those that describe the body
// and the resource.
func DefaultHeaders() []string {
	return []string{
		"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Location", "Content-Range",
		"Location", "ETag", "Last-Modified", "Link", "Vary", "Deprecation", "Sunset", "Preference-Applied",
	}
}

// never are the headers that belong to one caller, one connection or one moment.
var never = []string{
	"Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade", "Te", "Proxy-Authenticate",
	"Www-Authenticate", "Authentication-Info", "Content-Length", "Date", HeaderStatus, HeaderReplayed, "Cache-Control",
}

const (
	minLockTimeout = 100 * time.Millisecond
	maxWait        = time.Minute
)

// withDefaults fills zero values. It does not change what p points to.
func (p Policy) withDefaults() Policy {
	if p.TTL == 0 {
		p.TTL = 48 * time.Hour
	}
	if p.LockTimeout == 0 {
		p.LockTimeout = 30 * time.Second
	}
	if p.Deadline == 0 {
		p.Deadline = p.LockTimeout / 6 * 5
	}
	if p.MaxResponse == 0 {
		p.MaxResponse = 1 << 20
	}
	if p.Classify == nil {
		p.Classify = keepAnswers
	}
	if p.Headers == nil {
		p.Headers = DefaultHeaders()
	}
	if p.Isolation == "" {
		p.Isolation = pgx.ReadCommitted
	}
	return p
}

// validate reports everything that is wrong with a policy that has its defaults.
func (p Policy) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("idempotency: Policy."+format, args...))
	}
	if p.Name == "" || len(p.Name) > 50 || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		bad("Name %q: 1 to 50 of a-z, 0-9, - and _", p.Name)
	}
	if p.LockTimeout < minLockTimeout || p.LockTimeout > time.Hour {
		bad("LockTimeout %s: from %s to 1h", p.LockTimeout, minLockTimeout)
	}
	if p.TTL < p.LockTimeout || p.TTL > 366*24*time.Hour {
		bad("TTL %s: from LockTimeout (%s) to 366 days", p.TTL, p.LockTimeout)
	}
	if p.Deadline < 0 || p.Deadline > time.Hour {
		bad("Deadline %s: up to 1h", p.Deadline)
	}
	if p.MaxBody < 0 {
		bad("MaxBody %d is negative", p.MaxBody)
	}
	if p.MaxResponse < 0 {
		bad("MaxResponse %d is negative", p.MaxResponse)
	}
	if p.InFlight.wait < 0 || p.InFlight.wait > maxWait {
		bad("InFlight: Wait(%s): up to %s", p.InFlight.wait, maxWait)
	}
	for _, h := range p.Headers {
		if c := textproto.CanonicalMIMEHeaderKey(h); slices.Contains(never, c) {
			bad("Headers: %s is never replayed", c)
		}
	}
	switch p.Isolation {
	case pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable:
	default:
		bad("Isolation %q: read committed, repeatable read or serializable", p.Isolation)
	}
	if p.NoTx && p.KeepWrites {
		bad("KeepWrites means nothing with NoTx: there is no transaction")
	}
	return errors.Join(errs...)
}

// outcome is Classify for a handler that has ended. What Classify does not know is taken as a failure that may be retried.
func (p Policy) outcome(status int, err error) Outcome {
	switch o := p.Classify(status, err); {
	case o < Keep || o > Forget:
		return Retry
	case o == Keep && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrPanicked)):
		return Retry // there is no answer to keep
	default:
		return o
	}
}

// stores reports whether a response header of that canonical name is stored.
func (p Policy) stores(name string) bool {
	for _, h := range p.Headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}
