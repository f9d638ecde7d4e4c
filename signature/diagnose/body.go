package diagnose

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/paidonce/paidonce/signature"
)

// rawBytes is the advice that ends most sentences about bodies.
const rawBytes = " Verify the raw bytes of the request, before anything reads, trims or converts them."

var byteOrderMark = []byte("\xef\xbb\xbf")

// maxInflated bounds what a compressed body may grow to.
const maxInflated = 8 << 20

// bodies undoes what happens to a body as a text of bytes.
func bodies(_ *search, a attempt, yield func(variant) bool) {
	b := a.request.Body
	try := func(body []byte, cause Cause, sentence string) bool {
		return bytes.Equal(body, b) || yield(variant{a.body(body), cause, sentence + rawBytes})
	}
	added, lost := "A line break was added at the end of the body.", "The line break at the end of the body was lost."
	for _, t := range []struct {
		body     []byte
		cause    Cause
		sentence string
	}{
		{bytes.TrimSuffix(b, []byte("\r\n")), Newline, added},
		{bytes.TrimSuffix(b, []byte("\n")), Newline, added},
		{slices.Concat(b, []byte("\n")), Newline, lost},
		{slices.Concat(b, []byte("\r\n")), Newline, lost},
		{bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), LineEnds, "The line ends of the body were changed from LF to CRLF."},
		{bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n")), LineEnds, "The line ends of the body were changed from CRLF to LF."},
		{bytes.TrimSuffix(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n")), LineEnds, "The line ends of the body were changed, and one was added at its end."},
		{bytes.TrimPrefix(b, byteOrderMark), ByteOrderMark, "A byte order mark (EF BB BF) was put in front of the body."},
		{slices.Concat(byteOrderMark, b), ByteOrderMark, "The byte order mark (EF BB BF) in front of the body was taken away; it is signed."},
		{bytes.TrimSpace(b), Whitespace, "Space was added around the body."},
		{bytes.Trim(b, "\x00"), Whitespace, "The body was filled up with zero bytes: a buffer was passed in full instead of the bytes that were read."},
	} {
		if !try(t.body, t.cause, t.sentence) {
			return
		}
	}
	for _, t := range charsets(b) {
		if !try(t.body, Charset, t.sentence) {
			return
		}
	}
	if body, how := inflate(b); body != nil {
		if !try(body, Compressed, "The body is still compressed ("+how+"), and the bytes before compression were signed: a proxy compressed it, or nothing undid the Content-Encoding.") {
			return
		}
	}
	if body, ok := unbase64(b); ok {
		if !yield(variant{a.body(body), Base64Body, "The body is in base64, as some serverless platforms hand it over (isBase64Encoded): decode it, then verify those bytes."}) {
			return
		}
	}
	var text string
	if json.Unmarshal(b, &text) == nil {
		if !yield(variant{a.body([]byte(text)), JSONString, "The body is a JSON string that holds the payload: it was encoded once more." + rawBytes}) {
			return
		}
	}
	if quoted, err := json.Marshal(string(b)); err == nil {
		if !yield(variant{a.body(quoted), JSONString, "The payload was sent as a JSON string, and was decoded once." + rawBytes}) {
			return
		}
	}
	for _, body := range forms(b) {
		if !try(body, FormDecoded, "The form was decoded, or encoded again in another way (+ and %20, upper and lower case of %xx, order of fields).") {
			return
		}
	}
}

type bodyChange struct {
	body     []byte
	sentence string
}

// charsets undoes the wrong choice of a character set.
func charsets(b []byte) []bodyChange {
	var all []bodyChange
	if utf8.Valid(b) {
		for name, table := range map[string]func(rune) (byte, bool){"Latin-1": toLatin1, "Windows-1252": toWindows1252} {
			if body, ok := encodeAll(b, table); ok {
				all = append(all, bodyChange{body, "The body is UTF-8 that was read as " + name + " and written again as UTF-8: every accent became two characters."})
			}
		}
		if body := bytes.ReplaceAll(b, []byte("\u00a0"), []byte(" ")); !bytes.Equal(body, b) {
			all = append(all, bodyChange{body, "Spaces of the body became no-break spaces, as when it is copied from a page."})
		}
		return all
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	all = append(all, bodyChange{[]byte(string(runes)), "The body was converted from UTF-8 to Latin-1."})
	if len(b)%2 == 0 {
		for _, little := range []bool{true, false} {
			units := make([]uint16, len(b)/2)
			for i := range units {
				lo, hi := b[2*i], b[2*i+1]
				if !little {
					lo, hi = hi, lo
				}
				units[i] = uint16(lo) | uint16(hi)<<8
			}
			text := strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")
			all = append(all, bodyChange{[]byte(text), "The body was converted from UTF-8 to UTF-16."})
		}
	}
	return all
}

func toLatin1(r rune) (byte, bool) { return byte(r), r < 0x100 }

// windows1252 are the characters at 0x80 to 0x9f; 0 where there is none.
var windows1252 = [32]rune{
	0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017d, 0,
	0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
}

func toWindows1252(r rune) (byte, bool) {
	if i := slices.Index(windows1252[:], r); i >= 0 && r != 0 {
		return byte(0x80 + i), true
	}
	return toLatin1(r)
}

// encodeAll writes UTF-8 in another character set; ok is false if that changes
// nothing or a character is not in it.
func encodeAll(b []byte, table func(rune) (byte, bool)) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		c, ok := table(r)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, len(out) != len(b)
}

// inflate undoes gzip and deflate.
func inflate(b []byte) (body []byte, how string) {
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		how = "gzip"
		r, err = gzip.NewReader(bytes.NewReader(b))
	case len(b) > 2 && b[0] == 0x78 && (uint(b[0])<<8|uint(b[1]))%31 == 0:
		how = "deflate"
		r, err = zlib.NewReader(bytes.NewReader(b))
	default:
		return nil, ""
	}
	if err != nil {
		return nil, ""
	}
	body, err = io.ReadAll(io.LimitReader(r, maxInflated))
	if err != nil {
		return nil, ""
	}
	return body, how
}

func unbase64(b []byte) ([]byte, bool) {
	text := string(bytes.TrimSpace(b))
	if len(text) < 16 {
		return nil, false
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if body, err := enc.DecodeString(text); err == nil {
			return body, true
		}
	}
	return nil, false
}

// forms are other ways to write a form. Fields keep their order where they can.
func forms(b []byte) [][]byte {
	text := string(b)
	if !strings.Contains(text, "=") && !strings.Contains(text, "%") {
		return nil
	}
	var all [][]byte
	if decoded, err := url.QueryUnescape(text); err == nil {
		all = append(all, []byte(decoded))
	}
	if decoded, err := url.PathUnescape(text); err == nil {
		all = append(all, []byte(decoded))
	}
	if strings.Contains(text, "=") && !strings.ContainsAny(text, "{[") {
		fields := strings.Split(text, "&")
		for _, again := range []func(string) string{escapeForm, url.PathEscape, escapeLower} {
			out := make([]string, len(fields))
			for i, f := range fields {
				name, value, _ := strings.Cut(f, "=")
				out[i] = again(unescape(name)) + "=" + again(unescape(value))
			}
			all = append(all, []byte(strings.Join(out, "&")))
		}
		all = append(all, []byte(strings.ReplaceAll(text, "+", "%20")), []byte(strings.ReplaceAll(text, "%20", "+")),
			[]byte(strings.ReplaceAll(text, " ", "+")))
	}
	return all
}

func escapeForm(s string) string { return url.QueryEscape(s) }

// escapeLower is escapeForm with %xx in lower case.
func escapeLower(s string) string {
	b := []byte(url.QueryEscape(s))
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// cutShort recognises a body or a header that ends too early.
func cutShort(r signature.Request, why *signature.Error) (Cause, string, bool) {
	if n, err := strconv.Atoi(strings.TrimSpace(first(r.Header, "Content-Length"))); err == nil && n > len(r.Body) {
		return Truncated, fmt.Sprintf("The body is incomplete: it has %d bytes, and its Content-Length says %d.%s", len(r.Body), n, rawBytes), true
	}
	b := bytes.TrimSpace(r.Body)
	if len(b) > 0 && (b[0] == '{' || b[0] == '[') && !json.Valid(b) {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(b, new(any)); asSyntax(err, &syntax) && int(syntax.Offset) >= len(b) {
			return Truncated, "The body is incomplete: its JSON ends in the middle." + rawBytes, true
		}
	}
	if why.Reason == signature.Malformed {
		for name, values := range r.Header {
			for _, v := range values {
				if carriesSignature(name) && oddDigest(v) {
					return HeaderCut, "The signature in the header " + http.CanonicalHeaderKey(name) + " is incomplete: its length is not that of a digest. Something cuts long headers, or it was copied without its end.", true
				}
			}
		}
	}
	return "", "", false
}

func first(h http.Header, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) && len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

func asSyntax(err error, to **json.SyntaxError) bool {
	s, ok := err.(*json.SyntaxError) //nolint:errorlint // encoding/json does not wrap it
	*to = s
	return ok
}
