package diagnose

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"
)

// node is one JSON value. Scalars keep the text they have; keys keep their order.
type node struct {
	kind byte // '{', '[', '"', or 0 for numbers and words
	raw  string
	keys []string // raw, of an object
	kids []*node

	from, to int // where it stands
}

// What is read of a body is bounded: a deep one costs its depth in every line when
// it is indented.
const (
	maxNodes = 20000
	maxDepth = 128
)

// parse reads a JSON document; nil if it is none, or too big to be tried.
func parse(b []byte) *node {
	if !json.Valid(b) {
		return nil
	}
	p := &parser{text: b}
	n := p.value()
	if p.count > maxNodes || p.deep {
		return nil
	}
	return n
}

// parser walks over a document that is known to be valid.
type parser struct {
	text  []byte
	at    int
	count int
	depth int
	deep  bool
}

func (p *parser) skip() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) value() *node {
	p.count++
	p.depth++
	defer func() { p.depth-- }()
	if p.deep = p.deep || p.depth > maxDepth; p.deep || p.count > maxNodes {
		p.at = len(p.text)
		return &node{}
	}
	p.skip()
	from := p.at
	switch c := p.text[p.at]; c {
	case '"':
		return &node{kind: '"', raw: p.str(), from: from, to: p.at}
	case '{', '[':
		n := &node{kind: c, from: from}
		p.at++
		for p.skip(); p.at < len(p.text) && p.text[p.at] != '}' && p.text[p.at] != ']'; p.skip() {
			if p.text[p.at] == ',' {
				p.at++
				p.skip()
			}
			if c == '{' {
				n.keys = append(n.keys, p.str())
				p.skip()
				p.at++ // the colon
			}
			n.kids = append(n.kids, p.value())
		}
		p.at++
		n.to = min(p.at, len(p.text))
		return n
	default:
		for p.at < len(p.text) && strings.IndexByte(",]} \t\r\n", p.text[p.at]) < 0 {
			p.at++
		}
		return &node{raw: string(p.text[from:p.at]), from: from, to: p.at}
	}
}

func (p *parser) str() string {
	from := p.at
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	return string(p.text[from:p.at])
}

// style is a way in which programs write JSON.
type style struct {
	name   string
	comma  string // between elements on one line
	colon  string
	indent string // one level; "": all on one line
	lists  bool   // elements of arrays stay on one line, in spaced brackets
}

// styles are those of the common libraries.
var styles = []style{
	{"without spaces, as JSON.stringify and Go write it", ",", ":", "", false},
	{"with a space after commas and colons, as Python writes it", ", ", ": ", "", false},
	{"with a space after colons", ",", ": ", "", false},
	{"indented by two spaces", ",", ": ", "  ", false},
	{"indented by four spaces, as PHP writes it", ",", ": ", "    ", false},
	{"indented by tabs", ",", ": ", "\t", false},
	{"indented by two spaces with spaces around colons, as Jackson writes it", ", ", " : ", "  ", true},
	{"indented by two spaces with spaces around colons", ",", " : ", "  ", false},
	{"indented by three spaces", ",", ": ", "   ", false},
	{"with a space after commas", ", ", ":", "", false},
}

// write writes a document in a style, with its strings and numbers rewritten.
func (n *node) write(st style, text, number func(string) string) []byte {
	var b bytes.Buffer
	n.put(&b, st, text, number, "\n")
	return b.Bytes()
}

func (n *node) put(b *bytes.Buffer, st style, text, number func(string) string, line string) {
	switch n.kind {
	case '"':
		b.WriteString(text(n.raw))
	case 0:
		b.WriteString(number(n.raw))
	default:
		if len(n.kids) == 0 {
			b.WriteByte(n.kind)
			if st.lists {
				b.WriteByte(' ')
			}
			b.WriteByte(n.kind + 2)
			return
		}
		inner, before, after := line+st.indent, line+st.indent, line
		comma := st.comma
		switch {
		case st.indent == "":
			before, after = "", ""
		case st.lists && n.kind == '[':
			inner, before, after = line, " ", " "
		default:
			comma = strings.TrimRight(st.comma, " ") + before
		}
		b.WriteByte(n.kind)
		b.WriteString(before)
		for i, kid := range n.kids {
			if i > 0 {
				b.WriteString(comma)
			}
			if n.kind == '{' {
				b.WriteString(text(n.keys[i]) + st.colon)
			}
			kid.put(b, st, text, number, inner)
		}
		b.WriteString(after)
		b.WriteByte(n.kind + 2) // } and ] stand two behind { and [
	}
}

