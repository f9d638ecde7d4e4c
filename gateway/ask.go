package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
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

// basicCall asks for path with the source's access token as "user:password", or
// as the user alone (RFC 7617).
func basicCall(s Source, path string) Call {
	credentials := s.AccessToken
	if !strings.Contains(credentials, ":") {
		credentials += ":"
	}
	return Call{Path: path, Header: http.Header{
		"Accept":        {"application/json"},
		"Authorization": {basicHeader(credentials)},
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
// the id that was asked for.
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

// isAbout checks that the member of v called name is the id of o, letter by
// letter: an API that takes ids in any case must not make several payments of one.
func isAbout(o Object, v value, name string) error {
	top, err := v.members([]string{name})
	if err != nil {
		return parseError("shape", "the answer %v", err)
	}
	if id, ok := top.get(name).name(); !ok || id != o.ID {
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

// registers are what a snapshot says of a payment: all that is known of it.
type registers struct {
	phase    order.Status
	amount   order.Amount // the payment's own
	captured bool         // all of it was
	refunded int64        // in all
	untold   bool         // what was refunded is not told

	// dispute is where the one dispute stands that the payment can have, about all
	// of it; "": the gateway tells of disputes in another way, or not at all.
	dispute order.Status
}

// snapshot sets every register of the payment at a version.
func (d *draft) snapshot(id string, r registers, version int64) {
	d.phase(r.phase, version)
	captured := order.Amount{Currency: r.amount.Currency}
	if r.captured {
		captured = r.amount
	} else if r.phase == order.StatusAuthorized {
		d.add(order.Fact{Kind: order.KindAuthorized}, r.amount)
	}
	d.add(order.Fact{Kind: order.KindCaptured, Seq: version}, captured)
	if !r.untold {
		d.add(order.Fact{Kind: order.KindRefunded, Seq: version}, order.Amount{Minor: r.refunded, Currency: r.amount.Currency})
	}
	f := order.Fact{Kind: order.KindDisputed, Ref: id, Status: r.dispute, Seq: version}
	switch r.dispute {
	case "":
	case order.StatusNone:
		d.Facts = append(d.Facts, f)
	default:
		d.add(f, r.amount)
	}
	d.Own = &r.amount
}

// askedState is a state in which an object can be that is asked about.
type askedState struct {
	status, meaning string
	phase           order.Status // of payments
	captured        bool
	dispute         order.Status
	item            order.Status // of refunds
}

type askedStates []askedState

// find returns the state of that name in any case of its letters, which APIs and
// their documentation write differently.
func (states askedStates) find(status string) (askedState, bool) {
	for _, s := range states {
		if strings.EqualFold(s.status, status) {
			return s, true
		}
	}
	return askedState{}, false
}

// types lists the states in the form of [Gateway].Types.
func (states askedStates) types(prefix string) []Type {
	types := make([]Type, len(states))
	for i, s := range states {
		types[i] = Type{prefix + s.status, s.meaning}
	}
	return types
}

// state reads a status and sets the type; ok is false if nothing more is to be
// read.
func (d *draft) state(prefix string, states askedStates, v value) (askedState, bool) {
	d.Type = unreadableType
	text, ok := v.kind()
	if !ok {
		d.fail("status is missing or no plain text")
		return askedState{}, false
	}
	s, known := states.find(text)
	if !known {
		d.Type, d.Ignored = prefix+text, UnknownType
		return s, false
	}
	d.Type = prefix + s.status
	return s, !d.broken()
}

// knownType reports whether the type is one of a gateway's.
func knownType(types []Type, name string) bool {
	return slices.ContainsFunc(types, func(t Type) bool { return t.Name == name })
}

// checkKey finds an API key of the other mode by how it begins.
func checkKey(live, test string) func(*Checker) {
	return func(c *Checker) {
		other := map[string]string{Live: test, Test: live}[c.s.Mode]
		if other != "" && strings.HasPrefix(c.s.AccessToken, other) {
			c.add("access_token", "is a key of the other mode (%s…)", other)
		}
	}
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
