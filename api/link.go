package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) linkEndpoint() {
	add(a, endpoint{
		ID: "linkPayment", Method: http.MethodPost, Path: "/v1/orders/{id}/link", Tag: tagOrders, Role: roleOperate,
		Summary: "Link a payment to an order",
		Description: "A person says that a payment belongs to this order, whatever the gateway says: a payment that names no order, or the wrong one. The last word of a " +
			"person holds. linked: false takes it back, and the payment goes where its own events say, if anywhere; of a payment that belongs to another order it changes nothing. " +
			"Orders that gain or lose the payment follow by themselves.\n\n" +
			"Sent again without an Idempotency-Key it says the same once more, which matters only if somebody has said otherwise in between.",
		Idempotency: protected, Codes: []Code{CodeOrderNotFound, CodePaymentNotFound, CodePaymentAmbiguous},
		Request:  `{"data": {"payment": "pi_1", "linked": true}}`,
		Response: orderExample,
	}, a.linkPayment)
}

type linkPaymentIn struct {
	ID   string `path:"id" format:"uuid" doc:"The order's id."`
	Body dataOf[linkDoc]
}

// linkDoc says where a payment belongs.
type linkDoc struct {
	Payment paymentID `json:"payment"`
	Realm   string    `json:"realm,omitempty" minLength:"1" maxLength:"255" doc:"The name space of the payment's id, as events show it: gateway, gateway account and mode; offline: money outside of gateways. Absent: those of the account's sources, and offline."`
	Linked  bool      `json:"linked" doc:"False takes it back."`
}

func (a *API) linkPayment(ctx context.Context, c *call, in *linkPaymentIn) (out *orderOut, err error) {
	said := in.Body.Data
	id, err := newEventID("link")
	if err != nil {
		return nil, err
	}
	err = a.unit(ctx, func(tx store.Tx) error {
		o, err := a.orderTx(ctx, tx, c, in.ID)
		if err != nil {
			return err
		}
		payment, err := a.paymentTx(ctx, tx, c, string(said.Payment), said.Realm)
		if err != nil {
			return err
		}
		e := order.Event{
			ID: id, Type: "payment.linked", Realm: payment.Realm, Payment: []string{payment.ID},
			Reference: o.Ref, Strength: order.StrengthPerson, Command: &order.Command{Link: true},
		}
		cond := store.Condition{}
		if !said.Linked {
			e.Type, e.Reference, e.Strength = "payment.unlinked", "", 0
			cond.Holds = o.ID
		}
		_, err = a.command(ctx, tx, c, e, cond)
		var r *store.Refusal
		if errors.As(err, &r) && r.Code == store.RefusedElsewhere {
			err = nil // it does not belong to this order, as was asked for
		}
		if err != nil {
			return refused(err)
		}
		out, err = a.commanded(ctx, tx, c, http.StatusOK, o.ID)
		return err
	})
	return out, err
}

// paymentTx finds the payment that a request names.
func (a *API) paymentTx(ctx context.Context, tx store.Tx, c *call, id, realm string) (store.PaymentID, error) {
	realms := []string{realm}
	if realm == "" {
		realms = append(realmsOf(a.opts.Sources(c.key.Account)), order.Offline)
	}
	found, err := a.store.PaymentsNamed(ctx, tx, c.key.Account, realms, id)
	if err != nil {
		return store.PaymentID{}, err
	}
	switch len(found) {
	case 0:
		return store.PaymentID{}, problem(CodePaymentNotFound, "No event of this account has named such a payment.")
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, p := range found {
		names[i] = p.Realm
	}
	slices.Sort(names)
	p := problemf(CodePaymentAmbiguous, "Several payments are called so. Add realm and one of: %s.", strings.Join(slices.Compact(names), ", "))
	p.Errors = []FieldError{{Pointer: "/data/realm", Code: "ambiguous", Detail: "must be one of " + strings.Join(slices.Compact(names), ", ")}}
	return store.PaymentID{}, p
}
