package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// midMinute is when tests of the net happen, unless they say otherwise: no minute ends while they run.
var midMinute = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)

// openAt is open with a clock that stands still until set moves it.
func openAt(t *testing.T) (s *store.Store, pool *pgxpool.Pool, set func(time.Time)) {
	t.Helper()
	s, pool = open(t)
	return s, pool, storetest.StopClock(t, pool, midMinute)
}

// cash is 50.00 EUR, in cash; change says what else.
func cash(change ...func(*store.NewIncome)) store.NewIncome {
	n := store.NewIncome{Account: account, Kind: order.IncomeCash, Amount: order.Amount{Minor: 5000, Currency: "EUR"}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func from(party string) func(*store.NewIncome) {
	return func(n *store.NewIncome) { n.Party = party }
}

func called(ref string) func(*store.NewIncome) {
	return func(n *store.NewIncome) { n.Ref = ref }
}

func towards(ref string) func(*store.NewIncome) {
	return func(n *store.NewIncome) { n.OrderRef = ref }
}

func worth(minor int64, currency string) func(*store.NewIncome) {
	return func(n *store.NewIncome) { n.Amount = order.Amount{Minor: minor, Currency: currency} }
}

// enter enters an income in a transaction of its own.
func enter(t *testing.T, s *store.Store, n store.NewIncome) (in store.EnteredIncome, err error) {
	t.Helper()
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		in, err = s.CreateIncome(t.Context(), tx, n)
		return err
	})
	return in, err
}

// enters is enter, for an income that is new.
func enters(t *testing.T, s *store.Store, n store.NewIncome) store.Income {
	t.Helper()
	in, err := enter(t, s, n)
	require.NoError(t, err)
	require.True(t, in.New)
	require.False(t, in.Differs)
	return in.Income
}

func void(t *testing.T, s *store.Store, id uuid.UUID) (in store.Income, voided bool, err error) {
	t.Helper()
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		in, voided, err = s.VoidIncome(t.Context(), tx, account, id)
		return err
	})
	return in, voided, err
}

// voids is void, for an income that stands.
func voids(t *testing.T, s *store.Store, id uuid.UUID) store.Income {
	t.Helper()
	in, voided, err := void(t, s, id)
	require.NoError(t, err)
	require.True(t, voided)
	require.Equal(t, store.IncomeVoided, in.Status)
	require.NotNil(t, in.VoidedAt)
	return in
}

// refusedAsTwinOf requires that an income was taken for one that is there, and that nothing of it was written.
func refusedAsTwinOf(t *testing.T, err error, id uuid.UUID) {
	t.Helper()
	var twin *store.DuplicateError
	require.ErrorAs(t, err, &twin)
	require.Equal(t, store.DuplicateError{Resource: "income", ID: id}, *twin)
}

func TestIncomePaysAnOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	o := readOrder(t, pool, "ord_1")
	onDay := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	n := cash(towards("ord_1"), from("Ana"), called("inc_1"))
	n.Source, n.ReceivedOn, n.Metadata = &order.Amount{Minor: 6000, Currency: "USD"}, &onDay, []byte(`{"external_ref":"inc_1","shift":7}`)
	in := enters(t, s, n)
	require.Equal(t, store.Income{
		Account: account, ID: in.ID, Ref: "inc_1", Order: &o.ID, OrderRef: "ord_1", Party: "Ana", Kind: order.IncomeCash,
		Amount: n.Amount, Source: n.Source, ReceivedOn: &onDay, Metadata: in.Metadata, Status: store.IncomeReceived, CreatedAt: in.CreatedAt,
	}, in)
	require.JSONEq(t, string(n.Metadata), string(in.Metadata))
	got, err := s.GetIncome(t.Context(), account, in.ID)
	require.NoError(t, err)
	require.Equal(t, in, got)

	o = readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.Empty(t, o.Flags)
	require.EqualValues(t, 5000, o.Captured)
	require.NotNil(t, o.Wake, "somebody will tell the merchant")
	require.Equal(t, 1, count(t, pool, `processed_events WHERE source_id = 'api' AND event_id = 'income:ref:inc_1' AND type = 'income.received'
		AND outcome = 'applied' AND realm = 'offline' AND payment = $1 AND occurred_at = $2`, in.ID.String(), in.CreatedAt))
	require.Equal(t, 1, count(t, pool, "payment_ids WHERE realm = 'offline' AND id = $1", in.ID.String()))

	// The merchant is told, then the income turns out to be a mistake.
	_, err = pool.Exec(t.Context(), `UPDATE order_transitions SET effect_state = 'done', attempts = 1, tried = true, settled_at = now() WHERE effect = 'fulfil';
		UPDATE orders SET told = 'fulfilled'`)
	require.NoError(t, err)
	gone := voids(t, s, in.ID)
	in.Status, in.VoidedAt = store.IncomeVoided, gone.VoidedAt
	require.Equal(t, in, gone)
	o = readOrder(t, pool, "ord_1")
	require.Equal(t, "pending", o.State)
	require.Equal(t, "stop", o.Want)
	require.Empty(t, o.Flags, "no move that nothing explains")
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'revoke' AND effect_state = 'open'"))
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = $1 AND type = 'income.voided' AND outcome = 'applied'", "income_voided:"+in.ID.String()))

	again, voided, err := void(t, s, in.ID)
	require.NoError(t, err)
	require.False(t, voided)
	require.Equal(t, gone, again, "as it was the first time")
	require.Equal(t, o, readOrder(t, pool, "ord_1"))
}

func TestIncomeTowardsAnOrderByID(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	id := readOrder(t, pool, "ord_1").ID
	in := enters(t, s, cash(func(n *store.NewIncome) { n.Order = id }))
	require.Equal(t, &id, in.Order)
	require.Equal(t, "ord_1", in.OrderRef)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = $1", "income:"+in.ID.String()))
}

func TestIncomeTowardsNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	in := enters(t, s, cash(from("Ana")))
	require.Nil(t, in.Order)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE outcome = 'no_change' AND reason = 'no_order' AND order_id IS NULL"))
	require.Equal(t, 0, count(t, pool, "orders"))

	// A person may find out later what it was for, and that it was not.
	apply(t, s, register("ord_1", 5000))
	says(t, s, "ord_1", order.Command{Link: true}, about(in.ID.String()), func(e *store.Event) { e.Realm = order.Offline })
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	voids(t, s, in.ID)
	require.Equal(t, "pending", readOrder(t, pool, "ord_1").State)
}

// A link that a person takes back leaves an income where it was entered for.
func TestIncomeThatIsLinkedElsewhere(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
	in := enters(t, s, cash(towards("ord_1")))
	link := func(ref string) {
		says(t, s, ref, order.Command{Link: true}, about(in.ID.String()), func(e *store.Event) { e.Realm = order.Offline })
	}
	link("ord_2")
	require.Equal(t, "pending", readOrder(t, pool, "ord_1").State)
	require.Equal(t, "paid", readOrder(t, pool, "ord_2").State)
	link("")
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, "pending", readOrder(t, pool, "ord_2").State)
	link("ord_2")
	voids(t, s, in.ID)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_1").Kept)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_2").Kept)
	got, err := s.GetIncome(t.Context(), account, in.ID)
	require.NoError(t, err)
	require.Equal(t, "ord_1", got.OrderRef, "as it was received for")
}

func TestIncomeTowardsAStub(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 2000))
	enters(t, s, cash(towards("ord_1"), worth(3000, "EUR")))
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, []string{"unregistered"}, o.Flags)
	require.Equal(t, "wait", o.Want)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE type = 'income.received' AND outcome = 'waiting' AND reason = 'unregistered'"))
	apply(t, s, register("ord_1", 5000))
	o = readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.Empty(t, o.Flags)
}

// An order that a gateway's amount has made keeps the total that the gateway said.
func TestIncomeMakesNoTotal(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	e := captured("evt_1", "pi_1", "ord_1", 2000)
	e.OnUnknown = store.OnUnknownCreate
	apply(t, s, e)
	enters(t, s, cash(towards("ord_1"), worth(9000, "EUR")))
	require.Equal(t, []string{"overpaid"}, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, 1, count(t, pool, "orders WHERE total = 2000"))
}

func TestIncomeTowardsACanceledOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	says(t, s, "ord_1", order.Command{Cancel: true})
	in := enters(t, s, cash(towards("ord_1")))
	o := readOrder(t, pool, "ord_1")
	require.Contains(t, o.Flags, "paid_after_cancel")
	require.Equal(t, "wait", o.Want)
	voids(t, s, in.ID)
	o = readOrder(t, pool, "ord_1")
	require.Empty(t, o.Flags)
	require.Equal(t, "canceled", o.State)
}

func TestIncomeInAnotherCurrency(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	in := enters(t, s, cash(towards("ord_1"), worth(5000, "USD")))
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "pending", o.State)
	require.EqualValues(t, 0, o.Captured)
	require.Equal(t, []string{"currency_mismatch"}, o.Flags)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE outcome = 'flagged' AND reason = 'currency_mismatch'"))
	voids(t, s, in.ID)
	require.Equal(t, "pending", readOrder(t, pool, "ord_1").State)
}

func TestIncomesAddUp(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	const most = 1_000_000_000_000_000
	apply(t, s, register("ord_1", most))
	enters(t, s, cash(towards("ord_1"), worth(most-1, "EUR")))
	require.Equal(t, "partially_paid", readOrder(t, pool, "ord_1").State)
	enters(t, s, cash(towards("ord_1"), worth(1, "EUR")))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	// Sums stop at what a row can hold.
	enters(t, s, cash(towards("ord_1"), worth(order.All-1, "EUR")))
	enters(t, s, cash(towards("ord_1"), worth(order.All-2, "EUR")))
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, []string{"overpaid"}, o.Flags)
	require.Equal(t, int64(order.All-1), o.Captured)
}

func TestIncomesThatCannotBe(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	before := count(t, pool, "processed_events")
	usd := func(minor int64, currency string) func(*store.NewIncome) {
		return func(n *store.NewIncome) { n.Source = &order.Amount{Minor: minor, Currency: currency} }
	}
	for name, n := range map[string]store.NewIncome{
		"OfNobody":       cash(),
		"TwoOrders":      cash(towards("ord_1"), func(n *store.NewIncome) { n.Order = readOrder(t, pool, "ord_1").ID }),
		"NoKind":         cash(from("Ana"), func(n *store.NewIncome) { n.Kind = "" }),
		"UnknownKind":    cash(from("Ana"), func(n *store.NewIncome) { n.Kind = "barter" }),
		"Nothing":        cash(from("Ana"), worth(0, "EUR")),
		"Negative":       cash(from("Ana"), worth(-1, "EUR")),
		"Everything":     cash(from("Ana"), worth(order.All, "EUR")),
		"NoCurrency":     cash(from("Ana"), worth(1, "")),
		"LowerCase":      cash(from("Ana"), worth(1, "eur")),
		"SourceNothing":  cash(from("Ana"), usd(0, "USD")),
		"SourceCurrency": cash(from("Ana"), usd(1, "")),
		"SourceTheSame":  cash(from("Ana"), usd(1, "EUR")),
		"RefNotText":     cash(called("a\x00b")),
		"PartyTooLong":   cash(from(string(make([]byte, 256)))),
		"PartySpaces":    cash(from(" ")),
	} {
		_, err := enter(t, s, n)
		require.ErrorIs(t, err, store.ErrUnstorable, name)
	}
	for name, n := range map[string]store.NewIncome{
		"UnknownRef": cash(towards("ord_9"), called("inc_1")),
		"UnknownID":  cash(func(n *store.NewIncome) { n.Order = uuid.New() }),
	} {
		_, err := enter(t, s, n)
		require.ErrorIs(t, err, store.ErrNotFound, name)
	}
	require.Equal(t, before, count(t, pool, "processed_events"))
	require.Equal(t, 0, count(t, pool, "payment_ids"))
	require.Equal(t, 1, count(t, pool, "orders"), "no order is made for an income")
	require.Equal(t, 0, count(t, pool, "incomes"))
	_, _, err := void(t, s, uuid.New())
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.GetIncome(t.Context(), account, uuid.New())
	require.ErrorIs(t, err, store.ErrNotFound)
	enters(t, s, cash(called("inc_1")))
}

