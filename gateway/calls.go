package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Calls says how a gateway is asked to move the money of a payment: to capture it, to give it back, to let go of what it
// holds. Its functions are pure. Somebody else keeps the exact bytes of the request and the key that they go with, sends these
// and no others until it is known what became of them, and keeps to the pace.
type Calls struct {
	// Live and Test are the base URLs of the API, without a slash at the end. The source's api_url takes their place.
	Live, Test string

	// KeyHeader is the header that carries the idempotency key, which is 36 characters of [0-9a-f-].
	KeyHeader string

	// KeyLife is how long the gateway surely knows a key, by its own documentation: the same call is not repeated later than that,
	// since it could then be done a second time.
	KeyLife time.Duration

	// Ready returns why calls cannot be made for a source, as a sentence about the option that it lacks; nil: they can.
	Ready func(Source) error

	// Make makes the request of a movement, without key and without credentials. The same movement gives the same bytes. An error
	// is a [*CallError]: no such call can be made of it.
	Make func(Source, order.Movement) (Call, error)

	// Authorize adds the source's credentials to a call: a header, or a Grant. They are never stored.
	Authorize func(Source, Call) Call

	// Read says what the gateway's answer to the request of a movement means.
	Read func(Source, order.Movement, Reply) Verdict

	// Look makes the call that finds out what became of a movement whose answer is not known, without credentials, and Found reads
	// what it is answered. nil: the gateway cannot be asked; its webhooks, the same request under the same key, or a person tell.
	Look  func(Source, order.Movement) (Call, error)
	Found func(Source, order.Movement, Reply) Verdict
}

// Reply is what a gateway answered to a [Call], whatever its status.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte

	// Started is when the call began, by the database's clock.
	Started time.Time
}

// Ruling is what a gateway's answer says about a movement.
type Ruling string

// The rulings.
const (
	// Done: the gateway has done it, or has taken it on: what it makes of it later its webhooks tell.
	Done Ruling = "done"

	// Declined: it has not done it and will not, whoever asks again in the same way: a refusal of its business, or of the request.
	// Of Found: that is proven, since what was made came to nothing, or the payment has gone another way.
	Declined Ruling = "declined"

	// Later: not now. The same request with the same key, not before After: it is busy, down, or still at the same call.
	Later Ruling = "later"

	// Denied: the credentials are not accepted. The same request with the same key, once a person has seen to them.
	Denied Ruling = "denied"

	// Unsure: whether it has done it cannot be told from this answer, and asking again in the same way will be answered the
	// same: a failure that the gateway keeps under the key, or, with a Code, a refusal for a reason that an earlier try of the
	// same movement may have brought about ("already refunded"). It must be looked up. A refusal of what is then found absent would
	// be the same under another key.
	Unsure Ruling = "unsure"

	// Reused: it says that the key stands for another request. That is a mistake of this program: nothing more is sent, and a
	// person must look.
	Reused Ruling = "reused"

	// Absent, of Found only: it is proven that the gateway has not done it.
	Absent Ruling = "absent"
)

// Verdict is what an answer means.
type Verdict struct {
	Ruling Ruling

	// Ref is the gateway's id of what it made: the refund, the capture. It is the Ref of the facts that tell of it. Of Done.
	Ref string

	// Events are what the answer says about the payment, as a webhook would: of Done, and of Found. Their facts join with those of
	// the webhooks that come about the same: same ids, same Ref, a Seq of the same sort. No id: it is made. None where the answer
	// says nothing that the ledger can hold.
	Events []order.Event

	// Fetch are objects that should be asked about now, since the answer does not tell all ([Gateway.Fetch]).
	Fetch []Object

	After time.Duration // of Later, what the gateway asked for; 0: as the caller sees fit

	// Code is the gateway's own code word for a refusal ("charge_already_refunded"), at most 100 bytes of [A-Za-z0-9_.:-], and
	// Detail a sentence of ours, which quotes nothing of the answer but numbers and code words.
	Code, Detail string
}

// CallError says why no call can be made of a movement.
type CallError struct{ Detail string }

func (e *CallError) Error() string { return e.Detail }

func callErrorf(format string, args ...any) *CallError {
	return &CallError{fmt.Sprintf(format, args...)}
}

// BaseURL is where the source's API is called, without a slash at the end.
func (c *Calls) BaseURL(s Source) string { return baseURL(s, c.Live, c.Test) }

