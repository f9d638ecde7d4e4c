package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	canon "github.com/paidonce/paidonce/idempotency/canonical"
)

// Bounds of a body: how deep it nests, and how long its numbers are.
const (
	maxDepth    = 32
	maxDigits   = 64
	maxExponent = 300
)

// parse reads one JSON value exactly, numbers as their text. Whatever two readers could read in two ways is refused, as the
// fingerprint of an Idempotency-Key refuses it. Its problem is a 400 for what is not JSON, and a 422 with the place for what is
// refused.
func parse(body []byte) (any, *Problem) {
	if _, err := canon.JSON(body); err != nil {
		return nil, notJSON(err)
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(body))}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	switch {
	case errors.Is(err, errTooDeep):
		return nil, problemf(CodeInvalidJSON, "The body nests more than %d levels deep.", maxDepth)
	case err != nil: // nothing but an empty body passes the one reader and not the other
		return nil, problem(CodeInvalidJSON, "The body is empty.")
	}
	if len(p.faults) > 0 {
		return nil, invalid(p.faults)
	}
	return v, nil
}

func notJSON(err error) *Problem {
	var at *canon.SyntaxError
	if !errors.As(err, &at) {
		return problem(CodeInvalidJSON, "The body is not one JSON value.")
	}
	if at.Reason == canon.DuplicateName {
		return invalid([]FieldError{{Pointer: at.Pointer, Code: "duplicate", Detail: "stands there twice"}})
	}
	p := problemf(CodeInvalidJSON, "The body is not one JSON value: see byte %d.", at.Offset)
	p.Errors = []FieldError{{Pointer: at.Pointer, Code: string(at.Reason), Detail: at.Error()}}
	return p
}

type parser struct {
	dec    *json.Decoder
	faults []FieldError
}

var errTooDeep = errors.New("nested too deeply")

func (p *parser) value(at string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(at, depth)
		}
		return p.array(at, depth)
	case string:
		p.text(at, t)
		return t, nil
	case json.Number:
		p.number(at, t.String())
		return t, nil
	default:
		return t, nil // bool, nil
	}
}

func (p *parser) object(at string, depth int) (any, error) {
	m := map[string]any{}
	for p.dec.More() {
		tok, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := tok.(string)
		if !ok {
			return nil, errors.New("an object key that is no string")
		}
		where := at + "/" + escape(name)
		p.text(where, name)
		if m[name], err = p.value(where, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := p.dec.Token()
	return m, err
}

func (p *parser) array(at string, depth int) (any, error) {
	list := []any{}
	for p.dec.More() {
		v, err := p.value(fmt.Sprintf("%s/%d", at, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.dec.Token()
	return list, err
}

// text refuses what Postgres cannot hold.
func (p *parser) text(at, s string) {
	if strings.IndexByte(s, 0) >= 0 {
		p.faults = append(p.faults, FieldError{Pointer: at, Code: "invalid_text", Detail: "holds a NUL character"})
	}
}

// number refuses what the jsonb of Postgres would spell out, or cannot hold: it has no exponents.
func (p *parser) number(at, s string) {
	digits, exponent := s, 0
	var err error
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		digits = s[:i]
		exponent, err = strconv.Atoi(s[i+1:])
	}
	if err != nil || max(exponent, -exponent) > maxExponent || len(digits) > maxDigits {
		p.faults = append(p.faults, FieldError{
			Pointer: at, Code: "number_too_long",
			Detail: fmt.Sprintf("must have at most %d digits, and an exponent within ±%d", maxDigits, maxExponent),
		})
	}
}

// escape is a key as a part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
