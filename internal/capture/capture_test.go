package capture_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/capture"
)

const body = `{"id":"evt_1","note":"it's é"}`

func TestParse(t *testing.T) {
	t.Parallel()
	want := capture.Request{
		Method: "POST", URL: "/webhooks/stripe?a=b", Body: []byte(body), HasBody: true,
		Header: http.Header{"Host": {"shop.example"}, "Stripe-Signature": {"t=1,v1=ab"}},
	}
	full := want
	full.URL = "https://shop.example/webhooks/stripe?a=b"
	full.Header = http.Header{"Stripe-Signature": {"t=1,v1=ab"}}
	bare := want
	bare.Body, bare.HasBody = nil, false
	folded := want
	folded.Header = http.Header{"Host": {"shop.example"}, "Stripe-Signature": {"t=1,\r\n v1=ab"}}
	twice := want
	twice.Header = http.Header{"Host": {"shop.example"}, "Stripe-Signature": {"t=1,v1=ab", "t=1,v1=ab"}}
	chunked := want
	chunked.Header = http.Header{"Host": {"shop.example"}, "Stripe-Signature": {"t=1,v1=ab"}, "Transfer-Encoding": {"chunked"}}
	chunked.Body = []byte("abcdef")

	unchunked := chunked
	unchunked.Body = []byte("abc=d")

	for name, tt := range map[string]struct {
		text string
		want capture.Request
	}{
		"Raw":       {"POST /webhooks/stripe?a=b HTTP/1.1\r\nHost: shop.example\r\nStripe-Signature: t=1,v1=ab\r\n\r\n" + body, want},
		"RawLF":     {"POST /webhooks/stripe?a=b HTTP/1.1\nHost: shop.example\nstripe-signature: t=1,v1=ab\n\n" + body, want},
		"Folded":    {"POST /webhooks/stripe?a=b HTTP/1.1\nHost: shop.example\nStripe-Signature: t=1,\n v1=ab\n\n" + body, folded},
		"Twice":     {"POST /webhooks/stripe?a=b HTTP/1.1\nHost: shop.example\nStripe-Signature: t=1,v1=ab\nStripe-Signature: t=1,v1=ab\n\n" + body, twice},
		"Chunked":   {"POST /webhooks/stripe?a=b HTTP/1.1\r\nHost: shop.example\r\nStripe-Signature: t=1,v1=ab\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3;x=y\r\ndef\r\n0\r\n\r\n", chunked},
		"Unchunked": {"POST /webhooks/stripe?a=b HTTP/1.1\r\nHost: shop.example\r\nStripe-Signature: t=1,v1=ab\r\nTransfer-Encoding: chunked\r\n\r\nabc=d", unchunked},
		"VerboseWithMeter": {"Note: Unnecessary use of -X or --request, POST is already inferred.\n  % Total    % Received\n  0     0    0     0    0     0      0      0 --:--:--     0*   Trying 127.0.0.1:80...\n" +
			"* Connected\n} [5 bytes data]\n> POST /webhooks/stripe?a=b HTTP/1.1\r\n> Host: shop.example\r\n> Stripe-Signature: t=1,v1=ab\r\n> \r\n} [29 bytes data]\n< HTTP/1.1 401 Unauthorized\n", bare},
		"Verbose": {"*   Trying 127.0.0.1:80...\n* Connected\n> POST /webhooks/stripe?a=b HTTP/1.1\n> Host: shop.example\n> Stripe-Signature: t=1,v1=ab\n>\n< HTTP/1.1 401 Unauthorized\n< X: y\n", bare},
		"Curl": {"curl -sS -X POST 'https://shop.example/webhooks/stripe?a=b' \\\n  -H 'Stripe-Signature: t=1,v1=ab' \\\n  --data-binary " +
			`'{"id":"evt_1","note":"it'\''s é"}'`, full},
		"CurlBash": {`$ curl https://shop.example/webhooks/stripe?a=b -H "Stripe-Signature: t=1,v1=ab" --data-raw $'{"id":"evt_1","note":"it\'s é"}' -o /dev/null`, full},
		"HAR": {`{"log":{"entries":[{"request":{"method":"GET","url":"https://x.example/"}},{"request":{"method":"POST","url":"https://shop.example/webhooks/stripe?a=b",` +
			`"headers":[{"name":":authority","value":"x"},{"name":"stripe-signature","value":"t=1,v1=ab"}],"postData":{"mimeType":"application/json","text":"{\"id\":\"evt_1\",\"note\":\"it's é\"}"}}}]}}`, full},
		"HARBase64": {`{"log":{"entries":[{"request":{"method":"POST","url":"https://shop.example/webhooks/stripe?a=b","headers":[{"name":"Stripe-Signature","value":"t=1,v1=ab"}],` +
			`"postData":{"encoding":"base64","text":"eyJpZCI6ImV2dF8xIiwibm90ZSI6Iml0J3Mgw6kifQ=="}}}]}}`, full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := capture.Parse([]byte(tt.text))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, "a=b", got.Query())
			require.Equal(t, "/webhooks/stripe", got.Path())
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Empty": "", "Prose": "hello there", "JSON": `{"id":1}`, "BrokenJSON": `{"log":`, "NoHeader": "POST / HTTP/1.1\nnonsense\n\n",
		"Continues": "POST / HTTP/1.1\n nonsense\n\n", "Quote": `curl 'https://x.example`, "NoURL": "curl -X POST -d a=b",
		"Chunk": "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n5\nabc", "NoSize": "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabc\nzz\nabc\n",
		"NotBase64": `{"log":{"entries":[{"request":{"method":"POST","postData":{"encoding":"base64","text":"é"}}}]}}`,
	} {
		_, err := capture.Parse([]byte(text))
		require.Error(t, err, name)
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	h, err := capture.ParseHeaders([]byte("> Stripe-Signature: t=1\r\nX-A:  b \n\n"))
	require.NoError(t, err)
	require.Equal(t, http.Header{"Stripe-Signature": {"t=1"}, "X-A": {"b"}}, h)
	for _, text := range []string{"POST /x HTTP/1.1\r\nStripe-Signature: t=1\r\nX-A: b", `{"stripe-signature":"t=1","X-A":["b"]}`} {
		h, err = capture.ParseHeaders([]byte(text))
		require.NoError(t, err)
		require.Equal(t, http.Header{"Stripe-Signature": {"t=1"}, "X-A": {"b"}}, h)
	}
	_, err = capture.ParseHeaders([]byte(`{"stripe-signature":`))
	require.Error(t, err)
	_, err = capture.ParseHeaders([]byte("no header"))
	require.Error(t, err)
}

// FuzzParse: no panic, and a body is part of what was given.
func FuzzParse(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
	f.Add([]byte("> POST / HTTP/1.1\n> A: b\n"))
	f.Add([]byte(`curl -d 'a' "b" $'c\'d' -H x:y`))
	f.Add([]byte(`{"log":{"entries":[{"request":{"method":"POST"}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := capture.Parse(text)
		if err == nil {
			require.NotEmpty(t, r.Method+r.URL+"x")
			require.LessOrEqual(t, len(r.Body), len(text))
		}
	})
}
