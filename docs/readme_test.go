// Package docs_test checks the documents: what they name exists, and what they show works.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documents returns every Markdown file of the project, as paths from here.
func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			docs = append(docs, path)
		}
		return nil
	}))
	require.NotEmpty(t, docs)
	return docs
}

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)

// Every link of a document to a file of the project leads to one.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(l[2], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(doc), target))
			require.NoError(t, err, "%s links to %s", doc, l[2])
		}
	}
}

var testName = regexp.MustCompile(`^((?:Test|Fuzz|Benchmark)\w*)(?:/(.+))?$`)

// A test that a document links to, as [TestName](file_test.go) or [TestName/Subtest](file_test.go), is in that file.
func TestProofsExist(t *testing.T) {
	t.Parallel()
	proofs := 0
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			name := testName.FindStringSubmatch(strings.Trim(l[1], "`"))
			if name == nil {
				continue
			}
			proofs++
			path := filepath.Join(filepath.Dir(doc), l[2])
			src, err := os.ReadFile(path)
			require.NoError(t, err, "%s: %s", doc, l[0])
			require.Contains(t, functions(t, path), name[1], "%s: %s", doc, l[0])
			if name[2] != "" {
				require.Contains(t, string(src), `"`+name[2]+`"`, "%s: %s", doc, l[0])
			}
		}
	}
	require.Greater(t, proofs, 10)
}

func functions(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var names []string
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// The README stays short enough to be read.
func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(text), "\n"), 200)
}

// Every command that the README lists is one of the program, and the other way round.
func TestREADMENamesEveryCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "../cmd/paidonce/run.go", nil, 0)
	require.NoError(t, err)
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "commands" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if field.Tag == nil || !strings.Contains(field.Tag.Value, `cmd:""`) || strings.Contains(field.Tag.Value, "hidden") {
				continue
			}
			found++
			name := strings.ToLower(field.Names[0].Name)
			if m := regexp.MustCompile(`name:"([^"]+)"`).FindStringSubmatch(field.Tag.Value); m != nil {
				name = m[1]
			}
			require.Contains(t, string(text), "`"+name, "the README does not list paidonce %s", name)
		}
		return false
	})
	require.Greater(t, found, 10)
}
