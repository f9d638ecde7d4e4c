package wiretest_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store/storetest"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// bench is a database with one table, reached directly and through a wire.
type bench struct {
	t      *testing.T
	url    string
	direct *pgxpool.Pool
	wire   *wiretest.Proxy
}

func setup(t *testing.T) *bench {
	t.Helper()
	url := storetest.OpenEmpty(t)
	direct, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(direct.Close)
	_, err = direct.Exec(t.Context(), `CREATE TABLE things (n int PRIMARY KEY)`)
	require.NoError(t, err)
	return &bench{t, url, direct, wiretest.New(t, url)}
}

// with is the same database for a test of its own, through another wire.
func (b *bench) with(t *testing.T) *bench {
	return &bench{t, b.url, b.direct, wiretest.New(t, b.url)}
}

// connect opens a connection through the wire.
func (b *bench) connect() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.wire.URL())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// has reports whether a row is there.
func (b *bench) has(n int) (yes bool) {
	b.t.Helper()
	require.NoError(b.t, b.direct.QueryRow(b.t.Context(), `SELECT EXISTS (SELECT FROM things WHERE n = $1)`, n).Scan(&yes))
	return yes
}

// eventuallyGone waits until the server has done with a connection that was cut.
func (b *bench) eventuallyGone(conn *pgx.Conn) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		var gone bool
		err := b.direct.QueryRow(b.t.Context(), `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, conn.PgConn().PID()).Scan(&gone)
		return err == nil && gone
	}, 10*time.Second, time.Millisecond)
}

const insert = `INSERT INTO things (n) VALUES ($1)`

// inTx inserts a row and commits, one message after another.
func inTx(ctx context.Context, conn *pgx.Conn, n int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insert, n)
		return err
	})
}

// inOnePipeline does the same in one round trip.
func inOnePipeline(ctx context.Context, conn *pgx.Conn, n int) error {
	var batch pgx.Batch
	batch.Queue(`BEGIN`)
	batch.Queue(insert, n)
	batch.Queue(`COMMIT`)
	return conn.SendBatch(ctx, &batch).Close()
}

// alone does it in a statement that commits by itself.
func alone(ctx context.Context, conn *pgx.Conn, n int) error {
	_, err := conn.Exec(ctx, insert, n)
	return err
}

// aloneWithRows does it in one that returns rows before it is done.
func aloneWithRows(ctx context.Context, conn *pgx.Conn, n int) error {
	return conn.QueryRow(ctx, insert+` RETURNING n`, n).Scan(&n)
}

// inOneString does it in the simple protocol.
func inOneString(ctx context.Context, conn *pgx.Conn, n int) error {
	return conn.PgConn().Exec(ctx, fmt.Sprintf(`BEGIN; INSERT INTO things (n) VALUES (%d); COMMIT`, n)).Close()
}

// Whatever is held never reaches the side it was meant for, and the other side is as it was.
func TestTrap(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	var row atomic.Int64
	for _, c := range []struct {
		name  string
		do    func(context.Context, *pgx.Conn, int) error
		match string
	}{
		{"Commit", inTx, `^commit$`},
		{"CommitInPipeline", inOnePipeline, `^commit$`},
		{"ByItself", alone, `^insert into things`},
		{"ByItselfWithRows", aloneWithRows, `^insert into things`},
		{"InOneString", inOneString, `^begin; insert`},
	} {
		for name, at := range map[string]wiretest.Moment{"Before": wiretest.Before, "After": wiretest.After} {
			// run does it until it stands in the trap.
			run := func(t *testing.T) (b *bench, conn *pgx.Conn, n int, trap *wiretest.Trap, done chan error) {
				b, n, done = shared.with(t), int(row.Add(1)), make(chan error, 1)
				conn, trap = b.connect(), b.wire.Trap(at, wiretest.SQL(c.match))
				go func() { done <- c.do(t.Context(), conn, n) }()
				trap.Wait()
				require.Equal(t, at == wiretest.After, b.has(n))
				select {
				case err := <-done:
					require.FailNow(t, "the client was answered", "%v", err)
				default:
				}
				return b, conn, n, trap, done
			}
			t.Run(c.name+"/"+name+"Cut", func(t *testing.T) {
				t.Parallel()
				b, conn, n, trap, done := run(t)
				trap.Cut()
				require.Error(t, <-done)
				require.True(t, conn.IsClosed())
				b.eventuallyGone(conn)
				require.Equal(t, at == wiretest.After, b.has(n))
			})
			t.Run(c.name+"/"+name+"Pass", func(t *testing.T) {
				t.Parallel()
				b, conn, n, trap, done := run(t)
				trap.Pass()
				require.NoError(t, <-done)
				require.True(t, b.has(n))
				require.NoError(t, c.do(t.Context(), conn, int(row.Add(1))), "a trap springs once")
			})
		}
	}
}

// What comes before the trap in the same pipeline is executed, and undone with the connection.
func TestTrapBeforeEndsThePipelineThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	trap := b.wire.Trap(wiretest.Before, wiretest.SQL(`^commit`))
	done := make(chan error, 1)
	go func() { done <- inOnePipeline(t.Context(), conn, 1) }()
	trap.Wait()
	require.Eventually(t, func() bool {
		var n int
		err := b.direct.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_locks WHERE relation = 'things'::regclass AND mode = 'RowExclusiveLock' AND granted`).Scan(&n)
		return err == nil && n == 1
	}, 10*time.Second, time.Millisecond)
	trap.Cut()
	require.Error(t, <-done)
	b.eventuallyGone(conn)
	require.False(t, b.has(1))
}

