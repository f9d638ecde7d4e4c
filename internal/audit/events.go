package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// events checks what can be told of each event by itself, and by what it points at.
func (r *run) events(ctx context.Context, page []*store.AuditEvent) error {
	var offline []*store.AuditEvent
	for _, e := range page {
		r.sum.Events++
		if err := r.event(e); err != nil {
			return err
		}
		if e.Event.Command != nil && e.Event.Command.Income != nil {
			offline = append(offline, e)
		}
	}
	if err := r.incomeEvents(ctx, offline); err != nil {
		return err
	}
	r.progress(len(page))
	return nil
}

func (r *run) event(e *store.AuditEvent) error {
	if e.Unreadable != "" {
		return r.found(Difference{Kind: EventUnreadable, Says: "Its facts cannot be read: " + e.Unreadable + "."}, e)
	}
	if !e.HashFits {
		if err := r.found(Difference{Kind: EventHash, Says: "Its facts are not those that its hash was made of, so one of the two was changed."}, e); err != nil {
			return err
		}
	}
	first := ""
	if len(e.Event.Payment) > 0 {
		first = e.Event.Payment[0]
	}
	if e.Payment != first {
		d := Difference{Kind: EventPayment, Says: "It is looked for under another payment than its facts name.", Expected: first, Found: e.Payment}
		if err := r.found(d, e); err != nil {
			return err
		}
	}
	if expected, ok := outcomeFits(e); !ok {
		d := Difference{Kind: EventOutcome, Says: "Its outcome does not fit what it says.", Expected: expected, Found: outcomeText(e.Outcome, e.Reason)}
		if err := r.found(d, e); err != nil {
			return err
		}
	}
	if err := r.eventVersions(e); err != nil {
		return err
	}
	return r.bytes(e)
}

func outcomeText(o store.Outcome, reason string) string {
	if reason == "" {
		return string(o)
	}
	return string(o) + " (" + reason + ")"
}

// outcomeFits reports whether an event can have had this outcome, and which it could have had otherwise. It does not know how
// its order stood then, so that several may fit.
func outcomeFits(e *store.AuditEvent) (expected string, ok bool) {
	ev := e.Event
	switch {
	case ev.Broken != "":
		return only(e, store.Quarantined, store.ReasonUnreadable+": "+ev.Broken)
	case ev.Ignored != "":
		return only(e, store.Ignored, ev.Ignored)
	case ev.Fetch != "":
		if e.Outcome == store.NoChange && e.Reason == store.ReasonFetched+": "+ev.Fetch {
			return "", e.Order == uuid.Nil
		}
		return only(e, store.Waiting, store.ReasonNeedsFetch+": "+ev.Fetch)
	case e.Outcome == store.Waiting && e.Reason == store.ReasonSourcePaused:
		return "an outcome of an event that counts", e.Order == uuid.Nil
	}
	for _, f := range ev.Facts {
		switch f.Misfit {
		case order.MisfitMode:
			return with(e, store.Flagged, store.ReasonModeMismatch)
		case order.MisfitAccount:
			return with(e, store.Flagged, store.ReasonAccountMismatch)
		}
	}
	if e.Order == uuid.Nil {
		switch {
		case e.OnUnknown == store.OnUnknownIgnore && ev.Reference != "":
			return only(e, store.Ignored, store.ReasonUnknownOrder)
		case ev.Command != nil:
			return only(e, store.NoChange, store.ReasonNoOrder)
		}
		return only(e, store.Waiting, store.ReasonNoReference)
	}
	made := e.After > e.Before || e.Before == 1 // an event that made the order's row leads from version 1 to it
	fits := []struct {
		outcome store.Outcome
		reason  string
		so      bool
	}{
		{store.Applied, "", made},
		{store.NoChange, store.ReasonAlreadyKnown, e.After == e.Before},
		{store.Waiting, store.ReasonUnregistered, true},
		{store.Flagged, store.ReasonIDReused, e.Twin},
		{store.Flagged, store.ReasonCurrencyMismatch, hasCurrency(ev)},
	}
	if e.Twin && e.TwinFits {
		return with(e, store.Flagged, store.ReasonIDReused)
	}
	var names []string
	for _, f := range fits {
		if f.so {
			names = append(names, outcomeText(f.outcome, f.reason))
		}
		if f.so && e.Outcome == f.outcome && e.Reason == f.reason {
			return "", true
		}
	}
	return strings.Join(names, " or "), false
}

