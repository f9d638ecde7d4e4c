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
	income := say(store.NoChange, store.ReasonNoOrder, "", order.Command{Income: true}, order.Fact{Kind: order.KindCaptured, Ref: "inc_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"})
	return []eventCase{
		applied("registration with a time limit", order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}, ExpiresAt: &until}),
		applied("total", order.Command{Amend: &order.Amendment{Total: &order.Amount{Minor: 6000, Currency: "EUR"}}}),
		applied("details and time", order.Command{Amend: &order.Amendment{Details: json.RawMessage(`{}`), Expiry: &order.Expiry{At: &until}}}),
		applied("no time limit", order.Command{Amend: &order.Amendment{Expiry: &order.Expiry{}}}),
		applied("confirmed", order.Command{Confirm: true}, captured(5000)),
		applied("income", order.Command{Income: true}, order.Fact{Kind: order.KindCaptured, Ref: "inc_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}),
		applied("linked", order.Command{Link: true}),
		{"applied, command: link taken back", back, paidTimeline(back)},
		applied("dismissed", order.Command{Dismiss: order.FlagOverpaid | order.FlagIDReused}),
		applied("restored", order.Command{Restore: order.FlagOverpaid}),
		again("amended", order.Command{Amend: &order.Amendment{Total: &order.Amount{Minor: 5000, Currency: "EUR"}}}),
		again("linked", order.Command{Link: true}),
		again("dismissed", order.Command{Dismiss: order.FlagOverpaid}),
		{"no_change no_order, a link taken back", nowhere, nil},
		{"no_change no_order, an income", income, nil},
	}
}
