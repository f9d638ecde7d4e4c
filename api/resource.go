package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// dataOf is the body of one thing, both ways.
type dataOf[T any] struct {
	Data T `json:"data"`
}

// list is an array that is never null.
type list[T any] []T

// MarshalJSON writes [] for nil.
func (l list[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// TransformSchema documents that it is never null.
func (list[T]) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Nullable = false
	return s
}

// anyObject is a JSON object of the caller's own making, kept as it is.
type anyObject json.RawMessage

// MarshalJSON and UnmarshalJSON keep it raw.
func (o anyObject) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON keeps it raw.
func (o *anyObject) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(b) }

// Schema documents that it is an object, of any kind.
func (anyObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// metadata is an object of the caller's own making, in which external_ref means something.
type metadata json.RawMessage

// MarshalJSON keeps it raw.
func (m metadata) MarshalJSON() ([]byte, error) { return json.RawMessage(m).MarshalJSON() }

// UnmarshalJSON keeps it raw.
func (m *metadata) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(m).UnmarshalJSON(b) }

// Schema documents it.
func (metadata) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Nullable: true, AdditionalProperties: true,
		Description: "An object of your own, kept as it is; external_ref in it means something.",
		Properties:  map[string]*huma.Schema{"external_ref": externalRef()},
	}
}

// members are those of an object, and none of null. encoding/json would take External_Ref for external_ref; here the
// exact name counts.
func (m metadata) members() (map[string]json.RawMessage, error) {
	if len(m) == 0 {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m, &fields); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return fields, nil
}

// null reports whether null was said, and not nothing.
func (m metadata) null() bool { return string(m) == "null" }

// externalRef returns the name that the metadata give; empty: none.
func (m metadata) externalRef() (ref string, err error) {
	fields, err := m.members()
	if raw, ok := fields["external_ref"]; err == nil && ok {
		if err := json.Unmarshal(raw, &ref); err != nil {
			return "", fmt.Errorf("metadata.external_ref: %w", err)
		}
	}
	return ref, err
}

// deadline is the time until which something should happen. Absent and null are told apart only where the difference
// matters.
type deadline json.RawMessage

// MarshalJSON keeps it raw.
func (d deadline) MarshalJSON() ([]byte, error) { return json.RawMessage(d).MarshalJSON() }

// UnmarshalJSON keeps it raw.
func (d *deadline) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(d).UnmarshalJSON(b) }

// Schema documents it.
func (deadline) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Format: "date-time", Nullable: true,
		Description: "Until when it should be paid, a time in the future. After it the order has the flag expired_unpaid, and is paid all the same if money comes. Null: for ever.",
		Examples:    []any{"2026-10-08T09:00:00Z"},
	}
}

// time is the deadline as Postgres keeps it; nil: none.
func (d deadline) time() (*time.Time, error) {
	if len(d) == 0 || string(d) == "null" {
		return nil, nil
	}
	var t time.Time
	if err := json.Unmarshal(d, &t); err != nil {
		return nil, fmt.Errorf("deadline: %w", err)
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t, nil
}

// canonical encodes JSON anew, with sorted keys and numbers as they were, so that two texts which mean the same are the
// same. It is nil for nothing and null.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
