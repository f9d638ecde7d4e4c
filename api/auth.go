package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Key is an API key of an account. The key itself is nowhere kept.
type Key struct {
	Account string
	Name    string            // for logs, in place of the key
	SHA256  [sha256.Size]byte // of the key as it stands in the Authorization header

	// Its roles. None of them implies another.
	Read, Write, Operate bool
}

// KeysFunc returns the keys that are valid now. It is asked once per request, so a reload of the configuration takes
// effect with the next one. It must be safe for concurrent use; what it returns is not changed.
type KeysFunc func() []Key

// role is what an endpoint asks of a key.
type role string

const (
	roleRead    role = "read"    // look at everything of the account, save the bytes that gateways sent
	roleWrite   role = "write"   // what a shop does: orders and their amounts
	roleOperate role = "operate" // what a person decides: link, dismiss, replay, retry; and the bytes
)

func (k Key) has(r role) bool {
	switch r {
	case roleRead:
		return k.Read
	case roleWrite:
		return k.Write
	case roleOperate:
		return k.Operate
	}
	return false
}

// authenticate lets those on who have shown a key with the role. Whoever has not learns nothing else, and the body is not
// read.
func (a *API) authenticate(need role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := callOf(r.Context())
			key, ok := a.keyOf(r)
			if !ok {
				a.fail(w, r, problem(CodeUnauthorized, "Send a valid API key: Authorization: Bearer …"))
				return
			}
			c.key = key
			if !key.has(need) {
				a.fail(w, r, problem(CodeForbidden, "This API key lacks the role "+string(need)+"."))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// keyOf finds the key of "Authorization: Bearer …" (RFC 6750). Every key is compared, each in constant time, so that the
// time says nothing about which one fits, or how far.
func (a *API) keyOf(r *http.Request) (Key, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return Key{}, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Key{}, false
	}
	sum := sha256.Sum256([]byte(token))
	var found Key
	ok := 0
	for _, k := range a.keys() {
		if subtle.ConstantTimeCompare(sum[:], k.SHA256[:]) == 1 {
			found, ok = k, 1
		}
	}
	return found, ok == 1 && found.Account != ""
}
