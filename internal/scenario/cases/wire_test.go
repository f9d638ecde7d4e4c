package cases_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
)

// serveRaw accepts one connection and hands it to a handler; what the handler
// returns arrives on the channel.
func serveRaw(t *testing.T, handle func(conn net.Conn) string) (addr string, got <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	result := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		result <- handle(conn)
	}()
	return listener.Addr().String(), result
}

const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok"

// readHead reads up to the end of the header.
func readHead(in *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := in.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

// head200 returns what was sent before the body, and answers 200.
func head200(conn net.Conn) string {
	head := readHead(bufio.NewReader(conn))
	fmt.Fprint(conn, answer)
	return head
}

func length(n int64) *int64 { return &n }

func TestSend(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		request cases.Request
		want    []string
		not     []string
	}{
		"PathAndNamesAndHost": {
			cases.Request{Method: "POST", Path: "//a/../b?c=%2f", Headers: map[string]string{"stripe-signature": "x", "hOST": "shop.test", "Empty": ""}, Body: []byte("hi")},
			[]string{"POST //a/../b?c=%2f HTTP/1.1\r\n", "\r\nHost: shop.test\r\n", "\r\nStripe-Signature: x\r\n", "\r\nEmpty: \r\n", "\r\nContent-Length: 2\r\n"},
			[]string{"hOST"},
		},
		"KeptCase": {
			cases.Request{Method: "POST", Path: "/", Headers: map[string]string{"STRIPE-signature": "x"}, Transport: &cases.Transport{KeepHeaderCase: true}},
			[]string{"\r\nSTRIPE-signature: x\r\n"},
			nil,
		},
		"RawHeadersBeside": {
			cases.Request{Method: "POST", Path: "/", Headers: map[string]string{"A": "1"}, Transport: &cases.Transport{RawHeaders: [][2]string{{"a", "2"}, {"A", "3"}}}},
			[]string{"\r\nA: 1\r\na: 2\r\nA: 3\r\n"},
			nil,
		},
		"OwnLength": {
			cases.Request{Method: "POST", Path: "/", Headers: map[string]string{"content-length": "1"}, Body: []byte("hi")},
			[]string{"\r\nContent-Length: 1\r\n"},
			[]string{"Content-Length: 2"},
		},
		"Latin1":   {cases.Request{Method: "GET", Path: "/", Headers: map[string]string{"A": "é"}, Transport: &cases.Transport{HeaderBytesLatin1: true}}, []string{"\r\nA: \xe9\r\n"}, []string{"Content-Length"}},
		"UTF8":     {cases.Request{Method: "GET", Path: "/", Headers: map[string]string{"A": "é"}}, []string{"\r\nA: é\r\n"}, nil},
		"Announce": {cases.Request{Method: "POST", Path: "/", Transport: &cases.Transport{ContentLength: length(1 << 30), Fill: "61"}}, []string{"\r\nContent-Length: 1073741824\r\n"}, nil},
		"Chunked":  {cases.Request{Method: "POST", Path: "/", Transport: &cases.Transport{Chunked: true}}, []string{"\r\nTransfer-Encoding: chunked\r\n"}, []string{"Content-Length"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, got := serveRaw(t, head200)
			reply := cases.Send(t.Context(), addr, tt.request)
			require.NoError(t, reply.Err)
			require.Equal(t, 200, reply.Code)
			require.Equal(t, "ok", string(reply.Body))
			require.Equal(t, "b", reply.Header.Get("X-A"))
			head := <-got
			for _, want := range tt.want {
				require.Contains(t, head, want)
			}
			for _, not := range tt.not {
				require.NotContains(t, head, not)
			}
		})
	}

	t.Run("ChunksUntilTheAnswer", func(t *testing.T) {
		t.Parallel()
		addr, got := serveRaw(t, func(conn net.Conn) string {
			in := bufio.NewReader(conn)
			readHead(in)
			first := make([]byte, 200_000)
			_, _ = io.ReadFull(in, first)
			fmt.Fprint(conn, answer)
			rest, _ := io.Copy(io.Discard, in)
			return fmt.Sprint(string(first[:8]), bytes.Count(first, []byte("z")) > 190_000, rest < 100<<20)
		})
		reply := cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/", Transport: &cases.Transport{Chunked: true, GenerateBytes: 200 << 20, Fill: "7a"}})
		require.Equal(t, 200, reply.Code)
		require.Equal(t, "10000\r\nztrue true", <-got)
	})

	t.Run("WholeChunkedBody", func(t *testing.T) {
		t.Parallel()
		addr, got := serveRaw(t, func(conn net.Conn) string {
			in := bufio.NewReader(conn)
			readHead(in)
			body := make([]byte, len("2\r\nhi\r\n0\r\n\r\n"))
			_, _ = io.ReadFull(in, body)
			fmt.Fprint(conn, answer)
			return string(body)
		})
		require.Equal(t, 200, cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/", Body: []byte("hi"), Transport: &cases.Transport{Chunked: true}}).Code)
		require.Equal(t, "2\r\nhi\r\n0\r\n\r\n", <-got)
	})

	t.Run("ContinueIsNoAnswer", func(t *testing.T) {
		t.Parallel()
		addr, _ := serveRaw(t, func(conn net.Conn) string {
			readHead(bufio.NewReader(conn))
			fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n"+answer)
			return ""
		})
		require.Equal(t, 200, cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/"}).Code)
	})

	t.Run("DroppedConnectionIsZero", func(t *testing.T) {
		t.Parallel()
		addr, _ := serveRaw(t, func(conn net.Conn) string { return readHead(bufio.NewReader(conn)) })
		reply := cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/"})
		require.Zero(t, reply.Code)
		require.Error(t, reply.Err)
	})

	t.Run("EarlyCloseThatEnds", func(t *testing.T) {
		t.Parallel()
		addr, _ := serveRaw(t, func(conn net.Conn) string {
			readHead(bufio.NewReader(conn))
			fmt.Fprint(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = conn.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it is one
			_, _ = io.Copy(io.Discard, conn)
			return ""
		})
		reply := cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/", Transport: &cases.Transport{ContentLength: length(1 << 30), Fill: "61", ExpectEarlyClose: true}})
		require.NoError(t, reply.Err)
		require.Equal(t, 413, reply.Code)
		require.Less(t, reply.Took, cases.EndsWithin)
	})

	t.Run("EarlyCloseThatStaysOpen", func(t *testing.T) {
		t.Parallel()
		addr, _ := serveRaw(t, func(conn net.Conn) string {
			readHead(bufio.NewReader(conn))
			fmt.Fprint(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
			return ""
		})
		reply := cases.Send(t.Context(), addr, cases.Request{Method: "POST", Path: "/", Transport: &cases.Transport{ContentLength: length(1 << 30), Fill: "61", ExpectEarlyClose: true}})
		require.Zero(t, reply.Code)
		require.ErrorContains(t, reply.Err, "stayed open after the early answer 413")
		require.Less(t, reply.Took, time.Second)
	})
}
