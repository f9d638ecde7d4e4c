package order_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	every := order.FlagOverpaid | order.FlagUnderpaid | order.FlagOverRefunded | order.FlagDisputeOpen |
		order.FlagPaidAfterCancel | order.FlagCurrencyMismatch | order.FlagModeMismatch | order.FlagAccountMismatch |
		order.FlagAmountUnknown | order.FlagIDReused | order.FlagReferenceConflict | order.FlagUnexpectedMove |
		order.FlagUnregistered | order.FlagTotalDiffers | order.FlagExpiredUnpaid
	names := []string{
		"account_mismatch", "amount_unknown", "currency_mismatch", "dispute_open", "expired_unpaid", "id_reused",
		"mode_mismatch", "over_refunded", "overpaid", "paid_after_cancel", "reference_conflict", "total_differs", "underpaid",
		"unexpected_move", "unregistered",
	}
	require.Equal(t, names, every.Names())
	parsed, err := order.ParseFlags(names)
	require.NoError(t, err)
	require.Equal(t, every, parsed)
	for _, name := range names {
		one, err := order.ParseFlags([]string{name, name})
		require.NoError(t, err)
		require.Equal(t, name, one.String())
		require.True(t, every.Has(one))
		require.False(t, (every &^ one).Has(one))
	}
	require.Equal(t, "overpaid,underpaid", (order.FlagUnderpaid | order.FlagOverpaid).String())
	require.NotNil(t, order.Flags(0).Names())

	_, err = order.ParseFlags([]string{"overpaid", "haunted"})
	require.ErrorContains(t, err, `"haunted"`)
	_, err = json.Marshal(order.Flags(1 << 31))
	require.Error(t, err)
	var back order.Flags
	require.NoError(t, json.Unmarshal([]byte(`["underpaid","overpaid"]`), &back))
	require.Equal(t, order.FlagUnderpaid|order.FlagOverpaid, back)
}

func TestViewFlags(t *testing.T) {
	t.Parallel()
	misfit := func(m order.Misfit) order.Fact { f := capturedTotal(total, 0); f.Misfit = m; return f }
	for name, tt := range map[string]struct {
		facts []order.Fact
		want  order.Flags
		state order.State
	}{
		"Overpaid":        {[]order.Fact{capturedTotal(total+1, 0)}, order.FlagOverpaid, order.StatePaid},
		"Exactly":         {[]order.Fact{paid}, 0, order.StatePaid},
		"Underpaid":       {[]order.Fact{capturedTotal(total-1, 0)}, order.FlagUnderpaid, order.StatePartiallyPaid},
		"OverRefunded":    {[]order.Fact{paid, refund("r", order.StatusOK, total+1, 0)}, order.FlagOverRefunded, order.StateRefunded},
		"RefundOfAll":     {[]order.Fact{paid, refund("r", order.StatusOK, all, 0)}, 0, order.StateRefunded},
		"TotalOfAll":      {[]order.Fact{paid, refund("x", order.StatusFailed, 1, 0), refundedTotal(all, 0)}, 0, order.StateRefunded},
		"AllTakenBack":    {[]order.Fact{paid, refundedTotal(all, 1), refundedTotal(0, 2)}, 0, order.StatePaid},
		"DisputeOpen":     {[]order.Fact{capturedTotal(2*total, 0), dispute("d", order.StatusOpen, total, 0)}, order.FlagDisputeOpen | order.FlagOverpaid, order.StatePaid},
		"Disputed":        {[]order.Fact{paid, dispute("d", order.StatusOpen, 1, 0)}, 0, order.StateDisputed},
		"OtherCurrency":   {[]order.Fact{in("USD", paid)}, order.FlagCurrencyMismatch, order.StatePending},
		"Mode":            {[]order.Fact{misfit(order.MisfitMode)}, order.FlagModeMismatch, order.StatePending},
		"Account":         {[]order.Fact{misfit(order.MisfitAccount)}, order.FlagAccountMismatch, order.StatePending},
		"RefundedPending": {[]order.Fact{paid, refund("r", order.StatusPending, total, 0)}, 0, order.StatePaid},
		"CaptureDenied":   {[]order.Fact{capture("c", order.StatusDenied, total, 0)}, 0, order.StatePending},
		"ReleasedRest":    {[]order.Fact{capturedTotal(total, 0), refundedTotal(3000, 0), released(3000)}, 0, order.StatePaid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := folded(total, tt.facts...)
			require.Equal(t, tt.want.String(), v.Flags.String())
			require.Equal(t, tt.state, v.State)
		})
	}
}

