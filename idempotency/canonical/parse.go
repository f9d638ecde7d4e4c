package canonical

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

type kind uint8

const (
	null kind = iota
	boolTrue
	boolFalse
	number // text holds its canonical form
	str    // text holds its characters
	array  // items holds its elements
	object // items holds its members, sorted
)

// item is a value, and its name where it is a member. Offsets are small enough because of maxBytes.
type item struct {
	at         uint32 // where it begins in the body: a member at its name
	name, stop uint32 // text[name:stop] is its name
	from, to   uint32 // into text or items
	kind       kind
}

// frame is an array or object that is open.
type frame struct {
	at     uint32
	first  uint32 // the first of its items in waiting
	object bool
	sorted bool // so far its members came in order, and so without duplicates
	inside bool // one of its values is being read; of an object the one that nameAt, name and stop tell of, as in item

	nameAt, name, stop uint32
}

// parser reads a body once, from front to back. Its depth is in frames and not on the goroutine's stack.
type parser struct {
	body    []byte
	i       int     // the next byte
	text    []byte  // strings, names and numbers
	items   []item  // those of closed arrays and objects
	waiting []item  // those of open ones, innermost last; at the end the root
	frames  []frame // at most MaxDepth
}

func newParser(body []byte) *parser {
	return &parser{
		body:    body,
		text:    make([]byte, 0, len(body)+16),
		items:   make([]item, 0, len(body)/16+4),
		waiting: make([]item, 0, min(len(body)/16, 64)+4),
		frames:  make([]frame, 0, 8),
	}
}

func (p *parser) parse() (item, error) {
	if bytes.HasPrefix(p.body, []byte("\ufeff")) {
		return item{}, p.fail(ByteOrderMark, 0)
	}
	for {
		whole, err := p.value()
		for whole && err == nil {
			if len(p.frames) == 0 {
				return p.waiting[0], p.end()
			}
			whole, err = p.follow()
		}
		if err != nil {
			return item{}, err
		}
	}
}

func (p *parser) end() error {
	if p.space() {
		return p.fail(TrailingData, p.i)
	}
	return nil
}

// value reads a scalar, an empty array or object, or what opens another; then whole is false, and its first value is next.
func (p *parser) value() (whole bool, err error) {
	if len(p.frames) > 0 {
		p.top().inside = true
	}
	if !p.space() {
		return false, p.fail(Truncated, p.i)
	}
	at := p.i
	switch c := p.body[at]; c {
	case '{', '[':
		if len(p.frames) == MaxDepth {
			return false, p.fail(TooDeep, at)
		}
		p.i++
		p.frames = append(p.frames, frame{at: uint32(at), first: uint32(len(p.waiting)), object: c == '{', sorted: true})
		if !p.space() {
			return false, p.fail(Truncated, p.i)
		}
		if p.body[p.i] == c+2 { // '}' or ']'
			return true, p.close()
		}
		if c == '{' {
			return false, p.member()
		}
		return false, nil
	case '"':
		from, to, err := p.str()
		if err != nil {
			return false, err
		}
		p.add(item{at: uint32(at), from: from, to: to, kind: str})
		return true, nil
	case 't':
		return true, p.literal("true", boolTrue)
	case 'f':
		return true, p.literal("false", boolFalse)
	case 'n':
		return true, p.literal("null", null)
	default:
		if c != '-' && !digit(c) {
			return false, p.fail(UnexpectedByte, at)
		}
		from := len(p.text)
		if err := p.number(); err != nil {
			return false, err
		}
		p.add(item{at: uint32(at), from: uint32(from), to: uint32(len(p.text)), kind: number})
		return true, nil
	}
}

// follow reads what comes behind a value in an array or object: what closes that, or a comma; then whole is false, and a value is
// next.
func (p *parser) follow() (whole bool, err error) {
	if !p.space() {
		return false, p.fail(Truncated, p.i)
	}
	f := p.top()
	switch c := p.body[p.i]; {
	case c == ',' && f.object:
		p.i++
		if !p.space() {
			return false, p.fail(Truncated, p.i)
		}
		return false, p.member()
	case c == ',':
		p.i++
		return false, nil
	case c == '}' && f.object, c == ']' && !f.object:
		return true, p.close()
	}
	return false, p.fail(UnexpectedByte, p.i)
}

// member reads a name and its colon.
func (p *parser) member() error {
	at := p.i
	if p.body[at] != '"' {
		return p.fail(UnexpectedByte, at)
	}
	from, to, err := p.str()
	if err != nil {
		return err
	}
	f := p.top()
	f.inside, f.nameAt, f.name, f.stop = true, uint32(at), from, to
	if !p.space() {
		return p.fail(Truncated, p.i)
	}
	if p.body[p.i] != ':' {
		return p.fail(UnexpectedByte, p.i)
	}
	p.i++
	return nil
}

func (p *parser) top() *frame { return &p.frames[len(p.frames)-1] }

// add puts a value where it belongs: to the innermost open array or object.
func (p *parser) add(v item) {
	if len(p.frames) > 0 {
		f := p.top()
		f.inside = false
		if f.object {
			v.at, v.name, v.stop = f.nameAt, f.name, f.stop
			if n := len(p.waiting); f.sorted && n > int(f.first) {
				f.sorted = bytes.Compare(p.name(p.waiting[n-1]), p.name(v)) < 0
			}
		}
	}
	p.waiting = append(p.waiting, v)
}

