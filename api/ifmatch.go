package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// matching is the header If-Match (RFC 9110, 13.1.1): which versions a change is meant for.
type matching string

const formatMatching = "if-match"

// Schema documents it.
func (matching) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Format: formatMatching, Examples: []any{`"3"`},
		Description: "The ETag of the order as you have read it: the change is made if the order is still so. A list means any of them, * whatever there " +
			"is. Comparison is strong, so a weak tag (W/\"3\") never matches.",
	}
}

func isMatching(s string) (code, detail string) {
	if _, ok := parseMatching(s); !ok {
		return "invalid_etag", `must be entity tags in quotes, as ETag shows them, with commas between them, or *`
	}
	return "", ""
}

// matches says whether an entity tag is one of those that If-Match names.
type matches struct {
	any  bool
	tags []string // strong ones, with their quotes
}

func (m matches) has(tag string) bool {
	if m.any {
		return true
	}
	for _, t := range m.tags {
		if t == tag {
			return true
		}
	}
	return false
}

// parseMatching reads If-Match: *, or a list of entity tags, in which elements may be empty. Commas stand in tags, too.
func parseMatching(s string) (matches, bool) {
	s = strings.Trim(s, " \t")
	if s == "*" {
		return matches{any: true}, true
	}
	var m matches
	found := false
	for s != "" {
		if s[0] == ',' || s[0] == ' ' || s[0] == '\t' {
			s = s[1:]
			continue
		}
		tag, weak := strings.CutPrefix(s, "W/")
		if tag == "" || tag[0] != '"' {
			return matches{}, false
		}
		end := strings.IndexByte(tag[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(tag[1:end-1], notInTag) {
			return matches{}, false
		}
		if !weak {
			m.tags = append(m.tags, tag[:end])
		}
		found = true
		s = strings.TrimLeft(tag[end:], " \t")
		if s != "" && s[0] != ',' {
			return matches{}, false
		}
	}
	return m, found
}

// notInTag reports what no entity tag has: spaces and control characters.
func notInTag(r rune) bool { return r <= ' ' || r == 0x7f }
