package receiver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// TestEveryOutcomeIsTaken: whatever became of an event, once it is committed the gateway is to stop sending it.
func TestEveryOutcomeIsTaken(t *testing.T) {
	t.Parallel()
	for _, o := range []store.Outcome{
		store.Applied, store.NoChange, store.Duplicate, store.Waiting, store.Ignored, store.Flagged, store.Quarantined,
	} {
		t.Run(string(o), func(t *testing.T) {
			t.Parallel()
			b := setup(t, receiver.Options{})
			b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) { return []store.Result{{Outcome: o}}, nil }

			w := b.do(request(t, "/webhooks/mall", paid))
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, "[taken]", w.Body.String())
			require.Equal(t, "text/x-mall", w.Header().Get("Content-Type"))

			w = b.do(request(t, "/webhooks/strict", paid))
			require.Equal(t, http.StatusOK, w.Code)
			require.Empty(t, w.Body.String())
			require.EqualValues(t, 1, b.log.lines(t)[0][string(o)])
		})
	}
}

// TestWhatIsStored: the bytes as they came, and nothing that is a credential.
func TestWhatIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	body := " [{\"id\":\"evt_1\",\"type\":\"paid\"}, {\"id\":\"evt_2\",\"type\":\"refunded\"}]\r\n"
	body = strings.TrimPrefix(body, " ")
	r := request(t, "/webhooks/mall", body)
	r.Header.Set("User-Agent", "Mall/1 \xff\x80"+strings.Repeat("x", 4096))
	r.Header.Set("Authorization", "Bearer TESTONLY")
	require.Equal(t, http.StatusOK, b.do(r).Code)

	got := b.ledger.committed()
	require.Len(t, got, 2)
	require.Equal(t, []string{"evt_1", "evt_2"}, []string{got[0].ID, got[1].ID})
	for _, e := range got {
		require.Equal(t, "acme", e.Account)
		require.Equal(t, "mall", e.Source)
		require.Equal(t, "mall:live", e.Realm)
		require.Equal(t, body, string(e.Payload))
		require.EqualValues(t, 7, e.Delivery.Version())
		require.Equal(t, got[0].Delivery, e.Delivery)
		require.False(t, e.Paused)
		require.Len(t, e.Header, 2)
		require.Equal(t, "application/json", e.Header["Content-Type"])
		require.Contains(t, e.Header["User-Agent"], "Mall/1 \uFFFDx", "text that Postgres can hold")
		require.LessOrEqual(t, len(e.Header["User-Agent"]), 1024)
	}

	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/paused", paid)).Code)
	last := b.ledger.committed()[2]
	require.True(t, last.Paused)
	require.Equal(t, store.OnUnknownCreate, last.OnUnknown)
	require.NotEqual(t, got[0].Delivery, last.Delivery)
}

