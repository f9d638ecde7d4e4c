package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// check is what the requests of one operation must be like. It is made of the operation as it is documented.
type check struct {
	of     *schemas
	query  map[string]*huma.Param
	header []*huma.Param
	body   *huma.Schema // nil: there is none
	safe   bool         // a method that means nothing by a body (RFC 9110, 9.3.1): it is not looked at
}

// checkOf prepares the check of an operation, or says what of its document nobody would check.
func (a *API) checkOf(op *huma.Operation) (*check, error) {
	ck := &check{of: a.schemas, query: map[string]*huma.Param{}, safe: op.Method == http.MethodGet}
	for _, p := range op.Parameters {
		if err := a.schemas.learn(op.OperationID+" "+p.Name, p.Schema); err != nil {
			return nil, err
		}
		switch p.In {
		case "query":
			ck.query[p.Name] = p
		case "header":
			ck.header = append(ck.header, p)
		}
	}
	if op.RequestBody != nil {
		ck.body = op.RequestBody.Content["application/json"].Schema
		if err := a.schemas.learn(op.OperationID, ck.body); err != nil {
			return nil, err
		}
	}
	return ck, nil
}

// request checks a request, and keeps its body in c.
func (ck *check) request(r *http.Request, c *call) error {
	f := &faults{of: ck.of}
	ck.queryOf(f, r.URL.RawQuery)
	for _, p := range ck.header {
		if lines := r.Header.Values(p.Name); len(lines) > 0 {
			ck.parameter(f, p, []string{joined(lines)})
		}
	}
	if len(f.list) > 0 {
		p := problem(CodeInvalidParameter, "A parameter is not what this endpoint takes; see errors.")
		p.Errors = f.list
		return p
	}
	if ck.body == nil && (ck.safe || r.ContentLength == 0) {
		return nil
	}
	if err := readBody(r, c); err != nil {
		return err
	}
	if ck.body == nil {
		return noBody(c.body)
	}
	v, bad := parse(c.body)
	if bad != nil {
		return bad
	}
	if f.check("", ck.body, v); len(f.list) > 0 {
		return invalid(f.list)
	}
	return nil
}

// noBody refuses what is said where nothing is asked: it would be taken for done. {} and {"data":{}} say nothing, and some clients
// cannot help sending them.
func noBody(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	v, bad := parse(body)
	if bad != nil {
		return bad
	}
	if m, ok := v.(map[string]any); ok {
		if inner, ok := m["data"].(map[string]any); ok && len(m) == 1 {
			m = inner
		}
		if len(m) == 0 {
			return nil
		}
	}
	return invalid([]FieldError{{Pointer: "", Code: "no_body", Detail: "this endpoint takes no body"}})
}

// joined is a header that stands there several times as one (RFC 9110, 5.3).
func joined(lines []string) string { return strings.Join(lines, ", ") }

func (ck *check) queryOf(f *faults, raw string) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		f.list = append(f.list, FieldError{Parameter: "?", Code: "invalid_query", Detail: "the query of the URL is not well formed"})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, known := ck.query[name]
		if !known {
			f.list = append(f.list, FieldError{Parameter: name, Code: "unknown_parameter", Detail: "is not known here"})
			continue
		}
		ck.parameter(f, p, values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(ck.query)) {
		if p := ck.query[name]; p.Required && len(values[name]) == 0 {
			f.list = append(f.list, FieldError{Parameter: name, Code: "required", Detail: "is missing"})
		}
	}
}

// parameter checks the values of one parameter. A list is what stands between commas.
func (ck *check) parameter(f *faults, p *huma.Param, values []string) {
	if len(values) == 0 {
		return
	}
	sub := &faults{of: f.of}
	switch text, sch := values[0], f.of.resolve(p.Schema); {
	case len(values) > 1:
		sub.add("", "duplicate", "stands there twice")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		sub.add("", "invalid_text", "must be UTF-8 without NUL characters")
	case sch.Type == huma.TypeArray:
		parts := strings.Split(text, ",")
		list := make([]any, len(parts))
		for i, part := range parts {
			list[i] = asValue(f.of.resolve(sch.Items), part)
		}
		sub.check("", sch, list)
	case text == "":
		sub.add("", "empty", "has no value; leave it out")
	default:
		sub.check("", sch, asValue(sch, text))
	}
	for _, e := range sub.list {
		f.list = append(f.list, FieldError{Parameter: p.Name, Code: e.Code, Detail: e.Detail})
	}
}

// asValue is a text of a URL or a header as the JSON value that its schema expects.
func asValue(sch *huma.Schema, text string) any {
	switch {
	case sch.Type == huma.TypeInteger:
		return json.Number(text)
	case sch.Type == huma.TypeBoolean && (text == "true" || text == "false"):
		return text == "true"
	}
	return text
}

// readBody keeps the bytes of a JSON request, or returns the problem that they are.
func readBody(r *http.Request, c *call) error {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		mt, _, err := mime.ParseMediaType(ct)
		if err != nil || mt != "application/json" && !(strings.HasPrefix(mt, "application/") && strings.HasSuffix(mt, "+json")) {
			return problem(CodeUnsupportedMediaType, "Send application/json.")
		}
	}
	body, err := io.ReadAll(r.Body)
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return problem(CodeBodyTooLarge, fmt.Sprintf("A body has at most %d bytes.", tooBig.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(CodeBodyTooSlow, "The body did not arrive in time.")
	case err != nil:
		return problem(CodeBodyCutShort, "The body ended early.")
	}
	c.body, c.ended = body, true
	return nil
}
