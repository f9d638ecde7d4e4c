package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paidonce/paidonce/signature"
)

// remains says what is left when nothing that was undone made it fit.
func (s *search) remains(why *signature.Error) (Cause, string) {
	r := s.in.Request
	switch why.Reason {
	case signature.NoSecret:
		return BadSecret, "There is no secret to verify with: configure the one that the gateway shows for this endpoint."
	case signature.BadSecret:
		return BadSecret, "What was given as " + s.kind.noun() + " cannot be one of this gateway: " + why.Detail + "."
	case signature.Missing:
		if s.kind.fields {
			return s.missingField(why)
		}
		if strings.Contains(why.Detail, "URL") || strings.Contains(why.Detail, "path") {
			return URL, "The URL is signed too, and " + why.Detail + ": give it exactly as it stands at the gateway (public_url of the source, --url of the command)."
		}
		return HeaderMissing, "The signature is not there (" + why.Detail + "): the sender is not the gateway, the gateway has no secret configured for this endpoint, or a proxy takes the header away."
	case signature.Ambiguous:
		return HeaderTwice, "The signature can be read in two ways (" + why.Detail + "): something between the gateway and here repeats a header or a field."
	}
	for _, look := range []func() (Cause, string, bool){
		func() (Cause, string, bool) { return s.cutHeader(why) },
		func() (Cause, string, bool) { return s.damaged(r) },
	} {
		if cause, sentence, ok := look(); ok {
			return cause, sentence
		}
	}
	if why.Reason == signature.Malformed {
		return Unreadable, "What is signed cannot be read (" + why.Detail + "): the header or the body was changed on its way, or it is not from this gateway."
	}
	if s.kind.public {
		if ok, keys := s.opened(attempt{request: r, secrets: s.in.Secrets}); ok {
			return BodyChanged, s.otherMessage()
		} else if keys > 0 {
			return WrongSecret, "The signature was not made with the key of " + s.kind.noun() + " that was given: it is another one than the sender's (rotated, or of the other mode). Get the one that the gateway shows today."
		}
		if strings.Contains(why.Detail, "of another body") {
			return BodyChanged, "The token is genuine, so the key is right, and the body is another than the one that was signed, changed in a way that cannot be undone." + s.suspicion() + rawBytes
		}
	}
	if !s.kind.token && !s.kind.query && !s.kind.fields {
		if cause, sentence, ok := s.evidence(r.Body); ok {
			return cause, sentence
		}
	}
	return WrongSecret, s.wrongSecret()
}

// verified is what is said of a delivery that verifies.
func (s *search) verified() string {
	const text = "The signature verifies."
	switch {
	case s.kind.token:
		return text + " (It is a token that is sent along; the body has no part in it.)"
	case s.kind.query:
		return text + " (It covers the id in the URL and two headers; the body has no part in it.)"
	case s.kind.fields:
		return text + " (It covers some fields of the body, and not the rest.)"
	}
	return text
}

// otherMessage is about an RSA signature that its key made, of something else.
func (s *search) otherMessage() string {
	if s.in.Scheme.Name == "paypal" {
		return "The certificate is right, and something else was signed: the webhook id is another webhook's, or the body or a Paypal-Transmission header was changed on its way. Compare the id with the one of exactly this webhook." + s.suspicion() + rawBytes
	}
	return "The key is right, and something else was signed: the body was changed on its way in a way that cannot be undone." + s.suspicion() + rawBytes
}

// suspicion adds what the body looks like.
func (s *search) suspicion() string {
	if _, sentence, ok := s.evidence(s.in.Request.Body); ok {
		return " " + sentence
	}
	return ""
}

// wrongSecret is what is said when nothing shows what is wrong.
func (s *search) wrongSecret() string {
	text := s.kind.wrong
	if text == "" {
		text = "Nothing that was tried makes it fit: the secret is another endpoint's, was rolled, or is of the other mode; or the body was changed in a way that cannot be undone. Compare the secret with the one that the gateway shows for exactly this endpoint."
	}
	for _, secret := range s.in.Secrets {
		var bad *signature.Error
		if err := s.in.Scheme.CheckSecret(secret); errors.As(err, &bad) && bad.Detail != "" {
			return text + " What was given does not look right: " + bad.Detail + "."
		}
	}
	if !s.kind.token && !s.kind.query && !s.kind.fields && spacedOut(s.in.Request.Body) {
		return text + " (The JSON has a space after every comma and colon, as Python writes it: if the gateway does not send it so, it was parsed and written again.)"
	}
	return text
}