// TestRefused: a subtest for every way in which a signature does not hold. The caller cannot tell them apart.
func TestRefused(t *testing.T) {
	t.Parallel()
	good := sign(t, []byte(paid))
	hook := func(h string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Stripe-Signature", h) }
	}
	tests := []struct {
		name, source, reason string
		change               func(*http.Request)
	}{
		{"NoSignature", "strict", "missing", func(r *http.Request) { r.Header.Del("Stripe-Signature") }},
		{"EmptySignature", "strict", "missing", hook("")},
		{"TimeOnly", "strict", "missing", hook("t=1790000000")},
		{"EmptyDigest", "strict", "", hook("t=1790000000,v1=")},
		{"OtherSecret", "strict", "mismatch", hook("t=1790000000,v1=" + strings.Repeat("0", 64))},
		{"NotHex", "strict", "", hook("t=1790000000,v1=dummy" + strings.Repeat("0", 59))},
		{"OtherBody", "strict", "mismatch", hook(sign(t, []byte(paid+" ")))},
		{"TimeChanged", "strict", "mismatch", hook(strings.Replace(good, "t=1790000000", "t=1790000001", 1))},
		{"TwoHeaders", "strict", "ambiguous", func(r *http.Request) {
			r.Header["Stripe-Signature"] = []string{"t=1790000000,v1=" + strings.Repeat("0", 64), good}
		}},
		{"NoBasic", "basic", "missing", func(*http.Request) {}},
		{"WrongBasic", "basic", "mismatch", func(r *http.Request) { r.SetBasicAuth("hook", "guess") }},
		{"BasicWithoutSignature", "basic", "missing", func(r *http.Request) {
			r.SetBasicAuth("hook", "TESTONLY-basic-password")
			r.Header.Del("Stripe-Signature")
		}},
		{"SecretInTheURL", "strict", "missing", func(r *http.Request) {
			r.URL.RawQuery = "secret=" + secret + "&Stripe-Signature=" + good
			r.Header.Del("Stripe-Signature")
		}},
	}
	var first *httptest.ResponseRecorder
	for _, tt := range tests {
		r := request(t, "/webhooks/"+tt.source, paid)
		tt.change(r)
		b := setup(t, receiver.Options{})
		w := b.do(r)
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Empty(t, b.ledger.committed(), "a forged body causes no row")
			line := b.log.lines(t)[0]
			if tt.reason != "" {
				require.Equal(t, tt.reason, line["reason"])
			}
			require.NotEmpty(t, line["reason"])
			require.Equal(t, tt.source, line["source"])
		})
		if first == nil {
			first = w
		}
		require.Equal(t, first.Body.String(), w.Body.String(), tt.name)
		require.Equal(t, first.Header(), w.Header(), tt.name)
		require.Empty(t, w.Header().Get("Connection"), "the body was read, so the connection can be used again")
	}

	for name, at := range map[string]time.Duration{"stale": 301 * time.Second, "future": -301 * time.Second} {
		b := setup(t, receiver.Options{Now: func() time.Time { return now.Add(at) }})
		w := b.do(request(t, "/webhooks/strict", paid))
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Equal(t, first.Body.String(), w.Body.String())
		require.Equal(t, name, b.log.lines(t)[0]["reason"])
	}

	b := setup(t, receiver.Options{})
	r := request(t, "/webhooks/basic", paid)
	r.SetBasicAuth("hook", "TESTONLY-basic-password")
	require.Equal(t, http.StatusOK, b.do(r).Code, "with both it is taken")
}

