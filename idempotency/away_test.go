package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// poolWith opens a pool on a new database with a configuration of its own.
func poolWith(t testing.TB, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.MaxConns = 6
	change(cfg)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestT73_StoreAwayAtTheClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	b.exec(`ALTER TABLE idempotency_keys RENAME TO away`)
	w := post("k", `{}`).to(h)
	refused(t, w, http.StatusServiceUnavailable, "idempotency_unavailable")
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.NotContains(t, w.Body.String(), "relation")
	require.Zero(t, b.runs.Load(), "it fails closed")
	b.exec(`ALTER TABLE away RENAME TO idempotency_keys`)
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
}

func TestT73_PoolExhausted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	store, err := idempotency.NewStore(b.pool, idempotency.StoreOptions{AcquireTimeout: 20 * time.Millisecond})
	require.NoError(t, err)
	mw, err := idempotency.New(store, idempotency.Options{Scope: scopeOf})
	require.NoError(t, err)
	conns := b.pool.Config().MaxConns
	held := make([]*pgxpool.Conn, conns)
	for i := range held {
		held[i], err = b.pool.Acquire(t.Context())
		require.NoError(t, err)
	}
	h := mw.Protect(idempotency.Strict())(http.HandlerFunc(b.effect))
	refused(t, post("k", `{}`).to(h), http.StatusServiceUnavailable, "idempotency_unavailable")
	for _, c := range held {
		c.Release()
	}
	require.Zero(t, b.runs.Load())
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
}

// Sessions that the server has ended while they were idle cost nobody a request.
func TestT73_DeadConnectionsInThePool(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	executed(t, post("k1", `{}`).to(h), http.StatusCreated)
	other, err := pgx.ConnectConfig(t.Context(), b.pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	defer other.Close(context.Background())
	_, err = other.Exec(t.Context(), `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
	w := post("k2", `{}`).to(h)
	require.Contains(t, []int{http.StatusCreated, http.StatusServiceUnavailable}, w.Code)
	require.Eventually(t, func() bool { return post("k2", `{}`).to(h).Code == http.StatusCreated }, patience, time.Millisecond)
	require.Equal(t, 2, b.effects())
}

// The claim succeeds, and the effect's transaction cannot begin: the role may insert and read, and not lock.
func TestT74_StoreAwayBeforeTheEffect(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	b := benchOn(t, pool, nil)
	role := fmt.Sprintf("paidonce_test_%d", time.Now().UnixNano())
	b.exec(`CREATE ROLE ` + role)
	b.exec(`GRANT SELECT, INSERT ON idempotency_keys TO ` + role)
	b.exec(`GRANT SELECT, INSERT ON effects TO ` + role)
	t.Cleanup(func() {
		b.exec(`DROP OWNED BY ` + role)
		b.exec(`DROP ROLE ` + role)
	})
	cfg := pool.Config()
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET ROLE `+role)
		return err
	}
	weak, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(weak.Close)
	w := benchWeak(t, b, weak)
	refused(t, post("k", `{}`).to(w), http.StatusServiceUnavailable, "idempotency_unavailable")
	require.Zero(t, b.runs.Load())
	require.Equal(t, "PROCESSING", b.record("k").State, "it could not be released either")
	refused(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusConflict, "idempotency_key_in_progress")

	b.shift(31 * time.Second)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
}

func benchWeak(t *testing.T, b *bench, pool *pgxpool.Pool) http.Handler {
	t.Helper()
	store, err := idempotency.NewStore(pool, idempotency.StoreOptions{})
	require.NoError(t, err)
	mw, err := idempotency.New(store, idempotency.Options{Scope: scopeOf})
	require.NoError(t, err)
	return mw.Protect(idempotency.Strict())(http.HandlerFunc(b.effect))
}

// cutter is a connection that breaks once COMMIT has been sent, before its answer is read.
type cutter struct {
	net.Conn
	armed *atomic.Bool
	cut   bool
}

