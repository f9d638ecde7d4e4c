package audit

import (
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// call is what the row of a transaction says twice: what moves, and the key that its call goes with.
type call struct {
	ID     string             `json:"id"`
	Kind   order.MovementKind `json:"kind"`
	Amount order.Amount       `json:"amount"`
	Order  string             `json:"order"`
	Key    string             `json:"key"`
}

// transactions checks that each call is what its row says that moves, under the only key that it may go with.
func (r *run) transactions(page []store.Transaction) error {
	for _, t := range page {
		r.sum.Transactions++
		m := t.Movement
		d := Difference{Kind: TransactionCall, Subject: "transaction " + t.ID.String(), Order: t.OrderRef, OrderID: t.Order.String(), Payment: t.Payment.String()}
		d.Expected, d.Found = differing(
			call{t.ID.String(), t.Kind, t.Amount, t.OrderRef, store.TransactionKey(t.ID, t.Epoch)},
			call{m.ID, m.Kind, m.Amount, m.Reference, t.Key})
		if d.Expected+d.Found == "" {
			continue
		}
		d.Says = "The call that was prepared is another one than the row is about."
		if err := r.found(d); err != nil {
			return err
		}
	}
	r.progress(len(page))
	return nil
}
