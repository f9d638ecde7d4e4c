package canonical_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

func seeds(f *testing.F, add func(text string)) {
	for _, text := range []string{
		``, ` `, `{}`, `[]`, `null`, `""`, `-0.0e-0`, `1e400`, `1e1000000000`, `10e-99999999999999999999`, `9007199254740993`, `{"a":1,"\u0061":2}`, `"\ud83d\ude00"`,
		`"\ud800"`, "\"\xff\"", "\ufeff{}", `{"a":1} {"b":2}`, `[[[[[[]]]]]]`, `{"b":{"z":1,"y":[1,{"d":4,"c":3}]},"a":"x","":0}`, `[0.1,"\b\f\n\r\t\"\\\/\u0000"]`,
		`{"data":{"total":5000,"currency":"EUR","items":[{"name":"Caf\u00e9","price":2500.0}],"metadata":{"external_ref":"ord_123"}}}`,
		strings.Repeat("[", 129), strings.Repeat(`{"a":`, 128) + "1", `{"😀":1,"\ufb33":2,"é":3,"e\u0301":4}`,
	} {
		add(text)
	}
	for _, h := range hostile {
		if h.contentType == "" {
			add(string(h.body[:min(len(h.body), 3000)]))
		}
	}
}

// FuzzJSON asks encoding/json: what we take it takes, and reads the same in the text and in its canonical form; what it takes and we do
// not, we refuse for a reason that it does not have.
func FuzzJSON(f *testing.F) {
	seeds(f, func(text string) { f.Add([]byte(text)) })
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := canonical.JSON(text)
		if err != nil {
			require.Nil(t, d)
			var e *canonical.SyntaxError
			require.ErrorAs(t, err, &e)
			require.True(t, e.Offset >= 0 && e.Offset <= len(text), e.Offset)
			require.LessOrEqual(t, len(e.Pointer), 256)
			require.True(t, e.Pointer == "" || e.Pointer[0] == '/')
			if json.Valid(text) {
				require.Contains(t, []canonical.Reason{canonical.DuplicateName, canonical.InvalidUTF8, canonical.LoneSurrogate, canonical.TooDeep}, e.Reason)
			}
			return
		}
		if len(text) == 0 {
			require.Empty(t, d.Canonical())
			return
		}
		require.True(t, json.Valid(text))
		again, err := canonical.JSON(d.Canonical())
		require.NoError(t, err)
		require.Equal(t, string(d.Canonical()), string(again.Canonical()), "it is its own canonical form")
		require.True(t, equal(read(t, text), read(t, d.Canonical())), "it is the same value")
		require.LessOrEqual(t, len(d.Digests(nil)), canonical.MaxDigests)
	})
}

// FuzzSpelling writes what the text says in another way, which changes nothing, and something else, which does.
func FuzzSpelling(f *testing.F) {
	seeds(f, func(text string) { f.Add([]byte(text), uint64(len(text))) })
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		d, err := canonical.JSON(text)
		if err != nil || len(text) == 0 {
			return
		}
		checkSpelling(t, rand.New(rand.NewPCG(seed, 0)), read(t, text), d)
	})
}

// checkSpelling holds what the package is for, of a value that was read from some text.
func checkSpelling(t require.TestingT, r *rand.Rand, v value, d *canonical.Document) {
	same, err := canonical.JSON(spell(r, v))
	require.NoError(t, err)
	require.Equal(t, string(d.Canonical()), string(same.Canonical()))
	require.Equal(t, d.Sum(), same.Sum())
	require.Empty(t, canonical.Differences(d.Digests(key), same.Digests(key)))

	changed, where := change(r, v)
	text := spell(r, changed)
	other, err := canonical.JSON(text)
	var e *canonical.SyntaxError
	if errors.As(err, &e) && e.Reason == canonical.TooDeep {
		return // an array that was put into itself
	}
	require.NoError(t, err, "%q", text)
	require.NotEqual(t, d.Sum(), other.Sum(), where)

	old, new := d.Digests(key), other.Digests(key)
	pointers := canonical.Differences(old, new)
	require.NotEmpty(t, pointers)
	told := false
	for _, p := range pointers {
		one, in := at(v, p)
		two, also := at(changed, p)
		require.False(t, in && also && equal(one, two), "%s does not differ", p)
		told = told || where == p || strings.HasPrefix(where, p+"/") || strings.HasPrefix(p, where+"/") || where == ""
	}
	require.True(t, told, "%s is told by one of %q", where, pointers)
}

