package receiver

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// freeBytes is how much of a body is not counted against the budget of all. Real webhooks are 1 to 10 KiB.
const freeBytes = 16 << 10

// budget is a bound on the bytes that all bodies hold at once.
type budget struct{ free atomic.Int64 }

// take reports whether n more bytes may be held. n is taken only then.
func (b *budget) take(n int64) bool {
	if b.free.Add(-n) >= 0 {
		return true
	}
	b.free.Add(n)
	return false
}

func (b *budget) give(n int64) {
	if n > 0 {
		b.free.Add(n)
	}
}

// readBody reads a body whole, as it came: a Content-Encoding is not undone, since the signature is over the bytes
// that were sent. held is what the caller must give back to the budget, refused or not.
func (rc *Receiver) readBody(w http.ResponseWriter, r *http.Request, src gateway.Source) (body []byte, held int64, refused *refusal) {
	limit := src.MaxBody
	if limit <= 0 {
		limit = rc.opts.MaxBody
	}
	if r.ContentLength > limit {
		return nil, 0, &refusal{status: http.StatusRequestEntityTooLarge, reason: reasonTooBig}
	}
	if rc.reading.Add(1) > 4*int64(rc.opts.MaxInFlight) {
		rc.reading.Add(-1)
		return nil, 0, &refusal{status: http.StatusServiceUnavailable, reason: reasonOverload}
	}
	defer rc.reading.Add(-1)

	// A deadline in the past ends the read that is waiting; setting it from a timer needs no clock. Writers that know
	// no deadlines (tests, some middleware) leave the time-out to their server.
	slow := time.AfterFunc(rc.opts.BodyTimeout, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	defer slow.Stop()

	// The announced length only says how much to make room for at first: whoever announces a lot has sent nothing yet.
	room := limit
	if r.ContentLength >= 0 {
		room = r.ContentLength
	}
	room++ // one byte more, so that the read that fills it also meets the end
	buf := make([]byte, 0, min(room, freeBytes))
	from := http.MaxBytesReader(w, r.Body, limit)
	for {
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, held, nil
		}
		if err != nil {
			return nil, held, brokenBody(err)
		}
		if len(buf) == cap(buf) {
			if int64(cap(buf)) >= room { // more came than was announced
				room = limit + 1
			}
			size := min(2*int64(cap(buf)), room)
			if more := size - freeBytes - held; more > 0 {
				if !rc.held.take(more) {
					return nil, held, &refusal{status: http.StatusServiceUnavailable, reason: reasonOverload}
				}
				held += more
			}
			buf = append(make([]byte, 0, size), buf...)
		}
	}
}

// brokenBody is the one place that says what a failed read of a body means.
func brokenBody(err error) *refusal {
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: reasonTooBig}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, reason: reasonTooSlow}
	default: // hung up, or a chunk that is none
		return &refusal{status: http.StatusBadRequest, reason: reasonCutShort}
	}
}
