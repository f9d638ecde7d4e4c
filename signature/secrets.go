package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
)

// The forms in which gateways hand out keys. Each returns a function that makes
// a key of a secret; what it says about a bad one never shows it.

// textKey takes the text of the secret as the key.
func textKey(label string, h func() hash.Hash) func(string) *key {
	return func(secret string) *key {
		if secret == "" {
			return badKey("the secret is empty")
		}
		return hmacKey(label, h, []byte(secret))
	}
}

// hexKey takes a key of size bytes written in hexadecimal, in either case.
func hexKey(label string, h func() hash.Hash, size int) func(string) *key {
	bad := "want " + strconv.Itoa(2*size) + " hexadecimal digits"
	return func(secret string) *key {
		b, err := hex.DecodeString(secret)
		if err != nil || len(b) != size {
			return badKey(bad)
		}
		return hmacKey(label, h, b)
	}
}

// frontKey hashes the secret, sep and the message, without HMAC.
func frontKey(sep string, h func() hash.Hash) func(string) *key {
	return func(secret string) *key {
		if secret == "" {
			return badKey("the secret is empty")
		}
		return hashKey("", h, secret+sep)
	}
}

// endKey hashes the message and then the secret, without HMAC.
func endKey(h func() hash.Hash) func(string) *key {
	return func(secret string) *key {
		if secret == "" {
			return badKey("the secret is empty")
		}
		k := hashKey("", h, "")
		k.end = secret
		return k
	}
}

// loginKey takes "login:secret": the text of the secret is the key, the login is
// what the sender calls us, and part of the message.
func loginKey(secret string) *key {
	login, text, ok := strings.Cut(secret, ":")
	if !ok || login == "" || text == "" {
		return badKey("want x_login:secret_key, the X-Login and the secret key with a colon between them")
	}
	k := hmacKey("", sha256.New, []byte(text))
	k.name, k.text = login, login
	return k
}

// wellStripe is what CheckSecret asks of a Stripe secret.
func wellStripe(secret string) string {
	switch {
	case !visible(secret):
		return "it has a space, a line break or another character that Stripe does not use"
	case !strings.HasPrefix(secret, secretPrefix) || len(secret) == len(secretPrefix):
		return `the signing secret of a Stripe endpoint begins with "whsec_"`
	default:
		return ""
	}
}

// visible reports whether s is made of visible ASCII characters alone.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// The prefixes of Standard Webhooks keys.
const (
	secretPrefix  = "whsec_"
	publicPrefix  = "whpk_"
	privatePrefix = "whsk_"
)

// minStandardKey is the shortest HMAC key we take, in bytes. The specification
// asks for 24 to 64; its libraries take any, so there are senders with less. 16
// bytes is what nobody can guess.
const minStandardKey = 16

// standardKey makes the key of a Standard Webhooks secret:
//
//   - "whpk_" and the base64 of the 32 bytes of an Ed25519 public key checks v1a;
//   - "whsec_" (may be left out) and the base64 of the bytes of an HMAC key makes
//     and checks v1. The text itself is never the key, as it is at Stripe;
//   - "whsk_" and the base64 of an Ed25519 private key, either the 32 bytes of its
//     seed or the 64 of seed and public key (Svix), makes v1a. It verifies
//     nothing: a receiver that holds it can forge.
//
// The prefix of a public key is what tells it from an HMAC key, so it may never be
// left out: somebody who knows the public key could sign with it.
func standardKey(secret string) *key {
	if text, ok := strings.CutPrefix(secret, publicPrefix); ok {
		b, ok := decodeBase64(text)
		switch {
		case ok && len(b) == ed25519.PublicKeySize:
			return &key{label: "v1a", verify: func(msg, sig []byte) bool {
				return len(sig) == ed25519.SignatureSize && ed25519.Verify(b, msg, sig)
			}}
		case ok && len(b) == ed25519.PrivateKeySize:
			return badKey("whpk_ with 64 bytes is a private key under the wrong name; the public key is its last 32 bytes")
		default:
			return badKey("want whpk_ and the base64 of 32 bytes")
		}
	}
	if text, ok := strings.CutPrefix(secret, privatePrefix); ok {
		return privateKey(text)
	}
	b, ok := decodeBase64(strings.TrimPrefix(secret, secretPrefix))
	switch {
	case !ok:
		return badKey("want whsec_ and base64 (standard alphabet, padded), or whpk_ and base64")
	case len(b) < minStandardKey:
		return badKey("the key is shorter than " + strconv.Itoa(minStandardKey) + " bytes")
	default:
		return hmacKey("v1", sha256.New, b)
	}
}

func privateKey(text string) *key {
	b, ok := decodeBase64(text)
	if !ok || len(b) != ed25519.SeedSize && len(b) != ed25519.PrivateKeySize {
		return badKey("want whsk_ and the base64 of 32 or 64 bytes")
	}
	k := badKey("whsk_ is the sender's private key; a receiver needs the public one, whpk_")
	k.label = "v1a"
	private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
	if len(b) == ed25519.PrivateKeySize && !equal(private, b) {
		return badKey("the two halves of the whsk_ key do not belong together")
	}
	k.sign = func(msg []byte) ([]byte, error) { return ed25519.Sign(private, msg), nil }
	return k
}

// checkID reports whether an id of Standard Webhooks is one, and whether
// "id.time.body" can be read in one way only. The specification wants ids without
// a full stop, for with one the same bytes, and so the same signature, may be
// another id with another time and body. Only a part of digits can be taken for
// a time, so only such parts are refused.
func checkID(s string) *Error {
	if !visible(s) {
		return refuse(Malformed, "the id has a space or an unprintable character")
	}
	_, rest, more := strings.Cut(s, ".")
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, ".")
		if _, ok := plainNumber(segment); ok {
			return refuse(Ambiguous, "a part of the id can be taken for the time")
		}
	}
	return nil
}

// checkBarID is checkID for a message that goes on with a vertical bar and a date.
func checkBarID(s string) *Error {
	if !visible(s) || strings.IndexByte(s, '|') >= 0 {
		return refuse(Malformed, "the id has a space, a vertical bar or an unprintable character")
	}
	return nil
}
