package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

// noon is a time zone in which it is about noon, so that no day begins or ends while a test runs, and today there.
func noon(t *testing.T, pool *pgxpool.Pool) (zone string, today period.Date) {
	t.Helper()
	var now time.Time
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	zone = "Etc/GMT"
	if west := now.UTC().Add(30*time.Minute).Hour() - 12; west != 0 {
		zone = fmt.Sprintf("Etc/GMT%+d", west)
	}
	z, err := time.LoadLocation(zone)
	require.NoError(t, err)
	require.InDelta(t, 12, now.In(z).Hour(), 1)
	return zone, period.DateOf(now.In(z))
}

// ago is a day so many days before another one.
func ago(d period.Date, days int) period.Date { return period.DateOf(d.UTC().AddDate(0, 0, -days)) }

// recurring is a recurrence of 50.00 EUR that began so many days ago and comes back every so many.
func recurring(t *testing.T, pool *pgxpool.Pool, ref string, began, every int) store.NewRecurrence {
	t.Helper()
	zone, today := noon(t, pool)
	return store.NewRecurrence{
		Account: account, Ref: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"},
		Interval: period.Day, Every: every, TimeZone: zone, StartsOn: ago(today, began),
	}
}

func create(t *testing.T, s *store.Store, n store.NewRecurrence) store.Recurrence {
	t.Helper()
	r, created := createOrFind(t, s, n)
	require.True(t, created)
	return r
}

func createOrFind(t *testing.T, s *store.Store, n store.NewRecurrence) (r store.Recurrence, created bool) {
	t.Helper()
	require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) (err error) {
		r, created, err = s.CreateRecurrence(t.Context(), tx, n)
		return err
	}))
	return r, created
}

func end(t *testing.T, s *store.Store, id uuid.UUID, on period.Date) (r store.Recurrence, err error) {
	t.Helper()
	err = s.InTx(t.Context(), func(tx store.Tx) (err error) {
		r, err = s.EndRecurrence(t.Context(), tx, account, id, on)
		return err
	})
	return r, err
}

func ended(t *testing.T, s *store.Store, id uuid.UUID, on period.Date) store.Recurrence {
	t.Helper()
	r, err := end(t, s, id, on)
	require.NoError(t, err)
	return r
}

func due(t *testing.T, s *store.Store, r store.Recurrence) store.CreatedOrders {
	t.Helper()
	made, err := s.CreateDueOrders(t.Context(), r.Account, r.ID)
	require.NoError(t, err)
	return made
}

func get(t *testing.T, s *store.Store, r store.Recurrence) store.Recurrence {
	t.Helper()
	got, err := s.GetRecurrence(t.Context(), r.Account, r.ID)
	require.NoError(t, err)
	return got
}

// orderRefs are the references of all orders.
func orderRefs(t *testing.T, pool *pgxpool.Pool) (refs []string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(external_ref ORDER BY external_ref), '{}') FROM orders`).Scan(&refs))
	return refs
}

// asIfNew puts a recurrence back to before its first period was made, as after a long standstill.
func asIfNew(t *testing.T, pool *pgxpool.Pool, r store.Recurrence) {
	t.Helper()
	schedule, err := r.Schedule()
	require.NoError(t, err)
	first, ok := schedule.First()
	require.True(t, ok)
	_, err = pool.Exec(t.Context(), `UPDATE recurrences SET next_period = $2, next_start = $3, created_count = 0, ended_at = NULL WHERE id = $1`,
		r.ID, first.Name, first.Start)
	require.NoError(t, err)
}

func TestRecurrenceMakesAnOrderPerPeriod(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)
	n.Details = json.RawMessage(`{"items": [{"sku": "A", "qty": 1.50}], "metadata": {"external_ref": "club_1", "plan": "gold"}}`)

	r := create(t, s, n)
	var want []string
	for _, days := range []int{100, 70, 40, 10} {
		want = append(want, "club_1:"+ago(n.StartsOn, days-100).String())
	}
	require.Equal(t, want, orderRefs(t, pool), "of every period that has begun, and of no other")
	require.Equal(t, 4, r.Created)
	require.Equal(t, ago(n.StartsOn, -120).String(), *r.NextPeriod)
	require.Nil(t, r.EndedAt)
	require.Equal(t, r, get(t, s, r))

	o := readOrder(t, pool, want[0])
	require.Equal(t, "pending", o.State)
	require.Equal(t, 1, o.Version)
	require.Equal(t, 4, count(t, pool, "orders WHERE registered AND total = 5000 AND currency = 'EUR'"))
	require.Equal(t, 4, count(t, pool, "processed_events WHERE source_id = 'api' AND type = 'order.registered' AND outcome = 'applied'"))
	var details string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT details FROM orders WHERE external_ref = $1`, want[0]).Scan(&details))
	require.JSONEq(t, fmt.Sprintf(`{"items": [{"sku": "A", "qty": 1.50}], "metadata": {"external_ref": %q, "plan": "gold",
		"recurrence_id": %q, "period": %q}}`, want[0], r.ID, n.StartsOn), details)

	require.Zero(t, due(t, s, r), "nothing is due")
	require.Equal(t, r, get(t, s, r))
	late, err := s.DueRecurrences(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Empty(t, late)
}

