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
		hidden := strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"
		// What documents are made of stands elsewhere than they do.
		part := d.Name() == "testdata" && strings.Contains(path, "internal")
		if d.IsDir() && path != ".." && (hidden || part) {
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

// commands returns the names of the program's commands, as cmd/paidonce declares them.
func commands(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../cmd/paidonce/run.go", nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "commands" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if field.Tag == nil || !strings.Contains(field.Tag.Value, `cmd:""`) || strings.Contains(field.Tag.Value, "hidden") {
				continue
			}
			name := strings.ToLower(field.Names[0].Name)
			if m := regexp.MustCompile(`name:"([^"]+)"`).FindStringSubmatch(field.Tag.Value); m != nil {
				name = m[1]
			}
			names = append(names, name)
		}
		return false
	})
	require.Greater(t, len(names), 10)
	return names
}

// The README lists every command, and no document shows one that there is not.
func TestCommands(t *testing.T) {
	t.Parallel()
	names := commands(t)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, name := range names {
		require.Regexp(t, "[`\\s(]"+name+"[`\\s]", string(readme), "the README does not list paidonce %s", name)
	}
	shown := regexp.MustCompile("(?m)(?:^[ $]*|`)paidonce ([a-z]+)")
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, names, m[1], "%s shows paidonce %s", doc, m[1])
		}
	}
}

// Settings that the README names are settings, and metrics that a document names are metrics.
func TestSettingsAndMetrics(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	reference, err := os.ReadFile("configuration.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "\n## Configuration\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	settings := 0
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([a-z_.{}]+)`").FindAllStringSubmatch(first, -1) {
			settings++
			require.Contains(t, string(reference), "| `"+m[1], "there is no setting %s", m[1])
		}
	}
	require.Greater(t, settings, 5)

	var source strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	}))
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(paidonce_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, source.String(), `"`+name[1]+`"`, "%s names the metric %s", doc, name[1])
		}
	}
}