func (c *cutter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.Contains(p, []byte("\x00COMMIT\x00")) && c.armed.CompareAndSwap(true, false) {
		c.cut = true
	}
	return n, err
}

func (c *cutter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.cut {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func TestT75_AnswerOfTheCommitLost(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	pool := poolWith(t, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // COMMIT goes over the wire in words
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &cutter{Conn: conn, armed: &armed}, err
		}
	})
	reg := prometheus.NewRegistry()
	b := benchOn(t, pool, func(o *idempotency.Options) { o.Registerer = reg })
	h := b.strict(b.effect)
	armed.Store(true)
	first := post("k", `{}`).to(h)
	executed(t, first, http.StatusCreated) // the row has told that it was committed
	require.False(t, armed.Load())
	require.Equal(t, 1, decided(t, reg, "unknown_commit"))
	require.Equal(t, 1, b.effects())
	replays(t, post("k", `{}`).to(h), first)
}

func TestT75_SessionEndedDuringCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.exec(`CREATE SEQUENCE commits`)
	b.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER die AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)
	h := b.strict(b.effect)
	w := post("k", `{}`).to(h)
	refused(t, w, http.StatusServiceUnavailable, "idempotency_outcome_unknown")
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Zero(t, b.effects())
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
	require.Equal(t, 1, b.effects())
}

func TestT77_StoreAwayAfterAnEffectElsewhere(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	tried := make(chan struct{}, 100)
	b := newBench(t, func(o *idempotency.Options) {
		o.Registerer = reg
		o.Logger = slog.New(watcher{"idempotent call's answer is not stored yet", tried})
	})
	p := idempotency.Strict()
	p.NoTx = true
	h := b.with(p, func(w http.ResponseWriter, _ *http.Request) {
		b.runs.Add(1)
		b.exec(`ALTER TABLE idempotency_keys RENAME TO away`)
		w.WriteHeader(http.StatusCreated)
	})
	back := make(chan struct{})
	go func() {
		defer close(back)
		<-tried
		<-tried
		b.exec(`ALTER TABLE away RENAME TO idempotency_keys`)
	}()
	first := post("k", `{}`).to(h)
	<-back
	executed(t, first, http.StatusCreated)
	require.Empty(t, first.Header().Get("Idempotency-Warning"))
	replays(t, post("k", `{}`).to(b.with(p, b.effect)), first)

	store, err := idempotency.NewStore(b.pool, idempotency.StoreOptions{KeepTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	reg = prometheus.NewRegistry()
	mw, err := idempotency.New(store, idempotency.Options{Scope: scopeOf, Registerer: reg})
	require.NoError(t, err)
	w := post("never", `{}`).to(mw.Protect(p)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.exec(`ALTER TABLE idempotency_keys RENAME TO away`)
		w.WriteHeader(http.StatusCreated)
	})))
	b.exec(`ALTER TABLE away RENAME TO idempotency_keys`)
	executed(t, w, http.StatusCreated)
	require.Equal(t, "not-stored", w.Header().Get("Idempotency-Warning"))
	require.Equal(t, 1, decided(t, reg, "unstored"))
	require.Equal(t, "PROCESSING", b.record("never").State)
}

// watcher is a log handler that tells of one message.
type watcher struct {
	message string
	seen    chan struct{}
}

func (watcher) Enabled(context.Context, slog.Level) bool { return true }
func (w watcher) Handle(_ context.Context, r slog.Record) error {
	if r.Message == w.message {
		w.seen <- struct{}{}
	}
	return nil
}
func (w watcher) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w watcher) WithGroup(string) slog.Handler      { return w }

