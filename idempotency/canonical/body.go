package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Fingerprint tells whether two bodies ask for the same thing. [Body] makes it; the zero value is that of no request.
type Fingerprint struct {
	sum      [sha256.Size]byte
	document *Document
}

// Body takes the fingerprint of a request's body, as the server's handler sees it: after any Content-Encoding was undone, if
// the server undoes it; else the compressed bytes are the body, and must be the same bytes.
//
//   - An empty body is the same whatever contentType says.
//   - JSON (application/json, and what ends in +json) is compared as [JSON] does.
//   - multipart/form-data is compared by its parts, in order, whatever the boundary: their headers (name, file name, content type)
//     and bytes.
//   - Everything else, forms included, and what has no contentType, is compared byte for byte.
//
// The media type is part of it, except for case, the order and quoting of its parameters, the parameter charset=utf-8, and the
// boundary: the same bytes as text/plain are another body, and so are they as application/vnd.x+json, which may well be another
// version. A contentType that cannot be read is refused, since it leaves open which of these it is. The error is a [*SyntaxError].
//
// The sum is SHA-256 over the media type, a line feed, and the canonical form, parts or bytes; of an empty body, over the line feed
// alone. The media type is written as type/subtype in lower case, then, for each parameter, sorted by name, ";name=" and a
// canonical JSON string.
func Body(contentType string, body []byte) (Fingerprint, error) {
	if len(body) == 0 {
		return Fingerprint{sum: sum("", nil), document: &Document{}}, nil
	}
	if strings.TrimSpace(contentType) == "" {
		return Fingerprint{sum: sum("", body)}, nil
	}
	h, ok := parseHeader(contentType)
	if !ok || !strings.Contains(h.name, "/") {
		return Fingerprint{}, &SyntaxError{Reason: MalformedContentType}
	}
	switch {
	case h.name == "application/json" || strings.HasSuffix(h.name, "+json"):
		d, err := JSON(body)
		if err != nil {
			return Fingerprint{}, err
		}
		return Fingerprint{sum: sum(h.String(), d.canonical), document: d}, nil
	case h.name == "multipart/form-data":
		boundary, _ := h.param("boundary")
		parts, err := multipart(boundary, body)
		if err != nil {
			return Fingerprint{}, err
		}
		h.params = slices.DeleteFunc(h.params, func(p field) bool { return p.name == "boundary" })
		return Fingerprint{sum: sum(h.String(), parts)}, nil
	}
	return Fingerprint{sum: sum(h.String(), body)}, nil
}

func sum(typ string, content []byte) (s [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(typ))
	h.Write([]byte{'\n'})
	h.Write(content)
	h.Sum(s[:0])
	return s
}

// Sum returns the fingerprint's 32 bytes.
func (f Fingerprint) Sum() [sha256.Size]byte { return f.sum }

// String returns the sum in 64 lower-case hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f.sum[:]) }

// Digests returns [Document.Digests] of a JSON body, and of others one digest of the whole; that of "" covers the media type too.
func (f Fingerprint) Digests(key []byte) map[string][]byte {
	mac := hmac.New(sha256.New, key)
	digests := map[string][]byte{}
	if f.document != nil {
		digests = f.document.digests(mac)
	}
	digests[""] = digest(mac, "", f.sum[:])
	return digests
}
