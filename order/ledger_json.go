package order

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// bare is a Ledger without methods, so that encoding/json does its fields.
type bare Ledger

// MarshalJSON returns the ledger as compact JSON: equal ledgers give equal bytes, and nothing that is zero is written.
func (l *Ledger) MarshalJSON() ([]byte, error) { return json.Marshal((*bare)(l)) }

// UnmarshalJSON reads what MarshalJSON writes. It refuses a field, status, flag or strength that it does not know,
// instead of leaving it out: the ledger is of a newer program, and would be written back without it.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var b bare
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		return fmt.Errorf("order: ledger: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("order: ledger: more than one value")
	}
	if err := (*Ledger)(&b).check(); err != nil {
		return fmt.Errorf("order: ledger: %w", err)
	}
	*l = Ledger(b)
	return nil
}

// check returns why no joins can have made l.
func (l *Ledger) check() error {
	for cur, m := range l.Money {
		if m == nil || !isCurrency(cur) {
			return fmt.Errorf("money in %q", cur)
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("money in %s: %w", cur, err)
		}
	}
	for ref, d := range l.Disputes {
		if ref == "" || disputeRank(d.Status) == 0 || d.Amount < 0 || d.Seq < 0 ||
			d.Currency != "" && !isCurrency(d.Currency) {
			return fmt.Errorf("dispute %q: %+v", ref, d)
		}
	}
	switch {
	case l.Phase.Status != "" && phaseRank(l.Phase.Status) == 0 || l.Phase.Seq < 0:
		return fmt.Errorf("phase %+v", l.Phase)
	case !slices.IsSorted(l.IDs):
		return errors.New("ids are not sorted")
	case l.Own != nil && (l.Own.Minor == 0 || !l.Own.countable()):
		return fmt.Errorf("own amount %+v", *l.Own)
	case l.Person.Strength != 0 && l.Person.Strength != StrengthPerson:
		return fmt.Errorf("a person's link %+v", l.Person)
	}
	for cur, c := range l.Confirmed {
		if !isCurrency(cur) || min(c.Authorized, c.Captured) < 0 {
			return fmt.Errorf("confirmed in %q: %+v", cur, c)
		}
	}
	return nil
}

func (m *Money) check() error {
	if m.Authorized < 0 || m.Released < 0 || min(m.CapturedTotal.Amount, m.CapturedTotal.Seq) < 0 ||
		min(m.RefundedTotal.Amount, m.RefundedTotal.Seq) < 0 {
		return errors.New("negative")
	}
	for _, items := range []map[string]Item{m.Captures, m.Refunds} {
		for ref, it := range items {
			if ref == "" || itemRank(it.Status) == 0 || it.Amount < 0 || it.Seq < 0 {
				return fmt.Errorf("item %q: %+v", ref, it)
			}
		}
	}
	return nil
}

// decodeExact decodes JSON whose numbers stay as they are written.
func decodeExact(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}
