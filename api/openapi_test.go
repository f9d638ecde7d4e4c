package api_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

type document struct {
	OpenAPI string
	Paths   map[string]map[string]operation
}

type operation struct {
	OperationID string
	Tags        []string
	Summary     string
	Security    []map[string][]string
	Parameters  []struct{ Name, In, Description string }
	RequestBody *struct{ Content map[string]media }
	Responses   map[string]struct {
		Description string
		Content     map[string]media
	}
}

type media struct {
	Schema  json.RawMessage
	Example json.RawMessage
}

func documentOf(t testing.TB, b *bench) document {
	t.Helper()
	raw, err := b.Document()
	require.NoError(t, err)
	var d document
	require.NoError(t, json.Unmarshal(raw, &d))
	return d
}

// TestEveryOperationIsDocumented: what a reader and a generator of clients need is there.
func TestEveryOperationIsDocumented(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	d := documentOf(t, b)
	require.Equal(t, "3.1.0", d.OpenAPI)
	ids := map[string]bool{}
	for path, ops := range d.Paths {
		for method, op := range ops {
			at := method + " " + path
			require.NotEmpty(t, op.OperationID, at)
			require.False(t, ids[op.OperationID], "%s: another operation has this id", at)
			ids[op.OperationID] = true
			require.NotEmpty(t, op.Summary, at)
			require.Len(t, op.Tags, 1, at)
			require.Len(t, op.Security, 1, at)
			require.Len(t, op.Security[0]["api_key"], 1, "%s: its role", at)
			for _, p := range op.Parameters {
				require.NotEmpty(t, p.Description, "%s: %s", at, p.Name)
			}
			success := false
			for status, r := range op.Responses {
				require.NotEmpty(t, r.Description, "%s %s", at, status)
				if status < "300" {
					success = true
					require.NotEmpty(t, r.Content["application/json"].Schema, at)
					require.NotEmpty(t, r.Content["application/json"].Example, at)
					continue
				}
				require.Contains(t, string(r.Content["application/problem+json"].Schema), "/Problem", at)
			}
			require.True(t, success, at)
			for _, status := range []string{"401", "403", "429", "503"} {
				require.Contains(t, op.Responses, status, at)
			}
			if method == "post" || method == "patch" {
				if op.RequestBody != nil {
					require.NotEmpty(t, op.RequestBody.Content["application/json"].Example, at)
				}
				continue
			}
			require.Nil(t, op.RequestBody, at)
		}
	}
}

// TestCodesAreDocumented: a code that is answered stands in the document of that operation and status.
func TestCodesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, c := range api.Codes() {
		require.Equal(t, strings.ToLower(string(c)), string(c))
		require.GreaterOrEqual(t, c.Status(), 400)
	}
}
