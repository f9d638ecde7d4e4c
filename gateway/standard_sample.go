package gateway

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// sampleStandard makes a body in the convention of the specification (type,
// timestamp, data) with everything where the source's map looks for it.
func sampleStandard(r SampleRequest) ([]byte, error) {
	m := r.Source.Map
	if m == nil {
		return nil, errors.New("the source has no map")
	}
	if _, ok := m.Facts[r.Type]; !ok {
		return nil, unknownSample("standard", r.Type, standardNames(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("pay_", 24)
	type at struct {
		pointer string
		value   any
	}
	places := []at{
		{"/id", r.ID},
		{"/timestamp", r.At.Format(time.RFC3339)},
		{m.Type, r.Type},
		{m.Amount, n},
		{m.Currency, r.Amount.Currency},
		{m.Payment, payment},
	}
	if r.Reference != "" {
		ref := m.Reference
		if r.Source.Reference != "" {
			ref = r.Source.Reference
		}
		// Payment and reference may be one place; the reference is what was asked for.
		places = append(places, at{ref, r.Reference})
	}
	body := []byte("{}")
	for _, p := range places {
		if p.pointer == "" || p.value == "" {
			continue
		}
		if body, err = sjson.SetBytes(body, sjsonPath(p.pointer), p.value); err != nil {
			return nil, err
		}
	}
	return render(json.RawMessage(body), r.Set, func(path string) string { return path })
}

// sjsonPath writes a JSON pointer as a path of package sjson.
func sjsonPath(pointer string) string {
	var path []string
	for rest := pointer; rest != ""; {
		var token string
		token, rest = nextToken(rest)
		path = append(path, gjson.Escape(token))
	}
	return strings.Join(path, ".")
}
