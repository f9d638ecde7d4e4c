package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func name(id string) store.PaymentName {
	return store.PaymentName{Account: account, Realm: "stripe:live", ID: id}
}

// read runs fn in one snapshot.
func read(t *testing.T, s *store.Store, fn func(b *store.Books)) {
	t.Helper()
	require.NoError(t, s.ReadBooks(t.Context(), func(b *store.Books) error {
		fn(b)
		return nil
	}))
}

func TestBooksFindPayments(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	both := captured("evt_3", "pi_1", "ord_1", 5000)
	both.Payment = append(both.Payment, "ch_1")
	elsewhere := of("other", captured("evt_1", "pi_9", "ord_1", 700))
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_2", "ch_1", "", 5000), both, captured("evt_4", "pi_2", "", 100), elsewhere)
	read(t, s, func(b *store.Books) {
		keys, err := b.Find(t.Context(), []store.PaymentName{
			name("ch_1"), name("nosuch"), name("pi_1"), name("pi_2"), {account, "stripe:test", "pi_1"}, {"other", "stripe:live", "pi_1"}, {"other", "stripe:live", "pi_9"}, name("pi_9"), name("ch_1"),
		})
		require.NoError(t, err)
		require.NotEqual(t, uuid.Nil, keys[0].ID)
		require.Equal(t, keys[0], keys[2], "two ids of one payment, of which one was merged into the other")
		require.Equal(t, keys[0], keys[8])
		require.NotEqual(t, keys[0], keys[3])
		require.Equal(t, "other", keys[6].Account)
		for _, i := range []int{1, 4, 5, 7} {
			require.Zero(t, keys[i], "name %d is of none, or of another account's or mode's", i)
		}
		payments, err := b.Payments(t.Context(), []store.PaymentKey{keys[3], keys[0], {account, uuid.New()}})
		require.NoError(t, err)
		require.Len(t, payments, 2)
		got := map[store.PaymentKey]store.BookedPayment{}
		for _, p := range payments {
			got[p.PaymentKey] = p
		}
		require.Equal(t, "ord_1", got[keys[0]].Order)
		require.Equal(t, []string{"ch_1", "pi_1"}, got[keys[0]].Ledger.IDs)
		require.Empty(t, got[keys[3]].Order)
		minor, _ := got[keys[3]].Ledger.Booked("EUR")
		require.EqualValues(t, 100, minor)

		none, err := b.Find(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func TestBooksCapturedBetween(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	at := func(when time.Time, e store.Event) store.Event {
		e.At = when
		return e
	}
	snapshot := at(day, captured("evt_5", "pi_before", "", 500)) // tells again what was captured before
	snapshot.Facts = append(snapshot.Facts, order.Fact{Kind: order.KindRefunded, Amount: 100, Currency: "EUR"})
	zero := at(day, captured("evt_6", "pi_zero", "", 0))
	zero.Facts[0].Amount = 0
	misfit := at(day, captured("evt_7", "pi_misfit", "", 500))
	misfit.Facts[0].Misfit = order.MisfitMode
	denied := at(day, captured("evt_8", "pi_denied", "", 500))
	denied.Facts[0].Ref, denied.Facts[0].Status = "ch", order.StatusDenied
	item := at(day, captured("evt_9", "pi_item", "ord_1", 500))
	item.Facts[0].Ref, item.Facts[0].Status = "cap", order.StatusOK
	test := at(day, captured("evt_10", "pi_test", "", 500))
	test.Realm = "stripe:test"
	merged := at(day, captured("evt_13", "pi_in", "", 500))
	merged.Payment = append(merged.Payment, "ch_in")
	timeless := captured("evt_14", "pi_timeless", "", 500)
	timeless.At = time.Time{} // was received now, as far as anybody knows
	apply(t, s,
		at(day, captured("evt_1", "pi_in", "ord_1", 500)), at(day.Add(-time.Nanosecond*1000), captured("evt_2", "pi_before", "", 500)),
		at(day.Add(time.Hour), captured("evt_3", "pi_after", "", 500)), at(day.Add(time.Hour-time.Microsecond), captured("evt_4", "pi_last", "", 500)),
		snapshot, zero, misfit, denied, item, test, of("other", at(day, captured("evt_11", "pi_other", "", 500))), merged, timeless,
	)
	// What the checkout confirmed is no word of the gateway's.
	says(t, s, "ord_1", order.Command{Confirm: true}, about("pi_confirmed", order.Fact{Kind: order.KindCaptured, Amount: 500, Currency: "EUR"}))

	list := func(realms []store.Realm, from, until time.Time) (ids []string) {
		var last store.PaymentKey
		read(t, s, func(b *store.Books) {
			err := b.CapturedBetween(t.Context(), realms, from, until, func(p store.BookedPayment) error {
				require.True(t, last.Account < p.Account || last.Account == p.Account && last.ID.String() < p.ID.String(), "in the order of keys")
				last = p.PaymentKey
				ids = append(ids, p.Ledger.IDs[len(p.Ledger.IDs)-1])
				if p.Order != "" {
					ids[len(ids)-1] += " of " + p.Order
				}
				return nil
			})
			require.NoError(t, err)
		})
		return ids
	}
	live := []store.Realm{{Account: account, Name: "stripe:live"}}
	require.ElementsMatch(t, []string{"pi_in of ord_1", "pi_item of ord_1", "pi_last"}, list(live, day, day.Add(time.Hour)))
	require.ElementsMatch(t, []string{"pi_in of ord_1", "pi_item of ord_1", "pi_last", "pi_test", "pi_other"},
		list(append(live, store.Realm{Account: "other", Name: "stripe:live"}, store.Realm{Account: account, Name: "stripe:test"}), day, day.Add(time.Hour)))
	require.Empty(t, list([]store.Realm{{Account: "other", Name: "stripe:test"}}, day, day.Add(time.Hour)))
	now := time.Now()
	require.ElementsMatch(t, []string{"pi_timeless"}, list(live, now.Add(-time.Hour), now.Add(time.Hour)))

	enough := errors.New("enough")
	require.ErrorIs(t, s.ReadBooks(t.Context(), func(b *store.Books) error {
		return b.CapturedBetween(t.Context(), live, day, day.Add(time.Hour), func(store.BookedPayment) error { return enough })
	}), enough)
}

// What is written meanwhile is not seen: a payment cannot be two at the beginning, and one at the end.
func TestBooksAreOneSnapshot(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	apply(t, s, captured("evt_1", "pi_1", "", 5000), captured("evt_2", "ch_1", "", 5000))
	read(t, s, func(b *store.Books) {
		before, err := b.Find(t.Context(), []store.PaymentName{name("pi_1"), name("ch_1")})
		require.NoError(t, err)
		require.NotEqual(t, before[0], before[1])
		both := captured("evt_3", "pi_1", "", 5000)
		both.Payment = append(both.Payment, "ch_1")
		apply(t, s, both)
		after, err := b.Find(t.Context(), []store.PaymentName{name("pi_1"), name("ch_1")})
		require.NoError(t, err)
		require.Equal(t, before, after)
		payments, err := b.Payments(t.Context(), before)
		require.NoError(t, err)
		require.Len(t, payments, 2)
		for _, p := range payments {
			require.Len(t, p.Ledger.IDs, 1)
		}
	})
}
