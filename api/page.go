package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// pageOf is the body of a page of a list.
type pageOf[T any] struct {
	_ struct{} `additionalProperties:"true"`

	Data list[T] `json:"data"`
	Next *string `json:"next" doc:"The cursor of the next page; null: there is none."`
}

// The lists that have cursors.
const (
	listOrders  = "orders"
	listEvents  = "events"
	listEffects = "effects"
	listIncomes = "incomes"

	listRecurrences  = "recurrences"
	listTransactions = "transactions"

	listReconcileRuns = "reconciliation-runs"
)

// cursor is the last row of a page. It is opaque to callers: its version changes with it, and old ones are refused then.
type cursor struct {
	Version int       `json:"v"`
	List    string    `json:"l"` // of one list, it is none of another
	ID      uuid.UUID `json:"o,omitzero"`
	Order   int32     `json:"n,omitempty"` // version of the order, no larger than Postgres keeps it
	At      time.Time `json:"t,omitzero"`
	Source  string    `json:"s,omitempty"`
	Event   string    `json:"e,omitempty"`
}

const cursorVersion = 1

// next is the cursor as callers see it.
func (c cursor) next() (*string, error) {
	c.Version = cursorVersion
	doc, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s := base64.RawURLEncoding.EncodeToString(doc)
	return &s, nil
}

// cursorOf reads the cursor of a list; the zero one for an empty text. It takes nothing that next cannot have made. A caller
// may make up a place of its own, and sees its own rows from there on: whose rows they are is not in a cursor.
func cursorOf(list, text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	wrong := problem(CodeInvalidCursor, "This is no cursor of this list. Take next of the page before, or begin without one.")
	doc, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return c, wrong
	}
	if err := json.Unmarshal(doc, &c); err != nil || c.Version != cursorVersion || c.List != list {
		return cursor{}, wrong
	}
	if again, err := json.Marshal(c); err != nil || !bytes.Equal(doc, again) || !storable(c.Source) || !storable(c.Event) {
		return cursor{}, wrong
	}
	return c, nil
}
