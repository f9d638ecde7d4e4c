package diagnose

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// rawBytes is the advice that ends most sentences about bodies.
const rawBytes = " Verify the raw bytes of the request, before anything reads, trims or converts them."

var byteOrderMark = []byte("\xef\xbb\xbf")

// bodies undoes what happens to a body as a text of bytes.
func bodies(_ *search, a attempt, yield func(variant) bool) {
	b := a.request.Body
	try := func(c bodyChange) bool {
		return bytes.Equal(c.body, b) || yield(variant{attempt: a.body(c.body), cause: c.cause, sentence: c.sentence + rawBytes})
	}
	for _, changes := range []func([]byte) []bodyChange{ends, charsets, packed, printedBodies, extra, inside} {
		for _, c := range changes(b) {
			if !try(c) {
				return
			}
		}
	}
	for _, body := range forms(b) {
		if !try(bodyChange{body, FormDecoded, "The form was decoded, or encoded again in another way (+ and %20, upper and lower case of %xx, order of fields), or JSON was read as a form."}) {
			return
		}
	}
}

// lost puts back what a conversion lost.
func lost(_ *search, a attempt, yield func(variant) bool) {
	_ = accentsLost(a.request.Body, func(c bodyChange) bool {
		return yield(variant{attempt: a.body(c.body), cause: c.cause, sentence: c.sentence + rawBytes})
	})
}

