package store

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// sameJSON compares JSON that Postgres wrote in its own way with what we wrote: it sorts members and spells exponents out. No
// JSON is an empty object. What cannot be read is never the same.
func sameJSON(a, b json.RawMessage) bool {
	x, ok1 := decodeJSON(a)
	y, ok2 := decodeJSON(b)
	return ok1 && ok2 && reflect.DeepEqual(x, y)
}

func decodeJSON(doc json.RawMessage) (v any, ok bool) {
	if len(doc) == 0 {
		return map[string]any{}, true
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil, false
	}
	return exactly(v), true
}

// exactly replaces the numbers in what was decoded by their values.
func exactly(v any) any {
	switch v := v.(type) {
	case json.Number:
		return valueOf(v.String())
	case []any:
		for i := range v {
			v[i] = exactly(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exactly(v[name])
		}
	}
	return v
}

// decimal is the value of a number: digits without zeros at either end, and the power of ten of the last one. 1e3, 1000 and
// 1000.0 are one; so are 0, -0 and 0.00.
type decimal struct {
	negative bool
	digits   string
	power    int
}

func valueOf(number string) any {
	text, negative := strings.CutPrefix(number, "-")
	power := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil {
			return json.Number(number) // beyond every number that Postgres holds
		}
		text, power = text[:i], n
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return decimal{}
	}
	return decimal{negative, short, power + len(digits) - len(short)}
}
