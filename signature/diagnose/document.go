package diagnose

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// node is one JSON value. Scalars keep the text they have; keys keep their order.
type node struct {
	kind byte // '{', '[', '"', or 0 for numbers and words
	raw  string
	keys []string // raw, of an object
	kids []*node
}

// maxNodes bounds what is read of a body.
const maxNodes = 20000

// parse reads a JSON document; nil if it is none, or too big to be tried.
func parse(b []byte) *node {
	if !json.Valid(b) {
		return nil
	}
	p := &parser{text: b}
	n := p.value()
	if p.count > maxNodes {
		return nil
	}
	return n
}

// parser walks over a document that is known to be valid.
type parser struct {
	text  []byte
	at    int
	count int
}

func (p *parser) skip() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) value() *node {
	p.count++
	if p.count > maxNodes {
		p.at = len(p.text)
		return &node{}
	}
	p.skip()
	switch c := p.text[p.at]; c {
	case '"':
		return &node{kind: '"', raw: p.str()}
	case '{', '[':
		n := &node{kind: c}
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
		return n
	default:
		from := p.at
		for p.at < len(p.text) && strings.IndexByte(",]} \t\r\n", p.text[p.at]) < 0 {
			p.at++
		}
		return &node{raw: string(p.text[from:p.at])}
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
}

// styles are those of the common libraries.
var styles = []style{
	{"without spaces, as JSON.stringify and Go write it", ",", ":", ""},
	{"with a space after commas and colons, as Python writes it", ", ", ": ", ""},
	{"with a space after colons", ",", ": ", ""},
	{"indented by two spaces", ",", ": ", "  "},
	{"indented by four spaces, as PHP writes it", ",", ": ", "    "},
	{"indented by tabs", ",", ": ", "\t"},
	{"indented by two spaces with spaces around colons, as Jackson writes it", ",", " : ", "  "},
	{"indented by three spaces", ",", ": ", "   "},
}

// write writes a document in a style, with its strings and numbers rewritten.
func (n *node) write(st style, text, number func(string) string) []byte {
	var b bytes.Buffer
	n.to(&b, st, text, number, "\n")
	return b.Bytes()
}

func (n *node) to(b *bytes.Buffer, st style, text, number func(string) string, line string) {
	switch n.kind {
	case '"':
		b.WriteString(text(n.raw))
	case 0:
		b.WriteString(number(n.raw))
	default:
		closing := byte('}')
		if n.kind == '[' {
			closing = ']'
		}
		b.WriteByte(n.kind)
		inner := line + st.indent
		for i, kid := range n.kids {
			if i > 0 {
				b.WriteString(st.comma)
			}
			if st.indent != "" {
				b.WriteString(inner)
			}
			if n.kind == '{' {
				b.WriteString(text(n.keys[i]) + st.colon)
			}
			kid.to(b, st, text, number, inner)
		}
		if st.indent != "" && len(n.kids) > 0 {
			b.WriteString(line)
		}
		b.WriteByte(closing)
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

// reorder puts the keys of n in the order that like has; keys that like does not
// know come last, in the order they have.
func (n *node) reorder(like *node) *node {
	if like == nil || n.kind != like.kind || n.kind != '{' && n.kind != '[' {
		return n
	}
	out := &node{kind: n.kind, raw: n.raw}
	if n.kind == '[' {
		for i, kid := range n.kids {
			if len(like.kids) > 0 {
				kid = kid.reorder(like.kids[min(i, len(like.kids)-1)])
			}
			out.kids = append(out.kids, kid)
		}
		return out
	}
	take := func(i int, l *node) {
		out.keys, out.kids = append(out.keys, n.keys[i]), append(out.kids, n.kids[i].reorder(l))
	}
	for j, key := range like.keys {
		if i := slices.Index(n.keys, key); i >= 0 {
			take(i, like.kids[j])
		}
	}
	for i, key := range n.keys {
		if !slices.Contains(like.keys, key) {
			take(i, nil)
		}
	}
	return out
}

// sorted reports whether every object of a document with at least four keys in
// all has its keys in alphabetical order.
func sorted(b []byte) bool {
	n := parse(b)
	if n == nil {
		return false
	}
	keys := 0
	var walk func(*node) bool
	walk = func(n *node) bool {
		keys += len(n.keys)
		return slices.IsSorted(n.keys) && !slices.ContainsFunc(n.kids, func(k *node) bool { return !walk(k) })
	}
	return walk(n) && keys >= 4 && len(n.keys) > 1
}

// looksRewritten reports whether a document has a space after every comma and
// colon: what Python's json writes, and no gateway sends.
func looksRewritten(b []byte) bool {
	n := parse(b)
	return n != nil && len(n.keys) > 1 && bytes.Equal(bytes.TrimSpace(b), n.write(styles[1], same, same)) && utf8.Valid(b)
}

// sortBy sorts indices by the names that they lead to.
func sortBy(order []int, names []string) {
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(names[i], names[j]) })
}
