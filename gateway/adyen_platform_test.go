package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

var _ = conforms("adyen-platform", conformance{
	noFacts:     "payments are told by standard notifications alone; a transfer is one split of one",
	unknownType: map[string]string{"type": "balancePlatform.brandNew.created"},
	typ:         "balancePlatform.transfer.updated",
	noMode:      true,
})

// TestAdyenPlatformMovesNothing: whatever a signed webhook says, no order moves.
func TestAdyenPlatformMovesNothing(t *testing.T) {
	t.Parallel()
	s := gateway.AdyenPlatform.Example("main")
	for _, body := range []string{
		`{"type":"balancePlatform.transfer.updated","environment":"live","data":{"id":"1","status":"captured","category":"platformPayment","amount":{"value":5000,"currency":"EUR"},"categoryData":{"paymentMerchantReference":"ord_1001","pspPaymentReference":"PSP1","platformPaymentType":"Default","type":"platformPayment"}}}`,
		`{"type":"balancePlatform.transfer.updated"}`,
		`{"type":"merchant.created","data":null}`,
	} {
		ev := event(t, s, []byte(body))
		require.Equal(t, gateway.NoFact, ev.Ignored)
		require.Empty(t, ev.Facts)
		require.Empty(t, ev.Payment)
		require.Empty(t, ev.Reference)
	}
	require.NotEmpty(t, event(t, s, []byte(`{"data":{}}`)).Broken, "a webhook without a type")
	require.True(t, gateway.AdyenPlatform.QuarantineUnreadable)
}