func (p *parser) name(v item) []byte { return p.text[v.name:v.stop] }

// close makes the innermost open array or object a value.
func (p *parser) close() error {
	p.i++
	f := *p.top()
	v := item{at: f.at, from: uint32(len(p.items)), kind: array}
	inside := p.waiting[f.first:]
	if f.object {
		v.kind = object
		if !f.sorted {
			if err := p.sort(inside); err != nil {
				return err
			}
		}
	}
	p.items = append(p.items, inside...)
	v.to = uint32(len(p.items))
	p.waiting = p.waiting[:f.first]
	p.frames = p.frames[:len(p.frames)-1]
	p.add(v)
	return nil
}

// sort orders the members of the innermost open object, and refuses two of one name.
func (p *parser) sort(members []item) error {
	slices.SortFunc(members, func(a, b item) int {
		if c := bytes.Compare(p.name(a), p.name(b)); c != 0 {
			return c
		}
		return int(a.at) - int(b.at)
	})
	var second item // the first in the body that repeats a name
	for i, v := range members[1:] {
		if bytes.Equal(p.name(members[i]), p.name(v)) && (second.at == 0 || v.at < second.at) {
			second = v
		}
	}
	if second.at == 0 { // no member begins at 0
		return nil
	}
	f := p.top()
	f.inside, f.name, f.stop = true, second.name, second.stop
	return p.fail(DuplicateName, int(second.at))
}

func (p *parser) literal(word string, k kind) error {
	at := p.i
	for j := range len(word) {
		if p.i == len(p.body) {
			return p.fail(Truncated, p.i)
		}
		if p.body[p.i] != word[j] {
			return p.fail(UnexpectedByte, p.i)
		}
		p.i++
	}
	p.add(item{at: uint32(at), kind: k})
	return nil
}

// str reads a string, and leaves its characters in text.
func (p *parser) str() (from, to uint32, err error) {
	start := len(p.text)
	p.i++
	for {
		plain := p.i
		for p.i < len(p.body) && p.body[p.i] >= ' ' && p.body[p.i] != '"' && p.body[p.i] != '\\' && p.body[p.i] < utf8.RuneSelf {
			p.i++
		}
		p.text = append(p.text, p.body[plain:p.i]...)
		if p.i == len(p.body) {
			return 0, 0, p.fail(Truncated, p.i)
		}
		switch c := p.body[p.i]; {
		case c == '"':
			p.i++
			return uint32(start), uint32(len(p.text)), nil
		case c == '\\':
			if err := p.escape(); err != nil {
				return 0, 0, err
			}
		case c < ' ':
			return 0, 0, p.fail(ControlCharacter, p.i)
		default:
			r, size := utf8.DecodeRune(p.body[p.i:])
			if r == utf8.RuneError && size == 1 {
				return 0, 0, p.fail(InvalidUTF8, p.i)
			}
			p.text = append(p.text, p.body[p.i:p.i+size]...)
			p.i += size
		}
	}
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads an escape, or two that make one character.
func (p *parser) escape() error {
	at := p.i
	if at+1 == len(p.body) {
		return p.fail(Truncated, at+1)
	}
	c := p.body[at+1]
	if c != 'u' {
		if escapes[c] == 0 {
			return p.fail(MalformedEscape, at)
		}
		p.text = append(p.text, escapes[c])
		p.i += 2
		return nil
	}
	r, err := p.unit()
	if err != nil {
		return err
	}
	switch {
	case r >= 0xdc00 && r <= 0xdfff:
		return p.fail(LoneSurrogate, at)
	case r >= 0xd800 && r <= 0xdbff:
		if rest := p.body[p.i:]; len(rest) == 0 || len(rest) == 1 && rest[0] == '\\' {
			return p.fail(Truncated, len(p.body))
		} else if rest[0] != '\\' || rest[1] != 'u' {
			return p.fail(LoneSurrogate, at)
		}
		low, err := p.unit()
		if err != nil {
			return err
		}
		if low < 0xdc00 || low > 0xdfff {
			return p.fail(LoneSurrogate, at)
		}
		r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	p.text = utf8.AppendRune(p.text, r)
	return nil
}

// unit reads \uXXXX, of which the first two bytes are known.
func (p *parser) unit() (rune, error) {
	var r rune
	for j := p.i + 2; j < p.i+6; j++ {
		if j >= len(p.body) {
			return 0, p.fail(Truncated, len(p.body))
		}
		switch c := p.body[j]; {
		case digit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, p.fail(MalformedEscape, p.i)
		}
	}
	p.i += 6
	return r, nil
}

// space skips white space, and reports whether anything follows.
func (p *parser) space() bool {
	for ; p.i < len(p.body); p.i++ {
		switch p.body[p.i] {
		case ' ', '\t', '\n', '\r':
		default:
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// fail refuses the body at an offset, in the innermost value that is being read.
func (p *parser) fail(why Reason, at int) error {
	var to pointer
	for i, f := range p.frames {
		end := len(p.waiting)
		if i+1 < len(p.frames) {
			end = int(p.frames[i+1].first)
		}
		if !f.inside || f.object && !to.name(p.text[f.name:f.stop]) || !f.object && !to.index(end-int(f.first)) {
			break
		}
	}
	return &SyntaxError{Offset: at, Pointer: string(to), Reason: why}
}
