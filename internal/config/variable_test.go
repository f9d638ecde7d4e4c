package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/config"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	c := parse(
		t, whole,
		"PAIDONCE_LISTEN", ":1",
		"PAIDONCE_LIMITS_IDLE_TIMEOUT", "3m",
		"PAIDONCE_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1/32",
		"PAIDONCE_ACCOUNTS_SHOP_CALLBACK_URL", "https://other.example/",
		"PAIDONCE_ACCOUNTS_SHOP_SOURCES_STRIPE_SECRETS", "whsec_a,whsec_b",
		"PAIDONCE_ACCOUNTS_SHOP_SOURCES_ADYEN_MERCHANT_ACCOUNTS", "[One, 'Two, too']",
		"PAIDONCE_ACCOUNTS_SHOP_SOURCES_ADYEN_PAUSED", "true",
		"PAIDONCE_LIMITS_HEADER_TIMEOUT", "",
	)
	require.Equal(t, ":1", c.Listen)
	require.Equal(t, 3*time.Minute, c.Limits.IdleTimeout)
	require.Equal(t, 5*time.Second, c.Limits.HeaderTimeout, "an empty variable is not set")
	require.Equal(t, []string{"10.0.0.0/8", "192.0.2.1/32"}, c.TrustedProxies)
	require.Equal(t, "https://other.example/", c.Accounts["shop"].Callback.URL)
	require.Equal(t, []string{"whsec_a", "whsec_b"}, c.Sources()["stripe"].Secrets)
	require.Equal(t, []string{"One", "Two, too"}, c.Sources()["adyen"].MerchantAccounts)
	require.True(t, c.Sources()["adyen"].Paused)
}

// Without a file, one variable can hold all accounts, and others parts of them.
func TestAccountsInAVariable(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("", nil, env(
		"PAIDONCE_ACCOUNTS", `{shop: {sources: {s: {gateway: stripe, mode: live, secrets: ["${STRIPE}"]}}}}`,
		"PAIDONCE_ACCOUNTS_SHOP_SOURCES_S_MODE", "test",
	))
	require.NoError(t, err)
	require.Equal(t, []string{stripeSecret}, c.Sources()["s"].Secrets)
	require.Equal(t, "test", c.Sources()["s"].Mode)
}

// What a variable holds is a value, not YAML or a template: a password may have
// any characters.
func TestVariablesAreTakenAsTheyStand(t *testing.T) {
	t.Parallel()
	c := parse(t, whole, "PAIDONCE_ACCOUNTS_SHOP_SOURCES_ADYEN_BASIC", "user:${STRIPE}: #[x]")
	require.Equal(t, "user:${STRIPE}: #[x]", c.Sources()["adyen"].Basic)
}

func TestVariableProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, variable, value, want string }{
		{"WrongType", "PAIDONCE_POOL_SERVE", "many", "PAIDONCE_POOL_SERVE: pool.serve: must be a whole number"},
		{"OutOfBounds", "PAIDONCE_POOL_SERVE", "1", "PAIDONCE_POOL_SERVE: pool.serve: must be between 4 and 1000, not 1"},
		{"NotYAML", "PAIDONCE_ACCOUNTS", "{", "PAIDONCE_ACCOUNTS: accounts: is not YAML"},
		{"UnknownKey", "PAIDONCE_ACCOUNTS", "{shop: {source: {}}}", `PAIDONCE_ACCOUNTS: accounts.shop: unknown key "source"; did you mean "sources"?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("paidonce.yaml", nil, env(tt.variable, tt.value))
			require.ErrorContains(t, err, tt.want)
		})
	}

	_, err := config.Parse("paidonce.yaml", []byte(`
accounts:
  a_b: {callback: {url: https://a.example/, secret: "${CALL}"}}
  a.b: {callback: {url: https://b.example/, secret: "${CALL}"}}
`), env("PAIDONCE_ACCOUNTS_A_B_CALLBACK_URL", "https://c.example/"))
	require.ErrorContains(t, err, "is the variable of accounts.a_b.callback.url too; set these two in the file")
}

// A variable that looks like a setting and is none would leave a default in force that nobody wanted.
func TestMisspeltVariables(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"PAIDONCE_LIMITS_MAX_BODYY":            "PAIDONCE_LIMITS_MAX_BODYY: sets nothing; did you mean PAIDONCE_LIMITS_MAX_BODY?",
		"PAIDONCE_ACCOUNTS_OTHER_CALLBACK_URL": "PAIDONCE_ACCOUNTS_OTHER_CALLBACK_URL: sets nothing; paidonce config reference lists those that do",
		"PAIDONCE_PORT_NUMBER":                 "PAIDONCE_PORT_NUMBER: sets nothing; paidonce config reference lists those that do",
	} {
		_, err := config.Parse("paidonce.yaml", []byte(whole), env(name, "1"), "HOME", name)
		require.EqualError(t, err, want)
		parse(t, whole, name, "1") // nobody said which variables there are
		_, err = config.Parse("paidonce.yaml", []byte(whole), env(name, ""), name)
		require.NoError(t, err, "empty is not set")
	}
	for _, name := range []string{
		"PAIDONCE_CONFIG", "PAIDONCE_PG_BIN", "PAIDONCE_TEST_DATABASE_URL", "PAIDONCE_OF_MINE",
		"PAIDONCE_SERVICE_HOST", "PAIDONCE_SERVICE_PORT", "PAIDONCE_SERVICE_PORT_HTTP", "PAIDONCE_PORT", "PAIDONCE_PORT_8080_TCP",
		"PAIDONCE_SERVE_PORT_8080_TCP_ADDR", "PAIDONCE_SERVE_SERVICE_HOST", "PAIDONCE_ACCOUNTS_SHOP_SOURCES_STRIPE_SECRETS", "PAIDONCE_LISTEN",
	} {
		text := strings.Replace(whole, "${DB}", "postgres://h/d?application_name=${PAIDONCE_OF_MINE}", 1)
		value := ":80"
		if strings.HasSuffix(name, "_SECRETS") {
			value = stripeSecret
		}
		_, err := config.Parse("paidonce.yaml", []byte(text), env("PAIDONCE_OF_MINE", "x", name, value), name)
		require.NoError(t, err, name)
	}
}

// Every line of the reference says what it does, and the variable that it names
// does set it.
func TestReference(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"database_url": "postgres://h/d", "direct_url": "postgres://h/d", "log.level": "warn", "log.format": "text",
		"listen": ":1", "admin_listen": ":2", "workers.admin_listen": ":3", "trusted_proxies": "192.0.2.0/24",
		"trusted_proxy_header": "X-Real-Ip", "pool.pgbouncer": "true", "limits.max_body": "2MiB", "limits.max_header": "4KiB",
		"limits.body_memory": "1GiB", "reconcile.stuck_after": "2h",
	}
	base := string(parse(t, "").YAML())
	seen := 0
	for _, s := range config.Reference() {
		require.NotEmpty(t, s.Help, s.Path)
		if strings.Contains(s.Path, "{") {
			continue
		}
		seen++
		require.Equal(t, config.Variable(s.Path), s.Variable)
		value := values[s.Path]
		switch {
		case value != "":
		case strings.HasSuffix(s.Default, "d"):
			value = "77d"
		case strings.HasSuffix(s.Default, "s") || strings.HasSuffix(s.Default, "m"):
			value = "7s"
		default:
			value = "77"
		}
		pairs := []string{s.Variable, value}
		if s.Path == "pool.pgbouncer" {
			pairs = append(pairs, "PAIDONCE_DATABASE_URL", "postgres://h/d", "PAIDONCE_DIRECT_URL", "postgres://h2/d")
		}
		require.NotEqual(t, base, string(parse(t, "", pairs...).YAML()), s.Path)
	}
	require.Greater(t, seen, 20)
}
