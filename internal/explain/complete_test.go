package explain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constants returns the values of the string constants of a package that keep accepts, by name. typ is the type that a
// declaration names, empty if none.
func constants(t *testing.T, dir string, keep func(name, typ, doc string) bool) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+entry.Name(), nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				typ := ""
				if id, ok := v.Type.(*ast.Ident); ok {
					typ = id.Name
				}
				for i, name := range v.Names {
					if i >= len(v.Values) || !keep(name.Name, typ, gen.Doc.Text()) {
						continue
					}
					if lit, ok := v.Values[i].(*ast.BasicLit); ok {
						found[name.Name], err = strconv.Unquote(lit.Value)
						require.NoError(t, err)
					}
				}
			}
		}
	}
	require.NotEmpty(t, found, dir)
	return found
}

func ofType(want string) func(name, typ, doc string) bool {
	return func(_, typ, _ string) bool { return typ == want }
}

// titles are the first words of a golden file's titles.
func titles(t *testing.T, name string, words int) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".golden")
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "=== "); ok {
			title, _, _ = strings.Cut(title, ",")
			fields := strings.Fields(title)
			found = append(found, strings.Join(fields[:min(words, len(fields))], " "))
		}
	}
	return found
}

// Every word that the code can store has a case in the golden files: a new outcome, reason, state, flag, effect or
// effect state fails here until somebody has said what it means.
func TestEveryWordHasASentence(t *testing.T) {
	t.Parallel()
	want := func(golden string, words int, have map[string]string, prefix string) {
		t.Helper()
		seen := titles(t, golden, words)
		for _, name := range slices.Sorted(maps.Keys(have)) {
			require.True(t, slices.ContainsFunc(seen, func(s string) bool {
				return s == have[name] || prefix != "" && strings.HasPrefix(s, prefix+" ") && strings.HasSuffix(s, " "+have[name])
			}), "%s (%q) has no case in testdata/%s.golden", name, have[name], golden)
		}
	}
	reasons := constants(t, "../../store", func(name, typ, _ string) bool { return typ == "" && strings.HasPrefix(name, "Reason") })
	for name, reason := range reasons {
		require.Condition(t, func() bool {
			return slices.ContainsFunc(titles(t, "events", 2), func(s string) bool { return strings.HasSuffix(s, " "+reason) })
		}, "%s (%q) has no case in testdata/events.golden", name, reason)
	}
	ignored := constants(t, "../../gateway", func(_, typ, doc string) bool {
		return typ == "" && strings.Contains(doc, "Reasons of events that carry no fact")
	})
	want("events", 2, ignored, "ignored")
	want("events", 1, constants(t, "../../store", ofType("Outcome")), "")
	want("states", 1, constants(t, "../../order", ofType("State")), "")
	states := constants(t, "../../order", ofType("EffectState"))
	want("effects", 1, states, "")
	effects := constants(t, "../../order", ofType("Effect"))
	delete(effects, "EffectNone")
	delete(effects, "EffectFulfil") // the effect of the first cases
	want("effects", 1, effects, "")
	kinds := constants(t, "../../order", ofType("Kind"))
	want("facts", 1, kinds, "")
	seen := titles(t, "facts", 4)
	for name, status := range constants(t, "../../order", ofType("Status")) {
		require.True(t, slices.ContainsFunc(seen, func(s string) bool { return slices.Contains(strings.Fields(s), status) }),
			"%s (%q) has no case in testdata/facts.golden", name, status)
	}
}
