// Package explain turns what the store knows about an order or an event into plain sentences: the answer to "why is
// this order not paid?", and to "what did this event do?". It is pure: the same timeline gives the same words.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Line is one thing that happened.
type Line struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // event, version, effect or transaction
	ID   string    `json:"id"`   // of the event or the transaction, or the effect's key
	Text string    `json:"text"`
}

// Report explains an order or an event.
type Report struct {
	Subject string   `json:"subject"`
	Answer  string   `json:"answer"`         // one sentence
	Why     []string `json:"why"`            // what led to it, a sentence each
	Todo    []string `json:"todo,omitempty"` // what a person can do about it
	Lines   []Line   `json:"timeline,omitempty"`
}

// Text renders a report for a terminal.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Answer)
	for _, w := range r.Why {
		fmt.Fprintf(&b, "  - %s\n", w)
	}
	if len(r.Todo) > 0 {
		b.WriteString("What to do:\n")
		for _, w := range r.Todo {
			fmt.Fprintf(&b, "  - %s\n", w)
		}
	}
	if len(r.Lines) > 0 {
		b.WriteString("What happened:\n")
		for _, l := range r.Lines {
			fmt.Fprintf(&b, "  %s  %s\n", l.At.UTC().Format("2006-01-02 15:04:05"), l.Text)
		}
	}
	return b.String()
}

// Order explains an order.
func Order(t store.Timeline) Report {
	r := Report{Subject: "order " + t.Order.Ref, Answer: orderAnswer(t.Order)}
	r.Why, r.Todo = orderWhy(t)
	for _, e := range t.Events {
		r.Lines = append(r.Lines, Line{e.ReceivedAt, "event", e.ID, eventLine(e, t)})
	}
	for _, v := range t.Versions {
		r.Lines = append(r.Lines, versionLines(v, t)...)
	}
	for _, x := range t.Transactions {
		r.Lines = append(r.Lines, transactionLines(x)...)
	}
	slices.SortStableFunc(r.Lines, func(a, b Line) int { return a.At.Compare(b.At) })
	return r
}

// NoCallback adds, where an effect of the order is owed, that there is nobody to call: because names the reason, todo
// what to do about it. The timeline cannot know, it is the configuration's.
func (r *Report) NoCallback(t store.Timeline, because, todo string) {
	for _, v := range t.Versions {
		if v.Effect != order.EffectNone && v.EffectState.Live() {
			r.Why, r.Todo = append(r.Why, because), append(r.Todo, todo)
			return
		}
	}
}

func orderAnswer(o store.Order) string {
	switch {
	case o.Total == nil:
		return fmt.Sprintf("Order %s waits to be registered: events name it, but the merchant has not told its amount.", o.Ref)
	case o.State == order.StatePaid && *o.Total == 0 && o.Kept == 0:
		return fmt.Sprintf("Order %s is paid: it costs nothing.", o.Ref)
	case o.State == order.StatePaid:
		return fmt.Sprintf("Order %s is paid: %s of %s is kept.", o.Ref, amount(o, o.Kept), amount(o, *o.Total))
	}
	return fmt.Sprintf("Order %s is not paid, it is %s: %s", o.Ref, word(o.State), stateReason(o))
}

func stateReason(o store.Order) string {
	total := amount(o, *o.Total)
	switch o.State {
	case order.StateAuthorized:
		return fmt.Sprintf("%s is authorized but not captured.", amount(o, o.Authorized))
	case order.StatePartiallyPaid:
		return fmt.Sprintf("only %s of %s is kept.", amount(o, o.Kept), total)
	case order.StatePartiallyRefunded:
		return fmt.Sprintf("%s was captured, and %s.", amount(o, o.Captured), gone(o))
	case order.StateRefunded:
		return fmt.Sprintf("all of the %s that was captured was refunded.", amount(o, o.Captured))
	case order.StateDisputed:
		return fmt.Sprintf("a dispute over %s is open; losing it would leave less than %s.", amount(o, o.AtRisk), total)
	case order.StateChargedBack:
		return fmt.Sprintf("%s was captured, and %s.", amount(o, o.Captured), gone(o))
	case order.StateFailed:
		return "its last payment failed, and no other is under way."
	case order.StateExpired:
		return "its last payment expired, and no other is under way."
	case order.StateCanceled:
		if o.Canceled {
			return "the merchant canceled it."
		}
		return "its last payment was canceled, and no other is under way."
	}
	return fmt.Sprintf("nothing of %s was captured yet.", total)
}

// gone says what became of the captured money that is not kept.
func gone(o store.Order) string {
	switch {
	case o.Lost == 0:
		return amount(o, o.Refunded) + " of it was refunded"
	case o.Refunded == 0:
		return amount(o, o.Lost) + " of it was taken back by a dispute or a reversal"
	}
	return fmt.Sprintf("%s of it was refunded and %s taken back by a dispute or a reversal", amount(o, o.Refunded), amount(o, o.Lost))
}

