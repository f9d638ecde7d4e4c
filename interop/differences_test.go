package interop_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func mac(secret, message string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(message))
	return m.Sum(nil)
}

// TestWhereWeDiffer pins what we decide in another way than a library, and why.
// It fails if one of the two changes.
func TestWhereWeDiffer(t *testing.T) {
	t.Parallel()
	all := map[string]library{}
	for _, l := range libraries() {
		all[l.name] = l
	}
	const body = `{"id":"evt_1"}`
	now := time.Now()
	later := now.Add(time.Hour)
	stripeAt := func(secret string, at time.Time) http.Header {
		return http.Header{"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%x", at.Unix(), mac(secret, unix(at)+"."+body))}}
	}
	standardAt := func(stamp string) http.Header {
		key, err := base64.StdEncoding.DecodeString(whsec[len("whsec_"):])
		require.NoError(t, err)
		sig := base64.StdEncoding.EncodeToString(mac(string(key), "msg_1."+unix(now)+"."+body))
		return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {"v1," + sig}}
	}
	paddleTwo := func(secret string) http.Header {
		good := fmt.Sprintf("%x", mac(secret, unix(now)+":"+body))
		return http.Header{"Paddle-Signature": {fmt.Sprintf("ts=%d;h1=%s;h1=%064d", now.Unix(), good, 0)}}
	}
	paddleOld := func(secret string) http.Header {
		old := now.Add(-time.Minute)
		return http.Header{"Paddle-Signature": {fmt.Sprintf("ts=%d;h1=%x", old.Unix(), mac(secret, unix(old)+":"+body))}}
	}

	for _, tt := range []struct {
		sdk, reason  string
		header       func(library) http.Header
		theirs, ours bool
	}{
		{"go/stripe-go", "a time in the future hides a clock that is wrong, and lets a replay wait", func(l library) http.Header { return stripeAt(l.secret, later) }, true, false},
		{"node/stripe", "a time in the future hides a clock that is wrong, and lets a replay wait", func(l library) http.Header { return stripeAt(l.secret, later) }, true, false},
		{"go/standard-webhooks", "a timestamp with leading zeros has a second reading; no sender writes one", func(library) http.Header { return standardAt("0" + unix(now)) }, true, false},
		{"go/paddle", "several h1 are documented for the time of a rotation", func(l library) http.Header { return paddleTwo(l.secret) }, false, true},
		{"node/paddle", "several h1 are documented for the time of a rotation", func(l library) http.Header { return paddleTwo(l.secret) }, false, true},
		{"node/paddle", "5 s is too short for queues and retries; the window is the option tolerance", func(l library) http.Header { return paddleOld(l.secret) }, false, true},
	} {
		t.Run(tt.sdk+"/"+tt.reason, func(t *testing.T) {
			t.Parallel()
			l := all[tt.sdk]
			skipWithoutNode(t, l)
			d := delivery{header: tt.header(l), body: []byte(body)}
			require.Equal(t, tt.theirs, l.verify(t, l, d), "the library changed")
			scheme, ok := signature.Lookup(l.scheme)
			require.True(t, ok)
			err := scheme.Verify(l.request(d), []string{l.secret}, now)
			require.Equal(t, tt.ours, err == nil, "we changed: %v", err)
		})
	}
}
