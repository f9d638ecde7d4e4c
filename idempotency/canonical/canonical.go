// Package canonical says whether two request bodies ask for the same thing.
//
// [JSON] reads a JSON text strictly, and gives it one spelling: two texts have the same [Document.Sum] exactly if they denote
// the same value. [Body] does so for a request's body of any media type. [Document.Digests] and [Differences] tell afterwards
// where two documents differ, when the first of them is long gone and only digests of it were kept.
//
// # The same value
//
// White space, the order of an object's members, and the spelling of strings and numbers say nothing. The order of an array
// does. Numbers are exact decimals of any size, never floats: 1, 1.0, 1e0 and 10e-1 are one number, as are -0 and 0;
// 9007199254740993 and 9007199254740992 are two. Strings are equal if their characters are, after unescaping: "\u00e9" is "é",
// but "e" with a combining accent is another string, since nothing is normalised. 1 is not "1", {} is not {"a":null}, and an
// empty body is none of {}, [], null and "".
//
// # What is refused
//
// Whatever two readers could read in two ways is refused with a [*SyntaxError] and has no sum: members of one name in an object
// (also if one is spelled with escapes), invalid UTF-8, lone surrogates, a byte order mark, anything behind the value, a value
// that breaks off, more than 128 levels, and all else that RFC 8259 does not allow.
//
// # The canonical form
//
// It is JSON again, in UTF-8 without white space, so that another implementation can write it:
//
//   - null, true and false as they are;
//   - a number as its digits without a leading or trailing zero, "e", and a power of ten without leading zeros, each with "-"
//     before it where it is negative: 1.50 is 15e-1, -20 is -2e1, 7 is 7e0. Every zero is 0e0;
//   - a string in double quotes, all characters as they are, but \" and \\ with a backslash, and U+0000 to U+001F as \u00xx with
//     lower-case digits (also those that have a short escape);
//   - an array as [ values separated by commas ];
//   - an object as { members "name":value separated by commas }, sorted by the bytes of their names in UTF-8, unescaped.
//
// Document.Sum is SHA-256 over that. [Fingerprint] adds the media type. testdata/vectors.json holds examples of both. The form is
// stored with keys that live for days: it must not change.
//
// # Cost
//
// Time grows as n log n in the length of a body, and memory linearly, whatever is sent: 100 KB take a few milliseconds at worst.
// An exponent is never expanded: 1e1000000000 costs what its twelve bytes cost.
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxDepth is how many arrays and objects may stand in one another. It is far above what people send, and low enough that what
// reads the body after us may recurse.
const MaxDepth = 128

// maxBytes is the longest body that is read, in bytes. Whoever serves HTTP has a lower limit; this one keeps offsets small.
const maxBytes = 1 << 28

// Document is a JSON value in its canonical form. It never changes, and may be used by several goroutines.
type Document struct {
	canonical []byte
}

// JSON reads one JSON text. Of an empty body it makes the empty document, which equals no other; a body of white space alone is
// refused. The error is a [*SyntaxError]. The body is not kept.
func JSON(body []byte) (*Document, error) {
	if len(body) == 0 {
		return &Document{}, nil
	}
	if len(body) > maxBytes {
		return nil, &SyntaxError{Offset: maxBytes, Reason: TooLong}
	}
	canonical, err := newParser(body).parse()
	if err != nil {
		return nil, err
	}
	return &Document{canonical: canonical}, nil
}

// Canonical returns the canonical form, empty for the empty document. It must not be written to.
func (d *Document) Canonical() []byte { return d.canonical }

// Sum returns the SHA-256 of the canonical form.
func (d *Document) Sum() [sha256.Size]byte { return sha256.Sum256(d.canonical) }

// String returns [Document.Sum] in 64 lower-case hexadecimal digits, so that a document that gets into a log shows nothing.
func (d *Document) String() string {
	sum := d.Sum()
	return hex.EncodeToString(sum[:])
}
