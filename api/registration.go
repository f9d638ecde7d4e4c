package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// registration is what POST /v1/orders says:
//
//	{"data": {
//	  "amount": 5000,                                 minor units, an integer of at least 0
//	  "currency": "EUR",                              ISO 4217
//	  "items": [{"sku": "A", "qty": 1}],              optional; objects, kept as they are
//	  "metadata": {"external_ref": "ord_1", "a": 1}   optional; an object, kept as it is
//	}}
//
// A key that is not known is refused: a misspelt one would else be lost without a word.
type registration struct {
	ref     string // metadata.external_ref; empty: none
	total   order.Amount
	details json.RawMessage // the JSON of details, with sorted keys; nil if there are neither items nor metadata
}

const (
	// maxAmount leaves room to add up payments.
	maxAmount = 1_000_000_000_000_000
	maxItems  = 1000
)

// registrationOf reads a body that was parsed, and returns every fault that it has.
func registrationOf(doc any) (registration, []FieldError) {
	c := &checker{}
	top := c.object("", doc, "data")
	if top == nil {
		return registration{}, c.faults
	}
	data, ok := top["data"]
	if !ok {
		c.fault("/data", "required", "is missing")
		return registration{}, c.faults
	}
	fields := c.object("/data", data, "amount", "currency", "items", "metadata")
	if fields == nil {
		return registration{}, c.faults
	}
	reg := registration{total: order.Amount{
		Minor:    c.amount("/data/amount", fields["amount"]),
		Currency: c.currency("/data/currency", fields["currency"]),
	}}
	c.items("/data/items", fields["items"])
	if meta := fields["metadata"]; meta != nil {
		reg.ref = c.reference("/data/metadata", meta)
	}
	if len(c.faults) == 0 {
		reg.details = detailsOf(fields)
	}
	return reg, c.faults
}

// detailsOf encodes what was parsed, so that two bodies which mean the same are the same.
func detailsOf(fields map[string]any) json.RawMessage {
	d := map[string]any{}
	for _, name := range []string{"items", "metadata"} {
		if v := fields[name]; v != nil {
			d[name] = v
		}
	}
	if len(d) == 0 {
		return nil
	}
	doc, err := json.Marshal(d)
	if err != nil {
		panic("api: parsed JSON does not encode: " + err.Error())
	}
	return doc
}

type checker struct{ faults []FieldError }

func (c *checker) fault(at, code, detail string) {
	c.faults = append(c.faults, FieldError{Pointer: at, Code: code, Detail: detail})
}

// object returns v if it is one, nil otherwise; keys that are not known are faults. No known keys: all are.
func (c *checker) object(at string, v any, known ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		c.fault(at, "type", "must be an object")
		return nil
	}
	for _, name := range sortedKeys(m) {
		if len(known) > 0 && !slices.Contains(known, name) {
			c.fault(at+"/"+escape(name), "unknown_field", "is not known here")
		}
	}
	return m
}

// amount accepts the digits of an integer and nothing that is only equal to one: 5000.0 and 5e3 come from programs
// that reckon money in floats.
func (c *checker) amount(at string, v any) int64 {
	n, ok := v.(json.Number)
	switch {
	case v == nil:
		c.fault(at, "required", "is missing")
		return 0
	case !ok:
		c.fault(at, "type", "must be an integer of minor units, not a string")
		return 0
	}
	if strings.Trim(n.String(), "0123456789") != "" {
		c.fault(at, "not_minor_units", "must be an integer of minor units, at least 0: digits only")
		return 0
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || i > maxAmount {
		c.fault(at, "too_large", fmt.Sprintf("must be at most %d", int64(maxAmount)))
		return 0
	}
	return i
}

func (c *checker) currency(at string, v any) string {
	s, ok := v.(string)
	switch {
	case v == nil:
		c.fault(at, "required", "is missing")
	case !ok:
		c.fault(at, "type", "must be a string")
	default:
		if _, known := order.Exponent(s); known {
			return s
		}
		c.fault(at, "unknown_currency", "must be an ISO 4217 code in upper case, like EUR")
	}
	return ""
}

func (c *checker) items(at string, v any) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.fault(at, "type", "must be an array of objects")
		return
	}
	if len(list) > maxItems {
		c.fault(at, "too_many", fmt.Sprintf("must have at most %d items", maxItems))
		return
	}
	for i, item := range list {
		c.object(at+"/"+strconv.Itoa(i), item)
	}
}

// reference returns metadata.external_ref. Absent, null and empty are one thing: none.
func (c *checker) reference(at string, meta any) string {
	m := c.object(at, meta)
	v := m["external_ref"]
	if v == nil {
		return ""
	}
	at += "/external_ref"
	ref, ok := v.(string)
	switch {
	case !ok:
		c.fault(at, "type", "must be a string")
	case len(ref) > order.MaxReference:
		c.fault(at, "too_long", fmt.Sprintf("must have at most %d bytes", order.MaxReference))
	case !order.IsPrintable(ref):
		c.fault(at, "not_printable", "must have printable characters only")
	case strings.TrimSpace(ref) != ref:
		c.fault(at, "not_trimmed", "must not begin or end with a space")
	default:
		return ref
	}
	return ""
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
