package signature

import (
	"net/url"
	"strings"
)

// maxFields is the most fields a form may have. Gateways send up to a hundred.
const maxFields = 1000

// parseForm reads an application/x-www-form-urlencoded body in the one way in
// which everybody reads it: name=value with & between, %XX and + decoded. It
// refuses what readers differ on: a name that occurs twice, an element without a
// name or an equals sign, a semicolon (once a separator), a broken escape.
func parseForm(body string) (map[string]string, *Error) {
	if n := strings.Count(body, "&") + 1; n > maxFields {
		return nil, refuse(Malformed, "the form has too many fields")
	}
	fields := map[string]string{}
	for elem := range strings.SplitSeq(body, "&") {
		name, value, ok := strings.Cut(elem, "=")
		if !ok || name == "" || strings.IndexByte(elem, ';') >= 0 {
			return nil, refuse(Malformed, "the body is not a form")
		}
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, refuse(Malformed, "the form has a broken escape")
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, refuse(Malformed, "the form has a broken escape")
		}
		if _, twice := fields[name]; twice {
			return nil, refuse(Ambiguous, "a field of the form occurs twice")
		}
		fields[name] = value
	}
	return fields, nil
}

// setField returns the form body with the field name replaced, or added at its
// end. All other bytes stay as they are. The body is one that parseForm reads.
func setField(body, name, value string) string {
	elem := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	elems := strings.Split(body, "&")
	for i, e := range elems {
		n, _, _ := strings.Cut(e, "=")
		if decoded, err := url.QueryUnescape(n); err == nil && decoded == name {
			elems[i] = elem
			return strings.Join(elems, "&")
		}
	}
	return body + "&" + elem
}

// queryValue returns the value that name has in a raw query, "" if it is not in
// it. It is Ambiguous if there are two, and Malformed if it cannot be decoded.
func queryValue(query, name string) (string, *Error) {
	var found string
	n := 0
	for elem := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(elem, "=")
		key, err := url.QueryUnescape(key)
		if err != nil || key != name {
			continue
		}
		if n++; n > 1 {
			return "", refuse(Ambiguous, "the query has more than one "+name)
		}
		if found, err = url.QueryUnescape(value); err != nil {
			return "", refuse(Malformed, name+" has a broken escape")
		}
	}
	return found, nil
}
