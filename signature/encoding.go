package signature

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// maxDigest is the longest digest or signature that a header carries, in bytes:
// SHA-512 and Ed25519 have 64.
const maxDigest = 64

// encoding is how a digest is written.
type encoding uint8

const (
	hexText    encoding = iota // hexadecimal, either case
	lowerHex                   // hexadecimal, lower case alone
	base64Text                 // standard alphabet, padded
)

var strictBase64 = base64.StdEncoding.Strict()

// decode writes the bytes that s stands for to dst and returns how many there
// are; ok is false if s is empty, too long, or not exactly in this encoding. It
// allocates nothing.
func (e encoding) decode(dst *[maxDigest]byte, s string) (n int, ok bool) {
	var text [2 * maxDigest]byte
	if s == "" || len(s) > len(text) {
		return 0, false
	}
	src := text[:copy(text[:], s)]
	if e != base64Text {
		n, err := hex.Decode(dst[:], src)
		return n, err == nil && (e != lowerHex || !hasUpper(s))
	}
	if base64.StdEncoding.DecodedLen(len(s)) > maxDigest+2 || hasBreak(s) {
		return 0, false
	}
	var room [maxDigest + 2]byte // a padded text may need two bytes more than it decodes to
	n, err := strictBase64.Decode(room[:], src)
	if err != nil || n > maxDigest {
		return 0, false
	}
	return copy(dst[:], room[:n]), true
}

// encode is the reverse of decode; hexadecimal is in lower case.
func (e encoding) encode(digest []byte) string {
	if e != base64Text {
		return hex.EncodeToString(digest)
	}
	return base64.StdEncoding.EncodeToString(digest)
}

// maxSignature is the longest signature of a public key that we decode, in bytes
// of its text: RSA with 8192 bits has 1368.
const maxSignature = 2048

// decodeAny is decode for the signature of a public key, which may be long.
func (e encoding) decodeAny(s string) ([]byte, bool) {
	if s == "" || len(s) > maxSignature {
		return nil, false
	}
	if e != base64Text {
		b, err := hex.DecodeString(s)
		return b, err == nil
	}
	return decodeBase64(s)
}

// decodeBase64 decodes a key or a credential of any length, as strictly.
func decodeBase64(s string) ([]byte, bool) {
	if hasBreak(s) {
		return nil, false
	}
	b, err := strictBase64.DecodeString(s)
	return b, err == nil
}

// hasUpper reports whether s has an upper-case letter of ASCII.
func hasUpper(s string) bool {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// hasBreak reports whether s holds a line break: package base64 skips them even
// when strict.
func hasBreak(s string) bool {
	return strings.IndexByte(s, '\n') >= 0 || strings.IndexByte(s, '\r') >= 0
}
