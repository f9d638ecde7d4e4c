package outbound

import (
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// walk goes through time in spans that each fit on one page of a list. A page is what was there at one moment: between two pages of one
// span something may come or go, and what stood at the edge be skipped. So a span with more than a page is halved rather than paged
// through, as long as it can be.
type walk struct {
	at, end  time.Time // of whole seconds: not every list knows finer ones
	length   time.Duration
	min, max time.Duration
	fitting  int // spans in a row that fitted
}

// steadily is how many spans must fit before a longer one is tried.
const steadily = 3

func newWalk(from, until time.Time, length, least, most time.Duration) *walk {
	return &walk{at: from.UTC().Truncate(time.Second), end: until.UTC().Truncate(time.Second), length: length, min: least, max: most}
}

// over reports whether all of the time was gone through.
func (w *walk) over() bool { return !w.at.Before(w.end) }

// span is what to ask for now.
func (w *walk) span() gateway.Span {
	until := w.at.Add(w.length)
	if until.After(w.end) {
		until = w.end
	}
	return gateway.Span{From: w.at, Until: until}
}

// halve says that the span has more than a page, and reports whether a shorter one is to be asked for.
func (w *walk) halve() bool {
	length := w.span().Until.Sub(w.at)
	if length <= w.min {
		return false
	}
	w.length, w.fitting = max(w.min, (length/2).Truncate(w.min)), 0
	return true
}

// next says that all of the span was read.
func (w *walk) next() {
	w.at = w.span().Until
	if w.fitting++; w.fitting >= steadily {
		w.length, w.fitting = min(2*w.length, w.max), 0
	}
}
