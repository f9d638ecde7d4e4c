package canonical

import (
	"slices"
	"strings"
)

const (
	// maxHeader is how long a Content-Type, or the headers of a part, may be, in bytes.
	maxHeader = 8 << 10

	// maxFields is how many parameters a header may have, and how many headers a part. Nobody needs more than three.
	maxFields = 16
)

// header is a Content-Type or a Content-Disposition: a name in lower case, and parameters sorted by name. Package mime is not asked:
// it lets filename* replace filename, so that two headers which others tell apart would become one, and what it takes changes with
// Go.
type header struct {
	name   string
	params []field
}

// field is a parameter, or a header of a part; its name is in lower case.
type field struct{ name, value string }

// sortFields sorts, and reports whether no name comes twice.
func sortFields(fields []field) bool {
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(fields); i++ {
		if fields[i].name == fields[i-1].name {
			return false
		}
	}
	return true
}

// parseHeader reads name *( ";" [ name "=" ( token | quoted-string ) ] ). What is quoted is the same as if it were not; a backslash
// in it stays, since readers differ on what it means. Two parameters of one name are refused.
func parseHeader(s string) (header, bool) {
	name, rest, _ := strings.Cut(s, ";")
	h := header{name: strings.ToLower(strings.Trim(name, " \t"))}
	major, minor, slash := strings.Cut(h.name, "/")
	if len(s) > maxHeader || !token(major) || slash && !token(minor) {
		return header{}, false
	}
	for {
		rest = strings.TrimLeft(rest, " \t;")
		if rest == "" {
			return h, sortFields(h.params)
		}
		name, value, _ := strings.Cut(rest, "=")
		if !token(name) || len(h.params) == maxFields {
			return header{}, false
		}
		var ok bool
		if value, rest, ok = parseValue(value); !ok {
			return header{}, false
		}
		h.params = append(h.params, field{strings.ToLower(name), value})
	}
}

// param returns the value of a parameter, and whether there is one.
func (h header) param(name string) (string, bool) {
	for _, p := range h.params {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// parseValue reads a parameter's value, and what follows: nothing, or something that begins with a semicolon.
func parseValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		value, rest = s, ""
		if i := strings.IndexAny(s, "; \t"); i >= 0 {
			value, rest = s[:i], s[i:]
		}
		ok = token(value)
	} else {
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] < ' ' && s[end] != '\t' || s[end] == 0x7f {
				return "", "", false
			}
			if s[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(s) {
			return "", "", false
		}
		value, rest, ok = s[1:end], s[end+1:], true
	}
	rest = strings.TrimLeft(rest, " \t")
	return value, rest, ok && (rest == "" || rest[0] == ';')
}

// token reports whether s is one (RFC 9110, section 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// String writes it in one way: its name, then ";name=" and a canonical JSON string for each parameter. The parameter charset=utf-8
// says nothing that would not hold without it, and is left out.
func (h header) String() string {
	to := []byte(h.name)
	for _, p := range h.params {
		if p.name == "charset" && strings.EqualFold(p.value, "utf-8") {
			continue
		}
		to = append(append(append(to, ';'), p.name...), '=')
		to = appendString(to, p.value)
	}
	return string(to)
}
