package api_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

var update = flag.Bool("update", false, "write ../docs/openapi.json")

// TestDocumentIsCurrent: the committed document is the one that is served.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	w := b.do(http.MethodGet, "/v1/openapi.json", "", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/openapi+json", w.Header().Get("Content-Type"))
	path := filepath.Join("..", "docs", "openapi.json")
	if *update {
		require.NoError(t, os.WriteFile(path, w.Body.Bytes(), 0o644))
	}
	committed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(committed), w.Body.String(), "go test ./api -run TestDocument -update writes it")

	w = b.do(http.MethodGet, "/v1/openapi.yaml", "", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "openapi: 3.1.0")
}

// TestEveryOperationIsDocumented: what a reader and a generator of clients need is there.
func TestEveryOperationIsDocumented(t *testing.T) {
	t.Parallel()
	o := oracleOf(t)
	version, _, _ := o.at("openapi")
	require.Equal(t, "3.1.0", version)
	ids := map[any]bool{}
	o.operations(func(pattern, method string, op map[string]any) {
		at := method + " " + pattern
		require.Regexp(t, `^[a-z]+[A-Z][A-Za-z]+$`, op["operationId"], at)
		require.False(t, ids[op["operationId"]], "%s: another operation has this id", at)
		ids[op["operationId"]] = true
		require.NotEmpty(t, op["summary"], at)
		require.NotEmpty(t, op["description"], at)
		require.Len(t, op["tags"], 1, at)
		role := op["security"].([]any)[0].(map[string]any)["api_key"]
		require.Len(t, role, 1, at)
		if method == "get" {
			require.Equal(t, []any{"read"}, role, at)
			require.NotContains(t, op, "requestBody")
		}
		params, _ := op["parameters"].([]any)
		for _, p := range params {
			require.NotEmpty(t, p.(map[string]any)["description"], "%s: %v", at, p)
		}
		responses := op["responses"].(map[string]any)
		for _, status := range []string{"400", "401", "403", "429", "503"} {
			require.Contains(t, responses, status, at)
		}
		success := false
		for status := range responses {
			r, _, ok := o.at("paths", pattern, method, "responses", status)
			require.True(t, ok, at)
			require.NotEmpty(t, r.(map[string]any)["description"], "%s %s", at, status)
			content := r.(map[string]any)["content"].(map[string]any)
			if status < "300" {
				success = true
				require.Contains(t, content["application/json"], "schema", at)
				require.Contains(t, content["application/json"], "example", at)
				continue
			}
			require.Equal(t, map[string]any{"$ref": "#/components/schemas/Problem"}, content["application/problem+json"].(map[string]any)["schema"], at)
		}
		require.True(t, success, at)
		if _, ok := op["requestBody"]; ok {
			media, _, ok := o.at("paths", pattern, method, "requestBody", "content", "application/json")
			require.True(t, ok)
			require.Contains(t, media, "example", at)
		}
	})
	require.Greater(t, len(ids), 8)
	// Every schema is used, and none is one of huma's own.
	schemas, _, _ := o.at("components", "schemas")
	raw := jsonOf(t, o.doc)
	for name := range schemas.(map[string]any) {
		require.Contains(t, raw, `"$ref":"#/components/schemas/`+name+`"`)
	}
}

// TestCodes: codes are words, and their statuses are errors.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range api.Codes() {
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, c)
		require.GreaterOrEqual(t, c.Status(), 400)
	}
}
