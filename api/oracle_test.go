package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

// oracle judges by the document, with a validator that is not ours.
type oracle struct {
	doc      any // the document
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

const documentURL = "https://paidonce.test/openapi.json"

// theOracle is made once: all APIs have one document.
var theOracle = sync.OnceValues(func() (*oracle, error) {
	s := &shop{}
	a, err := api.New(s, keys, api.Options{})
	if err != nil {
		return nil, err
	}
	raw, err := a.Document()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(documentURL, doc); err != nil {
		return nil, err
	}
	return &oracle{doc: doc, compiler: c, compiled: map[string]*jsonschema.Schema{}}, nil
})

func oracleOf(t testing.TB) *oracle {
	t.Helper()
	o, err := theOracle()
	require.NoError(t, err)
	return o
}

// at is what stands at a JSON pointer of the document, with references followed.
func (o *oracle) at(pointer ...string) (any, []string, bool) {
	v := o.doc
	path := []string{}
	for _, name := range pointer {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, nil, false
		}
		path = append(path, name)
		if m, ok := v.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok && name != "schema" {
				path = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
				if v, path, ok = o.at(path...); !ok {
					return nil, nil, false
				}
			}
		}
	}
	return v, path, true
}

// judge says what is wrong with a value by the schema at a place of the document.
func (o *oracle) judge(value any, pointer ...string) error {
	_, path, ok := o.at(pointer...)
	if !ok {
		return fmt.Errorf("the document has no %q", pointer)
	}
	for i, p := range path {
		path[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	loc := documentURL + "#/" + strings.Join(path, "/")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.compiled[loc] == nil {
		s, err := o.compiler.Compile(loc)
		if err != nil {
			return err
		}
		o.compiled[loc] = s
	}
	return o.compiled[loc].Validate(value)
}

// routeOf is the pattern of the document that a path fits, a literal one before one with a parameter.
func (o *oracle) routeOf(path string) (string, bool) {
	paths, _, _ := o.at("paths")
	best := ""
	for pattern := range paths.(map[string]any) {
		want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
		if len(want) != len(have) {
			continue
		}
		fits := true
		for i := range want {
			fits = fits && (want[i] == have[i] || strings.HasPrefix(want[i], "{") && have[i] != "")
		}
		if fits && (best == "" || strings.Count(pattern, "{") < strings.Count(best, "{")) {
			best = pattern
		}
	}
	return best, best != ""
}

// checkAnswer holds an answer against the document: its status is documented for the operation, its body fits the schema,
// and a problem's code is one of those that stand there.
func checkAnswer(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	o := oracleOf(t)
	pattern, ok := o.routeOf(r.URL.EscapedPath())
	if !ok || w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), `"not_found"`) {
		return // no route
	}
	method := strings.ToLower(r.Method)
	if r.Method == http.MethodHead {
		return
	}
	ct := "application/json"
	if w.Code >= 400 {
		ct = "application/problem+json"
	}
	require.Equal(t, ct, w.Header().Get("Content-Type"), w.Body.String())
	require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	require.NoError(t, err, w.Body.String())
	at := []string{"paths", pattern, method, "responses", strconv.Itoa(w.Code)}
	response, _, ok := o.at(at...)
	require.True(t, ok, "%s %s answers %d, which the document does not have: %s", r.Method, pattern, w.Code, w.Body.String())
	require.NoError(t, o.judge(body, append(at, "content", ct, "schema")...), w.Body.String())
	if w.Code >= 400 {
		code := body.(map[string]any)["code"].(string)
		require.Contains(t, response.(map[string]any)["description"], "`"+code+"`", "%s %s: the code is not documented", r.Method, pattern)
	}
}

// operations calls f with every operation of the document.
func (o *oracle) operations(f func(pattern, method string, op map[string]any)) {
	paths, _, _ := o.at("paths")
	for pattern, ops := range paths.(map[string]any) {
		for method, op := range ops.(map[string]any) {
			f(pattern, method, op.(map[string]any))
		}
	}
}

// TestExamplesFit: every example of the document is what its own schema demands.
func TestExamplesFit(t *testing.T) {
	t.Parallel()
	o := oracleOf(t)
	n := 0
	o.operations(func(pattern, method string, op map[string]any) {
		check := func(value any, at ...string) {
			n++
			require.NoError(t, o.judge(value, append(at, "schema")...), "%s %s: %v", method, pattern, at)
		}
		if _, ok := op["requestBody"]; ok {
			at := []string{"paths", pattern, method, "requestBody", "content", "application/json"}
			example, _, ok := o.at(append(at, "example")...)
			require.True(t, ok)
			check(example, at...)
		}
		for status := range op["responses"].(map[string]any) {
			at := []string{"paths", pattern, method, "responses", status}
			r, _, ok := o.at(at...)
			require.True(t, ok)
			for ct, m := range r.(map[string]any)["content"].(map[string]any) {
				media := m.(map[string]any)
				if example, ok := media["example"]; ok {
					check(example, append(at, "content", ct)...)
				}
				examples, _ := media["examples"].(map[string]any)
				for _, e := range examples {
					check(e.(map[string]any)["value"], append(at, "content", ct)...)
				}
			}
		}
	})
	require.Greater(t, n, 30)
}

// jsonOf encodes a value of the oracle.
func jsonOf(t testing.TB, v any) string {
	t.Helper()
	doc, err := json.Marshal(v)
	require.NoError(t, err)
	return string(doc)
}
