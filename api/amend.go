package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) amendEndpoint() {
	add(a, endpoint{
		ID: "amendOrder", Method: http.MethodPatch, Path: "/v1/orders/{id}", Tag: tagOrders, Role: roleWrite,
		Summary: "Change an order",
		Description: "A JSON merge patch (RFC 7396) of what the order was registered with: a member that is missing stays, null takes it away, objects are merged, " +
			"and everything else is replaced. metadata.external_ref is the order's name and stays.\n\n" +
			"Amount and currency can change as long as nothing was ever captured. The change is made to the version that If-Match names, or not at all: after " +
			"412 read the order again, decide anew, and take a new Idempotency-Key, since this is another request.\n\n" +
			"Without an Idempotency-Key a request may be sent again too, as the version has moved on if the first one was carried out; but then nobody says which " +
			"of your changes that was. With If-Match: * send a key.",
		Idempotency: protected,
		Codes:       []Code{CodeOrderNotFound, CodePreconditionRequired, CodeVersionMismatch, CodeUnregistered, CodeCaptured},
		Request:     `{"data": {"amount": 6000, "metadata": {"note": "gift wrap", "coupon": null}, "expires_at": null}}`,
		Response:    orderExample,
	}, a.amendOrder)
}

type amendOrderIn struct {
	ID      string   `path:"id" format:"uuid" doc:"The order's id."`
	IfMatch matching `header:"If-Match" required:"true"`
	Body    dataOf[amendOrderDoc]
}

// amendOrderDoc is a merge patch. What is raw tells absent (nil) from null.
type amendOrderDoc struct {
	Amount    *minor        `json:"amount,omitempty" nullable:"false"`
	Currency  *currencyCode `json:"currency,omitempty" nullable:"false"`
	Items     items         `json:"items,omitempty"`
	Metadata  metadata      `json:"metadata,omitempty"`
	ExpiresAt deadline      `json:"expires_at,omitempty"`
}

// items is the list of what is sold, or null.
type items json.RawMessage

// UnmarshalJSON keeps it raw.
func (i *items) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(i).UnmarshalJSON(b) }

// Schema documents it.
func (items) Schema(r huma.Registry) *huma.Schema {
	most := 1000
	return &huma.Schema{
		Type: huma.TypeArray, Nullable: true, MaxItems: &most, Items: anyObject{}.Schema(r),
		Description: "What is sold; objects of your own, kept as they are.",
	}
}

// maxAmendTries bounds how often an amendment looks again because the order has moved meanwhile to another version that
// If-Match names as well.
const maxAmendTries = 16

var errBusy = errors.New("the order moved again and again while it was to be changed")

func (a *API) amendOrder(ctx context.Context, c *call, in *amendOrderIn) (out *orderOut, err error) {
	if in.IfMatch == "" {
		return nil, problem(CodePreconditionRequired, `Say which version the change is meant for: If-Match: "3", as ETag has it.`)
	}
	wanted, ok := parseMatching(string(in.IfMatch))
	if !ok {
		return nil, errors.New("an If-Match that was found in order cannot be read")
	}
	id, err := newEventID("amend")
	if err != nil {
		return nil, err
	}
	err = a.unit(ctx, func(tx store.Tx) error {
		for range maxAmendTries {
			o, err := a.orderTx(ctx, tx, c, in.ID)
			if err != nil {
				return err
			}
			if !wanted.has(etagOf(o.Version)) {
				return refused(&store.Refusal{Code: store.RefusedVersion, Order: o.ID, Version: o.Version})
			}
			change, err := in.Body.Data.of(o)
			if err != nil {
				return err
			}
			if x := change.Expiry; x != nil {
				if err := a.inFuture(ctx, tx, x.At); err != nil {
					return err
				}
			}
			cond := store.Condition{Version: o.Version}
			if wanted.any && !in.Body.Data.completes() {
				cond.Version = 0 // nothing of the change was made of what was read without the lock
			}
			_, err = a.command(ctx, tx, c, order.Event{
				ID: id, Type: "order.amended", Reference: o.Ref, Strength: order.StrengthPerson, Command: &order.Command{Amend: change},
			}, cond)
			var r *store.Refusal
			if errors.As(err, &r) && r.Code == store.RefusedVersion && wanted.has(etagOf(r.Version)) {
				continue // to another version that is meant, too
			}
			if err != nil {
				return refused(err)
			}
			out, err = a.commanded(ctx, tx, c, http.StatusOK, o.ID)
			return err
		}
		return errBusy
	})
	return out, err
}

// of is the patch as an amendment of the order as it stands.
func (d amendOrderDoc) of(o store.Order) (*order.Amendment, error) {
	if d.Amount == nil && d.Currency == nil && d.Items == nil && d.Metadata == nil && d.ExpiresAt == nil {
		return nil, invalid([]FieldError{{Pointer: "/data", Code: "empty", Detail: "changes nothing; name at least one member"}})
	}
	if !o.Registered {
		return nil, refused(&store.Refusal{Code: store.RefusedUnregistered, Order: o.ID, Version: o.Version})
	}
	var change order.Amendment
	if d.Amount != nil || d.Currency != nil {
		if o.Total == nil || o.Currency == nil {
			return nil, fmt.Errorf("order %s is registered and has no total", o.ID)
		}
		change.Total = &order.Amount{Minor: *o.Total, Currency: *o.Currency}
		if d.Amount != nil {
			change.Total.Minor = int64(*d.Amount)
		}
		if d.Currency != nil {
			change.Total.Currency = string(*d.Currency)
		}
	}
	patch := map[string]json.RawMessage{}
	if d.Items != nil {
		patch["items"] = json.RawMessage(d.Items)
	}
	if d.Metadata != nil {
		if err := d.keepsReference(o); err != nil {
			return nil, err
		}
		patch["metadata"] = json.RawMessage(d.Metadata)
	}
	if len(patch) > 0 {
		doc, err := json.Marshal(patch)
		if err != nil {
			return nil, fmt.Errorf("patch: %w", err)
		}
		change.Details = doc
	}
	if d.ExpiresAt != nil {
		at, err := d.ExpiresAt.time()
		if err != nil {
			return nil, err
		}
		change.Expiry = &order.Expiry{At: at}
	}
	return &change, nil
}

// completes reports whether the patch names half of a total, so that the other half is the order's.
func (d amendOrderDoc) completes() bool { return (d.Amount == nil) != (d.Currency == nil) }

// keepsReference refuses a patch of the metadata after which they would name another reference than now, or none. An
// order whose metadata name none has one of ours, which they may name.
func (d amendOrderDoc) keepsReference(o store.Order) error {
	var said struct {
		Metadata metadata `json:"metadata"`
	}
	if len(o.Details) > 0 {
		if err := json.Unmarshal(o.Details, &said); err != nil {
			return fmt.Errorf("details of order %s: %w", o.ID, err)
		}
	}
	had, err := said.Metadata.externalRef()
	if err != nil {
		return err
	}
	members, err := d.Metadata.members()
	if err != nil {
		return err
	}
	if _, named := members["external_ref"]; !named && !d.Metadata.null() {
		return nil
	}
	ref, err := d.Metadata.externalRef()
	if err != nil {
		return err
	}
	if ref != had && ref != o.Ref {
		return invalid([]FieldError{{
			Pointer: "/data/metadata/external_ref", Code: "immutable",
			Detail: "is the order's name, which stays; leave it out, and take other members away one by one",
		}})
	}
	return nil
}