func TestRecurrenceCatchesUp(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	r := create(t, s, recurring(t, pool, "club_1", 229, 1))
	require.Equal(t, store.MaxPeriods, r.Created, "one transaction makes no more")
	require.Len(t, orderRefs(t, pool), store.MaxPeriods)

	late, err := s.DueRecurrences(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Len(t, late, 1)
	require.Equal(t, r.ID, late[0].ID)
	require.InDelta(t, (129*24 + 12), late[0].Late.Hours(), 2, "since the oldest of them began")
	except, err := s.DueRecurrences(t.Context(), 10, []uuid.UUID{r.ID})
	require.NoError(t, err)
	require.Empty(t, except)

	require.Equal(t, store.CreatedOrders{Orders: 100, More: true}, due(t, s, r))
	require.Equal(t, store.CreatedOrders{Orders: 30}, due(t, s, r))
	require.Zero(t, due(t, s, r))
	require.Len(t, orderRefs(t, pool), 230)
	require.Equal(t, 230, get(t, s, r).Created)
}

// The database's clock cannot be moved by a test: what it is compared with is.
func TestRecurrenceWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	// Set back, or the tables restored: the periods come again, their orders do not.
	r := create(t, s, recurring(t, pool, "club_1", 100, 30))
	orders, events := orderRefs(t, pool), count(t, pool, "processed_events")
	asIfNew(t, pool, r)
	require.Equal(t, store.CreatedOrders{Known: 4}, due(t, s, r))
	require.Equal(t, orders, orderRefs(t, pool))
	require.Equal(t, events, count(t, pool, "processed_events"))
	require.Equal(t, 4, count(t, pool, "orders WHERE version = 1"))
	again := get(t, s, r)
	require.Equal(t, r.NextPeriod, again.NextPeriod)
	require.Equal(t, r.Created, again.Created)

	// Set forward: what is not due is not made, whatever was noted down.
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET next_start = now() - interval '1 hour'`)
	require.NoError(t, err)
	late, err := s.DueRecurrences(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Len(t, late, 1)
	require.Zero(t, due(t, s, r))
	require.Equal(t, orders, orderRefs(t, pool))
	require.Equal(t, r.NextStart, get(t, s, r).NextStart, "and what was noted down is put right")
}

func TestRecurrenceBeginsInTheFuture(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", -1, 1)
	r := create(t, s, n)
	require.Empty(t, orderRefs(t, pool))
	require.Zero(t, r.Created)
	require.Equal(t, n.StartsOn.String(), *r.NextPeriod)
	require.Zero(t, due(t, s, r))

	// It has begun: today is the first period.
	first := ago(n.StartsOn, 1)
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET starts_on = $1, next_period = $2, next_start = next_start - interval '1 day'`,
		first.UTC(), first.String())
	require.NoError(t, err)
	require.Equal(t, store.CreatedOrders{Orders: 1}, due(t, s, r))
	require.Equal(t, []string{"club_1:" + first.String()}, orderRefs(t, pool))
}

func TestRecurrenceEndsByItself(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	byCount, byDay := recurring(t, pool, "count", 100, 30), recurring(t, pool, "day", 100, 30)
	byCount.EndsAfter = 3
	byDay.EndsOn = ago(byDay.StartsOn, -60)
	for _, n := range []store.NewRecurrence{byCount, byDay} {
		r := create(t, s, n)
		require.Equal(t, 3, r.Created, n.Ref)
		require.NotNil(t, r.EndedAt)
		require.Nil(t, r.NextPeriod)
		require.Nil(t, r.NextStart)
		require.Zero(t, due(t, s, r))
		require.Equal(t, 3, count(t, pool, "orders WHERE starts_with(external_ref, $1)", n.Ref))
	}
	last := recurring(t, pool, "last", 100, 30)
	last.EndsOn = ago(last.StartsOn, -61)
	require.Equal(t, 3, create(t, s, last).Created, "a period begins on its last day or before")
}

