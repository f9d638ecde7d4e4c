package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// prepared is the call of a movement at a gateway that has none.
func prepared(_ store.Origin, m order.Movement) (store.Prepared, error) {
	return store.Prepared{Source: "stripe", Gateway: "stripe", Request: store.Request{
		Method: "POST", Path: "/v1/refunds", Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte(m.ID + string(m.Kind)),
	}}, nil
}

// move asks for a movement of an order's money.
func move(t *testing.T, s *store.Store, ref string, kind order.MovementKind, change ...func(*store.NewTransaction)) (got store.EnteredTransaction, err error) {
	t.Helper()
	n := store.NewTransaction{Account: account, Kind: kind, Realms: []string{"stripe:live"}, Prepare: prepared}
	require.NoError(t, s.Pool().QueryRow(t.Context(), `SELECT id FROM orders WHERE account_id = $1 AND external_ref = $2`, account, ref).Scan(&n.Order))
	for _, f := range change {
		f(&n)
	}
	err = s.InTx(t.Context(), func(tx store.Tx) (err error) {
		got, err = s.CreateTransaction(t.Context(), tx, n)
		return err
	})
	return got, err
}

func moves(t *testing.T, s *store.Store, ref string, kind order.MovementKind, change ...func(*store.NewTransaction)) store.Transaction {
	t.Helper()
	got, err := move(t, s, ref, kind, change...)
	require.NoError(t, err)
	require.True(t, got.New)
	return got.Transaction
}

func amount(minor int64) func(*store.NewTransaction) {
	return func(n *store.NewTransaction) { n.Amount = minor }
}

// known is a name, under which a second movement of one amount in one minute is meant.
func known(ref string) func(*store.NewTransaction) {
	return func(n *store.NewTransaction) { n.Ref = ref }
}

func notMoved(t *testing.T, err error, code store.MoveRefusalCode) store.MoveRefusal {
	t.Helper()
	var no *store.MoveRefusal
	require.ErrorAs(t, err, &no)
	require.Equal(t, code, no.Code)
	return *no
}

// authorized says that a payment of an order may be captured.
func authorized(id, p, ref string, minor int64) store.Event {
	e := captured(id, p, ref, minor)
	e.Facts = []order.Fact{
		{Kind: order.KindPhase, Status: order.StatusAuthorized, Seq: 1}, {Kind: order.KindAuthorized, Amount: minor, Currency: "EUR"},
	}
	return e
}

func claims(t *testing.T, s *store.Store, tr store.Transaction) store.MoveClaim {
	t.Helper()
	c, err := s.ClaimMove(t.Context(), account, tr.ID, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, c)
	return *c
}

func unclaimed(t *testing.T, s *store.Store, tr store.Transaction) {
	t.Helper()
	c, err := s.ClaimMove(t.Context(), account, tr.ID, time.Minute)
	require.NoError(t, err)
	require.Nil(t, c)
}

func settles(t *testing.T, s *store.Store, c store.MoveClaim, a store.MoveAnswer) store.MoveSettled {
	t.Helper()
	got, err := s.SettleMove(t.Context(), c, a)
	require.NoError(t, err)
	return got
}

// done is a refund that the gateway says was done.
func done(c store.MoveClaim) store.MoveAnswer {
	re := "re_" + c.ID.String()
	e := refunded("call/"+c.ID.String(), c.Movement.Payment[0], c.Amount.Minor)
	e.Facts[0].Ref = re
	return store.MoveAnswer{Status: store.TransactionSucceeded, GatewayRef: re, Events: []store.Event{e}}
}

func statusOf(t *testing.T, s *store.Store, tr store.Transaction) store.Transaction {
	t.Helper()
	got, err := s.GetTransaction(t.Context(), account, tr.ID)
	require.NoError(t, err)
	return got
}

func jobs(t *testing.T, pool *pgxpool.Pool, tr store.Transaction) int {
	t.Helper()
	return count(t, pool, "river_job WHERE kind = 'move' AND args->>'transaction_id' = $1", tr.ID.String())
}