// Headers under which the answer to a movement is stored with its bytes, so that it can be read again.
const (
	HeaderMovement = "Paidonce-Movement" // JSON of the order.Movement
	HeaderReply    = "Paidonce-Reply"    // "answer", or "lookup"; and the status: "answer 200"
)

// KeepReply returns the headers that a reply is stored with.
func KeepReply(m order.Movement, r Reply, lookup bool) (map[string]string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("gateway: movement %s: %w", m.ID, err)
	}
	what := "answer"
	if lookup {
		what = "lookup"
	}
	return map[string]string{
		HeaderMovement: string(text), HeaderReply: fmt.Sprintf("%s %d", what, r.Status), HeaderStarted: r.Started.UTC().Format(time.RFC3339Nano),
	}, nil
}

// Judge says what a reply to the request of a movement means, or with lookup to the question what became of it. Its events have
// the form that [Gateway.Events] promises.
func (g *Gateway) Judge(s Source, m order.Movement, r Reply, lookup bool) (Verdict, error) {
	read := g.Calls.Read
	if lookup {
		read = g.Calls.Found
	}
	v := read(s, m, r)
	realm := g.Realm(s)
	for i := range v.Events {
		ev := &v.Events[i]
		made := ev.ID == ""
		if made {
			ev.ID = "pending" // what it is made of is known once the event is complete
		}
		if err := finish(ev, s, realm); err != nil {
			return Verdict{}, err
		}
		if !made {
			continue
		}
		ev.ID = fetchedID(Object{"call", m.ID}, *ev)
		if err := finishID(ev); err != nil {
			return Verdict{}, err
		}
	}
	return v, nil
}

// readReply reads a stored reply again.
func (g *Gateway) readReply(s Source, d Delivery) ([]order.Event, error) {
	var (
		m    order.Movement
		what string
		r    = Reply{Body: d.Body, Header: http.Header{}}
	)
	_, scanErr := fmt.Sscanf(d.Header.Get(HeaderReply), "%s %d", &what, &r.Status)
	started, timeErr := time.Parse(time.RFC3339Nano, d.Header.Get(HeaderStarted))
	if err := json.Unmarshal([]byte(d.Header.Get(HeaderMovement)), &m); err != nil || scanErr != nil || timeErr != nil {
		return nil, parseError("shape", "the stored answer does not say what it is about")
	}
	r.Started = started
	v, err := g.Judge(s, m, r, what == "lookup")
	if err == nil && len(v.Events) == 0 {
		err = parseError("shape", "the answer says nothing about the payment")
	}
	return v.Events, err
}

// statusVerdict is what a status says by itself, at any gateway: ok is false if it says nothing, and its body must be read.
func statusVerdict(r Reply) (v Verdict, ok bool) {
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return Verdict{Ruling: Denied, Detail: fmt.Sprintf("it answered %d", r.Status)}, true
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly,
		r.Status == http.StatusLocked, r.Status >= 500:
		return laterVerdict(r, "it answered %d", r.Status), true
	case r.Status/100 == 3, r.Status < 200:
		return Verdict{Ruling: Unsure, Detail: fmt.Sprintf("it answered %d", r.Status)}, true
	}
	return Verdict{}, false
}

// laterVerdict is Later, not before the answer's Retry-After.
func laterVerdict(r Reply, format string, args ...any) Verdict {
	return Verdict{Ruling: Later, After: retryAfter(r), Detail: fmt.Sprintf(format, args...)}
}

// unsure is what an answer means that cannot be what it should be; what says how.
func unsure(r Reply, what string) Verdict {
	return Verdict{Ruling: Unsure, Detail: fmt.Sprintf("it answered %d, and %s", r.Status, what)}
}

// absent is what an answer means that proves that nothing was done.
func absent(detail string) Verdict { return Verdict{Ruling: Absent, Detail: detail} }

// retryAfter is how long the answer asks to wait, in seconds or until a date; 0 if it does not say.
// https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
func retryAfter(r Reply) time.Duration {
	text := r.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(r.Started))
	}
	return 0
}

// withHeader returns the call with one more header; the call itself, which may be shared, is left as it is.
func withHeader(c Call, name, text string) Call {
	if c.Header = c.Header.Clone(); c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set(name, text)
	return c
}

// coded goes on with a code word, if there is one.
func coded(name, code string) string {
	if code == "" {
		return ""
	}
	return ", " + name + " " + code
}

// codeWord is a gateway's code word as it may be shown: "" if it is none.
func codeWord(text string) string {
	if len(text) > 100 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") != "" {
		return ""
	}
	return text
}
