package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// TestRegistry: names are unique and found.
func TestRegistry(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range gateway.All() {
		require.False(t, seen[g.Name])
		seen[g.Name] = true
		found, ok := gateway.Lookup(g.Name)
		require.True(t, ok)
		require.Same(t, g, found)
	}
	_, ok := gateway.Lookup("nobody")
	require.False(t, ok)

	gateway.All()[0] = nil
	require.NotNil(t, gateway.All()[0], "the caller's slice is the registry")
}

// TestAnswers pins what each gateway is answered: their queues depend on it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[accepted]", gateway.Adyen.AckBody)
	require.True(t, gateway.Adyen.QuarantineUnreadable)
	require.Equal(t, `{"received":true}`, gateway.Stripe.AckBody)
	require.False(t, gateway.Stripe.QuarantineUnreadable)
	require.Empty(t, gateway.Standard.AckBody)
	require.Equal(t, 10*time.Second, gateway.Adyen.Deadline)
	require.Equal(t, 10*time.Second, gateway.Stripe.Deadline)
	require.Equal(t, 15*time.Second, gateway.Standard.Deadline)
	require.Contains(t, fmt.Sprint(gateway.Adyen.Covers), "fields(pspReference, ")
	require.Contains(t, fmt.Sprint(gateway.Adyen.Covers), "with credentials of the sender also eventDate")
	require.Equal(t, "body", gateway.Stripe.Covers.String())
}

// TestSignWithoutSecret: a source that cannot sign says so.
func TestSignWithoutSecret(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		if g.Scheme == "" {
			continue
		}
		s := g.Example("main")
		s.ID, s.Secrets, s.HMACKeys, s.SigningKeys, s.WebhookID = "x", nil, nil, nil, ""
		_, _, err := g.Sign(s, []byte("{}"), now)
		require.Error(t, err, g.Name)
		require.NotErrorAs(t, err, new(*gateway.ParseError))
	}
}
