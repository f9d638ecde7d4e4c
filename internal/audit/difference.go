package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

// Kind is what does not agree, in a code word.
type Kind string

// The kinds of differences.
const (
	EventUnreadable Kind = "event_unreadable" // its facts cannot be read, or none can be so
	EventHash       Kind = "event_hash"       // its facts are not those that its hash was made of
	EventOutcome    Kind = "event_outcome"    // it has no outcome, or one that does not fit what it says
	EventPayment    Kind = "event_payment"    // it is not found by the payment that its facts name
	EventOrder      Kind = "event_order"      // it points at an order that there is not
	EventBytes      Kind = "event_bytes"      // its kept bytes say something else today

	PaymentID         Kind = "payment_id"         // an id leads to no payment, or to one that does not know it
	PaymentUnreadable Kind = "payment_unreadable" // its ledger cannot be read
	PaymentLedger     Kind = "payment_ledger"     // its ledger is not what its events say
	PaymentOrder      Kind = "payment_order"      // it stands on an order that its events do not lead to
	PaymentMerged     Kind = "payment_merged"     // it was merged away, and has something left

	OrderUnreadable   Kind = "order_unreadable"   // a flag of it is none
	OrderRegistration Kind = "order_registration" // what it was registered with is not what the merchant said
	OrderFold         Kind = "order_fold"         // state, sums, flags or want do not follow from its payments
	OrderMarks        Kind = "order_marks"        // a mark that nothing explains, or one that is missing

	VersionRows  Kind = "version_rows"  // versions are missing, or too many
	VersionChain Kind = "version_chain" // a version does not begin where the one before ended
	VersionLast  Kind = "version_last"  // the last version is not how the order stands
	VersionCause Kind = "version_cause" // a version and the event that caused it do not know each other

	EffectRow     Kind = "effect_row"     // what a row says of its effect cannot be so
	EffectTold    Kind = "effect_told"    // what the merchant was told is not what the settled effects lead to
	EffectOwed    Kind = "effect_owed"    // what is owed is not asked for, or what is asked for is not owed
	EffectPromise Kind = "effect_promise" // something is owed, and nobody will look

	IncomeEvent     Kind = "income_event"     // an income and its event do not agree, or one of them is missing
	RecurrenceOrder Kind = "recurrence_order" // a period that was made has no order
	RecurrenceNext  Kind = "recurrence_next"  // the period that comes next does not follow the last one
	TransactionCall Kind = "transaction_call" // a call is not what its row says that moves
	KeyAnswer       Kind = "key_answer"       // an idempotency key has no answer, or parts of one that do not fit
	KeyResource     Kind = "key_resource"     // what was done under an idempotency key is not there
)

// Kinds returns every kind, in the order in which documents list them.
func Kinds() []Kind {
	return []Kind{
		EventUnreadable, EventHash, EventOutcome, EventPayment, EventOrder, EventBytes,
		PaymentID, PaymentUnreadable, PaymentLedger, PaymentOrder, PaymentMerged,
		OrderUnreadable, OrderRegistration, OrderFold, OrderMarks,
		VersionRows, VersionChain, VersionLast, VersionCause,
		EffectRow, EffectTold, EffectOwed, EffectPromise,
		IncomeEvent, RecurrenceOrder, RecurrenceNext, TransactionCall, KeyAnswer, KeyResource,
	}
}

// Difference is one disagreement: what should be, going by everything else, and what is written.
type Difference struct {
	Kind    Kind   `json:"kind"`
	Account string `json:"account"`

	// What it is about; empty where it is not.
	Order   string `json:"order,omitempty"` // the merchant's reference
	OrderID string `json:"order_id,omitempty"`
	Version int    `json:"version,omitempty"`
	Payment string `json:"payment_id,omitempty"` // our id
	Subject string `json:"subject,omitempty"`    // an income, a recurrence, a transaction, an idempotency key, a gateway's payment id

	Says     string  `json:"says"` // a plain sentence
	Expected string  `json:"expected,omitempty"`
	Found    string  `json:"found,omitempty"`
	Events   []Event `json:"events,omitempty"` // the events concerned; some of them, if they are many
}

// Event names an event.
type Event struct {
	Source string `json:"source"`
	ID     string `json:"event_id"`
}

// mostEvents is how many events a difference names.
const mostEvents = 20

// String is the difference in one line, for people.
func (d Difference) String() string {
	about := make([]string, 0, 4)
	if d.Order != "" {
		about = append(about, "order "+d.Order)
	}
	if d.Version != 0 {
		about = append(about, fmt.Sprintf("version %d", d.Version))
	}
	if d.Payment != "" {
		about = append(about, "payment "+d.Payment)
	}
	if d.Subject != "" {
		about = append(about, d.Subject)
	}
	if len(about) == 0 && len(d.Events) > 0 {
		about = append(about, "event "+d.Events[0].ID+" of source "+d.Events[0].Source)
	}
	line := fmt.Sprintf("%s: account %s, %s: %s", d.Kind, d.Account, strings.Join(about, ", "), d.Says)
	if d.Expected != "" || d.Found != "" {
		line += fmt.Sprintf(" Expected %s, found %s.", orNothing(d.Expected), orNothing(d.Found))
	}
	return line
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// found tells of a difference, once for each thing that it is about.
func (r *run) found(d Difference, events ...*store.AuditEvent) error {
	d.Account = r.account
	for _, e := range events {
		if e == nil {
			continue
		}
		if ev := (Event{e.Source, e.ID}); len(d.Events) < mostEvents && !slices.Contains(d.Events, ev) {
			d.Events = append(d.Events, ev)
		}
	}
	about := fmt.Sprint(d.Kind, d.OrderID, d.Version, d.Payment, d.Subject)
	if d.OrderID+d.Payment+d.Subject == "" && len(d.Events) > 0 {
		about += d.Events[0].Source + "\x00" + d.Events[0].ID
	}
	about = d.Account + "\x00" + about
	if r.told[about] {
		return nil
	}
	if len(r.told) < mostTold {
		r.told[about] = true
	}
	r.sum.Differences++
	r.sum.Kinds[d.Kind]++
	if r.o.Each == nil {
		return nil
	}
	return r.o.Each(d)
}

// mostTold bounds the memory of what was told.
const mostTold = 100_000

// ofOrder begins a difference about an order.
func ofOrder(k Kind, o *store.AuditOrder) Difference {
	return Difference{Kind: k, Order: o.Ref, OrderID: o.ID.String()}
}

// idText is an id as text; empty for none.
func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
