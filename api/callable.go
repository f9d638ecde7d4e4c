package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// NewSource returns what the API needs to know of a source, which is of gateway g. A paused source moves no money either: what its
// gateway answers would count only when it resumes, and could be asked for twice until then.
func NewSource(g *gateway.Gateway, s gateway.Source) Source {
	source := Source{ID: s.ID, Gateway: g.Name, Realm: g.Realm(s)}
	switch {
	case g.Calls == nil:
		source.NotCallable = fmt.Sprintf("Paidonce does not know how %s is asked to move money: do it there, and the order follows by itself.", g.Title)
		return source
	case s.Paused:
		source.NotCallable = fmt.Sprintf("Source %s is paused.", s.ID)
		return source
	}
	if err := g.Calls.Ready(s); err != nil {
		source.NotCallable = sentence(fmt.Sprintf("Source %s cannot call %s: %s", s.ID, g.Title, err))
		return source
	}
	source.Prepare = func(m order.Movement) (store.Request, error) {
		call, err := g.Calls.Make(s, m)
		if err != nil {
			return store.Request{}, err
		}
		return requestOf(g.Calls, call)
	}
	return source
}

// secretHeaders hold what is added when a call is sent, and stored nowhere.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key"}

// requestOf is a call as it is stored. One that carries key or credentials already is a mistake of this program, and is not kept.
func requestOf(c *gateway.Calls, call gateway.Call) (store.Request, error) {
	r := store.Request{Method: cmp.Or(call.Method, http.MethodGet), Path: call.Path, Header: map[string]string{}, Body: call.Body}
	for name, values := range call.Header {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(secretHeaders, name) || name == http.CanonicalHeaderKey(c.KeyHeader) {
			return store.Request{}, fmt.Errorf("a call was made with the header %s in it, which is not to be stored", name)
		}
		r.Header[name] = strings.Join(values, ", ")
	}
	if call.Grant != nil {
		return store.Request{}, errors.New("a call was made with its credentials, which are not to be stored")
	}
	return r, nil
}

// callable are the name spaces whose payments a source of the account can call the gateway about, and what makes the call: the
// source that told of the payment first, if it can, else the first one of the name space, by its id.
func (a *API) callable(account string) (realms []string, prepare func(store.Origin, order.Movement) (store.Prepared, error)) {
	all := slices.DeleteFunc(slices.Clone(a.opts.Sources(account)), func(s Source) bool { return s.Prepare == nil })
	slices.SortFunc(all, func(x, y Source) int { return strings.Compare(x.ID, y.ID) })
	return realmsOf(all), func(from store.Origin, m order.Movement) (store.Prepared, error) {
		var of *Source
		for i := range all {
			if s := &all[i]; s.Realm == from.Realm && (of == nil || s.ID == from.Source) {
				of = s
			}
		}
		if of == nil {
			return store.Prepared{}, fmt.Errorf("no source of %s can be called, though one could a moment ago", from.Realm)
		}
		r, err := of.Prepare(m)
		return store.Prepared{Source: of.ID, Gateway: of.Gateway, Request: r}, err
	}
}

// whyNotCallable says why the gateways of some payments are not asked to move their money.
func (a *API) whyNotCallable(account string, origins []store.Origin) string {
	var why []string
	add := func(s string) {
		if !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	for _, from := range origins {
		if from.Realm == order.Offline {
			add("The money was received outside of gateways: give it back as you got it, and take the income back (POST /v1/incomes/{id}/void).")
			continue
		}
		of := slices.DeleteFunc(slices.Clone(a.opts.Sources(account)), func(s Source) bool { return s.Realm != from.Realm })
		if len(of) == 0 {
			add(fmt.Sprintf("The payment is of %s, and no source of this account is any more.", cmp.Or(from.Realm, "no gateway that is known")))
		}
		for _, s := range of {
			add(s.NotCallable)
		}
	}
	return strings.Join(why, " ")
}

// sentence ends a text with one full stop.
func sentence(text string) string { return strings.TrimRight(text, ".") + "." }
