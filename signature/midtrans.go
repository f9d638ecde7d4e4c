package signature

import (
	"net/http"
	"strings"
	"time"
)

// midtrans is the way of Midtrans's HTTP notifications: the body is a JSON object
// with the member signature_key, which is
//
//	SHA-512(order_id + status_code + gross_amount + server key)
//
// over the strings as they stand in the body. Neither transaction_status nor
// fraud_status is covered, and nothing stands between the parts: an order "a1"
// with the status "200" reads like "a" with "120…". A status of three digits and
// an amount in its one form leave little room for that; what grants money is better
// fetched.
type midtrans struct {
	keys *keyring
}

const midtransSignature = "signature_key"

// midtransFields are the signed members, in their order, and how each must look.
var midtransFields = [...]struct {
	name string
	ok   func(string) bool
}{
	{"order_id", func(s string) bool { return s != "" }},
	{"status_code", func(s string) bool { return shaped(s, "000") && s[0] >= '2' && s[0] <= '5' }},
	{"gross_amount", plainDecimal},
}

func (f *midtrans) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	doc, top, message, err := midtransRead(req.Body)
	if err != nil {
		return err
	}
	sig, err := requiredText(doc, top[midtransSignature], midtransSignature)
	if err != nil {
		return err
	}
	return f.keys.matchDigest(secrets, hexText, []string{sig}, func(_ *key, m *mac) { m.add(message) })
}

func midtransRead(body []byte) (doc document, top map[string]span, message string, err *Error) {
	doc, top, err = flatObject(body, anyCase, midtransFields[0].name, midtransFields[1].name, midtransFields[2].name, midtransSignature)
	if err != nil {
		return nil, nil, "", err
	}
	for _, f := range midtransFields {
		text, err := requiredText(doc, top[f.name], f.name)
		if err != nil {
			return nil, nil, "", err
		}
		if !f.ok(text) {
			return nil, nil, "", refuse(Malformed, f.name+" is of another form")
		}
		message += text
	}
	return doc, top, message, nil
}

func (f *midtrans) sign(b []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	doc, top, message, err := midtransRead(b)
	if err != nil {
		return Signed{}, err
	}
	sig := hexText.encode(k.digestOf(func(_ *key, m *mac) { m.add(message) }))
	return Signed{Header: http.Header{}, Body: doc.put(doc.root(), top[midtransSignature], midtransSignature, `"`+sig+`"`)}, nil
}

func (f *midtrans) checkSecret(secret string) *Error {
	return f.keys.wellFormed(secret, wellNot("the server key", "SB-Mid-client-", "Mid-client-"))
}

// requiredText is the value of a member that must be a string with something in it.
func requiredText(doc document, at span, name string) (string, *Error) {
	if doc.null(at) {
		return "", refuse(Missing, "no "+name)
	}
	text, ok := doc.text(at)
	switch {
	case !ok:
		return "", refuse(Malformed, name+" is not a string")
	case text == "":
		return "", refuse(Missing, "no "+name)
	}
	return text, nil
}

// plainDecimal reports whether s is a decimal number without sign, exponent or
// leading zeros: 0, 10, 10.00.
func plainDecimal(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	return digits(whole) && (whole == "0" || whole[0] != '0') && (!point || digits(fraction))
}

// digits reports whether s is made of decimal digits alone, one at least.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
