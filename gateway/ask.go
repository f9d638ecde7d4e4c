package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

// bearerCall asks for path with the source's access token (RFC 6750).
func bearerCall(s Source, path string) Call {
	return Call{Path: path, Header: http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + s.AccessToken},
	}}
}

// basicCall asks for path with the source's access token as "user:password".
func basicCall(s Source, path string) Call {
	return Call{Path: path, Header: http.Header{
		"Accept":        {"application/json"},
		"Authorization": {basicHeader(s.AccessToken)},
	}}
}

// errNoObject is the answer to an object whose kind or id is none that the
// gateway has. Objects never names one; what is stored may.
func errNoObject(o Object) error {
	return parseError("shape", "there is no %s to ask about with such an id", o.Kind)
}

// askable reports whether the id of an object looks like its gateway's.
func askable(o Object, kinds map[string]*regexp.Regexp) bool {
	pattern := kinds[o.Kind]
	return pattern != nil && pattern.MatchString(o.ID)
}

// escaped is an id as one segment of a path.
func escaped(o Object) string { return url.PathEscape(o.ID) }

// readAnswer reads what the API answered about o: an object whose member id is
// the id that was asked for, in any case of its letters.
func readAnswer(o Object, body []byte) (value, error) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return value{}, fault
	}
	if err := isAbout(o, doc, "id"); err != nil {
		return value{}, err
	}
	return doc, nil
}

// isAbout checks that the member of v called name is the id of o.
func isAbout(o Object, v value, name string) error {
	top, err := v.members([]string{name})
	if err != nil {
		return parseError("shape", "the answer %v", err)
	}
	if id, ok := top.get(name).name(); !ok || !strings.EqualFold(id, o.ID) {
		return parseError("shape", "the answer is not about the %s that was asked about", o.Kind)
	}
	return nil
}

// updated is the version of a snapshot: when the object last changed, in
// milliseconds, or if it does not say so, when the call began.
func updated(at time.Time, a Answer) int64 {
	if at.IsZero() {
		at = a.Started
	}
	return max(at.UnixMilli(), 0)
}

// flagMode marks the facts as a misfit if the answer says that it is of the
// other mode. An answer that says nothing is of the mode of the credentials.
func (d *draft) flagMode(s Source, live value) {
	if s.Mode == Live && live.isFalse() || s.Mode != Live && live.isTrue() {
		misfit(&d.Event, order.MisfitMode)
	}
}

// idValue is an id as the gateway writes it: a number if it has digits only.
func idValue(id string) any {
	if isDigits(id) && !strings.HasPrefix(id, "0") {
		return number(id)
	}
	return id
}

// number is a JSON number of these digits.
type number string

// MarshalJSON writes the digits as they are.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// digits makes n digits out of what they are derived from, the first not 0.
func digits(n int, from ...string) string {
	var out strings.Builder
	for _, c := range derive(n, from...) {
		switch {
		case c >= 'A':
			c = '1' + (c - 'A')
		case c == '0' && out.Len() == 0:
			c = '9'
		}
		out.WriteRune(c)
	}
	return out.String()
}

// textValue is a JSON text; "" is an absent one.
func textValue(text string) value {
	if text == "" {
		return value{}
	}
	return value{gjson.Result{Type: gjson.String, Str: text}}
}

// integerValue is a JSON number.
func integerValue(n int64) value {
	raw := strconv.FormatInt(n, 10)
	return value{gjson.Result{Type: gjson.Number, Raw: raw}}
}
