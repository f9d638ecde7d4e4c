package merchant_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/merchant"
	"github.com/paidonce/paidonce/signature"
)

const secret = "whsec_bWVyY2hhbnQtdGVzdC1vbmx5LWtleS0wMDAwMDA="

var moment = time.Unix(1_790_000_000, 0)

// program calls the merchant as the program does.
type program struct {
	t   *testing.T
	url string
}

func open(t *testing.T) (*merchant.Recorder, program) {
	t.Helper()
	r, err := merchant.New(merchant.Options{
		Secrets: func() []string { return []string{secret} },
		Now:     func() time.Time { return moment },
	})
	require.NoError(t, err)
	server := httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		server.Close()
	})
	return r, program{t, server.URL}
}

// call makes one callback; change spoils the request before it is sent.
func (p program) call(ctx context.Context, version int, effect, after string, change func(*http.Request)) (int, error) {
	p.t.Helper()
	key := fmt.Sprintf("order-1:%d:%s", version, effect)
	body := fmt.Appendf(nil, `{"type":"order.%[1]s","data":{"order_id":"order-1","external_ref":"A-1","effect":"%[1]s",`+
		`"version":%[2]d,"state":"paid","kept":5000,"after":"%[3]s"}}`, effect, version, after)
	scheme, ok := signature.Lookup("standard")
	require.True(p.t, ok)
	signed, err := scheme.Sign(body, secret, moment, signature.SignOptions{ID: key})
	require.NoError(p.t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(signed.Body))
	require.NoError(p.t, err)
	for name, values := range signed.Header {
		req.Header[name] = values
	}
	req.Header.Set("Idempotency-Key", key)
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (p program) ok(version int, effect, after string) {
	p.t.Helper()
	code, err := p.call(p.t.Context(), version, effect, after, nil)
	require.NoError(p.t, err)
	require.Equal(p.t, 200, code)
}

func TestRecorder(t *testing.T) {
	t.Parallel()

	t.Run("FollowsTheContract", func(t *testing.T) {
		t.Parallel()
		r, p := open(t)
		p.ok(2, "fulfil", "nothing")
		p.ok(2, "fulfil", "nothing") // a key seen before
		require.Equal(t, merchant.Delivered, r.Goods("A-1"))
		p.ok(4, "revoke", "fulfilled")
		p.ok(3, "fulfil", "nothing") // a lower version
		require.Equal(t, merchant.Returned, r.Goods("A-1"))
		p.ok(5, "release", "revoked")
		require.Equal(t, merchant.Delivered, r.Goods("A-1"))
		require.Equal(t, []string{"fulfil", "revoke", "release"}, r.Effects("A-1"))
		require.Equal(t, map[string]int{"fulfil": 2, "revoke": 1, "release": 1}, r.Keys())
		require.Empty(t, r.Violations())
		require.Empty(t, r.Effects("A-2"))
	})

	t.Run("HoldAndRelease", func(t *testing.T) {
		t.Parallel()
		r, p := open(t)
		p.ok(2, "hold", "nothing")
		require.Equal(t, merchant.KeptBack, r.Goods("A-1"))
		p.ok(3, "release", "held")
		require.Equal(t, merchant.Untouched, r.Goods("A-1"))
		p.ok(4, "revoke", "nothing") // of something never fulfilled
		require.Equal(t, merchant.Untouched, r.Goods("A-1"))
		require.Empty(t, r.Violations())
	})

	t.Run("ErrorIsNotDone", func(t *testing.T) {
		t.Parallel()
		r, p := open(t)
		r.Answer(merchant.Error)
		code, err := p.call(t.Context(), 2, "fulfil", "nothing", nil)
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Equal(t, merchant.Untouched, r.Goods("A-1"))
		r.Answer(merchant.OK)
		p.ok(2, "fulfil", "nothing")
		require.Equal(t, merchant.Delivered, r.Goods("A-1"))
		require.Equal(t, map[string]int{"fulfil": 1}, r.Keys())
		require.Len(t, r.Calls(), 2)
		require.Equal(t, []int{503, 200}, []int{r.Calls()[0].Status, r.Calls()[1].Status})
		r.Reset()
		require.Empty(t, r.Calls())
	})

	t.Run("HangsUntilTheCallerGivesUp", func(t *testing.T) {
		t.Parallel()
		r, p := open(t)
		r.AnswerFor("A-1", merchant.Hang)
		ctx, cancel := context.WithCancel(t.Context())
		arrived := r.Arrived()
		failed := make(chan error, 1)
		go func() {
			_, err := p.call(ctx, 2, "fulfil", "nothing", nil)
			failed <- err
		}()
		<-arrived
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		r.AnswerFor("A-1", "")
		require.Eventually(t, func() bool { // the server notices that the caller is gone a moment later
			return r.Calls()[0].Status == 0 && len(r.Violations()) == 0
		}, time.Second, time.Millisecond)
	})

	for name, spoil := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"BadSignature":    {func(r *http.Request) { r.Header.Set("Webhook-Timestamp", "1") }, "signature does not verify"},
		"NoSignature":     {func(r *http.Request) { r.Header.Del("Webhook-Signature") }, "signature does not verify"},
		"NoKey":           {func(r *http.Request) { r.Header.Del("Idempotency-Key") }, "Idempotency-Key"},
		"AnotherOrderKey": {func(r *http.Request) { r.Header.Set("Idempotency-Key", "order-2:2:fulfil") }, "another order"},
		"NotPOST":         {func(r *http.Request) { r.Method = http.MethodPut }, "not POST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := open(t)
			_, err := p.call(t.Context(), 2, "fulfil", "nothing", spoil.change)
			require.NoError(t, err)
			require.NotEmpty(t, r.Violations())
			require.Contains(t, fmt.Sprint(r.Violations()), spoil.want)
		})
	}

	t.Run("TwoAtOnceAndTwoFulfils", func(t *testing.T) {
		t.Parallel()
		r, p := open(t)
		r.Answer(merchant.Hang)
		arrived := r.Arrived()
		go func() { _, _ = p.call(t.Context(), 2, "fulfil", "nothing", nil) }()
		<-arrived
		r.Answer(merchant.OK)
		p.ok(2, "fulfil", "nothing")
		p.ok(3, "fulfil", "nothing")
		require.Contains(t, fmt.Sprint(r.Violations()), "called twice at once")
		require.Contains(t, fmt.Sprint(r.Violations()), "delivered twice")
	})
}