func TestT101_RowKeyAndJobCommitTogetherBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	tr := moves(t, s, "ord_1", order.MovementRefund, amount(2000))
	require.Equal(t, store.TransactionPending, tr.Status)
	require.Equal(t, store.TransactionKey(tr.ID, 1), tr.Key)
	require.Len(t, tr.Key, 36)
	require.Equal(t, tr, statusOf(t, s, tr), "what is returned is what is stored")
	require.Equal(t, 1, jobs(t, pool, tr))

	// The same in any process, and another one for every transaction and epoch.
	require.Equal(t, tr.Key, store.TransactionKey(uuid.MustParse(tr.ID.String()), 1))
	require.NotEqual(t, tr.Key, store.TransactionKey(tr.ID, 2))

	// Each claim has the bytes and the key that were stored, also after the one who had them is gone.
	c := claims(t, s, tr)
	require.Equal(t, tr.ID.String()+"refund", string(c.Body))
	require.Equal(t, map[string]string{"Content-Type": "text/plain"}, c.Header)
	require.Equal(t, tr.Key, c.Key)
	require.Equal(t, store.TransactionSent, c.Status)
	unclaimed(t, s, tr)
	_, err := pool.Exec(t.Context(), `UPDATE transactions SET next_at = now() - interval '1 s', claimed_until = now() - interval '1 s'`)
	require.NoError(t, err)
	again := claims(t, s, tr)
	require.True(t, again.Expired)
	require.Equal(t, 2, again.Attempts)
	require.Equal(t, []any{c.Body, c.Key, c.Path, c.Method, c.Movement}, []any{again.Body, again.Key, again.Path, again.Method, again.Movement})

	// A transaction that is rolled back leaves neither.
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		_, err := s.CreateTransaction(t.Context(), tx, store.NewTransaction{
			Account: account, Order: tr.Order, Kind: order.MovementRefund, Realms: []string{"stripe:live"}, Amount: 100, Prepare: prepared,
		})
		require.NoError(t, err)
		return errors.New("no")
	})
	require.Error(t, err)
	require.Equal(t, 1, count(t, pool, "transactions"))
	require.Equal(t, 1, count(t, pool, "river_job WHERE kind = 'move'"))
}

func TestMovementsNeverExceedWhatThereIs(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	no := notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, amount(5001))), store.MoveExceeds)
	require.Equal(t, order.Amount{Minor: 5000, Currency: "EUR"}, no.Left)
	require.Equal(t, order.NothingAuthorized, notMoved(t, second(move(t, s, "ord_1", order.MovementCapture)), store.MoveNothing).Why)
	require.Equal(t, order.AlreadyCaptured, notMoved(t, second(move(t, s, "ord_1", order.MovementVoid)), store.MoveNothing).Why)
	notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, func(n *store.NewTransaction) { n.Payment = "pi_other" })), store.MoveNoPayment)
	notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, func(n *store.NewTransaction) { n.Realms = []string{"adyen:live"} })), store.MoveNotCallable)
	require.ErrorIs(t, second(move(t, s, "ord_1", order.MovementRefund, func(n *store.NewTransaction) { n.Order = uuid.New() })), store.ErrNotFound)
	require.ErrorIs(t, second(move(t, s, "ord_1", order.MovementRefund, func(n *store.NewTransaction) { n.Account = "other" })), store.ErrNotFound)
	require.Equal(t, order.NothingCaptured, notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, func(n *store.NewTransaction) { n.Currency = "USD" })), store.MoveNothing).Why)

	first := moves(t, s, "ord_1", order.MovementRefund, amount(2000))
	no = notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, amount(3001))), store.MoveExceeds)
	require.EqualValues(t, 3000, no.Left.Minor)
	require.EqualValues(t, 2000, no.Under)
	rest := moves(t, s, "ord_1", order.MovementRefund)
	require.EqualValues(t, 3000, rest.Amount.Minor, "all there is")
	no = notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, amount(1))), store.MoveNothing)
	require.Empty(t, no.Why)
	require.EqualValues(t, 5000, no.Under)

	// One that failed has moved nothing, and one that is done is in the ledger: it counts once.
	settles(t, s, claims(t, s, first), store.MoveAnswer{Status: store.TransactionFailed, Code: "no"})
	settles(t, s, claims(t, s, rest), done(claimOf(rest)))
	last := moves(t, s, "ord_1", order.MovementRefund)
	require.EqualValues(t, 2000, last.Amount.Minor)
	settles(t, s, claims(t, s, last), done(claimOf(last)))
	require.Equal(t, order.NothingCaptured, notMoved(t, second(move(t, s, "ord_1", order.MovementRefund)), store.MoveNothing).Why)
}

