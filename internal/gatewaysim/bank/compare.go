package bank

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// Compare returns what is different between the bank's books and what somebody believes, a line for each difference, and "" if there
// is none. What is compared: captured and refunded of each payment by currency, and the movements that were asked for, matched by
// the id that was given, else the key, else the gateway's id, and what has none of them by its amount. What was authorized is not compared, since a gateway that has captured
// need not tell it, and neither is what was there from the opening. Payments that share an id are one: of PayPal
// an authorization and its captures are payments of their own to others.
func Compare(theirs, ours Books) string {
	var lines []string
	groups := group(theirs, ours)
	for _, g := range groups {
		lines = append(lines, g.sums()...)
		lines = append(lines, g.movements()...)
	}
	return strings.Join(lines, "\n")
}

// both are the payments of both sides that are one.
type both struct {
	name         string
	theirs, ours []Payment
}

// group joins what shares an id of a source.
func group(theirs, ours Books) []*both {
	var groups []*both
	byID := map[string]*both{}
	add := func(p Payment, here func(*both) *[]Payment) {
		var g *both
		for _, id := range p.IDs {
			other := byID[p.Source+"\x00"+id]
			switch {
			case other == nil || other == g:
			case g == nil:
				g = other
			default: // p joins two groups
				g.theirs, g.ours = append(g.theirs, other.theirs...), append(g.ours, other.ours...)
				for key, of := range byID {
					if of == other {
						byID[key] = g
					}
				}
				groups = slices.DeleteFunc(groups, func(of *both) bool { return of == other })
			}
		}
		if g == nil {
			g = &both{name: p.Source + " " + strings.Join(p.IDs, "/")}
			groups = append(groups, g)
		}
		for _, id := range p.IDs {
			byID[p.Source+"\x00"+id] = g
		}
		*here(g) = append(*here(g), p)
	}
	for _, p := range theirs.Payments {
		add(p, func(g *both) *[]Payment { return &g.theirs })
	}
	for _, p := range ours.Payments {
		add(p, func(g *both) *[]Payment { return &g.ours })
	}
	return groups
}

// total adds up the sums of payments, without those that are all 0.
func total(payments []Payment) map[string]Sums {
	all := map[string]Sums{}
	for _, p := range payments {
		for cur, s := range p.Sums {
			t := all[cur]
			all[cur] = Sums{Captured: t.Captured + s.Captured, Refunded: t.Refunded + s.Refunded}
		}
	}
	maps.DeleteFunc(all, func(_ string, s Sums) bool { return s == Sums{} })
	return all
}

func (g *both) sums() (lines []string) {
	theirs, ours := total(g.theirs), total(g.ours)
	currencies := slices.Sorted(maps.Keys(theirs))
	for cur := range ours {
		if !slices.Contains(currencies, cur) {
			currencies = append(currencies, cur)
		}
	}
	slices.Sort(currencies)
	for _, cur := range currencies {
		for _, one := range []struct {
			what         string
			theirs, ours int64
		}{{"captured", theirs[cur].Captured, ours[cur].Captured}, {"refunded", theirs[cur].Refunded, ours[cur].Refunded}} {
			if one.theirs != one.ours {
				lines = append(lines, fmt.Sprintf("%s: the bank has %s %s %s, we have %s", g.name, one.what, major(one.theirs, cur), cur, major(one.ours, cur)))
			}
		}
	}
	return lines
}

// String tells a movement in a line.
func (m Movement) String() string {
	text := fmt.Sprintf("%s of %s %s", m.Kind, major(m.Amount.Minor, m.Amount.Currency), m.Amount.Currency)
	for _, one := range []struct{ name, value string }{{"given", m.Given}, {"key", m.Key}, {"ref", m.Ref}} {
		if one.value != "" {
			text += fmt.Sprintf(", %s %s", one.name, one.value)
		}
	}
	if m.Status == order.StatusFailed || m.Status == order.StatusPending {
		text += ", " + string(m.Status)
	}
	return text
}

func asked(payments []Payment) (all []Movement) {
	for _, p := range payments {
		for _, m := range p.Movements {
			if !m.Opening {
				all = append(all, m)
			}
		}
	}
	return all
}

// is reports whether two movements are one by an id of theirs; by nil, if one of the two has no id, by amount.
func (m Movement) is(o Movement, by func(Movement) string) bool {
	switch {
	case m.Kind != o.Kind:
		return false
	case by != nil:
		return by(m) != "" && by(m) == by(o)
	}
	return m.Amount == o.Amount && (m.Given+m.Key+m.Ref == "" || o.Given+o.Key+o.Ref == "")
}

func (g *both) movements() (lines []string) {
	theirs, ours := asked(g.theirs), asked(g.ours)
	given := map[string]int{}
	for _, m := range theirs {
		if m.Given != "" && m.Status != order.StatusFailed {
			given[m.Given]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(given)) {
		if n := given[id]; n > 1 {
			lines = append(lines, fmt.Sprintf("%s: the bank has done %s %d times", g.name, id, n))
		}
	}
	for _, by := range []func(Movement) string{
		func(m Movement) string { return m.Given }, func(m Movement) string { return m.Key }, func(m Movement) string { return m.Ref }, nil,
	} {
		for i := 0; i < len(ours); i++ {
			j := slices.IndexFunc(theirs, func(m Movement) bool { return m.is(ours[i], by) })
			if j < 0 {
				continue
			}
			if t, o := theirs[j], ours[i]; t.Amount != o.Amount || (t.Status == order.StatusFailed) != (o.Status == order.StatusFailed) {
				lines = append(lines, fmt.Sprintf("%s: the bank has a %s; we have a %s", g.name, t, o))
			}
			theirs, ours = slices.Delete(theirs, j, j+1), slices.Delete(ours, i, i+1)
			i--
		}
	}
	for _, m := range theirs {
		lines = append(lines, fmt.Sprintf("%s: we do not know of a %s", g.name, m))
	}
	for _, m := range ours {
		if m.Status != order.StatusFailed {
			lines = append(lines, fmt.Sprintf("%s: the bank does not know of a %s", g.name, m))
		}
	}
	return lines
}
