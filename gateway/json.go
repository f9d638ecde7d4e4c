package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep arrays and objects may nest in a payload. Gateways stay
// below 20; the bound keeps a signed but hostile body from growing our stack.
const maxDepth = 100

// maxText is the longest id or reference that is believed, in bytes: what the
// tables hold. Gateways stay far below (Adyen 80, Stripe 255).
const maxText = 512

// byteOrderMark is passed over by the parser, and only by it: signatures are
// over the bytes with the mark.
var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON checks that body is one JSON object in UTF-8, and returns it.
func parseJSON(body []byte) (value, *ParseError) {
	text := bytes.TrimPrefix(body, byteOrderMark)
	switch {
	case !utf8.Valid(text):
		return value{}, parseError("not_utf8", "the body is not UTF-8")
	case depth(text) > maxDepth:
		return value{}, parseError("too_deep", "the body nests deeper than %d", maxDepth)
	case !gjson.ValidBytes(text):
		return value{}, parseError("not_json", "the body of %d bytes is not JSON", len(body))
	}
	v := value{gjson.ParseBytes(text)}
	if !v.IsObject() {
		return value{}, parseError("shape", "the body is not an object")
	}
	return v, nil
}

// depth is how deep brackets nest in text, counted before it is parsed.
func depth(text []byte) int {
	open, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfText(text, i+1)
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}

// endOfText returns where the quote stands that ends the text from i on.
func endOfText(text []byte, i int) int {
	for from := i; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return len(text)
		}
		end := from + n
		escapes := 0
		for escapes < n && text[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		from = end + 1
	}
}

// value is one JSON value of a checked document. The zero value is an absent one.
type value struct{ gjson.Result }

// absent reports whether the value is not there, or null: gateways use the two
// for the same thing.
func (v value) absent() bool { return v.Type == gjson.Null }

// text returns a string that can be an id, a type or a reference. It is not ok
// if the value is no string, empty, longer than maxText, or holds what must not
// be in a name: control characters, and U+FFFD, which stands for bytes or
// surrogates that were none, so that two names could become one.
func (v value) text() (string, bool) {
	if v.Type != gjson.String || !isName(v.Str) {
		return "", false
	}
	return v.Str, true
}

func isName(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == utf8.RuneError
	})
}

// maxType is the longest type that is believed, in bytes.
const maxType = 256

// kind returns a text that can be the type of an event.
func (v value) kind() (string, bool) {
	text, ok := v.text()
	return text, ok && len(text) <= maxType
}

// name returns a text, or the digits of an integer: some senders number their
// orders. The digits are those of the payload, never of a float.
func (v value) name() (string, bool) {
	if v.Type == gjson.Number && isDigits(v.Raw) {
		return v.Raw, len(v.Raw) <= maxText
	}
	return v.text()
}

// integer returns a JSON number that is written as a whole one of at least 0
// and fits int64. 5000.0 and 5e3 are not: no gateway of ours writes them.
func (v value) integer() (int64, bool) {
	if v.Type != gjson.Number || !isDigits(v.Raw) {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	return n, err == nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isTrue and isFalse read a JSON boolean; a string is none.
func (v value) isTrue() bool  { return v.Type == gjson.True }
func (v value) isFalse() bool { return v.Type == gjson.False }

// object holds those members of an object that were asked for.
type object struct {
	names  []string
	values []value
}

// errTwice is wrapped by the error of an object in which a key occurs twice.
var errTwice = errors.New("occurs twice")

// members reads the members called names, in one pass. It fails if v is not an
// object, and if one of the names occurs twice, escapes resolved.
func (v value) members(names []string) (object, error) {
	if !v.IsObject() {
		return object{}, errors.New("is not an object")
	}
	o := object{names: names, values: make([]value, len(names))}
	var seen uint64 // bit i: names[i] was found; callers ask for fewer than 64
	twice := ""
	v.ForEach(func(key, member gjson.Result) bool {
		i := slices.Index(names, key.Str)
		if i < 0 {
			return true
		}
		if seen&(1<<i) != 0 {
			twice = names[i]
			return false
		}
		seen |= 1 << i
		o.values[i] = value{member}
		return true
	})
	if twice != "" {
		return object{}, fmt.Errorf("%s %w", twice, errTwice)
	}
	return o, nil
}

// get returns a member that was asked for; to get another one is a mistake in
// a gateway file.
func (o object) get(name string) value {
	i := slices.Index(o.names, name)
	if i < 0 {
		panic("gateway: member " + name + " was not read")
	}
	return o.values[i]
}

// elements returns the elements of an array, at most limit; none if v is no array.
func (v value) elements(limit int) []value {
	if !v.IsArray() {
		return nil
	}
	var out []value
	v.ForEach(func(_, element gjson.Result) bool {
		out = append(out, value{element})
		return len(out) < limit
	})
	return out
}

// at follows a JSON pointer (RFC 6901). What is not there is an absent value;
// an object on the way that has the key twice is an error.
func (v value) at(pointer string) (value, error) {
	for rest := pointer; rest != ""; {
		var token string
		token, rest = nextToken(rest)
		switch {
		case v.IsObject():
			o, err := v.members([]string{token})
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", pointer, err)
			}
			v = o.values[0]
		case v.IsArray():
			v = v.element(token)
		default:
			return value{}, nil
		}
	}
	return v, nil
}

// element returns the element of an array with that index in decimal.
func (v value) element(index string) value {
	n, err := strconv.ParseUint(index, 10, 31)
	if err != nil || !isDigits(index) || len(index) > 1 && index[0] == '0' {
		return value{}
	}
	var out value
	v.ForEach(func(_, element gjson.Result) bool {
		if n == 0 {
			out = value{element}
			return false
		}
		n--
		return true
	})
	return out
}

// nextToken takes the first reference token off a pointer that starts with "/".
func nextToken(pointer string) (token, rest string) {
	token = pointer[1:]
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], token[i:]
	}
	if strings.IndexByte(token, '~') >= 0 {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return token, rest
}

// checkPointer returns what is wrong with a JSON pointer to a member, or nil.
func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") {
		return errors.New("is not a JSON pointer: it starts with /, like /data/order_id")
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return errors.New("is not a JSON pointer: ~ is written ~0, and / inside a name ~1")
		}
	}
	return nil
}
