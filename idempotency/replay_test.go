package idempotency_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestT1_ReplayOfASuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)

	first := post("k1", `{"a":1}`).to(h)
	executed(t, first, http.StatusCreated)
	before := b.record("k1")
	replays(t, post("k1", `{"a":1}`).to(h), first)

	require.EqualValues(t, 1, b.runs.Load())
	require.Equal(t, 1, b.effects())
	after := b.record("k1")
	require.Equal(t, before, after, "a replay changes nothing")
	require.Equal(t, "COMPLETED", after.State)
	require.Equal(t, http.StatusCreated, after.ResponseCode)
	require.Zero(t, after.LockAge)
	require.Equal(t, "effect", after.ResourceType)
	require.Equal(t, "/effects/"+after.ResourceID.String(), first.Header().Get("Location"))
	require.Equal(t, "replay", after.Next)
	require.Equal(t, "key_reused", after.NextOther)
	require.Equal(t, 1, count(t, b.pool, `SELECT count(*) FROM idempotency_keys WHERE locked_at IS NULL AND response_body->>'id' = resource_id::text`))
}

func TestReplayHeaderCanBeLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.NoReplayHeader = true
	h := b.with(p, b.effect)
	executed(t, post("k1", `{}`).to(h), http.StatusCreated)
	w := post("k1", `{}`).to(h)
	require.Empty(t, w.Header().Values("Idempotent-Replayed"))
	require.Equal(t, "replayed", w.Header().Get("Idempotency-Status"))
}