func orderWhy(t store.Timeline) (why, todo []string) {
	o := t.Order
	if len(t.Payments) == 0 && o.Total != nil && *o.Total > 0 && !o.Canceled {
		if slices.ContainsFunc(t.Events, func(e store.StoredEvent) bool { return e.Source != store.APISource }) {
			why = append(why, "No payment counts for it: events named "+o.Ref+", and none of them could count.")
		} else {
			why = append(why, "No payment is known for it: no event named "+o.Ref+".")
			todo = append(todo, "Look for the payment at the gateway; check that it carries the reference "+o.Ref+" where the source looks for it.",
				"If its gateway's API is asked about payments, see whether an answer is still to come: paidonce fetches.")
		}
	}
	for _, p := range t.Payments {
		why = append(why, cmp.Or(incomeSentence(p, t.Events), paymentSentence(p)))
	}
	for _, e := range t.Events {
		if needsWord(e, t) {
			why = append(why, eventLine(e, t))
			for _, s := range eventTodo(e, t) {
				if !slices.Contains(todo, s) {
					todo = append(todo, s)
				}
			}
		}
	}
	for _, f := range o.Flags {
		// An event that was flagged for the same reason has told it already.
		if !slices.ContainsFunc(t.Events, func(e store.StoredEvent) bool { return e.Outcome == store.Flagged && e.Reason == f }) {
			why = append(why, Flag(f, o))
		}
	}
	if len(o.Dismissed) > 0 {
		why = append(why, "A person has dealt with "+strings.ReplaceAll(strings.Join(o.Dismissed, " and "), "_", " ")+".")
	}
	if o.Total == nil {
		todo = append(todo, "Register it: POST /v1/orders with external_ref "+o.Ref+".")
	}
	for _, more := range []func(store.Timeline) (why, todo []string){transactionsWhy, effectWhy} {
		w, d := more(t)
		why, todo = append(why, w...), append(todo, d...)
	}
	return why, todo
}

// needsWord reports whether an event may be why an order is not what somebody expects.
func needsWord(e store.StoredEvent, t store.Timeline) bool {
	switch e.Outcome {
	case store.Flagged, store.Quarantined:
		return true
	case store.Ignored:
		return !counts(e, t)
	case store.Waiting:
		return e.Reason == store.ReasonSourcePaused || e.Reason == store.ReasonNoReference && !counts(e, t)
	}
	return false
}

// counts reports whether an event's payment is one of the order's: what waited or was ignored stands in its ledger too.
func counts(e store.StoredEvent, t store.Timeline) bool {
	for _, p := range t.Payments {
		if slices.ContainsFunc(e.Payment, func(id string) bool { return slices.Contains(p.Ledger.IDs, id) }) {
			return true
		}
	}
	return false
}

// effectWhy says what the merchant was told and what is owed.
func effectWhy(t store.Timeline) (why, todo []string) {
	o := t.Order
	if told := toldSentence(o.Told); told != "" {
		why = append(why, told)
	}
	for _, v := range t.Versions {
		if v.Effect == order.EffectNone || !v.EffectState.Live() {
			continue
		}
		why = append(why, effectSentence(v, t))
		if v.EffectState == order.EffectDead {
			todo = append(todo, fmt.Sprintf("Mend the merchant's endpoint, then: paidonce effects retry --account %s --order %s", o.Account, o.Ref))
		}
	}
	return why, todo
}

func paymentSentence(p store.Payment) string {
	l := p.Ledger
	name := p.ID.String()
	if len(l.IDs) > 0 {
		name = strings.Join(l.IDs, " = ")
	}
	var parts []string
	for _, cur := range sortedKeys(l.Money) {
		m := l.Money[cur]
		if m.Authorized > 0 {
			parts = append(parts, "authorized "+money(m.Authorized, cur))
		}
		if m.CapturedTotal.Amount > 0 {
			parts = append(parts, "captured "+money(m.CapturedTotal.Amount, cur)+" in all")
		}
		for _, id := range sortedKeys(m.Captures) {
			parts = append(parts, itemText("capture", id, m.Captures[id].Status, m.Captures[id].Amount, cur))
		}
		if m.RefundedTotal.Amount > 0 {
			parts = append(parts, "refunded "+money(m.RefundedTotal.Amount, cur)+" in all")
		}
		for _, id := range sortedKeys(m.Refunds) {
			parts = append(parts, itemText("refund", id, m.Refunds[id].Status, m.Refunds[id].Amount, cur))
		}
		if m.Released > 0 {
			parts = append(parts, "released "+money(m.Released, cur)+" uncaptured")
		}
	}
	for _, id := range sortedKeys(l.Disputes) {
		parts = append(parts, disputeText(id, l.Disputes[id].Status, l.Disputes[id].Amount, l.Disputes[id].Currency))
	}
	if l.Confirming() {
		for _, cur := range sortedKeys(l.Confirmed) {
			parts = append(parts, confirmedText(l.Confirmed[cur], cur))
		}
	}
	// Money says more than that it is authorised, which gateways that call it paid mean too.
	if l.Phase.Status != "" && (l.Phase.Status != order.StatusAuthorized || len(parts) == 0) {
		parts = append(parts, "the gateway calls it "+string(l.Phase.Status))
	}
	if len(parts) == 0 {
		parts = []string{"nothing of it counts"}
	}
	return fmt.Sprintf("Payment %s: %s.", name, strings.Join(parts, "; "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare)
	return keys
}

func word[T ~string](s T) string { return strings.ReplaceAll(string(s), "_", " ") }
