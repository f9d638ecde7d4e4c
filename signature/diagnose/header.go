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
		return yield(variant{attempt: v, cause: cause, sentence: sentence})
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
	for i := range len(renames) + 1 {
		renamed := http.Header{}
		for name, values := range h {
			other := strings.ReplaceAll(strings.ToLower(name), "_", "-")
			if i < len(renames) {
				other = strings.TrimPrefix(other, renames[i])
			} else {
				other = "x-" + other
			}
			renamed[http.CanonicalHeaderKey(other)] = values
		}
		if !try(func(h http.Header) { clear(h); maps.Copy(h, renamed) }, HeaderName,
			"The headers have other names than the gateway sends (underscores or HTTP_ for dashes, a prefix too many): pass them on under their names.") {
			return
		}
	}
}

// renames are what is put in front of the names of headers.
var renames = []string{"http-", "x-forwarded-", "x-original-", "x-amzn-remapped-", "redirect-http-", "x-"}

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
		{strings.Trim(v, `[]"' `), "has brackets around its value: it was printed as a list (some frameworks keep all values of a header). Pass on the value alone.", HeaderQuoted},
		{strings.Trim(v, "\ufeff\u200b\u00a0;, \t\r\n"), "has a character around its value that does not belong to it: pass it on as it came.", HeaderQuoted},
		{strings.ToLower(v), "was changed to upper case: pass it on as it came.", HeaderEncoding},
		{strings.Join(strings.FieldsFunc(v, func(r rune) bool { return r == '\u00a0' || r == '\u200b' || r == '\u00ad' }), ""), "has invisible characters inside: it was copied with them. Pass it on as it came.", HeaderQuoted},
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
			all = append(all, valueChange{
				v[:at[0]] + base64.StdEncoding.EncodeToString(b) + v[at[1]:],
				"has the signature in hexadecimal, and this gateway sends base64: something encoded it again, or the digest is compared in the wrong form.", HeaderEncoding,
			})
		}
	}
	for _, at := range baseParts(v) {
		text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(v[at[0]:at[1]], "="))
		if b, err := base64.RawStdEncoding.DecodeString(text); err == nil && len(b) >= 16 {
			all = append(all, valueChange{
				v[:at[0]] + hex.EncodeToString(b) + v[at[1]:],
				"has the signature in base64, and this gateway sends hexadecimal: something encoded it again, or the digest is compared in the wrong form.", HeaderEncoding,
			},
				valueChange{v[:at[0]] + base64.StdEncoding.EncodeToString(b) + v[at[1]:], "lost the padding of its base64, or is in base64 for URLs: pass it on as it came.", HeaderEncoding})
			if inner := string(b); printable(inner) {
				all = append(all, valueChange{v[:at[0]] + inner + v[at[1]:], "was encoded in base64 once more: decode it.", HeaderEncoding})
			}
		}
	}
	return all
}

// baseParts are where base64 may stand in a value. A slash may be part of it, or end
// what is in front of it.
func baseParts(v string) [][]int {
	var all [][]int
	for _, at := range bases.FindAllStringIndex(v, 4) {
		all = append(all, at)
		for i := at[0]; i < min(at[0]+16, at[1]-20); i++ {
			if v[i] == '/' {
				all = append(all, []int{i + 1, at[1]})
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
	for _, p := range renames {
		if rest, ok := strings.CutPrefix(n, p); ok {
			all = append([]string{rest}, all...)
		}
	}
	if !strings.HasPrefix(n, "x-") {
		all = append(all, "x-"+n)
	}
	return all
}

// sizes are the lengths of digests and signatures, in bytes: HMAC with MD5 to
// SHA-512, Ed25519 and P-256, RSA from 1024 to 8192 bits.
var (
	digestSizes = []int{16, 20, 32, 48, 64}
	publicSizes = []int{64, 128, 256, 384, 512, 1024}
)

// oddDigest reports whether what looks like a digest in a value is shorter than one
// by its length.
func oddDigest(v string, public bool) bool {
	sizes := digestSizes
	if public {
		sizes = publicSizes
	}
	if strings.Count(v, ".") == 2 { // a token: its signature is the last part
		v = v[strings.LastIndexByte(v, '.')+1:]
	}
	if all := hexes.FindAllString(v, 4); len(all) > 0 {
		return slices.ContainsFunc(all, func(h string) bool { return len(h)%2 != 0 || !slices.Contains(sizes, len(h)/2) })
	}
	return slices.ContainsFunc(bases.FindAllString(v, 4), func(text string) bool {
		text = strings.TrimRight(text, "=")
		return len(text)%4 == 1 || !slices.Contains(sizes, len(text)*3/4)
	})
}
