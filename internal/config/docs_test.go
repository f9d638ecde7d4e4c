package config_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/config"
)

var update = flag.Bool("update", false, "write the documentation again")

func TestExampleLoads(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("paidonce.yaml", []byte(strings.ReplaceAll(config.Example, "file:/run/secrets/warehouse-webhook", "${CALL}")), env(
		"DATABASE_URL", "postgres://h/d", "CHECKOUT_KEY_SHA256", keySum, "CALLBACK_SECRET", callSecret,
		"STRIPE_WEBHOOK_SECRET", stripeSecret, "ADYEN_HMAC_KEY", hmacKey, "ADYEN_BASIC", basicAuth,
	))
	require.NoError(t, err)
	require.Len(t, c.Sources(), 3)
}

// docs/configuration.md is written by this test: go test ./internal/config -update
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const file = "../../docs/configuration.md"
	intro, err := os.ReadFile("testdata/configuration.md")
	require.NoError(t, err)

	var table strings.Builder
	for _, s := range config.Reference() {
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", s.Path, value, strings.ReplaceAll(s.Help, "|", "\\|"))
	}
	want := strings.NewReplacer("{{example}}", config.Example, "{{settings}}\n", table.String()).Replace(string(intro))
	if *update {
		require.NoError(t, os.MkdirAll("../../docs", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "write it again with -update")
}
