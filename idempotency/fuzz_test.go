package idempotency_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// Whatever is sent as a key is refused, or is a key that can be stored, and that its quoted spelling names too.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"abc", `"abc"`, `"a\"b\\"`, "", `""`, "a b", " a ", `"a`, `a"`, "ñ", "a\x00", `"a";v=1`, "a,b", `"a,b"`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := idempotency.ParseKey([]string{header})
		if err != nil {
			require.Empty(t, key)
			return
		}
		require.True(t, len(key) >= 1 && len(key) <= 255)
		for i := range len(key) {
			require.True(t, key[i] >= ' ' && key[i] <= '~')
		}
		again, err := idempotency.ParseKey([]string{`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`})
		require.NoError(t, err)
		require.Equal(t, key, again)
	})
}

// What is taken to fit a JSONB column is taken by it: an answer must never be lost over a column that is there for queries.
func FuzzJSONB(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `""`, `null`, `1`, ``, ` {"a":[1,2.50,-3e2,1E-5]} `, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\uD83D"`, `"\\u0000"`, `"\"\u00e9"`,
		"\"\xff\"", `1e400`, `1e-400`, `1e999`, `-0.0e-0`, `{"a":1,"a":2}`, `"😀"`, `"\u001f\ufffe"`, strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"[" + strings.Repeat("9", 999) + "." + strings.Repeat("9", 999) + "]",
	} {
		f.Add(s)
	}
	pool := storetest.Open(f)
	f.Fuzz(func(t *testing.T, body string) {
		if !idempotency.FitsJSONB([]byte(body)) {
			return
		}
		var out string
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT $1::text::jsonb::text`, body).Scan(&out), "%q", body)
	})
}