func second[T any](_ T, err error) error { return err }

func claimOf(tr store.Transaction) store.MoveClaim { return store.MoveClaim{Transaction: tr} }

func TestMovementsOfAuthorizations(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), authorized("evt_1", "pi_1", "ord_1", 5000))
	capture := moves(t, s, "ord_1", order.MovementCapture, amount(3000))
	require.Empty(t, notMoved(t, second(move(t, s, "ord_1", order.MovementVoid)), store.MoveNothing).Why, "what is being captured is not let go")
	settles(t, s, claims(t, s, capture), store.MoveAnswer{Status: store.TransactionFailed})
	void := moves(t, s, "ord_1", order.MovementVoid)
	require.EqualValues(t, 5000, void.Amount.Minor)
	require.Empty(t, notMoved(t, second(move(t, s, "ord_1", order.MovementCapture)), store.MoveNothing).Why, "nor the other way round")
	e := authorized("evt_2", "pi_1", "", 5000)
	e.Strength, e.Own, e.Facts = 0, nil, []order.Fact{{Kind: order.KindPhase, Status: order.StatusCanceled, Seq: 2}}
	settles(t, s, claims(t, s, void), store.MoveAnswer{Status: store.TransactionSucceeded, Events: []store.Event{e}})
	require.Equal(t, "canceled", readOrder(t, pool, "ord_1").State)
	require.Equal(t, order.PaymentOver, notMoved(t, second(move(t, s, "ord_1", order.MovementCapture)), store.MoveNothing).Why)

	// Of several payments one must be named, unless one alone can be moved.
	apply(t, s, register("ord_2", 5000), captured("evt_3", "pi_2", "ord_2", 2000), captured("evt_4", "pi_3", "ord_2", 3000))
	require.ElementsMatch(t, []string{"pi_2", "pi_3"}, notMoved(t, second(move(t, s, "ord_2", order.MovementRefund)), store.MovePaymentAmbiguous).Names)
	tr := moves(t, s, "ord_2", order.MovementRefund, func(n *store.NewTransaction) { n.Payment = "pi_3" })
	require.EqualValues(t, 3000, tr.Amount.Minor)
	require.EqualValues(t, 2000, moves(t, s, "ord_2", order.MovementRefund).Amount.Minor)
}

