package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Transaction says in one sentence how a call that moves money stands, and what is being done about it.
func Transaction(t store.Transaction) string {
	what := transactionName(t)
	if t.Status == store.TransactionPending {
		return what + " " + pendingText(t) + "."
	}
	if t.Status == store.TransactionSent && t.Attempts == 0 && t.NextAt != nil { // claimed, and no call was made
		return fmt.Sprintf("%s could not be sent to %s yet%s; the next try is at %s.", what, t.Gateway, because(t), moment(*t.NextAt))
	}
	what += " was asked of " + t.Gateway
	made := ""
	if t.GatewayRef != "" {
		made = " (" + t.GatewayRef + ")"
	}
	switch t.Status {
	case store.TransactionSent:
		if t.ClaimedUntil != nil || t.NextAt == nil {
			return fmt.Sprintf("%s for the %s time, and the answer is awaited%s.", what, ordinal(t.Attempts), because(t))
		}
		return fmt.Sprintf("%s, and what became of it is not known yet%s; after %s the same call goes out again at %s.", what, because(t), tries(t.Attempts), moment(*t.NextAt))
	case store.TransactionSucceeded:
		return what + ", and succeeded" + made + settled(t) + because(t) + "."
	case store.TransactionFailed:
		return what + ", and was not done" + settled(t) + because(t) + "."
	}
	what += ", and whether it was done is not known" + because(t)
	switch {
	case t.ClaimedUntil != nil:
		return what + "; it is being looked up right now."
	case t.NextAt != nil:
		return what + "; it is looked up at " + moment(*t.NextAt) + "."
	}
	return what + "; only a webhook or a person can tell."
}

// transactionName is what a transaction is called in a sentence.
func transactionName(t store.Transaction) string {
	kind := string(t.Kind)
	name := fmt.Sprintf("%s of %s of %s", strings.ToUpper(kind[:1])+kind[1:], money(t.Amount.Minor, t.Amount.Currency), paymentName(t.Movement.Payment, t.Payment.String()))
	if t.Ref != "" {
		name += " (" + t.Ref + ")"
	}
	return name
}

func paymentName(ids []string, otherwise string) string {
	if len(ids) == 0 {
		return otherwise
	}
	return strings.Join(ids, " = ")
}

func pendingText(t store.Transaction) string {
	text := fmt.Sprintf("was asked for; %s is called next", t.Gateway)
	if t.Epoch > 1 {
		text = fmt.Sprintf("is begun anew%s: nothing was done before, so %s is called for the %s time over, under another key", because(t), t.Gateway, ordinal(t.Epoch))
	}
	if t.NextAt == nil {
		text += ", once another call about the payment is settled"
	}
	return text
}

// because is why a transaction stands as it does, in brackets; empty if nothing went wrong.
func because(t store.Transaction) string {
	detail := strings.TrimRight(t.Detail, ".")
	switch {
	case t.Code == store.ResolvedByPerson:
		return " (a person says: " + detail + ")"
	case t.Code == "" && detail == "":
		return ""
	case t.Code == "" || detail == "":
		return " (" + t.Code + detail + ")"
	}
	return " (" + t.Code + ": " + detail + ")"
}

func settled(t store.Transaction) string {
	if t.SettledAt == nil {
		return ""
	}
	return " at " + moment(*t.SettledAt)
}

// transactionLines are when a transaction was asked for, and how it stands now.
func transactionLines(t store.Transaction) []Line {
	id := t.ID.String()
	now := Line{t.CreatedAt, "transaction", id, Transaction(t)}
	switch {
	case t.SettledAt != nil:
		now.At = *t.SettledAt
	case t.SentAt != nil:
		now.At = *t.SentAt
	default:
		return []Line{now}
	}
	asked := transactionName(t) + " was asked for"
	if t.Reason != "" {
		asked += ": " + t.Reason
	}
	return []Line{{t.CreatedAt, "transaction", id, asked + "."}, now}
}

// transactionsWhy says of calls that did not succeed how they stand, and what is still to be done about the order's money.
func transactionsWhy(t store.Timeline) (why, todo []string) {
	for _, x := range t.Transactions {
		if x.Status != store.TransactionSucceeded {
			why = append(why, Transaction(x))
		}
		if x.Status == store.TransactionUncertain && x.NextAt == nil && x.ClaimedUntil == nil {
			todo = append(todo, fmt.Sprintf("Look at %s for what was made under the key %s, then say what became of it: paidonce transactions resolve %s --outcome OUTCOME --note NOTE",
				x.Gateway, x.Key, x.ID))
		}
	}
	if !t.Order.Canceled {
		return why, todo
	}
	for _, p := range t.Payments {
		for _, cur := range sortedKeys(p.Ledger.Money) {
			held, err := p.Ledger.Movable(order.MovementVoid, cur)
			if err != nil || slices.ContainsFunc(t.Transactions, func(x store.Transaction) bool { return x.Status.Open() && about(x, p) }) {
				continue
			}
			name := paymentName(p.Ledger.IDs, p.ID.String())
			why = append(why, fmt.Sprintf("%s is still authorized by %s, although the order is canceled.", money(held, cur), name))
			todo = append(todo, fmt.Sprintf("Let go of the %s that %s holds: POST /v1/orders/%s/voids, or at the gateway itself.", money(held, cur), name, t.Order.ID))
		}
	}
	return why, todo
}

// about reports whether a transaction is about a payment, by whichever of its names.
func about(x store.Transaction, p store.Payment) bool {
	return slices.ContainsFunc(x.Movement.Payment, func(id string) bool { return slices.Contains(p.Ledger.IDs, id) })
}

// NotMovable says in a sentence why a movement has nothing to move; why is empty where calls are moving all of it already.
func NotMovable(kind order.MovementKind, why order.NotMovable) string {
	switch why {
	case "":
		return "All of it is being moved already, by calls that are not settled yet."
	case order.NothingCaptured:
		return "Nothing was captured, or nothing of it is left: what was refunded, is being refunded or was lost to a dispute does not go back again."
	case order.NothingAuthorized:
		return "Nothing is authorized, or nothing of it is left to " + string(kind) + "."
	case order.AlreadyCaptured:
		return "Something of the authorization was captured, so that it is not let go of: refund what was captured."
	case order.PaymentOver:
		return "The payment is over: it was canceled, has failed, or has expired."
	case order.NotSaid:
		return "Only your checkout has told of the payment so far: its gateway has to, first."
	}
	return "It cannot be moved (" + string(why) + ")."
}
