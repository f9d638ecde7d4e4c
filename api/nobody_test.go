package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

// Where no body is taken, what is said in one is refused: it would be taken for done.
func TestBodiesWhereNoneIsTaken(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	for body, want := range map[string]int{
		`{"data":{"reason":"x"}}`: 422, `{"reason":"x"}`: 422, `[]`: 422, `null`: 422, "\xff": 400, `{"data":`: 400, `{}{}`: 400,
	} {
		w := l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, body)
		require.Equal(t, want, w.Code, body)
		require.Equal(t, "pending", l.read(id)["state"], body)
	}
	w := l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, `{}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	require.Equal(t, http.StatusUnsupportedMediaType, w.Code)
	for _, body := range []string{"", "{}", `{"data":{}}`} {
		require.Equal(t, http.StatusOK, l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, body).Code, body)
	}
}

// A body that does not arrive in time is 408, with a key and without: nothing was recorded, and the same request may come again.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	l := goLive(t, func(o *api.Options) { o.BodyTimeout = 50 * time.Millisecond })
	srv := httptest.NewServer(l.API)
	t.Cleanup(srv.Close)
	for header, code := range map[string]api.Code{"": api.CodeBodyTooSlow, "Idempotency-Key: k\r\n": "idempotency_body_too_slow"} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%sContent-Length: 100\r\n\r\n{\"data\":", keyA, header)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
		w := httptest.NewRecorder()
		_, err = w.Body.ReadFrom(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		w.Code = resp.StatusCode
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		require.Equal(t, code, problemOf(t, w).Code)
	}
	require.Zero(t, l.count("idempotency_keys"))
}

// A key that stands for a request to another path says so, and compares no bodies.
func TestKeyOfAnotherPath(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	first, _ := l.order("ord_1")
	second, _ := l.order("ord_2")
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") }
	require.Equal(t, http.StatusOK, l.do(http.MethodPost, "/v1/orders/"+first+"/cancel", keyA, "", key).Code)
	w := l.do(http.MethodPost, "/v1/orders/"+second+"/cancel", keyA, "", key)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	p := problemOf(t, w)
	require.Contains(t, p.Detail, "another method or path")
	require.NotContains(t, p.Detail, "use a new key")
	require.Empty(t, p.Errors)
	require.Equal(t, "pending", l.read(second)["state"])
}
