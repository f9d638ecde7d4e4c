package diagnose

import (
	"bytes"
	"slices"
)

// respelled undoes what happens to JSON that is parsed and written again, where one
// thing changed by it: its layout, the form of its strings, of one of its numbers.
func respelled(s *search, a attempt, yield func(variant) bool) {
	if r := rewriterOf(s, a, yield); r != nil {
		_ = r.spaces() && r.escapes() && r.oneNumber()
	}
}

// rewritten undoes it where several things changed, or the order of the keys.
func rewritten(s *search, a attempt, yield func(variant) bool) {
	if r := rewriterOf(s, a, yield); r != nil {
		_ = r.numbers(r.tree) && r.empties(r.tree) && r.orders() && r.moves() && r.restNumbers() && r.permuted()
	}
}

// rewriterOf is the rewriter of a body, nil if that is not JSON.
func rewriterOf(s *search, a attempt, yield func(variant) bool) *rewriter {
	was := a.request.Body
	n := parse(was)
	if n == nil {
		return nil
	}
	return &rewriter{
		was: was, tree: n, style: max(0, styleOf(was, n)), templates: s.in.Templates,
		yield: func(body []byte, hint string) bool {
			return yield(variant{attempt: a.body(body), describe: func() (Cause, string) { return differences(was, body, hint) }})
		},
	}
}

// rewriter tries other ways in which one document may have been written.
type rewriter struct {
	was       []byte
	tree      *node
	style     int // the layout it has, 0 if none of the known
	templates [][]byte
	yield     func(body []byte, hint string) bool
}

// try tries a body, and with a line break at its end.
func (r *rewriter) try(body []byte, hint string) bool {
	return r.once(body, hint) && r.once(append(bytes.Clone(body), '\n'), hint)
}

func (r *rewriter) once(body []byte, hint string) bool {
	return bytes.Equal(body, r.was) || r.yield(body, hint)
}

func (r *rewriter) spaces() bool {
	for _, st := range styles {
		if !r.try(r.tree.write(st, same, same), st.name) {
			return false
		}
	}
	return true
}

func (r *rewriter) escapes() bool {
	for _, e := range escapes {
		if !r.once(inPlace(r.was, e.write), "with "+e.name) {
			return false
		}
	}
	for _, e := range escapes {
		for _, st := range styles {
			if !r.try(r.tree.write(st, e.write, same), st.name+", with "+e.name) {
				return false
			}
		}
	}
	return true
}

// origin is a usual way to write JSON.
type origin struct {
	style style
	text  func(string) string
	hint  string
}

// origins are the usual ways, from the most usual: layout and form of strings.
func (r *rewriter) origins() []origin {
	all := []origin{{styles[r.style], same, styles[r.style].name}}
	if r.style != 0 {
		all = append(all, origin{styles[0], same, styles[0].name})
	}
	for _, o := range [...][2]int{
		{0, 0}, {0, 4}, {0, 1}, {0, 3}, {1, 1}, {3, 0}, {1, 0}, {0, 5}, {0, 7}, {3, 1}, {4, 0}, {4, 4}, {4, 1}, {6, 0}, {5, 0}, {3, 4}, {0, 8}, {0, 9}, {0, 10},
	} {
		st, e := styles[o[0]], escapes[o[1]]
		all = append(all, origin{st, e.write, st.name + ", with " + e.name})
	}
	return all
}

