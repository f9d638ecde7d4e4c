package bank

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// api is how one gateway's API behaves.
type api struct {
	// needs names the option without which nobody can call for the source; "" if none is missing.
	needs func(gateway.Source) string

	// open gives a payment its ids, and emits the events that tell of it. n tells it from others of the same reference.
	open func(a *account, p *payment, n string) error

	// refuse answers a call that has not the source's credentials; nil: it has.
	refuse func(*account, *request) *reply

	// find says what a call asks for, or answers it where it is none that can begin.
	find func(*account, *request) (*operation, *reply)

	// keyHeader carries the idempotency key; keyed says whether a call's key means anything; keyLife is how long it is known.
	keyHeader string
	keyed     func(*request) bool
	keyLife   time.Duration

	print    func(*request) string // what of a call must be the same under one key
	keeps    func(reply) bool      // whether an answer is kept
	fresh    bool                  // a call that is repeated is told how things stand now
	replayed func(*call, reply) reply
	busy     func(*call) reply // the same call is under way
	reused   func(*call, *entry) reply

	denied, tooMany, failed, kept func(*call) reply
}

// apis are the gateways that are here.
var apis = map[string]*api{"stripe": &stripeAPI, "adyen": &adyenAPI, "paypal": &paypalAPI, "mercadopago": &mercadoAPI}

// request is a call as it came.
type request struct {
	method, path string // of the source's API, with a slash
	rawQuery     string
	query        url.Values
	header       http.Header
	body         []byte
	key          string
}

// content is all of a call that is its caller's doing and not the moment's.
func (r *request) content() string {
	return strings.Join([]string{r.method, r.path, r.rawQuery, r.key, string(r.body)}, "\n")
}

// reply is an answer.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

// operation is what a call asks for.
type operation struct {
	kind  Kind
	about *payment // nil: about none
	do    func(*call) reply
}

func (o *operation) moves() bool { return o.kind == Capture || o.kind == Refund || o.kind == Void }

// call is a call on its way.
type call struct {
	a      *account
	r      *request
	op     *operation
	key    string // "" where it means nothing
	step   Step
	set    bool // the step is of a script
	fault  Fault
	latest func() reply // set by what was done
}
