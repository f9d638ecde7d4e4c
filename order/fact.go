package order

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// All is the amount "everything there is": the greatest amount, so that it joins like any other.
// Only refunds, disputes and failed captures may carry it.
const All = math.MaxInt64

// Kind is what a [Fact] is about.
type Kind string

// The kinds of facts.
const (
	KindAuthorized Kind = "authorized" // Amount may be captured
	KindCaptured   Kind = "captured"   // Ref: one capture; empty: the payment's running total
	KindRefunded   Kind = "refunded"   // Ref: one refund; empty: the payment's running total
	KindReleased   Kind = "released"   // Amount: the uncaptured rest that the gateway books as if it were refunded
	KindDisputed   Kind = "disputed"   // Ref: the dispute; Amount: what is at stake
	KindPhase      Kind = "phase"      // the payment as a whole
)

// Status is how far the thing a [Fact] is about has come. Each kind has its own, in rising rank.
type Status string

// The statuses of captures and refunds, in rising rank. Running totals, authorisations and releases have none (or ok).
const (
	StatusPending Status = "pending"
	StatusDenied  Status = "denied" // never happened
	StatusOK      Status = "ok"
	StatusFailed  Status = "failed" // happened and was undone; of phases: not authorised
)

// The statuses of phases, in rising rank: processing, failed, authorized, expired, canceled.
const (
	StatusProcessing Status = "processing"
	StatusAuthorized Status = "authorized"
	StatusExpired    Status = "expired"
	StatusCanceled   Status = "canceled"
)

// The statuses of disputes, in rising rank.
const (
	StatusNone Status = "none" // a snapshot says that there is none
	StatusOpen Status = "open"
	StatusWon  Status = "won"
	StatusLost Status = "lost"
)

// Misfit is why a fact must not count: it is kept as a flag only.
type Misfit string

// The misfits.
const (
	MisfitMode    Misfit = "mode"    // a test event on a live source, or the other way round
	MisfitAccount Misfit = "account" // of another account at the gateway than the source's
)

// Fact is what a gateway says about one payment, in our terms.
type Fact struct {
	Kind   Kind   `json:"kind"`
	Ref    string `json:"ref,omitempty"`
	Status Status `json:"status,omitempty"`

	// Amount is in minor units of Currency, at least 0; or [All].
	Amount   int64  `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"` // ISO 4217, upper case

	// Seq is the gateway's own order inside one (payment, kind, ref): an object's version, an update time or a stage of
	// its life, chosen once per gateway and kind. 0 everywhere if it has none; never two sorts of it in one ref.
	Seq int64 `json:"seq,omitempty"`

	Forced bool   `json:"forced,omitempty"` // a refund that the gateway took (a reversal), not one that the merchant gave
	Via    bool   `json:"via,omitempty"`    // a dispute whose money, if lost, also comes as a refund of its own
	Misfit Misfit `json:"misfit,omitempty"`
}

// Validate returns what is wrong with f, or nil. A fact with a fault is never joined: see [Ledger.Join].
func (f Fact) Validate() error {
	if err := f.check(); err != nil {
		return fmt.Errorf("order: %s fact: %w", f.Kind, err)
	}
	return nil
}

func (f Fact) check() error {
	switch {
	case f.Kind == KindPhase && phaseRank(f.Status) == 0,
		f.Kind == KindDisputed && disputeRank(f.Status) == 0,
		f.itemised() && f.Ref != "" && itemRank(f.Status) == 0,
		f.Kind == KindAuthorized && f.Status != "" && f.Status != StatusOK,
		f.Kind == KindReleased && f.Status != "" && f.Status != StatusOK,
		f.itemised() && f.Ref == "" && f.Status != "" && f.Status != StatusOK:
		return fmt.Errorf("status %q does not fit", f.Status)
	case f.Kind != KindAuthorized && f.Kind != KindReleased && f.Kind != KindDisputed && f.Kind != KindPhase && !f.itemised():
		return errors.New("unknown kind")
	case f.Amount < 0:
		return errors.New("negative amount")
	case f.Amount == All && !f.mayBeAll():
		return errors.New("amount may not be all")
	case f.Kind == KindPhase && f.Amount != 0:
		return errors.New("a phase has no amount")
	case f.Currency == "" && f.Kind != KindPhase && !(f.Kind == KindDisputed && f.Amount == 0):
		return errors.New("no currency")
	case f.Currency != "" && !isCurrency(f.Currency):
		return fmt.Errorf("currency %q is not three capital letters", f.Currency)
	case f.Ref == "" && f.Kind == KindDisputed:
		return errors.New("no ref")
	case f.Ref != "" && f.Kind != KindDisputed && !f.itemised():
		return errors.New("a ref that nothing reads")
	case !isText(f.Ref):
		return errors.New("ref is not text")
	case f.Seq < 0:
		return errors.New("negative seq")
	case f.Forced && f.Kind != KindRefunded:
		return errors.New("only a refund is forced")
	case f.Via && f.Kind != KindDisputed:
		return errors.New("only a dispute is via a refund")
	case f.Misfit != "" && f.Misfit != MisfitMode && f.Misfit != MisfitAccount:
		return fmt.Errorf("unknown misfit %q", f.Misfit)
	}
	return nil
}

// itemised reports whether f is about money that comes by id and as a running total.
func (f Fact) itemised() bool { return f.Kind == KindCaptured || f.Kind == KindRefunded }

// mayBeAll: a capture that is, or may yet be, ok must have a number.
func (f Fact) mayBeAll() bool {
	return f.Kind == KindRefunded || f.Kind == KindDisputed ||
		f.Kind == KindCaptured && f.Ref != "" && f.Status == StatusFailed
}

func itemRank(s Status) int {
	switch s {
	case StatusPending:
		return 1
	case StatusDenied:
		return 2
	case StatusOK:
		return 3
	case StatusFailed:
		return 4
	}
	return 0
}

func disputeRank(s Status) int {
	switch s {
	case StatusNone:
		return 1
	case StatusOpen:
		return 2
	case StatusWon:
		return 3
	case StatusLost:
		return 4
	}
	return 0
}

func phaseRank(s Status) int {
	switch s {
	case StatusProcessing:
		return 1
	case StatusFailed:
		return 2
	case StatusAuthorized:
		return 3
	case StatusExpired:
		return 4
	case StatusCanceled:
		return 5
	}
	return 0
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// isText reports whether s survives JSON and Postgres unchanged.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
