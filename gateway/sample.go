package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/paidonce/paidonce/order"
)

// SampleRequest asks for the body of one event. What is empty is derived from
// the rest, so equal requests give equal bytes, and the events of one payment
// (same Reference or Payment) name the same charge, refund and dispute.
type SampleRequest struct {
	Source Source // whose account, merchant account or map the event is for
	Type   string // one of [Gateway].Types

	// ID of the event. Adyen's events have none of their own, and standard's
	// stands in a header: hand it to [Gateway.SignID].
	ID        string
	Reference string // the merchant's reference; empty: the event carries none
	Payment   string // the gateway's id of the payment

	// Ref is the id of the refund, dispute or capture, where the type is about
	// one.
	Ref string

	// Amount is in minor units as ISO 4217 has them. No currency: 50.00 EUR.
	Amount order.Amount

	// Mode is "live" or "test". Default: the source's.
	Mode string

	// At is when it happened. Default: 2026-01-01T00:00:00Z.
	At time.Time

	// Set overwrites values of the finished payload, by path in the syntax of
	// github.com/tidwall/sjson ("data.object.status"); for adyen from the item,
	// except live, which belongs to the envelope. A value is JSON if it can be
	// read as JSON, else a string; numbers, true and false that take the place
	// of a string are strings too ("success").
	Set map[string]string
}

// withDefaults fills in what does not depend on the gateway.
func (r SampleRequest) withDefaults() SampleRequest {
	if r.Amount.Currency == "" {
		r.Amount = order.Amount{Minor: 5000, Currency: "EUR"}
	}
	if r.Mode == "" {
		r.Mode = r.Source.Mode
	}
	if r.At.IsZero() {
		r.At = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	r.At = r.At.UTC()
	return r
}

// paymentID is the id of the payment: the one asked for, else made of the
// reference, of n characters after the prefix.
func (r SampleRequest) paymentID(prefix string, n int) string {
	if r.Payment != "" {
		return r.Payment
	}
	return prefix + derive(n, "payment", r.Reference, r.Mode)
}

// refID is the id of the refund, dispute or capture: the one asked for, else made
// of the payment's.
func (r SampleRequest) refID(prefix string, n int, payment string) string {
	if r.Ref != "" {
		return r.Ref
	}
	return prefix + derive(n, prefix, payment)
}

// same is the path of a value to overwrite that a request names from the root.
func same(path string) string { return path }

// derive makes n characters that look like a gateway's id out of what it is
// derived from.
func derive(n int, from ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(from, "\x00")))
	return strings.ToUpper(hex.EncodeToString(sum[:]))[:n]
}

// exampleSecret is 32 characters of a secret that [Gateway].Example uses.
func exampleSecret(gateway, seed string) string {
	return strings.ToLower(derive(32, "secret of an example", gateway, seed))
}

// unknownSample is the answer to a type that the gateway has not.
func unknownSample(g, typ string, types []Type) error {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	return fmt.Errorf("gateway %s has no type %q; known: %s", g, typ, strings.Join(names, ", "))
}

// isScalar reports whether JSON text is a number, true or false.
func isScalar(text string) bool {
	switch gjson.Parse(text).Type {
	case gjson.Number, gjson.True, gjson.False:
		return true
	}
	return false
}

// render writes a payload, and puts in what the request sets.
func render(payload any, set map[string]string, path func(string) string) ([]byte, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		at, text := path(key), set[key]
		switch {
		case gjson.Valid(text) && (gjson.GetBytes(body, at).Type != gjson.String || !isScalar(text)):
			body, err = sjson.SetRawBytes(body, at, []byte(text))
		default:
			body, err = sjson.SetBytes(body, at, text)
		}
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", key, err)
		}
	}
	if !gjson.ValidBytes(body) {
		return nil, fmt.Errorf("the values set make no JSON of it")
	}
	return body, nil
}

// uuidOf makes a UUID (version 8, RFC 9562) out of what it is derived from.
func uuidOf(from ...string) string {
	h := strings.ToLower(derive(32, from...))
	return h[:8] + "-" + h[8:12] + "-8" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}
