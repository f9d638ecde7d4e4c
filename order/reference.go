package order

import (
	"strings"
	"unicode"
)

// MaxReference bounds a merchant's reference, in bytes: gateways carry at most 500 characters of metadata.
const MaxReference = 255

// IsReference reports whether an order can be registered under s: 1 to [MaxReference] bytes of printable text without
// a space at either end. What a webhook names otherwise is no reference: it would make an order that nobody can register.
func IsReference(s string) bool {
	return s != "" && len(s) <= MaxReference && IsPrintable(s) && strings.TrimSpace(s) == s
}

// IsPrintable reports whether s is text that a person can read: no control characters, nothing that is not UTF-8.
func IsPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}
