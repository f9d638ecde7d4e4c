package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

func (a *API) recurrenceEndpoints() {
	add(a, endpoint{
		ID: "createRecurrence", Method: http.MethodPost, Path: "/v1/recurrences", Tag: tagRecurrences, Role: roleWrite,
		Summary: "Have an order made per period",
		Description: "Makes one order for each period as it begins, called {external_ref}:{period}, such as club_7:2026-10, in the account's time zone. Each is registered " +
			"once, whatever fails or is repeated, as if you had sent POST /v1/orders of that name; one that you or a webhook made before is left as it is, or filled. " +
			"Its metadata are these with external_ref, recurrence_id and period of its own.\n\n" +
			"Orders of periods that have begun are made at once. A renewal of a subscription at a gateway pays the order of its period if the subscription's " +
			"reference or its id is the recurrence's external_ref.\n\n" +
			"201: this request made it. 200: there is one of this external_ref, perhaps an ended one; it is shown as it stands, and nothing of this request is taken. " +
			"So a request may be sent again at any time, with an Idempotency-Key or without one.",
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK},
		Request: `{"data": {"amount": 5000, "currency": "EUR", "interval": "month", "starts_on": "2026-10-05", "ends_after": 12,
			"items": [{"sku": "CLUB", "qty": 1}], "metadata": {"external_ref": "club_7"}}}`,
		Response: recurrenceExample,
	}, a.createRecurrence)
	add(a, endpoint{
		ID: "listRecurrences", Method: http.MethodGet, Path: "/v1/recurrences", Tag: tagRecurrences, Role: roleRead,
		Summary:     "List recurrences, the newest first",
		Description: "All filters must hold. A recurrence is found by your own name of it with external_ref; the list then has one or none.",
		Codes:       []Code{CodeInvalidCursor}, Response: pageExample(recurrenceExample),
	}, a.listRecurrences)
	add(a, endpoint{
		ID: "getRecurrence", Method: http.MethodGet, Path: "/v1/recurrences/{id}", Tag: tagRecurrences, Role: roleRead,
		Summary:     "Show a recurrence",
		Description: "What it was made with, and how far it has come. Its orders are found with GET /v1/orders?external_ref={external_ref}:{period}.",
		Codes:       []Code{CodeRecurrenceNotFound}, Response: recurrenceExample,
	}, a.getRecurrence)
	add(a, endpoint{
		ID: "endRecurrence", Method: http.MethodPost, Path: "/v1/recurrences/{id}/end", Tag: tagRecurrences, Role: roleWrite,
		Summary: "End a recurrence",
		Description: "No order is made for a period that begins after the day that ends_on names; without it, for one that begins from now on. Orders that were made stay: " +
			"cancel those that nobody shall pay. A period that has begun still gets its order.\n\n" +
			"Ending it again changes nothing and answers 200, with an Idempotency-Key or without one. An end is never put off.",
		Idempotency: protected, Codes: []Code{CodeRecurrenceNotFound, CodeEndsEarlier},
		Request: `{"data": {"ends_on": "2027-03-31"}}`, Response: recurrenceExample,
	}, a.endRecurrence)
}

type createRecurrenceIn struct {
	Body dataOf[newRecurrenceDoc]
}

// newRecurrenceDoc is what a recurrence is made with.
type newRecurrenceDoc struct {
	Amount   minor        `json:"amount"`
	Currency currencyCode `json:"currency"`
	Items    []anyObject  `json:"items,omitempty" maxItems:"1000" doc:"What is sold each time; objects of your own, kept as they are."`
	Metadata metadata     `json:"metadata"`

	Interval intervalWord `json:"interval"`
	Every    *int         `json:"every,omitempty" minimum:"1" maximum:"1000" nullable:"false" default:"1" doc:"How many intervals a period is long. It has the name of the one that it begins in."`
	StartsOn firstDay     `json:"starts_on"`

	EndsOn    lastDay `json:"ends_on,omitempty"`
	EndsAfter *int    `json:"ends_after,omitempty" minimum:"1" maximum:"100000" nullable:"true" doc:"How many periods there are at most. Null: any number."`
}

