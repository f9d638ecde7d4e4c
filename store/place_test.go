package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func named(e store.Event, ref string, s order.Strength, ids ...string) store.Event {
	e.Reference, e.Strength = ref, s
	if len(ids) > 0 {
		e.Payment = ids
	}
	return e
}

func TestPlaceStrongerReferenceMovesAPaymentOffAStub(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	early := named(captured("evt_1", "pi_1", "", 5000), "ord_old", order.StrengthPayment)
	apply(t, s, early)
	linked := named(captured("evt_2", "pi_1", "", 5000), "ord_new", order.StrengthPerson)
	apply(t, s, linked)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_old").Captured, "the stub is empty again")
	require.EqualValues(t, 5000, readOrder(t, pool, "ord_new").Captured)
}

func TestPlaceModificationMakesNoOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	capture := named(captured("evt_1", "psp_1", "", 5000), "3546900", order.StrengthModification)
	res := apply(t, s, capture)
	require.Equal(t, store.Waiting, res[0].Outcome)
	require.Equal(t, store.ReasonNoReference, res[0].Reason)
	require.Equal(t, 0, count(t, pool, "orders"))

	apply(t, s, register("ord_1", 5000), named(captured("evt_2", "psp_1", "", 5000), "ord_1", order.StrengthPayment))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Empty(t, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, 1, count(t, pool, "orders"))
}

func TestPlaceStaysOnARegisteredOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
	apply(t, s, named(captured("evt_1", "pi_1", "", 5000), "ord_1", order.StrengthModification))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	apply(t, s, named(captured("evt_2", "pi_1", "", 5000), "ord_2", order.StrengthPayment))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, []string{"reference_conflict"}, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, []string{"reference_conflict"}, readOrder(t, pool, "ord_2").Flags)

	// Only a person takes it from there.
	apply(t, s, named(captured("evt_3", "pi_1", "", 5000), "ord_2", order.StrengthPerson))
	require.EqualValues(t, 0, readOrder(t, pool, "ord_1").Captured)
	require.EqualValues(t, 5000, readOrder(t, pool, "ord_2").Captured)
}

// Own events of one payment name two orders. Where it stands may depend on which came first, but both orders say so.
func TestPlaceTellsOfAConflictWhicheverCameFirst(t *testing.T) {
	t.Parallel()
	conflict := []string{"reference_conflict"}
	for _, tt := range []struct {
		registered []string
		arrival    [2]int
		flags      map[string][]string
	}{
		{[]string{"A", "B"}, [2]int{1, 2}, map[string][]string{"A": conflict, "B": conflict}},
		{[]string{"A", "B"}, [2]int{2, 1}, map[string][]string{"A": conflict, "B": conflict}},
		{[]string{"B"}, [2]int{1, 2}, map[string][]string{"A": {"reference_conflict", "unregistered"}, "B": conflict}},
		{[]string{"B"}, [2]int{2, 1}, map[string][]string{"B": conflict}},
		{[]string{"A"}, [2]int{1, 2}, map[string][]string{"A": conflict}},
		{[]string{"A"}, [2]int{2, 1}, map[string][]string{"A": conflict, "B": {"reference_conflict", "unregistered"}}},
	} {
		t.Run(fmt.Sprint(tt.registered, tt.arrival), func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			for _, ref := range tt.registered {
				apply(t, s, register(ref, 5000))
			}
			for _, n := range tt.arrival {
				e := named(captured(fmt.Sprintf("evt_%d", n), "pi_1", "", 5000), string(rune('A'+n-1)), order.StrengthPayment)
				e.At = day.Add(time.Duration(n) * 10 * time.Second)
				apply(t, s, e)
			}
			for ref, want := range tt.flags {
				require.Equal(t, want, readOrder(t, pool, ref).Flags, ref)
			}
		})
	}
}

