package doctor

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Item is one thing that needs a person.
type Item struct {
	Kind       Kind      `json:"kind"`
	Urgency    Urgency   `json:"urgency"`
	Account    string    `json:"account"`
	What       string    `json:"what"`  // "order ord_1", in a word or two
	Since      time.Time `json:"since"` // when it came to stand so
	AgeSeconds int64     `json:"age_seconds"`

	Text string `json:"text"` // what is the matter, in a sentence
	Do   string `json:"do"`   // what to do about it, in a sentence: before the command, or instead

	// What resolves it: a command of this program, or a call of /v1; of words in capitals it has to be told which.
	Command string   `json:"command,omitempty"`
	Request *Request `json:"request,omitempty"`

	OrderID     *uuid.UUID `json:"order_id,omitempty"`
	ExternalRef string     `json:"external_ref,omitempty"` // of the order
	Source      string     `json:"source,omitempty"`
	EventID     string     `json:"event_id,omitempty"`
	Transaction *uuid.UUID `json:"transaction_id,omitempty"`
	Object      string     `json:"object,omitempty"`
}

// Resolve is the command or the call that resolves it, in one line.
func (i Item) Resolve() string {
	if i.Request != nil {
		return i.Request.String()
	}
	return i.Command
}

// words makes sentences of what was found.
type words struct {
	at         time.Time
	noCallback func(account string) bool
}

func (w words) item(k Kind, account, what string, since time.Time) Item {
	return Item{Kind: k, Account: account, What: what, Since: since, AgeSeconds: max(0, int64(w.at.Sub(since)/time.Second))}
}

// nobody reports whether what is due at a time should have been done: long enough ago for workers that are alive.
func (w words) nobody(due *time.Time) bool { return due != nil && w.at.Sub(*due) > 5*time.Minute }

func (w words) transaction(t store.Transaction) Item {
	since := t.CreatedAt
	if t.SentAt != nil {
		since = *t.SentAt
	}
	i := w.item(TransactionLate, t.Account, string(t.Kind)+" "+t.ID.String(), since)
	i.OrderID, i.ExternalRef, i.Source, i.Transaction, i.Text = &t.Order, t.OrderRef, t.Source, &t.ID, explain.Transaction(t)
	resolve := command("transactions", "resolve", t.ID.String(), "--account", t.Account, "--outcome", "OUTCOME", "--note", "NOTE")
	switch {
	case t.Code == store.CodeKeyReused:
		i.Kind, i.Command = TransactionKeyReused, resolve
		i.Do = fmt.Sprintf("Look at %s for what was made under the key %s, say what became of it, and report it: this must not happen.", t.Gateway, t.Key)
	case t.Status == store.TransactionUncertain && t.NextAt == nil:
		i.Kind, i.Command = TransactionUncertain, resolve
		i.Do = fmt.Sprintf("Look at %s for what was made under the key %s, and say what became of it.", t.Gateway, t.Key)
	case t.Code == store.CodeCredentialsDenied || t.Code == store.CodeCannotCall:
		i.Kind, i.Command = TransactionDenied, command("config", "check")
		i.Do = fmt.Sprintf("Mend the credentials of source %s and reload the configuration; the call then goes out by itself.", t.Source)
	case w.nobody(t.NextAt):
		i.Do, i.Command = "Nobody makes the call: see that work runs.", command("health", "--work")
	default:
		i.Do = "See whether " + t.Gateway + " can be reached; the call goes out again by itself until it is answered."
		i.Command = command("transactions", "--account", t.Account, "--order", orderName(t.OrderRef, t.Order))
	}
	return i
}

