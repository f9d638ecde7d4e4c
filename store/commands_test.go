package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// say enters a command about order ref in a transaction of its own, at the database's time.
func say(t *testing.T, s *store.Store, ref string, c order.Command, cond store.Condition, change ...func(*store.Event)) (res store.Result, err error) {
	t.Helper()
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		now, err := s.Clock(t.Context(), tx)
		if err != nil {
			return err
		}
		e := store.Event{Account: account, Event: order.Event{
			ID: uuid.NewString(), Type: "order.command", At: now, Reference: ref, Strength: order.StrengthPerson, Command: &c,
		}}
		for _, f := range change {
			f(&e)
		}
		res, err = s.Command(t.Context(), tx, e, cond)
		return err
	})
	return res, err
}

func says(t *testing.T, s *store.Store, ref string, c order.Command, change ...func(*store.Event)) store.Result {
	t.Helper()
	res, err := say(t, s, ref, c, store.Condition{}, change...)
	require.NoError(t, err)
	return res
}

// about makes a command one about a payment.
func about(payment string, facts ...order.Fact) func(*store.Event) {
	return func(e *store.Event) {
		e.Realm, e.Payment, e.Facts = "stripe:live", []string{payment}, facts
	}
}

func refusedAs(t *testing.T, err error, code store.RefusalCode) {
	t.Helper()
	var r *store.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, code, r.Code)
}

func eur(minor int64) *order.Amount { return &order.Amount{Minor: minor, Currency: "EUR"} }

func TestAmendChangesTheTotalUntilMoneyWasCaptured(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))

	res := says(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(6000)}})
	require.Equal(t, store.Applied, res.Outcome)
	require.Equal(t, 2, res.After)
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 6000))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)

	before := readOrder(t, pool, "ord_1").Version
	_, err := say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(7000)}}, store.Condition{})
	refusedAs(t, err, store.RefusedCaptured)
	require.Equal(t, before, readOrder(t, pool, "ord_1").Version, "nothing was written")
	require.Equal(t, 2, count(t, pool, "processed_events WHERE source_id = 'api'"), "not the event either")
	res = says(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(6000)}})
	require.Equal(t, store.NoChange, res.Outcome, "to what it is, it may be set")

	// All of it goes back: money was there once all the same.
	apply(t, s, refunded("evt_2", "pi_1", 6000))
	_, err = say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(7000)}}, store.Condition{})
	refusedAs(t, err, store.RefusedCaptured)
}

