package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// What two bodies have in common is package canonical's to say; these show that it is asked.
func TestBodiesThatAreTheSameAndBodiesThatAreNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, c := range map[string]struct {
		one, other         string
		oneType, otherType string
		same               bool
	}{
		"T20_Order":         {one: `{"a":1,"b":[1,2]}`, other: ` { "b" : [1, 2], "a":1}`, same: true},
		"T21_Array":         {one: `[1,2]`, other: `[2,1]`},
		"T22_Decimal":       {one: `{"a":1}`, other: `{"a":10e-1}`, same: true},
		"T22_String":        {one: `{"a":1}`, other: `{"a":"1"}`},
		"T23_Above2to53":    {one: `{"a":9007199254740993}`, other: `{"a":9007199254740992}`},
		"T30_EmptyAndNull":  {one: ``, other: `null`},
		"T30_EmptyAndEmpty": {one: ``, other: ``, same: true},
		"T33_Charset":       {one: `{}`, other: `{}`, otherType: "application/json; charset=utf-8", same: true},
		"T33_Text":          {one: `{}`, other: `{}`, otherType: "text/plain"},
		"T34_Boundary": {
			one: "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--", oneType: "multipart/form-data; boundary=x",
			other: "--y\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--y--", otherType: "multipart/form-data; boundary=y", same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := b.strict(answering(200, "application/json", `{}`))
			one, other := post(name, c.one), post(name, c.other)
			one.contentType, other.contentType = c.oneType, c.otherType
			first := one.to(h)
			executed(t, first, 200)
			if c.same {
				replays(t, other.to(h), first)
			} else {
				refused(t, other.to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
			}
		})
	}
}

