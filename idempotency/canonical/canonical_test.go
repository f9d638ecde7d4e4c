package canonical_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

func sum(t require.TestingT, text string) string {
	d, err := canonical.JSON([]byte(text))
	require.NoError(t, err, text)
	s := d.Sum()
	require.Equal(t, hex.EncodeToString(s[:]), d.String())
	return d.String()
}

// class is a set of texts that are one value.
type class []string

// classes holds that all texts of a class have one sum, and texts of two classes have two.
func classes(t *testing.T, all ...class) {
	t.Helper()
	seen := map[string]string{}
	for _, c := range all {
		s := sum(t, c[0])
		require.Regexp(t, `^[0-9a-f]{64}$`, s)
		require.Empty(t, seen[s], "%s is not %s", c[0], seen[s])
		seen[s] = c[0]
		for _, text := range c[1:] {
			require.Equal(t, s, sum(t, text), "%s is %s", text, c[0])
		}
	}
}

func TestT20_SpaceAndOrderOfMembersSayNothing(t *testing.T) {
	t.Parallel()
	classes(t,
		class{
			`{"data":{"total":5000,"currency":"EUR","items":[{"name":"a","price":1},{"name":"b","price":2}]}}`,
			"\t{ \"data\" :\r\n{\"items\": [ {\"price\" : 1 , \"name\":\"a\"},{\"name\":\"b\",\"price\":2}],\"currency\":\"EUR\",\"total\":5000 } }\n",
		},
		class{`{"data":{"total":5000,"currency":"EUR","items":[{"name":"a","price":2},{"name":"b","price":1}]}}`},
		class{`{"total":5000,"data":{"currency":"EUR","items":[{"name":"a","price":1},{"name":"b","price":2}]}}`}, // another level
	)
}

func TestT21_OrderOfArraysCounts(t *testing.T) {
	t.Parallel()
	classes(t, class{`[1,2]`, `[ 1,2.0 ]`}, class{`[2,1]`}, class{`[1,2,2]`}, class{`[[1],2]`}, class{`[[1,2]]`}, class{`[12]`},
		class{`[{"a":1},{"b":2}]`}, class{`[{"b":2},{"a":1}]`}, class{`[{"a":1,"b":2}]`})
}

func TestT22_NumbersAreExactDecimals(t *testing.T) {
	t.Parallel()
	classes(t,
		class{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `1E+0`, `1e-0`, `1.000e000`, `0.001e3`, `100E-02`, `10e-` + strings.Repeat("0", 30) + "1", `0.01e+` + strings.Repeat("0", 30) + "2"},
		class{`"1"`}, class{`"1e0"`}, class{`[1]`}, class{`true`},
		class{`1.0000000000000001`, `10000000000000001e-16`},
		class{`-1`, `-10e-1`}, class{`10`, `1e1`, `1.0e+1`}, class{`0.1`, `1e-1`}, class{`11`}, class{`1.1`},
	)
}

func TestT23_NothingIsLostAboveTwoToThe53(t *testing.T) {
	t.Parallel()
	classes(t, class{`9007199254740993`, `9007199254740993.0`, `9007199254740.993e3`}, class{`9007199254740992`}, class{`9007199254740994`},
		class{`18446744073709551616`}, class{`18446744073709551617`}, class{`340282366920938463463374607431768211456`},
		class{`340282366920938463463374607431768211457`})
}

func TestT24_NothingIsRounded(t *testing.T) {
	t.Parallel()
	classes(t, class{`0.1`, `0.10`}, class{`0.1000000000000000055511151231257827`}, class{`0.3`}, class{`0.30000000000000004`})
}

func TestT25_ZerosAndHugeExponents(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 40)
	classes(t,
		class{`0`, `-0`, `0.0`, `0e5`, `-0.000e-99`, `0E+9999999999999999999999`},
		class{`1e400`, `10e399`, `0.1e401`}, class{`1e401`}, class{`1e-400`}, class{`-1e400`},
		class{`1e1000000000`, `10e999999999`, `0.001E+1000000003`}, class{`1e1000000001`}, class{`1e-1000000000`},
		class{`1e9223372036854775807`}, class{`1e9223372036854775808`, `10e9223372036854775807`}, class{`1e-9223372036854775808`}, class{`1e-9223372036854775809`},
		class{`1e18446744073709551616`}, // not 1e0
		class{`1e1000000000000000000`, `10e999999999999999999`, `0.1e1000000000000000001`, `1e+0001000000000000000000`},
		class{`1e999999999999999999`, `0.1e1000000000000000000`},
		class{`1e1` + strings.Repeat("0", 40), `10e` + nines}, class{`1e` + nines, `0.1e1` + strings.Repeat("0", 40)},
		class{`1e-1` + strings.Repeat("0", 40), `0.1e-` + nines}, class{`1e-` + nines, `10e-1` + strings.Repeat("0", 40)},
		class{`123e` + nines, `1230000e` + nines[1:] + "5", `1.23e1` + strings.Repeat("0", 39) + "1"},
	)

	begin := time.Now()
	sum(t, `1e1000000000`)
	require.Less(t, time.Since(begin), promised)
}