// FuzzBody rewrites what Go's own reader of multipart makes of a body, with another boundary.
func FuzzBody(f *testing.F) {
	f.Add("application/json; charset=utf-8", []byte(order))
	f.Add("text/plain", []byte("a"))
	f.Add(`multipart/form-data; boundary="b"`, []byte(form("b", "|", "Content-Disposition: form-data; name=x", "", "1", "|--", "")))
	f.Add(`multipart/form-data; boundary=b`, []byte(form("b", "|", `Content-Disposition: form-data; name="x"; filename="é"`, "Content-Type: text/csv;charset=latin1", "X-A: b", "",
		"1\n--\n2", "|  ", "content-disposition:form-data;name=y", "", "", "|--")))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		first, err := canonical.Body(contentType, body)
		if err != nil {
			var e *canonical.SyntaxError
			require.ErrorAs(t, err, &e)
			require.True(t, e.Offset >= 0 && e.Offset <= len(body), e.Offset)
			return
		}
		again, err := canonical.Body(contentType+" ", body)
		require.NoError(t, err)
		require.Equal(t, first, again)
		if len(body) == 0 || !strings.HasPrefix(strings.ToLower(contentType), `multipart/form-data; boundary="b"`) || bytes.Contains(body, []byte("--other-")) {
			return
		}
		var out bytes.Buffer
		w := multipart.NewWriter(&out)
		require.NoError(t, w.SetBoundary("other-boundary"))
		parts := multipart.NewReader(bytes.NewReader(body), "b")
		for {
			p, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return // stricter than we are in what a header may be
			}
			content, err := io.ReadAll(p)
			require.NoError(t, err)
			part, err := w.CreatePart(p.Header)
			require.NoError(t, err)
			_, err = part.Write(content)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		other, err := canonical.Body(strings.Replace(contentType, `"b"`, `"other-boundary"`, 1), out.Bytes())
		require.NoError(t, err, "%q", out.String())
		require.Equal(t, first.String(), other.String(), "%q", out.String())
	})
}

// documents are values of every shape.
func documents(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		kinds := []string{"null", "true", "false", "number", "string", "array", "object"}
		if depth == 0 {
			kinds = kinds[:5]
		}
		v := value{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.kind {
		case "number":
			v.negative = rapid.Bool().Draw(t, "negative")
			v.digits, _ = new(big.Int).SetString(rapid.StringMatching(`0|[1-9][0-9]{0,25}|[1-9]0{1,30}|1|9{1,30}`).Draw(t, "digits"), 10)
			v.exponent, _ = new(big.Int).SetString(rapid.StringMatching(`0|-?[1-9]|-?[1-9][0-9]{1,25}|-?10{15,25}|-?9{15,25}`).Draw(t, "exponent"), 10)
			if v.digits.Sign() == 0 {
				v.negative = false
			}
		case "string":
			v.text = rapid.String().Draw(t, "text")
		case "array":
			v.values = rapid.SliceOfN(documents(depth-1), 0, 5).Draw(t, "elements")
		case "object":
			v.names = rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom([]string{"data", "a", "b", "", "/", "~", "\"", "é"}), rapid.String()), 0, 5,
				rapid.ID[string]).Draw(t, "names")
			for range v.names {
				v.values = append(v.values, documents(depth-1).Draw(t, "value"))
			}
		}
		return v
	})
}

func TestEqualValuesHaveEqualSumsAndOthersHaveNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := documents(4).Draw(t, "value")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d, err := canonical.JSON(spell(r, v))
		require.NoError(t, err)
		require.True(t, equal(v, read(t, d.Canonical())))
		checkSpelling(t, r, v, d)

		other := documents(2).Draw(t, "other")
		o, err := canonical.JSON(spell(r, other))
		require.NoError(t, err)
		require.Equal(t, equal(v, other), d.Sum() == o.Sum())
	})
}

func TestNumbersAreEqualAsRationalsAre(t *testing.T) {
	t.Parallel()
	numbers := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers.Draw(t, "a"), numbers.Draw(t, "b")
		x, ok := new(big.Rat).SetString(a)
		y, also := new(big.Rat).SetString(b)
		require.True(t, ok && also)
		require.Equal(t, x.Cmp(y) == 0, sum(t, a) == sum(t, b))
		z, ok := new(big.Rat).SetString(canonicalForm(t, a))
		require.True(t, ok)
		require.Zero(t, x.Cmp(z))
	})
}

func canonicalForm(t require.TestingT, text string) string {
	d, err := canonical.JSON([]byte(text))
	require.NoError(t, err)
	return string(d.Canonical())
}

// FuzzTime holds that no body takes longer than the promise allows for its length. It repeats what it sees to 100 KB, which finds what
// is quadratic in short inputs.
func FuzzTime(f *testing.F) {
	seeds(f, func(text string) { f.Add([]byte(text), []byte(text), []byte(text)) })
	f.Add([]byte(`[`), []byte(`{"b":1,"a":2},`), []byte(`0]`))
	f.Add([]byte(`"`), []byte(`\u0001`), []byte(`"`))
	f.Add([]byte(`{`), []byte(`"`), []byte(`:1}`))
	f.Fuzz(func(t *testing.T, head, middle, tail []byte) {
		if len(middle) == 0 || len(head)+len(tail) > 20_000 {
			return
		}
		body := bytes.Join([][]byte{head, bytes.Repeat(middle, 80_000/len(middle)), tail}, nil)
		best := time.Hour
		for range 20 {
			begin := time.Now()
			if d, err := canonical.JSON(body); err == nil {
				d.Digests(nil)
			}
			if best = min(best, time.Since(begin)); best < allowed {
				return
			}
		}
		require.Less(t, best, allowed)
	})
}
