package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
)

// Outcome is what an event did; one word per event, kept in processed_events.
type Outcome string

// The outcomes. Duplicate is an answer, never stored: the first delivery's outcome stands.
const (
	Applied     Outcome = "applied"
	NoChange    Outcome = "no_change"
	Waiting     Outcome = "waiting"
	Ignored     Outcome = "ignored"
	Flagged     Outcome = "flagged"
	Quarantined Outcome = "quarantined"
	Duplicate   Outcome = "duplicate"
)

// Reasons an outcome is stored with. What stands behind a code (which event, which amount) is derived when it is
// explained. A quarantined event's reason is "unreadable: " and the gateway's sentence; an ignored one's is the
// gateway's own code.
const (
	ReasonAlreadyKnown     = "already_known"     // no_change: the ledgers knew all of it
	ReasonNoReference      = "no_reference"      // waiting: the payment belongs to no order yet
	ReasonUnregistered     = "unregistered"      // waiting: the order is a stub
	ReasonNoOrder          = "no_order"          // no_change: a command that concerns no order, as money that came for none
	ReasonSourcePaused     = "source_paused"     // waiting: stored, not folded
	ReasonNeedsFetch       = "needs_fetch"       // waiting, with ": kind/id": for the gateway to be asked about that object
	ReasonFetched          = "fetched"           // no_change, with ": kind/id": it was asked, and the answer is an event of its own
	ReasonUnknownOrder     = "unknown_order"     // ignored: on_unknown_order says so
	ReasonModeMismatch     = "mode_mismatch"     // flagged: test event on a live source, or the reverse
	ReasonAccountMismatch  = "account_mismatch"  // flagged: of another merchant account at the gateway
	ReasonCurrencyMismatch = "currency_mismatch" // flagged: not the order's currency
	ReasonIDReused         = "id_reused"         // flagged: the id is known with other facts
	ReasonUnreadable       = "unreadable"        // quarantined
	ReasonReread           = "reread"            // ignored: was quarantined, and its bytes hold other events today, which were entered
)

// OnUnknown says what an event may do about an order that nobody has registered.
type OnUnknown string

// Stub (the default) makes a stub that waits for its registration, Ignore makes none, Create lets the payment's own
// amount register it.
const (
	OnUnknownStub   OnUnknown = "stub"
	OnUnknownIgnore OnUnknown = "ignore"
	OnUnknownCreate OnUnknown = "create"
)

// Event is an event as it is stored: what happened, who says so, and the bytes that said it.
type Event struct {
	order.Event

	Account string
	Source  string // of the account; APISource for commands of our own API

	// Delivery groups the events of one HTTP request, whose body is stored once.
	Delivery uuid.UUID
	Payload  []byte            // raw body; nil stores none
	Header   map[string]string // allow-listed headers, stored with the payload

	// MappingVersion says which edition of the gateways' mappings read the facts. Default 1.
	MappingVersion int16

	OnUnknown OnUnknown // default OnUnknownStub
	Paused    bool      // the source is paused: store, do not fold

	// refuse is asked under the order's lock whether a command may be carried out; nil: it may.
	refuse func(*lockedOrder) error

	// holds is the order that the payment of a command must belong to; zero: it need not.
	holds uuid.UUID
}

// Result is what became of an event.
type Result struct {
	Outcome  Outcome
	Reason   string
	Order    uuid.UUID // zero: none
	Before   int       // the order's version before and after the event; zero: no order
	After    int
	NewOrder bool // the event made the order's row
	Differs  bool // a duplicate whose facts differ from the stored ones (only of source api)
}

// EventError says which event of a batch cannot be stored, and why. Nothing of the batch was written.
type EventError struct {
	Index int // in the slice given to Apply
	Err   error
}

func (e *EventError) Error() string { return fmt.Sprintf("event %d: %v", e.Index, e.Err) }
func (e *EventError) Unwrap() error { return e.Err }

// ErrUnstorable is wrapped by an [EventError]: text that Postgres cannot hold, or an id that is missing or reserved.
var ErrUnstorable = errors.New("event cannot be stored")

// meaning is the facts column: all that a fold needs to be repeated. The hash that tells two meanings of one id apart
// leaves policy and name spaces out, since those are the configuration's and may change between two deliveries, and is
// made of the reference that the event came with, where a recurrence gives it another ([order.Renewal]).
type meaning struct {
	Payment   []string       `json:"payment,omitempty"`
	Reference string         `json:"reference,omitempty"`
	Strength  order.Strength `json:"strength,omitempty"`
	Renewal   *order.Renewal `json:"renewal,omitempty"`
	Facts     []order.Fact   `json:"facts,omitempty"`
	Own       *order.Amount  `json:"own,omitempty"`
	Command   *order.Command `json:"command,omitempty"`
	Ignored   string         `json:"ignored,omitempty"`
	Broken    string         `json:"broken,omitempty"`
	Fetch     string         `json:"fetch,omitempty"`

	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
}

