package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) orderListEndpoints() {
	add(a, endpoint{
		ID: "listOrders", Method: http.MethodGet, Path: "/v1/orders", Tag: tagOrders, Role: roleRead,
		Summary:     "List orders, the newest first",
		Description: "All filters must hold. An order is found by your own name of it with external_ref; the list then has one order or none.",
		Codes:       []Code{CodeInvalidCursor}, Response: pageExample(orderExample),
	}, a.listOrders)
}

type listOrdersIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	State        order.State `query:"state" doc:"Only in this state."`
	Flag         string      `query:"flag" maxLength:"64" doc:"Only with this flag, such as overpaid."`
	Stubs        bool        `query:"stubs" doc:"true: only those that have a payment and that nobody registered."`
	ExternalRef  string      `query:"external_ref" maxLength:"255" doc:"Only the order of this name."`
	CreatedFrom  time.Time   `query:"created_from" doc:"Only those made at or after this time."`
	CreatedUntil time.Time   `query:"created_until" doc:"Only those made before this time."`
}

type listOrdersOut struct {
	Body pageOf[orderDoc]
}

func (a *API) listOrders(ctx context.Context, c *call, in *listOrdersIn) (*listOrdersOut, error) {
	at, err := cursorOf(listOrders, in.Cursor)
	if err != nil {
		return nil, err
	}
	if in.Flag != "" {
		if _, err := order.ParseFlags([]string{in.Flag}); err != nil {
			return nil, badParameter("flag", "unknown_value", "is no flag that an order can have")
		}
	}
	found, next, err := a.store.ListOrders(ctx, store.OrderFilter{
		Account: c.key.Account, Ref: in.ExternalRef, State: string(in.State), Flag: in.Flag, Stubs: in.Stubs,
		CreatedFrom: in.CreatedFrom, CreatedUntil: in.CreatedUntil, Before: at.ID, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &listOrdersOut{}
	for _, o := range found {
		doc, err := orderOf(o)
		if err != nil {
			return nil, err
		}
		out.Body.Data = append(out.Body.Data, doc)
	}
	if next != uuid.Nil {
		out.Body.Next, err = cursor{List: listOrders, ID: next}.next()
	}
	return out, err
}

// badParameter is the problem of a parameter that only the handler can judge.
func badParameter(name, code, detail string) *Problem {
	p := problem(CodeInvalidParameter, "A parameter is not what this endpoint takes; see errors.")
	p.Errors = []FieldError{{Parameter: name, Code: code, Detail: detail}}
	return p
}
