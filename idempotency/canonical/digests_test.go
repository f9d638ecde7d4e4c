package canonical_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

var key = []byte("a key")

func digests(t require.TestingT, text string) map[string][]byte {
	d, err := canonical.JSON([]byte(text))
	require.NoError(t, err, text)
	return d.Digests(key)
}

func TestDifferencesAreTheInnermostThatAreKnown(t *testing.T) {
	t.Parallel()
	const was = `{"data":{"amount":5000,"currency":"EUR","items":[{"name":"a","price":1},{"name":"b","price":2}],"metadata":{"external_ref":"ord_1","n":{"m":3}}},"dry_run":false,"x/~":[1]}`
	for _, tt := range []struct {
		name, is string
		want     []string
	}{
		{"nothing", strings.ReplaceAll(was, ":", " : "), nil},
		{"spelling", strings.Replace(was, "5000", "5.0e3", 1), nil},
		{"a number below data", strings.Replace(was, "5000", "5001", 1), []string{"/data/amount"}},
		{"its type", strings.Replace(was, "5000", `"5000"`, 1), []string{"/data/amount"}},
		{"a string below data", strings.Replace(was, "EUR", "USD", 1), []string{"/data/currency"}},
		{"two", strings.Replace(strings.Replace(was, "5000", "5001", 1), "EUR", "USD", 1), []string{"/data/amount", "/data/currency"}},
		{"a number deep inside", strings.Replace(was, `"price":2`, `"price":3`, 1), []string{"/data/items/1/price"}},
		{"a string deep inside", strings.Replace(was, `"b"`, `"c"`, 1), []string{"/data/items"}},
		{"another level", strings.Replace(was, `"m":3`, `"m":4`, 1), []string{"/data/metadata/n/m"}},
		{"at the top", strings.Replace(was, "false", "true", 1), []string{"/dry_run"}},
		{"an escaped name", strings.Replace(was, `[1]`, `[2]`, 1), []string{"/x~1~0/0"}},
		{"one more", strings.Replace(was, `"amount"`, `"tip":1,"amount"`, 1), []string{"/data/tip"}},
		{"one less", strings.Replace(was, `"currency":"EUR",`, ``, 1), []string{"/data/currency"}},
		{"an element less", strings.Replace(was, `,{"name":"b","price":2}`, ``, 1), []string{"/data/items/1/price"}},
		{"another name", strings.Replace(was, `"currency"`, `"Currency"`, 1), []string{"/data/Currency", "/data/currency"}},
		{"data is gone", `{"dry_run":false,"x/~":[1]}`, []string{"/data/amount", "/data/currency", "/data/items/0/price", "/data/items/1/price", "/data/metadata/n/m"}},
		{"everything", `5`, []string{"/data/amount", "/data/currency", "/data/items/0/price", "/data/items/1/price", "/data/metadata/n/m", "/dry_run", "/x~1~0/0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, canonical.Differences(digests(t, was), digests(t, tt.is)))
			require.Equal(t, tt.want, canonical.Differences(digests(t, tt.is), digests(t, was)), "the other way round")
		})
	}
	require.Equal(t, []string{""}, canonical.Differences(digests(t, `5`), digests(t, `6`)))
	require.Equal(t, []string{""}, canonical.Differences(digests(t, ``), digests(t, `{}`)))
	require.Equal(t, []string{"/1"}, canonical.Differences(digests(t, `["a","b"]`), digests(t, `["a","c"]`)))
	require.Equal(t, []string{"/0/data/0"}, canonical.Differences(digests(t, `[{"data":["a",1]}]`), digests(t, `[{"data":[2,1]}]`)), "it is not the data of the top")
}

func TestWhatHasADigest(t *testing.T) {
	t.Parallel()
	keys := func(d map[string][]byte) (keys []string) {
		for p, v := range d {
			require.Len(t, v, canonical.DigestSize)
			keys = append(keys, p)
		}
		return keys
	}
	require.ElementsMatch(t, []string{"", "/data", "/data/a", "/data/a/0", "/data/b", "/d", "/d/data/a"},
		keys(digests(t, `{"\u0064ata":{"a":[1,"x",{"y":"z"}],"b":{"c":"d"}},"d":{"data":{"a":2,"b":"x"}}}`)))
	require.ElementsMatch(t, []string{""}, keys(digests(t, ``)))
	require.ElementsMatch(t, []string{""}, keys(digests(t, `7`)))
	require.ElementsMatch(t, []string{"", "/data"}, keys(digests(t, `{"data":{"a\u0000":{"b":1},"`+strings.Repeat("x", 255)+`":2}}`)), "no pointer")
}

