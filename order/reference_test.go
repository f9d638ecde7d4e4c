package order_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestIsReference(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1", "ord_1", "a b", "größe/7", strings.Repeat("x", order.MaxReference)} {
		require.True(t, order.IsReference(s), "%q", s)
	}
	for _, s := range []string{"", " ord", "ord ", "a\x00", "a\nb", "a\xff", "\ufffd", strings.Repeat("x", order.MaxReference+1)} {
		require.False(t, order.IsReference(s), "%q", s)
	}
}
