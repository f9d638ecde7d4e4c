package idempotency_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestT80_KeysExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, c := range map[string]struct {
		h   http.Handler
		ttl time.Duration
	}{"strict": {b.strict(b.effect), 48 * time.Hour}, "relaxed": {b.relaxed(b.effect), 24 * time.Hour}} {
		first := post(name, `{"a":1}`).to(c.h)
		executed(t, first, http.StatusCreated)
		b.shift(c.ttl - time.Minute)
		replays(t, post(name, `{"a":1}`).to(c.h), first)
		b.shift(time.Minute + time.Second)
		require.Equal(t, "execute", b.record(name).NextOther)
		second := post(name, `{"a":2}`).to(c.h) // no sweeper was here
		executed(t, second, http.StatusCreated)
		r := b.record(name)
		require.EqualValues(t, 2, r.Fence)
		require.Equal(t, 1, r.Attempts)
		require.Equal(t, c.ttl, r.ExpiresAt.Sub(r.CreatedAt))
		require.False(t, r.Expired)
		replays(t, post(name, `{"a":2}`).to(c.h), second)
		refused(t, post(name, `{"a":1}`).to(c.h), http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
}

func TestT81_ReplaysDoNotExtend(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(b.effect)
	first := post("k", `{}`).to(h)
	b.shift(23 * time.Hour)
	before := b.record("k").ExpiresAt
	replays(t, post("k", `{}`).to(h), first)
	require.Equal(t, before, b.record("k").ExpiresAt)
}

func TestT82_ExpiredWhileProcessing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.crash("k", `{}`)
	b.exec(`UPDATE idempotency_keys SET created_at = now() - interval '49 hours', expires_at = now() - interval '1 hour'`)
	refused(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusConflict, "idempotency_key_in_progress")
	refused(t, post("k", `{"a":1}`).to(b.strict(b.effect)), http.StatusUnprocessableEntity, "idempotency_key_reused")
	b.exec(`UPDATE idempotency_keys SET locked_at = now() - interval '31 seconds'`)
	executed(t, post("k", `{"a":1}`).to(b.strict(b.effect)), http.StatusCreated)
}

// fill enters n keys by hand.
func (b *bench) fill(n int, prefix, status string, expires, lockAge time.Duration) {
	b.t.Helper()
	b.exec(`
		INSERT INTO idempotency_keys (account_id, scope_kind, user_id, idempotency_key, request_method, request_path, request_hash, policy,
			status, locked_at, response_code, response_raw, completed_at, expires_at)
		SELECT $1::text, 'user', $1::uuid, $2::text || n, 'POST', '/', repeat('0', 64), 'strict', $3::text,
			CASE WHEN $3::text = 'PROCESSING' THEN now() - $5::interval END, CASE WHEN $3::text = 'COMPLETED' THEN 201 END,
			CASE WHEN $3::text = 'COMPLETED' THEN '\x'::bytea END, CASE WHEN $3::text = 'COMPLETED' THEN now() END, now() + $4::interval
		FROM generate_series(1, $6::int) n`, alice.ID.String(), prefix, status, expires, lockAge, n)
}

func TestT84_Sweeper(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const hour = time.Hour
	b.fill(2500, "completed", "COMPLETED", -hour, 0)
	b.fill(10, "failed", "FAILED", -hour, 0)
	b.fill(7, "stale", "PROCESSING", -hour, hour)
	b.fill(5, "live", "PROCESSING", -hour, 0)      // expired, and its call still runs
	b.fill(3, "crashed", "PROCESSING", hour, hour) // to be taken over, not to be forgotten
	b.fill(4, "kept", "COMPLETED", hour, 0)        //
	b.fill(2, "kept-failed", "FAILED", hour, 0)    //
	o := b.hold(quick(), post("held", `{}`), nil)  // expired, with an old lock and an open transaction
	o.run(t)
	b.wait(`SELECT locked_at + lock_timeout < clock_timestamp() FROM idempotency_keys WHERE idempotency_key = 'held'`)

	results := make([]idempotency.SweepResult, 2)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			var err error
			if results[i], err = b.store.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 2517, results[0].Expired+results[1].Expired, "two sweepers share the work")
	require.EqualValues(t, 7, results[0].Reaped+results[1].Reaped)
	require.Equal(t, 5+3+4+2+1, b.keys())
	res, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, res.Expired)
	require.Zero(t, res.Unswept)
	require.Greater(t, res.OldestProcessing, 59*time.Minute)
	executed(t, o.finish(t), http.StatusCreated)
}