// maxBehind is how many periods may have begun when a recurrence is made: more are a mistake, or somebody else's past.
const maxBehind = 1000

// recurrence is what the store makes of a request, or what is wrong with it.
func (d newRecurrenceDoc) recurrence(account, zone string) (n store.NewRecurrence, err error) {
	n = store.NewRecurrence{
		Account: account, Amount: order.Amount{Minor: int64(d.Amount), Currency: string(d.Currency)},
		Interval: period.Interval(d.Interval), Every: 1, TimeZone: zone,
	}
	if d.Every != nil {
		n.Every = *d.Every
	}
	if d.EndsAfter != nil {
		n.EndsAfter = *d.EndsAfter
	}
	said, err := d.Metadata.members()
	if err != nil {
		return n, err
	}
	if n.Ref, err = d.Metadata.externalRef(); err != nil {
		return n, err
	}
	if n.Details, err = (newOrderDoc{Items: d.Items, Metadata: d.Metadata}).details(); err != nil {
		return n, err
	}
	if n.StartsOn, err = period.ParseDate(string(d.StartsOn)); err != nil {
		return n, err
	}
	if n.EndsOn, err = d.EndsOn.date(); err != nil {
		return n, err
	}
	var faults []FieldError
	fault := func(at, code, detail string) {
		faults = append(faults, FieldError{Pointer: at, Code: code, Detail: detail})
	}
	switch {
	case n.Ref == "":
		fault("/data/metadata/external_ref", "required", "is missing: its orders are called after it")
	case len(n.Ref) > store.MaxRecurrenceRef:
		fault("/data/metadata/external_ref", "too_long", fmt.Sprintf("must have at most %d bytes, since its orders have the period behind it", store.MaxRecurrenceRef))
	}
	for _, key := range []string{store.MetadataPeriod, store.MetadataRecurrence} {
		if _, taken := said[key]; taken {
			fault("/data/metadata/"+key, "reserved", "is what its orders are told apart by")
		}
	}
	if !n.EndsOn.IsZero() && n.EndsOn.Before(n.StartsOn) {
		fault("/data/ends_on", "before_start", "must not come before starts_on")
	}
	if len(faults) > 0 {
		return n, invalid(faults)
	}
	return n, nil
}

func (a *API) createRecurrence(ctx context.Context, c *call, in *createRecurrenceIn) (out *recurrenceOut, err error) {
	n, err := in.Body.Data.recurrence(c.key.Account, a.opts.TimeZone(c.key.Account))
	if err != nil {
		return nil, err
	}
	err = a.unit(ctx, func(tx store.Tx) error {
		r, created, err := a.store.CreateRecurrence(ctx, tx, n)
		if err != nil {
			return err
		}
		c.note = ""
		status := http.StatusCreated
		if created {
			err = a.notTooFarBehind(ctx, tx, r)
		} else {
			status = http.StatusOK
			if !sameRecurrence(r, n) {
				c.note = noteBodyDiffers
			}
		}
		if err != nil {
			return err
		}
		idempotency.SetResource(ctx, resourceRecurrence, r.ID)
		if out, err = shownRecurrence(status, r); err == nil {
			out.Location = recurrencePath(r.ID)
		}
		return err
	})
	return out, err
}