func TestPlaceDoesNotMergePaymentsOfTwoRegisteredOrders(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000),
		captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_2", "pi_2", "ord_2", 5000))
	apply(t, s, named(captured("evt_3", "pi_1", "", 5000), "ord_1", order.StrengthPayment, "pi_1", "pi_2"))
	for _, ref := range []string{"ord_1", "ord_2"} {
		o := readOrder(t, pool, ref)
		require.Equal(t, "paid", o.State)
		require.Equal(t, []string{"reference_conflict"}, o.Flags)
	}
	require.Equal(t, 0, count(t, pool, "payments WHERE merged_into IS NOT NULL"))
}

// Where two payments stay apart, one batch is as good as two: what is about the second alone counts for the second.
func TestPlaceKeepsPaymentsApartWithinABatch(t *testing.T) {
	t.Parallel()
	both := named(captured("evt_3", "pi_1", "", 5000), "ord_1", order.StrengthPayment, "pi_1", "pi_2")
	second := named(captured("evt_4", "pi_2", "", 9000), "ord_2", order.StrengthPayment)
	for name, batches := range map[string][][]store.Event{"one batch": {{both, second}}, "two": {{both}, {second}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			apply(t, s, register("ord_1", 5000), register("ord_2", 9000))
			apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_2", "pi_2", "ord_2", 5000))
			for _, b := range batches {
				apply(t, s, b...)
			}
			require.EqualValues(t, 5000, readOrder(t, pool, "ord_1").Captured)
			require.EqualValues(t, 9000, readOrder(t, pool, "ord_2").Captured)
			require.Equal(t, "paid", readOrder(t, pool, "ord_2").State)
		})
	}
}

// Two gateways may call two payments of one order the same.
func TestPlaceTellsPaymentsOfOneNameApart(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "123", "ord_1", 2000))
	other := captured("evt_2", "123", "ord_1", 3000)
	other.Source, other.Realm = "adyen", "adyen:live"
	apply(t, s, other)
	o := readOrder(t, pool, "ord_1")
	require.EqualValues(t, 5000, o.Captured)
	require.Equal(t, "paid", o.State)
}

func TestPlaceMergesAliases(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	apply(t, s, named(captured("evt_1", "", "", 5000), "ord_1", order.StrengthPayment, "cs_1"))
	apply(t, s, named(captured("evt_2", "", "", 5000), "ord_1", order.StrengthPayment, "pi_1"))
	require.Equal(t, []string{"overpaid"}, readOrder(t, pool, "ord_1").Flags, "two payments, as far as anybody knows")
	apply(t, s, named(captured("evt_3", "", "", 5000), "ord_1", order.StrengthPayment, "pi_1", "cs_1"))
	o := readOrder(t, pool, "ord_1")
	require.EqualValues(t, 5000, o.Captured)
	require.Empty(t, o.Flags)
	require.Equal(t, 1, count(t, pool, "payments WHERE merged_into IS NULL"))
	res := apply(t, s, named(refunded("evt_4", "", 1000), "", 0, "cs_1"))
	require.Equal(t, store.Applied, res[0].Outcome, "an alias that was merged away still leads to the payment")
	require.EqualValues(t, 4000, readOrder(t, pool, "ord_1").Kept)
}

func TestOnUnknownOrder(t *testing.T) {
	t.Parallel()
	t.Run("ignore", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		e := captured("evt_1", "pi_1", "ord_1", 5000)
		e.OnUnknown = store.OnUnknownIgnore
		res := apply(t, s, e)
		require.Equal(t, store.Ignored, res[0].Outcome)
		require.Equal(t, store.ReasonUnknownOrder, res[0].Reason)
		require.Equal(t, 0, count(t, pool, "orders"))

		apply(t, s, register("ord_1", 5000))
		e.ID = "evt_2"
		res = apply(t, s, e)
		require.Equal(t, store.Applied, res[0].Outcome, "a known order is not ignored")
		require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	})
	t.Run("create", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		e := captured("evt_1", "pi_1", "ord_1", 5000)
		e.OnUnknown = store.OnUnknownCreate
		res := apply(t, s, e)
		require.Equal(t, store.Applied, res[0].Outcome)
		require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
		require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil'"))

		apply(t, s, register("ord_1", 7000))
		o := readOrder(t, pool, "ord_1")
		require.Equal(t, "partially_paid", o.State)
		require.Equal(t, []string{"total_differs", "underpaid"}, o.Flags)
	})
	t.Run("create without an own amount stays a stub", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		e := captured("evt_1", "pi_1", "ord_1", 2000)
		e.OnUnknown, e.Own = store.OnUnknownCreate, nil
		res := apply(t, s, e)
		require.Equal(t, store.Waiting, res[0].Outcome)
		require.Equal(t, []string{"unregistered"}, readOrder(t, pool, "ord_1").Flags)
	})
}

