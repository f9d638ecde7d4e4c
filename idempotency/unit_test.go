package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestUnitOfWorkIsATransactionOfPgx(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var kept pgx.Tx
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		tx, ok := idempotency.Tx(ctx)
		if !ok {
			t.Error("no unit of work")
			return
		}
		kept = tx
		note := func(tx pgx.Tx, n string) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects VALUES (gen_random_uuid(), $1)`, n)
			return err
		}
		check := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		check(pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return note(tx, "kept") }))
		undone := errors.New("undone")
		if err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			check(note(tx, "undone"))
			check(pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return note(tx, "undone with the outer one") }))
			return undone
		}); !errors.Is(err, undone) {
			t.Error(err)
		}
		if err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, `SELECT 1/0`); return err }); err == nil {
			t.Error("a failed statement passed")
		}
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO effects VALUES (gen_random_uuid(), 'batch')`)
		check(tx.SendBatch(ctx, batch).Close())
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id", "note"}, pgx.CopyFromRows([][]any{{uuid.NewString(), "copy"}}))
		check(err)
		var n int
		check(tx.QueryRow(ctx, `SELECT count(*) FROM effects`).Scan(&n))
		if n != 3 {
			t.Errorf("%d effects", n)
		}
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("the handler could end the unit of work")
		}
		sp, err := tx.Begin(ctx)
		check(err)
		check(sp.Commit(ctx))
		for _, err := range []error{sp.Commit(ctx), sp.Rollback(ctx), note(sp, "late")} {
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("a closed savepoint: %v", err)
			}
		}
		w.WriteHeader(http.StatusCreated)
	})
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
	require.Equal(t, 3, b.effects())

	// Whoever kept it cannot write behind the answer.
	ctx := t.Context()
	_, err := kept.Exec(ctx, `DELETE FROM effects`)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	rows, err := kept.Query(ctx, `SELECT 1`)
	rows.Close()
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	require.ErrorIs(t, kept.QueryRow(ctx, `SELECT 1`).Scan(), pgx.ErrTxClosed)
	require.ErrorIs(t, kept.SendBatch(ctx, &pgx.Batch{}).Close(), pgx.ErrTxClosed)
	_, err = kept.Begin(ctx)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	_, err = kept.CopyFrom(ctx, pgx.Identifier{"effects"}, nil, nil)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	_, err = kept.Prepare(ctx, "x", `SELECT 1`)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
}

func TestWithoutAKeyThereIsNoUnitOfWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	unit, outbound := true, true
	call{}.to(b.relaxed(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		_, unit = idempotency.Tx(ctx)
		_, outbound = idempotency.OutboundKey(ctx, "charge")
		idempotency.SetResource(ctx, "x", uuid.New())
		idempotency.KeepWrites(ctx)
		idempotency.Fail(ctx, errors.New("x"))
	}))
	require.False(t, unit)
	require.False(t, outbound)
}

// One key guards a call once: a second middleware inside of the first does nothing.
func TestProtectedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.mw.Protect(idempotency.Strict())(b.strict(b.effect))
	first := post("k", `{}`).to(h)
	executed(t, first, http.StatusCreated)
	replays(t, post("k", `{}`).to(h), first)
	require.Equal(t, 1, b.effects())
}

func TestOutboundKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var keys []string
	outbound := func(ctx context.Context) {
		for _, step := range []string{"charge", "mail"} {
			k, ok := idempotency.OutboundKey(ctx, step)
			if !ok {
				t.Error("no key")
			}
			keys = append(keys, k)
		}
	}
	take := func(key, body string, p idempotency.Policy, status int) (charge, mail string) {
		keys = nil
		executed(t, post(key, body).to(b.with(p, func(w http.ResponseWriter, r *http.Request) {
			outbound(r.Context())
			w.WriteHeader(status)
		})), status)
		return keys[0], keys[1]
	}
	strict, relaxed := idempotency.Strict(), idempotency.Relaxed()
	charge, mail := take("k", `{}`, strict, 500)
	require.Regexp(t, `^[a-z2-7]{52}$`, charge)
	require.NotEqual(t, charge, mail)
	again, _ := take("k", `{}`, strict, 500)
	require.Equal(t, charge, again, "another attempt at the same request")
	b.exec(`UPDATE idempotency_keys SET status = 'PROCESSING', locked_at = clock_timestamp() - interval '31 seconds'`)
	again, _ = take("k", `{}`, strict, 201)
	require.Equal(t, charge, again, "and after a takeover")
	b.shift(49 * time.Hour)
	other, _ := take("k", `{}`, strict, 201)
	require.NotEqual(t, charge, other, "the key of an expired request stands for a new one")

	charge, _ = take("forgotten", `{}`, relaxed, 500)
	again, _ = take("forgotten", `{}`, relaxed, 500)
	require.Equal(t, charge, again, "forgotten, and asked for again in the same words")
	other, _ = take("forgotten", `{"corrected":true}`, relaxed, 201)
	require.NotEqual(t, charge, other)
	another, _ := take("another", `{}`, relaxed, 201)
	require.NotEqual(t, charge, another)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, err := b.store.Inspect(t.Context(), alice, "unknown")
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	_, err = b.store.Inspect(t.Context(), alice, "nul\x00")
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	_, err = b.store.Inspect(t.Context(), idempotency.Scope{}, "k")
	require.Error(t, err)

	o := b.hold(idempotency.Strict(), post("k", `{}`).at("PUT", "/v1/x?y=1"), nil)
	o.run(t)
	r := b.record("k")
	require.Equal(t, "PROCESSING", r.State)
	require.Equal(t, "strict", r.Policy)
	require.Equal(t, "PUT", r.Method)
	require.Equal(t, "/v1/x?y=1", r.Path)
	require.Equal(t, 30*time.Second, r.LockTimeout)
	require.Positive(t, r.LockAge)
	require.Less(t, r.LockAge, 30*time.Second)
	require.Equal(t, 48*time.Hour, r.ExpiresAt.Sub(r.CreatedAt))
	require.Equal(t, "in_progress", r.Next)
	require.Equal(t, "key_reused", r.NextOther)
	o.finish(t)

	executed(t, post("forgotten", `{}`).to(b.relaxed(answering(422, "", ""))), 422)
	r = b.record("forgotten")
	require.False(t, r.Bound)
	require.Equal(t, "status 422", r.LastError)
	require.Equal(t, "execute", r.Next)
	require.Equal(t, "execute", r.NextOther)
}

func TestPoliciesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, change := range map[string]func(*idempotency.Policy){
		"no name":           func(p *idempotency.Policy) { p.Name = "" },
		"name":              func(p *idempotency.Policy) { p.Name = "Strict!" },
		"long name":         func(p *idempotency.Policy) { p.Name = string(make([]byte, 51)) },
		"lock":              func(p *idempotency.Policy) { p.LockTimeout = time.Millisecond },
		"time to live":      func(p *idempotency.Policy) { p.TTL = time.Second },
		"deadline":          func(p *idempotency.Policy) { p.Deadline = -1 },
		"body":              func(p *idempotency.Policy) { p.MaxBody = -1 },
		"response":          func(p *idempotency.Policy) { p.MaxResponse = -1 },
		"wait":              func(p *idempotency.Policy) { p.InFlight = idempotency.Wait(time.Hour) },
		"cookies":           func(p *idempotency.Policy) { p.Headers = []string{"set-cookie"} },
		"isolation":         func(p *idempotency.Policy) { p.Isolation = pgx.ReadUncommitted },
		"writes without tx": func(p *idempotency.Policy) { p.NoTx, p.KeepWrites = true, true },
	} {
		p := idempotency.Strict()
		change(&p)
		require.Panics(t, func() { b.mw.Protect(p) }, name)
		h := b.mw.ProtectFunc("x", func(*http.Request) idempotency.Policy { return p })(http.HandlerFunc(b.effect))
		refused(t, post("k", `{}`).to(h), http.StatusInternalServerError, "internal")
	}
	require.Zero(t, b.runs.Load())
	require.NotPanics(t, func() { b.mw.Protect(idempotency.Policy{Name: "defaults"}) })
	require.Panics(t, func() { b.mw.ProtectFunc("", nil) })
	require.Panics(t, func() { idempotency.Exempt("") })
}

func TestPolicyOfTheAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.mw.ProtectFunc("profile of the account", func(r *http.Request) idempotency.Policy {
		if r.Header.Get("Test-Caller") == "company/1" {
			return idempotency.Relaxed()
		}
		return idempotency.Strict()
	})(b.status(422))
	executed(t, post("k", `{}`).as("company/1").to(h), 422)
	executed(t, post("k", `{}`).as("company/1").to(h), 422)
	first := post("k", `{}`).as("company/2").to(h)
	executed(t, first, 422)
	replays(t, post("k", `{}`).as("company/2").to(h), first)
}

func TestClassifyOfARoute(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.Classify = func(int, error) idempotency.Outcome { return idempotency.Keep } // as one large processor does: 500 included
	first := post("500", `{}`).to(b.with(p, b.status(500)))
	executed(t, first, 500)
	replays(t, post("500", `{}`).to(b.with(p, b.status(500))), first)
	require.Zero(t, b.effects())
	require.Panics(t, func() { post("panic", `{}`).to(b.with(p, func(http.ResponseWriter, *http.Request) { panic(1) })) })
	require.Equal(t, "FAILED", b.record("panic").State, "there is no answer to keep")
	p.Classify = func(int, error) idempotency.Outcome { return 99 }
	executed(t, post("99", `{}`).to(b.with(p, b.status(200))), 200)
	require.Equal(t, "FAILED", b.record("99").State)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, err := idempotency.NewStore(nil, idempotency.StoreOptions{})
	require.Error(t, err)
	_, err = idempotency.NewStore(b.pool, idempotency.StoreOptions{AcquireTimeout: -1})
	require.Error(t, err)
	_, err = idempotency.New(nil, idempotency.Options{Scope: scopeOf})
	require.Error(t, err)
	_, err = idempotency.New(b.store, idempotency.Options{})
	require.Error(t, err)
	for o, name := range map[idempotency.Outcome]string{idempotency.Keep: "keep", idempotency.Retry: "retry", idempotency.Forget: "forget", 9: "unknown"} {
		require.Equal(t, name, o.String())
	}
}
