package explain_test

import (
	"encoding/json"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// commandCases are what the merchant can say through the API.
func commandCases() []eventCase {
	say := func(outcome store.Outcome, reason, ref string, c order.Command, facts ...order.Fact) store.StoredEvent {
		e := event("evt_api", outcome, reason, facts...)
		e.Source, e.Type, e.Reference, e.Strength, e.Command = store.APISource, "order.command", ref, order.StrengthPerson, &c
		if len(facts) == 0 && !c.Link {
			e.Payment = nil
		}
		return moved(e, 3, 4)
	}
	until := at(600)
	applied := func(title string, c order.Command, facts ...order.Fact) eventCase {
		e := say(store.Applied, "", "ord_1", c, facts...)
		return eventCase{"applied, command: " + title, e, paidTimeline(e)}
	}
	again := func(title string, c order.Command) eventCase {
		e := say(store.NoChange, store.ReasonAlreadyKnown, "ord_1", c)
		return eventCase{"no_change already_known, command: " + title, e, paidTimeline(e)}
	}
	back := say(store.Applied, "", "", order.Command{Link: true})
	nowhere := say(store.NoChange, store.ReasonNoOrder, "", order.Command{Link: true})
	cash := func(outcome store.Outcome, reason, ref string, in order.Income, status order.Status) store.StoredEvent {
		e := say(outcome, reason, ref, order.Command{Income: &in}, order.Fact{Kind: order.KindCaptured, Ref: "inc_1", Status: status, Amount: 5000, Currency: "EUR"})
		e.Payment, e.Realm, e.Strength = []string{"inc_1"}, order.Offline, order.StrengthPayment
		return e
	}
	income := func(title string, in order.Income, status order.Status) eventCase {
		e := cash(store.Applied, "", "ord_1", in, status)
		return eventCase{"applied, command: income " + title, e, paidTimeline(e)}
	}
	early := cash(store.Waiting, store.ReasonUnregistered, "ord_1", order.Income{Kind: order.IncomeCash}, order.StatusOK)
	foreign := cash(store.Flagged, store.ReasonCurrencyMismatch, "ord_1", order.Income{Kind: order.IncomeCash}, order.StatusOK)
	foreign.Facts[0].Currency = "USD"
	free := cash(store.NoChange, store.ReasonNoOrder, "", order.Income{Kind: order.IncomeCash}, order.StatusOK)
	freeVoid := cash(store.NoChange, store.ReasonNoOrder, "", order.Income{Voided: true}, order.StatusFailed)
	return []eventCase{
		applied("registration with a time limit", order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}, ExpiresAt: &until}),
		applied("total", order.Command{Amend: &order.Amendment{Total: &order.Amount{Minor: 6000, Currency: "EUR"}}}),
		applied("details and time", order.Command{Amend: &order.Amendment{Details: json.RawMessage(`{}`), Expiry: &order.Expiry{At: &until}}}),
		applied("no time limit", order.Command{Amend: &order.Amendment{Expiry: &order.Expiry{}}}),
		applied("confirmed", order.Command{Confirm: true}, captured(5000)),
		income("in cash", order.Income{Kind: order.IncomeCash}, order.StatusOK),
		income("by bank transfer", order.Income{Kind: order.IncomeBankTransfer}, order.StatusOK),
		income("by cheque", order.Income{Kind: order.IncomeCheque}, order.StatusOK),
		income("by card", order.Income{Kind: order.IncomeCard}, order.StatusOK),
		income("otherwise", order.Income{Kind: order.IncomeOther}, order.StatusOK),
		income("in another currency", order.Income{Kind: order.IncomeCash, Source: &order.Amount{Minor: 6000, Currency: "USD"}}, order.StatusOK),
		income("taken back", order.Income{Voided: true}, order.StatusFailed),
		{"waiting unregistered, an income", early, &store.Timeline{Order: stub()}},
		{"flagged currency_mismatch, an income", foreign, paidTimeline(foreign)},
		applied("linked", order.Command{Link: true}),
		{"applied, command: link taken back", back, paidTimeline(back)},
		applied("dismissed", order.Command{Dismiss: order.FlagOverpaid | order.FlagIDReused}),
		applied("restored", order.Command{Restore: order.FlagOverpaid}),
		again("amended", order.Command{Amend: &order.Amendment{Total: &order.Amount{Minor: 5000, Currency: "EUR"}}}),
		again("linked", order.Command{Link: true}),
		again("dismissed", order.Command{Dismiss: order.FlagOverpaid}),
		{"no_change no_order, a link taken back", nowhere, nil},
		{"no_change no_order, an income", free, nil},
		{"no_change no_order, an income taken back", freeVoid, nil},
	}
}