func TestEndRecurrence(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	r := create(t, s, recurring(t, pool, "club_1", 100, 30))
	_, today := noon(t, pool)
	running := ago(today, 10)

	// On a day to come: one more period, and it goes on until then.
	later := ended(t, s, r.ID, ago(today, -25))
	require.Nil(t, later.EndedAt)
	require.Equal(t, r.NextPeriod, later.NextPeriod)
	require.Equal(t, r.Version+1, later.Version)
	require.Equal(t, later, ended(t, s, r.ID, ago(today, -25)), "again: nothing changes")
	_, err := end(t, s, r.ID, ago(today, -26))
	require.ErrorIs(t, err, store.ErrEndsEarlier)

	// Sooner: the next period is not made any more.
	sooner := ended(t, s, r.ID, ago(today, -19))
	require.NotNil(t, sooner.EndedAt)
	require.Nil(t, sooner.NextPeriod)
	require.Equal(t, sooner, get(t, s, r))

	require.Equal(t, sooner, ended(t, s, r.ID, period.Date{}), "it has ended")
	_, err = end(t, s, r.ID, today)
	require.NoError(t, err, "by then it had")
	_, err = end(t, s, uuid.New(), period.Date{})
	require.ErrorIs(t, err, store.ErrNotFound)

	// Now: the running period is the last.
	now := create(t, s, recurring(t, pool, "club_2", 100, 30))
	now = ended(t, s, now.ID, period.Date{})
	require.Equal(t, running, *now.EndsOn)
	require.NotNil(t, now.EndedAt)
	require.Equal(t, now, ended(t, s, now.ID, period.Date{}))
	require.Zero(t, due(t, s, now))

	// Before it began.
	never := create(t, s, recurring(t, pool, "club_3", -10, 30))
	never = ended(t, s, never.ID, period.Date{})
	require.Zero(t, never.Created)
	require.NotNil(t, never.EndedAt)

	// What had begun before the end is still made.
	behind := create(t, s, recurring(t, pool, "club_4", 100, 30))
	asIfNew(t, pool, behind)
	_, err = pool.Exec(t.Context(), `DELETE FROM order_transitions; DELETE FROM orders; DELETE FROM processed_events`)
	require.NoError(t, err)
	behind = ended(t, s, behind.ID, period.Date{})
	require.Nil(t, behind.EndedAt)
	require.Equal(t, store.CreatedOrders{Orders: 4}, due(t, s, behind))
	require.NotNil(t, get(t, s, behind).EndedAt)
}

func TestCreateRecurrenceIsOnceForEver(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)

	var made atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.InTx(t.Context(), func(tx store.Tx) error {
				_, created, err := s.CreateRecurrence(context.WithoutCancel(t.Context()), tx, n)
				if created {
					made.Add(1)
				}
				return err
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, made.Load())
	require.Equal(t, 1, count(t, pool, "recurrences"))
	require.Len(t, orderRefs(t, pool), 4)

	first, _ := createOrFind(t, s, n)
	other := n
	other.Amount.Minor, other.Every = 1, 7
	repeat, created := createOrFind(t, s, other)
	require.False(t, created)
	require.Equal(t, first, repeat, "as it stands")
	gone := ended(t, s, first.ID, period.Date{})
	repeat, created = createOrFind(t, s, n)
	require.False(t, created)
	require.Equal(t, gone, repeat, "also after its end")

	other.Account = "other"
	_, created = createOrFind(t, s, other)
	require.True(t, created, "another account's names are its own")
}

func TestCreateRecurrenceRefuses(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apia := period.Date{Year: 2011, Month: 12, Day: 30}
	for want, spoil := range map[string]func(*store.NewRecurrence){
		"no account":       func(n *store.NewRecurrence) { n.Account = "" },
		"no reference":     func(n *store.NewRecurrence) { n.Ref = "" },
		"of at most 244":   func(n *store.NewRecurrence) { n.Ref = strings.Repeat("r", 245) },
		"amount -1":        func(n *store.NewRecurrence) { n.Amount.Minor = -1 },
		"currency":         func(n *store.NewRecurrence) { n.Amount.Currency = "euro" },
		"unknown interval": func(n *store.NewRecurrence) { n.Interval = "fortnight" },
		"every 0":          func(n *store.NewRecurrence) { n.Every = 0 },
		"Mars/Base":        func(n *store.NewRecurrence) { n.TimeZone = "Mars/Base" },
		`"Local"`:          func(n *store.NewRecurrence) { n.TimeZone = "Local" },
		`""`:               func(n *store.NewRecurrence) { n.TimeZone = "" },
		"is no day":        func(n *store.NewRecurrence) { n.StartsOn = period.Date{} },
		"before the first": func(n *store.NewRecurrence) { n.EndsOn = ago(n.StartsOn, 1) },
		"ends after -1":    func(n *store.NewRecurrence) { n.EndsAfter = -1 },
		"2011-12-30, before the first": func(n *store.NewRecurrence) { // a day that there was not
			n.StartsOn, n.Every, n.TimeZone, n.EndsOn = apia, 1, "Pacific/Apia", apia
		},
	} {
		n := recurring(t, pool, "club_1", 100, 30)
		spoil(&n)
		err := s.InTx(t.Context(), func(tx store.Tx) error {
			_, _, err := s.CreateRecurrence(t.Context(), tx, n)
			return err
		})
		require.ErrorContains(t, err, want, want)
	}
	require.Zero(t, count(t, pool, "recurrences"))
	longest := recurring(t, pool, strings.Repeat("r", store.MaxRecurrenceRef), 0, 1)
	create(t, s, longest)
	refs := orderRefs(t, pool)
	require.Len(t, refs, 1)
	require.True(t, order.IsReference(refs[0]), "its orders can be registered by hand too")
}

