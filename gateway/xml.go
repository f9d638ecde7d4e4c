package gateway

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// parseXML reads an XML document whose root element is called root, as the JSON
// that says the same, so that it is read by pointers as all others: an element is
// the text in it; with elements in it, an object of them (two of one name are a
// key that occurs twice); with type="array", a list of them; with nil="true",
// null. A document with a DTD is refused, and so is every entity but XML's own
// five.
func parseXML(text []byte, root string) (value, *ParseError) {
	if !utf8.Valid(text) {
		return value{}, parseError("not_utf8", "the document is not UTF-8")
	}
	x := xmlReader{dec: xml.NewDecoder(bytes.NewReader(text))}
	if err := x.document(root); err != nil {
		if errors.Is(err, errDepth) {
			return value{}, parseError("too_deep", "the document nests deeper than %d", maxDepth)
		}
		return value{}, parseError("not_xml", "the document of %d bytes is not XML of the form that is wanted", len(text))
	}
	return value{gjson.ParseBytes(x.out.Bytes())}, nil
}

var (
	errDepth = errors.New("too deep")
	errXML   = errors.New("not that XML")
)

type xmlReader struct {
	dec *xml.Decoder
	out bytes.Buffer
}

func (x *xmlReader) document(root string) error {
	for seen := false; ; {
		token, err := x.dec.Token()
		if errors.Is(err, io.EOF) && seen {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if seen || token.Name.Space != "" || token.Name.Local != root {
				return errXML
			}
			seen = true
			if err := x.element(token, 1); err != nil {
				return err
			}
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 {
				return errXML
			}
		case xml.Directive:
			return errXML
		}
	}
}

// element writes an element whose start was read, up to its end.
func (x *xmlReader) element(start xml.StartElement, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	array, null := false, false
	for _, a := range start.Attr {
		array = array || a.Name.Local == "type" && a.Value == "array"
		null = null || a.Name.Local == "nil" && a.Value == "true"
	}
	open, end := byte('{'), byte('}')
	if array {
		open, end = '[', ']'
	}
	var text strings.Builder
	for n := 0; ; {
		token, err := x.dec.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Space != "" {
				return errXML
			}
			if n++; n == 1 {
				x.out.WriteByte(open)
			} else {
				x.out.WriteByte(',')
			}
			if !array {
				x.text(token.Name.Local)
				x.out.WriteByte(':')
			}
			if err := x.element(token, depth+1); err != nil {
				return err
			}
		case xml.CharData:
			text.Write(token)
		case xml.Directive:
			return errXML
		case xml.EndElement:
			switch {
			case n > 0:
				x.out.WriteByte(end)
			case null:
				x.out.WriteString("null")
			case array:
				x.out.WriteString("[]")
			default:
				x.text(text.String())
			}
			return nil
		}
	}
}

func (x *xmlReader) text(s string) {
	quoted, err := json.Marshal(s)
	if err != nil {
		quoted = []byte(`""`) // a string always marshals
	}
	x.out.Write(quoted)
}

// writeXML is the reverse of parseXML, for samples. The elements of a list are
// called by its name without the s.
func writeXML(out *bytes.Buffer, name string, v gjson.Result) {
	out.WriteString("<" + name)
	switch {
	case v.Type == gjson.Null:
		out.WriteString(` nil="true"/>`)
		return
	case v.IsArray():
		out.WriteString(` type="array">`)
		for _, element := range v.Array() {
			writeXML(out, strings.TrimSuffix(name, "s"), element)
		}
	case v.IsObject():
		out.WriteString(">")
		v.ForEach(func(key, member gjson.Result) bool {
			writeXML(out, key.Str, member)
			return true
		})
	default:
		out.WriteString(">")
		_ = xml.EscapeText(out, []byte(v.String())) // a buffer takes everything
	}
	out.WriteString("</" + name + ">")
}
