package canonical

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"maps"
	"slices"
	"strings"
)

const (
	// MaxDigests is how many digests a document has at most.
	MaxDigests = 64

	// DigestSize is the length of one, in bytes: HMAC-SHA-256 is cut to half. They say where to look; what decides is the sum.
	DigestSize = 16
)

// Digests returns HMACs, by JSON pointer, that tell later where another document differs without keeping this one: of the whole
// ("") and of what stands at the top level and one level below /data, each with all that is in it; and of every number, since
// those are the money. More than [MaxDigests] are cut, in this order. A pointer longer than 256 bytes, or with control characters,
// has none; what contains it has.
//
// Equal values at one pointer under one key have equal digests. So a key of its own per idempotency key, derived from a secret, is
// what keeps a reader of the database from guessing values and from comparing customers. Names are not hidden.
func (d *Document) Digests(key []byte) map[string][]byte {
	return d.digests(hmac.New(sha256.New, key))
}

func (d *Document) digests(mac hash.Hash) map[string][]byte {
	w := walker{text: d.canonical}
	if len(w.text) > 0 {
		w.value(place{})
	}
	marks := slices.Concat([]mark{{to: len(w.text)}}, w.top, w.data, w.numbers)
	digests := make(map[string][]byte, min(len(marks), MaxDigests))
	for _, m := range marks[:min(len(marks), MaxDigests)] {
		digests[m.pointer] = digest(mac, m.pointer, d.canonical[m.from:m.to])
	}
	return digests
}

func digest(mac hash.Hash, pointer string, value []byte) []byte {
	mac.Reset()
	mac.Write(append([]byte(pointer), 0)) // no pointer has a zero byte
	mac.Write(value)
	return mac.Sum(nil)[:DigestSize:DigestSize]
}

// Differences returns the pointers, sorted, at which two documents differ, from digests under one key: the innermost that are
// known, so /data/amount and not /data. There is always one if the documents differ, at worst "", and none if they are equal.
// What stands in one document only is told unless the other's digests may have been cut. Where a number deep inside is told, more
// may differ in what contains it.
func Differences(old, new map[string][]byte) []string {
	differ := map[string]bool{}
	for p, was := range old {
		is, both := new[p]
		if both && !bytes.Equal(was, is) || !both && len(new) < MaxDigests {
			differ[p] = true
		}
	}
	for p := range new {
		if _, both := old[p]; !both && len(old) < MaxDigests {
			differ[p] = true
		}
	}
	for p := range maps.Clone(differ) {
		for p != "" {
			p = p[:strings.LastIndexByte(p, '/')]
			delete(differ, p)
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// mark is a value in a canonical form, and its pointer.
type mark struct {
	pointer  string
	from, to int
}

// walker finds in a canonical form what has a digest.
type walker struct {
	text               []byte
	i                  int
	name               []byte // room for one
	top, data, numbers []mark // none longer than MaxDigests
}

// place is where a value stands.
type place struct {
	pointer pointer
	level   int
	data    bool // it is /data, or in it
	lost    bool // it has no pointer, or no digest in it can be wanted
}

// value walks over the value at i. It recurses no deeper than MaxDepth.
func (w *walker) value(at place) {
	from := w.i
	c := w.text[from]
	switch c {
	case '{', '[':
		w.i++
		for n := 0; w.text[w.i] != c+2; n++ { // } or ]
			if n > 0 {
				w.i++ // the comma
			}
			in := place{pointer: at.pointer, level: at.level + 1, data: at.data, lost: at.lost || w.full(at)}
			if c == '{' {
				name := w.str()
				w.i++ // the colon
				if !in.lost {
					w.name = appendUnescaped(w.name[:0], name)
					in.data = in.data || at.level == 0 && string(w.name) == "data"
					in.lost = !in.pointer.name(w.name)
				}
			} else if !in.lost {
				in.lost = !in.pointer.index(n)
			}
			w.value(in)
		}
		w.i++
	case '"':
		w.str()
	default:
		for w.i < len(w.text) && w.text[w.i] != ',' && w.text[w.i] != '}' && w.text[w.i] != ']' {
			w.i++
		}
	}
	switch {
	case at.lost || at.level == 0:
	case at.level == 1:
		w.mark(&w.top, at, from)
	case at.level == 2 && at.data:
		w.mark(&w.data, at, from)
	case c == '-' || digit(c):
		w.mark(&w.numbers, at, from)
	}
}

// full reports whether nothing more is wanted of what stands in there.
func (w *walker) full(at place) bool {
	switch {
	case at.level == 0:
		return len(w.top) == MaxDigests
	case at.level == 1 && at.data:
		return len(w.data) == MaxDigests
	}
	return len(w.numbers) == MaxDigests
}

func (w *walker) mark(list *[]mark, at place, from int) {
	if len(*list) < MaxDigests {
		*list = append(*list, mark{pointer: string(at.pointer), from: from, to: w.i})
	}
}

// str walks over a string, and returns what is between its quotes.
func (w *walker) str() []byte {
	w.i++
	from := w.i
	for w.text[w.i] != '"' {
		if w.text[w.i] == '\\' {
			w.i++
		}
		w.i++
	}
	w.i++
	return w.text[from : w.i-1]
}
