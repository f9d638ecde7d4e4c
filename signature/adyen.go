package signature

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// adyenItems is the family of Adyen's standard notifications:
//
//	{"live":"true","notificationItems":[{"NotificationRequestItem":{
//	  "additionalData":{"hmacSignature":"ipnx…"},
//	  "amount":{"currency":"EUR","value":1000}, "eventCode":"AUTHORISATION", …}}]}
//
// Each item is signed by itself: HMAC-SHA-256 over eight of its fields joined by
// colons, with nothing escaped, as Adyen's current libraries do it. All items
// are checked, and one that fails refuses the delivery; a delivery without items
// is refused too. The other fields of an item and the envelope are not signed.
//
// The text must be readable in one way only, for us and for what reads the body
// after us:
//
//   - a key that is found twice in an object on the way to a signed field is
//     refused, also in another case, for package encoding/json finds those too;
//   - a colon may stand in merchantReference alone: between three fields before
//     it and four after it that have none, its end is certain;
//   - amount.value is an integer written as one (1000; not "1000", 1e3, 1000.0),
//     the other fields are strings. An absent field, or null, is signed as the
//     empty string.
type adyenItems struct {
	keys *keyring
}

// The keys on the way to the signed fields.
const (
	adyenList      = "notificationItems"
	adyenWrapper   = "NotificationRequestItem"
	adyenAmount    = "amount"
	adyenData      = "additionalData"
	adyenSignature = "hmacSignature"
)

// adyenFields are the signed fields, in their order.
var adyenFields = [...]struct {
	name   string
	amount bool // it is in the object "amount"
	number bool // it is an integer; the others are strings
	colon  bool // it may hold a colon
}{
	{name: "pspReference"},
	{name: "originalReference"},
	{name: "merchantAccountCode"},
	{name: "merchantReference", colon: true},
	{name: "value", amount: true, number: true},
	{name: "currency", amount: true},
	{name: "eventCode"},
	{name: "success"},
}

// adyenItemKeys are the keys of an item that matter here, adyenAmountKeys those
// of its amount.
var adyenItemKeys, adyenAmountKeys = func() (item, amount []string) {
	item = []string{adyenAmount, adyenData}
	for _, f := range adyenFields {
		if f.amount {
			amount = append(amount, f.name)
		} else {
			item = append(item, f.name)
		}
	}
	return item, amount
}()

// adyenItem is what matters of one item.
type adyenItem struct {
	fields    [len(adyenFields)]string
	signature string

	// To sign: what to replace in the body, and what to put around the digest.
	at            span
	before, after string
}

func (f *adyenItems) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	return eachAdyenItem(req.Body, func(item *adyenItem) *Error {
		return f.verifyItem(item, secrets)
	})
}

func (f *adyenItems) verifyItem(item *adyenItem, secrets []string) *Error {
	if item.signature == "" {
		return refuse(Missing, "no "+adyenSignature)
	}
	var got [maxDigest]byte
	n, formed := base64Text.decode(&got, item.signature)
	t := tally{seen: true, formed: formed}
	return f.keys.match(secrets, &t, func(k *key) bool {
		m := k.mac()
		defer k.done(m)
		return formed && equal(item.digest(m), got[:n])
	})
}

// digest is the HMAC of the item.
func (item *adyenItem) digest(m *mac) []byte {
	for i, v := range item.fields {
		if i > 0 {
			m.add(":")
		}
		m.add(v)
	}
	return m.digest()
}

// sign puts a signature into every item of body, in the place of the one that is
// there. All other bytes stay as they are.
func (f *adyenItems) sign(body []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	signed := make([]byte, 0, len(body)+len(body)/4)
	from := 0
	err = eachAdyenItem(body, func(item *adyenItem) *Error {
		m := k.mac()
		defer k.done(m)
		signed = append(signed, body[from:item.at.start]...)
		signed = append(signed, item.before+`"`+base64Text.encode(item.digest(m))+`"`+item.after...)
		from = item.at.end
		return nil
	})
	if err != nil {
		return Signed{}, err
	}
	return Signed{Header: http.Header{}, Body: append(signed, body[from:]...)}, nil
}

