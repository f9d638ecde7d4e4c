package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/store"
)

// pinger signs nothing, thin signs deliveries that only name an object, remote needs the network to be verified. All of
// them send what parse reads, and the id of an event is an object's.
var (
	pinger = &gateway.Gateway{
		Name: "pinger", Deadline: 10 * time.Second, AckBody: "thanks", QuarantineUnreadable: true,
		Parse: parse, Fetch: &gateway.Fetch{Always: true, Objects: objects}, Probe: probe,
	}
	thin = &gateway.Gateway{
		Name: "thin", Scheme: "stripe", Deadline: 10 * time.Second, AckBody: "thanks", Secrets: secretsOf,
		Fetch: &gateway.Fetch{Objects: objects},
		Parse: func(s gateway.Source, d gateway.Delivery) ([]order.Event, error) {
			events, err := parse(s, d)
			var out []order.Event
			for _, e := range events {
				if strings.HasPrefix(e.ID, "tr_") {
					out = append(out, order.Event{ID: "evt_" + e.ID, Type: e.Type, Fetch: "payment/" + e.ID})
				}
			}
			return out, err
		},
	}
	remote = &gateway.Gateway{
		Name: "remote", Scheme: "stripe", Deadline: 10 * time.Second, Parse: parse, Remote: &gateway.Remote{},
	}
)

func objects(s gateway.Source, d gateway.Delivery) ([]gateway.Object, error) {
	events, err := parse(s, d)
	var out []gateway.Object
	for _, e := range events {
		if strings.HasPrefix(e.ID, "tr_") {
			out = append(out, gateway.Object{Kind: "payment", ID: e.ID})
		}
	}
	return out, err
}

func probe(_ gateway.Source, d gateway.Delivery) (gateway.Probe, bool) {
	challenge, ok := strings.CutPrefix(d.Query, "challenge=")
	return gateway.Probe{Body: challenge, Type: "text/x-probe", Note: "asked with " + d.Method}, ok
}

// board is the Announcer of the tests: it remembers what was announced, and can be told to do otherwise.
type board struct {
	do func(context.Context, []store.Announcement) (store.Announced, error)

	mu   sync.Mutex
	list []store.Announcement
}

func (b *board) Announce(ctx context.Context, list []store.Announcement) (store.Announced, error) {
	if b.do != nil {
		return b.do(ctx, list)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, list...)
	return store.Announced{Stored: len(list)}, nil
}

func (b *board) announced() []store.Announcement {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list
}

// ping is an unsigned delivery.
func ping(path, body string) *http.Request {
	return httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
}

func (b *bench) last(t *testing.T) map[string]any {
	t.Helper()
	lines := b.log.lines(t)
	return lines[len(lines)-1]
}

func TestUnsignedDeliveriesOnlyNameObjects(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	w := b.do(ping("/webhooks/pinger?secret=1", `[{"id":"tr_1","type":"paid"},{"id":"other"},{"id":"tr_2"}]`))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "thanks", w.Body.String())
	require.Equal(t, []store.Announcement{
		{Account: "acme", Source: "pinger", Gateway: "pinger", Object: "payment/tr_1", Unsigned: true},
		{Account: "acme", Source: "pinger", Gateway: "pinger", Object: "payment/tr_2", Unsigned: true},
	}, b.board.announced())
	require.Empty(t, b.ledger.committed(), "an unsigned body is never an event, whatever its mapping makes of it")
	line := b.last(t)
	require.Equal(t, []any{"payment/tr_1", "payment/tr_2"}, line["object_names"])
	require.NotContains(t, b.log.String(), "secret=1")

	w = b.do(ping("/webhooks/pinger", `{"id":"other"}`))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "no_fact", b.last(t)["reason"])
	require.Len(t, b.board.announced(), 2)
}

func TestUnreadablePingsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{Refusals: receiver.RefusalLimit{Burst: 2, Every: time.Minute}})
	for range 2 {
		require.Equal(t, http.StatusBadRequest, b.do(ping("/webhooks/pinger", `nonsense`)).Code)
	}
	w := b.do(ping("/webhooks/pinger", `nonsense`))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Empty(t, b.ledger.committed(), "nothing of it is kept aside either")
	require.Empty(t, b.board.announced())
	require.Equal(t, http.StatusOK, b.do(ping("/webhooks/pinger", `{"id":"tr_1"}`)).Code, "readable ones are never refused for it")

	// Who proved who he is, is not a stranger.
	b = setup(t, receiver.Options{Refusals: receiver.RefusalLimit{Burst: 1, Every: time.Minute}})
	for range 3 {
		r := ping("/webhooks/known", `nonsense`)
		user, password, _ := strings.Cut(basic, ":")
		r.SetBasicAuth(user, password)
		require.Equal(t, http.StatusBadRequest, b.do(r).Code)
	}
}

func TestSignedPointersAreStoredThenAnnounced(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	b.board.do = func(_ context.Context, list []store.Announcement) (store.Announced, error) {
		require.Len(t, b.ledger.committed(), 1, "after the commit of its event")
		require.Equal(t, "payment/tr_1", list[0].Object)
		require.False(t, list[0].Unsigned)
		return store.Announced{Known: 1}, nil
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/thin", `{"id":"tr_1","type":"changed"}`)).Code)
	require.Equal(t, "payment/tr_1", b.ledger.committed()[0].Fetch)

	w := b.do(request(t, "/webhooks/thin", `{"id":"other","type":"changed"}`))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "no_fact", b.last(t)["reason"])
	require.Equal(t, http.StatusUnauthorized, b.do(ping("/webhooks/thin", `{"id":"tr_2","type":"changed"}`)).Code)
	require.Len(t, b.ledger.committed(), 1)
}

