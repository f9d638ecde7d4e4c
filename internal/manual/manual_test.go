package manual_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/manual"
)

var update = flag.Bool("update", false, "write the documentation again")

func pages(t *testing.T) []manual.Page {
	t.Helper()
	var all []manual.Page
	for _, g := range gateway.All() {
		p, err := manual.Of(g)
		require.NoError(t, err)
		all = append(all, p)
	}
	return all
}

// docs/gateways.md is written by this test: go test ./internal/manual -update
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const file = "../../docs/gateways.md"
	intro, err := os.ReadFile("testdata/gateways.md")
	require.NoError(t, err)
	all := pages(t)
	want := strings.NewReplacer("{{index}}\n", manual.Index(all), "{{gateways}}\n", manual.Markdown(all)).Replace(string(intro))
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "write it again with -update")
}

// TestPagesSayEverything: what one needs to connect a gateway stands there.
func TestPagesSayEverything(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		require.NotEmpty(t, p.EventID, p.Name)
		require.NotEmpty(t, p.Retries, p.Name)
		require.NotEmpty(t, p.Options, p.Name)
		require.Equal(t, p.Scheme == "", p.Secret == "", p.Name)
		if p.Scheme != "" && p.Scheme != "adyen" && p.Covers != "fields" {
			require.NotEmpty(t, p.Spec, p.Name)
		}
		text := p.Text()
		for _, word := range []string{"Evidence:", "Event id:", "Answer:", p.Docs} {
			require.Contains(t, text, word, p.Name)
		}
		require.NotContains(t, text+manual.Markdown([]manual.Page{p}), "<nil>")
	}
}

// TestFactsAreThoseOfTheMapping: the table is read from the mapping.
func TestFactsAreThoseOfTheMapping(t *testing.T) {
	t.Parallel()
	p, err := manual.Of(gateway.Stripe)
	require.NoError(t, err)
	require.Equal(t, []string{"Stripe-Signature"}, p.Headers)
	facts := map[string][]string{}
	for _, typ := range p.Types {
		facts[typ.Name] = typ.Facts
	}
	require.Equal(t, []string{"captured total"}, facts["payment_intent.succeeded"])
	require.Equal(t, []string{"phase authorized", "authorized total"}, facts["payment_intent.amount_capturable_updated"])
	require.Equal(t, []string{"refunded, by id: failed"}, facts["refund.failed"])
	require.Equal(t, []string{"dispute open"}, facts["charge.dispute.created"])
}
