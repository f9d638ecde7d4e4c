package idempotency

import (
	"bufio"
	"bytes"
	"maps"
	"net"
	"net/http"
	"strconv"
)

// recorder is the ResponseWriter of a handler. It keeps the response until it is known to be stored: a caller that has
// read 201 must never see the same key executed again.
type recorder struct {
	header http.Header // what the handler sees and changes
	sent   http.Header // as it was when the status was written
	code   int
	body   bytes.Buffer
}

// newRecorder starts with the headers that middlewares outside have set.
func newRecorder(outer http.Header) *recorder {
	h := outer.Clone()
	if h == nil {
		h = http.Header{}
	}
	return &recorder{header: h}
}

func (c *recorder) Header() http.Header { return c.header }

// WriteHeader panics at a status that there is not, as net/http does: there it would be too late, since everything is committed.
func (c *recorder) WriteHeader(code int) {
	if c.code != 0 {
		return
	}
	if code < 100 || code > 999 {
		panic("idempotency: invalid WriteHeader code " + strconv.Itoa(code))
	}
	if code < 200 && code != http.StatusSwitchingProtocols {
		return // 103 Early Hints and the like are no answer
	}
	c.code = code
	c.sent = c.header.Clone()
}

func (c *recorder) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if !bodyAllowed(c.code) {
		return 0, http.ErrBodyNotAllowed
	}
	return c.body.Write(p)
}

func (c *recorder) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// finish ends the recording: a handler that wrote nothing has answered 200.
func (c *recorder) finish() {
	c.WriteHeader(http.StatusOK)
	if c.body.Len() > 0 && c.sent["Content-Type"] == nil && c.sent.Get("Content-Encoding") == "" {
		if _, suppressed := c.sent["Content-Type"]; !suppressed {
			c.sent.Set("Content-Type", http.DetectContentType(c.body.Bytes()))
		}
	}
}

// send hands the response to the caller.
func (c *recorder) send(w http.ResponseWriter) {
	h := w.Header()
	clear(h)
	maps.Copy(h, c.sent)
	if bodyAllowed(c.code) && h.Get("Trailer") == "" {
		h.Set("Content-Length", strconv.Itoa(c.body.Len()))
	}
	w.WriteHeader(c.code)
	if c.body.Len() > 0 {
		_, _ = w.Write(c.body.Bytes())
	}
	for name, values := range c.header { // trailers are set after the body
		if _, before := c.sent[name]; !before {
			h[name] = values
		}
	}
}

func bodyAllowed(code int) bool {
	return code != http.StatusNoContent && code != http.StatusNotModified && code != http.StatusSwitchingProtocols
}

// streamer is the recorder of a handler without a transaction. It can flush and hijack; then the response has left before
// it could be stored, and what is kept is a tombstone.
type streamer struct {
	*recorder
	w        http.ResponseWriter
	streamed bool // everything goes straight to w
	hijacked bool
}

func (c *streamer) Write(p []byte) (int, error) {
	if c.streamed {
		return c.w.Write(p)
	}
	return c.recorder.Write(p)
}

func (c *streamer) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// FlushError sends what there is, as [http.ResponseController] asks for it.
func (c *streamer) FlushError() error {
	if c.hijacked {
		return http.ErrHijacked
	}
	if !c.streamed {
		c.WriteHeader(http.StatusOK)
		c.streamed = true
		h := c.w.Header()
		clear(h)
		maps.Copy(h, c.sent)
		c.w.WriteHeader(c.code)
		if _, err := c.w.Write(c.body.Bytes()); err != nil && c.body.Len() > 0 {
			return err
		}
		// From here on the handler sets trailers.
		c.header = h
	}
	return http.NewResponseController(c.w).Flush()
}

// Flush is FlushError for those who ask for an [http.Flusher].
func (c *streamer) Flush() { _ = c.FlushError() }

// Hijack takes the connection over.
func (c *streamer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err == nil {
		c.hijacked, c.streamed = true, true
		c.recorder.WriteHeader(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

func (c *streamer) Header() http.Header { return c.header }

func (c *streamer) send(w http.ResponseWriter) {
	if !c.streamed {
		c.recorder.send(w)
	}
}