func (w words) effect(e store.Effect) Item {
	i := w.item(EffectLate, e.Account, string(e.Effect)+" of order "+e.Ref, e.AskedAt)
	i.OrderID, i.ExternalRef = &e.Order, e.Ref
	name := fmt.Sprintf("Effect %s of version %d of order %s", e.Effect, e.Version, e.Ref)
	last := ""
	if e.LastError != "" {
		last = "; the last try said: " + strings.TrimRight(e.LastError, ".")
	}
	retry := []string{"effects", "retry", "--account", e.Account, "--order", orderName(e.Ref, e.Order)}
	switch {
	case e.State == order.EffectDead:
		i.Kind, i.Text = EffectDead, fmt.Sprintf("%s was given up after %s%s.", name, tries(e.Attempts), last)
		i.Do, i.Command = "Mend what the merchant's endpoint said no to, then have it called again.", command(append(retry, "--yes")...)
	case w.noCallback != nil && w.noCallback(e.Account):
		i.Text = name + " is owed, and account " + e.Account + " has no callback: nobody is called."
		i.Do, i.Command = "Set accounts."+e.Account+".callback, and reload the configuration.", command("config", "check")
	case w.nobody(e.NextAt):
		i.Text = fmt.Sprintf("%s is owed and was due at %s, and nobody calls%s.", name, moment(*e.NextAt), last)
		i.Do, i.Command = "See that work runs, and that it has workers enough.", command("health", "--work")
	default:
		i.Text = fmt.Sprintf("%s is owed; after %s it is not confirmed%s.", name, tries(e.Attempts), last)
		i.Do, i.Command = "Mend the merchant's endpoint; it is called again by itself, or at once.", command(append(retry, "--state", "open", "--yes")...)
	}
	return i
}

// toDo is what to do about a flag before, or rather than, to dismiss it.
var toDo = map[order.Flags]string{
	order.FlagPaidAfterCancel:   "Give the money back (POST /v1/orders/%[1]s/refunds); if it was settled otherwise, dismiss the flag.",
	order.FlagOverRefunded:      "See at the gateway which refund was one too many, and settle it with the customer; then dismiss the flag.",
	order.FlagUnexpectedMove:    "See what moved it (paidonce explain), and report it; then dismiss the flag.",
	order.FlagAmountUnknown:     "Look up the amount at the gateway, and enter it by hand (POST /v1/incomes) or read the event again; then dismiss the flag.",
	order.FlagCurrencyMismatch:  "Give the money back, or enter what it was worth by hand (POST /v1/incomes); then dismiss the flag.",
	order.FlagAccountMismatch:   "If the merchant account is yours, add it to the source, and read the event again; then dismiss the flag.",
	order.FlagModeMismatch:      "Check the mode of the source, and where the gateway's test account sends to; then dismiss the flag.",
	order.FlagReferenceConflict: "If the payment is another order's, link it to that (POST /v1/orders/{id}/link); then dismiss the flag.",
	order.FlagOverpaid:          "Give back what is too much (POST /v1/orders/%[1]s/refunds with an amount), or keep it and dismiss the flag.",
	order.FlagIDReused:          "See whether both events happened (paidonce explain): both count; then dismiss the flag.",
	order.FlagTotalDiffers:      "See which of the two is the price; then dismiss the flag.",
	order.FlagUnderpaid:         "Ask for the rest, or give it back (POST /v1/orders/%[1]s/refunds); if it is all right so, dismiss the flag.",
}

func (w words) order(n store.OrderNote) Item {
	i := w.item(Kind(n.Flag), n.Account, "order "+n.Ref, n.Since)
	i.OrderID, i.ExternalRef = &n.ID, n.Ref
	id := n.ID.String()
	switch {
	case n.Flag != "":
		i.Text = explain.Flag(n.Flag, n.Order)
		i.Request = post(`{"data": {"flags": [`+quoted(n.Flag)+`], "dismissed": true}}`, "orders", id, "dismiss")
		if f, err := order.ParseFlags([]string{n.Flag}); err == nil {
			i.Do = strings.ReplaceAll(toDo[f], "%[1]s", id)
		}
	case n.Total == nil:
		i.Kind, i.Text = OrderUnregistered, fmt.Sprintf("%s for order %s, which nobody has registered: nothing of it is counted or told.", payments(n, "came"), n.Ref)
		i.Do = "Register it; or, if the name is wrong, link the payment to its order (POST /v1/orders/{id}/link)."
		i.Request = post(`{"data": {"amount": AMOUNT, "currency": "CURRENCY", "metadata": {"external_ref": `+quoted(n.Ref)+`}}}`, "orders")
	case n.State == order.StateAuthorized:
		i.Kind, i.Text = OrderAuthorized, fmt.Sprintf("%s is authorized for order %s and not captured; gateways let go of it after three days to a month.", amount(n.Order, n.Authorized), n.Ref)
		i.Do, i.Request = "Capture it; or let go of it (POST /v1/orders/"+id+"/voids).", post(`{"data": {}}`, "orders", id, "captures")
	default:
		i.Kind, i.Text = OrderPending, fmt.Sprintf("%s for order %s, and its gateway has not told how it ended.", payments(n, "is known"), n.Ref)
		i.Do, i.Request = "Look it up at the gateway; if nothing comes of it any more, cancel the order.", post("", "orders", id, "cancel")
	}
	return i
}

