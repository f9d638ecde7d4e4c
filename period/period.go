// Package period cuts time into the periods of something that comes back, each with a name that is its own for ever:
// "2026-10" is the October of something monthly.
//
// A [Schedule] says how long a period is, on which day the first one begins, and in which time zone. Every period begins
// with the first instant of its day there: midnight as a rule, later where the clocks skip midnight (or the whole day),
// the first of the two where they show it twice. It ends where the next one begins, so that periods neither overlap nor
// leave a gap, whatever the clocks do.
//
// Days are counted from the first one, never from the one before: what begins on the 31st begins on the 28th in
// February and on the 31st again in March.
//
// The package is pure: zones and times are handed in, and nothing in it changes. [LoadZone] alone looks at the machine.
package period

import (
	"errors"
	"fmt"
	"time"
)

// Interval is the unit of a schedule's periods.
type Interval string

// The intervals. Their periods are called "2026-10-05", "2026-W40" (the week of ISO 8601), "2026-10", "2026-Q4" and
// "2026".
const (
	Day     Interval = "day"
	Week    Interval = "week"
	Month   Interval = "month"
	Quarter Interval = "quarter"
	Year    Interval = "year"
)

// Intervals are all of them, shortest first.
var Intervals = []Interval{Day, Week, Month, Quarter, Year}

// days and months are the length of one interval; one of the two is 0.
func (i Interval) days() int {
	switch i {
	case Day:
		return 1
	case Week:
		return 7
	default:
		return 0
	}
}

func (i Interval) months() int {
	switch i {
	case Month:
		return 1
	case Quarter:
		return 3
	case Year:
		return 12
	default:
		return 0
	}
}

// MaxEvery bounds [Schedule].Every.
const MaxEvery = 1000

// Schedule is what comes back, how often, and since when.
type Schedule struct {
	Interval Interval
	Every    int            // intervals per period: 1 to MaxEvery
	From     Date           // the day on which the first period begins
	Zone     *time.Location // whose calendar and clocks are meant
}

// Validate returns what is wrong with s, or nil.
func (s Schedule) Validate() error {
	switch {
	case s.Interval.days() == 0 && s.Interval.months() == 0:
		return fmt.Errorf("period: unknown interval %q", string(s.Interval))
	case s.Every < 1 || s.Every > MaxEvery:
		return fmt.Errorf("period: every %d intervals; it must be 1 to %d", s.Every, MaxEvery)
	case !s.From.Valid():
		return fmt.Errorf("period: %s is no day of the years %d to %d", s.From, minYear, maxYear)
	case s.Zone == nil:
		return errors.New("period: no time zone")
	}
	return nil
}

// Period is one period of a schedule.
type Period struct {
	Name  string    // unique within its schedule, and greater (as text) than those before
	On    Date      // the day on which it begins by the calendar, also where the clocks skipped that day
	Start time.Time // its first instant, UTC
	End   time.Time // the first instant after it, UTC: the Start of the next one
}

// First returns the first period. A period of no length (a day that the zone skipped) is none. It reports false where
// s is not valid, or all of it is over before it begins: a last day of time that was skipped.
func (s Schedule) First() (Period, bool) { return s.from(0) }

// Next returns the period after p, which must be one of s; false if it would begin after the year 9999.
func (s Schedule) Next(p Period) (Period, bool) { return s.from(s.index(p.On) + 1) }

// At returns the period that t belongs to; false if t is before the first.
func (s Schedule) At(t time.Time) (Period, bool) {
	if s.Validate() != nil {
		return Period{}, false
	}
	n := max(s.index(dateOf(t.In(s.Zone))), 0)
	for n > 0 && s.start(n).After(t) {
		n-- // later in the month, quarter or year
	}
	if s.start(n).After(t) {
		return Period{}, false
	}
	for !s.start(n + 1).After(t) { // the clocks show a day again, after the next one had begun
		n++
	}
	return s.period(n)
}

// After returns the first period that starts after t; false if that would be after the year 9999.
func (s Schedule) After(t time.Time) (Period, bool) {
	p, ok := s.At(t)
	if !ok {
		return s.First()
	}
	return s.Next(p)
}

// Named returns the period of that name; false if s has none, or calls it otherwise.
func (s Schedule) Named(name string) (Period, bool) {
	if s.Validate() != nil {
		return Period{}, false
	}
	last, ok := s.Interval.lastDay(name)
	if !ok {
		return Period{}, false
	}
	// At most one period begins in what a name stands for, since none is shorter.
	p, ok := s.period(s.index(last))
	return p, ok && p.Name == name
}

// from is the first period at or after the n-th that has a length.
func (s Schedule) from(n int) (Period, bool) {
	if s.Validate() != nil {
		return Period{}, false
	}
	for s.on(n).Valid() {
		if p, ok := s.period(n); ok {
			return p, true
		}
		n++
	}
	return Period{}, false
}

// period is the n-th one, counted from 0; false if it has no length, or lies outside of the years.
func (s Schedule) period(n int) (Period, bool) {
	on := s.on(n)
	if n < 0 || !on.Valid() {
		return Period{}, false
	}
	p := Period{Name: s.Interval.name(on), On: on, Start: s.start(n), End: s.start(n + 1)}
	return p, p.Start.Before(p.End)
}

// on is the day on which the n-th period begins.
func (s Schedule) on(n int) Date {
	if days := s.Interval.days(); days > 0 {
		return s.From.addDays(n * days * s.Every)
	}
	return s.From.addMonths(n * s.Interval.months() * s.Every)
}

// index is the n of the last period that begins on d or before it, or later in the same month, of d that is not before
// the first.
func (s Schedule) index(d Date) int {
	if days := s.Interval.days(); days > 0 {
		return d.daysSince(s.From) / (days * s.Every)
	}
	return (d.month() - s.From.month()) / (s.Interval.months() * s.Every)
}

func (s Schedule) start(n int) time.Time { return s.on(n).Start(s.Zone) }
