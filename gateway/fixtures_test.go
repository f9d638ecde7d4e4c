package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// TestFixtures reads samples that gateways and their libraries published, if
// PAIDONCE_FIXTURES names a folder of them: {gateway}/*.json, for adyen also
// single items ({name}.item.json). They are theirs, so they are not in this
// repository. A template ("{{type}}") is passed over.
func TestFixtures(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PAIDONCE_FIXTURES")
	if dir == "" {
		t.Skip("PAIDONCE_FIXTURES names no folder of published samples")
	}
	for _, g := range gateway.All() {
		files, err := filepath.Glob(filepath.Join(dir, g.Name, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			name := filepath.Base(file)
			t.Run(g.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				require.NoError(t, err)
				if strings.Contains(string(body), "{{") {
					t.Skip("a template")
				}
				if strings.HasSuffix(name, ".item.json") {
					body = []byte(`{"live":"false","notificationItems":[{"NotificationRequestItem":` + string(body) + `}]}`)
				}
				source := sourceFor(t, g)
				source.MerchantAccounts = nil
				source.Basic = ""
				header, signed, err := g.Sign(source, body, now)
				if err != nil {
					t.Skipf("not a payload that is signed this way: %v", err)
				}
				evs, err := g.Events(source, gateway.Delivery{Header: header, Body: signed})
				require.NoError(t, err)
				for _, ev := range evs {
					require.NoError(t, ev.Validate())
					t.Log(ev.Type, ev.Payment, ev.Reference, ev.Facts, ev.Ignored, ev.Broken)
					require.Empty(t, ev.Ignored)
					// The oldest sample has a dispute without an id, from before they had one.
					if name != "charge.dispute.closed.json" {
						require.Empty(t, ev.Broken)
					}
					for _, f := range ev.Facts {
						if !strings.Contains(string(signed), `"livemode": true`) {
							require.Empty(t, f.Misfit)
						}
					}
				}
			})
		}
	}
}
