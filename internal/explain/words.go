package explain

import (
	"fmt"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// money renders minor units with the currency's exponent.
func money(minor int64, currency string) string {
	if minor == order.All {
		return "everything"
	}
	return order.Format(minor, currency) + " " + currency
}

// amount renders an amount in the order's currency.
func amount(o store.Order, minor int64) string {
	if o.Currency == nil {
		return fmt.Sprintf("%d minor units", minor)
	}
	return money(minor, *o.Currency)
}

func itemText(what, id string, s order.Status, minor int64, currency string) string {
	switch s {
	case order.StatusOK:
		return fmt.Sprintf("%s %s of %s", what, id, money(minor, currency))
	case order.StatusPending:
		return fmt.Sprintf("%s %s of %s is pending", what, id, money(minor, currency))
	case order.StatusDenied:
		return fmt.Sprintf("%s %s of %s was refused", what, id, money(minor, currency))
	}
	return fmt.Sprintf("%s %s of %s failed and was undone", what, id, money(minor, currency))
}

func disputeText(id string, s order.Status, minor int64, currency string) string {
	switch s {
	case order.StatusOpen:
		return fmt.Sprintf("dispute %s over %s is open", id, money(minor, currency))
	case order.StatusWon:
		return fmt.Sprintf("dispute %s over %s was won", id, money(minor, currency))
	case order.StatusLost:
		return fmt.Sprintf("dispute %s over %s was lost", id, money(minor, currency))
	}
	return fmt.Sprintf("there is no dispute %s", id)
}

// factText says one fact.
func factText(f order.Fact) string {
	switch f.Kind {
	case order.KindAuthorized:
		return "authorized " + money(f.Amount, f.Currency)
	case order.KindReleased:
		return "released the uncaptured " + money(f.Amount, f.Currency)
	case order.KindCaptured:
		if f.Ref == "" {
			return "captured " + money(f.Amount, f.Currency) + " in all"
		}
		return itemText("capture", f.Ref, f.Status, f.Amount, f.Currency)
	case order.KindRefunded:
		if f.Ref == "" {
			return "refunded " + money(f.Amount, f.Currency) + " in all"
		}
		return itemText("refund", f.Ref, f.Status, f.Amount, f.Currency)
	case order.KindDisputed:
		return disputeText(f.Ref, f.Status, f.Amount, f.Currency)
	}
	return "the payment is " + string(f.Status)
}

// flagSentence explains a flag. Flags of events (currency, mode, account, id reused) are told with their events.
func flagSentence(flag string, o store.Order) (string, bool) {
	switch flag {
	case order.FlagOverpaid.String():
		return fmt.Sprintf("Flag overpaid: %s is kept, more than the total of %s.", amount(o, o.Kept), amount(o, *o.Total)), true
	case order.FlagUnderpaid.String():
		return fmt.Sprintf("Flag underpaid: %s was captured, less than the total of %s.", amount(o, o.Captured), amount(o, *o.Total)), true
	case order.FlagOverRefunded.String():
		return "Flag over_refunded: a payment's refunds exceed what was captured of it; no more than that is counted.", true
	case order.FlagDisputeOpen.String():
		return fmt.Sprintf("Flag dispute_open: a dispute over %s is open; losing it would still leave enough.", amount(o, o.AtRisk)), true
	case order.FlagPaidAfterCancel.String():
		return "Flag paid_after_cancel: money arrived although the merchant had canceled the order.", true
	case order.FlagAmountUnknown.String():
		return "Flag amount_unknown: a capture came without an amount; it is not counted.", true
	case order.FlagReferenceConflict.String():
		return "Flag reference_conflict: events name different orders for one payment; it stays where it was until a person links it.", true
	case order.FlagUnexpectedMove.String():
		return "Flag unexpected_move: the order moved in a way that no known event explains; look at the versions below.", true
	case order.FlagTotalDiffers.String():
		return "Flag total_differs: the merchant registered another total than the payment's own amount.", true
	case order.FlagExpiredUnpaid.String():
		return "Flag expired_unpaid: the order's deadline passed without payment.", true
	}
	return "", false
}

func toldSentence(t order.Told) string {
	switch t {
	case order.ToldHeld:
		return "The merchant was told to hold it."
	case order.ToldFulfilled:
		return "The merchant was told to fulfil it."
	case order.ToldRevoked:
		return "The merchant was told to revoke it."
	}
	return ""
}

// effectSentence says how an effect that is owed stands.
func effectSentence(v store.Version, now time.Time) string {
	what := fmt.Sprintf("Effect %s of version %d", v.Effect, v.Version)
	last := ""
	if v.LastError != "" {
		last = "; the last try said: " + v.LastError
	}
	switch v.EffectState {
	case order.EffectClaimed:
		return what + " is being called right now."
	case order.EffectDead:
		return fmt.Sprintf("%s is dead after %s%s.", what, tries(v.Attempts), last)
	}
	if v.Attempts == 0 {
		return what + " is owed and was not called yet."
	}
	if v.NextAt != nil && v.NextAt.After(now) {
		return fmt.Sprintf("%s is owed; after %s the next comes at %s%s.", what, tries(v.Attempts), v.NextAt.UTC().Format(time.RFC3339), last)
	}
	return fmt.Sprintf("%s is owed; after %s the next is due%s.", what, tries(v.Attempts), last)
}

func tries(n int) string {
	if n == 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", n)
}