// TestConcurrentRefundsNeverExceedTheCapture: partial refunds from everywhere at once, some of which fail and some of which a webhook
// announces first.
func TestConcurrentRefundsNeverExceedTheCapture(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	var wg sync.WaitGroup
	var entered atomic.Int64
	for g := range 16 {
		wg.Go(func() {
			for i := range 6 {
				got, err := move(t, s, "ord_1", order.MovementRefund, amount(700), known(fmt.Sprintf("%d-%d", g, i)))
				var no *store.MoveRefusal
				if errors.As(err, &no) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				entered.Add(1)
				for range 200 { // its turn comes when the one before is settled
					c, err := s.ClaimMove(t.Context(), account, got.ID, time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					if c == nil {
						continue
					}
					a := done(*c)
					switch i % 3 {
					case 0:
						a = store.MoveAnswer{Status: store.TransactionFailed}
					case 1: // the webhook is here before the answer
						hook := a.Events[0]
						hook.ID = "evt_hook_" + c.ID.String()
						if _, err := s.Apply(t.Context(), []store.Event{hook}); err != nil {
							t.Error(err)
							return
						}
					}
					if _, err := s.SettleMove(t.Context(), *c, a); err != nil {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	require.Greater(t, entered.Load(), int64(7), "failed ones made room")
	o := readOrder(t, pool, "ord_1")
	require.NotContains(t, o.Flags, "over_refunded")
	require.GreaterOrEqual(t, o.Kept, int64(0))
	require.Zero(t, count(t, pool, `(SELECT 1 FROM transactions WHERE status IN ('pending', 'sent', 'uncertain', 'succeeded') GROUP BY order_id HAVING sum(amount) > 5000) x`))
	require.Zero(t, s.Retries().Deadlock)
}

func TestOneCallOfAPaymentAtATime(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	first := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("a"))
	next := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("b"))
	last := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("c"))
	require.Nil(t, next.NextAt)
	require.Zero(t, jobs(t, pool, next), "its turn has not come")
	unclaimed(t, s, next)
	c := claims(t, s, first)
	unclaimed(t, s, next)
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionUncertain, Stop: true, Code: "outcome_unknown"})
	unclaimed(t, s, next)
	require.Nil(t, statusOf(t, s, first).NextAt)

	require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) error {
		_, err := s.ResolveTransaction(t.Context(), tx, account, first.ID, store.MoveResolution{Status: store.TransactionFailed, Code: "person", Detail: "looked"})
		return err
	}))
	require.Equal(t, 1, jobs(t, pool, next))
	require.Zero(t, jobs(t, pool, last))
	c = claims(t, s, next)
	got := settles(t, s, c, done(c))
	require.True(t, got.Next)
	require.Equal(t, 1, jobs(t, pool, last))
	c = claims(t, s, last)
	require.False(t, settles(t, s, c, done(c)).Next)
	require.EqualValues(t, 4800, readOrder(t, pool, "ord_1").Kept)

	// The index holds it, whoever claims.
	_, err := pool.Exec(t.Context(), `UPDATE transactions SET status = 'sent', settled_at = NULL, next_at = now() WHERE status <> 'failed'`)
	require.ErrorContains(t, err, "transactions_one_at_a_time")
}

func TestMoveAnswers(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	tr := moves(t, s, "ord_1", order.MovementRefund)
	c := claims(t, s, tr)
	// No call was made: the attempt does not count.
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionSent, Free: true})
	c = claims(t, s, tr)
	require.Equal(t, 1, c.Attempts)
	sent := *c.SentAt
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionSent, Code: "unanswered", Wait: time.Hour})
	got := statusOf(t, s, tr)
	require.WithinDuration(t, time.Now().Add(time.Hour), *got.NextAt, time.Minute)
	require.Equal(t, sent, *got.SentAt, "the first time counts")
	unclaimed(t, s, tr)
	due := func() {
		_, err := pool.Exec(t.Context(), `UPDATE transactions SET next_at = now() - interval '1 s'`)
		require.NoError(t, err)
	}
	due()
	c = claims(t, s, tr)
	require.Equal(t, 2, c.Attempts)
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionUncertain, Code: "outcome_unknown"})
	c = claims(t, s, tr)
	require.Equal(t, store.TransactionUncertain, c.Status)
	require.Equal(t, 1, c.Lookups)
	require.Equal(t, 2, c.Attempts)

	// Proven not done: a new epoch, a new key, the same bytes.
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionPending, Code: "not_done"})
	got = statusOf(t, s, tr)
	require.Equal(t, store.TransactionPending, got.Status)
	require.Equal(t, []any{2, store.TransactionKey(tr.ID, 2), 0}, []any{got.Epoch, got.Key, got.Attempts})
	require.Nil(t, got.SentAt)
	again := claims(t, s, tr)
	require.Equal(t, c.Body, again.Body)
	require.NotEqual(t, c.Key, again.Key)

	// A claim that lapsed and was taken by another settles nothing, but what the gateway said is true all the same.
	_, err := pool.Exec(t.Context(), `UPDATE transactions SET next_at = now() - interval '1 s', claimed_until = now() - interval '1 s'`)
	require.NoError(t, err)
	other := claims(t, s, tr)
	stale := settles(t, s, again, done(again))
	require.True(t, stale.Stale)
	require.Equal(t, store.TransactionSent, statusOf(t, s, tr).Status)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_1").Kept)
	settles(t, s, other, done(other))
	require.Equal(t, store.TransactionSucceeded, statusOf(t, s, tr).Status)
	require.Equal(t, "re_"+tr.ID.String(), statusOf(t, s, tr).GatewayRef)
	require.EqualValues(t, 0, readOrder(t, pool, "ord_1").Kept)
	require.NotContains(t, readOrder(t, pool, "ord_1").Flags, "over_refunded", "the same refund once")
	settles(t, s, other, store.MoveAnswer{Status: store.TransactionFailed})
	require.Equal(t, store.TransactionSucceeded, statusOf(t, s, tr).Status, "what is settled stays so")
}

