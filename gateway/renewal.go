package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// A renewal is reported where covered bytes tell both: of which subscription a
// payment is, and when the period begins that it pays for. Which order that is
// depends on what recurs in the account, and is not known here.

// renews is a renewal of a subscription, which goes by the merchant's references
// first and then by the gateway's own id; empty ones are left out.
func renews(s Source, start time.Time, subscription string, refs ...string) *order.Renewal {
	r := &order.Renewal{Start: start}
	for _, ref := range refs {
		r.Of = append(r.Of, reference(ref, s.ReferencePattern))
	}
	r.Of = append(r.Of, subscription)
	return r
}

// finishRenewal completes a renewal that a gateway file reported: nil where it
// says too little. An event that names an order itself means nothing else by it
// than what goes by that name.
func finishRenewal(r *order.Renewal, ref string) *order.Renewal {
	if r == nil || r.Start.IsZero() && r.On == "" {
		return nil
	}
	of := r.Of
	if ref != "" {
		of = []string{ref}
	}
	done := order.Renewal{Start: r.Start, On: r.On}
	for _, name := range distinct(of) {
		if order.IsReference(name) {
			done.Of = append(done.Of, name)
		}
	}
	if len(done.Of) == 0 {
		return nil
	}
	return &done
}

// isDay reports whether text is a day of the calendar, "2026-10-05".
func isDay(text string) bool {
	t, err := time.Parse(time.DateOnly, text)
	return err == nil && t.Year() >= 1970
}
