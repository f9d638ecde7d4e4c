package diagnose

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// carriesSignature reports whether a header of that name can have to do with a
// signature.
func carriesSignature(name string) bool {
	n := strings.ToLower(name)
	for _, part := range []string{"signature", "sign", "hmac", "digest", "token", "webhook", "verification", "hash", "paypal", "svix", "authorization"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return strings.HasPrefix(n, "x-")
}

// headers undoes what happens to headers.
func headers(_ *search, a attempt, yield func(variant) bool) {
	h := a.request.Header
	try := func(change func(http.Header), cause Cause, sentence string) bool {
		v := a
		v.request = withHeader(a.request, change)
		return yield(variant{v, cause, sentence})
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !carriesSignature(name) {
			continue
		}
		shown := http.CanonicalHeaderKey(name)
		values := h[name]
		if len(values) > 1 || len(values) == 1 && strings.Contains(values[0], ",") {
			for _, one := range once(values) {
				if !try(func(h http.Header) { h[name] = []string{one} }, HeaderTwice,
					"The header "+shown+" is there more than once: something between the gateway and here adds it again (a proxy that copies headers). Pass it on once.") {
					return
				}
			}
		}
		if len(values) != 1 {
			continue
		}
		for _, c := range valueChanges(values[0]) {
			if c.value != values[0] && !try(func(h http.Header) { h[name] = []string{c.value} }, c.cause, "The header "+shown+" "+c.sentence) {
				return
			}
		}
		for _, other := range otherNames(name) {
			if !try(func(h http.Header) { delete(h, name); h[http.CanonicalHeaderKey(other)] = values }, HeaderName,
				"The signature stands in the header "+shown+" instead of "+http.CanonicalHeaderKey(other)+": something renamed it. Pass headers on under their names.") {
				return
			}
		}
	}
	// All names at once, where several headers are needed.
	renamed := http.Header{}
	for name, values := range h {
		if other := otherNames(name); len(other) > 0 {
			renamed[http.CanonicalHeaderKey(other[0])] = values
		} else {
			renamed[name] = values
		}
	}
	_ = try(func(h http.Header) { clear(h); maps.Copy(h, renamed) }, HeaderName,
		"The headers have other names than the gateway sends (underscores or HTTP_ for dashes): pass them on under their names.")
}

// once returns the values of a header that was repeated, on lines of its own or
// joined by a comma. A comma may belong to the value, so all cuts are tried.
func once(values []string) []string {
	all := slices.Clone(values)
	joined := strings.Join(values, ", ")
	parts := strings.Split(joined, ",")
	for i := 1; i < len(parts) && i < 16; i++ {
		all = append(all, strings.TrimSpace(strings.Join(parts[:i], ",")), strings.TrimSpace(strings.Join(parts[i:], ",")))
	}
	return all
}

type valueChange struct {
	value, sentence string
	cause           Cause
}

var (
	folds = regexp.MustCompile(`[ \t]*\r?\n[ \t]+|[ \t]*\r?\n`)
	hexes = regexp.MustCompile(`[0-9a-fA-F]{32,}`)
	bases = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`)
)

func valueChanges(v string) []valueChange {
	const folded = "was wrapped over several lines: its line breaks are no part of it. Pass it on in one line."
	all := []valueChange{
		{folds.ReplaceAllString(v, ""), folded, HeaderFolded},
		{folds.ReplaceAllString(v, " "), folded, HeaderFolded},
		{strings.Join(strings.Fields(v), ""), "has spaces inside: it was wrapped, or copied with them. Pass it on as it came.", HeaderFolded},
		{strings.TrimSpace(v), "has space around its value: pass it on as it came.", HeaderFolded},
		{strings.Trim(v, `"'`), "has quotes around its value: pass it on as it came.", HeaderQuoted},
		{html.UnescapeString(v), "was escaped for HTML: pass it on as it came.", HeaderQuoted},
		{strings.ReplaceAll(v, " ", "+"), "has spaces where + belongs: its base64 was decoded as a form.", HeaderQuoted},
		{strings.ReplaceAll(strings.ReplaceAll(v, "-", "+"), "_", "/"), "is in base64 for URLs: pass it on as it came.", HeaderEncoding},
	}
	if u, err := url.QueryUnescape(v); err == nil {
		all = append(all, valueChange{u, "was percent-encoded: pass it on as it came.", HeaderQuoted})
	}
	if i := strings.LastIndexAny(v, ": "); i >= 0 {
		all = append(all, valueChange{v[i+1:], "has its own name, or a word, in front of its value: pass on the value alone.", HeaderQuoted})
	}
	for _, p := range []string{"sha256=", "sha1=", "v1=", "v1,", "SHA256="} {
		all = append(all, valueChange{strings.TrimPrefix(v, p), "has the prefix " + strings.Trim(p, "=,") + " in front of the digest, which this gateway does not send: the digest was made by something else, or rewritten.", HeaderEncoding})
	}
	for _, at := range hexes.FindAllStringIndex(v, 4) {
		if b, err := hex.DecodeString(v[at[0]:at[1]]); err == nil {
			all = append(all, valueChange{v[:at[0]] + base64.StdEncoding.EncodeToString(b) + v[at[1]:],
				"has the signature in hexadecimal, and this gateway sends base64: something encoded it again, or the digest is compared in the wrong form.", HeaderEncoding})
		}
	}
	for _, at := range bases.FindAllStringIndex(v, 4) {
		text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(v[at[0]:at[1]], "="))
		if b, err := base64.RawStdEncoding.DecodeString(text); err == nil && len(b) >= 16 {
			all = append(all, valueChange{v[:at[0]] + hex.EncodeToString(b) + v[at[1]:],
				"has the signature in base64, and this gateway sends hexadecimal: something encoded it again, or the digest is compared in the wrong form.", HeaderEncoding},
				valueChange{v[:at[0]] + base64.StdEncoding.EncodeToString(b) + v[at[1]:], "lost the padding of its base64, or is in base64 for URLs: pass it on as it came.", HeaderEncoding})
			if inner := string(b); printable(inner) {
				all = append(all, valueChange{v[:at[0]] + inner + v[at[1]:], "was encoded in base64 once more: decode it.", HeaderEncoding})
			}
		}
	}
	return all
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// otherNames are the names that a header may have had.
func otherNames(name string) []string {
	var all []string
	n := strings.ToLower(name)
	if strings.Contains(n, "_") {
		n = strings.ReplaceAll(n, "_", "-")
		all = append(all, n)
	}
	for _, p := range []string{"http-", "x-forwarded-", "x-original-", "x-amzn-remapped-", "x-", "redirect-http-"} {
		if rest, ok := strings.CutPrefix(n, p); ok {
			all = append([]string{rest}, all...)
		}
	}
	if !strings.HasPrefix(n, "x-") {
		all = append(all, "x-"+n)
	}
	return all
}

// oddDigest reports whether a value holds what looks like a digest of a length
// that no digest has.
func oddDigest(v string) bool {
	for _, h := range hexes.FindAllString(v, 4) {
		if !slices.Contains([]int{32, 40, 64, 128}, len(h)) {
			return true
		}
	}
	return false
}