// TestRefundAndItsWebhookAreOne: whichever of the answer and the webhook comes first, and when the answer never comes.
func TestRefundAndItsWebhookAreOne(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"AnswerFirst": "answer", "WebhookFirst": "webhook"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
			tr := moves(t, s, "ord_1", order.MovementRefund, amount(2000))
			c := claims(t, s, tr)
			answer := done(c)
			hook := answer.Events[0]
			hook.ID = "evt_hook"
			if first == "webhook" {
				apply(t, s, hook)
				require.EqualValues(t, 3000, readOrder(t, pool, "ord_1").Kept)
				// Until it is known that the two are one, both count against what can still move: less is refunded, never more.
				notMoved(t, second(move(t, s, "ord_1", order.MovementRefund, amount(3000))), store.MoveExceeds)
			}
			settles(t, s, c, answer)
			apply(t, s, hook)
			o := readOrder(t, pool, "ord_1")
			require.EqualValues(t, 3000, o.Kept)
			require.EqualValues(t, 3000, moves(t, s, "ord_1", order.MovementRefund).Amount.Minor)
		})
	}
}

func TestMovesAreHeardOf(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	uncertain := func(ref string) store.Transaction {
		tr := moves(t, s, "ord_1", order.MovementRefund, amount(100), known(ref))
		settles(t, s, claims(t, s, tr), store.MoveAnswer{Status: store.TransactionUncertain, Stop: true})
		return tr
	}
	hook := func(id string, tr store.Transaction, status order.Status) store.Event {
		e := refunded(id, "pi_1", 100)
		e.Reference, e.Strength = tr.ID.String(), order.StrengthModification
		e.Facts[0].Status = status
		return e
	}
	tr := uncertain("a")
	n, err := s.HearOfMoves(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	apply(t, s, hook("evt_2", tr, order.StatusOK))
	n, err = s.HearOfMoves(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	got := statusOf(t, s, tr)
	require.Equal(t, []any{store.TransactionSucceeded, "re_evt_2", "webhook"}, []any{got.Status, got.GatewayRef, got.Code})

	tr = uncertain("b")
	apply(t, s, hook("evt_3", tr, order.StatusDenied))
	n, err = s.HearOfMoves(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, store.TransactionFailed, statusOf(t, s, tr).Status)
	require.EqualValues(t, 4900, readOrder(t, pool, "ord_1").Kept)
}

func TestResolveTransaction(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	tr := moves(t, s, "ord_1", order.MovementRefund)
	resolve := func(r store.MoveResolution) (got store.Transaction, err error) {
		err = s.InTx(t.Context(), func(tx store.Tx) error {
			got, err = s.ResolveTransaction(t.Context(), tx, account, tr.ID, r)
			return err
		})
		return got, err
	}
	_, err := resolve(store.MoveResolution{Status: store.TransactionSucceeded})
	refusedAs(t, err, store.RefusedNotUncertain)
	c := claims(t, s, tr)
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionUncertain})
	looking := claims(t, s, tr)
	_, err = resolve(store.MoveResolution{Status: store.TransactionSucceeded})
	refusedAs(t, err, store.RefusedNotUncertain)
	settles(t, s, looking, store.MoveAnswer{Status: store.TransactionUncertain, Stop: true})
	_, err = resolve(store.MoveResolution{Status: store.TransactionSent})
	require.Error(t, err)

	got, err := resolve(store.MoveResolution{Status: store.TransactionPending, Code: "person", Detail: "the gateway's support says so"})
	require.NoError(t, err)
	require.Equal(t, []any{store.TransactionPending, 2, store.TransactionKey(tr.ID, 2), "person"}, []any{got.Status, got.Epoch, got.Key, got.Code})
	again := claims(t, s, tr)
	require.Equal(t, got.Key, again.Key)
	require.True(t, settles(t, s, looking, store.MoveAnswer{Status: store.TransactionFailed}).Stale)
}

