package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIfMatch: RFC 9110, 13.1.1 and 8.8.3. Every case is tried on an order at version 1.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	for name, tt := range map[string]struct {
		lines []string
		want  int
	}{
		"Same":              {[]string{`"1"`}, 200},
		"Other":             {[]string{`"2"`}, 412},
		"Any":               {[]string{`*`}, 200},
		"List":              {[]string{`"7", "1"`}, 200},
		"ListWithout":       {[]string{`"7","8"`}, 412},
		"ListOfLines":       {[]string{`"7"`, `"1"`}, 200},
		"EmptyElements":     {[]string{` , "7" ,, "1", `}, 200},
		"Weak":              {[]string{`W/"1"`}, 412},
		"WeakAndStrong":     {[]string{`W/"1", "1"`}, 200},
		"CommaInTag":        {[]string{`"7,1"`}, 412},
		"PartOfATag":        {[]string{`"11"`}, 412},
		"EmptyTag":          {[]string{`""`}, 412},
		"BytesOfOldTexts":   {[]string{"\"\xc3\xa9\""}, 412},
		"Missing":           {nil, 428},
		"Empty":             {[]string{``}, 400},
		"OnlyCommas":        {[]string{`,,`}, 400},
		"Bare":              {[]string{`1`}, 400},
		"SingleQuotes":      {[]string{`'1'`}, 400},
		"Open":              {[]string{`"1`}, 400},
		"OnlyAQuote":        {[]string{`"`}, 400},
		"OnlyWeak":          {[]string{`W/`}, 400},
		"LowerWeak":         {[]string{`w/"1"`}, 400},
		"SpaceInTag":        {[]string{`"1 "`}, 400},
		"NoComma":           {[]string{`"1""2"`}, 400},
		"AnyInAList":        {[]string{`*, "1"`}, 400},
		"AnyBesideTheFirst": {[]string{`"1"`, `*`}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, etag := l.order("if-" + name)
			require.Equal(t, `"1"`, etag)
			w := l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":{"metadata":{"a":1}}}`, ifMatch(tt.lines...))
			require.Equal(t, tt.want, w.Code, w.Body.String())
			switch tt.want {
			case http.StatusOK:
				require.Equal(t, `"2"`, w.Header().Get("ETag"))
				return
			case http.StatusPreconditionFailed:
				require.Equal(t, "version_mismatch", string(problemOf(t, w).Code))
				require.Equal(t, `"1"`, w.Header().Get("ETag"), "where it stands")
			case http.StatusPreconditionRequired:
				require.Equal(t, "precondition_required", string(problemOf(t, w).Code))
			default:
				require.Equal(t, "invalid_parameter", string(problemOf(t, w).Code))
				require.Contains(t, w.Body.String(), `"parameter":"If-Match"`)
			}
			require.EqualValues(t, 1, l.read(id)["version"])
		})
	}
}