// only is with, of an event that has no order.
func only(e *store.AuditEvent, outcome store.Outcome, reason string) (string, bool) {
	expected, ok := with(e, outcome, reason)
	if e.Order != uuid.Nil || e.Before != 0 || e.After != 0 {
		return expected + " and no order", false
	}
	return expected, ok
}

func with(e *store.AuditEvent, outcome store.Outcome, reason string) (string, bool) {
	return outcomeText(outcome, reason), e.Outcome == outcome && e.Reason == reason
}

func hasCurrency(e order.Event) bool {
	for _, f := range e.Facts {
		if f.Currency != "" {
			return true
		}
	}
	return false
}

// eventVersions checks the order that an event points at, and the versions that it says it made.
func (r *run) eventVersions(e *store.AuditEvent) error {
	if e.Order == uuid.Nil {
		return nil
	}
	switch {
	case e.OrderVersion == 0:
		return r.found(Difference{Kind: EventOrder, Says: "It points at an order that there is not.", Found: e.Order.String()}, e)
	case e.Before < 1, e.After < e.Before, e.After > e.OrderVersion:
		d := Difference{
			Kind: VersionCause, OrderID: e.Order.String(), Says: "It says that it led from one version of its order to another, and the order was never there.",
			Expected: fmt.Sprintf("versions between 1 and %d", e.OrderVersion), Found: fmt.Sprintf("%d to %d", e.Before, e.After),
			Subject: "event " + e.ID,
		}
		return r.found(d, e)
	case e.Reread, e.Twin:
		return nil // they share the versions that were made when they were read again
	}
	for v := e.Before + 1; v <= e.After; v++ {
		if err := r.madeBy(e, v); err != nil {
			return err
		}
	}
	if e.Outcome == store.Applied && e.Before == e.After && e.Event.Command == nil {
		return r.madeBy(e, e.Before)
	}
	return nil
}

// madeBy checks that a version names the event that says it made it. Rows that are missing are told of where versions are counted.
func (r *run) madeBy(e *store.AuditEvent, version int) error {
	for _, row := range e.Rows {
		if row.Version != version || row.Source == e.Source && row.ID == e.ID {
			continue
		}
		if version == 1 && row.Source == store.APISource {
			continue // in one transaction it was made by an event and registered
		}
		return r.found(Difference{
			Kind: VersionCause, OrderID: e.Order.String(), Version: version, Says: "An event says that it made this version, which names another cause.",
			Expected: e.ID, Found: row.ID,
		}, e)
	}
	return nil
}

// bytes checks that the kept bytes of an event still say what is stored.
func (r *run) bytes(e *store.AuditEvent) error {
	b := e.Bytes
	if b == nil {
		return nil
	}
	d := Difference{Kind: EventBytes, Expected: meaningText(b.Today), Found: meaningText(e.Meaning())}
	switch {
	case b.Code == store.SkipPayloadGone, b.Code == store.SkipOtherID && e.Event.Ignored == store.ReasonReread:
		r.unread(b.Code)
		return nil
	case b.Code == store.SkipUnreadable && strings.HasPrefix(e.Event.ID, bodyID):
		r.unread(b.Code) // it stands for bytes that nobody can read
		return nil
	case b.Code != "":
		r.unread(b.Code)
		d.Expected, d.Says = "", "Its kept bytes do not hold it today: "+b.Why+"."
		return r.found(d, e)
	}
	r.sum.Reread++
	if b.Same {
		return nil
	}
	d.Says = fmt.Sprintf("Its kept bytes say something else than what is stored, which mapping %d had read and mapping %d reads otherwise; paidonce events reevaluate corrects that.",
		e.MappingVersion, b.Today.MappingVersion)
	if e.MappingVersion == b.Today.MappingVersion {
		d.Says = "Its kept bytes say something else than what is stored, though the same mapping had read them: an option of its source has changed, or its row was."
	}
	return r.found(d, e)
}

// bodyID begins the ids of events that stand for bytes in which no event can be found.
const bodyID = "body:"

func (r *run) unread(code string) {
	if r.sum.Unread == nil {
		r.sum.Unread = map[string]int{}
	}
	r.sum.Unread[code]++
}

// meaningText is what an event is taken to say, without what became of it.
func meaningText(m store.EventMeaning) string {
	m.Outcome, m.Reason, m.Order, m.MappingVersion = "", "", "", 0
	return compact(m)
}
