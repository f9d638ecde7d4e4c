package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// Ids that were given once must come out the same for ever: a repetition is recognised by nothing else.
func TestEventID(t *testing.T) {
	t.Parallel()
	require.Equal(t, "cancel:0199a1b2", store.EventID("cancel", "0199a1b2"))
	require.Equal(t, "confirm:a:b", store.EventID("confirm", "a", "b"))
	require.Equal(t, "register:ord_1", store.RegisterID("ord_1"))
	require.Equal(t, "register-sha256:d6681c95a4205e177681bbb80bf2e05757065bab4f07a99e4e2712328afcb9e2", store.RegisterID("ord#1"))

	long := strings.Repeat("x", 250)
	ids := map[string][]string{}
	for _, parts := range [][]string{{"#"}, {"#", ""}, {"", "#"}, {"#:"}, {"#", ":"}, {long + "abcdef"}, {long, "abcdef"}, {long + "a", "bcdef"}} {
		id := store.EventID("k", parts...)
		require.NotContains(t, id, "#")
		require.LessOrEqual(t, len(id), len("k-sha256:")+64)
		require.NotContains(t, ids, id)
		ids[id] = parts
	}
}
