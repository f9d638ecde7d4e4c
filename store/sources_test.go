package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

func TestSourcesThatReceive(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	const month = 30 * 24 * time.Hour
	a, b, other := store.SourceKey{Account: "a", ID: "pay"}, store.SourceKey{Account: "a", ID: "old"}, store.SourceKey{Account: "b", ID: "pay"}
	besides := func(sources ...store.SourceKey) (keys []store.SourceKey) {
		t.Helper()
		found, err := s.ReceivedBesides(t.Context(), sources, month)
		require.NoError(t, err)
		for _, r := range found {
			require.False(t, r.At.IsZero())
			keys = append(keys, r.SourceKey)
		}
		return keys
	}
	require.NoError(t, s.NoteReceived(t.Context(), nil))
	require.Empty(t, besides())
	require.NoError(t, s.NoteReceived(t.Context(), []store.SourceKey{other, b, a, a}))
	require.Equal(t, []store.SourceKey{b, a, other}, besides())
	require.Equal(t, []store.SourceKey{other}, besides(a, b), "the source of that id of another account is another")

	age := func(by string) {
		t.Helper()
		exec(t, pool, `UPDATE sources SET last_received_at = now() - $1::interval WHERE id = 'old'`, by)
	}
	age("31 days")
	require.Equal(t, []store.SourceKey{other}, besides(a))
	require.NoError(t, s.NoteReceived(t.Context(), []store.SourceKey{b}))
	require.Equal(t, []store.SourceKey{b, other}, besides(a))
	age("10 minutes")
	require.NoError(t, s.NoteReceived(t.Context(), []store.SourceKey{b}))
	require.Equal(t, 1, count(t, pool, `sources WHERE id = 'old' AND last_received_at < now() - interval '5 minutes'`), "not written again so soon")
}
