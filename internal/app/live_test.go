package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store/storetest"
)

// reloader hands configurations to a running program.
type reloader struct {
	next   chan *config.Config
	reload chan func(error)
}

func newReloader() *reloader {
	return &reloader{next: make(chan *config.Config, 1), reload: make(chan func(error))}
}

func (r *reloader) edges() app.Edges {
	return app.Edges{Reload: r.reload, Load: func() (*config.Config, error) { return <-r.next, nil }}
}

func (r *reloader) put(t *testing.T, cfg *config.Config) {
	t.Helper()
	r.next <- cfg
	done := make(chan error)
	r.reload <- func(err error) { done <- err }
	require.NoError(t, <-done)
}

// change edits the one source of a configuration made by configure.
func change(cfg *config.Config, edit func(*config.Account)) *config.Config {
	account := cfg.Accounts["shop"]
	edit(&account)
	cfg.Accounts["shop"] = account
	return cfg
}

// While a source is paused its events are kept and acknowledged; when it is
// not paused any more, they are folded.
func TestPausedSource(t *testing.T) {
	t.Parallel()
	m, url, r := newMerchant(t), storetest.OpenURL(t), newReloader()
	paused := change(configure(t, url, m.URL, secret), func(a *config.Account) {
		s := a.Sources["stripe"]
		s.Paused = true
		a.Sources["stripe"] = s
	})
	p := start(t, app.Both, paused, r.edges())
	require.Equal(t, http.StatusCreated, register(t, p.Listen, "ord_1"))
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))
	require.Empty(t, m.calls)

	r.put(t, configure(t, url, m.URL, secret))
	require.Contains(t, m.next(t), ":fulfil")
	require.Contains(t, p.log.String(), `"msg":"paused events resumed"`)
}

// An account that had no callback is told what it is owed once it has one, and
// later calls go where the new configuration says.
func TestCallbackChanges(t *testing.T) {
	t.Parallel()
	m, other, url, r := newMerchant(t), newMerchant(t), storetest.OpenURL(t), newReloader()
	silent := change(configure(t, url, m.URL, secret), func(a *config.Account) { a.Callback = config.Callback{} })
	p := start(t, app.Both, silent, r.edges())
	require.Equal(t, http.StatusCreated, register(t, p.Listen, "ord_1"))
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))

	r.put(t, configure(t, url, m.URL, secret))
	require.Contains(t, m.next(t), ":fulfil")
	r.put(t, configure(t, url, other.URL, secret))
	require.Equal(t, http.StatusCreated, register(t, p.Listen, "ord_2"))
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_2")))
	require.Contains(t, other.next(t), ":fulfil")
	require.Empty(t, m.calls)
}

// The sender's address is the one that a proxy of ours writes, and nobody else's.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, proxies, want string }{
		{"Trusted", "127.0.0.0/8", "203.0.113.7"},
		{"Stranger", "198.51.100.0/24", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := configure(t, storetest.OpenURL(t), "http://127.0.0.1:1/", secret)
			cfg.TrustedProxies, cfg.TrustedProxyHeader = []string{tt.proxies}, "X-Real-Ip"
			p := start(t, app.Serve, cfg, app.Edges{})
			req := signed(t, p.Listen, secret, payment(t, "ord_1"))
			req.Header.Set("X-Real-Ip", "203.0.113.7")
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Eventually(t, func() bool { return strings.Contains(p.log.String(), `"remote":"`+tt.want+`"`) },
				5*time.Second, 5*time.Millisecond, p.log.String())
		})
	}
}

// The clock that is handed in judges signatures.
func TestClock(t *testing.T) {
	t.Parallel()
	ahead := app.Edges{Now: func() time.Time { return time.Now().Add(time.Hour) }}
	p := start(t, app.Serve, configure(t, storetest.OpenURL(t), "http://127.0.0.1:1/", secret), ahead)
	require.Equal(t, http.StatusUnauthorized, deliver(t, p.Listen, secret, payment(t, "ord_1")))
}
