package api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// humaContext is huma's, under a name that does not hide its method Context.
type humaContext = huma.Context

// exchange is a request as huma sees it, after it was checked: the body is the one that was read, there is one media
// type, and the answer is kept until the handler is done, so that a fault on the way can still be answered as one.
type exchange struct {
	humaContext
	lines  http.Header // of the request
	body   []byte
	status int
	header http.Header
	answer bytes.Buffer
}

// BodyReader reads the body that was checked.
func (x *exchange) BodyReader() io.Reader { return bytes.NewReader(x.body) }

// Header hides what is settled: bodies are JSON, both ways. A header that stands there several times is one, as it was
// checked.
func (x *exchange) Header(name string) string {
	switch {
	case strings.EqualFold(name, "Content-Type"):
		return "application/json"
	case strings.EqualFold(name, "Accept"):
		return ""
	}
	return joined(x.lines.Values(name))
}

// SetReadDeadline does nothing: the body was read, and the server has its own deadlines.
func (*exchange) SetReadDeadline(time.Time) error { return nil }

// SetStatus keeps the status.
func (x *exchange) SetStatus(status int) { x.status = status }

// Status returns it.
func (x *exchange) Status() int { return x.status }

// SetHeader keeps a header.
func (x *exchange) SetHeader(name, value string) { x.header.Set(name, value) }

// AppendHeader keeps one more value of a header.
func (x *exchange) AppendHeader(name, value string) { x.header.Add(name, value) }

// BodyWriter keeps the answer.
func (x *exchange) BodyWriter() io.Writer { return &x.answer }

// flush sends what was kept.
func (x *exchange) flush(w http.ResponseWriter) {
	for name, values := range x.header {
		w.Header()[name] = values
	}
	send(w, x.status, x.header.Get("Content-Type"), x.answer.Bytes())
}