// A wire that does nothing is not noticed.
func TestTransparent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	ctx := t.Context()

	t.Run("Rows", func(t *testing.T) {
		rows, _ := conn.Query(ctx, `SELECT repeat('x', 10000) FROM generate_series(1, $1)`, 500)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Len(t, texts, 500)
	})
	t.Run("Copy", func(t *testing.T) {
		n, err := conn.CopyFrom(ctx, pgx.Identifier{"things"}, []string{"n"}, pgx.CopyFromRows([][]any{{100}, {101}}))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		var out strings.Builder
		_, err = conn.PgConn().CopyTo(ctx, &out, `COPY (SELECT generate_series(1, 3)) TO STDOUT`)
		require.NoError(t, err)
		require.Equal(t, "1\n2\n3\n", out.String())
	})
	t.Run("ErrorsInPipelines", func(t *testing.T) {
		var batch pgx.Batch
		batch.Queue(insert, 200)
		batch.Queue(`SELECT 1/0`)
		batch.Queue(insert, 201)
		err := conn.SendBatch(ctx, &batch).Close()
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, "22012", pg.Code)
		require.NoError(t, conn.Ping(ctx), "what is owed was counted right")
		trap := b.wire.Trap(wiretest.After, wiretest.SQL(`^select 42`))
		done := make(chan error, 1)
		go func() { _, err := conn.Exec(ctx, `SELECT 42`); done <- err }()
		trap.Wait()
		trap.Pass()
		require.NoError(t, <-done)
	})
	t.Run("Notifications", func(t *testing.T) {
		_, err := conn.Exec(ctx, `LISTEN things`)
		require.NoError(t, err)
		_, err = b.direct.Exec(ctx, `NOTIFY things, 'hello'`)
		require.NoError(t, err)
		n, err := conn.WaitForNotification(ctx)
		require.NoError(t, err)
		require.Equal(t, "hello", n.Payload)
	})
	t.Run("Flush", func(t *testing.T) {
		pipeline := conn.PgConn().StartPipeline(ctx)
		pipeline.SendQueryParams(`SELECT 1`, nil, nil, nil, nil)
		pipeline.SendFlushRequest()
		require.NoError(t, pipeline.Flush())
		_, err := pipeline.GetResults()
		require.NoError(t, err, "an answer without the pipeline's end")
		require.NoError(t, pipeline.Sync())
		require.NoError(t, pipeline.Close())
	})
	t.Run("Cancellation", func(t *testing.T) {
		done := make(chan error, 1)
		go func() { _, err := conn.Exec(ctx, `SELECT pg_sleep(60)`); done <- err }()
		require.Eventually(t, func() bool {
			seen := b.wire.Seen()
			return strings.Contains(seen[len(seen)-1].SQL, "pg_sleep")
		}, 10*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { // one that comes before the statement ends nothing
			require.NoError(t, conn.PgConn().CancelRequest(ctx))
			select {
			case err := <-done:
				var pg *pgconn.PgError
				require.ErrorAs(t, err, &pg)
				require.Equal(t, "57014", pg.Code)
				return true
			default:
				return false
			}
		}, 10*time.Second, 10*time.Millisecond)
	})
	t.Run("LostCancellation", func(t *testing.T) {
		b := b.with(t)
		conn := b.connect()
		holder, err := b.direct.Acquire(ctx)
		require.NoError(t, err)
		defer holder.Release()
		_, err = holder.Exec(ctx, `SELECT pg_advisory_lock(1)`)
		require.NoError(t, err)
		b.wire.LoseCancels()
		done := make(chan error, 1)
		go func() { _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(1)`); done <- err }()
		require.NoError(t, conn.PgConn().CancelRequest(ctx))
		_, err = holder.Exec(ctx, `SELECT pg_advisory_unlock(1)`)
		require.NoError(t, err)
		require.NoError(t, <-done)
	})
	t.Run("LastWords", func(t *testing.T) {
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, "57P01", pg.Code)
	})
}

func TestDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	b.wire.Down()
	require.Error(t, conn.Ping(t.Context()))
	_, err := pgx.Connect(t.Context(), b.wire.URL())
	require.Error(t, err)
	require.Eventually(t, func() bool { return b.wire.Connections() == 0 }, 10*time.Second, time.Millisecond)
	b.wire.Up()
	require.NoError(t, alone(t.Context(), b.connect(), 1))
	require.True(t, b.has(1))
}

func TestStall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	b.wire.Stall()
	b.wire.Stall()
	done := make(chan error, 1)
	go func() { done <- alone(t.Context(), conn, 1) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := pgx.Connect(ctx, b.wire.URL())
	require.ErrorIs(t, err, context.DeadlineExceeded, "new connections hang too")
	require.Empty(t, done)
	require.False(t, b.has(1))
	b.wire.Flow()
	b.wire.Flow()
	require.NoError(t, <-done, "nothing is lost")
	require.True(t, b.has(1))
}

func TestIntercept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	var heard []string
	remove := b.wire.Intercept(wiretest.Before, wiretest.SQL(`things`), func(s wiretest.Statement) wiretest.Verdict {
		require.Equal(t, 1, s.Conn)
		require.Equal(t, conn.PgConn().PID(), s.PID)
		heard = append(heard, s.SQL)
		return wiretest.Pass
	})
	require.NoError(t, alone(t.Context(), conn, 1))
	remove()
	_, err := conn.Exec(t.Context(), insert, 2)
	require.NoError(t, err)
	require.Equal(t, []string{insert}, heard)

	b.wire.Intercept(wiretest.After, wiretest.Nth(2, wiretest.SQL(`^insert`)), func(wiretest.Statement) wiretest.Verdict { return wiretest.Cut })
	_, err = conn.Exec(t.Context(), insert, 3)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), insert, 4)
	require.Error(t, err)
	require.True(t, b.has(4))
}

// A client that dies leaves the wire at once, and the server with it, unless the connection stands in a trap before it.
func TestClientEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.connect()
	require.NoError(t, conn.Ping(t.Context()))
	require.NoError(t, conn.PgConn().Conn().Close())
	b.eventuallyGone(conn)
	require.Eventually(t, func() bool { return b.wire.Connections() == 0 }, 10*time.Second, time.Millisecond)

	conn = b.connect()
	trap := b.wire.Trap(wiretest.Before, wiretest.SQL(`^insert`))
	done := make(chan error, 1)
	go func() { done <- alone(t.Context(), conn, 1) }()
	trap.Wait()
	seen := b.wire.Seen()
	ended := seen[len(seen)-1].Ended
	select {
	case <-ended:
		require.FailNow(t, "it has not")
	default:
	}
	require.NoError(t, conn.PgConn().Conn().Close())
	<-ended
	require.Error(t, <-done)
	require.Equal(t, 1, b.wire.Connections())
	trap.Cut()
	b.eventuallyGone(conn)
	require.False(t, b.has(1))
}

func TestSQL(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"COMMIT":                          true,
		"  \n commit and chain":           true,
		"-- why\n/* and\n how */ Commit":  true,
		"SELECT 'commit'":                 false,
		"-- commit":                       false,
		"INSERT INTO t VALUES ('\ncommit": false,
	} {
		require.Equal(t, want, wiretest.SQL(`^commit`)(wiretest.Statement{SQL: sql}), sql)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for conn, want := range map[string]string{
		"postgres://u:p@h:1/db?sslmode=require&pool_max_conns=3": "postgres://u:p@127.0.0.1:PORT/db?pool_max_conns=3&sslmode=disable",
		"postgres://u:p@/db?host=%2Ftmp&port=6432":               "postgres://u:p@127.0.0.1:PORT/db?sslmode=disable",
		"host=h dbname=db": "host=h dbname=db host=127.0.0.1 port=PORT sslmode=disable",
	} {
		got := wiretest.New(t, conn).URL()
		cfg, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", cfg.Host)
		require.Equal(t, "db", cfg.Database)
		if u, err := url.Parse(got); err == nil && u.Scheme != "" {
			require.Equal(t, strings.ReplaceAll(want, "PORT", u.Port()), got)
		}
	}
}

// A server that is not there is a wire that is cut.
func TestNoServer(t *testing.T) {
	t.Parallel()
	wire := wiretest.New(t, "postgres://u@127.0.0.1:1/db?sslmode=disable")
	_, err := pgx.Connect(t.Context(), wire.URL())
	require.Error(t, err)
}