func same(s string) string { return s }

// escapes are ways in which programs write strings.
var escapes = []struct {
	name  string
	write func(raw string) string
}{
	{"its characters plain", func(raw string) string { return escape(raw, false, false, "") }},
	{`its accents as \u00e9`, func(raw string) string { return escape(raw, true, false, "") }},
	{`its accents as \u00E9`, func(raw string) string { return escape(raw, true, true, "") }},
	{`its slashes as \/`, func(raw string) string { return escape(raw, false, false, "/") }},
	{`its accents as \u00e9 and slashes as \/, as PHP writes it`, func(raw string) string { return escape(raw, true, false, "/") }},
	{`<, > and & as \u003c, as Go writes it`, func(raw string) string { return escape(raw, false, false, "<>&") }},
	{`<, > and & as \u003C`, func(raw string) string { return escape(raw, false, true, "<>&") }},
	{`accents, <, > and & as \u003C, as .NET writes it`, func(raw string) string { return escape(raw, true, true, "<>&'+") }},
	{`accents and <, > and & as \u003c`, func(raw string) string { return escape(raw, true, false, "<>&") }},
	{`accents and <, > and & as \u003c and slashes as \/`, func(raw string) string { return escape(raw, true, false, "<>&/") }},
	{`accents and <, > and & as \u003C`, func(raw string) string { return escape(raw, true, true, "<>&") }},
	{`<, > and & as \u003c and slashes as \/`, func(raw string) string { return escape(raw, false, false, "<>&/") }},
	{`', ", <, > and & as \u0027, as Rails and PHP can write it`, func(raw string) string { return escape(raw, false, false, "<>&'") }},
	{`" as \u0022, as .NET writes it`, func(raw string) string { return strings.ReplaceAll(escape(raw, true, true, "<>&'+`"), `\"`, `\u0022`) }},
	{`line separators (U+2028) escaped`, func(raw string) string { return escape(raw, false, false, "\u2028\u2029") }},
}

// escape writes a JSON string again: ascii escapes everything beyond ASCII, upper
// in upper case, special the characters that are escaped though they need not be.
func escape(raw string, ascii, upper bool, special string) string {
	var s string
	if json.Unmarshal([]byte(raw), &s) != nil {
		return raw
	}
	digits := "0123456789abcdef"
	if upper {
		digits = "0123456789ABCDEF"
	}
	var b strings.Builder
	unit := func(u uint16) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[u>>shift&15])
		}
	}
	b.WriteByte('"')
	for _, r := range s {
		short := strings.IndexRune("\"\\\b\f\n\r\t", r)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[short])
		case r == '/' && strings.Contains(special, "/"):
			b.WriteString(`\/`)
		case r < 0x20, strings.ContainsRune(special, r), ascii && r > 0x7e && r < 0x10000:
			unit(uint16(r))
		case ascii && r >= 0x10000:
			hi, lo := utf16.EncodeRune(r)
			unit(uint16(hi))
			unit(uint16(lo))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// inPlace rewrites strings and leaves all else as it stands.
func inPlace(b []byte, text func(string) string) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	for i := 0; i < len(b); {
		if b[i] != '"' {
			out = append(out, b[i])
			i++
			continue
		}
		from := i
		for i++; i < len(b) && b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		i = min(i+1, len(b))
		out = append(out, text(string(b[from:i]))...)
	}
	return out
}

// sorted reports whether every object of a document with at least four keys in
// all has its keys in alphabetical order.
func sorted(n *node) bool {
	keys, objects := 0, 0
	var walk func(*node) bool
	walk = func(n *node) bool {
		keys += len(n.keys)
		if len(n.keys) > 1 {
			objects++
		}
		return slices.IsSorted(n.keys) && !slices.ContainsFunc(n.kids, func(k *node) bool { return !walk(k) })
	}
	return walk(n) && keys >= 4 && objects > 0 && (len(n.keys) > 2 || objects > 1)
}

// spacedOut reports whether a document has a space after every comma and colon, as
// Python's json writes it.
func spacedOut(b []byte) bool {
	n := parse(b)
	return n != nil && len(n.keys) > 1 && bytes.Equal(bytes.TrimSpace(b), n.write(styles[1], same, same))
}
