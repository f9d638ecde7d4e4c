package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/config"
)

// These stand for secrets in all tests: none of them may ever be printed.
const (
	stripeSecret = "whsec_stripe5ecret0123456789"
	callSecret   = "whsec_Y2FsbGJhY2stc2VjcmV0LW9mLTMyLWJ5dGVzLWxvbmc="
	hmacKey      = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	basicAuth    = "adyen-user:pa:ss:word"
	dbPassword   = "db-pa55word"
	keySum       = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{
		"STRIPE": stripeSecret, "CALL": callSecret, "HMAC": hmacKey, "BASIC": basicAuth,
		"DB": "postgres://paidonce:" + dbPassword + "@db.internal:5432/paidonce",
	}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func parse(t *testing.T, text string, pairs ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("paidonce.yaml", []byte(text), env(pairs...))
	require.NoError(t, err)
	return c
}

const whole = `
database_url: ${DB}
listen: :8181
limits: {max_body: 512KiB, idle_timeout: 90s}
retention: {payloads: 30d}
accounts:
  shop:
    api_keys: [{name: checkout, sha256: ` + keySum + `, roles: [read, write]}]
    callback: {url: https://shop.example/paidonce, secret: "${CALL}"}
    sources:
      stripe: {gateway: stripe, mode: live, secrets: ["${STRIPE}", whsec_old_one_5ecret]}
      adyen:
        gateway: adyen
        mode: test
        hmac_keys: ["${HMAC}"]
        basic: ${BASIC}
        max_body: 2MiB
`

func TestParse(t *testing.T) {
	t.Parallel()
	c := parse(t, whole)

	require.Equal(t, "postgres://paidonce:"+dbPassword+"@db.internal:5432/paidonce", c.DatabaseURL)
	require.Equal(t, c.DatabaseURL, c.DirectURL, "without one of its own")
	require.Equal(t, ":8181", c.Listen)
	require.EqualValues(t, 512<<10, c.Limits.MaxBody)
	require.Equal(t, 90*time.Second, c.Limits.IdleTimeout)
	require.Equal(t, 30*24*time.Hour, c.Retention.Payloads)
	require.Equal(t, 32, c.Pool.Work, "workers of both kinds and eight more")

	shop := c.Accounts["shop"]
	require.Equal(t, config.Secret(callSecret), shop.Callback.Secret)
	require.Equal(t, config.MaxCallbackTimeout, shop.Callback.Timeout)
	require.Equal(t, "UTC", shop.TimeZone)
	require.Equal(t, "Asia/Kolkata", parse(t, "accounts: {shop: {time_zone: Asia/Kolkata}}\n").Accounts["shop"].TimeZone)

	stripe := c.Sources()["stripe"]
	require.Equal(t, "stripe", stripe.ID)
	require.Equal(t, "shop", stripe.Account)
	require.Equal(t, []string{stripeSecret, "whsec_old_one_5ecret"}, stripe.Secrets)
	require.EqualValues(t, 512<<10, stripe.MaxBody, "that of all sources")
	require.EqualValues(t, 2<<20, c.Sources()["adyen"].MaxBody, "its own")
}

func TestNothingSetIsDefaults(t *testing.T) {
	t.Parallel()
	c := parse(t, "")
	want := config.Defaults()
	want.Pool.Work = 32
	require.Equal(t, want.YAML(), c.YAML())
}

// Values that YAML would read as numbers are texts here, digit by digit.
func TestTextsAreNotNumbers(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("0123456789", 7)[:64]
	c := parse(t, "accounts:\n  shop:\n    api_keys: [{name: 007, sha256: "+digits+", roles: [read]}]\n")
	require.Equal(t, digits, c.Accounts["shop"].APIKeys[0].SHA256)
	require.Equal(t, "007", c.Accounts["shop"].APIKeys[0].Name)
	digits = "12e4" + digits[4:]
	c = parse(t, "accounts:\n  shop:\n    api_keys: [{name: 1e3, sha256: "+digits+", roles: [read]}]\n")
	require.Equal(t, digits, c.Accounts["shop"].APIKeys[0].SHA256)
}

func TestAnchorsAndMerges(t *testing.T) {
	t.Parallel()
	c := parse(t, `
accounts:
  shop:
    sources:
      one: &stripe {gateway: stripe, mode: live, secrets: ["${STRIPE}"]}
      two: {<<: *stripe, mode: test}
      three: *stripe
`)
	require.Equal(t, "test", c.Sources()["two"].Mode)
	require.Equal(t, c.Sources()["one"].Secrets, c.Sources()["two"].Secrets)
	require.Equal(t, "three", c.Sources()["three"].ID)
	require.Equal(t, "live", c.Sources()["three"].Mode)
}

func TestValuesFromElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(stripeSecret+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), []byte("\n"), 0o600))
	load := func(secret string, pairs ...string) (*config.Config, error) {
		text := "accounts: {shop: {sources: {s: {gateway: stripe, mode: live, secrets: [" + secret + "]}}}}"
		return config.Parse(filepath.Join(dir, "c.yaml"), []byte(text), env(pairs...))
	}
	for _, tt := range []struct{ name, secret, want string }{
		{"Variable", `"${STRIPE}"`, stripeSecret},
		{"InTheMiddle", `"whsec_${PART}_end"`, "whsec_part_end"},
		{"FileBesideTheConfiguration", `"file:secret"`, stripeSecret},
		{"FileByItsPath", `"file:` + filepath.Join(dir, "secret") + `"`, stripeSecret},
		{"Escaped", `"whsec_$${STRIPE}"`, "whsec_${STRIPE}"},
		{"WhatWasPutInIsNotLookedAtAgain", `"whsec_${DOLLARS}"`, "whsec_${STRIPE}"},
		{"DollarAlone", `"whsec_$STRIPE"`, "whsec_$STRIPE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := load(tt.secret, "PART", "part", "DOLLARS", "${STRIPE}")
			require.NoError(t, err)
			require.Equal(t, []string{tt.want}, c.Sources()["s"].Secrets)
		})
	}
	for _, tt := range []struct{ name, secret, want string }{
		{"MissingVariable", `"${NOPE}"`, "needs the environment variable NOPE, which is not set or empty"},
		{"NotAName", `"${a-b}"`, "name of an environment variable"},
		{"MissingFile", `"file:nope"`, "cannot be read from its file: open " + filepath.Join(dir, "nope")},
		{"EmptyFile", `"file:empty"`, "which is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(tt.secret)
			require.ErrorContains(t, err, "accounts.shop.sources.s.secrets[0]: ")
			require.ErrorContains(t, err, tt.want)
			require.Len(t, config.Problems(err), 1, "no second sentence about the secret that is not there")
		})
	}
}

func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())

	c, err := config.Load("", env())
	require.NoError(t, err, "no file: the environment alone")
	require.Empty(t, c.File())

	_, err = config.Load("other.yaml", env())
	require.ErrorIs(t, err, os.ErrNotExist, "a file that is named must exist")

	require.NoError(t, os.WriteFile("paidonce.yaml", []byte("listen: :7777\n"), 0o600))
	c, err = config.Load("", env())
	require.NoError(t, err)
	require.Equal(t, ":7777", c.Listen)
	require.Equal(t, "paidonce.yaml", c.File())
}

func TestNeedDatabase(t *testing.T) {
	t.Parallel()
	require.NoError(t, parse(t, "database_url: ${DB}").NeedDatabase())
	require.EqualError(t, parse(t, "listen: :1").NeedDatabase(),
		"paidonce.yaml: database_url: is not set; write it there or in PAIDONCE_DATABASE_URL")
}