func TestAnnouncementsThatFail(t *testing.T) {
	t.Parallel()
	full := func(context.Context, []store.Announcement) (store.Announced, error) {
		return store.Announced{Dropped: 1}, nil
	}
	failed := func(context.Context, []store.Announcement) (store.Announced, error) {
		return store.Announced{}, errors.New("no database")
	}
	bad := func(context.Context, []store.Announcement) (store.Announced, error) {
		return store.Announced{}, fmt.Errorf("object: %w", store.ErrBadAnnouncement)
	}
	for _, c := range []struct {
		name, path string
		do         func(context.Context, []store.Announcement) (store.Announced, error)
		status     int
		reason     any
	}{
		{"database, unsigned", "/webhooks/pinger", failed, http.StatusServiceUnavailable, "announce"},
		{"database, signed", "/webhooks/thin", failed, http.StatusServiceUnavailable, "announce"},
		{"full, unsigned: anybody may have sent it", "/webhooks/pinger", full, http.StatusOK, nil},
		{"full, signed: it must come again", "/webhooks/thin", full, http.StatusServiceUnavailable, "too_many_open"},
		{"unstorable", "/webhooks/pinger", bad, http.StatusBadRequest, "unreadable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, receiver.Options{})
			b.board.do = c.do
			require.Equal(t, c.status, b.do(request(t, c.path, `{"id":"tr_1","type":"changed"}`)).Code)
			require.Equal(t, c.reason, b.last(t)["reason"])
		})
	}

	t.Run("a commit that fails announces nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{})
		b.ledger.do = func(context.Context, []store.Event) ([]store.Result, error) { return nil, errors.New("no database") }
		require.Equal(t, http.StatusServiceUnavailable, b.do(request(t, "/webhooks/thin", `{"id":"tr_1","type":"changed"}`)).Code)
		require.Empty(t, b.board.announced())
	})

	t.Run("nobody to announce to", func(t *testing.T) {
		t.Parallel()
		rc, err := receiver.New(sources, &ledger{}, receiver.Options{Gateways: gateways, Now: func() time.Time { return now }})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, ping("/webhooks/pinger", `{"id":"tr_1"}`))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		w := b.do(httptest.NewRequest(method, "/webhooks/pinger?challenge=abc", nil))
		require.Equal(t, http.StatusOK, w.Code, method)
		require.Equal(t, "abc", w.Body.String())
		require.Equal(t, "text/x-probe", w.Header().Get("Content-Type"))
		require.Equal(t, "asked with "+method, b.last(t)["note"])
		require.NotContains(t, b.log.String(), "challenge=")
	}
	require.Empty(t, b.board.announced())
	for _, path := range []string{"/webhooks/pinger?other=abc", "/webhooks/strict?challenge=abc", "/webhooks/unheard-of?challenge=abc"} {
		w := b.do(httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, path)
		require.Equal(t, "POST", w.Header().Get("Allow"))
	}
	for range 30 {
		b.do(httptest.NewRequest(http.MethodGet, "/webhooks/pinger?challenge=abc", nil))
	}
	require.Equal(t, 10, strings.Count(b.log.String(), "asked with"), "their notes are few")
}

type verifier func(context.Context, *gateway.Gateway, gateway.Source, gateway.Delivery, time.Time) error

func (v verifier) Verify(ctx context.Context, gw *gateway.Gateway, s gateway.Source, d gateway.Delivery, at time.Time) error {
	return v(ctx, gw, s, d, at)
}

func TestRemoteVerification(t *testing.T) {
	t.Parallel()
	var answer error
	b := setup(t, receiver.Options{Verifier: verifier(
		func(_ context.Context, gw *gateway.Gateway, s gateway.Source, d gateway.Delivery, at time.Time) error {
			require.Equal(t, "remote", gw.Name)
			require.Equal(t, "remote", s.ID)
			require.Equal(t, "a=1&b=%20", d.Query)
			require.Equal(t, now, at)
			return answer
		})})
	do := func() int { return b.do(ping("/webhooks/remote?a=1&b=%20", paid)).Code }
	require.Equal(t, http.StatusOK, do())
	answer = fmt.Errorf("remote: %w", &signature.Error{Reason: signature.Mismatch})
	require.Equal(t, http.StatusUnauthorized, do())
	require.Equal(t, string(signature.Mismatch), b.last(t)["reason"])
	answer = errors.New("certificate host is down")
	require.Equal(t, http.StatusServiceUnavailable, do())
	require.Equal(t, "verifier", b.last(t)["reason"])
	require.Len(t, b.ledger.committed(), 1)

	b = setup(t, receiver.Options{})
	require.Equal(t, http.StatusServiceUnavailable, do())
	require.Equal(t, "no_verifier", b.last(t)["reason"])
	require.Equal(t, "ERROR", b.last(t)["level"])
	require.Empty(t, b.ledger.committed())
}

// Verifiers that hang hold up no more than so many deliveries.
func TestVerifyingIsBounded(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	b := setup(t, receiver.Options{MaxVerifying: 1, Verifier: verifier(
		func(context.Context, *gateway.Gateway, gateway.Source, gateway.Delivery, time.Time) error {
			close(begun)
			<-end
			return nil
		})})
	done := make(chan int)
	go func() { done <- b.do(ping("/webhooks/remote", paid)).Code }()
	<-begun
	require.Equal(t, http.StatusServiceUnavailable, b.do(ping("/webhooks/remote", paid)).Code)
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
	close(end)
	require.Equal(t, http.StatusOK, <-done)
}