func TestT78_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			b := benchOn(t, poolWith(t, func(cfg *pgxpool.Config) { cfg.ConnConfig.DefaultQueryExecMode = mode }), nil)
			first := post("k", `{}`).to(b.strict(b.effect))
			executed(t, first, http.StatusCreated)
			replays(t, post("k", `{}`).to(b.strict(b.effect)), first)
			refused(t, post("k", `[]`).to(b.strict(b.effect)), http.StatusUnprocessableEntity, "idempotency_key_reused")
			executed(t, post("4xx", `{}`).to(b.strict(b.status(409))), 409)
			executed(t, post("5xx", `{}`).to(b.relaxed(b.status(500))), 500)
			executed(t, post("5xx", `{"a":1}`).to(b.relaxed(b.effect)), http.StatusCreated)
			b.crash("crash", `{}`)
			b.shift(31 * time.Second)
			executed(t, post("crash", `{}`).to(b.strict(b.effect)), http.StatusCreated)
			p := quick()
			p.LockTimeout, p.NoTx = 3*time.Second, true // a machine that is busy must not miss a beat
			o := b.hold(p, post("alone", `{}`), nil)
			o.run(t)
			var claimed time.Time
			require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT locked_at FROM idempotency_keys WHERE idempotency_key = 'alone'`).Scan(&claimed))
			b.wait(`SELECT locked_at > $1::timestamptz FROM idempotency_keys WHERE idempotency_key = 'alone'`, claimed)
			executed(t, o.finish(t), http.StatusCreated)
			require.Equal(t, "COMPLETED", b.record("alone").State)
			b.shift(49 * time.Hour)
			res, err := b.store.Sweep(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 5, res.Expired)
		})
	}
}

func TestT79_LockTimeoutAtTheClaim(t *testing.T) {
	t.Parallel()
	pool := poolWith(t, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["lock_timeout"] = "50"
	})
	b := benchOn(t, pool, nil)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE idempotency_keys`)
	require.NoError(t, err)
	refused(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusServiceUnavailable, "idempotency_unavailable")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Zero(t, b.runs.Load())
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
}

func TestT79_StatementTimeouts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{"the pool has none": "", "the pool has its own": "1234"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := benchOn(t, poolWith(t, func(cfg *pgxpool.Config) {
				if set != "" {
					cfg.ConnConfig.RuntimeParams["statement_timeout"] = set
				}
			}), nil)
			var inside, idle string
			h := b.strict(func(w http.ResponseWriter, r *http.Request) {
				tx, _ := idempotency.Tx(r.Context())
				err := tx.QueryRow(r.Context(), `SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')`).Scan(&inside, &idle)
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			executed(t, post("k", `{}`).to(h), http.StatusCreated)
			require.Equal(t, "26s", idle, "a session that hangs must not hold the row for ever")
			if set == "" {
				require.Equal(t, "26s", inside)
			} else {
				require.Equal(t, "1234ms", inside)
			}
			var after string
			require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT current_setting('idle_in_transaction_session_timeout')`).Scan(&after))
			require.Equal(t, "0", after, "nothing is left in the session")
		})
	}
}

// A database, or a role, that acknowledges commits before they are durable is overruled in both transactions.
func TestT76_CommitsAreDurable(t *testing.T) {
	t.Parallel()
	b := benchOn(t, poolWith(t, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}), nil)
	b.exec(`CREATE TABLE commits (op text, setting text)`)
	b.exec(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO commits VALUES (NEW.status, current_setting('synchronous_commit')); RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE ON idempotency_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
	require.Equal(t, 1, count(t, b.pool, `SELECT count(*) FROM commits WHERE op = 'PROCESSING' AND setting = 'on'`))
	require.Equal(t, 1, count(t, b.pool, `SELECT count(*) FROM commits WHERE op = 'COMPLETED' AND setting = 'on'`))

	p := idempotency.Strict()
	p.NoTx = true
	b.crash("alone", `{}`)
	b.exec(`TRUNCATE commits`)
	b.shift(31 * time.Second)
	b.exec(`TRUNCATE commits`)
	executed(t, post("alone", `{}`).to(b.with(p, answering(201, "", ""))), http.StatusCreated)
	require.Equal(t, 2, count(t, b.pool, `SELECT count(*) FROM commits WHERE setting = 'on'`))
	require.Zero(t, count(t, b.pool, `SELECT count(*) FROM commits WHERE setting = 'off'`))
}
