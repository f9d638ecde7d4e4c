package signature

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is the text of one JSON value that [json.Valid] has accepted, so its
// methods need not look for errors of syntax. It is read in place: what Sign does
// not change must keep its bytes, and encoding/json tells no offsets and hides
// that a key occurs twice.
type document []byte

// span is where a value stands: [start, end). The zero span is no value.
type span struct{ start, end int }

// caseRule is which keys of an object count as the same.
type caseRule uint8

const (
	exactCase caseRule = iota // same bytes
	anyCase                   // same letters in any case, as encoding/json matches them
	foldCase                  // the same, and a name is found in any case
)

// root is the one value of the document.
func (d document) root() span {
	start := d.skipSpace(0)
	return span{start, d.end(start)}
}

// bytes are the bytes of a value, as they stand.
func (d document) bytes(v span) []byte { return d[v.start:v.end] }

// kind is the first byte of a value, 0 if there is none.
func (d document) kind(v span) byte {
	if (v == span{}) {
		return 0
	}
	return d[v.start]
}

// null reports whether v is null or no value.
func (d document) null(v span) bool {
	return d.kind(v) == 0 || d.kind(v) == 'n'
}

// text is the value of a string; ok is false for every other value.
func (d document) text(v span) (s string, ok bool) {
	if d.kind(v) != '"' {
		return "", false
	}
	return s, json.Unmarshal(d.bytes(v), &s) == nil
}

// comma is what must follow a member that is put in front of the others of an
// object: "," if there are others.
func (d document) comma(object span) string {
	if d[d.skipSpace(object.start+1)] == '}' {
		return ""
	}
	return ","
}

// members returns the values of the named keys that the object at v has. It is
// Malformed if v is not an object, and Ambiguous if any key occurs twice by the
// rule, or (but for foldCase) a key is one of the names in another case.
func (d document) members(v span, rule caseRule, names ...string) (map[string]span, *Error) {
	if d.kind(v) != '{' {
		return nil, refuse(Malformed, "an object is missing")
	}
	values := make(map[string]span, len(names))
	seen := map[string]bool{}
	for at := d.skipSpace(v.start + 1); d[at] != '}'; {
		keyAt := span{at, d.end(at)}
		key, _ := d.text(keyAt)
		at = d.skipSpace(d.skipSpace(keyAt.end) + 1) // past the colon
		value := span{at, d.end(at)}
		at = d.skipSpace(value.end)
		if d[at] == ',' {
			at = d.skipSpace(at + 1)
		}

		same := key
		if rule != exactCase {
			same = fold(key)
		}
		if seen[same] {
			return nil, refuse(Ambiguous, "a key occurs twice")
		}
		seen[same] = true
		for _, name := range names {
			if key == name || rule == foldCase && strings.EqualFold(key, name) {
				values[name] = value
			} else if strings.EqualFold(key, name) {
				return nil, refuse(Ambiguous, "a key is "+name+" in another case")
			}
		}
	}
	return values, nil
}

// put returns the document with a value at old, that of key in object, or with a
// new first member of object if old is no value. All other bytes stay.
func (d document) put(object, old span, key, value string) []byte {
	if d.kind(old) == 0 {
		old = span{object.start + 1, object.start + 1}
		value = `"` + key + `":` + value + d.comma(object)
	}
	edited := append([]byte(nil), d[:old.start]...)
	edited = append(edited, value...)
	return append(edited, d[old.end:]...)
}

// elements returns the values of the array at v.
func (d document) elements(v span) []span {
	var list []span
	for at := d.skipSpace(v.start + 1); d[at] != ']'; {
		value := span{at, d.end(at)}
		list = append(list, value)
		at = d.skipSpace(value.end)
		if d[at] == ',' {
			at = d.skipSpace(at + 1)
		}
	}
	return list
}

// end is the offset behind the value that starts at at.
func (d document) end(at int) int {
	depth := 0
	for {
		switch d[at] {
		case '"':
			at = d.stringEnd(at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':', ' ', '\t', '\n', '\r': // inside an object or array
			at++
			continue
		default: // a number or a word
			for at < len(d) && strings.IndexByte(",:]} \t\n\r", d[at]) < 0 {
				at++
			}
		}
		if depth == 0 {
			return at
		}
	}
}

// stringEnd is the offset behind the string that starts at at.
func (d document) stringEnd(at int) int {
	for at++; d[at] != '"'; at++ {
		if d[at] == '\\' {
			at++
		}
	}
	return at + 1
}

func (d document) skipSpace(at int) int {
	for at < len(d) && (d[at] == ' ' || d[at] == '\t' || d[at] == '\n' || d[at] == '\r') {
		at++
	}
	return at
}

// flatObject reads a JSON object for the members called names.
func flatObject(text []byte, rule caseRule, names ...string) (document, map[string]span, *Error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, nil, refuse(Malformed, "not JSON in UTF-8")
	}
	doc := document(text)
	top, err := doc.members(doc.root(), rule, names...)
	return doc, top, err
}

// fold maps keys that encoding/json takes for the same to one: every letter to
// the smallest that [unicode.SimpleFold] leads to (K, k and the Kelvin sign to K).
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, s)
}
