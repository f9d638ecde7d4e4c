package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Object names one thing at a gateway that its API can be asked about.
type Object struct {
	Kind string // "payment": lower-case letters, digits, _ and -
	ID   string // as the gateway writes it
}

// String is "kind/id", the name under which an object is stored.
func (o Object) String() string { return o.Kind + "/" + o.ID }

// ParseObject reads what String writes.
func ParseObject(text string) (Object, bool) {
	kind, id, ok := strings.Cut(text, "/")
	return Object{kind, id}, ok && kind != "" && isName(id)
}

// Fetch says how a gateway's API is asked. Its functions are pure: the call is
// made by somebody else.
type Fetch struct {
	// Live and Test are the base URLs of the API, without a slash at the end:
	// "https://api.mercadopago.com". The source's api_url takes their place. A
	// {shop} in them is the source's option shop.
	Live, Test string

	// Always says that every fact comes from the API: the gateway's Types are
	// states that an object can be in, and its deliveries carry no fact.
	Always bool

	// Objects returns what a verified delivery says has to be asked about, in
	// the order of the payload; none if it is of a kind that moves no money. Of
	// a gateway that signs nothing this is all that is read of the body, so ids
	// must match what the gateway's ids look like, in full. The error is a
	// [*ParseError]. nil: no delivery names any; the API is asked only by those who
	// ask by themselves (About).
	Objects func(Source, Delivery) ([]Object, error)

	// About returns what to ask about to learn how a payment stands that is known
	// under these ids; none if no id of it is one that can be asked about. nil: as
	// if it returned none.
	About func(s Source, ids []string) []Object

	// Call makes the request about an object. Ids in it are escaped, credentials
	// come from the source (access_token, client_id …).
	Call func(Source, Object) (Call, error)

	// Parse maps what the API answered to what the object is now. Callers use
	// [Gateway.Fetched]. ID may be empty: it is made of the object and its facts.
	// The error is a [*ParseError].
	Parse func(Source, Object, Answer) ([]order.Event, error)

	// Sample makes what the API answers about the object of a sample request in
	// the state that its Type names, and says which object that is.
	Sample func(SampleRequest) (Object, []byte, error)
}

// Call is one HTTP request to a gateway's API.
type Call struct {
	Method string // default GET
	Path   string // escaped, with its query; begins with a slash
	Header http.Header
	Body   []byte

	// Grant, if not nil, is a call to make before (once for as long as what it
	// gives is valid): its answer is that of RFC 6749, section 5.1, and the
	// access_token in it goes with this call as "Authorization: Bearer …".
	Grant *Call
}

// Answer is the answer 200 to a [Call].
type Answer struct {
	Body []byte

	// Started is when the call began, by the database's clock: what orders the
	// snapshots of gateways that give them no version or time of their own.
	Started time.Time
}

// Announces reports whether deliveries of the gateway may name objects that have to be asked about.
func (g *Gateway) Announces() bool { return g.Fetch != nil && g.Fetch.Objects != nil }

// Objects returns what a verified delivery says has to be asked about; see
// [Fetch].Objects. None for gateways whose deliveries name nothing ([Gateway.Announces]).
func (g *Gateway) Objects(s Source, d Delivery) ([]Object, error) {
	if !g.Announces() {
		return nil, nil
	}
	objects, err := g.Fetch.Objects(s, d)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if !isName(o.ID) {
			return nil, parseError("no_event_id", "the id of a %s is no plain text", o.Kind)
		}
	}
	return objects, nil
}

// BaseURL is where the source's API is asked, without a slash at the end.
func (f *Fetch) BaseURL(s Source) string { return baseURL(s, f.Live, f.Test) }

func baseURL(s Source, live, test string) string {
	base := s.APIURL
	switch {
	case base != "":
	case s.Mode == Live:
		base = live
	default:
		base = test
	}
	return strings.TrimSuffix(strings.ReplaceAll(base, "{shop}", s.Shop), "/")
}

// Fetched maps what the API answered about an object to its events. There is at
// least one; each has the form that [Gateway.Events] promises. An event whose id
// Parse left empty gets "kind/id:" and a hash of what it says, so that the same
// state is the same event however often it is read.
func (g *Gateway) Fetched(s Source, o Object, a Answer) ([]order.Event, error) {
	events, err := g.Fetch.Parse(s, o, a)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, parseError("shape", "the answer says nothing about the %s", o.Kind)
	}
	realm := g.Realm(s)
	for i := range events {
		ev := &events[i]
		made := ev.ID == ""
		if made {
			ev.ID = "pending" // what it is made of is known once the event is complete
		}
		if err := finish(ev, s, realm); err != nil {
			return nil, err
		}
		if !made {
			continue
		}
		ev.ID = fetchedID(o, *ev)
		if err := finishID(ev); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// fetchedID is the id of a fetched state. The time of the event is no part of it.
func fetchedID(o Object, ev order.Event) string { return o.String() + ":" + digest(ev) }

// Digest is a hash of what fetched events say, leaving versions and times out:
// two answers with one Digest tell the same state. It goes by the events as
// [Gateway.Fetched] returns them.
func Digest(events []order.Event) string {
	all := make([]string, len(events))
	for i, ev := range events {
		ev.Facts = slices.Clone(ev.Facts)
		for j := range ev.Facts {
			ev.Facts[j].Seq = 0
		}
		all[i] = digest(ev)
	}
	return strings.Join(all, " ")
}

// digest is a hash of what an event says, without its id and time.
func digest(ev order.Event) string {
	said, err := json.Marshal(struct {
		Type      string
		Payment   []string
		Reference string
		Facts     []order.Fact
		Own       *order.Amount
		Ignored   string
		Broken    string
		Renewal   *order.Renewal `json:",omitempty"`
	}{ev.Type, ev.Payment, ev.Reference, ev.Facts, ev.Own, ev.Ignored, ev.Broken, ev.Renewal})
	if err != nil {
		panic(fmt.Sprintf("gateway: facts do not marshal: %v", err)) // texts and numbers do
	}
	sum := sha256.Sum256(said)
	return hex.EncodeToString(sum[:12])
}

// Headers under which a fetched answer is stored with its bytes, so that it can
// be read again.
const (
	HeaderObject  = "Paidonce-Object"
	HeaderStarted = "Paidonce-Started" // RFC 3339 with nanoseconds
)

// Read maps stored bytes: a delivery as it came, or what the API answered, which
// the headers above tell. It is [Gateway.Events], [Gateway.Fetched] or [Gateway.Judge].
func (g *Gateway) Read(s Source, d Delivery) ([]order.Event, error) {
	if g.Calls != nil && d.Header.Get(HeaderMovement) != "" {
		return g.readReply(s, d)
	}
	text := d.Header.Get(HeaderObject)
	if text == "" || g.Fetch == nil {
		return g.Events(s, d)
	}
	o, ok := ParseObject(text)
	started, err := time.Parse(time.RFC3339Nano, d.Header.Get(HeaderStarted))
	if !ok || err != nil {
		return nil, parseError("shape", "the stored answer does not say what it is about")
	}
	return g.Fetched(s, o, Answer{Body: d.Body, Started: started})
}
