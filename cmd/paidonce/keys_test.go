package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/config"
)

func TestKeysNew(t *testing.T) {
	t.Parallel()
	a := call(t, []string{"keys", "new", "--name", "shop: 1"})
	require.Equal(t, exitOK, a.code, a.stderr)
	key, rest, _ := strings.Cut(a.stdout, "\n")
	require.Regexp(t, `^pk_[A-Za-z0-9_-]{43}$`, key)
	require.NotContains(t, rest, key)

	// What it prints is what the configuration takes, and it is this key's.
	at := strings.Index(rest, "      - name")
	require.GreaterOrEqual(t, at, 0, "%s", rest)
	entry := rest[at:]
	c, err := config.Parse("x.yaml", []byte("accounts:\n  shop:\n    api_keys:\n"+entry), func(string) string { return "" })
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(key))
	require.Equal(t, []config.APIKey{{Name: "shop: 1", SHA256: hex.EncodeToString(sum[:]), Roles: []string{"read", "write"}}}, c.Accounts["shop"].APIKeys)

	again := call(t, []string{"keys", "new"})
	require.NotEqual(t, a.stdout, again.stdout)

	a = call(t, []string{"keys", "new", "--role", "operate", "--role", "read", "--json"})
	var k struct {
		Key, Name, SHA256 string
		Roles             []string
	}
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &k))
	sum = sha256.Sum256([]byte(k.Key))
	require.Equal(t, hex.EncodeToString(sum[:]), k.SHA256)
	require.Equal(t, []string{"read", "operate"}, k.Roles)

	require.Equal(t, exitUsage, call(t, []string{"keys", "new", "--role", "root"}).code)
	require.Equal(t, exitUsage, call(t, []string{"keys", "new", "--name", ""}).code)
	require.Equal(t, exitUsage, call(t, []string{"keys", "new", "--name", "a\nb"}).code)
}

func TestKeysShow(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	defer done()
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	keys, err := idempotency.NewStore(st.Pool(), idempotency.StoreOptions{})
	require.NoError(t, err)
	once, err := idempotency.New(keys, idempotency.Options{Scope: api.Scope})
	require.NoError(t, err)
	v1, err := api.New(st, func() []api.Key {
		return []api.Key{{Account: "shop", SHA256: sha256.Sum256([]byte(apiKey)), Write: true}}
	}, api.Options{Idempotency: once})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader(`{"data":{"amount":5000,"currency":"EUR"}}`))
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Idempotency-Key", "key one")
	w := httptest.NewRecorder()
	v1.ServeHTTP(w, r)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())

	show := func(args ...string) (string, string, int) {
		a := call(t, append([]string{"--config", s.config, "keys", "show"}, args...))
		return a.stdout, a.stderr, a.code
	}
	out, _, code := show("key one", "--account", "shop")
	require.Equal(t, exitOK, code)
	for _, want := range []string{`completed`, `POST /v1/orders`, `answer +201`, `made +order [0-9a-f-]{36}`, `gets the first answer`, `another request with this key is refused`} {
		require.Regexp(t, want, out)
	}
	out, _, code = show("key one", "--account", "shop", "--json")
	require.Equal(t, exitOK, code)
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, "replay", doc["next"])

	_, stderr, code := show("key two", "--account", "shop")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `account shop has used no Idempotency-Key "key two"`)
	_, _, code = show("key one", "--account", "nosuch")
	require.Equal(t, exitUsage, code)
	_, _, code = show("key one")
	require.Equal(t, exitUsage, code)
}