// payments names an order's payments, and says what there is to say of them.
func payments(n store.OrderNote, verb string) string {
	if len(n.Payments) == 0 {
		return "A payment " + verb
	}
	return "Payment " + strings.Join(n.Payments, ", ") + " " + verb
}

func (w words) event(e store.StoredEvent) Item {
	i := w.item(PaymentUnplaced, e.Account, "event "+e.ID, e.ReceivedAt)
	i.Source, i.EventID, i.Text = e.Source, e.ID, explain.Event(e, nil).Answer
	dismiss := post(`{"data": {"dismissed": true}}`, "events", e.ID, "dismiss")
	dismiss.Path += "?source=" + url.QueryEscape(e.Source)
	i.Request = dismiss
	switch {
	case e.Outcome == store.Quarantined:
		i.Kind = EventQuarantined
		i.Do = "Look at its bytes (" + command("events", "show", e.ID, "--account", e.Account, "--source", e.Source, "--payload") +
			"); if a newer version reads them, have it (paidonce events reevaluate); else enter what it says by hand, and dismiss it."
	case len(e.Payment) == 0:
		i.Text = fmt.Sprintf("Event %s, %s, names neither an order nor a payment.", e.ID, e.Type)
		i.Do = "See at the gateway what it is about; then dismiss it."
	default:
		i.Do = "Link the payment to its order, as long as that is known; else dismiss the event: " + dismiss.String()
		i.Request = post(`{"data": {"payment": `+quoted(e.Payment[0])+`, "linked": true}}`, "orders", "ORDER", "link")
	}
	return i
}

func (w words) fetch(f store.Fetch) Item {
	i := w.item(FetchDead, f.Account, "object "+f.Object, f.AnnouncedAt)
	i.Source, i.Object = f.Source, f.Object
	i.Text = fmt.Sprintf("%s was asked about %s, and that was given up after %s", f.Gateway, f.Object, tries(f.Attempts))
	if f.LastError != "" {
		i.Text += ": " + strings.TrimRight(f.LastError, ".")
	}
	i.Text += "."
	i.Do = "If the object is known at the gateway, have it asked about again; what is anybody's invention is forgotten after three days."
	i.Command = command("fetches", "retry", "--account", f.Account, "--source", f.Source, "--object", f.Object, "--yes")
	return i
}

func (w words) source(q store.Silence) Item {
	i := w.item(SourceSilent, q.Account, "source "+q.ID, q.At)
	i.Source = q.ID
	i.Text = fmt.Sprintf("Source %s has received nothing since about %s, while others do; before, it received one event every %s or so.",
		q.ID, moment(q.At), strings.TrimSuffix((q.At.Sub(q.First)/time.Duration(q.Events-1)).Round(time.Minute).String(), "0s"))
	i.Do = "See in the gateway's dashboard whether its webhook is switched on, and in the log of serve whether it is refused."
	i.Command = command("events", "--account", q.Account, "--source", q.ID, "--limit", "5")
	return i
}

func tries(n int) string {
	if n == 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", n)
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// amount is minor units in the order's currency.
func amount(o store.Order, minor int64) string {
	if o.Currency == nil {
		return fmt.Sprintf("%d minor units", minor)
	}
	return order.Format(minor, *o.Currency) + " " + *o.Currency
}
