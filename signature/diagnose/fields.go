package diagnose

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// fields undoes what happens to the fields of a body, for schemes that sign some of
// them: how the body is laid out does not matter there, what is in it does.
func fields(s *search, a attempt, yield func(variant) bool) {
	if !s.kind.fields {
		return
	}
	b := a.request.Body
	if parse(b) != nil {
		jsonFields(a, yield)
		return
	}
	if !strings.Contains(string(b), "=") || len(b) > maxForm {
		return
	}
	formFields(a, yield)
}

func jsonFields(a attempt, yield func(variant) bool) {
	b := a.request.Body
	n := parse(b)
	try := func(at *node, with string, cause Cause, sentence string) bool {
		return with == at.raw || yield(variant{attempt: a.body(splice(b, [2]int{at.from, at.to}, with)), cause: cause, sentence: sentence})
	}
	const (
		number = "The form of a number that is signed changed (10000.00 became 10000, or a string a number, or the reverse): pass the fields on as they came."
		words  = "A word that is signed changed its form (true and \"true\", upper and lower case): pass the fields on as they came."
		space  = "Space around a field that is signed was added or lost: pass the fields on as they came."
	)
	count, ok := 0, true
	n.each(func(m *node) {
		if !ok || m.kind != '"' && m.kind != 0 || count > 256 {
			return
		}
		count++
		text, quoted := bare(m.raw)
		switch {
		case quoted && m.kind == '"':
			ok = try(m, text, JSONNumbers, number)
			for _, form := range numberForms(text) {
				ok = ok && try(m, `"`+strings.Trim(form, `"`)+`"`, JSONNumbers, number) && try(m, strings.Trim(form, `"`), JSONNumbers, number)
			}
		case isNumber(m.raw):
			for _, form := range numberForms(m.raw) {
				ok = ok && try(m, form, JSONNumbers, number) && try(m, `"`+strings.Trim(form, `"`)+`"`, JSONNumbers, number)
			}
			if len(m.raw) == 13 {
				ok = ok && try(m, m.raw[:10], SignedTime, "The time in the body is in milliseconds, and was signed in seconds: pass it on as it came.")
			}
		case m.kind == 0:
			ok = try(m, `"`+m.raw+`"`, JSONNumbers, words)
		case len(m.raw) > 26 && len(m.raw) < 1024:
			for _, c := range valueChanges(plain(m.raw)) {
				quoted := `"` + c.value + `"`
				ok = ok && (!json.Valid([]byte(quoted)) || try(m, quoted, c.cause, "The signature in the body "+c.sentence))
			}
		default:
			ok = try(m, strings.Trim(m.raw, `"`), JSONNumbers, words) && try(m, upperValue(m.raw), JSONNumbers, words) && try(m, strings.ToLower(m.raw), JSONNumbers, words) &&
				try(m, `"`+strings.TrimSpace(plain(m.raw))+`"`, Whitespace, space) &&
				try(m, strings.TrimSuffix(m.raw, `"`)+` "`, Whitespace, space) && try(m, `" `+m.raw[1:], Whitespace, space)
		}
	})
	if !ok {
		return
	}
	for _, body := range wrongCharsets(b) {
		if !yield(variant{attempt: a.body(body.body), cause: body.cause, sentence: body.sentence + rawBytes}) {
			return
		}
	}
}

// wrongCharsets are charsets for a text that is still JSON.
func wrongCharsets(b []byte) []bodyChange {
	var all []bodyChange
	for _, c := range charsets(b) {
		if json.Valid(c.body) {
			all = append(all, c)
		}
	}
	return all
}