func (f *adyenItems) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, nil) }

// eachAdyenItem reads the items of a notification, at least one, one after
// another, and stops at the first that is refused: a forged delivery costs one
// item.
func eachAdyenItem(body []byte, visit func(*adyenItem) *Error) *Error {
	if !utf8.Valid(body) || !json.Valid(body) {
		return refuse(Malformed, "the body is not JSON in UTF-8")
	}
	doc := document(body)
	top, err := doc.members(doc.root(), anyCase, adyenList)
	if err != nil {
		return err
	}
	list := top[adyenList]
	if doc.null(list) {
		return refuse(Missing, "no "+adyenList)
	}
	if doc.kind(list) != '[' {
		return refuse(Malformed, adyenList+" is not a list")
	}
	elements := doc.elements(list)
	if len(elements) == 0 {
		return refuse(Missing, adyenList+" is empty")
	}
	for i, e := range elements {
		var item adyenItem
		wrapper, err := doc.members(e, anyCase, adyenWrapper)
		if err == nil {
			err = item.parse(doc, wrapper[adyenWrapper])
		}
		if err == nil {
			err = visit(&item)
		}
		if err != nil {
			return inItem(i, len(elements), err)
		}
	}
	return nil
}

// parse reads one NotificationRequestItem.
func (item *adyenItem) parse(doc document, at span) *Error {
	own, err := doc.members(at, anyCase, adyenItemKeys...)
	if err != nil {
		return err
	}
	var amount map[string]span
	if !doc.null(own[adyenAmount]) {
		if amount, err = doc.members(own[adyenAmount], anyCase, adyenAmountKeys...); err != nil {
			return err
		}
	}
	for i, f := range adyenFields {
		v := own[f.name]
		if f.amount {
			v = amount[f.name]
		}
		text, err := adyenText(doc, v, f.number)
		if err != nil {
			return refuse(err.Reason, f.name+": "+err.Detail)
		}
		if !f.colon && strings.IndexByte(text, ':') >= 0 {
			return refuse(Ambiguous, f.name+" has a colon")
		}
		item.fields[i] = text
	}
	return item.parseData(doc, at, own[adyenData])
}

// parseData finds the signature in additionalData, and where Sign puts one.
func (item *adyenItem) parseData(doc document, at, dataAt span) *Error {
	switch {
	case doc.kind(dataAt) == 0: // a new first member of the item
		item.at = span{at.start + 1, at.start + 1}
		item.before, item.after = `"`+adyenData+`":{"`+adyenSignature+`":`, `}`+doc.comma(at)
		return nil
	case doc.null(dataAt):
		item.at = dataAt
		item.before, item.after = `{"`+adyenSignature+`":`, `}`
		return nil
	}
	data, err := doc.members(dataAt, exactCase, adyenSignature)
	if err != nil {
		return err
	}
	sig := data[adyenSignature]
	if doc.kind(sig) == 0 { // a new first member of additionalData
		item.at = span{dataAt.start + 1, dataAt.start + 1}
		item.before, item.after = `"`+adyenSignature+`":`, doc.comma(dataAt)
		return nil
	}
	item.at = sig
	item.signature, err = adyenText(doc, sig, false)
	return err
}

// adyenText is the value of a field as it is signed.
func adyenText(doc document, v span, number bool) (string, *Error) {
	if doc.null(v) {
		return "", nil
	}
	if number {
		text := string(doc.bytes(v))
		if !integer(text) {
			return "", refuse(Malformed, "not an integer")
		}
		return text, nil
	}
	text, ok := doc.text(v)
	if !ok {
		return "", refuse(Malformed, "not a string")
	}
	return text, nil
}

// integer reports whether s, a JSON value, is an integer written in the one way:
// no fraction, no exponent, no minus zero.
func integer(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits != "" && s != "-0"
}

// inItem says which item of the delivery an error is about.
func inItem(i, n int, err *Error) *Error {
	if n > 1 {
		where := "item " + strconv.Itoa(i+1) + " of " + strconv.Itoa(n)
		if err.Detail != "" {
			where += ": " + err.Detail
		}
		err.Detail = where
	}
	return err
}