// differences says in which ways a body was changed from what was signed.
func differences(is, was []byte, hint string) (Cause, string) {
	a, b := parse(is), parse(was)
	if a == nil || b == nil {
		return JSONSpacing, parsedAgain + "it changed." + rawBytes
	}
	var what []string
	cause := Cause("")
	add := func(c Cause, text string) {
		if what = append(what, text); cause == "" {
			cause = c
		}
	}
	moved := !sameOrder(a, b)
	if moved {
		add(JSONKeyOrder, "the order of its keys changed")
	}
	if !slices.Equal(a.scalars(0), b.scalars(0)) {
		add(JSONNumbers, "the form of a number changed (72.00 became 72, or the reverse)")
	}
	if !slices.Equal(a.scalars('e'), b.scalars('e')) {
		add(JSONEmpty, "an empty object became an empty list, as in PHP, or the reverse")
	}
	spaces := styleOf(is, a) != styleOf(was, b) || !moved && !bytes.Equal(gaps(is), gaps(was))
	if spaces {
		add(JSONSpacing, "its spaces changed")
	}
	if !slices.Equal(a.scalars('"'), b.scalars('"')) && !quotedNumber(a, b) {
		add(JSONEscapes, "its escapes changed")
	}
	text := parsedAgain
	for i, w := range what {
		switch {
		case i > 0 && i == len(what)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += w
	}
	if hint != "" && (spaces || cause == JSONEscapes) {
		text += " (what was signed is written " + hint + ")"
	}
	return cause, text + "." + rawBytes
}

const parsedAgain = "The JSON was parsed and written again: "

// styleOf is the layout of a document, -1 for none of the known.
func styleOf(b []byte, n *node) int {
	return slices.IndexFunc(styles, func(st style) bool { return bytes.Equal(bytes.TrimSpace(b), n.write(st, same, same)) })
}

// gaps is a document without its strings and numbers: what is left is its layout.
func gaps(b []byte) []byte {
	var out []byte
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case ' ', '\t', '\n', '\r', ',', ':':
			out = append(out, b[i])
		}
	}
	return out
}

// sameOrder reports whether two documents have the same keys in the same order.
func sameOrder(a, b *node) bool {
	if len(a.keys) != len(b.keys) || len(a.kids) != len(b.kids) {
		return false
	}
	for i := range a.keys {
		if plain(a.keys[i]) != plain(b.keys[i]) {
			return false
		}
	}
	for i := range a.kids {
		if !sameOrder(a.kids[i], b.kids[i]) {
			return false
		}
	}
	return true
}

// scalars are the values of a document in the order of the alphabet: its numbers
// and words, its strings and keys ('"'), or its empty containers ('e').
func (n *node) scalars(kind byte) []string {
	var all []string
	var walk func(*node)
	walk = func(m *node) {
		if kind == '"' {
			all = append(all, m.keys...)
		}
		switch {
		case kind == 'e' && (m.kind == '{' || m.kind == '[') && len(m.kids) == 0:
			all = append(all, string(m.kind))
		case kind != 'e' && m.kind == kind:
			all = append(all, m.raw)
		}
		for _, kid := range m.kids {
			walk(kid)
		}
	}
	walk(n)
	slices.Sort(all)
	return all
}

// quotedNumber reports whether the strings of two documents differ only in how
// many there are: a number became a string, or the reverse.
func quotedNumber(a, b *node) bool {
	return len(a.scalars('"')) != len(b.scalars('"'))
}

// empties tries empty objects for empty lists and the reverse, in the usual ways.
func (r *rewriter) empties(n *node) bool {
	empty := n.empty()
	if len(empty) == 0 {
		return true
	}
	try := func() bool {
		for _, o := range r.origins() {
			for _, t := range uniform[:3] {
				if !r.try(n.write(o.style, o.text, t), o.hint) {
					return false
				}
			}
		}
		return true
	}
	for _, kind := range []byte{'{', '['} {
		if !as(empty, kind, try) {
			return false
		}
	}
	for _, m := range empty[:min(len(empty), 8)] {
		if !as([]*node{m}, '{'+'['-m.kind, try) {
			return false
		}
	}
	return true
}

// eitherEmpty calls f for the document as it stands, and with objects for its empty
// lists, which PHP makes of them.
func (r *rewriter) eitherEmpty(f func() bool) bool {
	empty := r.tree.empty()
	return f() && (len(empty) == 0 || as(empty, '{', f))
}

// empty are the objects and lists of a document that have nothing in them.
func (n *node) empty() []*node {
	var all []*node
	n.each(func(m *node) {
		if (m.kind == '{' || m.kind == '[') && len(m.kids) == 0 {
			all = append(all, m)
		}
	})
	return all
}

// as calls f while nodes are containers of that kind.
func as(nodes []*node, kind byte, f func() bool) bool {
	undo := setKinds(nodes, kind)
	defer undo()
	return f()
}

// setKinds makes containers of that kind, and returns how to undo it.
func setKinds(nodes []*node, kind byte) (undo func()) {
	was := make([]byte, len(nodes))
	for i, m := range nodes {
		was[i], m.kind = m.kind, kind
	}
	return func() {
		for i, m := range nodes {
			m.kind = was[i]
		}
	}
}

// each calls f for every value of a document.
func (n *node) each(f func(*node)) {
	f(n)
	for _, kid := range n.kids {
		kid.each(f)
	}
}