// What somebody else made under the name of a period is that period's order.
func TestRecurrenceMeetsOrdersThatAreThere(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club#1", 100, 30)
	name := func(days int) string { return "club#1:" + ago(n.StartsOn, -days).String() }

	mine := register(name(0), 700)
	mine.ID = store.RegisterID(name(0))
	apply(t, s, mine, captured("evt_1", "pi_1", name(30), 5000))
	require.Equal(t, []string{"unregistered"}, readOrder(t, pool, name(30)).Flags)

	r := create(t, s, n)
	require.Equal(t, 4, r.Created)
	require.Len(t, orderRefs(t, pool), 4)
	require.Equal(t, 1, count(t, pool, "orders WHERE external_ref = $1 AND total = 700 AND version = 1", name(0)), "the merchant's own stays")
	require.Equal(t, "paid", readOrder(t, pool, name(30)).State, "a stub is filled")
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil'"))

	again := register(name(60), 5000)
	again.ID = store.RegisterID(name(60))
	require.Equal(t, store.Duplicate, apply(t, s, again)[0].Outcome, "POST /v1/orders of that reference is a repeat")
}

func TestRecurrenceOfARuleThatChanged(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 0, 1)
	n.TimeZone, n.StartsOn, n.EndsOn = "Pacific/Apia", period.Date{Year: 2011, Month: 12, Day: 28}, period.Date{Year: 2012, Month: 1, Day: 1}
	r := create(t, s, n)
	require.Equal(t, []string{"club_1:2011-12-28", "club_1:2011-12-29", "club_1:2011-12-31", "club_1:2012-01-01"}, orderRefs(t, pool))

	// It was to make the 30th next, and then Samoa decided not to have that day.
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET next_period = '2011-12-30', next_start = '2011-12-30 10:00:00Z', ended_at = NULL, created_count = 2`)
	require.NoError(t, err)
	require.Equal(t, store.CreatedOrders{Known: 2}, due(t, s, r))
	got := get(t, s, r)
	require.NotNil(t, got.EndedAt)
	require.Equal(t, 4, got.Created)
}

func TestListRecurrences(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	var all []store.Recurrence
	for i := range 5 {
		all = append(all, create(t, s, recurring(t, pool, fmt.Sprintf("club_%d", i), -10, 30)))
	}
	other := recurring(t, pool, "club_0", -10, 30)
	other.Account = "other"
	create(t, s, other)
	all[1] = ended(t, s, all[1].ID, period.Date{})

	page, next, err := s.ListRecurrences(t.Context(), store.RecurrenceFilter{Account: account, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []store.Recurrence{all[4], all[3]}, page)
	page, next, err = s.ListRecurrences(t.Context(), store.RecurrenceFilter{Account: account, Limit: 2, Before: next})
	require.NoError(t, err)
	require.Equal(t, []store.Recurrence{all[2], all[1]}, page)
	page, next, err = s.ListRecurrences(t.Context(), store.RecurrenceFilter{Account: account, Limit: 2, Before: next})
	require.NoError(t, err)
	require.Equal(t, []store.Recurrence{all[0]}, page)
	require.Zero(t, next)

	yes, no := true, false
	page, _, err = s.ListRecurrences(t.Context(), store.RecurrenceFilter{Account: account, Ended: &yes})
	require.NoError(t, err)
	require.Equal(t, []store.Recurrence{all[1]}, page)
	page, _, err = s.ListRecurrences(t.Context(), store.RecurrenceFilter{Account: account, Ended: &no})
	require.NoError(t, err)
	require.Len(t, page, 4)
	page, _, err = s.ListRecurrences(t.Context(), store.RecurrenceFilter{Ref: "club_0"})
	require.NoError(t, err)
	require.Len(t, page, 2)
	_, err = s.GetRecurrence(t.Context(), "other", all[0].ID)
	require.ErrorIs(t, err, store.ErrNotFound, "an id alone opens nothing")
}
