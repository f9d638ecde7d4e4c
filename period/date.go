package period

import (
	"cmp"
	"fmt"
	"time"
)

// The years that RFC 3339 can write and whose calendar is everybody's.
const (
	minYear = 1970
	maxYear = 9999
)

// Date is a day of the (Gregorian) calendar, in no time zone. The zero value is no day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// ParseDate reads "2026-10-05": a day of the years 1970 to 9999.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < minYear {
		return Date{}, fmt.Errorf("period: %q is no day of the years %d to %d, written 2006-01-02", text, minYear, maxYear)
	}
	return dateOf(t), nil
}

// DateOf is the day that t shows, in t's own time zone.
func DateOf(t time.Time) Date { return dateOf(t) }

func dateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// String writes what [ParseDate] reads.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalText writes what [ParseDate] reads.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is [ParseDate].
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDate(string(text))
	return err
}

// IsZero reports whether d is the zero value.
func (d Date) IsZero() bool { return d == Date{} }

// Valid reports whether d is a day of the years 1970 to 9999.
func (d Date) Valid() bool {
	return d.Year >= minYear && d.Year <= maxYear && d == dateOf(d.UTC())
}

// Before reports whether d comes before e.
func (d Date) Before(e Date) bool { return d.Compare(e) < 0 }

// Compare is -1 if d comes before e, 0 if they are one day, else 1.
func (d Date) Compare(e Date) int {
	return cmp.Or(cmp.Compare(d.Year, e.Year), cmp.Compare(d.Month, e.Month), cmp.Compare(d.Day, e.Day))
}

// UTC is midnight of d in UTC.
func (d Date) UTC() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

const (
	day = 24 * time.Hour

	// maxOffset is more than any zone was ever away from UTC.
	maxOffset = 26 * time.Hour
)

// Start is the first instant at which the clocks of zone show d or a later day, UTC.
//
// time.Date does not say which of two instants it means where a midnight is skipped or comes twice, so the answer is
// looked for: in each stretch of one offset, the instant at which d begins there, if it is not over by then.
func (d Date) Start(zone *time.Location) time.Time {
	midnight := d.UTC()
	t := midnight.Add(-maxOffset).In(zone) // a day before d, wherever this is
	for {
		_, offset := t.Zone()
		begin := midnight.Add(-time.Duration(offset) * time.Second)
		if begin.Before(t) {
			begin = t
		}
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// The rules that go on after the last known change are applied to years of 365 days: on the last day of a leap
			// year the stretch is said to be over. It goes on to the end of the (UTC) year at least.
			end = t.Truncate(day).Add(day)
		}
		if end.IsZero() || begin.Before(end) {
			return begin.UTC()
		}
		t = end
	}
}

// daysSince is the number of days from e to d.
func (d Date) daysSince(e Date) int { return int((d.UTC().Unix() - e.UTC().Unix()) / (24 * 60 * 60)) }

func (d Date) addDays(n int) Date { return dateOf(d.UTC().AddDate(0, 0, n)) }

// month counts months from the year 0 on.
func (d Date) month() int { return d.Year*12 + int(d.Month) - 1 }

// addMonths is the same day n months later, or the last day of that month if it is shorter.
func (d Date) addMonths(n int) Date {
	m := d.month() + n
	y, month := m/12, time.Month(m%12+1)
	return Date{y, month, min(d.Day, lastOf(y, month).Day)}
}

// lastOf is the last day of a month.
func lastOf(year int, month time.Month) Date {
	return dateOf(time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC))
}

// Yesterday is the day before d.
func (d Date) Yesterday() Date { return d.addDays(-1) }
