package outbound_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
)

// granting is an API with client credentials.
type granting struct {
	*host
	grants  atomic.Int64
	expires string // JSON
	refused atomic.Value
}

func newGranting(t *testing.T, expires string) *granting {
	t.Helper()
	g := &granting{expires: expires}
	g.refused.Store("")
	g.host = newHost(t, func(w http.ResponseWriter, r *http.Request) {
		switch auth := r.Header.Get("Authorization"); {
		case r.URL.Path == "/token" && auth != "Basic sk_right":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"error":"invalid_client"}`)
		case r.URL.Path == "/token":
			_, _ = fmt.Fprintf(w, `{"access_token":"sk_%d","token_type":"bearer"%s}`, g.grants.Add(1), g.expires)
		case auth == g.refused.Load().(string):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = fmt.Fprint(w, auth)
		}
	})
	return g
}

func granted(credential string) gateway.Call {
	return gateway.Call{Path: "/v1/x", Grant: &gateway.Call{
		Method: http.MethodPost, Path: "/token", Header: http.Header{"Authorization": {"Basic " + credential}},
	}}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	t.Run("UsedForAsLongAsItLives", func(t *testing.T) {
		t.Parallel()
		for expires, life := range map[string]time.Duration{
			`,"expires_in":3600`: 59 * time.Minute, `,"expires_in":"3600"`: 59 * time.Minute, ``: 4 * time.Minute,
			`,"expires_in":999999999999`: 24*time.Hour - time.Minute,
		} {
			g, clock := newGranting(t, expires), &hand{}
			c := g.client(t, clock, nil)
			for _, row := range []struct {
				move time.Duration
				want string
			}{{0, "sk_1"}, {life - 1, "sk_1"}, {1, "sk_2"}, {0, "sk_2"}} {
				clock.move(row.move)
				body, err := c.Do(t.Context(), asked, shop, granted("sk_right"))
				require.NoError(t, err)
				require.Equal(t, "Bearer "+row.want, string(body), expires)
			}
		}
	})

	t.Run("OneFlight", func(t *testing.T) {
		t.Parallel()
		g := newGranting(t, `,"expires_in":3600`)
		c := g.client(t, &hand{}, func(o *outbound.Options) { o.Concurrent, o.Burst = 100, 100 })
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := c.Do(t.Context(), asked, shop, granted("sk_right"))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, g.grants.Load())
	})

	t.Run("TakenBackBeforeItsTime", func(t *testing.T) {
		t.Parallel()
		g := newGranting(t, `,"expires_in":3600`)
		c := g.client(t, &hand{}, nil)
		_, err := c.Do(t.Context(), asked, shop, granted("sk_right"))
		require.NoError(t, err)
		g.refused.Store("Bearer sk_1")
		body, err := c.Do(t.Context(), asked, shop, granted("sk_right"))
		require.NoError(t, err)
		require.Equal(t, "Bearer sk_2", string(body))

		// A new one that is not accepted is not asked for again in the same call.
		g.refused.Store("Bearer sk_2")
		g.now(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				_, _ = fmt.Fprint(w, `{"access_token":"sk_new"}`)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		})
		before := g.calls.Load()
		_, err = c.Do(t.Context(), asked, shop, granted("sk_right"))
		require.Equal(t, http.StatusUnauthorized, fails(t, err, outbound.Denied).status)
		require.Equal(t, before+3, g.calls.Load(), "the old token, a grant, the new token")
	})

	t.Run("WrongCredentials", func(t *testing.T) {
		t.Parallel()
		g := newGranting(t, "")
		c := g.client(t, &hand{}, nil)
		_, err := c.Do(t.Context(), asked, shop, granted("sk_right"))
		require.NoError(t, err)
		_, err = c.Do(t.Context(), asked, shop, granted("sk_wrong"))
		fails(t, err, outbound.Denied)
		require.EqualValues(t, 1, g.grants.Load(), "the token of other credentials is not used")
	})

	t.Run("NoToken", func(t *testing.T) {
		t.Parallel()
		for _, answer := range []string{`{}`, `{"access_token":""}`, `{"access_token":"a\nb"}`, `{"access_token":"sk_x","token_type":"mac"}`, `sk_x`} {
			h := newHost(t, text(answer))
			_, err := h.client(t, &hand{}, nil).Do(t.Context(), asked, shop, granted("sk_right"))
			fails(t, err, outbound.Refused)
			require.EqualValues(t, 1, h.calls.Load())
		}
	})
}
