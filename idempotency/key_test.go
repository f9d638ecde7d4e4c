package idempotency_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestT11_MissingKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	w := call{body: `{}`}.to(b.strict(b.effect))
	refused(t, w, http.StatusBadRequest, "idempotency_key_missing")
	require.Contains(t, w.Header().Get("Link"), `rel="describedby"`)
	require.Zero(t, b.runs.Load())

	w = call{body: `{}`}.to(b.relaxed(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	require.Equal(t, http.StatusCreated, w.Code)
	require.Empty(t, w.Header().Get("Idempotency-Status"))
	require.Zero(t, b.keys())
}

func TestT12toT18_KeySyntax(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, c := range map[string]struct {
		values []string
		same   string // another spelling of the key; "": refused
	}{
		"T12_Empty":           {values: []string{""}},
		"T12_Spaces":          {values: []string{" \t "}},
		"T12_EmptyString":     {values: []string{`""`}},
		"T12_StringOfSpaces":  {values: []string{`"  "`}},
		"T13_Longest":         {[]string{strings.Repeat("k", 255)}, strings.Repeat("k", 255)},
		"T13_TooLong":         {values: []string{strings.Repeat("k", 256)}},
		"T13_LongestString":   {[]string{`"` + strings.Repeat(`\"`, 255) + `"`}, `"` + strings.Repeat(`\"`, 255) + `"`},
		"T14_Quoted":          {[]string{`"abc"`}, `abc`},
		"T14_Escapes":         {[]string{`"a\"b\\c"`}, `"a\"b\\c"`},
		"T14_CommaInString":   {[]string{`"a, b"`}, `"a, b"`},
		"T14_Unclosed":        {values: []string{`"ab`}},
		"T14_UnclosedEscape":  {values: []string{`"ab\`}},
		"T14_WrongEscape":     {values: []string{`"a\x"`}},
		"T14_Behind":          {values: []string{`"a" x`}},
		"T14_Parameters":      {values: []string{`"abc";v=1`}},
		"T14_QuoteWithin":     {values: []string{`a"b`}},
		"T15_TwoLines":        {values: []string{"twice", "twice"}},
		"T15_List":            {values: []string{"a, b"}},
		"T16_Control":         {values: []string{"a\x01b"}},
		"T16_NUL":             {values: []string{"a\x00b"}},
		"T16_DEL":             {values: []string{"a\x7fb"}},
		"T16_NonASCII":        {values: []string{"añb"}},
		"T16_InvalidUTF8":     {values: []string{"a\xffb"}},
		"T16_ControlInString": {values: []string{"\"a\tb\""}},
		"T17_Space":           {[]string{" \tpadded\t "}, "padded"},
		"T18_SQL":             {[]string{`'); DROP TABLE idempotency_keys; --`}, `'); DROP TABLE idempotency_keys; --`},
		"A_Example":           {[]string{"550e8400-e29b-41d4-a716-446655440000"}, `"550e8400-e29b-41d4-a716-446655440000"`},
		"B_Example":           {[]string{"f1a2b3c4-5678-4abc-9def-000000000000"}, `"f1a2b3c4-5678-4abc-9def-000000000000"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := b.relaxed(answering(201, "application/json", `{}`))
			w := call{body: `{}`, header: http.Header{"Idempotency-Key": c.values}}.to(h)
			if c.same == "" {
				refused(t, w, http.StatusBadRequest, "idempotency_key_invalid")
				refused(t, call{header: http.Header{"Idempotency-Key": c.values}}.to(b.strict(b.effect)), http.StatusBadRequest, "idempotency_key_invalid")
				return
			}
			executed(t, w, http.StatusCreated)
			replays(t, post(c.same, `{}`).to(h), w)
		})
	}
	t.Cleanup(func() {
		require.Zero(t, b.runs.Load())
		require.Equal(t, 9, b.keys(), "what was refused left no row")
	})
}

func TestT17_CaseOfKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	executed(t, post("K", `{}`).to(h), http.StatusCreated)
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
	require.Equal(t, 2, b.effects())
}

func TestT19_MethodsThatIgnoreKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ok := func(w http.ResponseWriter, _ *http.Request) { b.runs.Add(1); w.WriteHeader(http.StatusOK) }
	for _, h := range []http.Handler{b.strict(ok), b.relaxed(ok)} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
			for range 2 {
				w := post("k", "").at(method, "/x").to(h)
				require.Equal(t, http.StatusOK, w.Code)
				require.Equal(t, "ignored", w.Header().Get("Idempotency-Status"))
			}
			w := call{}.at(method, "/x").to(h)
			require.Equal(t, http.StatusOK, w.Code, "and need none")
			require.Empty(t, w.Header().Get("Idempotency-Status"))
		}
	}
	require.EqualValues(t, 24, b.runs.Load())
	require.Zero(t, b.keys())
	for _, method := range []string{"POST", "PUT", "PATCH"} {
		h := b.strict(ok)
		first := post(method, "{}").at(method, "/x").to(h)
		executed(t, first, http.StatusOK)
		replays(t, post(method, "{}").at(method, "/x").to(h), first)
	}
}
