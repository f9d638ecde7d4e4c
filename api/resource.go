package api

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// externalRef returns the name that the metadata give; empty: none.
func (m metadata) externalRef() (string, error) {
	var named struct {
		ExternalRef string `json:"external_ref"`
	}
	if len(m) == 0 {
		return "", nil
	}
	// encoding/json would take External_Ref too; the exact name is looked up.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m, &fields); err != nil {
		return "", fmt.Errorf("metadata: %w", err)
	}
	if raw, ok := fields["external_ref"]; ok {
		if err := json.Unmarshal(raw, &named.ExternalRef); err != nil {
			return "", fmt.Errorf("metadata.external_ref: %w", err)
		}
	}
	return named.ExternalRef, nil
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
