package scenario

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// lines finds where in a file a value stands.
type lines struct{ file *ast.File }

func newLines(data []byte) (lines, error) {
	file, err := parser.ParseBytes(data, 0)
	return lines{file}, err
}

// of returns the line of a path like steps[2].deliver[0].source, or of the
// nearest value around it.
func (l lines) of(path string) int {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(l.file); err == nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return 1
}
