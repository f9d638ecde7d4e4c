package signature_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainCompares are the comparisons of this package that are not in constant time
// and do not compare with a constant, and why each may be.
var plainCompares = map[string]string{
	"s.Name == name":                      "names of schemes",
	"strings.EqualFold(k.name, name)":     "names of keys, which every request tells",
	"strings.EqualFold(repeated, sig)":    "a header with the body of one request",
	"slices.Contains(paths, path)":        "names of properties",
	"decoded == name":                     "names of form fields",
	"key != name":                         "names of query parameters",
	"strings.TrimSpace(secret) != secret": "one secret with itself",
	"secret[len(secret)-1] == secret[0]":  "quotes around one secret",
	"s[i] != shape[i]":                    "a date with its shape",
	"v != w":                              "what the sender wrote under two names of one header",
	"strings.EqualFold(k, name)":          "names of headers",
	"l == label":                          "labels of a header",
	"label != k.label":                    "versions of signatures",
	"key == name":                         "keys of JSON members",
	"strings.EqualFold(key, name)":        "keys of JSON members",
}

// TestNoPlainCompare: no digest, token, password or secret is compared other than
// by equal, which takes constant time (case 065). Every comparison of two values
// that are not known at compile time must be named above.
func TestNoPlainCompare(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var sources []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			text, err := os.ReadFile(e.Name())
			require.NoError(t, err)
			sources = append(sources, string(text))
		}
	}
	require.NotEmpty(t, sources)
	found := compares(t, sources...)
	for _, c := range found {
		require.Contains(t, plainCompares, c, "compare digests and secrets with equal; name here what is neither")
	}
	for c := range plainCompares {
		require.Contains(t, found, c, "it is no longer in the source")
	}
}

// TestNoPlainCompareSees: the test above finds what it is for.
func TestNoPlainCompareSees(t *testing.T) {
	t.Parallel()
	const source = `package p
		const limit = 3
		func f(a, want []byte, s, secret string, n int, m map[string]int, x [32]byte) {
			_ = s == secret
			_ = string(a) != string(want)
			_ = x == [32]byte(want)
			_ = bytes.Equal(a, want)
			_ = strings.EqualFold(s, secret)
			_ = bytes.Compare(a, want) == 0
			_ = slices.Equal(a, want)
			_ = reflect.DeepEqual(a, want)
			_ = strings.HasPrefix(s, secret)
			switch s {
			case secret:
			case "fine":
			}
			_ = s == "" || n == limit || a == nil || len(a) != len(want) || s[0] == 'x'
		}`
	require.ElementsMatch(t, []string{
		"s == secret", "string(a) != string(want)", "x == [32]byte(want)", "bytes.Equal(a, want)",
		"strings.EqualFold(s, secret)", "bytes.Compare(a, want)", "slices.Equal(a, want)",
		"reflect.DeepEqual(a, want)", "strings.HasPrefix(s, secret)", "s == secret",
	}, compares(t, source))
}

// compares lists the comparisons in sources, files of one package, that are not
// with a constant.
func compares(t *testing.T, sources ...string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	constants := map[string]bool{"nil": true, "true": true, "false": true}
	var files []*ast.File
	for _, s := range sources {
		f, err := parser.ParseFile(fset, "", s, 0)
		require.NoError(t, err)
		files = append(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						constants[name.Name] = true
					}
				}
			}
			return true
		})
	}
	text := func(n ast.Node) string {
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, fset, n))
		return b.String()
	}
	constant := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.BasicLit:
			return true
		case *ast.Ident:
			return constants[e.Name]
		case *ast.SelectorExpr: // of another package
			return e.Sel.IsExported() && strings.HasPrefix(text(e), "ed25519.")
		case *ast.CallExpr:
			return text(e.Fun) == "len"
		case *ast.CompositeLit:
			return len(e.Elts) == 0
		}
		return false
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && !constant(n.X) && !constant(n.Y) {
					found = append(found, text(n))
				}
			case *ast.SwitchStmt:
				if n.Tag == nil {
					return true
				}
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						if !constant(e) {
							found = append(found, text(n.Tag)+" == "+text(e))
						}
					}
				}
			case *ast.CallExpr:
				name := text(n.Fun)
				switch name {
				case "bytes.Equal", "bytes.EqualFold", "bytes.Compare", "bytes.HasPrefix", "bytes.HasSuffix", "bytes.Contains",
					"strings.EqualFold", "strings.Compare", "strings.HasPrefix", "strings.HasSuffix", "strings.Contains",
					"slices.Equal", "slices.Compare", "slices.Contains", "reflect.DeepEqual", "cmp.Compare", "maps.Equal":
				default:
					return true
				}
				if strings.HasPrefix(name, "strings.") && len(n.Args) == 2 && constant(n.Args[1]) {
					return true // what everybody knows
				}
				found = append(found, text(n))
			}
			return true
		})
	}
	return found
}
