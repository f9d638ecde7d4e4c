package diagnose

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// forms are other ways to write a form. Fields keep their order where they can.
func forms(b []byte) [][]byte {
	text := string(b)
	if !strings.ContainsAny(text, "=%") {
		return nil
	}
	all := fieldsOf(text)
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
		sorted := slices.Sorted(slices.Values(fields))
		slices.Reverse(fields)
		all = append(all, []byte(strings.Join(sorted, "&")), []byte(strings.Join(fields, "&")))
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

// maxForm is the longest body that is taken apart for what its fields hold.
const maxForm = 256 << 10

// fieldsOf are the names and values of a form: where JSON is taken for a form, it
// ends up as the name of a field; where it is wrapped in one, as its value.
func fieldsOf(text string) [][]byte {
	if len(text) > maxForm {
		return nil
	}
	var all [][]byte
	fields := strings.SplitN(text, "&", 16)
	for _, f := range fields[:min(len(fields), 15)] {
		name, value, _ := strings.Cut(f, "=")
		for _, part := range []string{name, value} {
			if len(part) > 1 {
				all = append(all, []byte(unescape(part)))
			}
		}
	}
	return all
}