// ends undoes what was added to a body or lost at its ends, and its line ends.
func ends(b []byte) []bodyChange {
	lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	added, lost := "A line break was added at the end of the body.", "The line break at the end of the body was lost."
	all := []bodyChange{
		{bytes.TrimSuffix(b, []byte("\r\n")), Newline, added},
		{bytes.TrimSuffix(b, []byte("\n")), Newline, added},
		{slices.Concat(b, []byte("\n")), Newline, lost},
		{slices.Concat(b, []byte("\r\n")), Newline, lost},
		{bytes.TrimRight(b, "\r\n"), Newline, "Line breaks were added at the end of the body."},
		{lf, LineEnds, "The line ends of the body were changed from LF to CRLF."},
		{bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n")), LineEnds, "The line ends of the body were changed from CRLF to LF."},
		{bytes.TrimSuffix(lf, []byte("\n")), LineEnds, "The line ends of the body were changed, and one was added at its end."},
		{slices.Concat(lf, []byte("\n")), LineEnds, "The line ends of the body were changed from LF to CRLF, and the one at its end was lost."},
		{slices.Concat(bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n")), []byte("\r\n")), LineEnds, "The line ends of the body were changed from CRLF to LF, and the one at its end was lost."},
		{bytes.ReplaceAll(b, []byte("\r"), []byte("\n")), LineEnds, "The line ends of the body were changed from LF to CR."},
		{bytes.ReplaceAll(lf, []byte("\n"), nil), LineEnds, "Line breaks were put into the body."},
		{bytes.TrimPrefix(b, byteOrderMark), ByteOrderMark, "A byte order mark (EF BB BF) was put in front of the body."},
		{bytes.TrimRight(bytes.TrimPrefix(b, byteOrderMark), "\r\n"), ByteOrderMark, "A byte order mark (EF BB BF) was put in front of the body, and a line break at its end."},
		{slices.Concat(byteOrderMark, b), ByteOrderMark, "The byte order mark (EF BB BF) in front of the body was taken away; it is signed."},
		{bytes.TrimSpace(b), Whitespace, "Space was added around the body."},
		{bytes.TrimSpace(bytes.TrimRight(b, "\x00")), Whitespace, "The body was filled up with zero bytes: a buffer was passed in full instead of the bytes that were read."},
	}
	for _, s := range []string{" ", "  ", "\t", "\n\n"} {
		all = append(all, bodyChange{slices.Concat(b, []byte(s)), Whitespace, "Space around the body was lost: something trims it."},
			bodyChange{slices.Concat([]byte(s), b), Whitespace, "Space around the body was lost: something trims it."})
	}
	all = append(all, bodyChange{slices.Concat([]byte("\n"), b), Whitespace, "A line break in front of the body was lost: something trims it."})
	return all
}

// extra undoes bytes at the ends of a body that were added or lost.
func extra(b []byte) []bodyChange {
	var all []bodyChange
	for _, s := range []string{"}", "]", `"`, ")", "}}", "]}", `"}`, "}]}", "}}}"} {
		all = append(all, bodyChange{slices.Concat(b, []byte(s)), Truncated, "The body is incomplete: its last " + amount(len(s)) + " missing."})
	}
	for _, s := range []string{"{", "["} {
		all = append(all, bodyChange{slices.Concat([]byte(s), b), Truncated, "The body is incomplete: its first byte is missing."})
	}
	for n := 1; n <= 8 && n < len(b); n++ {
		all = append(all, bodyChange{b[:len(b)-n], ExtraBytes, "Something was added at the end of the body: its last " + amount(n) + " not signed."},
			bodyChange{b[n:], ExtraBytes, "Something was put in front of the body: its first " + amount(n) + " not signed."})
	}
	if i := bytes.LastIndexAny(b, "}]"); i > 0 {
		all = append(all, bodyChange{b[:i+1], ExtraBytes, "Something was added behind the JSON of the body."})
	}
	if i := bytes.IndexAny(b, "{["); i > 0 {
		all = append(all, bodyChange{b[i:], ExtraBytes, "Something was put in front of the JSON of the body."})
	}
	return append(all, bodyChange{bytes.Repeat(b, 2), Truncated, "The body is half of what was signed."}, bodyChange{b[:len(b)/2], ExtraBytes, "The body is there twice: it was read and added once more."})
}

// amount says how many bytes "are".
func amount(n int) string {
	if n == 1 {
		return "byte is"
	}
	return strconv.Itoa(n) + " bytes are"
}

// packed undoes compression and base64.
func packed(b []byte) []bodyChange {
	var all []bodyChange
	if body, how := inflate(b); body != nil {
		all = append(all, bodyChange{body, Compressed, "The body is still compressed (" + how + "), and the bytes before compression were signed: a proxy compressed it, or nothing undid the Content-Encoding."})
	}
	if body, ok := unbase64(b); ok {
		all = append(all, bodyChange{body, Base64Body, "The body is in base64, as some serverless platforms hand it over (isBase64Encoded): decode it, then verify those bytes."})
		if plain, how := inflate(body); plain != nil {
			all = append(all, bodyChange{plain, Compressed, "The body is compressed (" + how + ") and in base64: undo both, then verify those bytes."})
		}
	}
	return all
}

// printedBodies undoes what happens to a body on its way through a log, a page or
// another program's notation of a text.
func printedBodies(b []byte) []bodyChange {
	var all []bodyChange
	add := func(body string, cause Cause, sentence string) {
		all = append(all, bodyChange{[]byte(body), cause, sentence})
	}
	var text string
	if json.Unmarshal(b, &text) == nil {
		add(text, JSONString, "The body is a JSON string that holds the payload, in quotes: it was encoded once more.")
	}
	if quoted, err := json.Marshal(string(b)); err == nil {
		add(string(quoted), JSONString, "The payload was sent as a JSON string, and was decoded once.")
	}
	trimmed := strings.TrimSpace(string(b))
	if bare, ok := unquoted(strings.TrimPrefix(trimmed, "b")); ok {
		add(bare, Quoted, "The body has quotes around it, as a log or a shell puts them: take the bytes themselves.")
		const python = "The body was printed by a program (quotes around it, \\x and \\n inside), as Python shows bytes: take the bytes themselves."
		add(unprinted(bare), Quoted, python)
	}
	if strings.Contains(trimmed, `\"`) {
		add(strings.ReplaceAll(strings.ReplaceAll(trimmed, `\"`, `"`), `\\`, `\`), Quoted, `The quotes of the body were escaped with backslashes.`)
	}
	if plain := html.UnescapeString(string(b)); plain != string(b) {
		add(plain, HTMLEscaped, "The body was escaped for HTML (&amp;, &quot;).")
		add(strings.ReplaceAll(string(b), "&amp;", "&"), HTMLEscaped, "The body was escaped for HTML (&amp;).")
	}
	add(html.EscapeString(string(b)), HTMLEscaped, "What was signed is escaped for HTML (&amp;), and was unescaped on its way.")
	return all
}

// unquoted takes one pair of quotes away.
func unquoted(s string) (string, bool) {
	if len(s) < 2 || s[0] != s[len(s)-1] || strings.IndexByte("'\"`", s[0]) < 0 {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// unprinted undoes the escapes of a printed text: \xNN, \n, \', \\.
func unprinted(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		switch at := strings.IndexByte("nrt'\"\\", s[i]); {
		case at >= 0:
			out.WriteByte("\n\r\t'\"\\"[at])
		case s[i] == 'x' && i+2 < len(s):
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(c))
				i += 2
				continue
			}
			out.WriteString(`\x`)
		default:
			out.WriteString(s[i-1 : i+1])
		}
	}
	return out.String()
}

// inside looks for the payload inside an envelope: the event of a serverless
// platform or of a queue, a log entry.
func inside(b []byte) []bodyChange {
	n := parse(b)
	if n == nil {
		return nil
	}
	const sentence = "The payload is wrapped in another document (the event of a serverless platform, a queue's message, a log entry): take it out as it is."
	var all []bodyChange
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		for _, kid := range n.kids {
			if len(all) >= 64 {
				return
			}
			var text string
			switch {
			case kid.kind == '"' && json.Unmarshal([]byte(kid.raw), &text) == nil && len(text) > 16:
				all = append(all, bodyChange{[]byte(text), Wrapped, sentence})
				if body, ok := unbase64([]byte(text)); ok {
					all = append(all, bodyChange{body, Wrapped, sentence + " It is in base64 there."})
				}
			case kid.kind == '{' || kid.kind == '[':
				all = append(all, bodyChange{b[kid.from:kid.to], Wrapped, sentence})
				if depth < 3 {
					walk(kid, depth+1)
				}
			}
		}
	}
	walk(n, 0)
	return all
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
