package outbound

import (
	"cmp"
	"errors"
	"slices"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// unit is what one run is about: a source, for all sources of its account that know the same payments. One of these asks, or each
// would heal what another has received.
type unit struct {
	source gateway.Source
	gw     *gateway.Gateway
	realm  string
	same   []string // ids of the sources that know the same payments, this one among them

	lists, asks error // why it cannot be asked; nil: it can
}

func (u unit) key() store.SourceKey {
	return store.SourceKey{Account: u.source.Account, ID: u.source.ID}
}

// reconcileKey is what is noted of the source.
func (u unit) reconcileKey() store.ReconcileKey {
	k := store.ReconcileKey{Account: u.source.Account, Source: u.source.ID, Gateway: u.gw.Name, Lists: u.lists == nil, Asks: u.asks == nil}
	if err := errors.Join(u.lists, u.asks); err != nil {
		k.Note = sentence(err)
	}
	return k
}

// sentence joins the lines of an error.
func sentence(err error) string {
	var text string
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			text += cond(text == "", "", "; ") + one.Error()
		}
		return text
	}
	return err.Error()
}

func cond(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// rank says how well a source can be asked: of those that know the same payments the best one is.
func (u unit) rank() int {
	n := 0
	if u.lists == nil {
		n += 4
	}
	if u.asks == nil {
		n += 2
	}
	if !u.source.Paused { // what a paused source takes in waits
		n++
	}
	return n
}

// plan finds what is worked on, and what is noted of every source.
func (r *Reconciler) plan() ([]unit, []store.ReconcileKey) {
	type group struct{ account, realm string }
	groups := map[group][]unit{}
	for _, s := range r.sources() {
		g, ok := r.opts.Gateways(s.Gateway)
		if !ok {
			continue
		}
		u := unit{source: s, gw: g, realm: g.Realm(s), lists: g.CanList(s), asks: g.CanAsk(s)}
		k := group{s.Account, u.realm}
		groups[k] = append(groups[k], u)
	}
	var (
		units []unit
		keys  []store.ReconcileKey
	)
	for _, all := range groups {
		slices.SortFunc(all, func(a, b unit) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.source.ID, b.source.ID))
		})
		chosen := all[0]
		for _, u := range all {
			chosen.same = append(chosen.same, u.source.ID)
		}
		units, keys = append(units, chosen), append(keys, chosen.reconcileKey())
		for _, u := range all[1:] {
			keys = append(keys, store.ReconcileKey{
				Account: u.source.Account, Source: u.source.ID, Gateway: u.gw.Name,
				Note: "source " + chosen.source.ID + " knows the same payments: it is the one that is reconciled",
			})
		}
	}
	slices.SortFunc(units, func(a, b unit) int { return cmp.Compare(a.source.ID, b.source.ID) })
	return units, keys
}
