package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Event explains one event. t is the timeline of its order; nil if it belongs to none.
func Event(e store.StoredEvent, t *store.Timeline) Report {
	var tl store.Timeline
	if t != nil {
		tl = *t
	}
	r := Report{Subject: "event " + e.ID, Answer: eventLine(e, tl)}
	if e.Deliveries > 1 {
		r.Why = append(r.Why, fmt.Sprintf("It was delivered at least %d times, the last time at %s; only the first counted.",
			e.Deliveries, e.LastDeliveredAt.UTC().Format("2006-01-02 15:04:05")))
	}
	if len(e.Payment) > 0 {
		r.Why = append(r.Why, "Its payment is "+strings.Join(e.Payment, " = ")+".")
	}
	if e.Reference != "" && recurrenceOf(e) == "" {
		r.Why = append(r.Why, "It names order "+e.Reference+".")
	}
	if text := renewalText(e); text != "" {
		r.Why = append(r.Why, text)
	}
	for _, v := range tl.Versions {
		if v.Cause == store.CauseReevaluated && v.Source == e.Source && v.EventID == e.ID {
			r.Why = append(r.Why, fmt.Sprintf("Its bytes were read again at %s and meant something else than before, which made v%d.",
				v.At.UTC().Format("2006-01-02 15:04:05"), v.Version))
		}
	}
	if t != nil {
		r.Why = append(r.Why, orderAnswer(t.Order))
	}
	r.Todo = eventTodo(e, tl)
	return r
}

func eventTodo(e store.StoredEvent, t store.Timeline) []string {
	switch {
	case e.Outcome == store.Waiting && e.Reason == store.ReasonUnregistered && t.Order.Total == nil:
		return []string{"Register the order: POST /v1/orders with external_ref " + cmp.Or(t.Order.Ref, e.Reference) + "."}
	case e.Outcome == store.Waiting && e.Reason == store.ReasonNoReference && t.Order.Ref == "" && e.Renewal != nil:
		return []string{renewalTodo(e)}
	case e.Outcome == store.Waiting && e.Reason == store.ReasonNoReference && t.Order.Ref == "":
		return []string{"Put the order's reference on the payment at the gateway; its next event brings it."}
	case e.Outcome == store.Waiting && e.Reason == store.ReasonSourcePaused:
		return []string{"Set paused: false for source " + e.Source + " and reload the configuration."}
	case needsFetch(e) && e.Asking != nil && e.Asking.State == "dead":
		return []string{"Look at what the gateway said, then have it send the event again: that asks once more."}
	case e.Outcome == store.Ignored && e.Reason == gateway.NeedsFetch:
		return []string{"Give source " + e.Source + " an access_token, so that the gateway can be asked."}
	case e.Outcome == store.Ignored && e.Reason == store.ReasonUnknownOrder && !counts(e, t):
		return []string{"Register orders before they can be paid, or set on_unknown_order: stub for source " + e.Source + ", so that events wait for the registration."}
	case e.Outcome == store.Quarantined:
		return []string{
			"The bytes of event " + e.ID + " are kept. Look at them with: paidonce events show " + e.ID + " --payload",
			"Should a newer version of Paidonce read them: paidonce events reevaluate --where event=" + e.ID,
		}
	case e.Outcome == store.Flagged && e.Reason == store.ReasonModeMismatch:
		return []string{"Check the mode of source " + e.Source + ", and which endpoint the gateway's test account points to."}
	case e.Outcome == store.Flagged && e.Reason == store.ReasonAccountMismatch:
		return []string{"If the merchant account is yours, add it to source " + e.Source + " and have the gateway send the event again."}
	}
	return nil
}

// eventLine is the one sentence about an event, for every outcome and reason.
func eventLine(e store.StoredEvent, t store.Timeline) string {
	head := fmt.Sprintf("Event %s, %s, ", e.ID, e.Type+factsText(e))
	switch e.Outcome {
	case store.Applied:
		return head + "was applied: " + appliedText(e, t) + "."
	case store.NoChange:
		if e.Reason == store.ReasonNoOrder {
			return head + noOrderText(e)
		}
		return head + "changed nothing: " + knownText(e, t) + "."
	case store.Waiting:
		return head + waitingText(e, t)
	case store.Ignored:
		return head + ignoredText(e, t)
	case store.Flagged:
		return head + flaggedText(e, t)
	case store.Quarantined:
		return head + "was kept aside: its signature is right, but its facts cannot be read (" + strings.TrimPrefix(e.Reason, store.ReasonUnreadable+": ") + ")."
	case store.Duplicate:
		return head + "was known: it had been delivered before, and counts once."
	}
	return head + "has no outcome."
}