// missingField is about a signature that stands inside the body, and does not.
func (s *search) missingField(why *signature.Error) (Cause, string) {
	if strings.Contains(why.Detail, "version that the secrets make") {
		return WrongSecret, "The signature is one of another key: the public key in what was given is not among those that signed (another merchant account, or the sandbox). " + s.wrongSecret()
	}
	if cause, sentence, ok := s.damaged(s.in.Request); ok {
		return cause, sentence
	}
	return HeaderMissing, "The signature, or a field that it covers, is not in the body (" + why.Detail + "): the gateway has no key configured for this endpoint, or the fields were lost on the way."
}

// cutHeader recognises a signature that ends too early.
func (s *search) cutHeader(why *signature.Error) (Cause, string, bool) {
	if s.kind.token || why.Reason != signature.Malformed && why.Reason != signature.Mismatch {
		return "", "", false
	}
	if s.kind.fields && s.oddField() {
		return HeaderCut, "The signature in the field " + s.kind.field + " is incomplete: its length is not that of a digest. The body was cut, or the field was.", true
	}
	main := s.mainHeader()
	for name, values := range s.in.Request.Header {
		if !strings.EqualFold(name, main) {
			continue
		}
		for _, v := range values {
			if oddDigest(v, s.kind.public) {
				return HeaderCut, "The signature in the header " + http.CanonicalHeaderKey(name) + " is incomplete: its length is not that of a digest. Something cuts long headers, or it was copied without its end.", true
			}
		}
	}
	return "", "", false
}

// oddField reports whether the signature inside the body has a length that no digest
// has.
func (s *search) oddField() bool {
	value := ""
	if n := parse(s.in.Request.Body); n != nil {
		n.each(func(m *node) {
			for i, kid := range m.kids {
				if m.kind == '{' && plain(m.keys[i]) == s.kind.field && kid.kind == '"' {
					value = plain(kid.raw)
				}
			}
		})
	} else {
		for pair := range strings.SplitSeq(string(s.in.Request.Body), "&") {
			if name, v, _ := strings.Cut(pair, "="); unescape(name) == s.kind.field {
				value = unescape(v)
			}
		}
	}
	whole := value
	value = strings.TrimRight(value[strings.LastIndexByte(value, '|')+1:], "=")
	if value == "" {
		return whole != ""
	}
	if strings.Trim(value, "0123456789abcdefABCDEF+/-_ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	if strings.Trim(value, "0123456789abcdefABCDEF") == "" {
		return len(value)%2 != 0 || !slices.Contains(digestSizes, len(value)/2)
	}
	return len(value)%4 == 1 || !slices.Contains(digestSizes, len(value)*3/4)
}

// mainHeader is the header that the scheme looks for first: it says so about a
// request that has none.
func (s *search) mainHeader() string {
	var none *signature.Error
	if errors.As(s.in.Scheme.Verify(signature.Request{Method: http.MethodPost}, s.in.Secrets, s.in.Now), &none) && none.Reason == signature.Missing {
		if name, ok := strings.CutPrefix(none.Detail, "no "); ok && !strings.Contains(name, " ") {
			return name
		}
	}
	return ""
}

