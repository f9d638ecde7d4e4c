package gateway

import (
	"time"
	_ "time/tzdata" // a machine without zones must read the same times
)

// localTime reads a time that a payload writes by the clock on the gateway's wall,
// in the layout of package time. zone is an IANA name like "Asia/Jakarta", and
// must be one that the gateway documents. The zero time if the text is none, or
// no zone is certain (""): a wrong time would order events wrongly, none does not.
func localTime(v value, layout, zone string) time.Time {
	if zone == "" {
		return time.Time{}
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}
	}
	t, err := time.ParseInLocation(layout, v.Str, where)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

// isoTime reads a time in RFC 3339, also with a zone that lacks its colon
// ("2026-01-01T09:00:00.000+0000"); the zero time if it is none.
func isoTime(v value) time.Time {
	if t := rfc3339(v); !t.IsZero() {
		return t
	}
	t, err := time.Parse("2006-01-02T15:04:05Z0700", v.Str)
	if err != nil || t.Year() < 1970 {
		return time.Time{}
	}
	return t.UTC()
}
