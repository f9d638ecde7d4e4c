package idempotency_test

import (
	"io"
	"net/http"
	"strings"
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
	require.Equal(t, 1, count(t, b.pool, `
		SELECT count(*) FROM idempotency_keys
		WHERE locked_at IS NULL AND response_body->>'id' = resource_id::text AND request_hash ~ '^[0-9a-f]{64}$'`))
}

func TestT2_OnlyReplaysAreMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.NoReplayHeader = true
	h := b.with(p, b.effect)
	executed(t, post("k1", `{}`).to(h), http.StatusCreated) // asserts that there is no Idempotent-Replayed
	w := post("k1", `{}`).to(h)
	require.Empty(t, w.Header().Values("Idempotent-Replayed"), "a policy can leave it out")
	require.Equal(t, "replayed", w.Header().Get("Idempotency-Status"))
	require.Equal(t, []string{"true"}, post("k1", `{}`).to(b.strict(b.effect)).Header().Values("Idempotent-Replayed"))
}

// Whatever the handler says of caching: what stands between must not answer in our place.
func TestT92_ReplaysAreNotCached(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, policy := range map[string]idempotency.Policy{"strict": idempotency.Strict(), "relaxed": idempotency.Relaxed()} {
		h := b.with(policy, answering(200, "text/plain", "it", "Cache-Control", "public, max-age=3600"))
		executed(t, post(name, `{}`).to(h), http.StatusOK)
		require.Equal(t, []string{"no-store"}, post(name, `{}`).to(h).Header().Values("Cache-Control"))
	}
}

// answering is a handler that answers with what it is given.
func answering(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		if body != "" {
			_, _ = io.WriteString(w, body)
		}
	}
}

func TestBodiesAreReplayedToTheByte(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, c := range map[string]struct {
		status            int
		contentType, body string
		jsonb             string // what the column holds; "" is NULL
	}{
		"T3_NoContent":             {status: 204},
		"T3_EmptyJSON":             {status: 200, contentType: "application/json"},
		"T4_SpellingOfJSON":        {201, "application/json", "{\"b\":1,\"a\":1.0, \"dup\":1,\"dup\":2}\n", `{"a": 1.0, "b": 1, "dup": 2}`},
		"T5_CSV":                   {200, "text/csv; charset=utf-8", "a,b\r\n1,2\r\n", ""},
		"T5_Binary":                {200, "application/octet-stream", "\x00\xff\xfe\x80", ""},
		"T5_JSONThatIsNot":         {200, "application/json", "{\"a\":\x00\xff", ""},
		"T6_NUL":                   {200, "application/json", `{"a":"\u0000"}`, ""},
		"T6_LoneSurrogate":         {200, "application/json", `{"a":"\uD800"}`, ""},
		"T6_EscapedBackslash":      {200, "application/json", `{"a":"\\u0000"}`, `{"a": "\\u0000"}`},
		"T6_ByteOrderMark":         {200, "application/json", "\ufeff{}", ""},
		"T6_HugeNumber":            {200, "application/json", `{"a":1e999999}`, ""},
		"T6_SmallExponent":         {200, "application/json", `[1e2,-0.5E-3]`, `[100, -0.0005]`},
		"T6_LongNumber":            {200, "application/json", "[" + strings.Repeat("9", 2000) + "]", ""},
		"T6_Deep":                  {200, "application/json", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), ""},
		"T6_Scalar":                {200, "application/hal+json", `"text"`, `"text"`},
		"T8_WithoutAType":          {200, "", "<html>", ""},
		"T10_StrictKeepsARedirect": {303, "text/plain", "elsewhere", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := b.strict(answering(c.status, c.contentType, c.body))
			first := post(name, `{}`).to(h)
			executed(t, first, c.status)
			require.Equal(t, c.body, first.Body.String())
			replays(t, post(name, `{}`).to(h), first)
			var jsonb *string
			var raw []byte
			require.NoError(t, b.pool.QueryRow(t.Context(), `
				SELECT response_body::text, response_raw FROM idempotency_keys WHERE idempotency_key = $1`, name).Scan(&jsonb, &raw))
			require.Equal(t, c.body, string(raw))
			require.NotNil(t, raw, "an empty answer is an answer")
			if c.jsonb == "" {
				require.Nil(t, jsonb)
			} else {
				require.Equal(t, c.jsonb, *jsonb)
			}
		})
	}
}

func TestT7_HeadersThatAreReplayed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(answering(201, "application/json; charset=utf-8", `{}`,
		"Location", "/x/1", "ETag", `"v1"`, "Content-Language", "es", "Content-Encoding", "identity",
		"Link", `</a>; rel="next", </b>; rel="prev"`, "Link", `</c>; rel="up"`,
		"Content-Disposition", "attachment; filename=\"a,\xf1.pdf\"",
		"Set-Cookie", "s=1", "Date", "Tue, 01 Dec 2026 00:00:00 GMT", "Connection", "close", "WWW-Authenticate", "Basic",
		"X-Request-Id", "r1", "RateLimit-Remaining", "7", "Access-Control-Allow-Origin", "*"))
	outer := func(w http.ResponseWriter, r *http.Request) { // a middleware outside, that speaks of this call
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		h.ServeHTTP(w, r)
	}
	first := post("k", `{}`).set("X-Request-Id", "first").to(http.HandlerFunc(outer))
	require.Equal(t, []string{"s=1"}, first.Header().Values("Set-Cookie"), "the first caller gets everything")
	w := post("k", `{}`).set("X-Request-Id", "second").to(http.HandlerFunc(outer))
	replays(t, w, first)
	for _, kept := range []string{"Location", "ETag", "Content-Language", "Content-Encoding", "Link", "Content-Disposition"} {
		require.Equal(t, first.Header().Values(kept), w.Header().Values(kept), kept)
	}
	for _, gone := range []string{"Set-Cookie", "Date", "Connection", "WWW-Authenticate", "RateLimit-Remaining", "Access-Control-Allow-Origin"} {
		require.Empty(t, w.Header().Values(gone), gone)
	}
	require.Equal(t, []string{"second"}, w.Header().Values("X-Request-Id"))
	stored := ""
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT response_headers::text FROM idempotency_keys`).Scan(&stored))
	require.NotContains(t, stored, "Cookie")
}

func TestT8_StatusThatWasNotWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for key, handler := range map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"early hints": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
		"twice": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.WriteHeader(http.StatusTeapot)
		},
	} {
		first := post(key, `{}`).to(b.strict(handler))
		executed(t, first, http.StatusOK)
		require.Empty(t, first.Header().Values("Content-Type"))
		replays(t, post(key, `{}`).to(b.strict(handler)), first)
	}
}

func TestT9_TenAnswersAndOneEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(b.effect)
	first := post("k", `{"a":1}`).to(h)
	for range 9 {
		replays(t, post("k", `{"a":1}`).to(h), first)
	}
	require.Equal(t, 1, b.effects())
}

func TestT10_RelaxedForgetsARedirect(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(b.status(http.StatusSeeOther))
	executed(t, post("k", `{}`).to(h), http.StatusSeeOther)
	executed(t, post("k", `{}`).to(h), http.StatusSeeOther)
	require.EqualValues(t, 2, b.runs.Load())
	require.Zero(t, b.effects(), "what is not kept is undone")
}
