package gateway

import (
	"regexp"
	"strings"
	"sync"

	"github.com/paidonce/paidonce/order"
)

// finish completes an event that a gateway file read: the realm, the
// reference's pattern, and the form that [Gateway.Events] promises.
func finish(ev *order.Event, s Source, realm string) *ParseError {
	if err := finishID(ev); err != nil {
		return err
	}
	ev.Realm = realm

	ev.Reference = reference(ev.Reference, s.ReferencePattern)
	if !order.IsReference(ev.Reference) {
		ev.Reference, ev.Strength = "", 0
	}
	ev.Renewal = finishRenewal(ev.Renewal, ev.Reference)
	if ev.Broken == "" && ev.Ignored == "" {
		if err := ev.Validate(); err != nil {
			ev.Broken = err.Error()
		}
	}
	switch {
	case ev.Broken != "":
		// What names the payment and the order stays, for the person who looks.
		ev.Ignored, ev.Fetch, ev.Facts, ev.Own = "", "", nil, nil
	case ev.Ignored != "", ev.Fetch != "":
		ev.Facts, ev.Own, ev.Payment, ev.Reference, ev.Strength, ev.Renewal = nil, nil, nil, "", 0, nil
	}
	return nil
}

// finishID makes an id one that our tables can hold.
func finishID(ev *order.Event) *ParseError {
	// What follows a # marks a second meaning of an id in our tables.
	ev.ID = strings.ReplaceAll(ev.ID, "#", "%23")
	if !isName(ev.ID) {
		return parseError("no_event_id", "an event has no readable id")
	}
	return nil
}

// misfit marks every fact of an event as one that must not count. Its own
// amount goes too: it could make an order.
func misfit(ev *order.Event, m order.Misfit) {
	for i := range ev.Facts {
		ev.Facts[i].Misfit = m
	}
	ev.Own = nil
}

// reference returns what a source takes for its reference in text, or "".
func reference(text, pattern string) string {
	if text == "" || pattern == "" {
		return text
	}
	re, err := compile(pattern)
	if err != nil {
		return "" // Check refused it at the start
	}
	groups := re.FindStringSubmatch(text)
	switch {
	case groups == nil:
		return ""
	case len(groups) > 1:
		return groups[1]
	default:
		return groups[0]
	}
}

// patterns keeps compiled patterns. They come from the configuration alone, so
// there are few.
var patterns sync.Map // string → *regexp.Regexp

func compile(pattern string) (*regexp.Regexp, error) {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp), nil //nolint:forcetypeassert // nothing else is stored
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	patterns.Store(pattern, re)
	return re, nil
}