// upperValue is a JSON string in upper case; its escapes stay.
func upperValue(raw string) string {
	if strings.Contains(raw, `\`) {
		return raw
	}
	return strings.ToUpper(raw)
}

// formFields undoes what happens to the values of a form: base64 that lost its plus
// signs or line breaks, or was decoded.
func formFields(a attempt, yield func(variant) bool) {
	pairs := strings.Split(string(a.request.Body), "&")
	for i, pair := range pairs[:min(len(pairs), 64)] {
		name, value, _ := strings.Cut(pair, "=")
		try := func(text string, cause Cause, sentence string) bool {
			out := append([]string(nil), pairs...)
			out[i] = name + "=" + url.QueryEscape(text)
			body := strings.Join(out, "&")
			return body == string(a.request.Body) || yield(variant{attempt: a.body([]byte(body)), cause: cause, sentence: sentence})
		}
		if !formValue(unescape(value), unescape(name), try) || !try(value, FormDecoded, "The form was decoded: a field ("+field(unescape(name))+") has characters that are escaped in a form (+, /, =, line breaks). Pass the form on as it came.") {
			return
		}
	}
	// All values at once, as where the whole form was decoded.
	for _, again := range []func(string) string{
		url.QueryEscape,
		func(v string) string { return url.QueryEscape(strings.ReplaceAll(v, " ", "+")) },
		func(v string) string { return url.QueryEscape(strings.ReplaceAll(unescape(v), " ", "+")) },
		unescape,
	} {
		out := make([]string, len(pairs))
		for i, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			out[i] = name + "=" + again(value)
		}
		if !yield(variant{attempt: a.body([]byte(strings.Join(out, "&"))), cause: FormDecoded, sentence: "The form was decoded, or encoded once more, so that + became a space or % was escaped: pass it on as it came."}) {
			return
		}
	}
}

// field is a name of a form that may be said: those of gateways are short words.
func field(name string) string {
	if len(name) > 32 || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "one of them"
	}
	return name
}

func formValue(text, name string, try func(text string, cause Cause, sentence string) bool) bool {
	shown := "The field " + field(name) + " "
	if !try(strings.ReplaceAll(text, "\r\n", "\n"), LineEnds, shown+"has its line ends changed from LF to CRLF: pass the form on as it came.") ||
		!try(strings.ReplaceAll(text, " ", "+"), FormDecoded, shown+"has spaces where + belongs: the form was decoded twice, or its base64 was not escaped. Pass the form on as it came.") ||
		!try(strings.TrimSpace(text), Whitespace, shown+"has space or a line break around its value: pass the form on as it came.") ||
		!try(strings.ReplaceAll(strings.ReplaceAll(text, "-", "+"), "_", "/"), HeaderEncoding, shown+"is in base64 for URLs, and what was signed is not: pass it on as it came.") ||
		!try(strings.ReplaceAll(strings.ReplaceAll(text, "+", "-"), "/", "_"), HeaderEncoding, shown+"is in standard base64, and what was signed is for URLs: pass it on as it came.") ||
		!try(strings.TrimRight(text, "="), HeaderEncoding, shown+"has padding in its base64 that was not signed: pass it on as it came.") ||
		!try(text+"=", HeaderEncoding, shown+"lost the padding of its base64: pass it on as it came.") ||
		!try(text+"==", HeaderEncoding, shown+"lost the padding of its base64: pass it on as it came.") {
		return false
	}
	for _, form := range numberForms(text) {
		if !try(strings.Trim(form, `"`), JSONNumbers, shown+"has its number in another form than the one that was signed: pass it on as it came.") {
			return false
		}
	}
	if text != "" && len(text) <= 64 && (!try(strings.ToUpper(text), FormDecoded, shown+"was changed to lower case: pass it on as it came.") || !try(strings.ToLower(text), FormDecoded, shown+"was changed to upper case: pass it on as it came.")) {
		return false
	}
	if text != "" && (text[0] == '{' || text[0] == '<') {
		const decoded = "was decoded from base64: what is signed is its base64 text. Pass the form on as it came."
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			encoded := enc.EncodeToString([]byte(text))
			if !try(encoded, Base64Body, shown+decoded) || !try(brokenAt(encoded, 60), Base64Body, shown+decoded) {
				return false
			}
		}
	}
	if len(text) < 24 {
		return true
	}
	if len(text) < 1024 {
		for _, c := range valueChanges(text) {
			if !try(c.value, c.cause, shown+c.sentence) {
				return false
			}
		}
	}
	joined := strings.Join(strings.Fields(text), "")
	for _, width := range []int{60, 64, 76, len(joined)} {
		if !try(brokenAt(joined, width), LineEnds, shown+"lost or got line breaks inside its base64: pass the form on as it came.") {
			return false
		}
	}
	inner := []byte(text)
	if raw, ok := unbase64([]byte(joined)); ok {
		inner = raw
	}
	return innerJSON(inner, try, shown)
}

// brokenAt breaks a text into lines, each with its end.
func brokenAt(text string, width int) string {
	var b strings.Builder
	for ; len(text) > width; text = text[width:] {
		b.WriteString(text[:width] + "\n")
	}
	return b.String() + text + "\n"
}

// innerJSON undoes what happens to JSON that is signed in base64 and was decoded,
// parsed and encoded again.
func innerJSON(inner []byte, try func(string, Cause, string) bool, shown string) bool {
	n := parse(inner)
	if n == nil {
		return true
	}
	ok := true
	r := &rewriter{was: inner, tree: n, yield: func(body []byte, _ string) bool {
		ok = try(base64.StdEncoding.EncodeToString(body), JSONSpacing, shown+"was decoded, and its JSON parsed, written again and encoded: pass the field on as it came.") &&
			try(base64.URLEncoding.EncodeToString(body), JSONSpacing, shown+"was decoded, and its JSON parsed, written again and encoded: pass the field on as it came.")
		return ok
	}}
	_ = r.spaces() && r.escapes() && r.oneNumber() && r.numbers(n) && r.orders()
	if ok && bytes.HasSuffix(inner, []byte("\n")) {
		ok = r.once(bytes.TrimSpace(inner), "")
	}
	return ok
}