// notTooFarBehind refuses a recurrence that would make orders of years that are over.
func (a *API) notTooFarBehind(ctx context.Context, tx store.Tx, r store.Recurrence) error {
	if r.Created < store.MaxPeriods || r.NextPeriod == nil {
		return nil
	}
	now, err := a.store.Clock(ctx, tx)
	if err != nil {
		return err
	}
	schedule, err := r.Schedule()
	if err != nil {
		return err
	}
	next, ok := schedule.Named(*r.NextPeriod)
	for begun := r.Created; ok && !next.Start.After(now) && (r.EndsOn == nil || !r.EndsOn.Before(next.On)); begun++ {
		if begun >= maxBehind && (r.EndsAfter == nil || *r.EndsAfter > maxBehind) {
			return invalid([]FieldError{{
				Pointer: "/data/starts_on", Code: "too_long_ago",
				Detail: fmt.Sprintf("must not be so long ago that more than %d periods have begun", maxBehind),
			}})
		}
		next, ok = schedule.Next(next)
	}
	return nil
}

// sameRecurrence reports whether a recurrence is what a request would have made.
func sameRecurrence(r store.Recurrence, n store.NewRecurrence) bool {
	x, err1 := canonical(r.Details)
	y, err2 := canonical(n.Details)
	return err1 == nil && err2 == nil && bytes.Equal(x, y) &&
		r.Amount == n.Amount && r.Interval == n.Interval && r.Every == n.Every && r.StartsOn == n.StartsOn &&
		(r.EndsAfter == nil) == (n.EndsAfter == 0) && (r.EndsAfter == nil || *r.EndsAfter == n.EndsAfter)
}

type listRecurrencesIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	State       recurrenceState `query:"state" doc:"Only in this state."`
	ExternalRef string          `query:"external_ref" maxLength:"255" doc:"Only the recurrence of this name."`
}

type listRecurrencesOut struct {
	Body pageOf[recurrenceDoc]
}

func (a *API) listRecurrences(ctx context.Context, c *call, in *listRecurrencesIn) (*listRecurrencesOut, error) {
	at, err := cursorOf(listRecurrences, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.RecurrenceFilter{Account: c.key.Account, Ref: in.ExternalRef, Before: at.ID, Limit: in.Limit}
	if in.State != "" {
		ended := in.State == stateEnded
		f.Ended = &ended
	}
	found, next, err := a.store.ListRecurrences(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listRecurrencesOut{}
	for _, r := range found {
		doc, err := recurrenceOf(r)
		if err != nil {
			return nil, err
		}
		out.Body.Data = append(out.Body.Data, doc)
	}
	if next != uuid.Nil {
		out.Body.Next, err = cursor{List: listRecurrences, ID: next}.next()
	}
	return out, err
}

type recurrencePathIn struct {
	ID string `path:"id" format:"uuid" doc:"The recurrence's id."`
}

func (a *API) getRecurrence(ctx context.Context, c *call, in *recurrencePathIn) (*recurrenceOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, recurrenceNotFound()
	}
	r, err := a.store.GetRecurrence(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, recurrenceNotFound()
	}
	if err != nil {
		return nil, err
	}
	return shownRecurrence(http.StatusOK, r)
}

type endRecurrenceIn struct {
	ID   string `path:"id" format:"uuid" doc:"The recurrence's id."`
	Body dataOf[endRecurrenceDoc]
}

// endRecurrenceDoc is when a recurrence ends.
type endRecurrenceDoc struct {
	EndsOn lastDay `json:"ends_on,omitempty"`
}

func (a *API) endRecurrence(ctx context.Context, c *call, in *endRecurrenceIn) (out *recurrenceOut, err error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, recurrenceNotFound()
	}
	on, err := in.Body.Data.EndsOn.date()
	if err != nil {
		return nil, err
	}
	err = a.unit(ctx, func(tx store.Tx) error {
		r, err := a.store.EndRecurrence(ctx, tx, c.key.Account, id, on)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return recurrenceNotFound()
		case errors.Is(err, store.ErrEndsEarlier):
			return problem(CodeEndsEarlier, "It ends before that day already, and an end is never put off. Make another recurrence, under another external_ref.")
		case err != nil:
			return err
		}
		idempotency.SetResource(ctx, resourceRecurrence, r.ID)
		out, err = shownRecurrence(http.StatusOK, r)
		return err
	})
	return out, err
}
