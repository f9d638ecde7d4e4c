package signature

import (
	"net/http"
	"strconv"
	"strings"
)

// field is a header that a scheme reads. Names are canonical; alt is another
// name for the same thing, or "". The zero value is no header.
type field struct {
	name, alt string
}

// get returns the only value of the field: it is Missing if there is none and
// Ambiguous if it was sent twice. Under its two names it may stand once each,
// with the same value.
func (f field) get(h http.Header) (string, *Error) {
	v, err := f.optional(h)
	if err == nil && v == "" {
		err = refuse(Missing, "no "+f.name)
	}
	return v, err
}

// optional is get for a field that may be missing: its value is "" then.
func (f field) optional(h http.Header) (string, *Error) {
	if f.name == "" {
		return "", nil
	}
	v, err := single(h, f.name)
	if err != nil || f.alt == "" {
		return v, err
	}
	w, err := single(h, f.alt)
	if err == nil && v != "" && w != "" && v != w {
		err = refuse(Ambiguous, f.name+" and "+f.alt+" differ")
	}
	if v == "" {
		v = w
	}
	return v, err
}

// single returns the value of a header, "" if there is none.
func single(h http.Header, name string) (string, *Error) {
	values := lines(h, name)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", refuse(Ambiguous, name+" was sent more than once")
	}
}

// lines returns all values of a header, in any spelling of its name.
func lines(h http.Header, name string) []string {
	values := h[name]
	if values == nil { // not from net/http, or not there
		for k, v := range h {
			if strings.EqualFold(k, name) {
				values = append(values, v...)
			}
		}
	}
	return values
}

// syntax is how a header lists signatures. The zero value is a header that is
// one signature, bare, with no label.
type syntax struct {
	prefix string // in front of everything
	sep    byte   // between elements
	cut    byte   // between the label and the value of an element
	trim   bool   // spaces and tabs around an element are not part of it (RFC 9110, 5.6.1)
	strict bool   // an element without a label is malformed (else it is passed over), and so is a space
	named  bool   // the id of a key and a cut stand in front of the label
	many   bool   // the header may be sent several times: the list goes on
	bare   string // the label that an element without one has
}

// next takes the first element off a list. ok is false if it has no label.
func (x *syntax) next(list string) (label, value, rest string, ok bool) {
	if x.sep == 0 {
		return "", list, "", true
	}
	elem := list
	if i := strings.IndexByte(list, x.sep); i >= 0 {
		elem, rest = list[:i], list[i+1:]
	}
	if x.trim {
		elem = strings.Trim(elem, " \t")
	}
	i := strings.IndexByte(elem, x.cut)
	if i >= 0 && x.named {
		elem = elem[i+1:]
		i = strings.IndexByte(elem, x.cut)
	}
	if i < 0 {
		return x.bare, elem, rest, x.bare != ""
	}
	return elem[:i], elem[i+1:], rest, true
}

// list returns the signatures that the header f carries, "" if it is not there.
func (x *syntax) list(f field, h http.Header) (string, *Error) {
	if x.many {
		return strings.Join(lines(h, f.name), string(x.sep)), nil
	}
	v, err := f.optional(h)
	if err != nil || v == "" || x.prefix == "" {
		return v, err
	}
	v, found := strings.CutPrefix(v, x.prefix)
	if !found {
		return "", refuse(Malformed, f.name+" is of another form")
	}
	return v, nil
}

// check reports whether a list can be read at all.
func (x *syntax) check(list string) *Error {
	if x.strict && (strings.IndexByte(list, ' ') >= 0 || strings.IndexByte(list, '\t') >= 0) {
		return refuse(Malformed, "a space in a list that has none")
	}
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
func (x *syntax) only(list, label string) (string, *Error) {
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

// join writes one element; id is that of the key, where the syntax has it.
func (x *syntax) join(id, label, value string) string {
	if x.sep == 0 {
		return x.prefix + value
	}
	elem := label + string(x.cut) + value
	if x.named {
		elem = id + string(x.cut) + elem
	}
	return elem
}