func TestMarksAreFlags(t *testing.T) {
	t.Parallel()
	o := registered(total)
	join(o, "A", paid)
	before := o.View()
	o.Marks = order.FlagReferenceConflict | order.FlagExpiredUnpaid
	o.Payments["A"].Flags = order.FlagIDReused
	after := o.View()
	require.Equal(t, o.Marks|order.FlagIDReused, after.Flags)
	after.Flags = before.Flags
	require.Equal(t, before, after, "and nothing else")
}

func TestTotalDiffers(t *testing.T) {
	t.Parallel()
	own := func(minor int64, currency string) *order.Ledger {
		l := order.NewLedger()
		l.JoinEvent(order.Event{ID: "1", Payment: []string{"A"}, Own: &order.Amount{Minor: minor, Currency: currency}})
		return l
	}
	for name, tt := range map[string]struct {
		create bool
		own    *order.Ledger
		want   bool
	}{
		"Same":       {true, own(total, "EUR"), false},
		"Other":      {true, own(total-1, "EUR"), true},
		"Currency":   {true, own(total, "USD"), true},
		"NoneKnown":  {true, order.NewLedger(), false},
		"NotCreated": {false, own(total-1, "EUR"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := registered(total)
			o.Create, o.Payments["A"] = tt.create, tt.own
			v := o.View()
			require.Equal(t, tt.want, v.Flags.Has(order.FlagTotalDiffers))
			require.EqualValues(t, total, v.Total, "the merchant's word counts")
			require.Equal(t, "EUR", v.Currency)
		})
	}
}

// The greatest amount that any payment has of its own is the total, in whatever order they come.
func TestCreateTakesTheGreatestOwnAmount(t *testing.T) {
	t.Parallel()
	o := &order.Order{Create: true, Payments: map[string]*order.Ledger{}}
	for id, minor := range map[string]int64{"A": 3000, "B": 5000, "C": 4000} {
		l := order.NewLedger()
		l.JoinEvent(order.Event{ID: id, Payment: []string{id}, Own: &order.Amount{Minor: minor, Currency: "EUR"}})
		l.JoinEvent(order.Event{ID: id, Payment: []string{id}, Own: &order.Amount{Minor: minor - 1, Currency: "USD"}})
		o.Payments[id] = l
	}
	v := o.View()
	require.True(t, v.Registered)
	require.EqualValues(t, 5000, v.Total)
	require.Equal(t, "EUR", v.Currency)
	require.Zero(t, v.Flags)
	o.Create = false
	require.Equal(t, order.FlagUnregistered, o.View().Flags)
}

// A stub has no total and no currency; each payment shows its own.
func TestStub(t *testing.T) {
	t.Parallel()
	o := stub()
	o.Total, o.Currency = 1, "EUR" // not the merchant's: not read
	require.Equal(t, order.View{State: order.StatePending, Want: order.WantWait, Flags: order.FlagUnregistered}, o.View())
	join(o, "A", in("USD", capturedTotal(100, 0)))
	join(o, "B", in("JPY", capturedTotal(200, 0)))
	v := o.View()
	require.Equal(t, order.FlagUnregistered, v.Flags)
	require.EqualValues(t, 300, v.Captured)
	require.Empty(t, v.Currency)
}

// Sums stop at the limit and still add up.
func TestSumsAtTheLimit(t *testing.T) {
	t.Parallel()
	o := registered(total)
	join(o, "A", capturedTotal(all-1, 0), refund("r", order.StatusOK, all-1, 0))
	join(o, "B", capturedTotal(all-1, 0), refund("r", order.StatusOK, 5, 0), authorized(all-1))
	join(o, "C", capture("x", order.StatusOK, all-1, 0), capture("y", order.StatusOK, all-1, 0), authorized(all-1))
	join(o, "D", capturedTotal(all-1, 0), dispute("d", order.StatusLost, all, 0))
	v := o.View()
	require.EqualValues(t, all-1, v.Captured)
	require.Equal(t, v.Captured-v.Refunded-v.Lost, v.Kept)
	require.GreaterOrEqual(t, v.Kept, int64(0))
	require.EqualValues(t, all-1, v.Authorized)

	o = registered(total)
	join(o, "A", capturedTotal(all-1, 0), dispute("d", order.StatusOpen, all, 0))
	join(o, "B", capturedTotal(all-1, 0), refund("r", order.StatusOK, all-1, 0))
	v = o.View()
	require.Zero(t, v.Kept)
	require.Zero(t, v.AtRisk)
}
