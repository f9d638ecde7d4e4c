package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type createIncomeIn struct {
	Body dataOf[newIncomeDoc]
}

// newIncomeDoc is what an income is entered with.
type newIncomeDoc struct {
	Amount     minor            `json:"amount" minimum:"1"`
	Currency   currencyCode     `json:"currency"`
	Kind       order.IncomeKind `json:"kind,omitempty" default:"other"`
	OrderID    *uuid.UUID       `json:"order_id,omitempty" format:"uuid" nullable:"true" doc:"The order that it was received for."`
	OrderRef   name             `json:"order_ref,omitempty" doc:"That order by its external_ref, in place of order_id."`
	Party      name             `json:"party,omitempty" doc:"Who paid, in your own words: a customer's number, a name. It tells incomes of one amount apart."`
	ReceivedOn day              `json:"received_on,omitempty" doc:"The day on which it came. Nothing follows from it."`
	Source     *newMoneyDoc     `json:"source,omitempty" doc:"What was handed over, where that is another currency. Nothing is converted: amount is what counts."`
	Metadata   metadata         `json:"metadata,omitempty"`
}

// newMoneyDoc is money, more than nothing, that a request names.
type newMoneyDoc struct {
	Amount   minor        `json:"amount" minimum:"1"`
	Currency currencyCode `json:"currency"`
}

// income is what the store is asked to enter, or the problem that no schema finds.
func (d newIncomeDoc) income(c *call) (n store.NewIncome, err error) {
	n = store.NewIncome{
		Account: c.key.Account, OrderRef: string(d.OrderRef), Party: string(d.Party), Kind: d.Kind,
		Amount: order.Amount{Minor: int64(d.Amount), Currency: string(d.Currency)}, Payload: c.body,
	}
	if d.OrderID != nil {
		n.Order = *d.OrderID
	}
	if n.Ref, err = d.Metadata.externalRef(); err != nil {
		return n, err
	}
	if n.Metadata, err = canonical(json.RawMessage(d.Metadata)); err != nil {
		return n, fmt.Errorf("metadata: %w", err)
	}
	if n.ReceivedOn, err = d.ReceivedOn.time(); err != nil {
		return n, fmt.Errorf("received_on: %w", err)
	}
	var faults []FieldError
	if d.Source != nil {
		n.Source = &order.Amount{Minor: int64(d.Source.Amount), Currency: string(d.Source.Currency)}
		if n.Source.Currency == n.Amount.Currency {
			faults = append(faults, FieldError{Pointer: "/data/source/currency", Code: "same_currency", Detail: "is the currency of the income itself; leave source out"})
		}
	}
	if n.Order != uuid.Nil && n.OrderRef != "" {
		faults = append(faults, FieldError{Pointer: "/data/order_ref", Code: "ambiguous", Detail: "stands beside order_id; name the order once"})
	}
	if n.Ref == "" && n.Order == uuid.Nil && n.OrderRef == "" && n.Party == "" {
		faults = append(faults, FieldError{
			Pointer: "/data", Code: "unidentified",
			Detail: "must name an order (order_id, order_ref), a party or a metadata.external_ref: else nobody could tell whether it was entered before",
		})
	}
	if len(faults) > 0 {
		return n, invalid(faults)
	}
	return n, nil
}

// createIncome answers 201 where the request entered the income, and 200 with the income as it stands where its
// reference was entered before.
func (a *API) createIncome(ctx context.Context, c *call, in *createIncomeIn) (*incomeOut, error) {
	n, err := in.Body.Data.income(c)
	if err != nil {
		return nil, err
	}
	var entered store.EnteredIncome
	err = a.unit(ctx, func(tx store.Tx) (err error) {
		entered, err = a.store.CreateIncome(ctx, tx, n)
		return err
	})
	var twin *store.DuplicateError
	switch {
	case errors.As(err, &twin):
		return nil, possibleDuplicate(twin)
	case errors.Is(err, store.ErrNotFound):
		p := problem(CodeOrderNotFound, "This account has no order of that name; register it first. Nothing was entered.")
		at := "/data/order_ref"
		if n.OrderRef == "" {
			at = "/data/order_id"
		}
		p.Errors = []FieldError{{Pointer: at, Code: string(CodeOrderNotFound), Detail: "is no order of this account"}}
		return nil, p
	case err != nil:
		return nil, fmt.Errorf("enter an income: %w", err)
	}
	idempotency.SetResource(ctx, resourceIncome, entered.ID)
	noteOrder(c, entered.Income)
	if entered.Differs {
		c.note = noteBodyDiffers
	}
	status := http.StatusOK
	if entered.New {
		status = http.StatusCreated
	}
	out := shownIncome(status, entered.Income)
	out.Location = incomePath(entered.ID)
	return out, nil
}

type incomePathIn struct {
	ID string `path:"id" format:"uuid" doc:"The income's id."`
}

func (a *API) voidIncome(ctx context.Context, c *call, in *incomePathIn) (*incomeOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, incomeNotFound()
	}
	var void store.Income
	err = a.unit(ctx, func(tx store.Tx) (err error) {
		void, _, err = a.store.VoidIncome(ctx, tx, c.key.Account, id)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, incomeNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("void income %s: %w", id, err)
	}
	idempotency.SetResource(ctx, resourceIncome, id)
	noteOrder(c, void)
	return shownIncome(http.StatusOK, void), nil
}

func (a *API) getIncome(ctx context.Context, c *call, in *incomePathIn) (*incomeOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, incomeNotFound()
	}
	found, err := a.store.GetIncome(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, incomeNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read income %s: %w", id, err)
	}
	noteOrder(c, found)
	return shownIncome(http.StatusOK, found), nil
}

// noteOrder has the log line say which order it was about.
func noteOrder(c *call, in store.Income) {
	if in.Order != nil {
		c.order = in.Order.String()
	}
}

type listIncomesIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	OrderID      string             `query:"order_id" format:"uuid" doc:"Only those that were received for this order."`
	Status       store.IncomeStatus `query:"status" doc:"Only in this status."`
	ExternalRef  string             `query:"external_ref" maxLength:"255" doc:"Only the income of this name."`
	CreatedFrom  time.Time          `query:"created_from" doc:"Only those entered at or after this time."`
	CreatedUntil time.Time          `query:"created_until" doc:"Only those entered before this time."`
}

type listIncomesOut struct {
	Body pageOf[incomeDoc]
}

func (a *API) listIncomes(ctx context.Context, c *call, in *listIncomesIn) (*listIncomesOut, error) {
	at, err := cursorOf(listIncomes, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.IncomeFilter{
		Account: c.key.Account, Ref: in.ExternalRef, Status: in.Status, CreatedFrom: in.CreatedFrom, CreatedUntil: in.CreatedUntil,
		Before: at.ID, Limit: in.Limit,
	}
	if in.OrderID != "" {
		if f.Order, err = uuid.Parse(in.OrderID); err != nil {
			return nil, badParameter("order_id", "invalid_uuid", "must be a UUID")
		}
	}
	found, next, err := a.store.ListIncomes(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listIncomesOut{}
	for _, in := range found {
		out.Body.Data = append(out.Body.Data, incomeOf(in))
	}
	if next != uuid.Nil {
		out.Body.Next, err = cursor{List: listIncomes, ID: next}.next()
	}
	return out, err
}
