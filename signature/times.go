package signature

import (
	"strconv"
	"strings"
	"time"
)

// plainNumber reads a number of 1 to 18 decimal digits without a leading zero.
func plainNumber(s string) (n int64, ok bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// checkSkew compares a signed time, in seconds since the Unix epoch, with now,
// in whole seconds; exactly tolerance is accepted.
func checkSkew(signed int64, now time.Time, tolerance time.Duration) *Error {
	skew := now.Unix() - signed
	limit := int64(tolerance / time.Second)
	reason := Stale
	switch {
	case skew > limit:
	case skew < -limit:
		reason = Future
	default:
		return nil
	}
	return &Error{Reason: reason, Skew: seconds(skew), Tolerance: tolerance}
}

// seconds is n seconds, bounded to what a Duration holds (292 years).
func seconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}

// moment reads a signed time by its role, in seconds since the Unix epoch.
func moment(s string, r role) (int64, *Error) {
	var n int64
	ok := false
	switch r {
	case roleTime:
		n, ok = plainNumber(s)
	case roleMillis:
		if n, ok = plainNumber(s); n >= leastMillis {
			n /= 1000
		}
	case roleDate:
		n, ok = plainDate(s)
	case roleNone, roleID, roleBarID:
	}
	if !ok {
		return 0, refuse(Malformed, "the time is not a plain "+r.String())
	}
	return n, nil
}

// leastMillis tells milliseconds from seconds where a gateway sends both: as
// seconds it is the year 5138, as milliseconds 1973.
const leastMillis = 100_000_000_000

// String is what a time of this role is called.
func (r role) String() string {
	if r == roleDate {
		return "date"
	}
	return "number"
}

// plainDate reads a date and time with its zone, as in RFC 3339; the zone may lack
// its colon. Every other way to write one is refused, so that nothing else fits
// where a date is signed.
func plainDate(s string) (unix int64, ok bool) {
	const day = "0000-00-00T00:00:00"
	if len(s) <= len(day) || !shaped(s[:len(day)], day) {
		return 0, false
	}
	rest := s[len(day):]
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n == 1 || n > 10 {
			return 0, false
		}
		rest = rest[n:]
	}
	zone := "Z"
	if rest != "Z" {
		sign, digits := "", strings.Replace(rest, ":", "", 1)
		if digits != "" {
			sign, digits = digits[:1], digits[1:]
		}
		if (sign != "+" && sign != "-") || !shaped(digits, "0000") || len(rest) == 6 && rest[3] != ':' {
			return 0, false
		}
		zone = sign + digits[:2] + ":" + digits[2:]
	}
	t, err := time.Parse(time.RFC3339, s[:len(day)]+zone)
	return t.Unix(), err == nil
}

// shaped reports whether s is like shape, which has a 0 for every digit.
func shaped(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		if digit := s[i] >= '0' && s[i] <= '9'; shape[i] == '0' && !digit {
			return false
		} else if shape[i] != '0' && s[i] != shape[i] {
			return false
		}
	}
	return true
}

// formatMoment writes a time by its role; layout is that of a date.
func formatMoment(now time.Time, r role, layout string) string {
	switch r {
	case roleMillis:
		return strconv.FormatInt(now.UnixMilli(), 10)
	case roleDate:
		return now.UTC().Format(layout)
	default:
		return strconv.FormatInt(now.Unix(), 10)
	}
}
