package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
)

// The document is the validator: what a request may say is checked against the very schemas that /v1/openapi.json shows,
// so that the two cannot disagree. A schema that says something which is not checked here stops the start.
//
// Huma's own validation is not used, since it takes numbers as floats, names in any case, and quotes the request.

// schemas checks values against schemas of a registry.
type schemas struct {
	registry huma.Registry
	patterns map[string]*regexp.Regexp
}

// resolve follows references.
func (s *schemas) resolve(sch *huma.Schema) *huma.Schema {
	for sch.Ref != "" {
		sch = s.registry.SchemaFromRef(sch.Ref)
	}
	return sch
}

// format judges a text. Its code is empty if the text is right.
type format func(text string) (code, detail string)

// formats are the formats that texts of requests can have. Those of integers say only how they are kept.
var formats = map[string]format{
	"uuid": func(s string) (string, string) {
		if id, err := uuid.Parse(s); err != nil || len(s) != 36 || id == uuid.Nil {
			return "invalid_uuid", "must be a UUID"
		}
		return "", ""
	},
	"date-time": func(s string) (string, string) {
		t, err := time.Parse(time.RFC3339, s)
		if year := t.UTC().Year(); err != nil || year < 1 || year > 9999 {
			return "invalid_time", "must be a time such as 2026-01-31T12:00:00Z (RFC 3339)"
		}
		return "", ""
	},
	"date":          isDay,
	formatCurrency:  isCurrency,
	formatReference: isReference,
	formatMatching:  isMatching,
	formatPayment:   isReference,
}

// learn prepares a schema, or says what of it nobody would check.
func (s *schemas) learn(at string, sch *huma.Schema) error {
	return s.learnNew(at, sch, map[*huma.Schema]bool{})
}

func (s *schemas) learnNew(at string, sch *huma.Schema, seen map[*huma.Schema]bool) error {
	if sch.Ref != "" {
		target := s.registry.SchemaFromRef(sch.Ref)
		if target == nil {
			return fmt.Errorf("%s: there is no schema %s", at, sch.Ref)
		}
		return s.learnNew(at, target, seen)
	}
	if seen[sch] {
		return nil
	}
	seen[sch] = true
	if strange := unchecked(sch); strange != "" {
		return fmt.Errorf("%s: its schema has %s, which nobody checks", at, strange)
	}
	if sch.Type == huma.TypeString && sch.Format != "" && formats[sch.Format] == nil {
		return fmt.Errorf("%s: its schema has the format %s, which nobody checks", at, sch.Format)
	}
	if sch.Pattern != "" {
		re, err := regexp.Compile(sch.Pattern)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		s.patterns[sch.Pattern] = re
	}
	if sch.Items != nil {
		if err := s.learnNew(at+"/*", sch.Items, seen); err != nil {
			return err
		}
	}
	if more, ok := sch.AdditionalProperties.(*huma.Schema); ok {
		if err := s.learnNew(at+"/*", more, seen); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sch.Properties)) {
		if err := s.learnNew(at+"/"+escape(name), sch.Properties[name], seen); err != nil {
			return err
		}
	}
	return nil
}

// checked are the members of a schema that check minds, and those that demand nothing.
var checked = []string{
	"Type", "Nullable", "Enum", "Minimum", "Maximum", "MinLength", "MaxLength", "Pattern", "Format", "Items", "MinItems", "MaxItems",
	"Properties", "Required", "AdditionalProperties",
	"Title", "Description", "Ref", "Default", "Examples", "PatternDescription", "Deprecated", "Extensions", "DependentRequired",
}

// unchecked names what a schema demands and check does not mind.
func unchecked(sch *huma.Schema) string {
	v := reflect.ValueOf(sch).Elem()
	for f := range v.Type().Fields() {
		if f.IsExported() && !slices.Contains(checked, f.Name) && !v.FieldByIndex(f.Index).IsZero() {
			return f.Name
		}
	}
	if len(sch.DependentRequired) > 0 {
		return "DependentRequired"
	}
	if sch.Nullable && len(sch.Enum) > 0 {
		return "an enum that null is not in"
	}
	if sch.Type == huma.TypeNumber {
		return "the type number"
	}
	return ""
}

// faults collects what is wrong with one request.
type faults struct {
	of   *schemas
	list []FieldError
}

func (f *faults) add(at, code, detail string) {
	f.list = append(f.list, FieldError{Pointer: at, Code: code, Detail: detail})
}

