// Package capture reads HTTP requests that somebody wrote down: a raw dump, what
// curl -v printed, a curl command, or a HAR file of a browser or proxy. It is for
// people who look for what spoilt a delivery, so bytes are kept as they stand, and
// nothing is put right on the way.
package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Request is one HTTP request as it was written down.
type Request struct {
	Method string
	URL    string // as it stands: absolute, or a path
	Header http.Header

	// Body is the body, if the capture holds one (curl -v does not).
	Body    []byte
	HasBody bool
}

// Query is the query string of the request, without the question mark.
func (r Request) Query() string {
	_, query, _ := strings.Cut(r.URL, "?")
	query, _, _ = strings.Cut(query, "#")
	return query
}

// Path is the path of the request, without its query.
func (r Request) Path() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// ErrFormat is wrapped by the error about a text of no known format.
var ErrFormat = errors.New("it is no raw HTTP request, no output of curl -v, no curl command and no HAR file")

// Parse reads the first request of a capture, whatever its format; of a HAR file,
// the first POST.
func Parse(text []byte) (Request, error) {
	start := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("{")):
		return har(start)
	case bytes.HasPrefix(start, []byte("curl ")), bytes.HasPrefix(start, []byte("$ curl ")):
		return command(string(start))
	case isVerbose(start):
		return verbose(start)
	case isRaw(start):
		return raw(start)
	default:
		return Request{}, ErrFormat
	}
}

// isRaw reports whether a text begins with a request line.
func isRaw(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f := strings.Fields(string(line))
	return len(f) == 3 && strings.HasPrefix(f[2], "HTTP/") && f[0] == strings.ToUpper(f[0])
}

// raw reads a request as it goes over the wire. Its lines may end with LF, as they
// do where the dump was copied.
func raw(text []byte) (Request, error) {
	head, body, ok := bytes.Cut(text, []byte("\r\n\r\n"))
	if h, b, lf := bytes.Cut(text, []byte("\n\n")); lf && (!ok || len(h) < len(head)) {
		head, body, ok = h, b, true
	}
	lines := strings.Split(strings.ReplaceAll(string(head), "\r\n", "\n"), "\n")
	r, err := requestLine(lines[0])
	if err != nil {
		return r, err
	}
	if err := r.headers(lines[1:]); err != nil {
		return r, err
	}
	r.Body, r.HasBody = body, ok
	if strings.EqualFold(r.Header.Get("Transfer-Encoding"), "chunked") {
		r.Body, err = dechunk(body)
	}
	return r, err
}

func requestLine(line string) (Request, error) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return Request{}, fmt.Errorf("the request line is incomplete: %w", ErrFormat)
	}
	return Request{Method: f[0], URL: f[1], Header: http.Header{}}, nil
}

// headers reads header lines; a line that begins with a space continues the one
// before, and its line break is kept, since it may be what spoilt the value.
func (r *Request) headers(lines []string) error {
	last := ""
	for i, line := range lines {
		if line == "" {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if last == "" {
				return fmt.Errorf("header line %d continues no header", i+1)
			}
			values := r.Header[last]
			values[len(values)-1] += "\r\n" + line
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " \t") {
			return fmt.Errorf("header line %d is not NAME: VALUE", i+1)
		}
		last = http.CanonicalHeaderKey(name)
		r.Header[last] = append(r.Header[last], strings.Trim(value, " \t"))
	}
	return nil
}

// ParseHeaders reads header lines, one NAME: VALUE each. Lines of curl -v ("> "), a
// request line in front and a JSON object of headers are taken too.
func ParseHeaders(text []byte) (http.Header, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return jsonHeaders(text)
	}
	r := Request{Header: http.Header{}}
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "> ")
	}
	if isRaw([]byte(lines[0])) {
		lines = lines[1:]
	}
	return r.Header, r.headers(lines)
}

// jsonHeaders reads {"Name":"value"} and {"Name":["value",…]}, as programs log them.
func jsonHeaders(text []byte) (http.Header, error) {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	h := http.Header{}
	for name, value := range all {
		values, many := value.([]any)
		if !many {
			values = []any{value}
		}
		for _, v := range values {
			h.Add(name, fmt.Sprint(v))
		}
	}
	return h, nil
}

// chunkSize is the line in front of a chunk (RFC 9112, 7.1).
var chunkSize = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})[ \t]*(;.*)?\r?$`)

// dechunk undoes Transfer-Encoding: chunked. A body that does not begin with the
// size of a chunk is one that a program wrote down, which had undone it.
func dechunk(b []byte) ([]byte, error) {
	var out []byte
	for whole := b; ; {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		m := chunkSize.FindSubmatch(line)
		switch {
		case m == nil && out == nil:
			return whole, nil
		case m == nil && ok:
			return nil, errors.New("the chunked body has a chunk without a size")
		case !ok:
			return nil, errors.New("the chunked body ends too early")
		}
		n, err := strconv.ParseUint(string(m[1]), 16, 32)
		if err != nil || n > uint64(len(rest)) {
			return nil, errors.New("the chunked body ends too early")
		}
		if n == 0 {
			return out, nil
		}
		out = append(out, rest[:n]...)
		b = bytes.TrimPrefix(bytes.TrimPrefix(rest[n:], []byte("\r")), []byte("\n"))
	}
}

// isVerbose reports whether a text is what curl -v prints. The request is preceded
// by notes, meters of progress and traces of TLS, which differ between versions.
func isVerbose(text []byte) bool {
	for line := range bytes.Lines(text) {
		if sent, ok := bytes.CutPrefix(line, []byte("> ")); ok && isRaw(sent) {
			return true
		}
	}
	return false
}

// verbose reads what curl -v printed: the lines that it sent begin with ">". Of
// several requests (a redirect, another try) the first is read.
func verbose(text []byte) (Request, error) {
	var lines []string
	for line := range bytes.Lines(text) {
		sent, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), ">")
		if !ok {
			continue
		}
		sent = strings.TrimPrefix(sent, " ")
		if sent == "" && len(lines) > 0 {
			break
		}
		if len(lines) > 0 || isRaw([]byte(sent)) {
			lines = append(lines, sent)
		}
	}
	r, err := requestLine(lines[0])
	if err != nil {
		return r, err
	}
	return r, r.headers(lines[1:])
}
