package reevaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

// group parts the missing events by what they are about: those that may move one order, or be about one payment, are tried
// together.
func (p *replaying) group(ctx context.Context) ([][]store.Event, error) {
	of, err := booked(ctx, p.st, p.missing)
	if err != nil {
		return nil, err
	}
	u := unions[string]{}
	about := make([]string, len(p.missing))
	for i, ev := range p.missing {
		at := fmt.Sprintf("event %d", i)
		about[i] = at
		join := func(kind, name string) { u.join(at, ev.Account+"\x00"+kind+"\x00"+name) }
		if ev.Reference != "" {
			join("order", ev.Reference)
		}
		if ev.Renewal != nil {
			for _, of := range ev.Renewal.Of {
				join("recurrence", of)
			}
		}
		for _, id := range ev.Payment {
			join(ev.Realm, id)
			if payment := of[store.PaymentName{Account: ev.Account, Realm: ev.Realm, ID: id}]; payment.ID != uuid.Nil {
				join("payment", payment.ID.String())
				if payment.Order != "" {
					join("order", payment.Order)
				}
			}
		}
	}
	var groups [][]store.Event
	number := map[string]int{}
	for i, ev := range p.missing {
		root := u.find(about[i])
		n, ok := number[root]
		if !ok {
			n = len(groups)
			number[root], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], ev)
	}
	return groups, nil
}

// booked returns the payments that are known of what events name.
func booked(ctx context.Context, st *store.Store, events []store.Event) (map[store.PaymentName]store.BookedPayment, error) {
	var names []store.PaymentName
	for _, ev := range events {
		for _, id := range ev.Payment {
			names = append(names, store.PaymentName{Account: ev.Account, Realm: ev.Realm, ID: id})
		}
	}
	of := map[store.PaymentName]store.BookedPayment{}
	return of, st.ReadBooks(ctx, func(b *store.Books) error {
		keys, err := b.Find(ctx, names)
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(slices.Clone(keys), func(k store.PaymentKey) bool { return k.ID == uuid.Nil })
		payments, err := b.Payments(ctx, known)
		byKey := map[store.PaymentKey]store.BookedPayment{}
		for _, p := range payments {
			byKey[p.PaymentKey] = p
		}
		for i, k := range keys {
			if k.ID != uuid.Nil {
				of[names[i]] = byKey[k]
			}
		}
		return err
	})
}

// unions are sets that are joined.
type unions[T comparable] map[T]T

func (u unions[T]) find(v T) T {
	for {
		up, ok := u[v]
		if !ok || up == v {
			return v
		}
		if next, ok := u[up]; ok {
			u[v] = next
		}
		v = up
	}
}

func (u unions[T]) join(a, b T) {
	if a, b = u.find(a), u.find(b); a != b {
		u[a] = b
	}
}