// check compares a value that parse has read with a schema.
func (f *faults) check(at string, sch *huma.Schema, v any) {
	sch = f.of.resolve(sch)
	if v == nil {
		if !sch.Nullable && sch.Type != "" {
			f.add(at, "type", "must be "+article(sch)+", not null")
		}
		return
	}
	switch sch.Type {
	case "": // anything
	case huma.TypeObject:
		f.object(at, sch, v)
	case huma.TypeArray:
		f.array(at, sch, v)
	case huma.TypeInteger:
		f.integer(at, sch, v)
	case huma.TypeString:
		f.text(at, sch, v)
	case huma.TypeBoolean:
		if _, ok := v.(bool); !ok {
			f.add(at, "type", "must be true or false")
		}
	}
}

func article(sch *huma.Schema) string {
	switch sch.Type {
	case huma.TypeObject, huma.TypeArray, huma.TypeInteger:
		return "an " + sch.Type
	default:
		return "a " + sch.Type
	}
}

func (f *faults) object(at string, sch *huma.Schema, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		f.add(at, "type", "must be an object")
		return
	}
	names := map[string]bool{}
	for name := range m {
		names[name] = true
	}
	for _, name := range sch.Required {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		where := at + "/" + escape(name)
		value, there := m[name]
		prop, known := sch.Properties[name]
		more, schema := sch.AdditionalProperties.(*huma.Schema)
		switch required := slices.Contains(sch.Required, name); {
		case required && (!there || value == nil && known && !f.of.resolve(prop).Nullable):
			f.add(where, "required", "is missing")
		case known:
			f.check(where, prop, value)
		case schema:
			f.check(where, more, value)
		case sch.AdditionalProperties == false:
			// A misspelt name would else be lost without a word.
			f.add(where, "unknown_field", "is not known here")
		}
	}
}

func (f *faults) array(at string, sch *huma.Schema, v any) {
	list, ok := v.([]any)
	if !ok {
		f.add(at, "type", "must be an array")
		return
	}
	if sch.MinItems != nil && len(list) < *sch.MinItems {
		f.add(at, "too_few", fmt.Sprintf("must have at least %d", *sch.MinItems))
	}
	if sch.MaxItems != nil && len(list) > *sch.MaxItems {
		f.add(at, "too_many", fmt.Sprintf("must have at most %d", *sch.MaxItems))
		return
	}
	for i, item := range list {
		f.check(at+"/"+strconv.Itoa(i), sch.Items, item)
	}
}

// integer accepts the digits of an integer and nothing that is only equal to one: 5000.0 and 5e3 come from programs that
// reckon in floats. An amount has no sign either.
func (f *faults) integer(at string, sch *huma.Schema, v any) {
	n, ok := v.(json.Number)
	if !ok {
		f.add(at, "type", "must be an integer")
		return
	}
	code, detail, digits := "not_integer", "must be an integer: digits only", strings.TrimPrefix(n.String(), "-")
	if sch.Extensions[minorUnits] == true {
		code, detail, digits = "not_minor_units", "must be an integer of minor units, at least 0: digits only", n.String()
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		f.add(at, code, detail)
		return
	}
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if sch.Format == "int32" {
		low, high = math.MinInt32, math.MaxInt32
	}
	if sch.Minimum != nil {
		low = max(low, int64(*sch.Minimum))
	}
	if sch.Maximum != nil {
		high = min(high, int64(*sch.Maximum))
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	switch negative := strings.HasPrefix(n.String(), "-"); {
	case err != nil && negative || err == nil && i < low:
		f.add(at, "too_small", fmt.Sprintf("must be at least %d", low))
	case err != nil || i > high:
		f.add(at, "too_large", fmt.Sprintf("must be at most %d", high))
	}
}

func (f *faults) text(at string, sch *huma.Schema, v any) {
	s, ok := v.(string)
	if !ok {
		f.add(at, "type", "must be a string")
		return
	}
	n := utf8.RuneCountInString(s)
	switch {
	case sch.MinLength != nil && n < *sch.MinLength:
		f.add(at, "too_short", fmt.Sprintf("must have at least %d characters", *sch.MinLength))
		return
	case sch.MaxLength != nil && n > *sch.MaxLength:
		f.add(at, "too_long", fmt.Sprintf("must have at most %d characters", *sch.MaxLength))
		return
	}
	if len(sch.Enum) > 0 && !slices.Contains(sch.Enum, any(s)) {
		words := make([]string, len(sch.Enum))
		for i, e := range sch.Enum {
			words[i] = fmt.Sprint(e)
		}
		f.add(at, "unknown_value", "must be one of "+strings.Join(words, ", "))
		return
	}
	if re := f.of.patterns[sch.Pattern]; sch.Pattern != "" && !re.MatchString(s) {
		detail := sch.PatternDescription
		if detail == "" {
			detail = "must match " + sch.Pattern
		}
		f.add(at, "pattern", detail)
		return
	}
	if is := formats[sch.Format]; is != nil {
		if code, detail := is(s); code != "" {
			f.add(at, code, detail)
		}
	}
}
