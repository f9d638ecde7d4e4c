package canonical_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

func fingerprint(t require.TestingT, contentType, body string) string {
	f, err := canonical.Body(contentType, []byte(body))
	require.NoError(t, err, "%s %q", contentType, body)
	return f.String()
}

func refusedBody(t require.TestingT, contentType, body string) *canonical.SyntaxError {
	f, err := canonical.Body(contentType, []byte(body))
	var syntax *canonical.SyntaxError
	require.ErrorAs(t, err, &syntax, "%s %q", contentType, body)
	require.Zero(t, f)
	return syntax
}

// different holds that no two of these are one body.
func different(t *testing.T, prints ...string) {
	t.Helper()
	seen := map[string]int{}
	for i, p := range prints {
		require.NotContains(t, seen, p, "%d is %d", i, seen[p])
		seen[p] = i
	}
}

const order = `{"data":{"total":5000,"currency":"EUR"}}`

func TestT33_MediaTypes(t *testing.T) {
	t.Parallel()
	plain := fingerprint(t, "application/json", order)
	for _, same := range []string{
		"application/json; charset=utf-8", `Application/JSON;Charset="UTF-8"`, " application/json ; charset=Utf-8 ;", "application/json;",
		"\tapplication/json;;charset=utf-8",
	} {
		require.Equal(t, plain, fingerprint(t, same, order), same)
	}
	different(t, plain,
		fingerprint(t, "text/plain", order),
		fingerprint(t, "", order),
		fingerprint(t, "application/jsonl", order),
		fingerprint(t, "application/x-www-form-urlencoded", order),
		fingerprint(t, "application/vnd.x+json", order), // it may be another version of the API
		fingerprint(t, "application/vnd.y+json", order),
		fingerprint(t, "application/json; version=2", order),
		fingerprint(t, `application/json; version="2;a=b"`, order),
		fingerprint(t, `application/json; version=2;a=b`, order),
		fingerprint(t, "text/plain; charset=latin1", order),
	)
	require.Equal(t, fingerprint(t, "text/plain; a=1; B=2", order), fingerprint(t, `text/plain;b="2";a=1`, order))

	// What is JSON is compared by value and refused by JSON's rules, whatever it is called; all else byte for byte.
	spaced := strings.ReplaceAll(order, ":", " : ")
	for _, json := range []string{"application/json", "application/vnd.x+json", "application/problem+json;charset=utf-8", "application/JSON; version=2"} {
		require.Equal(t, fingerprint(t, json, order), fingerprint(t, json, spaced), json)
		require.Equal(t, canonical.DuplicateName, refusedBody(t, json, `{"a":1,"a":2}`).Reason, json)
	}
	for _, raw := range []string{"text/plain", "application/x-www-form-urlencoded", "", " ", "application/octet-stream", "application/json-seq", "x/json"} {
		require.NotEqual(t, fingerprint(t, raw, order), fingerprint(t, raw, spaced), raw)
		different(t, fingerprint(t, raw, "a\x00\xff"), fingerprint(t, raw, "a\x00"), fingerprint(t, raw, "\n"), fingerprint(t, raw, " "), fingerprint(t, raw, "{"))
	}

	for _, malformed := range []string{
		"json", "application/", "/json", "application/json, application/json", "application/json charset=utf-8", "application/json; charset",
		"application/json; charset=utf-8; Charset=utf-8", `application/json; charset="utf-8`, `application/json; charset="utf-8\"`, `application/json; a="b"c`,
		"application/json; =a", "application/json; a=", "application/json; a = b", "application/js\x00n", "application/json; a=\"\x01\"", ";", "application/json; a=b c",
		"text/plain" + list(17*len(";a=b"), func(i int) string { return ";" + string(rune('a'+i)) + "=b" }), "text/plain;a=" + strings.Repeat("b", 9<<10),
	} {
		require.Equal(t, &canonical.SyntaxError{Reason: canonical.MalformedContentType}, refusedBody(t, malformed, order), malformed)
	}
	fingerprint(t, "text/plain"+list(16*len(";a=b"), func(i int) string { return ";" + string(rune('a'+i)) + "=b" }), order)
}

func TestT30_NoBodyIsNoBodyWhateverItsType(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"", "application/json", "text/plain", "multipart/form-data", "nonsense"} {
		require.Equal(t, fingerprint(t, "", ""), fingerprint(t, contentType, ""), contentType)
	}
	require.Equal(t, canonical.Truncated, refusedBody(t, "application/json", " ").Reason)
}

