package config_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/config"
)

// No way of printing a configuration, or a part of it, shows a secret.
func TestNothingPrintsASecret(t *testing.T) {
	t.Parallel()
	c := parse(t, whole+`
  second:
    callback: {url: "https://shop.example/${PATHTOKEN}", secret: "${CALL}", old_secret: whsec_b2xkLWNhbGxiYWNrLXNlY3JldC1vZi0zMi1ieXRlcyE=}
`, "PATHTOKEN", "t0ken-in-a-path")
	secrets := []string{
		stripeSecret, callSecret, hmacKey, basicAuth, dbPassword, "whsec_old_one_5ecret",
		"whsec_b2xkLWNhbGxiYWNrLXNlY3JldC1vZi0zMi1ieXRlcyE=",
	}

	var printed strings.Builder
	for i, v := range []any{c, *c, c.Accounts, c.Accounts["shop"], c.Accounts["shop"].Callback, c.Accounts["shop"].Callback.Secret} {
		if i == 2 { // only the whole knows that a part of a URL came from the environment
			require.NotContains(t, printed.String(), "t0ken-in-a-path")
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&printed, verb+"\n", v)
		}
		data, err := json.Marshal(v)
		require.NoError(t, err)
		printed.Write(data)
		for _, h := range []slog.Handler{
			slog.NewTextHandler(&printed, nil), slog.NewJSONHandler(&printed, nil),
		} {
			slog.New(h).Info("configuration", "config", v)
		}
	}
	printed.Write(c.YAML())
	for _, secret := range secrets {
		if strings.Contains(printed.String(), secret) || strings.Contains(strings.ToLower(printed.String()), hex.EncodeToString([]byte(secret))) {
			t.Errorf("%s was printed", secret)
		}
	}
}

func TestMaskedConfiguration(t *testing.T) {
	t.Parallel()
	text := string(parse(t, whole).YAML())
	require.Contains(t, text, "database_url: postgres://paidonce:***@db.internal:5432/paidonce\n")
	require.Contains(t, text, "url: https://shop.example/paidonce\n")
	require.Contains(t, text, keySum, "a digest is no secret, and shows which key it is")
	require.Contains(t, text, "gateway: stripe\n")
	require.Equal(t, 1+5, strings.Count(text, "***")-1, "the password twice, as direct_url, and five secrets")

	var object map[string]any
	data, err := json.Marshal(parse(t, whole))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &object))
	require.Equal(t, ":8181", object["listen"])
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                       "",
		"postgres://host/db":                     "postgres://host/db",
		"postgres://u:p%40ss@host:5432/db?a=b":   "postgres://u:***@host:5432/db?a=b",
		"postgres://host/db?user=u&password=p55": "postgres://host/db?password=%2A%2A%2A&user=u",
		"host=h user=u password=p55":             "***",
		"postgres://u:p%zz@host/db":              "***",
	} {
		require.Equal(t, want, config.MaskURL(in))
	}
}

// FuzzParse: whatever stands in the file, reading it ends, and neither what is
// reported nor what is printed shows what came from the environment.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add(config.Example)
	f.Add(source(goodStripe))
	f.Add("a: &a [*a]")
	f.Add("accounts: &x {shop: {sources: *x}}")
	f.Add("accounts: {<<: {shop: }, ? [a]: b}")
	f.Add("limits: {max_body: ${STRIPE}, header_timeout: '${CALL}'}\nlog: {level: '${HMAC}'}")
	f.Add("accounts: {shop: {callback: {url: '${STRIPE}'}, api_keys: [{roles: ['${CALL}']}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "$${") {
			return // asks for the characters themselves
		}
		var printed bytes.Buffer
		c, err := config.Parse("c.yaml", []byte(text), env())
		if err != nil {
			fmt.Fprint(&printed, err)
		} else {
			fmt.Fprintf(&printed, "%+v", c)
		}
		for _, secret := range []string{stripeSecret, callSecret, hmacKey, basicAuth, dbPassword} {
			if strings.Contains(text, secret) {
				return
			}
			if bytes.Contains(printed.Bytes(), []byte(secret)) {
				t.Fatalf("prints a secret: %s", &printed)
			}
		}
	})
}