// TestCompressedBodyIsNotDecoded: the signature is over the bytes as they came, so what is compressed verifies only if
// it was signed compressed, and then is no JSON.
func TestCompressedBodyIsNotDecoded(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	zipped := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\x4c\x51\xb2\x52\x2a"
	r := request(t, "/webhooks/strict", zipped)
	r.Header.Set("Content-Encoding", "gzip")
	require.Equal(t, http.StatusBadRequest, b.do(r).Code)

	r = request(t, "/webhooks/strict", zipped)
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("Stripe-Signature", sign(t, []byte(paid)))
	require.Equal(t, http.StatusUnauthorized, b.do(r).Code)
	require.Empty(t, b.ledger.committed())
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"Empty": "", "NoJSON": "paid", "NotUTF8": "{\"id\":\"\xff\xfe\"", "NoEvent": "[]",
		"NoID": `{"type":"paid"}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, receiver.Options{})
			require.Equal(t, http.StatusBadRequest, b.do(request(t, "/webhooks/strict", body)).Code)
			require.Empty(t, b.ledger.committed())
			require.NotEmpty(t, b.log.lines(t)[0]["reason"])

			// A gateway that would hold everything back behind it gets its answer, and the bytes are kept.
			w := b.do(request(t, "/webhooks/mall", body))
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, "[taken]", w.Body.String())
			got := b.ledger.committed()
			require.Len(t, got, 1)
			sum := sha256.Sum256([]byte(body))
			require.Equal(t, "body:"+hex.EncodeToString(sum[:]), got[0].ID)
			require.Equal(t, "unreadable", got[0].Type)
			require.NotEmpty(t, got[0].Broken)
			require.Empty(t, got[0].Facts)
			require.Equal(t, body, string(got[0].Payload))
		})
	}
}

// TestUnstorable: an event that no retry can make storable is answered like one that cannot be read.
func TestUnstorable(t *testing.T) {
	t.Parallel()
	unstorable := func(_ context.Context, events []store.Event) ([]store.Result, error) {
		if events[0].Type == "unreadable" {
			return []store.Result{{Outcome: store.Quarantined}}, nil
		}
		return nil, fmt.Errorf("ingest: %w", &store.EventError{Err: store.ErrUnstorable})
	}
	b := setup(t, receiver.Options{})
	b.ledger.do = unstorable
	require.Equal(t, http.StatusBadRequest, b.do(request(t, "/webhooks/strict", paid)).Code)
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/mall", paid)).Code)

	b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) { return nil, store.ErrUnstorable }
	require.Equal(t, http.StatusBadRequest, b.do(request(t, "/webhooks/mall", paid)).Code, "and never tried for ever")
}

// TestNotCommitted: whatever goes wrong between verification and commit, the gateway is asked to send it again.
func TestNotCommitted(t *testing.T) {
	t.Parallel()
	type ingest = func(context.Context, []store.Event) ([]store.Result, error)
	for name, do := range map[string]ingest{
		"Error": func(context.Context, []store.Event) ([]store.Result, error) {
			return nil, errors.New("connection refused")
		},
		"ResultsLost": func(context.Context, []store.Event) ([]store.Result, error) { return nil, nil },
		"CommitUnknown": func(_ context.Context, e []store.Event) ([]store.Result, error) {
			return applied(e), errors.New("commit unknown")
		},
		"Panic": func(context.Context, []store.Event) ([]store.Result, error) { panic("out of " + secret) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, receiver.Options{RetryAfter: 1500 * time.Millisecond})
			b.ledger.do = do
			w := b.do(request(t, "/webhooks/mall", paid))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, "2", w.Header().Get("Retry-After"), "whole seconds, rounded up")
			require.NotContains(t, w.Body.String(), "refused")
			require.NotEmpty(t, b.log.lines(t)[0]["err"])
			require.NotContains(t, b.log.String(), secret)
		})
	}

	t.Run("NoSuchGateway", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{})
		require.Equal(t, http.StatusServiceUnavailable, b.do(request(t, "/webhooks/nowhere", paid)).Code)
		require.Equal(t, "ERROR", b.log.lines(t)[0]["level"])
	})
}

// TestPanicsAreBugsNotAnswers: a parser that fails on signed bytes loses nothing and tells nothing.
func TestPanicsAreBugsNotAnswers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"panic", "index"} {
		b := setup(t, receiver.Options{MaxInFlight: 1})
		body := `{"id":"evt_CANARY","type":"` + kind + `"}`
		for range 3 { // what it held is given back
			w := b.do(request(t, "/webhooks/strict", body))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.NotEmpty(t, w.Header().Get("Retry-After"))
		}
		line := b.log.lines(t)[0]
		require.Equal(t, "ERROR", line["level"])
		require.Equal(t, "panic", line["reason"])
		require.Contains(t, line["stack"], "receiver_test.parse", "the line says where")
		require.NotContains(t, b.log.String(), "CANARY")
		require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
	}
}

// TestGivesUpBeforeTheGatewayDoes: the wait for a commit ends a second before the gateway's own deadline.
func TestGivesUpBeforeTheGatewayDoes(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]time.Duration{"strict": strict.Deadline - time.Second, "patient": 29 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, receiver.Options{})
			b.ledger.do = func(ctx context.Context, _ []store.Event) ([]store.Result, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("ingest: %w", ctx.Err())
			}
			began := time.Now()
			w := b.do(request(t, "/webhooks/"+source, paid))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, want, time.Since(began))
			require.Equal(t, "deadline", b.log.lines(t)[0]["reason"])
		})
	}
	// The server's own time-out must not be the first to end a wait.
	require.Greater(t, receiver.NewServer(http.NotFoundHandler(), receiver.ServerOptions{}).WriteTimeout, 30*time.Second)
}

// TestHangingUpDoesNotUndo: a caller that hangs up does not cancel what got in: its next try finds it done.
func TestHangingUpDoesNotUndo(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	var seen error
	b.ledger.do = func(in context.Context, events []store.Event) ([]store.Result, error) {
		hangUp()
		seen = in.Err()
		return applied(events), nil
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid).WithContext(ctx)).Code)
	require.NoError(t, seen)
}

// TestNever200BeforeTheCommit: nothing is written while the commit is out.
func TestNever200BeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	w := httptest.NewRecorder()
	b.ledger.do = func(_ context.Context, events []store.Event) ([]store.Result, error) {
		require.False(t, w.Flushed)
		require.Empty(t, w.Header())
		require.Zero(t, w.Body.Len())
		return applied(events), nil
	}
	b.ServeHTTP(w, request(t, "/webhooks/mall", paid))
	require.Equal(t, http.StatusOK, w.Code)
}

// TestReload: a source is looked up anew for each delivery.
func TestReload(t *testing.T) {
	t.Parallel()
	live := []string{"whsec_TESTONLY_the-old-one-before"}
	found := true
	rc, err := receiver.New(func(id string) (gateway.Source, bool) {
		return gateway.Source{ID: id, Account: "acme", Gateway: "strict", Mode: "live", Secrets: live}, found
	}, &ledger{}, receiver.Options{Gateways: gateways, Now: func() time.Time { return now }})
	require.NoError(t, err)
	post := func() int {
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, request(t, "/webhooks/any", paid))
		return w.Code
	}
	require.Equal(t, http.StatusUnauthorized, post())
	live = append(live, secret)
	require.Equal(t, http.StatusOK, post())
	found = false
	require.Equal(t, http.StatusNotFound, post())
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	_, err := receiver.New(nil, &ledger{}, receiver.Options{})
	require.Error(t, err)
	_, err = receiver.New(sources, nil, receiver.Options{})
	require.Error(t, err)
	_, err = receiver.New(sources, &ledger{}, receiver.Options{MaxBody: -1})
	require.ErrorContains(t, err, "Options.MaxBody")
	_, err = receiver.New(sources, &ledger{}, receiver.Options{Refusals: receiver.RefusalLimit{Burst: -1}})
	require.ErrorContains(t, err, "Options.Refusals.Burst")
}

// TestRealGateways: each gateway of the registry gets its own answer for its own delivery.
func TestRealGateways(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		src, ok := realSources[g.Name]
		if !ok {
			src = g.Example("receiver")
		}
		if g.Remote != nil {
			continue // a key to verify with is found on the network
		}
		src.ID, src.Account, src.Gateway, src.Mode = g.Name, "acme", g.Name, gateway.Live
		ing, asked := &ledger{}, &board{}
		rc, err := receiver.New(func(string) (gateway.Source, bool) { return src, true }, ing,
			receiver.Options{Now: func() time.Time { return now }, Announcer: asked})
		require.NoError(t, err)

		body, err := g.Sample(gateway.SampleRequest{
			Source: src, Type: g.Types(src)[0].Name, Reference: "ord_1",
			Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now,
		})
		require.NoError(t, err)
		d, err := g.Deliver(src, body, "", now)
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodPost, "/webhooks/"+g.Name+"?"+d.Query, strings.NewReader(string(d.Body)))
		r.Header = d.Header
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, g.Name)
		require.Equal(t, g.AckBody, w.Body.String())
		if g.Fetch != nil && g.Fetch.Always {
			require.NotEmpty(t, asked.announced(), g.Name)
			require.Equal(t, g.Name, asked.announced()[0].Gateway)
		} else {
			require.NotEmpty(t, ing.committed(), g.Name)
		}
		for _, e := range ing.committed() {
			require.Equal(t, string(d.Body), string(e.Payload))
			require.Equal(t, g.Keep(d.Header), e.Header)
		}
	}
}

// realSources are those that differ from the examples of their gateways.
var realSources = map[string]gateway.Source{
	"stripe": {Secrets: []string{secret}},
	"adyen":  {HMACKeys: []string{strings.Repeat("0123456789abcdef", 4)}, Basic: basic, MerchantAccounts: []string{"Acme"}},
	"standard": {Secrets: []string{"whsec_VEVTVE9OTFktcGFpZG9uY2Utc3RhbmRhcmQtMDAx"}, Map: &gateway.Map{
		Type: "/type", Payment: "/data/payment", Reference: "/data/order", Amount: "/data/amount", Currency: "/data/currency",
		Facts: map[string]string{"paid": "captured"},
	}},
}
