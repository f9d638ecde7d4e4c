package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A decoder fills a Config from the tree of a YAML file and from environment
// variables. It goes on after a problem, which the decoder of go-yaml does not,
// and it knows for every setting where it stood.
type decoder struct {
	origin
	getenv   func(string) string
	asked    map[string]bool // variables that something was looked for in
	anchors  map[string]ast.Node
	vars     map[string]string // variable → the path that it set
	problems []error
}

// maxDepth ends the recursion that an alias inside its own anchor would be.
const maxDepth = 32

func newDecoder(file string, getenv func(string) string) *decoder {
	asked := make(map[string]bool)
	return &decoder{
		origin:  origin{file: file, places: make(map[string]place)},
		getenv:  func(name string) string { asked[name] = true; return getenv(name) },
		asked:   asked,
		anchors: make(map[string]ast.Node),
		vars:    make(map[string]string),
	}
}

// input is a piece of a configuration: a node of the file, the text of a
// variable, or (both nil) nothing, in which only variables may stand.
type input struct {
	node ast.Node
	text *string // of a variable, as it stands
	at   place
}

func (in input) none() bool { return in.node == nil && in.text == nil }

func (d *decoder) problem(at place, path, format string, args ...any) {
	d.problems = append(d.problems, newProblem(at, path, fmt.Sprintf(format, args...)))
}

// unreadable is a problem that leaves the setting without its value.
func (d *decoder) unreadable(at place, path, format string, args ...any) {
	d.problem(at, path, format, args...)
	d.bad = append(d.bad, path)
}

// parse reads a whole file. It reports whether there is anything to decode.
func (d *decoder) parse(data []byte) (input, bool) {
	whole := place{name: d.file}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		d.syntax(whole, "", err)
		return input{}, false
	}
	docs := slices.DeleteFunc(file.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(docs) > 1 {
		d.problem(whole, "", "holds %d YAML documents; keep one", len(docs))
		return input{}, false
	}
	if len(docs) == 0 {
		return input{at: whole}, true
	}
	return input{node: docs[0].Body, at: whole}, true
}

// syntax reports what the parser says, without the lines that it quotes: a
// secret may stand there.
func (d *decoder) syntax(at place, path string, err error) {
	var located yaml.Error
	if !errors.As(err, &located) {
		d.problem(at, path, "is not YAML")
		return
	}
	if tk := located.GetToken(); at.line == 0 && at.name == d.file && tk != nil && tk.Position != nil {
		at.line, at.col = tk.Position.Line, tk.Position.Column
	}
	d.problem(at, path, "is not YAML: %s", located.GetMessage())
}

func (d *decoder) config(c *Config, root input) {
	d.value(reflect.ValueOf(c).Elem(), root, "", 0)
}

var durationType = reflect.TypeFor[time.Duration]()

// value sets v from the input and from the variables of path and of what is
// below it; it reports whether anything was set.
func (d *decoder) value(v reflect.Value, in input, path string, depth int) bool {
	in = d.override(v.Type(), in, path)
	in.node = d.resolve(in.node, 0)
	if depth > maxDepth {
		d.unreadable(in.at, path, "is nested too deeply")
		return false
	}
	if !in.none() {
		d.places[path] = in.at
	}
	switch {
	case v.Type() == durationType:
		return d.scalar(v, in, path, setDuration)
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		set := d.value(fresh.Elem(), in, path, depth+1)
		if set {
			v.Set(fresh)
		}
		return set
	case v.Kind() == reflect.Struct:
		return d.structure(v, in, path, depth)
	case v.Kind() == reflect.Map:
		return d.table(v, in, path, depth)
	case v.Kind() == reflect.Slice:
		return d.list(v, in, path, depth)
	case v.Kind() == reflect.String:
		return d.scalar(v, in, path, func(v reflect.Value, s string) error { v.SetString(s); return nil })
	case v.Kind() == reflect.Bool:
		return d.scalar(v, in, path, setBool)
	case v.Kind() == reflect.Int64:
		return d.scalar(v, in, path, setBytes)
	case v.Kind() == reflect.Int:
		return d.scalar(v, in, path, setInt)
	default:
		panic(fmt.Sprintf("config: %s has the type %s, which cannot be read", path, v.Type()))
	}
}

// override replaces the input by the variable of this path, if that is set.
func (d *decoder) override(t reflect.Type, in input, path string) input {
	if path == "" {
		return in
	}
	name := Variable(path)
	text := d.getenv(name)
	if text == "" {
		return in
	}
	at := place{name: name}
	if other, taken := d.vars[name]; taken && other != path {
		d.problem(at, path, "is the variable of %s too; set these two in the file", other)
		return in
	}
	d.vars[name] = path
	if isScalar(t) {
		return input{text: &text, at: at}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return input{text: &text, at: at} // a list with commas
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.syntax(at, path, err)
		return in
	}
	return input{node: file.Docs[0].Body, at: at}
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	default:
		return false
	}
}

