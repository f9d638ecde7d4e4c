package gateway

import (
	"net/url"
)

// formType is the content type of deliveries that are forms.
const formType = "application/x-www-form-urlencoded"

// formField returns a field of a form; "" if it is not there. It fails if it is
// there twice, or if the body is no form: the verifier may have read another.
func formField(body []byte, name string) (string, *ParseError) {
	form, err := url.ParseQuery(string(body))
	switch {
	case err != nil:
		return "", parseError("shape", "the body is not a form")
	case len(form[name]) > 1:
		return "", parseError("duplicate_key", "the form has %s twice", name)
	}
	return form.Get(name), nil
}

// formOf writes a form of one field.
func formOf(name, text string) []byte {
	return []byte(url.Values{name: {text}}.Encode())
}

// formFields returns fields of a form by their names; "" for one that is not there.
// It fails if one of them is there twice, or if the body is no form.
func formFields(body []byte, names ...string) (map[string]string, *ParseError) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, parseError("shape", "the body is not a form")
	}
	fields := make(map[string]string, len(names))
	for _, name := range names {
		if len(form[name]) > 1 {
			return nil, parseError("duplicate_key", "the form has %s twice", name)
		}
		fields[name] = form.Get(name)
	}
	return fields, nil
}