func TestT27_StringsAreTheirCharacters(t *testing.T) {
	t.Parallel()
	classes(t,
		class{`"é"`, `"\u00e9"`, `"\u00E9"`}, class{`"e\u0301"`, "\"e\u0301\""},
		class{`"/"`, `"\/"`, `"\u002f"`}, class{`"<"`, `"\u003c"`}, class{`"\\u003c"`, `"\u005cu003c"`},
		class{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`}, class{`"\ufffd"`, `"�"`},
		class{`"\u0000"`}, class{`""`}, class{`"\n"`, `"\u000a"`, `"\u000A"`}, class{`"\\n"`}, class{`"\b\f\r\t"`, `"\u0008\u000c\u000d\u0009"`},
		class{`"\""`, `"\u0022"`}, class{`"\\"`, `"\u005c"`}, class{`"\u007f"`, "\"\u007f\""}, class{`"a"`}, class{`"A"`}, class{`" a"`},
		class{`"\u2028"`, "\"\u2028\""},
		class{`{"\u00e9\n":1}`, `{"é\u000a":1}`},
	)
}

func TestT30_FiveKindsOfNothing(t *testing.T) {
	t.Parallel()
	classes(t, class{``}, class{`{}`, ` { } `}, class{`null`}, class{`[]`, "[\n]"}, class{`""`}, class{`false`}, class{`0`},
		class{`{"a":null}`}, class{`{"a":{}}`}, class{`{"a":[]}`}, class{`{"a":""}`}, class{`{"":null}`}, class{`[null]`}, class{`[[]]`}, class{`[{}]`}, class{`" "`})
	for _, contentType := range []string{"application/json", "text/plain", ""} {
		seen := map[string]bool{}
		for _, body := range []string{"", "{}", "null", "[]", `""`} {
			f, err := canonical.Body(contentType, []byte(body))
			require.NoError(t, err)
			require.False(t, seen[f.String()], "%s %s", contentType, body)
			seen[f.String()] = true
		}
	}
}

func TestT32_MembersHaveOneOrder(t *testing.T) {
	t.Parallel()
	d, err := canonical.JSON([]byte(`{"😀":1,"\ufb33":3,"z":4,"":5,"\"":6,"!":7,"\u0001":8,"a":9,"aa":10,"a\u0000":11,"B":12,"é":13,"\\":14,"]":15}`))
	require.NoError(t, err)
	require.Equal(t, `{"":5e0,"\u0001":8e0,"!":7e0,"\"":6e0,"B":12e0,"\\":14e0,"]":15e0,"a":9e0,"a\u0000":11e0,"aa":1e1,"z":4e0,"é":13e0,"`+
		"\ufb33"+`":3e0,"😀":1e0}`, string(d.Canonical()), "by the bytes of UTF-8: U+1F600 is behind U+FB33, where UTF-16 would have it before")
	require.Equal(t, sum(t, `{"a":1,"😀":2,"\ufb33":3}`), sum(t, `{"\ufb33":3,"\ud83d\ude00":2,"a":1}`))
}

// TestVectors holds the canonical form and the sums still. They were computed by another program, from the package comment. A change
// would make a key of yesterday refuse its own body.
func TestVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var vectors struct {
		JSON   []struct{ Text, Canonical, Sum string }
		Bodies []struct {
			ContentType string `json:"content_type"`
			Body, Sum   string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &vectors))
	require.NotEmpty(t, vectors.JSON)
	require.NotEmpty(t, vectors.Bodies)
	for _, v := range vectors.JSON {
		d, err := canonical.JSON([]byte(v.Text))
		require.NoError(t, err, v.Text)
		require.Equal(t, v.Canonical, string(d.Canonical()), v.Text)
		require.Equal(t, v.Sum, d.String(), v.Text)
	}
	for _, v := range vectors.Bodies {
		f, err := canonical.Body(v.ContentType, []byte(v.Body))
		require.NoError(t, err, v.Body)
		require.Equal(t, v.Sum, f.String(), "%s %q", v.ContentType, v.Body)
	}
}
