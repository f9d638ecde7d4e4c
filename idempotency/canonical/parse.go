package canonical

import (
	"bytes"
	"slices"
)

// parser reads a body once, from front to back, and writes as it goes what it has read in its canonical form, but for the order of
// members. Its depth is in frames and not on the goroutine's stack.
type parser struct {
	body   []byte
	i      int      // the next byte
	text   []byte   // the canonical form, with all members as they came
	frames []frame  // open arrays and objects, innermost last; at most MaxDepth
	names  []byte   // the names of members of open objects, unescaped
	open   []member // those members
	order  []span   // members of objects that were out of order, in order
	moved  []object // those objects, as they were closed
}

// frame is an array or object that is open.
type frame struct {
	from   int // in text
	count  int // of elements or members that are complete
	first  int // in open, of the object's members
	names  int // in names, likewise
	object bool
	sorted bool // so far the names came in order, and so without duplicates
	inside bool // an element or a member is being read; the member is the last in open
}

// member is one of an open object.
type member struct {
	at   int32 // in the body
	name span  // in names
	text span  // the name, colon and value in text
}

// span is a part of something that maxBytes keeps short enough: text has at most three bytes for one of the body.
type span struct{ from, to int32 }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// object is one whose members are in order[first:last] instead of in text.
type object struct {
	text        span
	first, last int
}

func newParser(body []byte) *parser {
	return &parser{
		body:   body,
		text:   make([]byte, 0, len(body)+len(body)/4+8),
		frames: make([]frame, 0, 8),
	}
}

// parse returns the canonical form.
func (p *parser) parse() ([]byte, error) {
	if bytes.HasPrefix(p.body, []byte("\ufeff")) {
		return nil, p.fail(ByteOrderMark, 0)
	}
	for {
		whole, err := p.value()
		for whole && err == nil {
			if len(p.frames) == 0 {
				if p.space() {
					return nil, p.fail(TrailingData, p.i)
				}
				return p.ordered(), nil
			}
			whole, err = p.follow()
		}
		if err != nil {
			return nil, err
		}
	}
}

// value reads a scalar, an empty array or object, or what opens another; then whole is false, and its first value is next.
func (p *parser) value() (whole bool, err error) {
	if len(p.frames) > 0 {
		p.top().inside = true
	}
	if !p.space() {
		return false, p.fail(Truncated, p.i)
	}
	switch c := p.body[p.i]; c {
	case '{', '[':
		return p.enter(c)
	case '"':
		return true, p.str()
	case 't':
		return true, p.literal("true")
	case 'f':
		return true, p.literal("false")
	case 'n':
		return true, p.literal("null")
	default:
		if c != '-' && !digit(c) {
			return false, p.fail(UnexpectedByte, p.i)
		}
		return true, p.number()
	}
}

// enter opens an array or object, and closes it if it is empty.
func (p *parser) enter(c byte) (whole bool, err error) {
	if len(p.frames) == MaxDepth {
		return false, p.fail(TooDeep, p.i)
	}
	p.i++
	p.frames = append(p.frames, frame{from: len(p.text), first: len(p.open), names: len(p.names), object: c == '{', sorted: true})
	p.text = append(p.text, c)
	switch {
	case !p.space():
		return false, p.fail(Truncated, p.i)
	case p.body[p.i] == c+2: // } or ]
		return true, p.leave()
	case c == '{':
		return false, p.name()
	}
	return false, nil
}

// follow reads what comes behind a value in an array or object: what closes that, or a comma; then whole is false, and a value is
// next.
func (p *parser) follow() (whole bool, err error) {
	f := p.top()
	f.inside = false
	f.count++
	if f.object {
		p.open[len(p.open)-1].text.to = int32(len(p.text))
	}
	if !p.space() {
		return false, p.fail(Truncated, p.i)
	}
	switch c := p.body[p.i]; {
	case c == ',':
		p.i++
		p.text = append(p.text, ',')
		if !f.object {
			return false, nil
		}
		if !p.space() {
			return false, p.fail(Truncated, p.i)
		}
		return false, p.name()
	case c == '}' && f.object, c == ']' && !f.object:
		return true, p.leave()
	}
	return false, p.fail(UnexpectedByte, p.i)
}

