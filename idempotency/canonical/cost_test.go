package canonical_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

// promised is how long a body of 100 KB takes at most, whatever is in it; allowed has a margin, for a machine that does other things too.
const (
	promised = 10 * time.Millisecond
	allowed  = 3 * promised * slowdown
)

// hostile are bodies of about 100 KB that cost as much as somebody could think of.
var hostile = []struct {
	name, contentType string
	body              []byte
	refused           canonical.Reason
}{
	{name: "ordinary", body: array(func(i int) string {
		return fmt.Sprintf(`{"id": "line_%d", "name": "T-shirt, caf\u00e9", "quantity": %d, "price": %d.50, "taxed": true}`, i, i%7+1, i)
	})},
	{name: "zeros", body: array(func(int) string { return "0" })},
	{name: "empty arrays", body: array(func(int) string { return "[]" })},
	{name: "names in order", body: object(func(i int) string { return fmt.Sprintf("%05d", i) })},
	{name: "names in reverse", body: object(func(i int) string { return fmt.Sprintf("%05d", 99999-i) })},
	{name: "names at random", body: object(func(i int) string { return fmt.Sprintf("%x", uint32(i)*2654435761) })},
	{name: "names with a long beginning", body: object(func(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("a", 500), 1000-i) })},
	{name: "names escaped", body: object(func(i int) string { return fmt.Sprintf(`\u0001\u%04x`, 1+i*7919%0xd000) })},
	{name: "duplicate at the end", body: bytes.Replace(object(func(i int) string { return fmt.Sprintf("%05d", i) }), []byte(`"00001"`), []byte(`"00000"`), 1), refused: canonical.DuplicateName},
	{name: "deep, and out of order at every level", body: layers()},
	{name: "deepest everywhere", body: array(func(int) string { return strings.Repeat("[", 127) + strings.Repeat("]", 127) })},
	{name: "brackets without end", body: bytes.Repeat([]byte("["), 100_000), refused: canonical.TooDeep},
	{name: "objects without end", body: bytes.Repeat([]byte(`{"a":`), 20_000), refused: canonical.TooDeep},
	{name: "a long number", body: bytes.Repeat([]byte("7"), 100_000)},
	{name: "a long fraction", body: []byte("0." + strings.Repeat("0", 50_000) + strings.Repeat("9", 50_000))},
	{name: "a long exponent", body: []byte("100e-1" + strings.Repeat("0", 100_000))},
	{name: "an exponent of nines", body: []byte("10e" + strings.Repeat("9", 100_000))},
	{name: "long exponents", body: array(func(int) string { return "10e9999999999999999999" })},
	{name: "a long string", body: []byte(`"` + strings.Repeat("x", 100_000) + `"`)},
	{name: "escapes", body: []byte(`"` + strings.Repeat(`\u0001`, 100_000/6) + `"`)},
	{name: "short escapes", body: []byte(`"` + strings.Repeat(`\n`, 50_000) + `"`)},
	{name: "surrogates", body: []byte(`"` + strings.Repeat(`\ud83d\ude00`, 100_000/12) + `"`)},
	{name: "other alphabets", body: []byte(`"` + strings.Repeat("é", 50_000) + `"`)},
	{name: "white space", body: []byte(strings.Repeat(" \n\t\r", 25_000) + "1")},
	{name: "small parts", contentType: `multipart/form-data; boundary="b"`, body: parts("b", func(int) string { return "" })},
	{name: "parts that almost end", contentType: `multipart/form-data; boundary="` + strings.Repeat("b", 70) + `"`, body: parts(strings.Repeat("b", 70),
		func(int) string { return strings.Repeat("\r\n--"+strings.Repeat("b", 69), 100) })},
	{name: "parts with many headers", contentType: `multipart/form-data; boundary=b`, body: []byte(list(100_000, func(int) string {
		return "--b\r\nContent-Disposition: form-data; name=a\r\n" + list(50, func(i int) string { return string(rune('z'-i)) + ":\r\n" }) + "\r\n\r\n"
	}) + "--b--")},
	{name: "a part with many headers", contentType: "multipart/form-data; boundary=b", body: []byte("--b\r\nContent-Disposition: form-data; name=a\r\n" +
		list(100_000, func(i int) string { return fmt.Sprintf("h%d:\r\n", i) }) + "\r\n\r\n--b--"), refused: canonical.MalformedMultipart},
	{name: "parts with many parameters", contentType: "multipart/form-data; boundary=b", body: []byte(list(100_000, func(int) string {
		return "--b\r\nContent-Disposition: form-data; name=a" + list(60, func(i int) string { return fmt.Sprintf(";%c=a", 'z'-i) }) + "\r\n\r\n\r\n"
	}) + "--b--")},
}

func list(size int, element func(int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(element(i))
	}
	return b.String()
}

func array(element func(int) string) []byte {
	return []byte("[" + strings.TrimSuffix(list(100_000, func(i int) string { return element(i) + "," }), ",") + "]")
}

func object(name func(int) string) []byte {
	return []byte("{" + strings.TrimSuffix(list(100_000, func(i int) string { return `"` + name(i) + `":0,` }), ",") + "}")
}

// layers is an object in an object in an object: what is inside would be moved again and again by whoever sorts bytes.
func layers() []byte {
	const depth = 120
	inner := list(98_000, func(i int) string { return fmt.Sprintf(`"%d":{},`, 99999-i) })
	return []byte(strings.Repeat(`{"b":`, depth) + "{" + strings.TrimSuffix(inner, ",") + "}" + strings.Repeat(`,"a":1}`, depth))
}

func parts(boundary string, content func(int) string) []byte {
	return []byte(list(100_000, func(i int) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=a\r\n\r\n" + content(i) + "\r\n"
	}) + "--" + boundary + "--\r\n")
}

func TestHostileBodiesTakeNoLongerThanPromised(t *testing.T) {
	for _, tt := range hostile { // one after the other: this is about time
		if tt.contentType == "" {
			tt.contentType = "application/json"
		}
		best := time.Hour
		for try := 0; try < 5 || best >= allowed && try < 20; try++ {
			begin := time.Now()
			f, err := canonical.Body(tt.contentType, tt.body)
			if err == nil {
				f.Digests([]byte("key"))
			}
			best = min(best, time.Since(begin))
			if tt.refused == "" {
				require.NoError(t, err, tt.name)
				continue
			}
			var refused *canonical.SyntaxError
			require.ErrorAs(t, err, &refused, tt.name)
			require.Equal(t, tt.refused, refused.Reason, tt.name)
		}
		t.Logf("%-40s %7d bytes %8s", tt.name, len(tt.body), best.Round(time.Microsecond))
		require.Less(t, best, allowed, tt.name)
	}
}

func BenchmarkBody(b *testing.B) {
	order := []byte(`{"data":{"external_ref":"ord_123","total":5000,"currency":"EUR","items":[{"name":"T-shirt","quantity":2,"price":2500}],"metadata":{"external_ref":"ord_123","note":"ring twice"}}}`)
	for _, size := range []struct {
		name string
		body []byte
	}{{"order", order}, {"100KB", hostile[0].body}} {
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(size.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canonical.Body("application/json", size.body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(size.name+"/digests", func(b *testing.B) {
			f, err := canonical.Body("application/json", size.body)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Digests([]byte("key"))
			}
		})
	}
}