func TestDigestsTellNothingWithoutTheKey(t *testing.T) {
	t.Parallel()
	d, err := canonical.JSON([]byte(`{"a":5000,"b":5000,"c":{"d":5000}}`))
	require.NoError(t, err)
	mine, others := d.Digests(key), d.Digests([]byte("another key"))
	seen := map[string]bool{}
	for _, digests := range []map[string][]byte{mine, others, d.Digests(nil)} {
		for _, v := range digests {
			require.False(t, seen[string(v)], "equal values at two pointers, or under two keys, look different")
			seen[string(v)] = true
		}
	}
	require.Equal(t, mine, d.Digests(key))
}

func TestDigestsAreBounded(t *testing.T) {
	t.Parallel()
	const many = 1000
	doc := func(at int, format string) string {
		return "{" + strings.TrimSuffix(list(1, func(int) string {
			var b strings.Builder
			for i := range many {
				v := i
				if i == at {
					v = many
				}
				fmt.Fprintf(&b, format, i, v)
			}
			return b.String()
		}), ",") + "}"
	}
	for _, tt := range []struct {
		name, format   string
		before, behind string
	}{
		{"at the top", `"n%04d":%d,`, "/n0007", ""},
		{"in containers at the top", `"n%04d":{"x":%d},`, "/n0007", ""},
	} {
		was := digests(t, doc(-1, tt.format))
		require.Len(t, was, canonical.MaxDigests, tt.name)
		require.Nil(t, canonical.Differences(was, digests(t, doc(-1, tt.format))))
		require.Equal(t, []string{tt.before}, canonical.Differences(was, digests(t, doc(7, tt.format))), tt.name)
		require.Equal(t, []string{tt.behind}, canonical.Differences(was, digests(t, doc(many-1, tt.format))), tt.name)
	}

	// Below data, and deep inside: containers come first, so that what is cut is still told by what it is in.
	below := func(n, at int) string {
		return `{"data":` + strings.Replace(doc(at, `"n%04d":%d,`), "{", fmt.Sprintf(`{"m":[%d],`, n), 1) + `,"e":1}`
	}
	require.Len(t, digests(t, below(0, -1)), canonical.MaxDigests)
	require.Equal(t, []string{"/data/m"}, canonical.Differences(digests(t, below(0, -1)), digests(t, below(1, -1))))
	require.Equal(t, []string{"/data"}, canonical.Differences(digests(t, below(0, -1)), digests(t, below(0, 999))))
	deep := func(n, last int) string {
		return fmt.Sprintf(`{"data":{"a":[%s%d],"b":"x"},"e":[%d]}`, strings.Repeat("0,", 100), last, n)
	}
	require.Len(t, digests(t, deep(0, 0)), canonical.MaxDigests)
	require.Equal(t, []string{"/data/a"}, canonical.Differences(digests(t, deep(0, 0)), digests(t, deep(0, 1))))
	require.Equal(t, []string{"/e"}, canonical.Differences(digests(t, deep(0, 0)), digests(t, deep(1, 0))))

	// One that was not cut against one that was: /e/0 stands in both, but only the first has a digest of it.
	whole, cut := digests(t, `{"data":{"a":[0,0],"b":"x"},"e":[0]}`), digests(t, deep(0, 0))
	require.Contains(t, whole, "/e/0")
	require.NotContains(t, cut, "/e/0")
	for _, p := range canonical.Differences(whole, cut) {
		require.Regexp(t, `^/data/a/\d+$`, p)
	}
	require.Equal(t, canonical.Differences(whole, cut), canonical.Differences(cut, whole))
}

func TestDigestsOfOtherBodies(t *testing.T) {
	t.Parallel()
	of := func(contentType, body string) map[string][]byte {
		f, err := canonical.Body(contentType, []byte(body))
		require.NoError(t, err)
		return f.Digests(key)
	}
	require.Equal(t, []string{""}, canonical.Differences(of("text/plain", "a"), of("text/plain", "b")))
	require.Equal(t, []string{""}, canonical.Differences(of("text/plain", order), of("text/html", order)))
	require.Equal(t, []string{""}, canonical.Differences(of("application/json", order), of("application/vnd.x+json", order)), "the media type alone")
	require.Nil(t, canonical.Differences(of("application/json", order), of("application/json; charset=utf-8", order)))
	require.Equal(t, []string{"/data/total"}, canonical.Differences(of("application/json", order), of("application/json", strings.Replace(order, "5000", "1", 1))))
	require.NotContains(t, canonical.Fingerprint{}.Digests(key), "/data")
}
