package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

const tagRecurrences = "recurrences"

// recurrenceDoc is a recurrence as the merchant sees it.
type recurrenceDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID          uuid.UUID       `json:"id" format:"uuid"`
	ExternalRef string          `json:"external_ref" doc:"Your own name of it. Its orders are called {external_ref}:{period}."`
	State       recurrenceState `json:"state"`
	Amount      int64           `json:"amount" doc:"The total of each of its orders, in minor units."`
	Currency    string          `json:"currency" doc:"ISO 4217."`

	Interval period.Interval `json:"interval" enum:"day,week,month,quarter,year" doc:"The unit of a period."`
	Every    int             `json:"every" doc:"How many of them a period is long."`
	TimeZone string          `json:"time_zone" doc:"In which its days begin: that of the account when it was made, for ever."`
	StartsOn period.Date     `json:"starts_on" format:"date"`

	EndsOn    *period.Date `json:"ends_on" format:"date" doc:"No period begins after this day. Null: it does not end by itself."`
	EndsAfter *int         `json:"ends_after" doc:"There are no more periods than this. Null: any number."`

	NextPeriod *string    `json:"next_period" doc:"The first period that was not made yet. Null: no more will come."`
	NextStart  *time.Time `json:"next_start" doc:"When it begins."`
	Created    int        `json:"created" doc:"How many periods were made: each has its order."`
	EndedAt    *time.Time `json:"ended_at" doc:"Since when no more will come. Null: more will."`
	Version    int        `json:"version" doc:"Counts its changes."`

	Items    list[anyObject] `json:"items,omitempty" doc:"As it was made."`
	Metadata anyObject       `json:"metadata,omitempty" doc:"As it was made."`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func recurrenceOf(r store.Recurrence) (recurrenceDoc, error) {
	doc := recurrenceDoc{
		ID: r.ID, ExternalRef: r.Ref, State: stateActive, Amount: r.Amount.Minor, Currency: r.Amount.Currency,
		Interval: r.Interval, Every: r.Every, TimeZone: r.TimeZone, StartsOn: r.StartsOn, EndsOn: r.EndsOn, EndsAfter: r.EndsAfter,
		NextPeriod: r.NextPeriod, NextStart: r.NextStart, Created: r.Created, EndedAt: r.EndedAt, Version: r.Version,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.EndedAt != nil {
		doc.State = stateEnded
	}
	if len(r.Details) == 0 {
		return doc, nil
	}
	var said struct {
		Items    list[anyObject] `json:"items"`
		Metadata anyObject       `json:"metadata"`
	}
	if err := json.Unmarshal(r.Details, &said); err != nil {
		return recurrenceDoc{}, fmt.Errorf("details of recurrence %s: %w", r.ID, err)
	}
	doc.Items, doc.Metadata = said.Items, said.Metadata
	return doc, nil
}

// renewalDoc says of which period of a subscription a payment is.
type renewalDoc struct {
	_ struct{} `additionalProperties:"true"`

	Of    list[string] `json:"of" doc:"What the subscription goes by: your reference of it, its id at the gateway."`
	Start *time.Time   `json:"start,omitempty" doc:"When the period begins."`
	On    string       `json:"on,omitempty" format:"date" doc:"The day on which it begins, where the gateway tells no time."`
}

// recurrenceState says whether more will come.
type recurrenceState string

const (
	stateActive recurrenceState = "active"
	stateEnded  recurrenceState = "ended"
)

// Schema documents them.
func (recurrenceState) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Enum: []any{string(stateActive), string(stateEnded)},
		Description: "ended: no more orders will come of it.",
	}
}

// recurrenceOut is an answer that shows a recurrence.
type recurrenceOut struct {
	Status   int
	Location string `header:"Location" doc:"Where the recurrence is; of 201 and 200 to a POST."`
	Body     dataOf[recurrenceDoc]
}

func shownRecurrence(status int, r store.Recurrence) (*recurrenceOut, error) {
	doc, err := recurrenceOf(r)
	if err != nil {
		return nil, err
	}
	return &recurrenceOut{Status: status, Body: dataOf[recurrenceDoc]{doc}}, nil
}

const resourceRecurrence = "recurrence"

func recurrencePath(id uuid.UUID) string { return "/v1/recurrences/" + id.String() }

func recurrenceNotFound() *Problem {
	return problem(CodeRecurrenceNotFound, "This account has no recurrence of that id.")
}

const recurrenceExample = `{"data": {
  "id": "0199a1b2-0000-7000-8000-000000000003", "external_ref": "club_7", "state": "active", "amount": 5000, "currency": "EUR",
  "interval": "month", "every": 1, "time_zone": "Europe/Berlin", "starts_on": "2026-10-05", "ends_on": null, "ends_after": 12,
  "next_period": "2026-11", "next_start": "2026-11-04T23:00:00Z", "created": 1, "ended_at": null, "version": 2,
  "items": [{"sku": "CLUB", "qty": 1}], "metadata": {"external_ref": "club_7"},
  "created_at": "2026-10-05T09:00:00Z", "updated_at": "2026-10-05T09:00:00Z"}}`

// intervalWord is an interval that a request names.
type intervalWord string

// Schema documents those there are.
func (intervalWord) Schema(huma.Registry) *huma.Schema {
	sch := &huma.Schema{
		Type:        huma.TypeString,
		Description: "The unit of a period. It names them: 2026-10-05, 2026-W41 (the week of ISO 8601), 2026-10, 2026-Q4, 2026.",
		Examples:    []any{string(period.Month)},
	}
	for _, i := range period.Intervals {
		sch.Enum = append(sch.Enum, string(i))
	}
	return sch
}

// firstDay is the day on which something begins, which a request must name.
type firstDay string

// Schema documents it.
func (firstDay) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Format: "date", Examples: []any{"2026-10-05"},
		Description: "The day on which the first period begins; of months, quarters and years the day (or the last of a shorter month) on which all of them do.",
	}
}

// lastDay is the last day on which something may begin. Absent and null are one thing: none is named.
type lastDay string

// Schema documents it.
func (lastDay) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Format: "date", Nullable: true, Examples: []any{"2027-09-30"},
		Description: "The last day on which a period may begin.",
	}
}

// date is the day; zero: none was named.
func (d lastDay) date() (period.Date, error) {
	if d == "" {
		return period.Date{}, nil
	}
	return period.ParseDate(string(d))
}