// damaged recognises a body that cannot be what was sent.
func (s *search) damaged(r signature.Request) (Cause, string, bool) {
	if s.kind.token || s.kind.query {
		return "", "", false
	}
	if n, err := strconv.Atoi(strings.TrimSpace(first(r.Header, "Content-Length"))); err == nil && n > len(r.Body) {
		return Truncated, fmt.Sprintf("The body is incomplete: it has %d bytes, and its Content-Length says %d.%s", len(r.Body), n, rawBytes), true
	}
	b := bytes.TrimSpace(r.Body)
	if len(b) == 0 {
		return NoBody, "The body is empty: it was read before (a stream can be read once), or was not kept." + rawBytes, true
	}
	switch coding := strings.ToLower(first(r.Header, "Content-Encoding")); {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		return Compressed, "The body is still compressed (gzip), and what comes out of it does not fit either: the body is cut, or the secret is another one too.", true
	case coding != "" && coding != "identity" && !json.Valid(b):
		return Compressed, "The body is still compressed (its Content-Encoding says so), and the bytes before compression were signed: undo that, or have the proxy leave the body as it is.", true
	}
	if binary(b) {
		return Compressed, "The body is not text: it is still compressed (br, zstd), or encrypted, or was damaged on its way. What was signed are the bytes that the gateway sent, before a proxy changed them.", true
	}
	if bytes.Contains(b, []byte("\ufffd")) {
		return Charset, "The body has replacement characters (U+FFFD): it was decoded with the wrong character set, and its accents are lost." + rawBytes, true
	}
	if b[0] != '{' && b[0] != '[' || json.Valid(b) {
		if lostAccents(b) {
			return Charset, "The body has question marks inside words: its accents were lost when it was converted to a character set that lacks them." + rawBytes, true
		}
		return "", "", false
	}
	for _, start := range []string{"{'", "[{'", "{:", `{"=>`} {
		if bytes.HasPrefix(b, []byte(start)) {
			return Quoted, "The body is not JSON any more: it is what a program prints of a parsed object (single quotes, None, =>)." + rawBytes, true
		}
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(b, new(any)); asSyntax(err, &syntax) && int(syntax.Offset) >= len(b) {
		return Truncated, "The body is incomplete: its JSON ends in the middle." + rawBytes, true
	}
	return "", "", false
}

// evidence is what a whole JSON body shows of having been written again, though
// what was signed could not be found.
func (s *search) evidence(b []byte) (Cause, string, bool) {
	n := parse(b)
	if n == nil {
		return "", "", false
	}
	if sorted(n) && !s.likeTemplate(n) {
		return JSONKeyOrder, "Nothing fits, and all keys of the JSON are in alphabetical order, which hardly any sender does: a framework parsed it and wrote it again with its keys sorted.", true
	}
	if slices.ContainsFunc(numbersOf(b), func(at [2]int) bool { return rounded(string(b[at[0]:at[1]])) }) {
		return JSONNumbers, "Nothing fits, and a large number in the JSON looks rounded: it was parsed into a float (as JavaScript and PHP do), which changes its last digits, and written again.", true
	}
	return "", "", false
}

// likeTemplate reports whether a document has exactly the keys of a payload that
// is in alphabetical order itself, as those are that this program makes.
func (s *search) likeTemplate(n *node) bool {
	return slices.ContainsFunc(s.in.Templates, func(t []byte) bool {
		like := parse(t)
		return like != nil && sorted(like) && sameKeys(n, like)
	})
}

// sameKeys reports whether two documents have the same keys everywhere.
func sameKeys(a, b *node) bool {
	if a.kind != b.kind || !slices.Equal(a.keys, b.keys) || a.kind == '{' && len(a.kids) != len(b.kids) {
		return a.kind != '{' && b.kind != '{' && a.kind != '[' && b.kind != '['
	}
	for i := range min(len(a.kids), len(b.kids)) {
		if !sameKeys(a.kids[i], b.kids[i]) {
			return false
		}
	}
	return true
}

// binary reports whether a body has control characters, and is not UTF-8.
func binary(b []byte) bool {
	return !utf8.Valid(b) && bytes.ContainsFunc(b, func(r rune) bool { return r < '\t' })
}

// lostAccents reports whether a string has question marks inside words, twice at
// least and nowhere near an address.
func lostAccents(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	found := 0
	for _, text := range strings.Split(string(b), `"`) {
		if strings.Contains(text, "://") || strings.Contains(text, "=") {
			continue
		}
		for i := 1; i+1 < len(text); i++ {
			if text[i] == '?' && letter(text[i-1]) && letter(text[i+1]) {
				found++
			}
		}
	}
	return found >= 2
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
