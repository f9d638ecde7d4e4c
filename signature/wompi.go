package signature

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// wompi is the way of Wompi (Colombia): the body is
//
//	{"data":{"transaction":{…}},"timestamp":1530291411,
//	 "signature":{"properties":["transaction.id","transaction.status",
//	  "transaction.amount_in_cents"],"checksum":"5a18…"}}
//
// and the checksum is SHA-256 over the values of the listed properties, in the
// order of the list, then the timestamp, then the secret. The list itself is not
// covered, and nothing stands between the values. So the list must have at least
// these three, none twice; the time must have ten digits, and the status be a
// word, or digits could move from one value to the next. Reference and currency
// are not covered.
type wompi struct {
	keys *keyring
}

const (
	wompiStatus   = "transaction.status"
	wompiChecksum = "checksum"
)

// wompiRequired are the properties that must be covered.
var wompiRequired = []string{"transaction.id", wompiStatus, "transaction.amount_in_cents"}

// wompiHeader repeats the checksum. It may be missing, and must not differ.
var wompiHeader = field{name: "X-Event-Checksum"}

// wompiBody is what matters of a body.
type wompiBody struct {
	doc           document
	root          span
	signature     span // the object
	properties    span // the list
	checksum      span
	message       string
	hasProperties bool
}

func (f *wompi) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	b, err := wompiRead(req.Body, false)
	if err != nil {
		return err
	}
	sig, err := requiredText(b.doc, b.checksum, wompiChecksum)
	if err != nil {
		return err
	}
	repeated, err := wompiHeader.optional(req.Header)
	if err != nil {
		return err
	}
	if repeated != "" && !strings.EqualFold(repeated, sig) {
		return refuse(Ambiguous, wompiHeader.name+" and the checksum in the body differ")
	}
	return f.keys.matchDigest(secrets, hexText, []string{sig}, func(_ *key, m *mac) { m.add(b.message) })
}

// wompiRead reads a body; without a list of properties it takes the required ones
// if it is to be signed.
func wompiRead(body []byte, signing bool) (b wompiBody, err *Error) {
	doc, top, err := flatObject(body, anyCase, "data", "signature", "timestamp")
	if err != nil {
		return b, err
	}
	b = wompiBody{doc: doc, root: doc.root(), signature: top["signature"]}
	if doc.null(b.signature) && !signing {
		return b, refuse(Missing, "no signature")
	}
	properties := wompiRequired
	if !doc.null(b.signature) {
		own, err := doc.members(b.signature, anyCase, "properties", wompiChecksum)
		if err != nil {
			return b, err
		}
		b.checksum, b.properties = own[wompiChecksum], own["properties"]
		if b.hasProperties = !doc.null(b.properties); b.hasProperties || !signing {
			if properties, err = wompiProperties(doc, b.properties); err != nil {
				return b, err
			}
		}
	}
	for _, path := range properties {
		v, err := wompiValue(doc, top["data"], path)
		if err != nil {
			return b, err
		}
		b.message += v
	}
	at := top["timestamp"]
	if doc.null(at) {
		return b, refuse(Missing, "no timestamp")
	}
	text := string(doc.bytes(at))
	if !shaped(text, "0000000000") || text[0] == '0' {
		return b, refuse(Malformed, "the timestamp does not have ten digits")
	}
	b.message += text
	return b, nil
}

// wompiProperties reads the list of paths.
func wompiProperties(doc document, at span) ([]string, *Error) {
	if doc.kind(at) != '[' {
		return nil, refuse(Missing, "no list of properties")
	}
	var paths []string
	for _, e := range doc.elements(at) {
		path, ok := doc.text(e)
		switch {
		case !ok || path == "" || len(paths) == MaxElements:
			return nil, refuse(Malformed, "the list of properties cannot be read")
		case slices.Contains(paths, path):
			return nil, refuse(Ambiguous, "a property is listed twice")
		}
		paths = append(paths, path)
	}
	for _, path := range wompiRequired {
		if !slices.Contains(paths, path) {
			return nil, refuse(Missing, path+" is not among the signed properties")
		}
	}
	return paths, nil
}

// wompiValue is the value at a path under data as it is signed.
func wompiValue(doc document, at span, path string) (string, *Error) {
	for name := range strings.SplitSeq(path, ".") {
		own, err := doc.members(at, anyCase, name)
		if err != nil {
			return "", err
		}
		at = own[name]
	}
	text, isText := doc.text(at)
	switch kind := doc.kind(at); {
	case isText:
		if path == wompiStatus && (text == "" || !plainName(text) || strings.ContainsAny(text, "0123456789")) {
			return "", refuse(Malformed, path+" is not a word")
		}
		return text, nil
	case doc.null(at):
		return "", refuse(Missing, "a signed property is not there")
	case kind == '{' || kind == '[' || path == wompiStatus:
		return "", refuse(Malformed, "a signed property is of another kind")
	case kind != 't' && kind != 'f' && !integer(string(doc.bytes(at))):
		return "", refuse(Malformed, "a signed property is a number that is no integer")
	}
	return string(doc.bytes(at)), nil
}

func (f *wompi) sign(body []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	b, err := wompiRead(body, true)
	if err != nil {
		return Signed{}, err
	}
	sig := hexText.encode(k.digestOf(func(_ *key, m *mac) { m.add(b.message) }))
	h := http.Header{}
	h.Set(wompiHeader.name, sig)
	list := `["` + strings.Join(wompiRequired, `","`) + `"]`
	if text := `"` + sig + `"`; b.hasProperties {
		body = b.doc.put(b.signature, b.checksum, wompiChecksum, text)
	} else {
		body = b.doc.put(b.root, b.signature, "signature", `{"properties":`+list+`,"`+wompiChecksum+`":`+text+`}`)
	}
	return Signed{Header: h, Body: body}, nil
}

func (f *wompi) checkSecret(secret string) *Error {
	return f.keys.wellFormed(secret, wellNot("the events secret, prod_events_… or test_events_…",
		"pub_prod_", "pub_test_", "prv_prod_", "prv_test_", "prod_integrity_", "test_integrity_"))
}
