package idempotency_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestT94_RightsAreAskedAboutBeforeAReplay(t *testing.T) {
	t.Parallel()
	var seen idempotency.Record
	b := newBench(t, func(o *idempotency.Options) {
		o.Authorize = func(r *http.Request, rec idempotency.Record) error {
			seen = rec
			if r.Header.Get("Authorization") == "revoked" {
				return errors.New("not any more")
			}
			return nil
		}
	})
	h := b.strict(b.effect)
	first := post("k", `{}`).set("Authorization", "revoked").to(h)
	executed(t, first, http.StatusCreated) // a call that runs is the handler's to judge
	w := post("k", `{}`).set("Authorization", "revoked").to(h)
	refused(t, w, http.StatusForbidden, "idempotency_replay_forbidden")
	require.NotContains(t, w.Body.String(), strings.TrimSpace(first.Body.String()))
	require.Equal(t, "effect", seen.ResourceType)
	require.Equal(t, http.StatusCreated, seen.ResponseCode)
	replays(t, post("k", `{}`).set("Authorization", "refreshed").to(h), first)
	require.EqualValues(t, 1, b.runs.Load())
}

func TestT95_LogsAndMetricsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	reg := prometheus.NewRegistry()
	b := newBench(t, func(o *idempotency.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Registerer = reg
	})
	const key, body = "secret-key", `{"secret-name":"secret-value"}`
	h := b.strict(b.effect)
	b.crash(key, body)
	b.shift(31 * time.Second)
	executed(t, post(key, body).to(h), http.StatusCreated) // a takeover, which is logged
	w := post(key, `{}`).to(h)
	refused(t, w, http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.NotContains(t, w.Body.String(), "secret")
	b.exec(`ALTER TABLE idempotency_keys RENAME TO away`)
	w = post(key, body).to(h)
	require.NotContains(t, w.Body.String(), "secret")

	require.Contains(t, logs.String(), "taken over")
	require.Contains(t, logs.String(), "unavailable")
	require.Regexp(t, `key_digest=[0-9a-f]{16} `, logs.String())
	for _, hidden := range []string{"secret", alice.ID.String()} {
		require.NotContains(t, logs.String(), hidden)
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				require.Contains(t, []string{"decision", "policy"}, l.GetName())
				require.NotContains(t, l.GetValue(), "secret")
			}
		}
	}
	require.Equal(t, 1, decided(t, reg, "takeover"))
	require.Equal(t, 1, decided(t, reg, "mismatch"))
	require.Equal(t, 1, decided(t, reg, "unavailable"))
}

func TestT95_LabelsAreBounded(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b := newBench(t, func(o *idempotency.Options) { o.Registerer = reg })
	name := ""
	h := b.mw.ProtectFunc("by account", func(*http.Request) idempotency.Policy {
		p := idempotency.Relaxed()
		p.Name = name
		return p
	})(answering(200, "", ""))
	for n := range 100 {
		name = "p" + strings.Repeat("x", n%50) + string(rune('a'+n%26))
		name = name[:min(len(name), 50)]
		call{}.to(h)
	}
	require.LessOrEqual(t, testutil.CollectAndCount(reg, "paidonce_idempotency_decisions_total"), 33)
}

func ring(t *testing.T, current string, names ...string) *idempotency.Keyring {
	t.Helper()
	keys := map[string][]byte{}
	for _, n := range names {
		keys[n] = bytes.Repeat([]byte(n), 32)[:32]
	}
	k, err := idempotency.NewKeyring(current, keys)
	require.NoError(t, err)
	return k
}

