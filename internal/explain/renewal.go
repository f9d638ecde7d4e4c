package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// renewalText says of which period an event's payment is, and how its order was found; empty if it is of none, or names
// an order itself.
func renewalText(e store.StoredEvent) string {
	of := recurrenceOf(e)
	switch {
	case e.Renewal == nil, of == "" && e.Reference != "":
		return ""
	case of != "":
		return fmt.Sprintf("It is for the period of recurrence %s that %s is in, and so names order %s.", of, since(e.Renewal), e.Reference)
	default:
		return fmt.Sprintf("It is for the period from %s on of a subscription that goes by %s: no recurrence of that name had such a period when it was read.",
			since(e.Renewal), either(e.Renewal.Of))
	}
}

// recurrenceOf is the recurrence by which the order of an event was found; empty if it was not found so.
func recurrenceOf(e store.StoredEvent) string {
	if e.Renewal == nil {
		return ""
	}
	i := slices.IndexFunc(e.Renewal.Of, func(name string) bool { return strings.HasPrefix(e.Reference, store.OrderRef(name, "")) })
	if i < 0 {
		return ""
	}
	return e.Renewal.Of[i]
}

func since(r *order.Renewal) string {
	if r.On != "" {
		return r.On
	}
	return moment(r.Start)
}

func either(names []string) string { return strings.Join(names, " or ") }

// renewalTodo is what makes the order of a renewal known that nobody knows yet.
func renewalTodo(e store.StoredEvent) string {
	return fmt.Sprintf("If it shall pay an order of its period, make a recurrence whose external_ref is %s (POST /v1/recurrences), and read the event again: "+
		"paidonce events reevaluate --where event=%s", either(e.Renewal.Of), order.BaseID(e.ID))
}
