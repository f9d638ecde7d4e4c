package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Key is an API key of an account. The key itself is nowhere kept.
type Key struct {
	Account     string
	SHA256      [sha256.Size]byte // of the key as it stands in the Authorization header
	Read, Write bool              // its roles
}

// KeysFunc returns the keys that are valid now. It is asked once per request, so a reload of the configuration takes
// effect with the next one. It must be safe for concurrent use; what it returns is not changed.
type KeysFunc func() []Key

// role is what an endpoint asks of a key.
type role string

const (
	roleRead  role = "read"
	roleWrite role = "write"
)

func (k Key) has(r role) bool {
	if r == roleWrite {
		return k.Write
	}
	return k.Read
}

// authenticate finds the key of "Authorization: Bearer …" (RFC 6750). Every key is compared, each in constant time, so
// that the time says nothing about which one fits, or how far. All failures are one problem.
func (a *API) authenticate(r *http.Request) (Key, error) {
	no := problem(http.StatusUnauthorized, "unauthorized", "Send a valid API key: Authorization: Bearer …")
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return Key{}, no
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Key{}, no
	}
	sum := sha256.Sum256([]byte(token))
	var found Key
	ok := 0
	for _, k := range a.keys() {
		if subtle.ConstantTimeCompare(sum[:], k.SHA256[:]) == 1 {
			found, ok = k, 1
		}
	}
	if ok == 0 || found.Account == "" {
		return Key{}, no
	}
	return found, nil
}
