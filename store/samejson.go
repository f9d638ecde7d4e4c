package store

import (
	"bytes"
	"encoding/json"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

// sameJSON compares JSON that Postgres wrote in its own way with what we wrote: it sorts members and spells exponents out. No
// JSON is an empty object. What cannot be read is never the same.
func sameJSON(a, b json.RawMessage) bool {
	x, ok1 := canonicalJSON(a)
	y, ok2 := canonicalJSON(b)
	return ok1 && ok2 && bytes.Equal(x, y)
}

func canonicalJSON(doc json.RawMessage) ([]byte, bool) {
	if len(doc) == 0 {
		doc = json.RawMessage("{}")
	}
	d, err := canonical.JSON(doc)
	if err != nil {
		return nil, false
	}
	return d.Canonical(), true
}
