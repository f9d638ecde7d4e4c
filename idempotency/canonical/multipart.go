package canonical

import (
	"bytes"
	"strconv"
	"strings"
)

// multipart writes the parts of a multipart/form-data body (RFC 7578) so that the boundary does not matter: for every part a line
// for every header, sorted: its name in lower case, a colon, and its value as a canonical JSON string; then the number of its bytes
// on a line, its bytes, and a line feed. The values of Content-Disposition and Content-Type are first written as header.String does.
//
// It is strict where readers differ: lines end in CRLF, nothing but a line break stands before the first boundary and behind the
// last, every part is form-data and has a name, and no header comes twice.
func multipart(boundary string, body []byte) ([]byte, error) {
	refuse := func(at int) ([]byte, error) { return nil, &SyntaxError{Offset: at, Reason: MalformedMultipart} }
	if !boundaryAllowed(boundary) {
		return refuse(0)
	}
	delimiter := []byte("\r\n--" + boundary)
	i := len(delimiter)
	if !bytes.HasPrefix(body, delimiter) {
		if i -= 2; !bytes.HasPrefix(body, delimiter[2:]) {
			return refuse(0)
		}
	}
	to := make([]byte, 0, len(body))
	for {
		// i is behind a boundary.
		last := bytes.HasPrefix(body[i:], []byte("--"))
		if last {
			i += 2
		}
		for i < len(body) && (body[i] == ' ' || body[i] == '\t') {
			i++
		}
		switch {
		case last && (i == len(body) || string(body[i:]) == "\r\n"):
			return to, nil
		case last || !bytes.HasPrefix(body[i:], []byte("\r\n")):
			return refuse(i)
		}
		i += 2
		head, content, ok := bytes.Cut(body[i:], []byte("\r\n\r\n"))
		if !ok {
			return refuse(len(body))
		}
		if to, ok = appendHeaders(to, head); !ok {
			return refuse(i)
		}
		size := bytes.Index(content, delimiter)
		if size < 0 {
			return refuse(len(body))
		}
		to = append(strconv.AppendInt(to, int64(size), 10), '\n')
		to = append(append(to, content[:size]...), '\n')
		i = len(body) - len(content) + size + len(delimiter)
	}
}

// boundaryAllowed reports whether it is one (RFC 2046, section 5.1.1).
func boundaryAllowed(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("'()+_,-./:=? ", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 70 && s[len(s)-1] != ' '
}

// appendHeaders writes the headers of a part.
func appendHeaders(to, head []byte) ([]byte, bool) {
	if len(head) > maxHeader {
		return nil, false
	}
	var fields []field
	for line := range strings.SplitSeq(string(head), "\r\n") {
		f, ok := parseField(line)
		if !ok || len(fields) == maxFields {
			return nil, false
		}
		fields = append(fields, f)
	}
	if !sortFields(fields) {
		return nil, false
	}
	disposed := false
	for _, f := range fields {
		disposed = disposed || f.name == "content-disposition"
		to = append(append(to, f.name...), ':')
		to = append(appendString(to, f.value), '\n')
	}
	return to, disposed
}

func parseField(line string) (field, bool) {
	name, value, ok := strings.Cut(line, ":")
	f := field{strings.ToLower(name), strings.Trim(value, " \t")}
	if !ok || !token(f.name) || strings.ContainsAny(value, "\r\n\x00") {
		return field{}, false
	}
	if f.name == "content-disposition" || f.name == "content-type" {
		h, ok := parseHeader(f.value)
		if _, named := h.param("name"); !ok || f.name == "content-disposition" && (h.name != "form-data" || !named) {
			return field{}, false
		}
		f.value = h.String()
	}
	return f, true
}
