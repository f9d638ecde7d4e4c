package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// lease is long enough that no claim lapses by itself; see lapse.
const lease = time.Minute

// disputed opens a dispute over all that payment p has captured.
func disputed(id, p string, status order.Status, seq, minor int64) store.Event {
	e := captured(id, p, "", minor)
	e.Type, e.Own, e.Strength = "charge.dispute", nil, 0
	e.Facts = []order.Fact{{Kind: order.KindDisputed, Ref: "dp_1", Status: status, Seq: seq, Amount: minor, Currency: "EUR"}}
	return e
}

// owing registers an order and pays for it: it owes a fulfil.
func owing(t *testing.T, s *store.Store, ref string) uuid.UUID {
	t.Helper()
	res := apply(t, s, register(ref, 5000), captured("evt_"+ref, "pi_"+ref, ref, 5000))
	return res[1].Order
}

// effect is a row of order_transitions that asks for something.
type effect struct {
	Version  int
	Effect   string
	State    string
	Attempts int
	Tried    bool
	Fence    int64
	Until    *time.Time
	Next     *time.Time
	Undoes   *int
	Err      string
	Settled  bool
}

func effects(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) []effect {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `
		SELECT version, effect, effect_state, attempts, tried, fence, claimed_until, next_at, undoes, coalesce(last_error, ''), settled_at IS NOT NULL
		FROM order_transitions WHERE order_id = $1 AND effect IS NOT NULL ORDER BY version`, id)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[effect])
	require.NoError(t, err)
	return list
}

// summary is effects in words: "fulfil done, revoke open".
func summary(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) string {
	t.Helper()
	var words []string
	for _, e := range effects(t, pool, id) {
		words = append(words, e.Effect+" "+e.State)
	}
	return strings.Join(words, ", ")
}

func look(t *testing.T, s *store.Store, id uuid.UUID) store.Looked {
	t.Helper()
	l, err := s.Look(t.Context(), account, id, lease)
	require.NoError(t, err)
	return l
}

func claim(t *testing.T, s *store.Store, id uuid.UUID) store.Claim {
	t.Helper()
	l := look(t, s, id)
	require.NotNil(t, l.Claim, "something is due")
	return *l.Claim
}

func settle(t *testing.T, s *store.Store, c store.Claim, a store.Answer) store.Settled {
	t.Helper()
	out, err := s.Settle(t.Context(), c, a, 0)
	require.NoError(t, err)
	return out
}

// lapse ends the lease of the order's claim, as time would.
func lapse(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		WITH row AS (
			UPDATE order_transitions SET claimed_until = clock_timestamp() - interval '1 ms'
			WHERE order_id = $1 AND effect_state = 'claimed' RETURNING claimed_until)
		UPDATE orders SET wake_at = claimed_until FROM row WHERE id = $1`, id)
	require.NoError(t, err)
}

// everything is all that a drain may write of an order, to tell whether it wrote.
func everything(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) (dump string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT (SELECT o.xmin::text || o::text FROM orders o WHERE id = $1)
			|| (SELECT string_agg(t.xmin::text || t::text, ' ' ORDER BY version) FROM order_transitions t WHERE order_id = $1)
			|| (SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM river_job WHERE args->>'order_id' = $1::text)`, id).Scan(&dump))
	return dump
}

func TestLookClaims(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := owing(t, s, "ord_1")

	c := claim(t, s, id)

	require.Equal(t, account, c.Account)
	require.Equal(t, "ord_1", c.Ref)
	require.Equal(t, order.EffectFulfil, c.Effect)
	require.Equal(t, order.ToldNothing, c.After)
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, order.StatePaid, c.View.State)
	require.EqualValues(t, 5000, c.View.Kept)
	require.WithinRange(t, c.AskedAt, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
	require.GreaterOrEqual(t, c.Lag, time.Duration(0))
	e := effects(t, pool, id)[0]
	require.Equal(t, "claimed", e.State)
	require.True(t, e.Tried, "from here on nobody knows what the merchant did")
	require.Equal(t, 1, e.Attempts)
	require.Equal(t, c.Fence, e.Fence)
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, e.Until, o.Wake, "the ticker comes back if the lease ends")
	require.Equal(t, "nothing", o.Told, "told moves when it is settled")
	require.Equal(t, 1, count(t, pool, "river_job"), "the claim enqueues nothing")
}

