package diagnose

import (
	"encoding/json"
	"slices"
)

// maxMoved bounds the objects and keys whose places are tried one by one.
const (
	maxObjects = 16
	maxMoved   = 24
)

// plain is the text of a key.
func plain(raw string) string {
	var s string
	if json.Unmarshal([]byte(raw), &s) != nil {
		return raw
	}
	return s
}

// leading are keys that stand first where the rest is in alphabetical order: so
// Stripe writes its objects.
var leading = [][]string{{"id", "object"}, {"id"}, {"id", "type"}, {"object"}, {"type"}, {"event"}}

// orders tries whole orders: those of the gateway's own payloads, that of the
// alphabet, the reverse, in every usual way to write them.
func (r *rewriter) orders() bool {
	var trees []*node
	for _, template := range r.templates {
		if like := parse(template); like != nil {
			trees = append(trees, r.tree.reorder(like))
		}
	}
	for _, first := range leading {
		trees = append(trees, r.tree.sortedBy(func(a, b string) int {
			return compareKeys(first, a, b)
		}))
	}
	trees = append(trees, r.tree.sortedBy(func(a, b string) int { return compareKeys(nil, a, b) }),
		r.tree.reversed(-1), r.tree.reversed(1))
	for i, tree := range trees {
		if slices.ContainsFunc(trees[:i], func(other *node) bool { return sameOrder(tree, other) }) || sameOrder(tree, r.tree) {
			continue
		}
		if !r.numbers3(tree) {
			return false
		}
	}
	return true
}

// numbers3 is numbers with the two most usual forms of numbers alone.
func (r *rewriter) numbers3(n *node) bool {
	for _, o := range r.origins() {
		for _, t := range uniform[:2] {
			if !r.try(n.write(o.style, o.text, t), o.hint) {
				return false
			}
		}
	}
	return true
}

func compareKeys(first []string, a, b string) int {
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	a, b = plain(a), plain(b)
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sortedBy is n with the keys of all objects sorted.
func (n *node) sortedBy(compare func(a, b string) int) *node {
	order := make([]int, len(n.kids))
	for i := range order {
		order[i] = i
	}
	if n.kind == '{' {
		slices.SortStableFunc(order, func(i, j int) int { return compare(n.keys[i], n.keys[j]) })
	}
	out := &node{kind: n.kind, raw: n.raw}
	for _, i := range order {
		if n.kind == '{' {
			out.keys = append(out.keys, n.keys[i])
		}
		out.kids = append(out.kids, n.kids[i].sortedBy(compare))
	}
	return out
}

// reversed is n with the keys of its objects in reverse, down to that depth; -1:
// all.
func (n *node) reversed(depth int) *node {
	out := &node{kind: n.kind, raw: n.raw, keys: slices.Clone(n.keys), kids: slices.Clone(n.kids)}
	if depth == 0 {
		return out
	}
	for i, kid := range out.kids {
		out.kids[i] = kid.reversed(depth - 1)
	}
	if n.kind == '{' {
		slices.Reverse(out.keys)
		slices.Reverse(out.kids)
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

// objects are the objects of a document with two keys at least.
func (r *rewriter) objects() []*node {
	var all []*node
	r.tree.each(func(m *node) {
		if m.kind == '{' && len(m.keys) > 1 && len(all) < maxObjects {
			all = append(all, m)
		}
	})
	return all
}

// moves tries every place for one key of an object, and every two keys exchanged.
func (r *rewriter) moves() bool {
	ways := r.origins()[:3]
	write := func() bool {
		for _, o := range ways {
			if !r.once(r.tree.write(o.style, o.text, same), o.hint) {
				return false
			}
		}
		return true
	}
	for _, m := range r.objects() {
		keys, kids := m.keys, m.kids
		undo := func() { m.keys, m.kids = keys, kids }
		for i := range min(len(keys), maxMoved) {
			for j := range min(len(keys), maxMoved) {
				if i == j {
					continue
				}
				m.keys, m.kids = moved(keys, i, j), moved(kids, i, j)
				ok := write()
				if ok && i < j {
					m.keys, m.kids = exchanged(keys, i, j), exchanged(kids, i, j)
					ok = write()
				}
				if undo(); !ok {
					return false
				}
			}
		}
	}
	return true
}

// moved is list with the element at i taken out and put in at j.
func moved[T any](list []T, i, j int) []T {
	out := slices.Delete(slices.Clone(list), i, i+1)
	return slices.Insert(out, j, list[i])
}

func exchanged[T any](list []T, i, j int) []T {
	out := slices.Clone(list)
	out[i], out[j] = out[j], out[i]
	return out
}

// maxPermuted is the most keys of one object whose orders are all tried.
const maxPermuted = 6

// permuted tries all orders of the keys of one small object at a time.
func (r *rewriter) permuted() bool {
	ways := r.origins()[:2]
	for _, m := range r.objects() {
		if len(m.keys) > maxPermuted {
			continue
		}
		if !permute(m, func() bool {
			for _, o := range ways {
				if !r.once(r.tree.write(o.style, o.text, same), o.hint) {
					return false
				}
			}
			return true
		}) {
			return false
		}
	}
	return true
}

// permute calls f with every order of the members of o (Heap's algorithm), until f
// is false; the order is the first one again afterwards.
func permute(o *node, f func() bool) bool {
	keys, kids := o.keys, o.kids
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
	o.keys, o.kids = slices.Clone(keys), slices.Clone(kids)
	return heap(len(keys))
}