func meaningOf(e *Event) meaning {
	return meaning{
		Payment: e.Payment, Reference: e.Reference, Strength: e.Strength, Renewal: e.Renewal, Facts: e.Facts,
		Own: e.Own, Command: e.Command, Ignored: e.Ignored, Broken: e.Broken, Fetch: e.Fetch,
	}
}

// item is an event on its way through one batch.
type item struct {
	*Event
	index int    // in the caller's slice
	id    string // stored id: the event's own, or with #hash where that is taken by other facts
	facts []byte
	hash  []byte
	comp  int   // connected payment ids of the batch share one
	same  *item // an earlier item of the batch with the same id and hash
	res   Result
}

// hashSize is how much of the SHA-256 is kept: 16 bytes, since a collision would only drop a second meaning of one id.
const hashSize = 16

func newItem(i int, e *Event) (*item, error) {
	if err := checkStorable(e); err != nil {
		return nil, &EventError{Index: i, Err: fmt.Errorf("%w: %w", ErrUnstorable, err)}
	}
	said, err := json.Marshal(meaningOf(e))
	if err != nil {
		return nil, &EventError{Index: i, Err: fmt.Errorf("%w: facts: %w", ErrUnstorable, err)}
	}
	sum := sha256.Sum256(said)
	doc, err := factsOf(e)
	if err != nil {
		return nil, &EventError{Index: i, Err: err}
	}
	return &item{Event: e, index: i, id: e.ID, facts: doc, hash: sum[:hashSize], comp: -1}, nil
}

// factsOf is what the facts column holds of an event.
func factsOf(e *Event) ([]byte, error) {
	m := meaningOf(e)
	if e.OnUnknown != OnUnknownStub {
		m.OnUnknown = e.OnUnknown
	}
	doc, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: facts: %w", ErrUnstorable, err)
	}
	if bytes.Contains(doc, []byte(`\u0000`)) {
		return nil, fmt.Errorf("%w: a NUL character in its facts", ErrUnstorable)
	}
	return doc, nil
}

// reusedID is what an id looks like that this package made: the event's own, "#" and the hash of its other facts. No
// event may bring such an id.
var reusedID = regexp.MustCompile(`#[0-9a-f]{32}$`)

func checkStorable(e *Event) error {
	switch {
	case e.Account == "" || e.Source == "":
		return errors.New("no account or source")
	case e.ID == "":
		return errors.New("no event id")
	case len(e.ID) > 512 || len(e.Reference) > 512 || len(e.Type) > 256 || len(e.Fetch) > 512:
		return errors.New("id, reference, type or object is longer than 512 (type: 256) bytes")
	case reusedID.MatchString(e.ID):
		return errors.New("the id ends in # and 32 hex digits, which is reserved")
	}
	texts := append([]string{e.ID, e.Type, e.Reference, e.Realm, e.Fetch}, e.Payment...)
	if e.Renewal != nil {
		texts = append(texts, e.Renewal.Of...)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) || strings.IndexByte(t, 0) >= 0 {
			return errors.New("invalid UTF-8 or a NUL character in an id, type or reference")
		}
	}
	for _, p := range e.Payment {
		if p == "" || len(p) > 512 {
			return errors.New("a payment id is empty or longer than 512 bytes")
		}
	}
	for _, f := range e.Facts {
		if err := f.Validate(); err != nil {
			return err
		}
	}
	if e.Command != nil {
		if err := e.Command.Validate(); err != nil {
			return err
		}
	}
	if len(e.Facts) > 0 && len(e.Payment) == 0 {
		return errors.New("facts without a payment")
	}
	return nil
}

// folds reports whether the event may touch payments and orders.
func (it *item) folds() bool {
	return !it.Paused && it.Ignored == "" && it.Broken == "" && it.Fetch == ""
}

// parked is the outcome of an event that does not fold.
func (it *item) parked() (Outcome, string) {
	switch {
	case it.Broken != "":
		return Quarantined, ReasonUnreadable + ": " + it.Broken
	case it.Ignored != "":
		return Ignored, it.Ignored
	case it.Fetch != "":
		return Waiting, ReasonNeedsFetch + ": " + it.Fetch
	default:
		return Waiting, ReasonSourcePaused
	}
}

func (it *item) createsOrder() bool {
	switch {
	case it.Reference == "":
		return false
	case it.Command != nil:
		return it.Command.Register != nil
	default:
		// A modification (capture, refund, dispute) that names its payment makes no order: its reference may be another
		// system's, and the payment's own event will bring the right one.
		return it.OnUnknown != OnUnknownIgnore && it.Strength > order.StrengthModification
	}
}

// micros is Unix time in microseconds, the precision of Postgres; 0 for an unknown time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