// form is a multipart body; in its lines | stands for the boundary, and line feeds become CRLF.
func form(boundary string, lines ...string) string {
	s := strings.ReplaceAll(strings.Join(lines, "\n"), "|", "--"+boundary)
	return strings.ReplaceAll(s, "\n", "\r\n")
}

func TestT34_MultipartIsItsParts(t *testing.T) {
	t.Parallel()
	const quoted = `multipart/form-data; boundary="=_a b"`
	parts := func(b string) string {
		return form(b, "|", `Content-Disposition: form-data; name="ref"`, "", "ord_1", "|",
			`Content-Disposition: form-data; name="file"; filename="café.csv"`, "Content-Type: text/csv", "", "a;b\n--x\n1;2\n", "|--", "")
	}
	first := fingerprint(t, "multipart/form-data; boundary=xyz", parts("xyz"))
	for _, b := range []string{"0", strings.Repeat("b", 70), "----WebKitFormBoundaryAbC123", "'()+_,-.:"} {
		require.Equal(t, first, fingerprint(t, `multipart/form-data; boundary="`+b+`"`, parts(b)), b)
	}
	require.Equal(t, first, fingerprint(t, quoted, parts("=_a b")))
	require.Equal(t, first, fingerprint(t, "Multipart/Form-Data; charset=UTF-8; Boundary=xyz", parts("xyz")))
	require.Equal(t, first, fingerprint(t, "multipart/form-data; boundary=xyz", "\r\n"+strings.TrimSuffix(parts("xyz"), "\r\n")), "line breaks outside")
	require.Equal(t, first, fingerprint(t, "multipart/form-data; boundary=xyz", form("xyz", "|  ", `content-disposition:form-data;name=ref`, "", "ord_1", "|\t",
		`CONTENT-TYPE: text/csv; charset=utf-8`, `Content-Disposition:  Form-Data ; filename="café.csv"; name=file `, "", "a;b\n--x\n1;2\n", "|-- ", "")), "spelling of headers")

	const b = "multipart/form-data; boundary=b"
	part := func(headers, content string) string { return form("b", "|", headers, "", content, "|--") }
	different(t, first,
		fingerprint(t, "multipart/form-data; boundary=xyz; version=2", parts("xyz")),
		fingerprint(t, b, form("b", "|", "Content-Disposition: form-data; name=x", "", "1", "|", "Content-Disposition: form-data; name=y", "", "2", "|--")),
		fingerprint(t, b, form("b", "|", "Content-Disposition: form-data; name=y", "", "2", "|", "Content-Disposition: form-data; name=x", "", "1", "|--")), // order
		fingerprint(t, b, form("b", "|", "Content-Disposition: form-data; name=x", "", "1", "|", "Content-Disposition: form-data; name=x", "", "1", "|--")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x", "1\n")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x", "")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=X", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=\"\"", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x; filename=f", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x; filename=g", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x; filename=f; filename*=utf-8''g", "1")), // package mime sees g alone
		fingerprint(t, b, part("Content-Disposition: form-data; name=x; filename=\"a\\b\"", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x; filename=\"ab\"", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x\nContent-Type: text/plain", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x\nContent-Type: text/plain; charset=latin1", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x\nContent-Transfer-Encoding: base64", "1")),
		fingerprint(t, b, part("Content-Disposition: form-data; name=x", "1\n1\ncontent-disposition:\"form-data;name=\\\"x\\\"\"\n1\n1")), // what is written for two parts
	)
	require.Equal(t, first, fingerprint(t, "multipart/form-data; boundary=xyz", parts("xyz")))
}

func TestT34_MalformedMultipartIsRefused(t *testing.T) {
	t.Parallel()
	const head, named = "Content-Disposition: form-data; name=", "Content-Disposition: form-data; name=x\n"
	for _, body := range []string{
		form("b", "|--"), // ends without a part: that is allowed, and tested below
		form("b", "preamble", "|", named, "1", "|--"),
		form("b", "|", named, "1", "|--", "epilogue"),
		form("b", "|", named, "1", "|--", "", ""),
		form("b", "|", named, "1", "|"),
		form("b", "|", named, "1", ""),
		form("b", "|", named, "1"),
		form("b", "|", named),
		form("b", "|"),
		form("c", "|", named, "1", "|--"),
		form("b", "|", "", "1", "|--"),                                   // no headers
		form("b", "|", "Content-Type: text/plain", "", "1", "|--"),       // no name
		form("b", "|", "Content-Disposition: form-data", "", "1", "|--"), // no name
		form("b", "|", "Content-Disposition: attachment; name=x", "", "1", "|--"),
		form("b", "|", head+"x; name=y", "", "1", "|--"),
		form("b", "|", head+`"x`, "", "1", "|--"),
		form("b", "|", named+"content-disposition: form-data; name=y", "", "1", "|--"),
		form("b", "|", named+"no colon", "", "1", "|--"),
		form("b", "|", named+" folded: a", "", "1", "|--"),
		form("b", "|", named+"Content-Type: text/", "", "1", "|--"),
		form("b", "|", named+"a: \x00", "", "1", "|--"),
		form("b", "|", named+"a: "+strings.Repeat("b", 9<<10), "", "1", "|--"),
		form("b", "|x", named, "1", "|--"),
		form("b", "|", named, "1\n|c\n2", "|--"), // the boundary at the beginning of a line is the boundary
		strings.ReplaceAll(form("b", "|", named, "1", "|--"), "\r\n", "\n"),
		" ",
	}[1:] {
		require.Equal(t, canonical.MalformedMultipart, refusedBody(t, "multipart/form-data; boundary=b", body).Reason, "%q", body)
	}
	whole := form("b", "|", named, "1", "|--")
	require.Equal(t, canonical.MalformedMultipart, refusedBody(t, "multipart/form-data", whole).Reason)
	for _, boundary := range []string{"", strings.Repeat("b", 71), "b ", `b\"b`, "é", "b;b"} {
		e := refusedBody(t, `multipart/form-data; boundary="`+boundary+`"`, form(boundary, "|", named, "1", "|--"))
		require.Equal(t, &canonical.SyntaxError{Reason: canonical.MalformedMultipart}, e, boundary)
	}
	headers := named + list(15*len("a: b\n"), func(i int) string { return string(rune('a'+i)) + ": b\n" })
	fingerprint(t, "multipart/form-data; boundary=b", form("b", "|", headers, "1", "|--"))
	require.Equal(t, 5, refusedBody(t, "multipart/form-data; boundary=b", form("b", "|", headers+"z: b\n", "1", "|--")).Offset)
	for i := 1; i < len(whole); i++ {
		e := refusedBody(t, "multipart/form-data; boundary=b", whole[:i])
		require.Equal(t, canonical.MalformedMultipart, e.Reason, "%q", whole[:i])
		require.LessOrEqual(t, e.Offset, i)
		require.NotContains(t, e.Error(), "form-data; name")
	}
	fingerprint(t, "multipart/form-data; boundary=b", whole)
	fingerprint(t, "multipart/form-data; boundary=b", form("b", "|--"))
}

func TestT34_FormsAreTheirBytes(t *testing.T) {
	t.Parallel()
	const urlencoded = "application/x-www-form-urlencoded"
	require.Equal(t, fingerprint(t, urlencoded, "a=1&b=2"), fingerprint(t, urlencoded+";charset=UTF-8", "a=1&b=2"))
	different(t, fingerprint(t, urlencoded, "a=1&b=2"), fingerprint(t, urlencoded, "b=2&a=1"), fingerprint(t, urlencoded, "a=%31&b=2"), fingerprint(t, urlencoded, "a=1&b=2\n"))
}

// TestT35: what a server decodes before it asks is one body; what it does not is compared as it came.
func TestT35_CompressedBodies(t *testing.T) {
	t.Parallel()
	zip := func(at time.Time) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.ModTime = at
		_, _ = w.Write([]byte(order))
		_ = w.Close()
		return b.String()
	}
	unzip := func(s string) string {
		r, err := gzip.NewReader(strings.NewReader(s))
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		return string(body)
	}
	one, two := zip(time.Unix(1, 0)), zip(time.Unix(2, 0))
	require.NotEqual(t, one, two)
	require.Equal(t, fingerprint(t, "application/json", unzip(one)), fingerprint(t, "application/json", unzip(two)))
	require.NotEqual(t, fingerprint(t, "application/octet-stream", one), fingerprint(t, "application/octet-stream", two))
	require.Equal(t, canonical.UnexpectedByte, refusedBody(t, "application/json", one).Reason)
}