func TestAmendMergesDetails(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	e := register("ord_1", 5000)
	e.Command.Details = json.RawMessage(`{"items":[{"sku":"A"}],"metadata":{"a":1,"b":{"c":2},"big":12345678901234567890.10}}`)
	apply(t, s, e)
	id := readOrder(t, pool, "ord_1").ID

	patch := json.RawMessage(`{"metadata":{"a":null,"b":{"d":3}}}`)
	res := says(t, s, "ord_1", order.Command{Amend: &order.Amendment{Details: patch}})
	require.Equal(t, store.Applied, res.Outcome)
	require.Equal(t, 2, res.After, "no view shows it, but the version moves")
	o, err := s.GetOrder(t.Context(), account, id)
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[{"sku":"A"}],"metadata":{"b":{"c":2,"d":3},"big":12345678901234567890.10}}`, string(o.Details))
	require.Contains(t, string(o.Details), "12345678901234567890.10", "numbers stay as they were written")

	res = says(t, s, "ord_1", order.Command{Amend: &order.Amendment{Details: patch}})
	require.Equal(t, store.NoChange, res.Outcome)
	require.Equal(t, 2, res.After)
	for i, n := range []string{"1e3", "1e3", "1000", "1000.0", "10.0E2"} { // Postgres spells it out
		res = says(t, s, "ord_1", order.Command{Amend: &order.Amendment{Details: json.RawMessage(`{"metadata":{"n":` + n + `}}`)}})
		require.Equal(t, map[bool]store.Outcome{true: store.Applied, false: store.NoChange}[i == 0], res.Outcome, n)
	}
	_, err = say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Details: json.RawMessage(`[1]`)}}, store.Condition{})
	refusedAs(t, err, store.RefusedDetails)
}

func TestConditionIsJudgedUnderTheLock(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))

	_, err := say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(1)}}, store.Condition{Version: 2})
	refusedAs(t, err, store.RefusedVersion)

	// Sixteen amend version 1: one of them wins.
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		applied int
	)
	for i := range 16 {
		wg.Go(func() {
			_, err := say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(int64(6000 + i))}}, store.Condition{Version: 1})
			mu.Lock()
			defer mu.Unlock()
			var r *store.Refusal
			switch {
			case err == nil:
				applied++
			case !errors.As(err, &r) || r.Code != store.RefusedVersion || r.Version != 2:
				t.Errorf("unexpected: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, applied)
	require.Equal(t, 2, readOrder(t, pool, "ord_1").Version)
}

func TestCommandsAboutOrdersThatAreNot(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	_, err := say(t, s, "ord_0", order.Command{Cancel: true}, store.Condition{})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, 0, count(t, pool, "processed_events"))
	require.Equal(t, 0, count(t, pool, "orders"))

	apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000)) // a stub
	_, err = say(t, s, "ord_1", order.Command{Cancel: true}, store.Condition{})
	refusedAs(t, err, store.RefusedUnregistered)
	_, err = say(t, s, "ord_1", order.Command{Amend: &order.Amendment{Total: eur(1)}}, store.Condition{})
	refusedAs(t, err, store.RefusedUnregistered)
}

func TestCancelIsRefusedWhileMoneyIsKept(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 2000))
	_, err := say(t, s, "ord_1", order.Command{Cancel: true}, store.Condition{})
	refusedAs(t, err, store.RefusedMoneyKept)
	apply(t, s, refunded("evt_2", "pi_1", 2000))
	require.Equal(t, store.Applied, says(t, s, "ord_1", order.Command{Cancel: true}).Outcome)
	apply(t, s, captured("evt_3", "pi_2", "ord_1", 5000))
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "wait", o.Want)
	require.Contains(t, o.Flags, "paid_after_cancel")
}

func TestConfirmCountsUntilTheGatewaySpeaks(t *testing.T) {
	t.Parallel()
	paid := order.Fact{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}
	confirm := order.Command{Confirm: true}

	t.Run("ThenTheWebhookIsOneTransitionAndOneFulfilment", func(t *testing.T) {
		t.Parallel()
		for _, webhookFirst := range []bool{false, true} {
			s, pool := open(t)
			apply(t, s, register("ord_1", 5000))
			hook := captured("evt_1", "pi_1", "ord_1", 5000)
			if webhookFirst {
				apply(t, s, hook)
				require.Equal(t, store.NoChange, says(t, s, "ord_1", confirm, about("pi_1", paid)).Outcome)
			} else {
				require.Equal(t, store.Applied, says(t, s, "ord_1", confirm, about("pi_1", paid)).Outcome)
				require.Equal(t, store.NoChange, apply(t, s, hook)[0].Outcome)
			}
			o := readOrder(t, pool, "ord_1")
			require.Equal(t, "paid", o.State)
			require.EqualValues(t, 5000, o.Captured)
			require.Empty(t, o.Flags)
			require.Equal(t, 2, o.Version)
			require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil'"))
		}
	})

	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		apply(t, s, register("ord_1", 5000))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if i%2 == 0 {
					_, err := s.Apply(t.Context(), []store.Event{captured("evt_1", "pi_1", "ord_1", 5000)})
					if err != nil {
						t.Error(err)
					}
					return
				}
				if _, err := say(t, s, "ord_1", confirm, store.Condition{}, about("pi_1", paid)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		o := readOrder(t, pool, "ord_1")
		require.Equal(t, "paid", o.State)
		require.EqualValues(t, 5000, o.Captured)
		require.Equal(t, 2, o.Version)
	})

	t.Run("TheGatewayKnowsBetter", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		apply(t, s, register("ord_1", 5000))
		says(t, s, "ord_1", confirm, about("pi_1", paid))
		pending := captured("evt_1", "pi_1", "ord_1", 0)
		pending.Facts = []order.Fact{{Kind: order.KindPhase, Status: order.StatusProcessing}}
		apply(t, s, pending)
		o := readOrder(t, pool, "ord_1")
		require.Equal(t, "pending", o.State)
		require.Equal(t, "wait", o.Want, "it may still come: nothing is taken back")
		require.Empty(t, o.Flags, "not an unexpected move")

		failed := pending
		failed.ID, failed.Facts = "evt_2", []order.Fact{{Kind: order.KindPhase, Status: order.StatusFailed}}
		apply(t, s, failed)
		o = readOrder(t, pool, "ord_1")
		require.Equal(t, "failed", o.State)
		require.Equal(t, "stop", o.Want, "whatever was delivered on the checkout's word comes back")
		require.Equal(t, store.NoChange, says(t, s, "ord_1", confirm, about("pi_1", paid)).Outcome)
	})
}

func TestLinkCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	link := order.Command{Link: true}

	require.Equal(t, store.Applied, says(t, s, "ord_2", link, about("pi_1")).Outcome)
	require.Equal(t, "pending", readOrder(t, pool, "ord_1").State)
	require.Equal(t, "paid", readOrder(t, pool, "ord_2").State)
	apply(t, s, refunded("evt_2", "pi_1", 1000))
	require.EqualValues(t, 4000, readOrder(t, pool, "ord_2").Kept, "later facts follow")
	named := captured("evt_3", "pi_1", "ord_1", 5000)
	apply(t, s, named)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_1").Kept, "the gateway's own word does not win over the person's")
	require.Empty(t, readOrder(t, pool, "ord_2").Flags)

	// The last word of a person holds.
	says(t, s, "ord_1", link, about("pi_1"))
	require.EqualValues(t, 4000, readOrder(t, pool, "ord_1").Kept)
	says(t, s, "ord_2", link, about("pi_1"))
	require.EqualValues(t, 4000, readOrder(t, pool, "ord_2").Kept)
	says(t, s, "", link, about("pi_1"))
	require.EqualValues(t, 4000, readOrder(t, pool, "ord_1").Kept, "taken back: as if nobody had linked it")
	require.EqualValues(t, 0, readOrder(t, pool, "ord_2").Kept)
	require.Empty(t, readOrder(t, pool, "ord_1").Flags)

	_, err := say(t, s, "ord_9", link, store.Condition{}, about("pi_1"))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, 0, count(t, pool, "orders WHERE external_ref = 'ord_9'"))
}

// A link is taken back from the order that has the payment, or not at all.
func TestLinkIsTakenBackFromItsOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
	apply(t, s, captured("evt_1", "pi_1", "", 5000))
	link := order.Command{Link: true}
	takeBack := func(from string) error {
		_, err := say(t, s, "", link, store.Condition{Holds: readOrder(t, pool, from).ID}, about("pi_1"))
		return err
	}
	refusedAs(t, takeBack("ord_1"), store.RefusedElsewhere)
	says(t, s, "ord_2", link, about("pi_1"))
	refusedAs(t, takeBack("ord_1"), store.RefusedElsewhere)
	require.Equal(t, 4, count(t, pool, "processed_events"), "nothing of what was refused")
	require.Equal(t, "paid", readOrder(t, pool, "ord_2").State)
	require.NoError(t, takeBack("ord_2"))
	require.EqualValues(t, 0, readOrder(t, pool, "ord_2").Kept)
	refusedAs(t, takeBack("ord_2"), store.RefusedElsewhere)
}

func TestLinkOfAPaymentThatNamedNoOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	apply(t, s, captured("evt_1", "pi_1", "", 5000))
	says(t, s, "ord_1", order.Command{Link: true}, about("pi_1"))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	res := says(t, s, "", order.Command{Link: true}, about("pi_1"))
	require.Equal(t, store.NoChange, res.Outcome)
	require.Equal(t, store.ReasonNoOrder, res.Reason)
	o := readOrder(t, pool, "ord_1")
	require.EqualValues(t, 0, o.Kept)
	require.Equal(t, 1, count(t, pool, "payments WHERE order_id IS NULL"))
	require.NotContains(t, o.Flags, "unexpected_move")
}

func TestDismissedFlagsComeBackWhenTheyAriseAnew(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 6000))
	test := captured("evt_2", "pi_1", "ord_1", 1)
	test.Facts[0].Misfit = order.MisfitMode
	apply(t, s, test)
	require.ElementsMatch(t, []string{"overpaid", "mode_mismatch"}, readOrder(t, pool, "ord_1").Flags)

	both := order.FlagOverpaid | order.FlagModeMismatch
	require.Equal(t, store.Applied, says(t, s, "ord_1", order.Command{Dismiss: both}).Outcome)
	require.Empty(t, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, "go", readOrder(t, pool, "ord_1").Want)

	test.ID = "evt_3"
	apply(t, s, test)
	require.Equal(t, []string{"mode_mismatch"}, readOrder(t, pool, "ord_1").Flags, "another such event")
	apply(t, s, captured("evt_4", "pi_1", "ord_1", 7000))
	require.ElementsMatch(t, []string{"overpaid", "mode_mismatch"}, readOrder(t, pool, "ord_1").Flags, "the sum is another")

	says(t, s, "ord_1", order.Command{Dismiss: both})
	says(t, s, "ord_1", order.Command{Restore: order.FlagOverpaid})
	require.Equal(t, []string{"overpaid"}, readOrder(t, pool, "ord_1").Flags)
	apply(t, s, refunded("evt_5", "pi_1", 2000))
	require.Empty(t, readOrder(t, pool, "ord_1").Flags)
	require.Equal(t, store.NoChange, says(t, s, "ord_1", order.Command{Dismiss: order.FlagIDReused}).Outcome, "what is not there is not dismissed")
	_, err := say(t, s, "ord_1", order.Command{Dismiss: order.FlagUnregistered}, store.Condition{})
	require.ErrorIs(t, err, store.ErrUnstorable)
}

func TestExpiredOrdersAreFlaggedOnce(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for ref, at := range map[string]*time.Time{"late": &past, "paid": &past, "canceled": &past, "early": &future, "never": nil} {
		e := register(ref, 5000)
		e.Command.ExpiresAt = at
		apply(t, s, e)
	}
	apply(t, s, captured("evt_1", "pi_1", "paid", 5000))
	says(t, s, "canceled", order.Command{Cancel: true})

	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		wg.Go(func() {
			n, err := s.ExpireOrders(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	require.Equal(t, 1, total)
	require.Equal(t, []string{"expired_unpaid"}, readOrder(t, pool, "late").Flags)
	require.Equal(t, 2, readOrder(t, pool, "late").Version)
	require.Equal(t, "pending", readOrder(t, pool, "late").State, "it moves nothing")
	for _, ref := range []string{"paid", "canceled", "early", "never"} {
		require.Empty(t, readOrder(t, pool, ref).Flags, ref)
	}

	// More time takes the flag away, and its end brings it back.
	says(t, s, "late", order.Command{Amend: &order.Amendment{Expiry: &order.Expiry{At: &future}}})
	require.Empty(t, readOrder(t, pool, "late").Flags)
	says(t, s, "late", order.Command{Amend: &order.Amendment{Expiry: &order.Expiry{At: &past}}})
	n, err := s.ExpireOrders(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	apply(t, s, captured("evt_2", "pi_2", "late", 5000))
	o := readOrder(t, pool, "late")
	require.Equal(t, "paid", o.State)
	require.Equal(t, "go", o.Want, "a flag holds nothing back")
	require.Equal(t, []string{"expired_unpaid"}, o.Flags)
}

func TestDismissEvent(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	broken := captured("evt_1", "pi_1", "ord_1", 5000)
	broken.Facts, broken.Payment, broken.Broken = nil, nil, "no amount"
	apply(t, s, broken)
	key := store.EventKey{Account: account, Source: "stripe", ID: "evt_1"}
	review := func() int {
		h, err := s.Health(t.Context(), time.Hour)
		require.NoError(t, err)
		return h.Review[store.ReviewKey{Account: account, Outcome: store.Quarantined}]
	}
	dismiss := func(yes bool) error {
		return s.InTx(t.Context(), func(tx store.Tx) error { return s.DismissEvent(t.Context(), tx, key, yes) })
	}
	require.Equal(t, 1, review())
	require.NoError(t, dismiss(true))
	require.Equal(t, 0, review())
	require.Equal(t, 1, count(t, pool, "processed_events WHERE outcome = 'quarantined'"), "what happened stays")
	require.NoError(t, dismiss(false))
	require.Equal(t, 1, review())
	key.ID = "evt_9"
	require.ErrorIs(t, dismiss(true), store.ErrNotFound)
}

func TestPaymentsNamed(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	e := captured("evt_1", "pi_1", "ord_1", 5000)
	apply(t, s, e, captured("evt_2", "ch_1", "", 100))
	e.ID, e.Payment = "evt_3", []string{"pi_1", "ch_1"}
	apply(t, s, e) // one payment after all
	other := captured("evt_4", "pi_1", "", 100)
	other.Realm, other.Source = "adyen:live", "adyen"
	apply(t, s, other)

	find := func(id string, realms ...string) (found []store.PaymentID) {
		require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) (err error) {
			found, err = s.PaymentsNamed(t.Context(), tx, account, realms, id)
			return err
		}))
		return found
	}
	id := readOrder(t, pool, "ord_1").ID
	require.Equal(t, []store.PaymentID{{"stripe:live", "ch_1", &id}}, find("ch_1", "stripe:live", "adyen:live"))
	require.Equal(t, []store.PaymentID{{"adyen:live", "pi_1", nil}, {"stripe:live", "pi_1", &id}}, find("pi_1", "stripe:live", "adyen:live"))
	require.Empty(t, find("pi_1", "offline"))
	require.Empty(t, find("pi_9", "stripe:live"))
}

// A command that is refused leaves what the caller wrote before.
func TestRefusalLeavesTheCallersRows(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	_, err := pool.Exec(t.Context(), `CREATE TABLE mine (n int)`)
	require.NoError(t, err)
	require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO mine VALUES (1)`); err != nil {
			return err
		}
		e := store.Event{Account: account, Event: order.Event{ID: "c", Type: "order.canceled", Reference: "ord_0", Command: &order.Command{Cancel: true}}}
		_, err := s.Command(t.Context(), tx, e, store.Condition{})
		require.ErrorIs(t, err, store.ErrNotFound)
		return nil
	}))
	require.Equal(t, 1, count(t, pool, "mine"))
	require.Equal(t, 0, count(t, pool, "processed_events"))
}

