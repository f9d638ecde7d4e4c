package order_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

func confirmed(kind order.Kind, amount int64) order.Event {
	return order.Event{
		ID: "confirm", Payment: []string{"pi_1"}, Command: &order.Command{Confirm: true},
		Facts: []order.Fact{{Kind: kind, Amount: amount, Currency: "EUR"}},
	}
}

// ofOne is an order over 4.00 with one payment that has these events.
func ofOne(events ...order.Event) *order.Order {
	l := order.NewLedger()
	for _, e := range events {
		l.JoinEvent(e)
	}
	return &order.Order{Registered: true, Total: 4, Currency: "EUR", Payments: map[string]*order.Ledger{"pi_1": l}}
}

func gatewaySays(facts ...order.Fact) order.Event {
	return order.Event{ID: "evt", Payment: []string{"pi_1"}, Facts: facts}
}

func TestConfirmedAmounts(t *testing.T) {
	t.Parallel()
	phase := func(s order.Status) order.Event { return gatewaySays(order.Fact{Kind: order.KindPhase, Status: s}) }
	usd := confirmed(order.KindCaptured, 4)
	usd.Facts[0].Currency = "USD"
	misfit := confirmed(order.KindCaptured, 4)
	misfit.Facts[0].Misfit = order.MisfitMode
	item := confirmed(order.KindCaptured, 4)
	item.Facts[0].Ref, item.Facts[0].Status = "ch_1", order.StatusOK
	tests := []struct {
		name   string
		events []order.Event
		state  order.State
		want   order.Want
	}{
		{"Captured", []order.Event{confirmed(order.KindCaptured, 4)}, order.StatePaid, order.WantGo},
		{"TheGreatestHolds", []order.Event{confirmed(order.KindCaptured, 4), confirmed(order.KindCaptured, 1)}, order.StatePaid, order.WantGo},
		{"Authorized", []order.Event{confirmed(order.KindAuthorized, 4)}, order.StateAuthorized, order.WantWait},
		{"Less", []order.Event{confirmed(order.KindCaptured, 3)}, order.StatePartiallyPaid, order.WantWait},
		{"OtherCurrency", []order.Event{usd}, order.StatePending, order.WantWait},
		{"MisfitSaysNothing", []order.Event{misfit}, order.StatePending, order.WantWait},
		{"OnlyTotalsAreConfirmed", []order.Event{item}, order.StatePending, order.WantWait},
		{"GatewayProcesses", []order.Event{confirmed(order.KindCaptured, 4), phase(order.StatusProcessing)}, order.StatePending, order.WantWait},
		{"GatewayAuthorized", []order.Event{confirmed(order.KindCaptured, 4), phase(order.StatusAuthorized), gatewaySays(order.Fact{Kind: order.KindAuthorized, Amount: 4, Currency: "EUR"})}, order.StateAuthorized, order.WantWait},
		{"GatewayCapturedLess", []order.Event{confirmed(order.KindCaptured, 4), gatewaySays(order.Fact{Kind: order.KindCaptured, Amount: 1, Currency: "EUR"})}, order.StatePartiallyPaid, order.WantWait},
		{"GatewayFailed", []order.Event{phase(order.StatusFailed), confirmed(order.KindCaptured, 4)}, order.StateFailed, order.WantStop},
		{"GatewayCanceledWhatWasAuthorized", []order.Event{confirmed(order.KindAuthorized, 4), phase(order.StatusCanceled)}, order.StateCanceled, order.WantWait},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := ofOne(tt.events...).View()
			require.Equal(t, tt.state, v.State)
			require.Equal(t, tt.want, v.Want)
		})
	}
}

func TestEverCaptured(t *testing.T) {
	t.Parallel()
	undone := gatewaySays(
		order.Fact{Kind: order.KindCaptured, Ref: "c", Status: order.StatusOK, Amount: 4, Currency: "EUR"},
		order.Fact{Kind: order.KindCaptured, Ref: "c", Status: order.StatusFailed, Amount: 4, Currency: "EUR"})
	for name, tt := range map[string]struct {
		e    order.Event
		want bool
	}{
		"Nothing":             {gatewaySays(), false},
		"Authorized":          {gatewaySays(order.Fact{Kind: order.KindAuthorized, Amount: 4, Currency: "EUR"}), false},
		"Undone":              {undone, true},
		"Confirmed":           {confirmed(order.KindCaptured, 4), true},
		"ConfirmedAuthorized": {confirmed(order.KindAuthorized, 4), false},
		"TotalFellToZero":     {gatewaySays(order.Fact{Kind: order.KindCaptured, Amount: 4, Seq: 1, Currency: "EUR"}, order.Fact{Kind: order.KindCaptured, Seq: 2, Currency: "EUR"}), true},
	} {
		require.Equal(t, tt.want, ofOne(tt.e).Payments["pi_1"].EverCaptured(), name)
	}
}

