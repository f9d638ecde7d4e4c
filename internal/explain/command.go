package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// commandText is what the merchant said through the API, beside the facts.
func commandText(c *order.Command, e store.StoredEvent) []string {
	var parts []string
	switch {
	case c.Register != nil:
		parts = append(parts, "total "+money(c.Register.Minor, c.Register.Currency))
		if c.ExpiresAt != nil {
			parts = append(parts, "to be paid until "+moment(*c.ExpiresAt))
		}
	case c.Amend != nil:
		parts = append(parts, amendmentText(c.Amend)...)
	case c.Cancel:
		parts = append(parts, "canceled by the merchant")
	case c.Confirm:
		parts = append(parts, "the checkout's answer about "+strings.Join(e.Payment, " = "))
	case c.Income != nil:
		parts = append(parts, incomeText(c.Income, e))
	case c.Link && e.Reference == "":
		parts = append(parts, "a person took back where "+strings.Join(e.Payment, " = ")+" belongs")
	case c.Link:
		parts = append(parts, "a person linked "+strings.Join(e.Payment, " = ")+" to "+e.Reference)
	}
	if c.Dismiss != 0 {
		parts = append(parts, "a person has dealt with "+words(c.Dismiss))
	}
	if c.Restore != 0 {
		parts = append(parts, "a person wants to see "+words(c.Restore)+" again")
	}
	return parts
}

// incomeText is about money that no gateway has seen. Its one fact is told with it.
func incomeText(in *order.Income, e store.StoredEvent) string {
	var what string
	for _, f := range e.Facts {
		what = money(f.Amount, f.Currency)
	}
	if in.Voided {
		return what + " received outside of gateways, taken back"
	}
	switch in.Kind {
	case order.IncomeBankTransfer:
		what += " by bank transfer"
	case order.IncomeCash:
		what += " in cash"
	case order.IncomeCheque:
		what += " by cheque"
	case order.IncomeCard:
		what += " by card"
	}
	what += ", received outside of gateways"
	if in.Source != nil {
		what += " as " + money(in.Source.Minor, in.Source.Currency)
	}
	return what
}

// incomeSentence is about a payment that is an income; empty if it is none.
func incomeSentence(p store.Payment, events []store.StoredEvent) string {
	text, end := "", "."
	for _, e := range events {
		switch {
		case e.Command == nil || e.Command.Income == nil || len(e.Payment) == 0 || !slices.Contains(p.Ledger.IDs, e.Payment[0]):
		case e.Command.Income.Voided:
			end = ", and taken back: it does not count any more."
		default:
			text = fmt.Sprintf("Income %s: %s", e.Payment[0], incomeText(e.Command.Income, e))
		}
	}
	if text == "" {
		return ""
	}
	return text + end
}

func amendmentText(a *order.Amendment) []string {
	var parts []string
	if a.Total != nil {
		parts = append(parts, "total now "+money(a.Total.Minor, a.Total.Currency))
	}
	if a.Details != nil {
		parts = append(parts, "items or metadata changed")
	}
	switch x := a.Expiry; {
	case x == nil:
	case x.At == nil:
		parts = append(parts, "no time limit any more")
	default:
		parts = append(parts, "now to be paid until "+moment(*x.At))
	}
	return parts
}

// knownCommandText says why a command without facts changed nothing.
func knownCommandText(c *order.Command) string {
	switch {
	case c.Cancel:
		return "the order was canceled before"
	case c.Amend != nil:
		return "the order was so before"
	case c.Link:
		return "the payment stood there before"
	case c.Dismiss|c.Restore != 0:
		return "none of these flags was affected"
	}
	return "the order was registered before"
}

func words(f order.Flags) string {
	return strings.ReplaceAll(strings.Join(f.Names(), " and "), "_", " ")
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// noOrderText is about commands that concern no order.
func noOrderText(e store.StoredEvent) string {
	if e.Command != nil && e.Command.Link {
		return fmt.Sprintf("changed no order: nothing but that link named an order for %s.", strings.Join(e.Payment, " = "))
	}
	return "changed no order: the money came for none."
}

// confirmedText is what the checkout was answered about a payment of which the gateway has said nothing yet.
func confirmedText(c order.Confirmed, cur string) string {
	what, amount := "captured", c.Captured
	if amount == 0 {
		what, amount = "authorized", c.Authorized
	}
	return fmt.Sprintf("%s %s as the checkout was answered, while no event of the gateway has come", what, money(amount, cur))
}