func TestOutcomeOfWhatIsNotCounted(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	wrong := captured("evt_cur", "pi_1", "ord_1", 5000)
	wrong.Facts[0].Currency = "IDR"
	test := captured("evt_mode", "pi_2", "ord_1", 5000)
	test.Facts[0].Misfit = order.MisfitMode
	foreign := captured("evt_acct", "pi_3", "ord_1", 5000)
	foreign.Facts[0].Misfit = order.MisfitAccount
	broken := captured("evt_broken", "pi_4", "ord_1", 0)
	broken.Facts, broken.Broken = nil, "amount is null"
	unknown := captured("evt_unknown", "pi_5", "ord_1", 0)
	unknown.Facts, unknown.Ignored = nil, "unknown_type"

	res := apply(t, s, wrong, test, foreign, broken, unknown)
	require.Equal(t, []store.Outcome{store.Flagged, store.Flagged, store.Flagged, store.Quarantined, store.Ignored},
		[]store.Outcome{res[0].Outcome, res[1].Outcome, res[2].Outcome, res[3].Outcome, res[4].Outcome})
	require.Equal(t, store.ReasonCurrencyMismatch, res[0].Reason)
	require.Equal(t, store.ReasonModeMismatch, res[1].Reason)
	require.Equal(t, store.ReasonAccountMismatch, res[2].Reason)
	require.Equal(t, "unreadable: amount is null", res[3].Reason)
	require.Equal(t, "unknown_type", res[4].Reason)
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "pending", o.State)
	require.Zero(t, o.Captured)
	require.Equal(t, []string{"account_mismatch", "currency_mismatch", "mode_mismatch"}, o.Flags)
	require.Equal(t, 0, count(t, pool, "river_job"))
}

func TestReusedIDIsFoldedAndFlagged(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 2000))
	more := captured("evt_1", "pi_1", "ord_1", 5000)
	res := apply(t, s, more)
	require.Equal(t, store.Flagged, res[0].Outcome)
	require.Equal(t, store.ReasonIDReused, res[0].Reason)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, []string{"id_reused"}, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, store.Duplicate, apply(t, s, more)[0].Outcome)

	// The merchant's own API compares the reference alone.
	res = apply(t, s, register("ord_1", 9000))
	require.Equal(t, store.Duplicate, res[0].Outcome)
	require.True(t, res[0].Differs)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
}

// Two events of one batch share no id, but the database knows that their ids are one payment, which the first of them
// merges into another: the second must not go to the payment that is no more.
func TestPlaceUnitesWhatOnlyTheDatabaseConnects(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	apply(t, s, named(captured("evt_1", "", "", 1000), "ord_1", order.StrengthPayment, "pi_1"))
	apply(t, s, named(captured("evt_2", "", "", 1000), "ord_1", order.StrengthPayment, "ch_1", "cs_1"))
	apply(t, s,
		named(captured("evt_3", "", "", 1000), "ord_1", order.StrengthPayment, "pi_1", "ch_1"),
		named(captured("evt_4", "", "", 5000), "ord_1", order.StrengthPayment, "cs_1"))
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.EqualValues(t, 5000, o.Captured)
	require.Equal(t, 1, count(t, pool, "payments WHERE merged_into IS NULL"))
	require.Equal(t, 1, count(t, pool, "payments WHERE merged_into IS NOT NULL AND ledger = '{}'"))
}