func TestT96_SealedAnswers(t *testing.T) {
	t.Parallel()
	old := newBench(t, func(o *idempotency.Options) { o.Cipher = ring(t, "a", "a") })
	with := func(k *idempotency.Keyring) *bench {
		return benchOn(t, old.pool, func(o *idempotency.Options) { o.Cipher = k })
	}
	handler := answering(201, "application/json", `{"card":"secret-answer"}`, "Location", "/secret-place")
	const body = `{"card":"secret-request","n":1}`
	first := post("k", body).to(old.strict(handler))
	executed(t, first, http.StatusCreated)
	replays(t, post("k", body).to(old.strict(handler)), first)
	require.Zero(t, count(t, old.pool, `
		SELECT count(*) FROM idempotency_keys k
		WHERE NOT sealed OR response_body IS NOT NULL OR response_headers IS NOT NULL OR response_raw::text LIKE '%' || encode('secret', 'hex') || '%'`))
	require.Zero(t, count(t, old.pool, `SELECT count(*) FROM idempotency_keys k WHERE k::text LIKE '%secret%' OR k::text LIKE '%' || encode('/n', 'hex') || '%'`))

	rotated := with(ring(t, "b", "a", "b"))
	replays(t, post("k", body).to(rotated.strict(handler)), first)
	w := post("k", `{"card":"secret-request","n":2}`).to(rotated.strict(handler))
	require.Equal(t, []string{"/n"}, problemOf(t, w).DiffersAt)
	executed(t, post("k2", body).to(rotated.strict(handler)), http.StatusCreated)

	// Without its key an answer is as good as not kept; the work is not done again.
	for _, lost := range []*bench{with(ring(t, "b", "b")), benchOn(t, old.pool, nil)} {
		refused(t, post("k", body).to(lost.strict(lost.effect)), http.StatusConflict, "idempotency_result_unavailable")
		require.Zero(t, lost.runs.Load())
	}
	// An answer belongs to its row: moved to another it does not open.
	rotated.exec(`UPDATE idempotency_keys SET response_raw = (SELECT response_raw FROM idempotency_keys WHERE idempotency_key = 'k2') WHERE idempotency_key = 'k'`)
	refused(t, post("k", body).to(rotated.strict(handler)), http.StatusConflict, "idempotency_result_unavailable")
}

func TestKeyring(t *testing.T) {
	t.Parallel()
	k := ring(t, "a", "a", "b")
	sealed, err := k.Seal([]byte("text"), []byte("row 1"))
	require.NoError(t, err)
	again, err := k.Seal([]byte("text"), []byte("row 1"))
	require.NoError(t, err)
	require.NotEqual(t, sealed, again)
	plain, err := k.Open(sealed, []byte("row 1"))
	require.NoError(t, err)
	require.Equal(t, "text", string(plain))
	_, err = k.Open(sealed, []byte("row 2"))
	require.ErrorIs(t, err, idempotency.ErrSealed)
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, err = k.Open(changed, []byte("row 1"))
		require.ErrorIs(t, err, idempotency.ErrSealed, i)
		_, err = k.Open(sealed[:i], []byte("row 1"))
		require.ErrorIs(t, err, idempotency.ErrSealed, i)
	}
	for _, keys := range []map[string][]byte{{"a": make([]byte, 16)}, {"": make([]byte, 32)}, {"b": make([]byte, 32)}} {
		_, err := idempotency.NewKeyring("a", keys)
		require.Error(t, err)
	}
}

// failingCipher seals what comes before the handler, and nothing after it.
type failingCipher struct{ left int }

func (c *failingCipher) Seal(p, _ []byte) ([]byte, error) {
	if c.left--; c.left < 0 {
		return nil, errors.New("the key service is away")
	}
	return p, nil
}
func (*failingCipher) Open(c, _ []byte) ([]byte, error) { return c, nil }

func TestCipherThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *idempotency.Options) { o.Cipher = &failingCipher{left: 1} })
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
	require.False(t, b.record("k").Kept, "the work is done, and the answer lost")
	refused(t, post("k2", `{}`).to(b.strict(b.effect)), http.StatusServiceUnavailable, "idempotency_unavailable")
	require.EqualValues(t, 1, b.runs.Load())
}

func TestT96_Redact(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.Redact = func(_ string, body []byte) []byte { return bytes.ReplaceAll(body, []byte("4242"), []byte("****")) }
	h := b.with(p, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"card":"4242"}`)
	})
	require.Equal(t, `{"card":"4242"}`, post("k", `{}`).to(h).Body.String())
	require.Equal(t, `{"card":"****"}`, post("k", `{}`).to(h).Body.String())
	require.Zero(t, count(t, b.pool, `SELECT count(*) FROM idempotency_keys k WHERE k::text LIKE '%4242%'`))
}
