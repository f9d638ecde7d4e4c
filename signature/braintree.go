package signature

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// braintree is Braintree's way: the body is a form with
//
//	bt_signature=public_key|a4c0eb…&other_key|…   bt_payload=PG5vdGlm…
//
// where the signature is HMAC-SHA-1 over the text of the payload, base64 with a
// line break at its end, and the key of the HMAC is SHA-1 of the private key. Some
// readers of forms lose the line break, so a payload is tried with one more, as
// Braintree's libraries do. Like them we look at the first signature under our
// public key and at no other.
//
// The endpoint also answers challenges with such an HMAC ([BraintreeChallenge]),
// which anybody may ask for: what looks like a challenge is never a payload.
type braintree struct {
	keys *keyring
}

const (
	braintreeSignature = "bt_signature"
	braintreePayload   = "bt_payload"
	formType           = "application/x-www-form-urlencoded"
)

// braintreePairs is how the signatures are listed.
var braintreePairs = syntax{sep: '&', cut: '|'}

func (f *braintree) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	fields, err := parseForm(string(req.Body))
	if err != nil {
		return err
	}
	list, payload := fields[braintreeSignature], fields[braintreePayload]
	switch {
	case list == "":
		return refuse(Missing, "no "+braintreeSignature)
	case payload == "":
		return refuse(Missing, "no "+braintreePayload)
	}
	if err := braintreeCheck(payload); err != nil {
		return err
	}
	if err := braintreePairs.check(list); err != nil {
		return err
	}
	var t tally
	return f.keys.match(secrets, &t, func(k *key) bool {
		return braintreeSigned(k, list, payload, &t) || braintreeSigned(k, list, payload+"\n", &t)
	})
}

// braintreeCheck refuses what cannot be a payload.
func braintreeCheck(payload string) *Error {
	for i := range len(payload) {
		if c := payload[i]; !base64Char(c) && c != '\n' {
			return refuse(Malformed, braintreePayload+" has a character that is not of base64")
		}
	}
	if challenge(strings.Trim(payload, "\n")) {
		return refuse(Malformed, braintreePayload+" is a challenge")
	}
	return nil
}

func base64Char(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}

// challenge reports whether s is a challenge: 20 to 32 digits of hexadecimal.
func challenge(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) >= 20 && len(s) <= 32
}

// braintreeSigned reports whether k made the signature listed under its name.
func braintreeSigned(k *key, list, payload string, t *tally) bool {
	m := k.mac()
	defer k.done(m)
	m.add(payload)
	want := m.digest()
	for list != "" {
		name, value, rest, ok := braintreePairs.next(list)
		list = rest
		if !ok || !equal([]byte(name), []byte(k.name)) {
			continue
		}
		t.seen = true
		n, decoded := lowerHex.decode(&m.got, value)
		t.formed = t.formed || decoded
		return decoded && equal(m.got[:n], want)
	}
	return false
}

// sign takes a form that has bt_payload, or the XML that is to be one.
func (f *braintree) sign(b []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	body := string(b)
	if strings.HasPrefix(body, "<") {
		body = setField(braintreeSignature+"=", braintreePayload, base64.StdEncoding.EncodeToString(b)+"\n")
	}
	fields, err := parseForm(body)
	if err != nil {
		return Signed{}, err
	}
	payload := fields[braintreePayload]
	if payload == "" {
		return Signed{}, refuse(Missing, "no "+braintreePayload)
	}
	if err := braintreeCheck(payload); err != nil {
		return Signed{}, err
	}
	h := http.Header{}
	h.Set("Content-Type", formType)
	return Signed{Header: h, Body: []byte(setField(body, braintreeSignature, k.pair(payload)))}, nil
}

// pair is "public_key|signature" of a text.
func (k *key) pair(text string) string {
	return k.name + "|" + lowerHex.encode(k.digestOf(func(_ *key, m *mac) { m.add(text) }))
}

func (f *braintree) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, wellText) }

// BraintreeChallenge returns what the endpoint answers to a GET with the parameter
// bt_challenge, which Braintree sends when the URL is saved: "public_key|digest",
// as text. The secret is "public_key:private_key". A challenge that is not one is
// Malformed: others must not have anything signed.
func BraintreeChallenge(secret, text string) (string, error) {
	answer, err := answerBraintree(secret, text)
	if err != nil {
		err.Scheme = "braintree"
		return "", err
	}
	return answer, nil
}

func answerBraintree(secret, text string) (string, *Error) {
	if secret == "" {
		return "", refuse(NoSecret, "no secret to answer with")
	}
	k := braintreeKey(secret)
	if k.bad != "" {
		return "", refuse(BadSecret, k.bad)
	}
	if !challenge(text) {
		return "", refuse(Malformed, "not a challenge")
	}
	return k.pair(text), nil
}

// braintreeKey takes "public_key:private_key".
func braintreeKey(secret string) *key {
	public, private, ok := strings.Cut(secret, ":")
	if !ok || public == "" || private == "" || strings.ContainsAny(public, "|&") {
		return badKey("want public_key:private_key, the two API keys with a colon between them")
	}
	sum := sha1.Sum([]byte(private))
	k := hmacKey("", sha1.New, sum[:])
	k.name = public
	return k
}
