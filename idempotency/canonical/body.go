package canonical

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Fingerprint tells whether two bodies ask for the same thing. The zero value is that of no body.
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
//   - Everything else, forms included, is compared byte for byte.
//
// The media type is part of it, but for case and the order of its parameters, the parameter charset=utf-8, and the boundary: the
// same bytes as text/plain are another body. A contentType that cannot be read is refused, since it leaves open which of these
// it is; none at all is byte for byte. The error is a [*SyntaxError].
//
// The sum is SHA-256 over the media type as above, a line feed, and the canonical form, parts or bytes; of an empty body, over the
// line feed alone. The media type is written as type/subtype in lower case, then ";name=" and a canonical JSON string for each
// parameter, sorted by name.
func Body(contentType string, body []byte) (Fingerprint, error) {
	if len(body) == 0 {
		return Fingerprint{sum: sum("", nil), document: &Document{}}, nil
	}
	if strings.TrimSpace(contentType) == "" {
		return Fingerprint{sum: sum("", body)}, nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return Fingerprint{}, &SyntaxError{Reason: MalformedContentType}
	}
	boundary := params["boundary"]
	if media == "multipart/form-data" {
		delete(params, "boundary")
	}
	typ := mediaType(media, params)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		d, err := JSON(body)
		if err != nil {
			return Fingerprint{}, err
		}
		return Fingerprint{sum: sum(typ, d.canonical), document: d}, nil
	case media == "multipart/form-data":
		parts, err := multipart(boundary, body)
		if err != nil {
			return Fingerprint{}, err
		}
		return Fingerprint{sum: sum(typ, parts)}, nil
	}
	return Fingerprint{sum: sum(typ, body)}, nil
}

func sum(typ string, content []byte) (s [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(typ))
	h.Write([]byte{'\n'})
	h.Write(content)
	h.Sum(s[:0])
	return s
}

// mediaType writes a media type, or a content disposition, in one way.
func mediaType(name string, params map[string]string) string {
	if strings.EqualFold(params["charset"], "utf-8") {
		delete(params, "charset")
	}
	to := []byte(name)
	for _, k := range slices.Sorted(maps.Keys(params)) {
		to = append(append(append(to, ';'), k...), '=')
		to = appendString(to, params[k])
	}
	return string(to)
}

// Sum returns the fingerprint's 32 bytes.
func (f Fingerprint) Sum() [sha256.Size]byte { return f.sum }

// String returns the sum in 64 lower-case hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f.sum[:]) }

// Digests returns [Document.Digests] of a JSON body, and of others one digest of the whole; that of "" covers the media type too.
func (f Fingerprint) Digests(key []byte) map[string][]byte {
	digests := map[string][]byte{}
	if f.document != nil {
		digests = f.document.Digests(key)
	}
	digests[""] = digest(hmac.New(sha256.New, key), "", f.sum[:])
	return digests
}

var errPart = errors.New("malformed part")

// multipart writes the parts of a multipart/form-data body (RFC 7578) so that the boundary does not matter: for every part a line
// for every header, sorted: its name in lower case, a colon, and its value as a canonical JSON string; then the number of its bytes
// on a line, its bytes, and a line feed. The values of Content-Disposition and Content-Type are written as mediaType does.
//
// It is strict where readers differ: lines end in CRLF, nothing but a line break stands before the first boundary and behind the
// last, every part is form-data and has a name, and no header comes twice.
func multipart(boundary string, body []byte) ([]byte, error) {
	refuse := func(at int) ([]byte, error) { return nil, &SyntaxError{Offset: at, Reason: MalformedMultipart} }
	if boundary == "" || len(boundary) > 70 || strings.ContainsAny(boundary, "\r\n") {
		return refuse(0)
	}
	delimiter := []byte("\r\n--" + boundary)
	var i int
	switch {
	case bytes.HasPrefix(body, delimiter):
		i = len(delimiter)
	case bytes.HasPrefix(body, delimiter[2:]):
		i = len(delimiter) - 2
	default:
		return refuse(0)
	}
	to := make([]byte, 0, len(body))
	for {
		if rest := body[i:]; bytes.HasPrefix(rest, []byte("--")) {
			if rest = bytes.TrimLeft(rest[2:], " \t"); len(rest) > 0 && string(rest) != "\r\n" {
				return refuse(i + 2)
			}
			return to, nil
		}
		for i < len(body) && (body[i] == ' ' || body[i] == '\t') {
			i++
		}
		if !bytes.HasPrefix(body[i:], []byte("\r\n")) {
			return refuse(i)
		}
		end := bytes.Index(body[i:], []byte("\r\n\r\n"))
		if end < 0 {
			return refuse(len(body))
		}
		head := body[i+2 : max(i+end, i+2)]
		content := body[i+end+4:]
		size := bytes.Index(content, delimiter)
		if size < 0 {
			return refuse(len(body))
		}
		lines, err := partHeaders(string(head))
		if err != nil {
			return refuse(i + 2)
		}
		to = append(to, lines...)
		to = strconv.AppendInt(to, int64(size), 10)
		to = append(append(append(to, '\n'), content[:size]...), '\n')
		i += end + 4 + size + len(delimiter)
	}
}

func partHeaders(head string) ([]byte, error) {
	lines := map[string]string{}
	for line := range strings.SplitSeq(head, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		if _, twice := lines[name]; !ok || twice || name == "" || strings.ContainsAny(name, " \t") {
			return nil, errPart
		}
		if name == "content-disposition" || name == "content-type" {
			media, params, err := mime.ParseMediaType(value)
			if err != nil {
				return nil, err
			}
			if _, named := params["name"]; name == "content-disposition" && (media != "form-data" || !named) {
				return nil, errPart
			}
			value = mediaType(media, params)
		}
		lines[name] = value
	}
	if _, ok := lines["content-disposition"]; !ok {
		return nil, errPart
	}
	var to []byte
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		to = appendString(append(append(to, name...), ':'), lines[name])
		to = append(to, '\n')
	}
	return to, nil
}
