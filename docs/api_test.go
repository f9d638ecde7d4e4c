package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// operation is what the map of the API says of a call.
type operation struct{ call, role string }

// The map of the order API lists every call of the document with its role, and no other; and says which take no key.
func TestOrderAPIMap(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Security   []map[string][]string
			Parameters []struct{ Name string }
		}
	}
	text, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &doc))
	var served []operation
	keyless := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			require.Len(t, op.Security, 1)
			require.Len(t, op.Security[0]["api_key"], 1)
			call := strings.ToUpper(method) + " " + path
			served = append(served, operation{call, op.Security[0]["api_key"][0]})
			takesKey := false
			for _, p := range op.Parameters {
				takesKey = takesKey || p.Name == "Idempotency-Key"
			}
			if method != "get" && !takesKey {
				keyless[path[strings.LastIndex(path, "/")+1:]] = true
			}
		}
	}
	guide, err := os.ReadFile("orders-api.md")
	require.NoError(t, err)
	var mapped []operation
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /v1/[^`]+)` \\| (\\w+) \\|").FindAllSubmatch(guide, -1) {
		mapped = append(mapped, operation{string(row[1]), string(row[2])})
	}
	require.ElementsMatch(t, served, mapped)
	require.Equal(t, map[string]bool{"replay": true, "retry": true}, keyless, "the last sentence of the map")
}
