package diagnose

import (
	"bytes"
	"strings"
)

const parsedAgain = "The JSON was parsed and written again: "

// documents undoes what happens to JSON that is parsed and written again.
func documents(s *search, a attempt, yield func(variant) bool) {
	b := a.request.Body
	n := parse(b)
	if n == nil {
		return
	}
	try := func(body []byte, cause Cause, sentence string) bool {
		if bytes.Equal(body, b) {
			return true
		}
		return yield(variant{a.body(body), cause, parsedAgain + sentence + rawBytes}) &&
			yield(variant{a.body(append(bytes.Clone(body), '\n')), cause, parsedAgain + sentence + rawBytes})
	}
	_ = spaced(n, try) && escaped(b, n, try) && numbered(b, n, try) && ordered(s, n, try)
}

type tryFunc func(body []byte, cause Cause, sentence string) bool

func spaced(n *node, try tryFunc) bool {
	for _, st := range styles {
		if !try(n.write(st, same, same), JSONSpacing, "its spaces changed (what was signed is "+st.name+").") {
			return false
		}
	}
	return true
}

func escaped(b []byte, n *node, try tryFunc) bool {
	for _, e := range escapes {
		if !try(inPlace(b, e.write), JSONEscapes, "its escapes changed (what was signed has "+e.name+").") {
			return false
		}
	}
	for _, e := range escapes {
		for _, st := range styles {
			if !try(n.write(st, e.write, same), JSONSpacing, "its spaces and escapes changed (what was signed is "+st.name+" and has "+e.name+").") {
				return false
			}
		}
	}
	return true
}

// numberForms are other ways to write a number.
func numberForms(raw string) []string {
	if raw == "" || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return nil
	}
	if strings.ContainsAny(raw, "eE") {
		return nil
	}
	whole, decimals, point := strings.Cut(raw, ".")
	forms := []string{whole + ".0", whole + ".00"}
	if point {
		short := strings.TrimRight(decimals, "0")
		forms = append(forms, whole+"."+short+strings.Repeat("0", max(0, 2-len(short))), raw+"0", raw+"00")
		if short == "" {
			forms = append(forms, whole)
		} else {
			forms = append(forms, whole+"."+short)
		}
	}
	return forms
}

func numbered(b []byte, n *node, try tryFunc) bool {
	const sentence = "the form of a number changed (72.00 became 72, or the reverse)."
	for _, every := range []func(string) string{
		func(raw string) string { return pick(raw, 0) },
		func(raw string) string { return pick(raw, 1) },
		func(raw string) string {
			if strings.Contains(raw, ".") {
				return pick(raw, 2)
			}
			return raw
		},
		func(raw string) string {
			if f := numberForms(raw); strings.Contains(raw, ".") && len(f) > 0 {
				return f[len(f)-1]
			}
			return raw
		},
	} {
		if !try(n.write(styles[0], same, every), JSONNumbers, sentence) {
			return false
		}
	}
	for i := range numbersOf(b) {
		at := numbersOf(b)[i]
		for _, form := range numberForms(string(b[at[0]:at[1]])) {
			changed := append(append(bytes.Clone(b[:at[0]]), form...), b[at[1]:]...)
			if !try(changed, JSONNumbers, sentence) {
				return false
			}
		}
	}
	return true
}

func pick(raw string, i int) string {
	if forms := numberForms(raw); i < len(forms) {
		return forms[i]
	}
	return raw
}

// maxNumbers bounds how many numbers of a body are tried one by one.
const maxNumbers = 64

// numbersOf returns where the numbers of a JSON document stand.
func numbersOf(b []byte) [][2]int {
	var all [][2]int
	for i := 0; i < len(b) && len(all) < maxNumbers; {
		switch c := b[i]; {
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			from := i
			for i < len(b) && strings.IndexByte("+-.eE0123456789", b[i]) >= 0 {
				i++
			}
			all = append(all, [2]int{from, i})
		default:
			i++
		}
	}
	return all
}

// ordered tries the key orders of the gateway's own payloads, and that of the
// alphabet, in every style.
func ordered(s *search, n *node, try tryFunc) bool {
	var orders []*node
	for _, template := range s.in.Templates {
		if like := parse(template); like != nil {
			orders = append(orders, n.reorder(like))
		}
	}
	orders = append(orders, n.alphabetical())
	for _, o := range orders {
		for _, st := range styles {
			if !try(o.write(st, same, same), JSONKeyOrder, "the order of its keys changed.") {
				return false
			}
		}
	}
	return s.permuted(n, try)
}

// maxPermuted is the most keys of one object whose orders are all tried.
const maxPermuted = 5

// permuted tries all orders of the keys of one small object at a time.
func (s *search) permuted(n *node, try tryFunc) bool {
	var objects []*node
	var walk func(*node)
	walk = func(m *node) {
		if m.kind == '{' && len(m.keys) > 1 && len(m.keys) <= maxPermuted {
			objects = append(objects, m)
		}
		for _, kid := range m.kids {
			walk(kid)
		}
	}
	walk(n)
	for _, o := range objects[:min(len(objects), 16)] {
		if !permute(o, len(o.keys), func() bool {
			return try(n.write(styles[0], same, same), JSONKeyOrder, "the order of its keys changed.") &&
				try(n.write(styles[1], same, same), JSONKeyOrder, "the order of its keys changed.")
		}) {
			return false
		}
	}
	return true
}

// permute calls f with every order of the first k members of o (Heap's
// algorithm), until f is false; the order is the first one again afterwards.
func permute(o *node, k int, f func() bool) bool {
	keys, kids := append([]string(nil), o.keys...), append([]*node(nil), o.kids...)
	defer func() { o.keys, o.kids = keys, kids }()
	var heap func(int) bool
	heap = func(k int) bool {
		if k <= 1 {
			return f()
		}
		for i := range k {
			if !heap(k - 1) {
				return false
			}
			j := 0
			if k%2 == 0 {
				j = i
			}
			o.keys[j], o.keys[k-1] = o.keys[k-1], o.keys[j]
			o.kids[j], o.kids[k-1] = o.kids[k-1], o.kids[j]
		}
		return true
	}
	o.keys, o.kids = append([]string(nil), keys...), append([]*node(nil), kids...)
	return heap(k)
}

// alphabetical is n with the keys of all objects sorted.
func (n *node) alphabetical() *node {
	out := &node{kind: n.kind, raw: n.raw}
	order := make([]int, len(n.kids))
	for i := range order {
		order[i] = i
	}
	if n.kind == '{' {
		sortBy(order, n.keys)
	}
	for _, i := range order {
		if n.kind == '{' {
			out.keys = append(out.keys, n.keys[i])
		}
		out.kids = append(out.kids, n.kids[i].alphabetical())
	}
	return out
}
