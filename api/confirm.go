package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) confirmEndpoint() {
	add(a, endpoint{
		ID: "confirmOrder", Method: http.MethodPost, Path: "/v1/orders/{id}/confirm", Tag: tagOrders, Role: roleWrite,
		Summary: "Say what the checkout was answered",
		Description: "What the gateway answered your checkout, so that the order need not wait for the webhook: that a payment was captured, or authorized, with " +
			"its total so far. It is a fact like any other. Whichever of this and the webhook comes first moves the order, and the other one finds it " +
			"moved: one transition, one fulfilment. As soon as the gateway itself has said anything about the payment, only that counts; so this moves " +
			"nothing that the gateway denies.\n\n" +
			"The payment is looked for among those of the source; if the account has several, name it, or its gateway where that is enough. Take what you say from the " +
			"gateway's own answer, never from the customer's browser. A payment that belongs to another order already stays there: this order is then flagged reference_conflict, " +
			"and is answered 200 in the state in which it is. Look at the state.\n\n" +
			"The same answer may be sent again at any time, with an Idempotency-Key or without one: it says nothing new.",
		Idempotency: protected, Codes: []Code{CodeOrderNotFound},
		Request:  `{"data": {"gateway": "stripe", "payment": "pi_1", "status": "captured", "amount": 5000, "currency": "EUR"}}`,
		Response: orderExample,
	}, a.confirmOrder)
}

type confirmOrderIn struct {
	ID   string `path:"id" format:"uuid" doc:"The order's id."`
	Body dataOf[confirmationDoc]
}

// confirmationDoc is what a checkout was answered.
type confirmationDoc struct {
	Source   string       `json:"source,omitempty" minLength:"1" maxLength:"64" doc:"The source that the payment's webhooks come to. Absent: the account's only one, or that of the gateway."`
	Gateway  string       `json:"gateway,omitempty" minLength:"1" maxLength:"64" doc:"Enough where the account has one source of it."`
	Payment  paymentID    `json:"payment"`
	Status   string       `json:"status" enum:"captured,authorized" doc:"captured: the money is here. authorized: it is reserved."`
	Amount   minor        `json:"amount"`
	Currency currencyCode `json:"currency"`
}

func (a *API) confirmOrder(ctx context.Context, c *call, in *confirmOrderIn) (*orderOut, error) {
	said := in.Body.Data
	realm, err := a.realmOf(c.key.Account, said.Source, said.Gateway)
	if err != nil {
		return nil, err
	}
	fact := order.Fact{Kind: order.KindCaptured, Amount: int64(said.Amount), Currency: string(said.Currency)}
	if said.Status == "authorized" {
		fact.Kind = order.KindAuthorized
	}
	return a.onOrder(ctx, c, in.ID, func(_ store.Tx, o store.Order) (order.Event, error) {
		return order.Event{
			ID: store.EventID("confirm", o.ID.String(), realm, string(said.Payment), said.Status,
				strconv.FormatInt(fact.Amount, 10), fact.Currency),
			Type: "payment.confirmed", Realm: realm, Payment: []string{string(said.Payment)},
			// As strong as the payment's own event would be, and no stronger: it takes no payment from another order.
			Reference: o.Ref, Strength: order.StrengthPayment,
			Facts: []order.Fact{fact}, Command: &order.Command{Confirm: true},
		}, nil
	})
}
