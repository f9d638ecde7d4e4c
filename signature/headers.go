package signature

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// field is a header that a scheme reads. Names are canonical; alt is another
// name for the same thing, or "".
type field struct {
	name, alt string
}

// get returns the only value of the field: it is Missing if there is none and
// Ambiguous if it was sent twice. Under its two names it may stand once each,
// with the same value.
func (f field) get(h http.Header) (string, *Error) {
	v, err := single(h, f.name)
	if err != nil || f.alt == "" {
		return v, f.required(v, err)
	}
	w, err := single(h, f.alt)
	if err == nil && v != "" && w != "" && v != w {
		err = refuse(Ambiguous, f.name+" and "+f.alt+" differ")
	}
	if v == "" {
		v = w
	}
	return v, f.required(v, err)
}

func (f field) required(v string, err *Error) *Error {
	if err == nil && v == "" {
		err = refuse(Missing, "no "+f.name)
	}
	return err
}

// single returns the value of a header, "" if there is none.
func single(h http.Header, name string) (string, *Error) {
	values := h[name]
	if values == nil { // not from net/http, or not there
		for k, v := range h {
			if strings.EqualFold(k, name) {
				values = append(values, v...)
			}
		}
	}
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", refuse(Ambiguous, name+" was sent more than once")
	}
}

// syntax is how a header lists signatures. The zero value is a header that is
// one signature, bare, with no label.
type syntax struct {
	sep    byte // between elements
	cut    byte // between the label and the value of an element
	strict bool // an element without a label is malformed; else it is passed over
}

// next takes the first element off a list. Spaces and tabs around an element are
// not part of it (RFC 9110, section 5.6.1). ok is false if it has no label.
func (x syntax) next(list string) (label, value, rest string, ok bool) {
	if x.sep == 0 {
		return "", list, "", true
	}
	elem := list
	if i := strings.IndexByte(list, x.sep); i >= 0 {
		elem, rest = list[:i], list[i+1:]
	}
	elem = strings.Trim(elem, " \t")
	i := strings.IndexByte(elem, x.cut)
	if i < 0 {
		return "", "", rest, false
	}
	return elem[:i], elem[i+1:], rest, true
}

// check reports whether a list can be read at all.
func (x syntax) check(list string) *Error {
	for n := 1; list != ""; n++ {
		if n > MaxElements {
			return refuse(Malformed, "more than "+strconv.Itoa(MaxElements)+" elements")
		}
		_, _, rest, ok := x.next(list)
		if !ok && x.strict {
			return refuse(Malformed, "an element without a label")
		}
		list = rest
	}
	return nil
}

// only returns the value of the element with that label. It is Missing if there
// is none and Ambiguous if there are two.
func (x syntax) only(list, label string) (string, *Error) {
	var found string
	n := 0
	for list != "" {
		l, v, rest, ok := x.next(list)
		if ok && l == label {
			found = v
			n++
		}
		list = rest
	}
	switch n {
	case 0:
		return "", refuse(Missing, "no "+label)
	case 1:
		return found, nil
	default:
		return "", refuse(Ambiguous, "more than one "+label)
	}
}

// join writes one element.
func (x syntax) join(label, value string) string {
	if x.sep == 0 {
		return value
	}
	return label + string(x.cut) + value
}

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
