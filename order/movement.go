package order

import (
	"cmp"
	"fmt"
	"slices"
)

// MovementKind is what we ask a gateway to do with the money of a payment.
type MovementKind string

// The kinds of movements.
const (
	MovementCapture MovementKind = "capture" // take what is authorized, or a part of it
	MovementRefund  MovementKind = "refund"  // give back what was captured, or a part of it
	MovementVoid    MovementKind = "void"    // let go of an authorization of which nothing was captured
)

// MovementKinds returns every kind of movement, in the order in which documents list them.
func MovementKinds() []MovementKind {
	return []MovementKind{MovementCapture, MovementRefund, MovementVoid}
}

// Movement is money of one payment that we ask its gateway to move. It holds all that the call is made of, and nothing that
// could be another the next time.
type Movement struct {
	ID   string       `json:"id"` // ours; the gateway keeps it with what it makes, where it can
	Kind MovementKind `json:"kind"`

	// Amount is what moves; of a void, what was authorized.
	Amount Amount `json:"amount"`

	// Payment is every id that the payment is known under, sorted, and Captures its captures that are there, by id.
	Payment  []string  `json:"payment"`
	Captures []Capture `json:"captures,omitempty"`

	Reference string `json:"reference,omitempty"` // the merchant's name of the order
	Reason    string `json:"reason,omitempty"`    // in the merchant's words, for the gateway's records
}

// Capture is one capture of a payment, under the gateway's id of it.
type Capture struct {
	Ref   string `json:"ref"`
	Minor int64  `json:"minor"`
}

// NotMovableError says why a payment has nothing that a movement could move, whatever the amount.
type NotMovableError struct {
	Kind MovementKind
	Why  NotMovable
}

// NotMovable is why a payment cannot be moved.
type NotMovable string

// The reasons of [NotMovableError].
const (
	NothingCaptured   NotMovable = "nothing_captured"   // there is nothing to give back, or nothing left
	NothingAuthorized NotMovable = "nothing_authorized" // there is nothing to capture or void, or nothing left
	AlreadyCaptured   NotMovable = "already_captured"   // an authorization of which something was captured is not voided: its money is refunded
	PaymentOver       NotMovable = "payment_over"       // it was canceled, has failed or expired
	NotSaid           NotMovable = "not_said"           // only the checkout has told of it so far: the gateway must have
)

func (e *NotMovableError) Error() string { return fmt.Sprintf("order: no %s: %s", e.Kind, e.Why) }

// Movable returns how much of the payment a movement of that kind can still move in the currency, in minor units and more than
// 0, going by what its gateway has told. Money that is on its way counts as moved: what is being refunded is not refunded again.
// What we have asked for and the gateway has not told of yet is the caller's to take off. The error is a [*NotMovableError].
func (l *Ledger) Movable(kind MovementKind, currency string) (int64, error) {
	no := func(why NotMovable) (int64, error) { return 0, &NotMovableError{kind, why} }
	m := l.Money[currency]
	if m == nil {
		m = &Money{}
	}
	captured, _ := m.captured()
	if kind == MovementRefund {
		lost, _, _ := l.disputed(currency, captured, 0)
		if left := sub(sub(captured, m.leaving()), lost); left > 0 {
			return left, nil
		}
		if l.Confirming() {
			return no(NotSaid)
		}
		return no(NothingCaptured)
	}
	taken := total(captured, m.arriving())
	switch {
	case l.Confirming():
		return no(NotSaid)
	case kind == MovementVoid && taken > 0:
		return no(AlreadyCaptured)
	case l.Phase.closed():
		return no(PaymentOver)
	case m.Authorized <= add(taken, m.Released): // what was released after a capture is not held any more
		return no(NothingAuthorized)
	}
	return m.Authorized - add(taken, m.Released), nil
}

// leaving is what was refunded or is being refunded, at most: a total may count what is pending, and may not.
func (m *Money) leaving() int64 {
	var there, undone int64
	for _, it := range m.Refunds {
		switch it.Status {
		case StatusOK, StatusPending:
			there = add(there, it.Amount)
		case StatusFailed:
			undone = add(undone, it.Amount)
		}
	}
	if m.RefundedTotal.Amount == All {
		return All
	}
	return max(there, sub(sub(m.RefundedTotal.Amount, undone), m.Released))
}

// arriving is what is being captured.
func (m *Money) arriving() (sum int64) {
	for _, it := range m.Captures {
		if it.Status == StatusPending {
			sum = total(sum, it.Amount)
		}
	}
	return sum
}

// CapturesIn returns the captures in a currency that are ok and have a number, by id.
func (l *Ledger) CapturesIn(currency string) []Capture {
	m := l.Money[currency]
	if m == nil {
		return nil
	}
	var all []Capture
	for ref, it := range m.Captures {
		if it.Status == StatusOK && it.Amount != All {
			all = append(all, Capture{ref, it.Amount})
		}
	}
	slices.SortFunc(all, func(a, b Capture) int { return cmp.Compare(a.Ref, b.Ref) })
	return all
}
