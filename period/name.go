package period

import (
	"fmt"
	"strconv"
	"time"
)

// name is what the interval calls the period that begins on d: the day, the ISO week, the month … in which d lies.
func (i Interval) name(d Date) string {
	switch i {
	case Week:
		y, w := d.UTC().ISOWeek()
		return fmt.Sprintf("%04d-W%02d", y, w)
	case Month:
		return fmt.Sprintf("%04d-%02d", d.Year, int(d.Month))
	case Quarter:
		return fmt.Sprintf("%04d-Q%d", d.Year, quarter(d.Month))
	case Year:
		return fmt.Sprintf("%04d", d.Year)
	default:
		return d.String()
	}
}

func quarter(m time.Month) int { return (int(m)-1)/3 + 1 }

// MaxName is the length of the longest name, in bytes.
const MaxName = len("2026-10-05")

// lastDay is the last day of what a name stands for. It is no test of the name: whatever it makes of one that is none,
// that day is called otherwise.
func (i Interval) lastDay(name string) (Date, bool) {
	if i == Day {
		d, err := ParseDate(name)
		return d, err == nil
	}
	if len(name) < 4 {
		return Date{}, false
	}
	year, err := strconv.Atoi(name[:4])
	if err != nil {
		return Date{}, false
	}
	rest := 12 // a year ends with its twelfth month
	if skip := map[Interval]int{Week: len("-W"), Month: len("-"), Quarter: len("-Q")}[i]; skip > 0 {
		if len(name) <= 4+skip {
			return Date{}, false
		}
		if rest, err = strconv.Atoi(name[4+skip:]); err != nil {
			return Date{}, false
		}
	}
	switch i {
	case Week:
		return sundayOf(year, rest), true
	case Quarter:
		return lastOf(year, time.Month(rest*3)), true
	default:
		return lastOf(year, time.Month(rest)), true
	}
}

// sundayOf is the last day of an ISO week: the first one is that of January 4th.
func sundayOf(year, week int) Date {
	fourth := Date{year, time.January, 4}
	return fourth.addDays((7-int(fourth.UTC().Weekday()))%7 + 7*(week-1))
}