func TestT84_SweeperLeavesAnOpenTransactionAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := quick()
	p.TTL = p.LockTimeout
	o := b.hold(p, post("k", `{}`), nil)
	o.run(t)
	b.wait(`SELECT expires_at < clock_timestamp() AND locked_at + lock_timeout < clock_timestamp() FROM idempotency_keys`)
	res, err := b.store.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, res.Expired)
	executed(t, o.finish(t), http.StatusCreated)
	require.Equal(t, 1, b.effects())
}

func TestT84_SweeperReadsThePartialIndexes(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.fill(5000, "kept", "COMPLETED", time.Hour, 0)
	b.fill(5, "old", "COMPLETED", -time.Hour, 0)
	b.fill(50, "stale", "PROCESSING", -time.Hour, time.Hour)
	for _, analyzed := range []bool{false, true} { // by the shape that the migration has told of, and by its own
		if analyzed {
			b.exec(`ANALYZE idempotency_keys`)
		}
		for sql, index := range map[string]string{
			idempotency.SQLSweep: "idx_idempotency_expires", idempotency.SQLReap: "idx_idempotency_processing",
		} {
			rows, err := b.pool.Query(t.Context(), `EXPLAIN `+strings.ReplaceAll(sql, "$1::int", "1000"))
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			plan := strings.Join(lines, "\n")
			require.Contains(t, plan, index)
			require.NotContains(t, plan, "Seq Scan")
		}
	}
}

func TestClaimReadsTheUniqueIndex(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.exec(`VACUUM idempotency_keys`) // the rows that the migration has deleted
	rows, err := b.pool.Query(t.Context(), `EXPLAIN `+idempotency.SQLClaim, "00000000-0000-0000-0000-000000000001", "a", "user", alice.ID.String(),
		"k", "POST", "/", "h", []byte{}, "strict", time.Second, time.Hour)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(lines, "\n"), "Index Scan using uq_idempotency_user_key")
}

// Calls and sweepers that want the same expired row: every answer is true, and each time one handler runs.
func TestT85_SweptWhileClaimed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	for round := range 20 {
		key := fmt.Sprint("k", round)
		executed(t, post(key, `{}`).to(h), http.StatusCreated)
		b.shift(49 * time.Hour)
		b.runs.Store(0)
		codes := make([]int, 6)
		var wg sync.WaitGroup
		for i := range codes {
			wg.Go(func() {
				if i%3 == 0 {
					if _, err := b.store.Sweep(t.Context()); err != nil {
						t.Error(err)
					}
					return
				}
				codes[i] = post(key, `{"again":true}`).to(h).Code
			})
		}
		wg.Wait()
		for i, code := range codes {
			if i%3 != 0 {
				require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, code)
			}
		}
		require.EqualValues(t, 1, b.runs.Load())
	}
}

// A database whose clock goes back: locks last longer, and nobody gets a key twice.
func TestT86_ClockSteppedBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.crash("k", `{}`)
	b.shift(31*time.Second - 10*time.Minute)
	w := post("k", `{}`).to(b.strict(b.effect))
	refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
	require.Regexp(t, `^5\d\d$`, w.Header().Get("Retry-After"))
	b.shift(10 * time.Minute)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
}
