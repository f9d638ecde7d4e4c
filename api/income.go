package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const (
	tagIncomes     = "incomes"
	resourceIncome = "income"
)

// incomeDoc is an income as the merchant sees it.
type incomeDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID          uuid.UUID          `json:"id" format:"uuid" doc:"Also the id of its payment, in the realm offline."`
	ExternalRef *string            `json:"external_ref" doc:"Your own name of it. Null: it has none."`
	OrderID     *uuid.UUID         `json:"order_id" format:"uuid" nullable:"true" doc:"The order that it was received for. Null: none."`
	OrderRef    *string            `json:"order_ref" doc:"That order's external_ref."`
	Party       *string            `json:"party" doc:"Who paid, in your own words."`
	Kind        order.IncomeKind   `json:"kind"`
	Amount      int64              `json:"amount" doc:"Minor units of currency."`
	Currency    string             `json:"currency"`
	Source      *moneyDoc          `json:"source,omitempty" doc:"What was handed over, where that is another currency."`
	ReceivedOn  *string            `json:"received_on" format:"date" doc:"The day, as you told it."`
	Status      store.IncomeStatus `json:"status" doc:"voided: taken back; it counts for nothing."`
	VoidedAt    *time.Time         `json:"voided_at"`
	Metadata    anyObject          `json:"metadata,omitempty" doc:"As it was entered."`
	CreatedAt   time.Time          `json:"created_at"`
}

// moneyDoc is an amount with its currency.
type moneyDoc struct {
	_ struct{} `additionalProperties:"true"`

	Amount   int64  `json:"amount" doc:"Minor units of currency."`
	Currency string `json:"currency"`
}

func incomeOf(in store.Income) incomeDoc {
	doc := incomeDoc{
		ID: in.ID, ExternalRef: textOrNull(in.Ref), OrderID: in.Order, OrderRef: textOrNull(in.OrderRef), Party: textOrNull(in.Party), Kind: in.Kind,
		Amount: in.Amount.Minor, Currency: in.Amount.Currency, Status: in.Status, VoidedAt: in.VoidedAt, Metadata: anyObject(in.Metadata),
		CreatedAt: in.CreatedAt,
	}
	if in.Source != nil {
		doc.Source = &moneyDoc{Amount: in.Source.Minor, Currency: in.Source.Currency}
	}
	if in.ReceivedOn != nil {
		doc.ReceivedOn = textOrNull(in.ReceivedOn.Format(time.DateOnly))
	}
	return doc
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// incomeOut is an answer that shows an income.
type incomeOut struct {
	Status   int
	Location string `header:"Location" doc:"Where the income is; of 201 and 200 to a POST."`
	Body     dataOf[incomeDoc]
}

func shownIncome(status int, in store.Income) *incomeOut {
	return &incomeOut{Status: status, Body: dataOf[incomeDoc]{incomeOf(in)}}
}

func incomePath(id uuid.UUID) string { return "/v1/incomes/" + id.String() }

func incomeNotFound() *Problem {
	return problem(CodeIncomeNotFound, "This account has no income of that id.")
}

// possibleDuplicate is the problem of money that was entered a moment ago, of whichever sort it is.
func possibleDuplicate(twin *store.DuplicateError) *Problem {
	p := problemf(CodePossibleDuplicate, "The same was entered within this minute: see resource. If this is another one, say so by a metadata.external_ref "+
		"of its own. Nothing of this request was written.")
	p.Resource = &resourceDoc{Type: twin.Resource, ID: twin.ID.String(), Href: ResourceURL(twin.Resource, twin.ID)}
	return p
}

type (
	incomeKindWord   string
	incomeStatusWord string
)

// Schema documents the kinds there are.
func (incomeKindWord) Schema(huma.Registry) *huma.Schema {
	return words(order.IncomeKinds(), "How the money came; card: at a terminal that is no source of Paidonce.")
}

// Schema documents the statuses there are.
func (incomeStatusWord) Schema(huma.Registry) *huma.Schema {
	return words([]store.IncomeStatus{store.IncomeReceived, store.IncomeVoided}, "")
}

// day is a day that a request names.
type day string

// Schema documents it.
func (day) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date", Nullable: true, Examples: []any{"2026-10-01"}}
}

