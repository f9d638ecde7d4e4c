package audit

import (
	"context"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// said is what a row of incomes and its events have in common.
type said struct {
	Kind     order.IncomeKind `json:"kind"`
	Amount   order.Amount     `json:"amount"`
	Source   *order.Amount    `json:"source"`
	Order    string           `json:"order"`
	Received bool             `json:"received"` // there is an event that says so
	Voided   bool             `json:"voided"`
	Payment  bool             `json:"payment"` // it has one
}

// incomes checks that every income has the events and the payment that make it count.
func (r *run) incomes(page []store.AuditIncome) error {
	for _, in := range page {
		r.sum.Incomes++
		var ord uuid.UUID
		if in.Order != nil {
			ord = *in.Order
		}
		found := said{in.Kind, in.Amount, in.Source, idText(ord), true, in.Status == store.IncomeVoided, true}
		expected := said{Received: in.Entered != nil, Voided: tells(in.Voided, in.ID, order.StatusFailed), Payment: in.Payment != uuid.Nil}
		if e := in.Entered; e != nil && e.Event.Command != nil && e.Event.Command.Income != nil {
			c := e.Event.Command.Income
			expected.Kind, expected.Source, expected.Order = c.Kind, c.Source, idText(e.Order)
			expected.Received = tells(e, in.ID, order.StatusOK)
			if len(e.Event.Facts) > 0 {
				expected.Amount = order.Amount{Minor: e.Event.Facts[0].Amount, Currency: e.Event.Facts[0].Currency}
			}
		}
		d := Difference{Kind: IncomeEvent, Subject: "income " + in.ID.String(), OrderID: idText(ord), Order: in.OrderRef}
		if d.Expected, d.Found = differing(expected, found); d.Expected+d.Found == "" {
			continue
		}
		d.Says = "It is not what its events say."
		var events []*store.AuditEvent
		for _, e := range []*store.AuditEvent{in.Entered, in.Voided} {
			if e != nil {
				events = append(events, e)
			}
		}
		if err := r.found(d, events...); err != nil {
			return err
		}
	}
	r.progress(len(page))
	return nil
}

// tells reports whether an event says of the capture that an income is that it stands so.
func tells(e *store.AuditEvent, id uuid.UUID, s order.Status) bool {
	if e == nil || len(e.Event.Facts) != 1 || e.Event.Realm != order.Offline {
		return false
	}
	f := e.Event.Facts[0]
	return f.Kind == order.KindCaptured && f.Ref == id.String() && f.Status == s
}

// incomeEvents checks that what says that money was received outside of gateways has its row.
func (r *run) incomeEvents(ctx context.Context, events []*store.AuditEvent) error {
	has, err := r.a.HasIncomes(ctx, events)
	if err != nil {
		return err
	}
	for _, e := range events {
		if has[e.EventKey] {
			continue
		}
		name := ""
		if len(e.Event.Payment) > 0 {
			name = e.Event.Payment[0]
		}
		d := Difference{Kind: IncomeEvent, Subject: "income " + name, Says: "An event says that it was received or taken back, and there is none."}
		if err := r.found(d, e); err != nil {
			return err
		}
	}
	return nil
}
