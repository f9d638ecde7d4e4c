package cases

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reply is what came back for one request.
type Reply struct {
	Code   int // 0: the connection was dropped before an answer
	Header http.Header
	Body   []byte
	Took   time.Duration
	Err    error // why Code is 0
}

// sendTimeout bounds one request on the wire. It is far above every deadline of
// the program, so that what ends a request is the program and not the test.
const sendTimeout = 90 * time.Second

// endsWithin is how long a server may keep a connection after an early answer.
const endsWithin = 5 * time.Second

var errStaysOpen = errors.New("no end of the stream")

// fillSize is how much of an announced body is really sent.
const fillSize = 64 << 10

// send writes one request as bytes on a connection of its own and reads the
// answer. net/http's client would clean paths, fold header names and refuse
// half of what an attacker sends.
func send(ctx context.Context, addr string, r Request) (reply Reply) {
	start := now()
	defer func() {
		if reply.Took == 0 {
			reply.Took = now().Sub(start)
		}
	}()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Reply{Err: err}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(start.Add(sendTimeout)); err != nil {
		return Reply{Err: err}
	}

	early := r.Transport != nil && r.Transport.ExpectEarlyClose
	head := head(addr, r)
	answered := make(chan struct{})
	written := make(chan struct{})
	var writeErr error // read after written
	go func() {
		defer close(written)
		writeErr = writeRequest(conn, head, r, answered)
	}()

	in := bufio.NewReader(conn)
	reply, err = readReply(in, r.Method)
	close(answered)
	if err != nil {
		conn.Close()
		<-written
		return Reply{Err: errors.Join(err, writeErr)}
	}
	reply.Took = now().Sub(start)
	if early {
		_ = conn.SetReadDeadline(now().Add(endsWithin))
		// Nothing of the rest was sent, so only the server can end this connection.
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) && !isReset(err) {
			reply.Code, reply.Err = 0, fmt.Errorf("the connection stayed open after the early answer %d: %w", reply.Code, errors.Join(errStaysOpen, err))
		}
	}
	conn.Close()
	<-written
	return reply
}

// readReply reads the answer; 100 Continue and its kind are none.
func readReply(in *bufio.Reader, method string) (Reply, error) {
	for {
		response, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return Reply{}, err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode >= http.StatusOK || response.StatusCode == http.StatusSwitchingProtocols {
			return Reply{Code: response.StatusCode, Header: response.Header, Body: body}, err
		}
	}
}

// head renders the request line and the header.
func head(addr string, r Request) []byte {
	t := r.Transport
	if t == nil {
		t = new(Transport)
	}
	var b bytes.Buffer
	line := func(name, value string) {
		b.WriteString(name + ": ")
		if t.HeaderBytesLatin1 {
			b.Write(latin1(value))
		} else {
			b.WriteString(value)
		}
		b.WriteString("\r\n")
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.Path)
	host := addr
	for name, value := range r.Headers {
		if strings.EqualFold(name, "Host") {
			host = value
		}
	}
	line("Host", host)
	given := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if strings.EqualFold(name, "Host") {
			continue
		}
		given[strings.ToLower(name)] = true
		written := name
		if !t.KeepHeaderCase {
			written = textproto.CanonicalMIMEHeaderKey(name)
		}
		line(written, r.Headers[name])
	}
	for _, raw := range t.RawHeaders {
		given[strings.ToLower(raw[0])] = true
		line(raw[0], raw[1])
	}
	switch {
	case given["content-length"] || given["transfer-encoding"]:
	case t.Chunked:
		line("Transfer-Encoding", "chunked")
	case t.ContentLength != nil:
		line("Content-Length", strconv.FormatInt(*t.ContentLength, 10))
	case len(r.Body) > 0 || !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method):
		line("Content-Length", strconv.Itoa(len(r.Body)))
	}
	if !given["connection"] && !t.ExpectEarlyClose {
		line("Connection", "close")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// latin1 returns a text with one byte for each character up to U+00FF.
func latin1(text string) []byte {
	var b []byte
	for _, r := range text {
		if r > 0xff {
			b = append(b, string(r)...)
			continue
		}
		b = append(b, byte(r))
	}
	return b
}

// writeRequest writes head and body; a generated body until the answer is
// there. An error means that the other side stopped listening.
func writeRequest(w io.Writer, head []byte, r Request, answered <-chan struct{}) error {
	t := r.Transport
	if t == nil {
		t = new(Transport)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	fill := func(n int) []byte {
		one, _ := hex.DecodeString(t.Fill)
		return bytes.Repeat(one, n)
	}
	switch {
	case t.Chunked && t.Fill != "":
		size := int64(fillSize)
		for left := t.GenerateBytes; left > 0; left -= size {
			select {
			case <-answered:
				return nil
			default:
			}
			size = min(size, left)
			if err := writeChunk(w, fill(int(size))); err != nil {
				return err
			}
		}
		return writeChunk(w, nil)
	case t.Chunked:
		if len(r.Body) > 0 {
			if err := writeChunk(w, r.Body); err != nil {
				return err
			}
		}
		return writeChunk(w, nil)
	case t.ContentLength != nil && t.Fill != "":
		_, err := w.Write(fill(int(min(fillSize, *t.ContentLength))))
		return err
	default:
		_, err := w.Write(r.Body)
		return err
	}
}

func writeChunk(w io.Writer, b []byte) error {
	_, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(b), b)
	return err
}

// isReset reports whether a connection ended without a proper goodbye: the
// other side closed it while bytes of ours were still on the way.
func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// now is the test's own clock; the program's is the Stage's.
func now() time.Time { return time.Now() } //nolint:forbidigo // real time: how long an answer took, when to stop waiting