// time returns midnight UTC of the day; nil: none was named.
func (d day) time() (*time.Time, error) {
	if d == "" {
		return nil, nil
	}
	t, err := time.Parse(time.DateOnly, string(d))
	return &t, err
}

// isDay refuses what is no day, or so long ago or ahead that the year must be a mistake.
func isDay(s string) (code, detail string) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1970 {
		return "invalid_date", "must be a day such as 2026-01-31, not before 1970"
	}
	return "", ""
}

// name is what a request calls something or somebody. Absent and null are one thing: none. Empty is refused: it comes from a
// program that has lost what it meant to send.
type name string

// Schema documents it.
func (name) Schema(huma.Registry) *huma.Schema {
	least := 1
	return &huma.Schema{
		Type: huma.TypeString, Nullable: true, Format: formatReference, MinLength: &least,
		Description: fmt.Sprintf("At most %d bytes of printable text without a space at either end.", order.MaxReference),
	}
}

const incomeExample = `{"data": {
  "id": "0199a1b2-0000-7000-8000-000000000002", "external_ref": "till-3/2026-10-01/17", "order_id": "0199a1b2-0000-7000-8000-000000000001",
  "order_ref": "ord_123", "party": null, "kind": "cash", "amount": 5000, "currency": "EUR", "received_on": "2026-10-01", "status": "received",
  "voided_at": null, "metadata": {"external_ref": "till-3/2026-10-01/17"}, "created_at": "2026-10-01T09:00:00Z"}}`

func (a *API) incomeEndpoints() {
	add(a, endpoint{
		ID: "createIncome", Method: http.MethodPost, Path: "/v1/incomes", Tag: tagIncomes, Role: roleWrite,
		Summary: "Enter money that you received otherwise",
		Description: "Money that no gateway has seen: cash, a bank transfer. Towards an order it counts like any payment, and what the order owes follows at once; " +
			"in another currency than the order's it is flagged (currency_mismatch) and not counted. The order must be there.\n\n" +
			"201: this request entered it. 200: its metadata.external_ref was entered before; the income is shown as it stands, and nothing of this request is taken.\n\n" +
			"An external_ref, an order or a party must be named. Without an external_ref, what is the same in order, party, kind, currencies and amount is taken " +
			"once in a minute of the clock (UTC), with an Idempotency-Key or without one: 409 `possible_duplicate` names what is there.",
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK}, Codes: []Code{CodeOrderNotFound, CodePossibleDuplicate},
		Request: `{"data": {"amount": 5000, "currency": "EUR", "kind": "cash", "order_ref": "ord_123", "received_on": "2026-10-01",
  "metadata": {"external_ref": "till-3/2026-10-01/17"}}}`,
		Response: incomeExample,
	}, a.createIncome)
	add(a, endpoint{
		ID: "voidIncome", Method: http.MethodPost, Path: "/v1/incomes/{id}/void", Tag: tagIncomes, Role: roleWrite,
		Summary: "Take an income back",
		Description: "It was a mistake, or did not come after all: it counts for nothing from now on, and if the order was fulfilled because of it, your callback is told " +
			"to revoke it. It stays in the list, and its external_ref stays taken. Again: 200, and nothing happens.",
		Idempotency: protected, Codes: []Code{CodeIncomeNotFound},
		Response: `{"data": ` + replaced(incomeExample, `"status": "received"`, `"status": "voided"`, `"voided_at": null`, `"voided_at": "2026-10-01T10:00:00Z"`) + `}`,
	}, a.voidIncome)
	add(a, endpoint{
		ID: "getIncome", Method: http.MethodGet, Path: "/v1/incomes/{id}", Tag: tagIncomes, Role: roleRead,
		Summary: "Show an income", Description: "As it was entered, and whether it was taken back. What it brought about is in its order's timeline.",
		Codes: []Code{CodeIncomeNotFound}, Response: incomeExample,
	}, a.getIncome)
	add(a, endpoint{
		ID: "listIncomes", Method: http.MethodGet, Path: "/v1/incomes", Tag: tagIncomes, Role: roleRead,
		Summary: "List incomes, the newest first", Description: "All filters must hold.",
		Codes: []Code{CodeInvalidCursor}, Response: pageExample(incomeExample),
	}, a.listIncomes)
}
