package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// decode reads one JSON document into v, a pointer to a struct, and reports
// everything that is not exactly of v's shape. encoding/json is too kind for a
// file that must fail when a word is misspelt: it takes "State_In" for
// "state_in", the last of two equal keys, null for anything, and a missing key
// for a zero.
func decode(data []byte, v any) error {
	if errs := walk("", data, reflect.TypeOf(v).Elem()); len(errs) > 0 {
		return errors.Join(errs...)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the end of the document")
	}
	return nil
}

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// walk compares the keys of raw with the tags of t, at every depth. A type that
// decodes itself looks after its own keys.
func walk(path string, raw json.RawMessage, t reflect.Type) []error {
	if t == rawType {
		return nil
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return nil
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return []error{fmt.Errorf("%s: null is not a value here", name(path))}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return walk(path, raw, t.Elem())
	case reflect.Struct:
		return walkStruct(path, raw, t)
	case reflect.Map:
		keys, values, err := object(raw)
		if err != nil {
			return []error{fmt.Errorf("%s: %w", name(path), err)}
		}
		var errs []error
		for i, key := range keys {
			errs = append(errs, walk(path+"."+key, values[i], t.Elem())...)
		}
		return errs
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil // bytes in base64: json.Decoder checks them
		}
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return []error{fmt.Errorf("%s: a list is needed", name(path))}
		}
		if t.Kind() == reflect.Array && len(items) != t.Len() {
			return []error{fmt.Errorf("%s: %d values are needed, not %d", name(path), t.Len(), len(items))}
		}
		var errs []error
		for i, item := range items {
			errs = append(errs, walk(fmt.Sprintf("%s[%d]", path, i), item, t.Elem())...)
		}
		return errs
	default:
		return nil // a scalar: json.Decoder checks its type
	}
}

func walkStruct(path string, raw json.RawMessage, t reflect.Type) []error {
	keys, values, err := object(raw)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", name(path), err)}
	}
	fields := fieldsOf(t)
	var errs []error
	for i, key := range keys {
		f, ok := fields[key]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: no such key %q", name(path), key))
			continue
		}
		errs = append(errs, walk(path+"."+key, values[i], f.Type)...)
	}
	for key, f := range fields {
		if f.Tag.Get("case") == "needed" && !slices.Contains(keys, key) {
			errs = append(errs, fmt.Errorf("%s: the key %q is missing", name(path), key))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// fieldsOf returns the fields of t by their exact JSON name, those of embedded
// structs included.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key != "" && key != "-" {
			fields[key] = f
		}
	}
	return fields
}

// object takes a JSON object apart, in the order of its keys, and refuses one
// in which a key stands twice.
func object(raw json.RawMessage) (keys []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	start, err := dec.Token()
	if err != nil {
		return nil, nil, err
	}
	if start != json.Delim('{') {
		return nil, nil, errors.New("an object is needed")
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key, _ := token.(string)
		if slices.Contains(keys, key) {
			return nil, nil, fmt.Errorf("the key %q stands twice", key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, key), append(values, value)
	}
	_, err = dec.Token()
	return keys, values, err
}

func name(path string) string {
	if path == "" {
		return "the document"
	}
	return strings.TrimPrefix(path, ".")
}

// typeOf returns the type that v points to.
func typeOf(v any) reflect.Type { return reflect.TypeOf(v).Elem() }
