package idempotency

import (
	"errors"
	"strings"
)

// HeaderKey is the request header that carries the key.
const HeaderKey = "Idempotency-Key"

// maxKey is the longest key, in bytes, once unquoted.
const maxKey = 255

// Why a key is refused. The texts are shown to the caller.
var (
	errKeyTwice   = errors.New("the header must be sent once")
	errKeyEmpty   = errors.New("the key is empty")
	errKeyLong    = errors.New("the key is longer than 255 characters")
	errKeyChar    = errors.New("the key must be of printable ASCII characters")
	errKeyComma   = errors.New("an unquoted key must have no comma and no quotation mark")
	errKeyQuoting = errors.New("the key is not a well-formed quoted string, or something follows it")
)

// parseKey reads the values of the header. A key may be sent bare, as most APIs show it (550e8400-…), or as a String of RFC 8941
// ("550e8400-…"), as the IETF's draft wants it: both name the same key. Case is significant.
func parseKey(values []string) (string, error) {
	if len(values) != 1 {
		return "", errKeyTwice
	}
	v := strings.Trim(values[0], " \t")
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return "", errKeyChar
		}
	}
	if strings.HasPrefix(v, `"`) {
		var err error
		if v, err = unquote(v); err != nil {
			return "", err
		}
	} else if strings.ContainsAny(v, `,"`) {
		return "", errKeyComma // a list, or a quotation that went wrong: two keys must not become one
	}
	switch {
	case strings.Trim(v, " ") == "":
		return "", errKeyEmpty
	case len(v) > maxKey:
		return "", errKeyLong
	}
	return v, nil
}

// unquote reads an sf-string without parameters.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i != len(s)-1 {
				return "", errKeyQuoting
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", errKeyQuoting
			}
		}
		b.WriteByte(s[i])
	}
	return "", errKeyQuoting
}