func TestT26_AmbiguousBodiesLeaveTheKeyFree(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	for _, body := range []string{
		`{"data":{"a":1,"\u0061":2}}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, "\ufeff{}", `{"a":1} {}`, `{"a":`, strings.Repeat("[", 10000), " ",
	} {
		w := post("k", body).to(h)
		refused(t, w, http.StatusBadRequest, "idempotency_body_invalid")
		require.Len(t, problemOf(t, w).Errors, 1)
	}
	w := post("k", `{"data":{"a":1,"\u0061":2}}`).to(h)
	require.Equal(t, "/data/a", problemOf(t, w).Errors[0].Pointer)
	require.Equal(t, "duplicate_name", problemOf(t, w).Errors[0].Code)
	require.Zero(t, b.keys())
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
}

func TestT35_CompressedBodiesAreComparedAsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	pack := func(name string) string {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		z.Name = name
		_, err := io.WriteString(z, `{"a":1}`)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return buf.String()
	}
	first := post("k", pack("one")).set("Content-Encoding", "gzip").to(h)
	executed(t, first, http.StatusCreated)
	replays(t, post("k", pack("one")).set("Content-Encoding", "GZIP").to(h), first)
	refused(t, post("k", pack("two")).set("Content-Encoding", "gzip").to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
	refused(t, post("k", `{"a":1}`).to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
}

func TestT36_OtherTargetsAreOtherRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, h := range map[string]http.Handler{"strict": b.strict(b.effect), "relaxed": b.relaxed(b.effect)} {
		first := post(name, `{}`).at("POST", "/v1/a/b?x=1").to(h)
		executed(t, first, http.StatusCreated)
		for _, other := range [][2]string{
			{"PUT", "/v1/a/b?x=1"},
			{"PATCH", "/v1/a/b?x=1"},
			{"POST", "/v1/a/b"},
			{"POST", "/v1/a/b?x=2"},
			{"POST", "/v1/a/b/?x=1"},
			{"POST", "/v1/a%2Fb?x=1"},
			{"POST", "/v1/A/b?x=1"},
		} {
			refused(t, post(name, `{}`).at(other[0], other[1]).to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
		}
		replays(t, post(name, `{}`).at("POST", "/v1/a/b?x=1").to(h), first)
	}
	require.Equal(t, 2, b.effects())
}

func TestT37_HeadersMayChange(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	first := post("k", `{}`).set("Authorization", "Bearer one").set("Traceparent", "00-1").to(h)
	replays(t, post("k", `{}`).set("Authorization", "Bearer two").set("Traceparent", "00-2").set("User-Agent", "x").set("Date", "now").to(h), first)
}

func TestT38_ScopesNeverMeet(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	first := post("k", `{}`).as("user/7").to(h)
	executed(t, first, http.StatusCreated)
	for _, other := range []string{"user/8", "company/7", "company/8"} { // user 7 and company 7 have one id
		executed(t, post("k", `{"other":true}`).as(other).to(h), http.StatusCreated)
	}
	replays(t, post("k", `{}`).as("user/7").to(h), first)
	require.Equal(t, 4, b.effects())
	_, err := b.store.Inspect(t.Context(), caller("user", 9), "k")
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

func TestScopeThatIsNotKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	refused(t, post("k", `{}`).as("nobody").to(h), http.StatusUnauthorized, "unauthenticated")
	refused(t, post("k", `{}`).as("user/zero").to(h), http.StatusInternalServerError, "internal")
	refused(t, post("k", `{}`).as("user/0").to(h), http.StatusInternalServerError, "internal") // the nil UUID: a bucket for all
	refused(t, post("k", `{}`).as("/7").to(h), http.StatusInternalServerError, "internal")
	require.Zero(t, b.keys())
}

func TestT39_TwoKeysOneBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(b.effect)
	one, two := post("k1", `{"a":1}`).to(h), post("k2", `{"a":1}`).to(h)
	executed(t, one, http.StatusCreated)
	executed(t, two, http.StatusCreated)
	require.NotEqual(t, one.Body.String(), two.Body.String())
	require.Equal(t, 2, b.effects())
}

func TestT40_LongestBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		b.runs.Add(1)
		w.Header().Set("Length", http.StatusText(len(body)%1000))
		_, _ = w.Write(body[:10])
	})
	whole := `"` + strings.Repeat("x", 102400-2) + `"`
	executed(t, post("k", whole).to(h), 200)

	for name, chunked := range map[string]bool{"with length": false, "chunked": true} {
		r := post("k2", whole+" ").request()
		if chunked {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		refused(t, w, http.StatusRequestEntityTooLarge, "idempotency_body_too_large")
		require.Equal(t, "close", w.Header().Get("Connection"), name)
	}
	lying := post("k3", whole).request()
	lying.ContentLength = 10
	w := httptest.NewRecorder()
	h.ServeHTTP(w, lying)
	executed(t, w, 200)
	require.EqualValues(t, 2, b.runs.Load())

	require.Equal(t, 200, call{body: whole + " "}.to(h).Code, "without a key there is no limit")
	require.Equal(t, 2, b.keys())

	capped := http.MaxBytesHandler(b.strict(b.effect), 100)
	refused(t, post("k4", whole).to(capped), http.StatusRequestEntityTooLarge, "idempotency_body_too_large")
}

func TestT41_BodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(`{"a":1}`), iotest.ErrReader(errors.New("reset"))))
	r.Header = post("k", "").as("user/7").request().Header
	w := httptest.NewRecorder()
	b.strict(b.effect).ServeHTTP(w, r)
	refused(t, w, http.StatusBadRequest, "idempotency_body_invalid")
	require.Zero(t, b.runs.Load())
	require.Zero(t, b.keys())
}

func TestT42_LongPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	long := "/" + strings.Repeat("p", 600)
	first := post("k", `{}`).at("POST", long+"1").to(h)
	executed(t, first, http.StatusCreated)
	replays(t, post("k", `{}`).at("POST", long+"1").to(h), first)
	refused(t, post("k", `{}`).at("POST", long+"2").to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", b.record("k").Path)
	executed(t, post("k500", `{}`).at("POST", "/"+strings.Repeat("p", 499)).to(h), http.StatusCreated)
	require.Len(t, b.record("k500").Path, 500)
}

func TestT49_TheRefusalSaysWhereAndNotWhat(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	executed(t, post("k", `{"data":{"amount":5000,"secret-name":"secret-value","items":[{"price":77}]}}`).to(h), http.StatusCreated)
	for body, at := range map[string][]string{
		`{"data":{"amount":4000,"secret-name":"secret-value","items":[{"price":77}]}}`:            {"/data/amount"},
		`{"data":{"amount":5000,"secret-name":"secret-value","items":[{"price":78}]}}`:            {"/data/items/0/price"},
		`{"data":{"amount":5000,"secret-name":"secret-value","items":[{"price":77}],"new":true}}`: {"/data/new"},
		`{"data":{"amount":5000,"items":[{"price":77}]}}`:                                         {"/data"}, // the name of what is gone is not told
		`{"other":1}`: {"", "/other"},
		``:            {""},
	} {
		w := post("k", body).to(h)
		refused(t, w, http.StatusUnprocessableEntity, "idempotency_key_reused")
		p := problemOf(t, w)
		require.Equal(t, at, p.DiffersAt, body)
		require.Len(t, p.Errors, len(at))
		for _, hidden := range []string{"secret", "5000", "77"} {
			require.NotContains(t, w.Body.String(), hidden)
		}
	}
	var digests []byte
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT request_digests FROM idempotency_keys`).Scan(&digests))
	require.NotContains(t, string(digests), "secret-value")

	text := post("t", `one`)
	text.contentType = "text/plain"
	executed(t, text.to(h), http.StatusCreated)
	text.body = `two`
	require.Equal(t, []string{""}, problemOf(t, text.to(h)).DiffersAt)
}
