package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// orderDoc is an order as the merchant sees it. Amounts are minor units of its currency.
type orderDoc struct {
	ID          uuid.UUID   `json:"id"`
	ExternalRef string      `json:"external_ref"`
	Registered  bool        `json:"registered"` // false: a stub, made by a webhook that came first
	State       order.State `json:"state"`
	Flags       []string    `json:"flags"`  // never null
	Amount      *int64      `json:"amount"` // null: not known yet
	Currency    *string     `json:"currency"`

	Authorized int64 `json:"authorized"`
	Captured   int64 `json:"captured"`
	Refunded   int64 `json:"refunded"`
	Lost       int64 `json:"lost"`
	Kept       int64 `json:"kept"`
	AtRisk     int64 `json:"at_risk"`

	Told    order.Told `json:"told"`
	Version int        `json:"version"` // also the ETag, in quotes

	details

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// details is what an order's registration said beside its amount: the JSON of [order.Command].Details.
type details struct {
	Items    json.RawMessage `json:"items,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

func docOf(o store.Order) (orderDoc, error) {
	doc := orderDoc{
		ID: o.ID, ExternalRef: o.Ref, Registered: o.Registered, State: o.State, Flags: slices.Clone(o.Flags),
		Amount: o.Total, Currency: o.Currency,
		Authorized: o.Authorized, Captured: o.Captured, Refunded: o.Refunded, Lost: o.Lost, Kept: o.Kept, AtRisk: o.AtRisk,
		Told: o.Told, Version: o.Version, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	if doc.Flags == nil {
		doc.Flags = []string{}
	}
	if len(o.Details) > 0 {
		if err := json.Unmarshal(o.Details, &doc.details); err != nil {
			return orderDoc{}, fmt.Errorf("details of order %s: %w", o.ID, err)
		}
	}
	return doc, nil
}

// shown is the answer that shows an order. Its version is its entity tag.
func shown(status int, o store.Order) (*response, error) {
	doc, err := docOf(o)
	if err != nil {
		return nil, err
	}
	header := map[string]string{"ETag": `"` + strconv.Itoa(o.Version) + `"`}
	return &response{status: status, header: header, data: doc}, nil
}

// noteBodyDiffers is logged where a reference was registered before with another body. It is answered as any repeat:
// the reference alone says which order is meant.
const noteBodyDiffers = "external_ref_body_differs"

// registerOrder answers 201 where the request registered the order, new or a webhook's stub, and 200 with the order as
// it stands where it had been registered before, or where a gateway's amount had made it with another total, which
// flags it total_differs.
func (a *API) registerOrder(r *http.Request, l *record) (*response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	doc, bad := parse(body)
	if bad != nil {
		return nil, bad
	}
	reg, faults := registrationOf(doc)
	if len(faults) > 0 {
		return nil, invalid(faults)
	}
	if reg.ref == "" {
		// An order without a name of the merchant's gets one of ours, to be handed to the gateway: payments find their
		// order by it. A repeat of this request is then another order.
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make a reference: %w", err)
		}
		reg.ref = id.String()
	}
	delivery, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make a delivery id: %w", err)
	}

	ctx, cancel := a.detached(r)
	defer cancel()
	results, err := a.ingest.Ingest(ctx, []store.Event{{
		Event: order.Event{
			ID: registerID(reg.ref), Type: "order.registered", At: a.opts.Now(),
			Reference: reg.ref, Strength: order.StrengthPerson, Command: &order.Command{Register: &reg.total, Details: reg.details},
		},
		Account: l.account, Source: store.APISource,
		Delivery: delivery, Payload: body,
	}})
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	if len(results) != 1 {
		return nil, errors.New("register: not one result for one event")
	}
	res := results[0]
	l.order = res.Order.String()
	if res.Differs {
		l.note = noteBodyDiffers
	}
	o, err := a.orders.GetOrder(ctx, l.account, res.Order)
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", res.Order, err)
	}

	status := http.StatusOK
	if res.Outcome != store.Duplicate && !slices.Contains(o.Flags, order.FlagTotalDiffers.String()) {
		status = http.StatusCreated
	}
	resp, err := shown(status, o)
	if err != nil {
		return nil, err
	}
	resp.header["Location"] = "/v1/orders/" + o.ID.String()
	return resp, nil
}

func (a *API) readOrder(r *http.Request, l *record) (*response, error) {
	id, err := uuid.Parse(chi.URLParam(r, "id"))
	if err != nil {
		return nil, notFound()
	}
	ctx, cancel := a.detached(r)
	defer cancel()
	o, err := a.orders.GetOrder(ctx, l.account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", id, err)
	}
	l.order = o.ID.String()
	return shown(http.StatusOK, o)
}

func notFound() *Problem {
	return problem(http.StatusNotFound, "order_not_found", "This account has no order of that id.")
}

// registerID is the id of a registration's event: one per reference, so that a second one is a duplicate of the first.
// References that hold the mark which ids of events must not hold go by their hash.
func registerID(ref string) string {
	if strings.Contains(ref, "#") {
		sum := sha256.Sum256([]byte(ref))
		return "register-sha256:" + hex.EncodeToString(sum[:])
	}
	return "register:" + ref
}