func TestLookLeavesALiveClaimAlone(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := owing(t, s, "ord_1")
	claim(t, s, id)
	before := everything(t, pool, id)
	require.Nil(t, look(t, s, id).Claim)
	require.Equal(t, before, everything(t, pool, id))
}

func TestLookOfManyClaimsOnce(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := owing(t, s, "ord_1")
	var claims atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := s.Look(t.Context(), account, id, lease)
			if err == nil && l.Claim != nil {
				claims.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, claims.Load())
	require.Equal(t, 1, effects(t, pool, id)[0].Attempts)
}

func TestLookWithNothingDue(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := owing(t, s, "ord_1")
	settle(t, s, claim(t, s, id), store.Answer{Wait: time.Hour, Err: "down"})

	t.Run("AnExtraJobWritesNothing", func(t *testing.T) {
		before, connections := everything(t, pool, id), pool.Stat().NewConnsCount()
		for range 20 {
			require.Nil(t, look(t, s, id).Claim)
		}
		require.Equal(t, before, everything(t, pool, id))
		require.Equal(t, connections, pool.Stat().NewConnsCount(), "each gives its connection back as it was")
	})
	t.Run("ALapsedPromiseIsRenewed", func(t *testing.T) {
		_, err := pool.Exec(t.Context(), `UPDATE orders SET wake_at = clock_timestamp() - interval '1 s'`)
		require.NoError(t, err)
		require.Nil(t, look(t, s, id).Claim)
		require.Equal(t, effects(t, pool, id)[0].Next, readOrder(t, pool, "ord_1").Wake)
	})
	t.Run("ALapsedPromiseOfNothingIsCleared", func(t *testing.T) {
		settle(t, s, reclaim(t, s, pool, id), store.Answer{Done: true})
		_, err := pool.Exec(t.Context(), `UPDATE orders SET wake_at = clock_timestamp() - interval '1 s'`)
		require.NoError(t, err)
		require.Nil(t, look(t, s, id).Claim)
		require.Nil(t, readOrder(t, pool, "ord_1").Wake)
	})
	t.Run("AnUnknownOrderIsNoError", func(t *testing.T) {
		require.Equal(t, store.Looked{}, look(t, s, uuid.New()))
	})
}

