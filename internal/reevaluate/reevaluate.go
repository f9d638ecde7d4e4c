// Package reevaluate reads kept deliveries again with the mapping and the options of today, and understands which ones
// somebody asks for. What is then done with their facts is store's part.
package reevaluate

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// ErrUnknownSource says that a delivery's source is not in the configuration, so that nobody knows how to read it.
var ErrUnknownSource = errors.New("its source is not in the configuration")

// Reparse maps the bytes of a delivery that was verified when it came. Its error concerns that delivery alone.
type Reparse func(gateway.Source, gateway.Delivery) ([]order.Event, error)

// Mapping is the Reparse of this program: the gateway's own.
func Mapping(s gateway.Source, d gateway.Delivery) ([]order.Event, error) {
	g, ok := gateway.Lookup(s.Gateway)
	if !ok {
		return nil, fmt.Errorf("there is no gateway %q", s.Gateway)
	}
	return g.Read(s, d)
}

// Reader reads kept deliveries as they would be read if they came today.
type Reader struct {
	Config  *config.Config
	Reparse Reparse // default: [Mapping]
}

// Read returns the events of a kept delivery. The signature is not looked at: secrets roll, and only what was verified
// is kept.
func (r Reader) Read(d store.StoredDelivery) ([]store.Event, error) {
	source, ok := r.Config.Accounts[d.Account].Sources[d.Source]
	if !ok {
		return nil, ErrUnknownSource
	}
	reparse := r.Reparse
	if reparse == nil {
		reparse = Mapping
	}
	header := http.Header{}
	for name, value := range d.Header {
		header.Set(name, value)
	}
	read, err := reparse(source, gateway.Delivery{Method: http.MethodPost, Header: header, Body: d.Body, ReceivedAt: d.ReceivedAt})
	if err != nil {
		return nil, err
	}
	events := make([]store.Event, len(read))
	for i, ev := range read {
		events[i] = store.Event{
			Event: ev, Account: d.Account, Source: d.Source, Delivery: d.Delivery, MappingVersion: gateway.MappingVersion,
			OnUnknown: store.OnUnknown(source.OnUnknownOrder), Paused: source.Paused,
		}
	}
	return events, nil
}

// state is the end of an id that names a state of an object: a hash of what it says (see [gateway.Gateway.Fetched]).
var state = regexp.MustCompile(`:[0-9a-f]{24}$`)

// Same reports whether an event of today is the stored one of this id: a fetched state, which another mapping reads
// otherwise and therefore calls otherwise.
func Same(id string, today store.Event) bool {
	object := state.ReplaceAllString(id, "")
	return object != id && today.ID != object && state.ReplaceAllString(today.ID, "") == object
}
