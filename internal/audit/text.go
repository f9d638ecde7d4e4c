package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compact is a value as JSON, for people and programs that read a difference.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// differing returns, of two values that are JSON objects, the members in which they differ, as JSON; both empty: in none.
func differing(expected, found any) (string, string) {
	a, b := members(expected), members(found)
	for name := range a {
		if bytes.Equal(a[name], b[name]) {
			delete(a, name)
			delete(b, name)
		}
	}
	if len(a)+len(b) == 0 {
		return "", ""
	}
	return compact(ordered(a)), compact(ordered(b))
}

func members(v any) map[string]json.RawMessage {
	doc, err := json.Marshal(v)
	m := map[string]json.RawMessage{}
	if err != nil || json.Unmarshal(doc, &m) != nil {
		m["value"] = json.RawMessage(compact(fmt.Sprint(v)))
	}
	return m
}

// ordered keeps what it is given and writes null for what is not there on one side only.
func ordered(m map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if out[name] = m[name]; out[name] == nil {
			out[name] = json.RawMessage("null")
		}
	}
	return out
}
