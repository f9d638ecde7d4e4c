package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const tagOrders = "orders"

// orderDoc is an order as the merchant sees it. Amounts are minor units of its currency.
type orderDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID          uuid.UUID    `json:"id" format:"uuid"`
	ExternalRef string       `json:"external_ref" doc:"Your own name of it; payments find their order by it."`
	Registered  bool         `json:"registered" doc:"False: a stub, made by a webhook that came first."`
	State       order.State  `json:"state"`
	Flags       list[string] `json:"flags" doc:"What somebody should look at; new ones may come."`
	Amount      *int64       `json:"amount" doc:"The total. Null: not known yet."`
	Currency    *string      `json:"currency" doc:"ISO 4217. Null: not known yet."`

	Authorized int64 `json:"authorized" doc:"Reserved and not captured."`
	Captured   int64 `json:"captured"`
	Refunded   int64 `json:"refunded"`
	Lost       int64 `json:"lost" doc:"Taken back by disputes and reversals."`
	Kept       int64 `json:"kept" doc:"captured - refunded - lost"`
	AtRisk     int64 `json:"at_risk" doc:"Of what is kept, how much open disputes are about."`

	Dismissed list[string] `json:"dismissed" doc:"Flags that a person has dealt with; not among flags until they arise anew."`
	ExpiresAt *time.Time   `json:"expires_at" doc:"Until when it should be paid. Null: for ever."`

	Told    order.Told `json:"told" doc:"What your callback has confirmed last."`
	Version int        `json:"version" doc:"Counts the order's changes; also the ETag, in quotes."`

	Items    list[anyObject] `json:"items,omitempty" doc:"As it was registered."`
	Metadata anyObject       `json:"metadata,omitempty" doc:"As it was registered."`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func orderOf(o store.Order) (orderDoc, error) {
	doc := orderDoc{
		ID: o.ID, ExternalRef: o.Ref, Registered: o.Registered, State: o.State, Flags: slices.Clone(o.Flags),
		Amount: o.Total, Currency: o.Currency,
		Authorized: o.Authorized, Captured: o.Captured, Refunded: o.Refunded, Lost: o.Lost, Kept: o.Kept, AtRisk: o.AtRisk,
		Dismissed: slices.Clone(o.Dismissed), ExpiresAt: o.ExpiresAt, Told: o.Told, Version: o.Version, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	if len(o.Details) == 0 {
		return doc, nil
	}
	// What the registration said beside its amount: the JSON of [order.Command].Details.
	var said struct {
		Items    list[anyObject] `json:"items"`
		Metadata anyObject       `json:"metadata"`
	}
	if err := json.Unmarshal(o.Details, &said); err != nil {
		return orderDoc{}, fmt.Errorf("details of order %s: %w", o.ID, err)
	}
	doc.Items, doc.Metadata = said.Items, said.Metadata
	return doc, nil
}

// orderOut is an answer that shows an order. Its version is its entity tag.
type orderOut struct {
	Status   int
	ETag     string `header:"ETag" doc:"The order's version, in quotes." example:"\"3\""`
	Location string `header:"Location" doc:"Where the order is; of 201 and 200 to a POST."`
	Body     dataOf[orderDoc]
}

func shown(status int, o store.Order) (*orderOut, error) {
	doc, err := orderOf(o)
	if err != nil {
		return nil, err
	}
	out := &orderOut{Status: status, ETag: etagOf(o.Version), Body: dataOf[orderDoc]{doc}}
	if status == http.StatusCreated {
		out.Location = orderPath(o.ID)
	}
	return out, nil
}

// etagOf is the entity tag of an order at a version.
func etagOf(version int) string { return `"` + strconv.Itoa(version) + `"` }

func orderPath(id uuid.UUID) string { return "/v1/orders/" + id.String() }

func orderNotFound() *Problem {
	return problem(CodeOrderNotFound, "This account has no order of that id.")
}

const orderExample = `{"data": {
  "id": "0199a1b2-0000-7000-8000-000000000001", "external_ref": "ord_123", "registered": true, "state": "pending", "flags": [],
  "amount": 5000, "currency": "EUR", "authorized": 0, "captured": 0, "refunded": 0, "lost": 0, "kept": 0, "at_risk": 0, "dismissed": [],
  "expires_at": null, "told": "nothing", "version": 1, "items": [{"sku": "A", "qty": 1}], "metadata": {"external_ref": "ord_123"},
  "created_at": "2026-10-01T09:00:00Z", "updated_at": "2026-10-01T09:00:00Z"}}`
