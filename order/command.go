package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Command is what the merchant says through our own API (source "api"). Exactly one of its kinds is set: Register,
// Amend, Cancel, Confirm, Income, Link, or Dismiss and Restore.
type Command struct {
	Register *Amount `json:"register,omitempty"` // the order's total

	// Details is what else the merchant said when registering (items, metadata): a JSON object, kept, never folded.
	Details json.RawMessage `json:"details,omitempty"`

	// ExpiresAt is, of a registration, until when the order should be paid; nil: for ever.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`

	Amend  *Amendment `json:"amend,omitempty"`
	Cancel bool       `json:"cancel,omitempty"`

	// Confirm: the event's facts are what the checkout was answered. They count until the gateway itself has said
	// anything about that payment: see [Ledger.Confirmed].
	Confirm bool `json:"confirm,omitempty"`

	// Income: the event's facts are money that came outside of gateways, or that this was taken back.
	Income *Income `json:"income,omitempty"`

	// Link: a person says that the payment belongs to the order that the event names; naming none takes that back.
	Link bool `json:"link,omitempty"`

	// Dismiss names flags that a person has dealt with, and Restore those that shall be seen again.
	Dismiss Flags `json:"dismiss,omitempty"`
	Restore Flags `json:"restore,omitempty"`
}

// Amendment is what changes of a registered order. What is nil stays as it is.
type Amendment struct {
	// Total may change only while nothing was ever captured.
	Total *Amount `json:"total,omitempty"`

	// Details is a merge patch (RFC 7396) of what [Command.Details] was.
	Details json.RawMessage `json:"details,omitempty"`

	// Expiry, if not nil, replaces until when the order should be paid.
	Expiry *Expiry `json:"expiry,omitempty"`
}

// Expiry is until when an order should be paid; nil At: for ever.
type Expiry struct {
	At *time.Time `json:"at"`
}

// touchesOrder reports whether c changes the order's own inputs, and not only payments.
func (c *Command) touchesOrder() bool { return c.Register != nil || c.Amend != nil || c.Cancel }

// Dismissible are the flags that a person can dismiss: all but the one that says what the order is.
const Dismissible = allFlags &^ FlagUnregistered

// Validate returns what is wrong with c, or nil.
func (c *Command) Validate() error {
	kinds := 0
	for _, is := range []bool{
		c.Register != nil, c.Amend != nil, c.Cancel, c.Confirm, c.Income != nil, c.Link, c.Dismiss|c.Restore != 0,
	} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("order: command of %d kinds", kinds)
	case c.Register != nil && !c.Register.countable():
		return fmt.Errorf("order: total %d %s", c.Register.Minor, c.Register.Currency)
	case c.Amend != nil && c.Amend.Total != nil && !c.Amend.Total.countable():
		return fmt.Errorf("order: total %d %s", c.Amend.Total.Minor, c.Amend.Total.Currency)
	case c.Income != nil && !c.Income.valid():
		return errors.New("order: income of no known kind, or of no amount")
	case (c.Dismiss|c.Restore)&^Dismissible != 0:
		return fmt.Errorf("order: flags %s cannot be dismissed", (c.Dismiss|c.Restore)&^Dismissible)
	case c.Register == nil && (c.Details != nil || c.ExpiresAt != nil):
		return errors.New("order: details of what registers nothing")
	}
	return nil
}

// Apply returns details after the merge patch of an amendment (RFC 7396): members of the patch replace those of
// details, objects are merged, null removes. Both are JSON objects or nil; keys come out sorted, so that equal details are
// equal in every byte.
func (a *Amendment) Apply(details json.RawMessage) (json.RawMessage, error) {
	if a.Details == nil {
		return details, nil
	}
	var doc, patch any
	if len(details) > 0 {
		if err := decodeExact(details, &doc); err != nil {
			return nil, fmt.Errorf("order: details: %w", err)
		}
	}
	if err := decodeExact(a.Details, &patch); err != nil {
		return nil, fmt.Errorf("order: patch of details: %w", err)
	}
	merged, ok := mergePatch(doc, patch).(map[string]any)
	if !ok {
		return nil, errors.New("order: patch of details is not an object")
	}
	return json.Marshal(merged)
}

func mergePatch(doc, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if old, ok := doc.(map[string]any); ok {
		for k, v := range old {
			merged[k] = v
		}
	}
	for k, v := range changes {
		if v == nil {
			delete(merged, k)
		} else {
			merged[k] = mergePatch(merged[k], v)
		}
	}
	return merged
}
