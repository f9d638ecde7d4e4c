package diagnose

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// maxSeconds is how far from the time in a header others are tried.
const maxSeconds = 900

var (
	stamps = regexp.MustCompile(`\b[0-9]{10}(?:[0-9]{3})?\b`)
	dates  = regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(?:Z|[+-][0-9:]{4,5})?`)
)

// times undoes another way to write the signed time in a header.
func times(_ *search, a attempt, yield func(variant) bool) {
	inHeaders(a, yield, otherUnit, otherDates)
}

// drift undoes a change of the signed time in a header.
func drift(_ *search, a attempt, yield func(variant) bool) {
	inHeaders(a, yield, earlier, nil)
}

// inHeaders tries other times in the headers that may carry the signed one.
func inHeaders(a attempt, yield func(variant) bool, stamp func(string, func(with, what string) bool) bool, dated func(string) []string) {
	for name, values := range a.request.Header {
		if !carriesSignature(name) && !strings.Contains(strings.ToLower(name), "time") && !strings.Contains(strings.ToLower(name), "date") {
			continue
		}
		shown := http.CanonicalHeaderKey(name)
		if len(values) != 1 {
			continue
		}
		v := values[0]
		try := func(at []int, with, what string) bool {
			c := a
			c.request = withHeader(a.request, func(h http.Header) { h[name] = []string{v[:at[0]] + with + v[at[1]:]} })
			return yield(variant{attempt: c, cause: SignedTime, sentence: "The time in the header " + shown + " is not the one that was signed: " + what})
		}
		for _, at := range stamps.FindAllStringIndex(v, 3) {
			if !stamp(v[at[0]:at[1]], func(with, what string) bool { return try(at, with, what) }) {
				return
			}
		}
		if dated == nil {
			continue
		}
		for _, at := range dates.FindAllStringIndex(v, 1) {
			for _, with := range dated(v[at[0]:at[1]]) {
				if !try(at, with, "the date was written in another form. Pass it on as it came.") {
					return
				}
			}
		}
	}
}

// otherUnit yields a time in seconds for one in milliseconds, and the reverse.
func otherUnit(text string, yield func(with, what string) bool) bool {
	if len(text) == 13 {
		return yield(text[:10], "it is in milliseconds, and was signed in seconds. Pass it on as it came.")
	}
	return yield(text+"000", "it is in seconds, and was signed in milliseconds. Pass it on as it came.")
}

// earlier yields times near one, and whole hours away as time zones are.
func earlier(text string, yield func(with, what string) bool) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return true
	}
	unit := int64(1)
	if len(text) == 13 {
		unit = 1000
	}
	other := func(d int64) bool {
		return yield(strconv.FormatInt(n-d*unit, 10), "it was changed by "+strconv.FormatInt(d, 10)+" s after it was signed. Pass it on as it came.")
	}
	for d := int64(1); d <= maxSeconds; d++ {
		if !other(d) || !other(-d) {
			return false
		}
	}
	for h := int64(1); h <= 24; h++ {
		if !other(h*3600) || !other(-h*3600) {
			return false
		}
	}
	return true
}

// otherDates are other ways to write a date and time of the same moment.
func otherDates(text string) []string {
	bare := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(text, "Z"), "+00:00"), "+0000")
	if bare == text {
		return nil
	}
	whole, _, _ := strings.Cut(bare, ".")
	whole = strings.Replace(whole, " ", "T", 1)
	var all []string
	for _, fraction := range []string{"", ".0", ".000", ".000000"} {
		for _, zone := range []string{"Z", "+00:00", "+0000"} {
			all = append(all, whole+fraction+zone)
		}
	}
	return all
}