// Accounts know nothing of each other's incomes: not by id, not by reference, not by order, and the net keeps them apart.
func TestIncomesOfTwoAccounts(t *testing.T) {
	t.Parallel()
	s, pool, _ := openAt(t)
	apply(t, s, register("ord_1", 5000))
	mine := enters(t, s, cash(called("inc_1"), from("Ana")))
	anas := enters(t, s, cash(from("Ana")))
	theirs := func(n store.NewIncome) store.NewIncome { n.Account = "other"; return n }

	other := enters(t, s, theirs(cash(called("inc_1"), from("Ana"))))
	require.NotEqual(t, mine.ID, other.ID)
	require.NotEqual(t, anas.ID, enters(t, s, theirs(cash(from("Ana")))).ID)
	for _, n := range []store.NewIncome{cash(towards("ord_1")), cash(func(n *store.NewIncome) { n.Order = readOrder(t, pool, "ord_1").ID })} {
		_, err := enter(t, s, theirs(n))
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	_, err := s.GetIncome(t.Context(), "other", mine.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		_, _, err := s.VoidIncome(t.Context(), tx, "other", mine.ID)
		return err
	})
	require.ErrorIs(t, err, store.ErrNotFound)
	got, err := s.GetIncome(t.Context(), account, mine.ID)
	require.NoError(t, err)
	require.Equal(t, store.IncomeReceived, got.Status)
}

func TestListIncomes(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	ord := readOrder(t, pool, "ord_1").ID
	var all []store.Income // newest first
	for i := range 7 {
		n := cash(called(string(rune('a' + i))))
		if i%3 == 0 {
			n.OrderRef = "ord_1"
		}
		in := enters(t, s, n)
		if i == 4 {
			in = voids(t, s, in.ID)
		}
		all = append([]store.Income{in}, all...)
	}
	other := cash(called("z"))
	other.Account = "other"
	theirs := enters(t, s, other)

	list := func(f store.IncomeFilter) (found []store.Income) {
		if f.Account == "" {
			f.Account = account
		}
		for f.Limit = 2; ; {
			page, next, err := s.ListIncomes(t.Context(), f)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 2)
			found = append(found, page...)
			if next == uuid.Nil {
				return found
			}
			f.Before = next
		}
	}
	where := func(keep func(store.Income) bool) (kept []store.Income) {
		for _, in := range all {
			if keep(in) {
				kept = append(kept, in)
			}
		}
		return kept
	}
	require.Equal(t, all, list(store.IncomeFilter{}))
	require.Equal(t, []store.Income{theirs}, list(store.IncomeFilter{Account: "other"}))
	require.Equal(t, where(func(in store.Income) bool { return in.Order != nil }), list(store.IncomeFilter{Order: ord}))
	require.Equal(t, where(func(in store.Income) bool { return in.Status == store.IncomeVoided }), list(store.IncomeFilter{Status: store.IncomeVoided}))
	require.Equal(t, where(func(in store.Income) bool { return in.Status == store.IncomeReceived }), list(store.IncomeFilter{Status: store.IncomeReceived}))
	require.Equal(t, all[2:3], list(store.IncomeFilter{Ref: all[2].Ref}))
	require.Equal(t, all[:3], list(store.IncomeFilter{CreatedFrom: all[2].CreatedAt}), "from the first on")
	require.Equal(t, all[3:], list(store.IncomeFilter{CreatedUntil: all[2].CreatedAt}), "before the second")
	require.Empty(t, list(store.IncomeFilter{Order: uuid.New()}))
	_, _, err := s.ListIncomes(t.Context(), store.IncomeFilter{Status: "lost"})
	require.Error(t, err)
}
