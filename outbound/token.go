package outbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

const (
	// tokenMargin is how long before its end a token is not used any more.
	tokenMargin = time.Minute

	// tokenLife is what a token lives that does not say: RFC 6749 only
	// recommends that it does.
	tokenLife = 5 * time.Minute

	maxToken = 16 << 10
)

// tokens are access tokens, by what they were got with.
type tokens struct {
	mu sync.Mutex
	m  map[string]token
}

type token struct {
	value string
	until time.Duration
}

// get returns a token that is valid at now.
func (t *tokens) get(key string, now time.Duration) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, ok := t.m[key]
	return one.value, ok && now < one.until
}

// put keeps a token and forgets those that are over, so that credentials that
// were changed leave nothing behind.
func (t *tokens) put(key string, one token, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.m, func(_ string, old token) bool { return now >= old.until })
	t.m[key] = one
}

// drop forgets a token that was not accepted.
func (t *tokens) drop(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.m, func(_ string, old token) bool { return old.value == value })
}

// token returns the token that a grant gives, and whether it is new. However many
// calls need it, one asks for it.
func (c *Client) token(ctx context.Context, t target, s gateway.Source, grant gateway.Call) (value string, fresh bool, err error) {
	key := grantKey(t, s, grant)
	if value, ok := c.tokens.get(key, c.opts.Elapsed()); ok {
		return value, false, nil
	}
	// The call goes on for the others when the first who asked goes away.
	done := c.flights.DoChan("token "+key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.Deadline)
		defer cancel()
		return c.grant(ctx, t, s, grant, key)
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return "", false, r.Err
		}
		return r.Val.(string), true, nil
	case <-ctx.Done():
		return "", false, unanswered(ctx, t, ctx.Err())
	}
}

// grantKey tells grants apart: another credential is another token.
func grantKey(t target, s gateway.Source, grant gateway.Call) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %q", s.ID, t.base, grant.Method, grant.Path, grant.Body)
	for _, name := range slices.Sorted(maps.Keys(grant.Header)) {
		fmt.Fprintf(sum, " %q %q", name, grant.Header[name])
	}
	return string(sum.Sum(nil))
}

// grant asks for a token.
// https://www.rfc-editor.org/rfc/rfc6749#section-5.1
func (c *Client) grant(ctx context.Context, t target, s gateway.Source, grant gateway.Call, key string) (string, error) {
	if value, ok := c.tokens.get(key, c.opts.Elapsed()); ok {
		return value, nil // of a flight that landed just before this one began
	}
	u, bad := t.resolve(grant.Path, s.APIAllowPrivate)
	if bad != nil {
		return "", bad
	}
	began := c.opts.Elapsed()
	a, err := c.send(ctx, t, s, u, grant, "")
	if err != nil {
		return "", asDenied(err)
	}
	var granted struct {
		AccessToken string          `json:"access_token"`
		TokenType   string          `json:"token_type"`
		ExpiresIn   json.RawMessage `json:"expires_in"` // seconds; some write a string
	}
	if json.Unmarshal(a.body, &granted) != nil || !isToken(granted.AccessToken) ||
		!strings.EqualFold(cmp.Or(granted.TokenType, "Bearer"), "Bearer") {
		return "", &Error{Kind: Refused, Status: http.StatusOK, gateway: t.gateway, text: "its answer is no bearer token"}
	}
	life := tokenLife
	var seconds int64
	if json.Unmarshal([]byte(strings.Trim(string(granted.ExpiresIn), `"`)), &seconds) == nil && seconds > 0 {
		life = time.Duration(min(seconds, int64((24*time.Hour).Seconds()))) * time.Second
	}
	// One that lives no longer than the margin serves the calls that wait for it.
	c.tokens.put(key, token{value: granted.AccessToken, until: began + max(life-tokenMargin, 0)}, began)
	return granted.AccessToken, nil
}

// asDenied makes a 400 a matter of credentials: that is how RFC 6749, section
// 5.2, has clients refused that it does not know.
func asDenied(err error) error {
	if e, ok := err.(*Error); ok && e.Status == http.StatusBadRequest { //nolint:errorlint // send returns it as it is
		e.Kind = Denied
	}
	return err
}

// isToken reports whether a header can carry s.
func isToken(s string) bool {
	return s != "" && len(s) <= maxToken && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