// resolve looks through anchors, aliases, tags and null.
func (d *decoder) resolve(node ast.Node, depth int) ast.Node {
	if depth > maxDepth {
		return nil
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		d.anchors[n.Name.GetToken().Value] = n.Value
		return d.resolve(n.Value, depth+1)
	case *ast.AliasNode:
		return d.resolve(d.anchors[n.Value.GetToken().Value], depth+1)
	case *ast.TagNode:
		return d.resolve(n.Value, depth+1)
	case *ast.NullNode:
		return nil // a key without a value is a key that is not there
	case *ast.CommentGroupNode:
		return nil
	default:
		return node
	}
}

// inside is the place of a node that stands within in. A variable has no
// lines: the whole variable is the place.
func (in input) inside(node ast.Node) place {
	at := in.at
	if tk := node.GetToken(); tk != nil && tk.Position != nil && (at.line != 0 || !strings.HasPrefix(at.name, prefix)) {
		at.line, at.col = tk.Position.Line, tk.Position.Column
	}
	return at
}

// entry is one key of a mapping with its value.
type entry struct {
	key string
	in  input
}

// entries returns the keys of a mapping in their order, those merged by <<
// first, so that the mapping's own win.
func (d *decoder) entries(in input, path string, depth int) []entry {
	if in.none() {
		return nil
	}
	mapping, ok := in.node.(ast.MapNode)
	if !ok {
		d.unreadable(in.at, path, "must hold keys with values, not %s", kindOf(in))
		return nil
	}
	var merged, own []entry
	for iter := mapping.MapRange(); iter.Next(); {
		key := iter.Key()
		at := in.inside(key)
		if key.IsMergeKey() {
			if depth <= maxDepth {
				merged = append(merged, d.entries(input{node: d.resolve(iter.Value(), 0), at: at}, path, depth+1)...)
			}
			continue
		}
		own = append(own, entry{key: key.GetToken().Value, in: input{node: iter.Value(), at: at}})
	}
	merged = slices.DeleteFunc(merged, func(m entry) bool {
		return slices.ContainsFunc(own, func(o entry) bool { return o.key == m.key })
	})
	return append(merged, own...)
}

func (d *decoder) structure(v reflect.Value, in input, path string, depth int) bool {
	fields := fieldsOf(v.Type())
	given := make(map[string]input)
	for _, e := range d.entries(in, path, depth) {
		at := join(path, e.key)
		if _, known := fields[e.key]; !known {
			d.problem(e.in.at, path, "unknown key %q%s", e.key, suggest(e.key, fields))
			continue
		}
		d.places[at] = e.in.at
		given[e.key] = e.in
	}
	set := !in.none()
	for i := range v.NumField() {
		name := fieldName(v.Type().Field(i))
		if name == "" {
			continue
		}
		field := given[name]
		if field.at.name == "" {
			field.at = in.at
		}
		if d.value(v.Field(i), field, join(path, name), depth+1) {
			set = true
		}
	}
	return set
}

// table reads a mapping whose keys the user chooses.
func (d *decoder) table(v reflect.Value, in input, path string, depth int) bool {
	set := false
	for _, e := range d.entries(in, path, depth) {
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.places[join(path, e.key)] = e.in.at
		d.value(item, e.in, join(path, e.key), depth+1)
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(v.Type().Key()), item)
		set = true
	}
	return set
}

func (d *decoder) list(v reflect.Value, in input, path string, depth int) bool {
	if in.none() {
		return false
	}
	var items []input
	if in.text != nil {
		for part := range strings.SplitSeq(*in.text, ",") {
			part = strings.TrimSpace(part)
			items = append(items, input{text: &part, at: in.at})
		}
	} else {
		seq, ok := in.node.(*ast.SequenceNode)
		if !ok {
			d.unreadable(in.at, path, "must be a list, not %s", kindOf(in))
			return false
		}
		for _, node := range seq.Values {
			items = append(items, input{node: node, at: in.inside(node)})
		}
	}
	fresh := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(fresh.Index(i), item, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
	v.Set(fresh)
	return true
}

// scalar reads one value. What set says about a text is reported without the
// text, if that came from somewhere else: it may be a secret.
func (d *decoder) scalar(v reflect.Value, in input, path string, set func(reflect.Value, string) error) bool {
	if in.none() {
		return false
	}
	text, ok := d.text(in, path)
	if !ok {
		return false
	}
	if err := set(v, text); err != nil {
		d.unreadable(in.at, path, "%v", err)
		return false
	}
	return true
}

// text returns the characters of a scalar, with ${NAME} and file: replaced.
func (d *decoder) text(in input, path string) (string, bool) {
	if in.text != nil {
		return d.expand(*in.text, in.at, path, false)
	}
	switch n := in.node.(type) {
	case *ast.LiteralNode:
		return d.expand(n.Value.Value, in.at, path, true)
	case *ast.StringNode:
		return d.expand(n.Value, in.at, path, true)
	case ast.ScalarNode:
		// Numbers and booleans as they stand: a hexadecimal digest of digits
		// alone, or a secret with leading zeros, must not be changed.
		return n.GetToken().Value, true
	default:
		d.unreadable(in.at, path, "must be one value, not %s", kindOf(in))
		return "", false
	}
}

func kindOf(in input) string {
	if in.text != nil {
		return "one value"
	}
	switch in.node.(type) {
	case ast.MapNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "one value"
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
