package order

import (
	"errors"
	"fmt"
	"time"
)

// Renewal says that a payment is for one period of something that comes back: a subscription at the gateway. Which order
// that is depends on what the merchant has set up, so that whoever fills an event only reports it.
type Renewal struct {
	// Of is what the merchant may have called what comes back, best first: the reference of the subscription, its id at
	// the gateway.
	Of []string `json:"of"`

	// Start is when the period begins that is paid for. Zero if only the day is known.
	Start time.Time `json:"start,omitzero"`

	// On is the day on which it begins ("2026-10-05"), where the gateway tells no time; empty otherwise.
	On string `json:"on,omitempty"`
}

// validate returns what is wrong with r, or nil.
func (r *Renewal) validate() error {
	switch {
	case len(r.Of) == 0:
		return errors.New("order: renewal of nothing")
	case r.Start.IsZero() == (r.On == ""):
		return errors.New("order: renewal without a start, or with two")
	case !r.Start.IsZero() && (r.Start.Year() < 1970 || r.Start.Year() > 9999):
		return fmt.Errorf("order: renewal of the year %d", r.Start.Year())
	}
	if _, err := time.Parse(time.DateOnly, r.On); err != nil && r.On != "" {
		return fmt.Errorf("order: renewal on %q", r.On)
	}
	for _, name := range r.Of {
		if !IsReference(name) {
			return fmt.Errorf("order: renewal of %q", name)
		}
	}
	return nil
}
