package bank

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// fields are members of a JSON object.
type fields = map[string]any

// encode writes JSON. What the bank writes can be written.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bank: %v", err))
	}
	return text
}

// answer is an answer of JSON.
func answer(status int, v any) reply { return reply{status: status, body: encode(v)} }

// with adds a header to an answer.
func (r reply) with(name, value string) reply {
	header := map[string]string{name: value}
	for n, v := range r.header {
		if n != name {
			header[n] = v
		}
	}
	r.header = header
	return r
}

// derive makes n characters of [0-9A-F] out of what they are derived from, so that ids do not depend on what else happens.
func derive(n int, from ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(from, "\x00")))
	return strings.ToUpper(hex.EncodeToString(sum[:]))[:n]
}

// digits makes n digits, the first not 0.
func digits(n int, from ...string) string {
	text := []byte(derive(n, from...))
	for i, c := range text {
		if c >= 'A' {
			text[i] = '1' + c - 'A'
		}
	}
	if text[0] == '0' {
		text[0] = '9'
	}
	return string(text)
}

// major is an amount in major units, with all decimals of its currency.
func major(minor int64, currency string) string { return order.Format(minor, currency) }

// or is text, or null where there is none.
func or(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// raw is JSON that is written already.
func raw(text []byte) json.RawMessage { return text }

// theirs is an amount in the minor units of a gateway whose exponents differ.
func theirs(exponents map[string]int, a order.Amount) int64 {
	n, shift := a.Minor, 0
	if e, differs := exponents[a.Currency]; differs {
		iso, _ := order.Exponent(a.Currency)
		shift = e - iso
	}
	for ; shift > 0; shift-- {
		n *= 10
	}
	for ; shift < 0; shift++ {
		n /= 10
	}
	return n
}

// ours is the reverse of theirs; ok is false for what has no such amount in ISO 4217.
func ours(exponents map[string]int, n int64, currency string) (minor int64, ok bool) {
	if one := theirs(exponents, order.Amount{Minor: 1000, Currency: currency}); one > 1000 {
		minor = n / (one / 1000)
	} else {
		minor = n * (1000 / one)
	}
	return minor, theirs(exponents, order.Amount{Minor: minor, Currency: currency}) == n
}