// The last word of a person holds, whatever the gateways say, until it is taken back.
func TestLinksOfPersons(t *testing.T) {
	t.Parallel()
	at := func(s int, ref string, c *order.Command, strength order.Strength) order.Event {
		return order.Event{ID: "e" + ref, Payment: []string{"p"}, At: epoch.Add(time.Duration(s) * time.Second), Reference: ref, Command: c, Strength: strength}
	}
	link := &order.Command{Link: true}
	own := at(1, "own", nil, order.StrengthPayment)
	first, second, back := at(2, "first", link, order.StrengthPerson), at(3, "second", link, order.StrengthPerson), at(4, "", link, 0)
	for name, tt := range map[string]struct {
		events []order.Event
		want   string
	}{
		"Gateway":      {[]order.Event{own}, "own"},
		"Person":       {[]order.Event{first, own}, "first"},
		"LastPerson":   {[]order.Event{second, first, own}, "second"},
		"TakenBack":    {[]order.Event{back, second, own}, "own"},
		"NothingElse":  {[]order.Event{second, back}, ""},
		"LinkedAnew":   {[]order.Event{at(5, "third", link, order.StrengthPerson), back, own}, "third"},
		"PlainNothing": {[]order.Event{at(1, "", nil, 0)}, ""},
	} {
		l := order.NewLedger()
		for _, e := range tt.events {
			l.JoinEvent(e)
		}
		require.Equal(t, tt.want, l.Links().Best().Ref, name)
	}
}

func TestAmendmentMergesDetails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ had, patch, want string }{
		"RFC7396":     {`{"a":"b","c":{"d":"e","f":"g"}}`, `{"a":"z","c":{"f":null}}`, `{"a":"z","c":{"d":"e"}}`},
		"FromNothing": {``, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		"Arrays":      {`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`},
		"Exact":       {`{"n":1.00}`, `{"m":123456789012345678901234567890.10}`, `{"m":123456789012345678901234567890.10,"n":1.00}`},
		"NoPatch":     {`{"a":1}`, ``, `{"a":1}`},
		"AllGone":     {`{"a":1}`, `{"a":null}`, `{}`},
	} {
		a := order.Amendment{}
		if tt.patch != "" {
			a.Details = json.RawMessage(tt.patch)
		}
		got, err := a.Apply(json.RawMessage(tt.had))
		require.NoError(t, err, name)
		require.Equal(t, tt.want, string(got), name)
	}
	for _, bad := range []string{`[]`, `1`, `{`, `{} {}`, `null`} {
		_, err := (&order.Amendment{Details: json.RawMessage(bad)}).Apply(nil)
		require.Error(t, err, bad)
	}
}

func TestCommandsAreOfOneKind(t *testing.T) {
	t.Parallel()
	eur := order.Amount{Minor: 1, Currency: "EUR"}
	for name, c := range map[string]order.Command{
		"None":            {},
		"Two":             {Cancel: true, Confirm: true},
		"NegativeTotal":   {Register: &order.Amount{Minor: -1, Currency: "EUR"}},
		"NoCurrency":      {Amend: &order.Amendment{Total: &order.Amount{Minor: 1}}},
		"Unregistered":    {Dismiss: order.FlagUnregistered},
		"UnknownFlag":     {Restore: 1 << 30},
		"DetailsOfCancel": {Cancel: true, Details: json.RawMessage(`{}`)},
		"IncomeOfNoKind":  {Income: &order.Income{}},
		"UnknownIncome":   {Income: &order.Income{Kind: "barter"}},
		"SourceOfNothing": {Income: &order.Income{Kind: order.IncomeCash, Source: &order.Amount{Currency: "USD"}}},
		"SourceNowhere":   {Income: &order.Income{Kind: order.IncomeCash, Source: &order.Amount{Minor: 1}}},
		"VoidedKind":      {Income: &order.Income{Kind: order.IncomeCash, Voided: true}},
	} {
		require.Error(t, c.Validate(), name)
	}
	for name, c := range map[string]order.Command{
		"Register": {Register: &eur, Details: json.RawMessage(`{}`), ExpiresAt: &time.Time{}},
		"Amend":    {Amend: &order.Amendment{}},
		"Both":     {Dismiss: order.FlagOverpaid, Restore: order.FlagUnderpaid},
		"Income":   {Income: &order.Income{Kind: order.IncomeCash, Source: &order.Amount{Minor: 1, Currency: "USD"}}},
		"Voided":   {Income: &order.Income{Voided: true}},
	} {
		require.NoError(t, c.Validate(), name)
	}
}

// A dismissal never hides more than it named, never moves anything, and ends when the flag does.
func TestDismissalHidesFlagsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t)
		o.Payments = map[string]*order.Ledger{}
		for _, e := range rapid.SliceOfN(anyEvent(), 0, 5).Draw(t, "events") {
			if o.Payments[e.payment] == nil {
				o.Payments[e.payment] = order.NewLedger()
			}
			o.Payments[e.payment].JoinEvent(e.Event)
		}
		plain := o.View()
		o.Dismissed = order.Flags(rapid.Uint32().Draw(t, "dismissed")) & order.Dismissible
		shown := o.View()
		require.Equal(t, plain.Flags&^o.Dismissed, shown.Flags)
		shown.Flags = plain.Flags
		require.Equal(t, plain, shown)

		o.Recall(plain, 0)
		require.Equal(t, o.Dismissed, o.Dismissed&plain.Flags, "what does not hold is dismissed no more")
		raised := order.Flags(rapid.Uint32().Draw(t, "raised"))
		o.Recall(plain, raised)
		require.Zero(t, o.Dismissed&raised)
		if next := rapid.Int64Range(0, 9).Draw(t, "total"); next != o.Total && o.Registered {
			o.Total = next
			o.Recall(plain, 0)
			require.Zero(t, o.Dismissed&order.FlagOverpaid)
		}
	})
}