// reclaim claims an effect that waits for its next attempt.
func reclaim(t *testing.T, s *store.Store, pool *pgxpool.Pool, id uuid.UUID) store.Claim {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE order_transitions SET next_at = clock_timestamp() WHERE order_id = $1 AND effect_state = 'open'`, id)
	require.NoError(t, err)
	return claim(t, s, id)
}

func TestClaimLapses(t *testing.T) {
	t.Parallel()

	t.Run("CalledAgain", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		first := claim(t, s, id)
		lapse(t, pool, id)

		l := look(t, s, id)
		require.True(t, l.Expired)
		require.Equal(t, 2, l.Claim.Attempt)
		require.Greater(t, l.Claim.Fence, first.Fence)
		require.Equal(t, first.Version, l.Claim.Version, "so that the key is the same")
		require.Equal(t, "claim expired", effects(t, pool, id)[0].Err)
	})

	t.Run("PlannedBeforeItIsCalledAgain", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		claim(t, s, id)
		apply(t, s, refunded("re_1", "pi_ord_1", 5000))
		require.Equal(t, "fulfil claimed", summary(t, pool, id), "a call is out: ingest plans nothing")
		lapse(t, pool, id)

		l := look(t, s, id)
		require.Equal(t, order.EffectRevoke, l.Claim.Effect, "the money went meanwhile: a second fulfil would be wrong")
		require.Equal(t, "fulfil assumed, revoke claimed", summary(t, pool, id))
	})

	t.Run("DeadAtLast", func(t *testing.T) {
		t.Parallel()
		s, pool := openWith(t, store.Options{MaxAttempts: 2})
		id := owing(t, s, "ord_1")
		claim(t, s, id)
		lapse(t, pool, id)
		require.NotNil(t, look(t, s, id).Claim)
		lapse(t, pool, id)

		l := look(t, s, id)
		require.Nil(t, l.Claim)
		require.True(t, l.Dead)
		require.Equal(t, id, l.Order)
		require.Equal(t, "fulfil dead", summary(t, pool, id))
		require.Nil(t, readOrder(t, pool, "ord_1").Wake)
	})
}

func TestSettle(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	t.Run("Done", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_done")
		jobs := count(t, pool, "river_job WHERE args->>'order_id' = $1", id.String())
		out := settle(t, s, claim(t, s, id), store.Answer{Done: true})
		require.Equal(t, store.Settled{}, out)
		o := readOrder(t, pool, "ord_done")
		require.Equal(t, "fulfilled", o.Told)
		require.Nil(t, o.Wake)
		e := effects(t, pool, id)[0]
		require.Equal(t, "done", e.State)
		require.True(t, e.Settled)
		require.Equal(t, jobs, count(t, pool, "river_job WHERE args->>'order_id' = $1", id.String()))
	})

	t.Run("TryAgain", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_again")
		out := settle(t, s, claim(t, s, id), store.Answer{Wait: time.Hour, Err: "503\x00 " + strings.Repeat("ü", 400)})
		require.False(t, out.Dead)
		e := effects(t, pool, id)[0]
		require.Equal(t, "open", e.State)
		require.True(t, strings.HasPrefix(e.Err, "503\uFFFD ü"), e.Err)
		require.LessOrEqual(t, len(e.Err), 500)
		require.WithinDuration(t, time.Now().Add(time.Hour), *e.Next, time.Minute)
		require.Equal(t, e.Next, readOrder(t, pool, "ord_again").Wake)
		require.Equal(t, 1, count(t, pool, "river_job WHERE args->>'order_id' = $1 AND scheduled_at = $2", id.String(), e.Next))
		require.Equal(t, "nothing", readOrder(t, pool, "ord_again").Told, "what a call without success did, nobody knows")
	})

	t.Run("Dead", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_dead")
		out := settle(t, s, claim(t, s, id), store.Answer{Dead: true, Err: "410 Gone"})
		require.True(t, out.Dead)
		require.Equal(t, "fulfil dead", summary(t, pool, id))
		require.Nil(t, readOrder(t, pool, "ord_dead").Wake, "only a person wakes it")
		require.Nil(t, look(t, s, id).Claim)
	})

	t.Run("TwiceIsOnce", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_twice")
		c := claim(t, s, id)
		settle(t, s, c, store.Answer{Done: true})
		before := everything(t, pool, id)
		require.True(t, settle(t, s, c, store.Answer{Dead: true}).Stale)
		require.Equal(t, before, everything(t, pool, id))
	})

	t.Run("StaleWritesNothing", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_stale")
		stale := claim(t, s, id)
		lapse(t, pool, id)
		holder := claim(t, s, id)
		before := everything(t, pool, id)
		require.True(t, settle(t, s, stale, store.Answer{Dead: true, Err: "too late"}).Stale)
		require.Equal(t, before, everything(t, pool, id))
		require.False(t, settle(t, s, holder, store.Answer{Done: true}).Stale)
		require.Equal(t, "fulfil done", summary(t, pool, id))
	})

	// The lease ended, but nobody has taken the claim: what happened is recorded.
	t.Run("LateButUndisputed", func(t *testing.T) {
		t.Parallel()
		id := owing(t, s, "ord_late")
		c := claim(t, s, id)
		lapse(t, pool, id)
		require.False(t, settle(t, s, c, store.Answer{Done: true}).Stale)
		require.Equal(t, "fulfilled", readOrder(t, pool, "ord_late").Told)
	})
}

func TestRefundAfterClaim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer store.Answer
		first  string // what becomes of the fulfil
	}{
		{"Done", store.Answer{Done: true}, "done"},
		{"NobodyKnows", store.Answer{Err: "time-out", Wait: time.Hour}, "assumed"},
		{"Rejected", store.Answer{Dead: true}, "assumed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			id := owing(t, s, "ord_1")
			c := claim(t, s, id)
			apply(t, s, refunded("re_1", "pi_ord_1", 5000))

			out, err := s.Settle(t.Context(), c, tt.answer, lease)
			require.NoError(t, err)
			require.NotNil(t, out.Next, "claimed in the same transaction")
			require.Equal(t, order.EffectRevoke, out.Next.Effect)
			require.Equal(t, order.ToldFulfilled, out.Next.After)
			require.Equal(t, "fulfil "+tt.first+", revoke claimed", summary(t, pool, id))
			settle(t, s, *out.Next, store.Answer{Done: true})
			require.Equal(t, "revoked", readOrder(t, pool, "ord_1").Told)
		})
	}

	t.Run("WithoutTimeForIt", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		c := claim(t, s, id)
		apply(t, s, refunded("re_1", "pi_ord_1", 5000))
		jobs := count(t, pool, "river_job WHERE state = 'available'")
		require.Equal(t, 1, jobs, "of the ingest; not left to River's scheduler")

		require.Nil(t, settle(t, s, c, store.Answer{Done: true}).Next)
		require.Equal(t, "fulfil done, revoke open", summary(t, pool, id))
		require.NotNil(t, readOrder(t, pool, "ord_1").Wake)
		require.Equal(t, jobs+1, count(t, pool, "river_job WHERE state = 'available'"), "another job does it, at once")
	})
}

// An ingest that commits while a drain looks must not be overlooked: the drain decides "nothing owed" under the lock.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		look func(ctx context.Context, s *store.Store, pool *pgxpool.Pool, id uuid.UUID) error
		lost bool
	}{
		{"UnderTheLock", func(ctx context.Context, s *store.Store, _ *pgxpool.Pool, id uuid.UUID) error {
			l, err := s.Look(ctx, account, id, lease)
			if err == nil && (l.Claim == nil || l.Claim.Effect != order.EffectRevoke) {
				err = errors.New("the revoke was not claimed")
			}
			return err
		}, false},
		// The control: the same race seen by a drain that reads first and locks later.
		{"WithoutItIsLost", func(ctx context.Context, _ *store.Store, pool *pgxpool.Pool, id uuid.UUID) error {
			var owed bool
			err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM order_transitions WHERE order_id = $1
				AND effect_state IN ('open', 'claimed'))`, id).Scan(&owed)
			if err != nil || owed {
				return errors.Join(err, errors.New("it must not see what is not committed"))
			}
			_, err = pool.Exec(ctx, `UPDATE orders SET wake_at = NULL WHERE id = $1`, id)
			return err
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			id := owing(t, s, "ord_1")
			settle(t, s, claim(t, s, id), store.Answer{Done: true})
			_, err := pool.Exec(t.Context(), `UPDATE orders SET wake_at = clock_timestamp() - interval '1 s'`)
			require.NoError(t, err)

			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = s.ApplyTx(t.Context(), tx, []store.Event{refunded("re_1", "pi_ord_1", 5000)})
			require.NoError(t, err)
			looked := make(chan error)
			go func() { looked <- tt.look(t.Context(), s, pool, id) }()
			waitForLock(t, pool)
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, <-looked)

			require.Equal(t, tt.lost, readOrder(t, pool, "ord_1").Wake == nil)
		})
	}
}
