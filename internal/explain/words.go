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
	switch f.Status {
	case order.StatusFailed, order.StatusExpired:
		return "the payment " + string(f.Status)
	case order.StatusCanceled:
		return "the payment was canceled"
	}
	return "the payment is " + string(f.Status)
}

// Flag explains in a sentence what a flag says about an order that has it.
func Flag(flag string, o store.Order) string {
	total := "its total"
	if o.Total != nil {
		total = "the total of " + amount(o, *o.Total)
	}
	var said string
	switch flag {
	case order.FlagOverpaid.String():
		said = fmt.Sprintf("%s is kept, more than %s", amount(o, o.Kept), total)
	case order.FlagUnderpaid.String():
		said = fmt.Sprintf("%s was captured, less than %s", amount(o, o.Captured), total)
	case order.FlagOverRefunded.String():
		said = "a payment's refunds exceed what was captured of it; no more than that is counted"
	case order.FlagDisputeOpen.String():
		said = fmt.Sprintf("a dispute over %s is open; losing it would still leave enough", amount(o, o.AtRisk))
	case order.FlagPaidAfterCancel.String():
		said = "money is kept although the merchant canceled the order"
	case order.FlagCurrencyMismatch.String():
		said = "there is money in another currency than the order's; it is not counted"
	case order.FlagModeMismatch.String():
		said = "a test event came to a live source, or the other way round; it is not counted"
	case order.FlagAccountMismatch.String():
		said = "an event of another merchant account came; it is not counted"
	case order.FlagAmountUnknown.String():
		said = "a capture came without a usable amount; it is not counted"
	case order.FlagIDReused.String():
		said = "the gateway used one event id for two different things; both are counted"
	case order.FlagReferenceConflict.String():
		said = "events name different orders for one payment; it stays where it was until a person links it"
	case order.FlagUnexpectedMove.String():
		said = "the order moved in a way that no known event explains; look at its versions"
	case order.FlagUnregistered.String():
		said = "the merchant has not registered it, so nothing is owed to it yet"
	case order.FlagTotalDiffers.String():
		said = "the merchant registered another total than the payment's own amount"
	case order.FlagExpiredUnpaid.String():
		said = "its deadline passed without payment"
	default:
		return "Flag " + flag + "."
	}
	return "Flag " + flag + ": " + said + "."
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
func effectSentence(v store.Version, t store.Timeline) string {
	what := fmt.Sprintf("Effect %s of version %d", v.Effect, v.Version)
	last := ""
	if v.LastError != "" {
		last = "; the last try said: " + v.LastError
	}
	switch {
	case v.EffectState == order.EffectClaimed:
		return fmt.Sprintf("%s is being called right now, for the %s time.", what, ordinal(v.Attempts))
	case v.EffectState == order.EffectDead:
		return fmt.Sprintf("%s is dead after %s%s.", what, tries(v.Attempts), last)
	case v.Effect != order.Next(t.Order.Told, t.Order.Want):
		return fmt.Sprintf("%s was called without an answer that counts, and is not wanted while the order is %s; should it be again, the same call goes out%s.",
			what, word(t.Order.State), last)
	case v.Attempts == 0:
		return what + " is owed and was not called yet."
	case v.NextAt != nil && v.NextAt.After(t.Now):
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

func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}