// factsText is what an event says, in brackets; empty if it says nothing.
func factsText(e store.StoredEvent) string {
	var parts []string
	if c := e.Command; c != nil {
		parts = append(parts, commandText(c, e)...)
	}
	if e.Command == nil || e.Command.Income == nil {
		for _, f := range e.Facts {
			parts = append(parts, factText(f))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func appliedText(e store.StoredEvent, t store.Timeline) string {
	if e.Before == nil || e.After == nil {
		return "the order took it in"
	}
	var from, to order.State
	created := ""
	for _, v := range t.Versions {
		if v.From == "" && v.Source == e.Source && v.EventID == e.ID {
			created = fmt.Sprintf("it created the order (v%d, %s)", v.Version, word(v.To))
		}
		if v.Version == *e.Before {
			from = v.To
		}
		if v.Version == *e.After {
			to = v.To
		}
	}
	versions := fmt.Sprintf("v%d → v%d", *e.Before, *e.After)
	switch {
	case *e.Before == *e.After && created != "":
		return created
	case to == "":
	case from == to:
		versions += ", still " + word(to)
	default:
		versions += fmt.Sprintf(", %s → %s", word(from), word(to))
	}
	if created != "" {
		return created + ", then " + versions
	}
	return "order " + versions
}

// needsFetch reports whether the event waits for its gateway to be asked.
func needsFetch(e store.StoredEvent) bool {
	return e.Outcome == store.Waiting && strings.HasPrefix(e.Reason, store.ReasonNeedsFetch+": ")
}

// fetchText says how the asking stands that an event waits for.
func fetchText(e store.StoredEvent) string {
	object := strings.TrimPrefix(e.Reason, store.ReasonNeedsFetch+": ")
	said := ""
	a := e.Asking
	if a != nil && a.LastError != "" {
		said = "; the last try said: " + a.LastError
	}
	switch {
	case a == nil:
		return "waits: it only names " + object + ", and the gateway has not been asked about that yet."
	case a.State == "dead":
		return fmt.Sprintf("waits: it only names %s, and asking the gateway about that was given up after %s%s.", object, tries(a.Attempts), said)
	case a.Attempts > 0 && a.NextAt != nil:
		return fmt.Sprintf("waits: it only names %s, and the gateway is asked about that; after %s the next comes at %s%s.",
			object, tries(a.Attempts), a.NextAt.UTC().Format(time.RFC3339), said)
	}
	return "waits: it only names " + object + ", which the gateway is about to be asked about."
}

// knownText names the event that the ledger knew a fact from before.
func knownText(e store.StoredEvent, t store.Timeline) string {
	if c := e.Command; c != nil && len(e.Facts) == 0 {
		return knownCommandText(c)
	}
	if object, ok := strings.CutPrefix(e.Reason, store.ReasonFetched+": "); ok {
		return "it only names " + object + ", and the gateway was asked about that; the answer is an event of its own"
	}
	for _, f := range e.Facts {
		for _, g := range t.Events {
			if g.ID == e.ID && g.Source == e.Source {
				break
			}
			for _, h := range g.Facts {
				if h.Kind == f.Kind && h.Ref == f.Ref && h.Currency == f.Currency && h.Misfit == "" && says(h, f) {
					return fmt.Sprintf("%s is in the ledger since %s", factText(f), g.ID)
				}
			}
		}
	}
	if len(e.Facts) == 0 {
		return "it only tells which payment and order belong together"
	}
	return "the ledger knew as much or more"
}

// says reports whether h says at least what f says.
func says(h, f order.Fact) bool {
	if f.Ref == "" && f.Kind != order.KindPhase {
		return h.Amount >= f.Amount && h.Seq >= f.Seq
	}
	return h.Status == f.Status && h.Amount >= f.Amount
}

func waitingText(e store.StoredEvent, t store.Timeline) string {
	if needsFetch(e) {
		return fetchText(e)
	}
	switch e.Reason {
	case store.ReasonUnregistered:
		if v := registeredAt(t); v != nil {
			return fmt.Sprintf("waited for order %s to be registered, and counts since then (v%d, by %s).", t.Order.Ref, v.Version, v.EventID)
		}
		if t.Order.Total != nil {
			return fmt.Sprintf("waited for order %s to be registered, and counts since then.", t.Order.Ref)
		}
		return "waits: order " + cmp.Or(t.Order.Ref, e.Reference) + " is not registered yet."
	case store.ReasonNoReference:
		if e.Reference != "" && !counts(e, t) {
			return fmt.Sprintf("waits: it names order %s, but it is a change to a payment, and only the payment's own events say what it is for; none of %s has come yet.",
				e.Reference, strings.Join(e.Payment, " = "))
		}
		if t.Order.Ref != "" {
			return fmt.Sprintf("came before anybody knew the order of its payment, and counts for %s since that is known.", t.Order.Ref)
		}
		if e.Renewal != nil {
			return "waits: it is for a period of a subscription, and neither an order nor a recurrence goes by " + either(e.Renewal.Of) + "."
		}
		return "waits: no event has named the order of payment " + strings.Join(e.Payment, " = ") + " yet."
	case store.ReasonSourcePaused:
		return "waits: source " + e.Source + " is paused; it is folded when the source resumes."
	}
	return "waits (" + e.Reason + ")."
}

func registeredAt(t store.Timeline) *store.Version {
	for i, v := range t.Versions {
		if v.Source == store.APISource && v.From != "" {
			for _, e := range t.Events {
				if e.Source == v.Source && e.ID == v.EventID && e.Command != nil && e.Command.Register != nil {
					return &t.Versions[i]
				}
			}
		}
	}
	return nil
}

func ignoredText(e store.StoredEvent, t store.Timeline) string {
	switch e.Reason {
	case store.ReasonUnknownOrder:
		if counts(e, t) {
			return fmt.Sprintf("came before order %s was registered, and counts since a later event of its payment came.", e.Reference)
		}
		return fmt.Sprintf("was ignored: nobody had registered order %s when it came, and source %s ignores unknown orders.", e.Reference, e.Source)
	case store.ReasonReread:
		return "was kept aside until its bytes could be read: the events that they hold stand in its place."
	case gateway.UnknownType:
		return "was ignored: Paidonce does not read events of this type."
	case gateway.NoFact:
		return "was ignored: events of this type can move an order, but what this one says moves none."
	case gateway.NeedsFetch:
		return "was ignored: it only points to an object at the gateway, which source " + e.Source + " has no credentials to ask about."
	}
	return "was ignored (" + e.Reason + ")."
}

func flaggedText(e store.StoredEvent, t store.Timeline) string {
	switch e.Reason {
	case store.ReasonCurrencyMismatch:
		want := "another currency"
		if t.Order.Currency != nil {
			want = *t.Order.Currency
		}
		return "was flagged, not counted: the order is in " + want + "."
	case store.ReasonModeMismatch:
		return "was flagged, not counted: it is not of the mode (test or live) of source " + e.Source + "."
	case store.ReasonAccountMismatch:
		return "was flagged, not counted: it belongs to a merchant account that source " + e.Source + " does not name."
	case store.ReasonIDReused:
		base, _, _ := strings.Cut(e.ID, "#")
		return "was counted and flagged: the gateway had used the id " + base + " before, for other facts."
	}
	return "was flagged (" + e.Reason + ")."
}

func versionLines(v store.Version, t store.Timeline) []Line {
	var lines []Line
	cause := v.Cause
	if v.EventID != "" {
		cause = v.EventID
	}
	switch {
	case v.Cause == store.CauseReevaluated && v.EventID != "" && v.From != "":
		moved := word(v.From) + " → " + word(v.To)
		if v.From == v.To {
			moved = "still " + word(v.To)
		}
		lines = append(lines, Line{
			v.At, "version", fmt.Sprint(v.Version),
			fmt.Sprintf("v%d: %s, because event %s was read again and means something else today.", v.Version, moved, v.EventID),
		})
	case v.From == "":
		lines = append(lines, Line{v.At, "version", fmt.Sprint(v.Version), fmt.Sprintf("v%d: created as %s, because of %s.", v.Version, word(v.To), cause)})
	case v.Cause == store.CauseExpired:
		lines = append(lines, Line{v.At, "version", fmt.Sprint(v.Version), fmt.Sprintf("v%d: its time ran out, and it was not paid.", v.Version)})
	case v.From != v.To:
		lines = append(lines, Line{v.At, "version", fmt.Sprint(v.Version), fmt.Sprintf("v%d: %s → %s, because of %s.", v.Version, word(v.From), word(v.To), cause)})
	}
	if v.Effect == order.EffectNone {
		return lines
	}
	key := fmt.Sprintf("%s:%d:%s", t.Order.ID, v.Version, v.Effect)
	what := fmt.Sprintf("Effect %s of version %d", v.Effect, v.Version)
	at := v.At
	if v.SettledAt != nil {
		at = *v.SettledAt
	}
	switch v.EffectState {
	case order.EffectDone:
		lines = append(lines, Line{at, "effect", key, fmt.Sprintf("%s was done at the merchant, after %s.", what, tries(v.Attempts))})
	case order.EffectCanceled:
		lines = append(lines, Line{at, "effect", key, fmt.Sprintf("%s was taken back before it was called: %s.", what, v.Why)})
	case order.EffectAssumed:
		lines = append(lines, Line{at, "effect", key, fmt.Sprintf("%s is assumed done: %s.", what, v.Why)})
	default:
		lines = append(lines, Line{at, "effect", key, effectSentence(v, t)})
	}
	return lines
}