// TestMovesThatNobodyCameFor: jobs that were lost, and a turn that was.
func TestMovesThatNobodyCameFor(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	first := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("a"))
	waiting := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("b"))
	renew := func() map[string]int {
		_, err := pool.Exec(t.Context(), `DELETE FROM river_job`)
		require.NoError(t, err)
		got, err := s.RenewMoves(t.Context(), 10, 0)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, map[string]int{account: 1}, renew())
	require.Equal(t, 1, jobs(t, pool, first))
	c := claims(t, s, first)
	require.Empty(t, renew(), "it is being called")
	settles(t, s, c, store.MoveAnswer{Status: store.TransactionFailed})
	_, err := pool.Exec(t.Context(), `UPDATE transactions SET next_at = NULL WHERE id = $1`, waiting.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]int{account: 1}, renew(), "its turn was forgotten")
	claims(t, s, waiting)

	piles, err := s.MovePiles(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, piles["stripe"][store.TransactionSent].Count)
}

func TestTransactionRefsAreUniqueForEver(t *testing.T) {
	t.Parallel()
	s, _, set := openAt(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	tr := moves(t, s, "ord_1", order.MovementRefund, amount(100), known("a"))
	got, err := move(t, s, "ord_1", order.MovementRefund, amount(100), known("a"))
	require.NoError(t, err)
	require.False(t, got.New)
	require.False(t, got.Differs)
	require.Equal(t, tr.ID, got.ID)
	got, err = move(t, s, "ord_1", order.MovementRefund, amount(200), known("a"))
	require.NoError(t, err)
	require.True(t, got.Differs)
	settles(t, s, claims(t, s, tr), store.MoveAnswer{Status: store.TransactionFailed})
	got, err = move(t, s, "ord_1", order.MovementRefund, amount(100), known("a"))
	require.NoError(t, err)
	require.False(t, got.New, "also of what failed")

	// Without one, the same money moves once in a minute; two payments are two.
	apply(t, s, register("ord_2", 200), captured("evt_2", "pi_2", "ord_2", 100), captured("evt_3", "pi_3", "ord_2", 100))
	pay := func(id string) func(*store.NewTransaction) {
		return func(n *store.NewTransaction) { n.Payment, n.Amount = id, 50 }
	}
	twin := moves(t, s, "ord_2", order.MovementRefund, pay("pi_2"))
	moves(t, s, "ord_2", order.MovementRefund, pay("pi_3"))
	_, err = move(t, s, "ord_2", order.MovementRefund, pay("pi_2"))
	var dup *store.DuplicateError
	require.ErrorAs(t, err, &dup)
	require.Equal(t, twin.ID, dup.ID)
	moves(t, s, "ord_2", order.MovementRefund, pay("pi_2"), known("meant"))
	settles(t, s, claims(t, s, twin), store.MoveAnswer{Status: store.TransactionFailed})
	set(midMinute.Add(time.Minute))
	moves(t, s, "ord_2", order.MovementRefund, pay("pi_2"))
}

func TestListTransactions(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	var all []uuid.UUID
	for i := range 5 {
		all = append(all, moves(t, s, "ord_1", order.MovementRefund, amount(100), known(fmt.Sprint(i))).ID)
	}
	page, next, err := s.ListTransactions(t.Context(), store.TransactionFilter{Account: account, Status: store.TransactionPending, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{all[4], all[3]}, []uuid.UUID{page[0].ID, page[1].ID})
	page, next, err = s.ListTransactions(t.Context(), store.TransactionFilter{Account: account, Order: page[0].Order, Before: next})
	require.NoError(t, err)
	require.Len(t, page, 3)
	require.Zero(t, next)
	_, _, err = s.ListTransactions(t.Context(), store.TransactionFilter{Status: "nosuch"})
	require.Error(t, err)
	_, err = s.GetTransaction(t.Context(), "other", all[0])
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) error {
		_, err := s.TransactionTx(t.Context(), tx, account, all[0])
		return err
	}))
}