// TestLinkTakesWhatWasDelivered: an order that was fulfilled for a payment which a person then gives to another one is revoked; money
// that comes after all releases it.
func TestLinkTakesWhatWasDelivered(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	work(t, s, pool)
	says(t, s, "ord_2", order.Command{Link: true}, about("pi_1"))
	work(t, s, pool)
	require.Equal(t, []string{"revoked", "fulfilled"}, []string{readOrder(t, pool, "ord_1").Told, readOrder(t, pool, "ord_2").Told})
	apply(t, s, captured("evt_2", "pi_2", "ord_1", 5000))
	work(t, s, pool)
	require.Equal(t, "fulfilled", readOrder(t, pool, "ord_1").Told)
	require.Equal(t, []string{"fulfil", "revoke", "release"}, effectsOf(t, pool, "ord_1"))
}

// TestWhatACheckoutOnlyHopedFor: the goods went out on the checkout's word, and the gateway says that the payment is still on its way.
func TestWhatACheckoutOnlyHopedFor(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	says(t, s, "ord_1", order.Command{Confirm: true}, func(e *store.Event) {
		about("pi_1", order.Fact{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"})(e)
		e.Strength = order.StrengthPayment
	})
	work(t, s, pool)
	e := captured("evt_1", "pi_1", "ord_1", 5000)
	e.Facts = []order.Fact{{Kind: order.KindPhase, Status: order.StatusProcessing, Seq: 1}}
	apply(t, s, e)
	work(t, s, pool)
	require.Equal(t, "revoked", readOrder(t, pool, "ord_1").Told)
	apply(t, s, captured("evt_2", "pi_1", "ord_1", 5000))
	work(t, s, pool)
	require.Equal(t, "fulfilled", readOrder(t, pool, "ord_1").Told)
}

func effectsOf(t *testing.T, pool *pgxpool.Pool, ref string) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT t.effect FROM order_transitions t JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		WHERE o.external_ref = $1 AND t.effect_state = 'done' ORDER BY t.version`, ref)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}
