package settlement

import (
	"bufio"
	"container/heap"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"slices"
)

// sorter sorts more values than memory should hold: every so many go to a temporary file, sorted. Equal values keep no order.
type sorter[T any] struct {
	compare func(a, b *T) int
	size    int    // how many are held in memory
	dir     string // of the temporary files; "": the system's
	held    []*T
	runs    []*os.File
	n       int
}

func (s *sorter[T]) add(v T) error {
	s.held = append(s.held, &v)
	s.n++
	if len(s.held) < s.size {
		return nil
	}
	return s.spill()
}

// spill writes what is held into a file of its own.
func (s *sorter[T]) spill() (err error) {
	s.sort()
	f, err := os.CreateTemp(s.dir, "paidonce-settlement-*")
	if err != nil {
		return err
	}
	// Where the system allows it, nothing is left whatever happens; else close removes it.
	_ = os.Remove(f.Name())
	s.runs = append(s.runs, f)
	w := bufio.NewWriterSize(f, 256<<10)
	enc := gob.NewEncoder(w)
	for i := range s.held {
		if err := enc.Encode(s.held[i]); err != nil {
			return err
		}
	}
	clear(s.held)
	s.held = s.held[:0]
	return w.Flush()
}

func (s *sorter[T]) sort() { slices.SortFunc(s.held, s.compare) }

// each calls fn with every value in order. It may be called again, once all have been added.
func (s *sorter[T]) each(fn func(*T) error) error {
	s.sort()
	m := merge[T]{compare: s.compare}
	add := func(next func(*T) error) error {
		r := &run[T]{next: next}
		switch err := r.advance(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		m.runs = append(m.runs, r)
		return nil
	}
	i := 0
	err := add(func(v *T) error {
		if i == len(s.held) {
			return io.EOF
		}
		*v = *s.held[i]
		i++
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range s.runs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		dec := gob.NewDecoder(bufio.NewReaderSize(f, 64<<10))
		if err := add(func(v *T) error { return dec.Decode(v) }); err != nil {
			return err
		}
	}
	heap.Init(&m)
	for len(m.runs) > 0 {
		if err := fn(&m.runs[0].value); err != nil {
			return err
		}
		switch err := m.runs[0].advance(); {
		case errors.Is(err, io.EOF):
			heap.Pop(&m)
		case err != nil:
			return err
		default:
			heap.Fix(&m, 0)
		}
	}
	return nil
}

func (s *sorter[T]) close() {
	for _, f := range s.runs {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// run is one sorted list of values, and the one that is next.
type run[T any] struct {
	value T
	next  func(*T) error
}

// advance takes the next value. Decoding leaves alone what is zero, so the last one must be gone.
func (r *run[T]) advance() error {
	var zero T
	r.value = zero
	return r.next(&r.value)
}

// merge is a heap of runs by their next values.
type merge[T any] struct {
	compare func(a, b *T) int
	runs    []*run[T]
}

func (m *merge[T]) Len() int           { return len(m.runs) }
func (m *merge[T]) Less(i, j int) bool { return m.compare(&m.runs[i].value, &m.runs[j].value) < 0 }
func (m *merge[T]) Swap(i, j int)      { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }
func (m *merge[T]) Push(x any)         { m.runs = append(m.runs, x.(*run[T])) }

func (m *merge[T]) Pop() any {
	last := len(m.runs) - 1
	r := m.runs[last]
	m.runs = m.runs[:last]
	return r
}
