package processor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/signature"
)

const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

func exampleCall() processor.Call {
	return processor.Call{
		Account: "acme", Order: uuid.MustParse("0198e8a0-0000-7000-8000-000000000001"), ExternalRef: "ord_1", Version: 3,
		Effect: order.EffectRelease, After: order.ToldRevoked, Attempt: 2, AskedAt: noon.Add(-time.Minute),
		View: order.View{
			State: order.StatePaid, Flags: order.FlagOverpaid | order.FlagDisputeOpen, Registered: true,
			Total: 5000, Currency: "EUR", Captured: 7000, Refunded: 1000, Kept: 6000,
		},
	}
}

// callback returns a Callback with one target for every account, which may be private.
func callback(t *testing.T, target processor.Target, opts processor.CallbackOptions) *processor.Callback {
	t.Helper()
	if target.Secrets == nil {
		target.Secrets = []string{secret}
	}
	opts.Now = func() time.Time { return noon }
	c, err := processor.NewCallback(func(string) (processor.Target, bool) { return target, true }, opts)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// answering is a merchant that gives one answer, and counts.
func answering(t *testing.T, h http.HandlerFunc) (target processor.Target, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return processor.Target{URL: srv.URL + "/paidonce", AllowPrivate: true}, calls
}

func TestCallbackIsSigned(t *testing.T) {
	t.Parallel()
	type seen struct {
		header http.Header
		body   []byte
		method string
	}
	got := make(chan seen, 1)
	target, _ := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Header, body, r.Method}
	})
	target.Secrets = []string{secret, newSecret}
	call := exampleCall()

	require.NoError(t, callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), call))

	req := <-got
	require.Equal(t, http.MethodPost, req.method)
	const key = "0198e8a0-0000-7000-8000-000000000001:3:release"
	require.Equal(t, key, call.Key())
	require.Equal(t, key, req.header.Get("Idempotency-Key"))
	require.Equal(t, key, req.header.Get("Webhook-Id"))
	require.Equal(t, strconv.FormatInt(noon.Unix(), 10), req.header.Get("Webhook-Timestamp"))
	require.Equal(t, "application/json", req.header.Get("Content-Type"))
	for _, s := range target.Secrets { // the merchant may hold either
		r := signature.Request{Method: req.method, Header: req.header, Body: req.body}
		require.NoError(t, signature.Verify("standard", r, []string{s}, noon))
	}
	require.JSONEq(t, `{
		"type": "order.release",
		"timestamp": "2026-09-21T11:59:00Z",
		"data": {
			"order_id": "0198e8a0-0000-7000-8000-000000000001", "external_ref": "ord_1", "effect": "release", "version": 3,
			"state": "paid", "total": 5000, "currency": "EUR", "kept": 6000, "captured": 7000, "refunded": 1000,
			"flags": ["dispute_open", "overpaid"], "after": "revoked"
		}
	}`, string(req.body))

	call.View.Flags = 0
	doc, err := json.Marshal(call)
	require.NoError(t, err)
	require.Contains(t, string(doc), `"flags":[]`)
}

func TestCallbackAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		200: "done", 201: "done", 202: "done", 204: "done",
		300: "refused", 301: "refused", 302: "refused", 303: "refused", 304: "refused", 307: "refused", 308: "refused",
		400: "refused", 401: "refused", 403: "refused", 404: "refused", 405: "refused", 408: "refused", 413: "refused", 451: "refused",
		409: "retry", 423: "retry", 425: "retry", 429: "retry",
		410: "rejected", 422: "rejected",
		500: "retry", 501: "retry", 502: "retry", 503: "retry", 504: "retry", 599: "retry",
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			elsewhere, hits := answering(t, func(http.ResponseWriter, *http.Request) {})
			target, calls := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(status)
			})
			err := callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall())
			require.Equal(t, want, processor.ResultName(err), "%v", err)
			require.EqualValues(t, 1, calls.Load())
			require.Zero(t, hits.Load(), "redirects are not followed")
			if err != nil {
				require.Contains(t, err.Error(), strconv.Itoa(status))
			}
		})
	}
}

func TestCallbackRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"120":                   2 * time.Minute,
		"0":                     0,
		"-5":                    0,
		"soon":                  0,
		"2147483648":            processor.MaxRetryAfter,
		"99999999999999999999":  processor.MaxRetryAfter,
		"-99999999999999999999": 0,
		noon.Add(time.Hour).Format(http.TimeFormat):       time.Hour,
		noon.Add(-time.Hour).Format(http.TimeFormat):      0,
		noon.Add(100 * time.Hour).Format(http.TimeFormat): processor.MaxRetryAfter,
	} {
		for _, status := range []int{429, 503, 423} {
			target, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(status)
			})
			err := callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall())
			wait, again := processor.NextTry([]time.Duration{0}, time.Hour, 1, err)
			require.True(t, again)
			require.Equal(t, want, wait, value)
		}
	}
}

func TestCallbackWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}

	t.Run("OwnTimeout", func(t *testing.T) {
		t.Parallel()
		target, _ := answering(t, silent)
		target.Timeout = 50 * time.Millisecond
		err := callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall())
		require.Equal(t, "timeout", processor.ResultName(err))
	})
	t.Run("WorkersDeadline", func(t *testing.T) {
		t.Parallel()
		target, _ := answering(t, silent)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := callback(t, target, processor.CallbackOptions{}).Fulfil(ctx, exampleCall())
		require.Equal(t, "timeout", processor.ResultName(err))
	})
	t.Run("StoppedByUs", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		target, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
			cancel()
			silent(w, r)
		})
		err := callback(t, target, processor.CallbackOptions{}).Fulfil(ctx, exampleCall())
		require.Equal(t, "retry", processor.ResultName(err), "that says nothing of the endpoint")
	})
	t.Run("NobodyListens", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, ln.Close())
		target := processor.Target{URL: "http://" + ln.Addr().String() + "/hook?token=sesame", AllowPrivate: true}
		err = callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall())
		require.Equal(t, "retry", processor.ResultName(err))
		require.NotContains(t, err.Error(), "sesame", "errors are stored and shown")
	})
	t.Run("TheAnswersBodyDoesNotMatter", func(t *testing.T) {
		t.Parallel()
		sent := make(chan int, 1)
		target, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			n, err := 0, error(nil)
			for err == nil && n < 64<<20 {
				var k int
				k, err = w.Write(make([]byte, 32<<10))
				n += k
			}
			sent <- n
		})
		require.NoError(t, callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall()))
		require.Less(t, <-sent, 32<<20, "it is not read to its end")
	})
	t.Run("NoTarget", func(t *testing.T) {
		t.Parallel()
		c, err := processor.NewCallback(func(string) (processor.Target, bool) { return processor.Target{}, false }, processor.CallbackOptions{})
		require.NoError(t, err)
		_, ok := c.Endpoint("acme")
		require.False(t, ok)
		require.Equal(t, "retry", processor.ResultName(c.Fulfil(t.Context(), exampleCall())))
	})
	t.Run("NoSecret", func(t *testing.T) {
		t.Parallel()
		target, calls := answering(t, func(http.ResponseWriter, *http.Request) {})
		target.Secrets = []string{}
		err := callback(t, target, processor.CallbackOptions{}).Fulfil(t.Context(), exampleCall())
		require.Equal(t, "refused", processor.ResultName(err))
		require.Zero(t, calls.Load(), "nothing is sent unsigned")
	})
}

// net/http would send a request with an Idempotency-Key again when a kept connection ends without an answer. The first
// one may still be at work.
func TestCallbackIsSentOnce(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	var requests atomic.Int64
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for r := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if requests.Add(1) > 1 {
						return // read, perhaps done, and no answer
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}()
		}
	}()
	c := callback(t, processor.Target{URL: "http://" + ln.Addr().String(), AllowPrivate: true}, processor.CallbackOptions{})
	require.NoError(t, c.Fulfil(t.Context(), exampleCall()))
	require.Equal(t, "retry", processor.ResultName(c.Fulfil(t.Context(), exampleCall())))
	require.EqualValues(t, 2, requests.Load())
}

func TestCallbackReachesPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	target, calls := answering(t, func(http.ResponseWriter, *http.Request) {})
	u, err := url.Parse(target.URL)
	require.NoError(t, err)
	target.AllowPrivate = false
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, u.Host)
	}
	for name, tt := range map[string]struct {
		url  string
		dial processor.DialFunc
	}{
		"Address":         {target.URL, nil},
		"Name":            {"http://localhost:" + u.Port() + "/hook", nil},
		"MappedAddress":   {"http://[::ffff:127.0.0.1]:" + u.Port(), nil},
		"DecimalAddress":  {"http://2130706433:" + u.Port(), nil},
		"ThroughOwnDial":  {"http://shop.example/hook", dial}, // resolves to loopback, whatever was asked before
		"HTTPSThroughOwn": {"https://shop.example/hook", dial},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := target
			target.URL = tt.url
			err := callback(t, target, processor.CallbackOptions{DialContext: tt.dial}).Fulfil(t.Context(), exampleCall())
			require.Error(t, err)
			if name != "DecimalAddress" { // which some resolvers know and others do not
				require.ErrorIs(t, err, processor.ErrPrivateAddress)
				require.Equal(t, "refused", processor.ResultName(err))
			}
			require.Zero(t, calls.Load())
		})
	}
}

// A proxy would connect to addresses that nobody checked.
func TestCallbackUsesNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:3128")
	var dialled []string
	dial := func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return nil, io.EOF
	}
	c := callback(t, processor.Target{URL: "http://shop.example/hook"}, processor.CallbackOptions{DialContext: dial})
	require.Error(t, c.Fulfil(t.Context(), exampleCall()))
	require.Equal(t, []string{"shop.example:80"}, dialled)
}

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for _, a := range strings.Fields(`1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.0.1.1
		198.17.255.255 198.20.0.0 2606:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1`) {
		require.True(t, processor.IsPublic(a), a)
	}
	for _, a := range strings.Fields(`0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254
		172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
		239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 64:ff9b::a00:1 64:ff9b:1::1
		100::1 2001::1 2001:db8::1 2002:7f00:1::1 2002:a9fe:a9fe::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1`) {
		require.False(t, processor.IsPublic(a), a)
	}
}