// name reads a member's name and colon.
func (p *parser) name() error {
	at, text, name := p.i, len(p.text), len(p.names)
	if p.body[at] != '"' {
		return p.fail(UnexpectedByte, at)
	}
	if err := p.str(); err != nil {
		return err
	}
	p.names = appendUnescaped(p.names, p.text[text+1:len(p.text)-1])
	m := member{at: int32(at), name: span{int32(name), int32(len(p.names))}, text: span{from: int32(text)}}
	f := p.top()
	if f.sorted && len(p.open) > f.first {
		f.sorted = p.compare(p.open[len(p.open)-1], m) < 0
	}
	p.open = append(p.open, m)
	f.inside = true
	if !p.space() {
		return p.fail(Truncated, p.i)
	}
	if p.body[p.i] != ':' {
		return p.fail(UnexpectedByte, p.i)
	}
	p.i++
	p.text = append(p.text, ':')
	return nil
}

func (p *parser) top() *frame { return &p.frames[len(p.frames)-1] }

// leave closes the innermost array or object.
func (p *parser) leave() error {
	f := p.top()
	if !f.sorted {
		if err := p.sort(p.open[f.first:]); err != nil {
			return err
		}
	}
	p.text = append(p.text, p.body[p.i])
	p.i++
	if !f.sorted {
		first := len(p.order)
		for _, m := range p.open[f.first:] {
			p.order = append(p.order, m.text)
		}
		p.moved = append(p.moved, object{text: span{int32(f.from), int32(len(p.text))}, first: first, last: len(p.order)})
	}
	p.open, p.names = p.open[:f.first], p.names[:f.names]
	p.frames = p.frames[:len(p.frames)-1]
	return nil
}

// sort orders the members of the innermost object, and refuses two of one name.
func (p *parser) sort(members []member) error {
	slices.SortFunc(members, func(a, b member) int {
		if c := p.compare(a, b); c != 0 {
			return c
		}
		return int(a.at - b.at)
	})
	second := -1 // the first in the body that repeats a name
	for i := 1; i < len(members); i++ {
		if p.compare(members[i-1], members[i]) == 0 && (second < 0 || members[i].at < members[second].at) {
			second = i
		}
	}
	if second < 0 {
		return nil
	}
	p.top().inside = true
	p.open = append(p.open, members[second])
	return p.fail(DuplicateName, int(members[second].at))
}

func (p *parser) compare(a, b member) int {
	return bytes.Compare(a.name.of(p.names), b.name.of(p.names))
}

// ordered returns text with all members in order. What came in order is copied in long stretches, or not at all.
func (p *parser) ordered() []byte {
	if len(p.moved) == 0 {
		return p.text
	}
	slices.SortFunc(p.moved, func(a, b object) int { return int(a.text.from - b.text.from) })
	return p.appendOrdered(make([]byte, 0, len(p.text)), span{0, int32(len(p.text))})
}

// appendOrdered does so for a part of text. It recurses no deeper than MaxDepth.
func (p *parser) appendOrdered(to []byte, part span) []byte {
	for {
		i, _ := slices.BinarySearchFunc(p.moved, part.from, func(o object, from int32) int { return int(o.text.from - from) })
		if i == len(p.moved) || p.moved[i].text.from >= part.to {
			return append(to, part.of(p.text)...)
		}
		o := p.moved[i]
		to = append(to, p.text[part.from:o.text.from]...)
		for j, m := range p.order[o.first:o.last] {
			to = append(to, "{,"[min(j, 1)])
			to = p.appendOrdered(to, m)
		}
		to = append(to, '}')
		part.from = o.text.to
	}
}

func (p *parser) literal(word string) error {
	for j := range len(word) {
		if p.i == len(p.body) {
			return p.fail(Truncated, p.i)
		}
		if p.body[p.i] != word[j] {
			return p.fail(UnexpectedByte, p.i)
		}
		p.i++
	}
	p.text = append(p.text, word...)
	return nil
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
		if !f.inside {
			break
		}
		if f.object {
			m := p.open[len(p.open)-1]
			if i+1 < len(p.frames) {
				m = p.open[p.frames[i+1].first-1]
			}
			if !to.name(m.name.of(p.names)) {
				break
			}
		} else if !to.index(f.count) {
			break
		}
	}
	return &SyntaxError{Offset: at, Pointer: string(to), Reason: why}
}
