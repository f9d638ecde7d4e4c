package storetest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/store/storetest"
)

// childEnv makes TestChild do something: see there.
const childEnv = "PAIDONCE_STORETEST_CHILD"

func name(t *testing.T, db migrations.DB) string {
	t.Helper()
	var name string
	require.NoError(t, db.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name))
	return name
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	var yes bool
	require.NoError(t, storetest.Maintenance(t).QueryRow(t.Context(),
		`SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&yes))
	return yes
}

func TestOpen(t *testing.T) {
	t.Parallel()

	t.Run("HasTheSchema", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, migrations.Check(t.Context(), storetest.Open(t)))
	})
	t.Run("HasPartitionsForToday", func(t *testing.T) {
		t.Parallel()
		_, err := storetest.Open(t).Exec(t.Context(), `
			INSERT INTO event_payloads (account_id, source_id, event_id, delivery, header)
			VALUES ('a', 's', 'e', gen_random_uuid(), '{}')`)
		require.NoError(t, err)
	})
	t.Run("IsEachTestsOwn", func(t *testing.T) {
		t.Parallel()
		one, two := storetest.Open(t), storetest.Open(t)
		require.NotEqual(t, name(t, one), name(t, two))
		_, err := one.Exec(t.Context(), `INSERT INTO accounts (id) VALUES ('a')`)
		require.NoError(t, err)
		var n int
		require.NoError(t, two.QueryRow(t.Context(), `SELECT count(*) FROM accounts`).Scan(&n))
		require.Zero(t, n)
	})
	t.Run("IsDroppedAfterTheTest", func(t *testing.T) {
		t.Parallel()
		var open, url, empty string
		var stray *pgx.Conn // of a process that a test has started, say
		t.Run("Test", func(t *testing.T) {
			open = name(t, storetest.Open(t))
			var err error
			stray, err = pgx.Connect(t.Context(), storetest.OpenURL(t))
			require.NoError(t, err)
			url = name(t, stray)
			conn, err := pgx.Connect(t.Context(), storetest.OpenEmpty(t))
			require.NoError(t, err)
			empty = name(t, conn)
			require.NoError(t, conn.Close(t.Context()))
			for _, db := range []string{open, url, empty} {
				require.True(t, exists(t, db))
			}
		})
		for _, db := range []string{open, url, empty} {
			require.False(t, exists(t, db))
		}
		require.Error(t, stray.Ping(t.Context()))
	})
	t.Run("EmptyIsEmpty", func(t *testing.T) {
		t.Parallel()
		conn, err := pgx.Connect(t.Context(), storetest.OpenEmpty(t))
		require.NoError(t, err)
		defer conn.Close(context.Background())
		var old *migrations.OldSchemaError
		require.ErrorAs(t, migrations.Check(t.Context(), conn), &old)
		require.Zero(t, old.Have)
	})
	t.Run("ServesEightGoroutines", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		var conns []*pgxpool.Conn
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 8 {
			conn, err := pool.Acquire(ctx)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			conn.Release()
		}
	})
	t.Run("ServerHasRoom", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("PAIDONCE_TEST_DATABASE_URL") != "" {
			t.Skip("somebody else's server")
		}
		var n string
		require.NoError(t, storetest.Maintenance(t).QueryRow(t.Context(), `SHOW max_connections`).Scan(&n))
		require.Equal(t, "300", n)
	})
}

// noted is a test that only notes its failure.
type noted struct {
	testing.TB
	mu   sync.Mutex
	said string
}

func (n *noted) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said += fmt.Sprintf(format, args...)
}

// Not in parallel: it changes how long closing may take.
func TestLeakedConnectionFailsTheTest(t *testing.T) {
	storetest.SetPatience(t, 50*time.Millisecond)
	pool, err := pgxpool.New(t.Context(), storetest.OpenURL(t))
	require.NoError(t, err)
	leaked, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	test := noted{TB: t}
	storetest.ClosePool(&test, pool)
	require.Contains(t, test.said, "1 connections of its pool are still in use")
	leaked.Release()

	pool, err = pgxpool.New(t.Context(), storetest.OpenURL(t))
	require.NoError(t, err)
	require.NoError(t, pool.Ping(t.Context()))
	test = noted{TB: t}
	storetest.ClosePool(&test, pool)
	require.Empty(t, test.said)
}

// What a killed process leaves is dropped by the next; what a living one uses is not.
func TestSweep(t *testing.T) {
	t.Parallel()
	createDead, die := storetest.NewOwner(t)
	createLiving, leave := storetest.NewOwner(t)
	defer leave()
	dead, busy, living := createDead(), createDead(), createLiving()
	stray, err := pgx.ConnectConfig(t.Context(), func() *pgx.ConnConfig {
		cfg := storetest.Maintenance(t).Config().ConnConfig
		cfg.Database = busy
		return cfg
	}())
	require.NoError(t, err)
	die()

	_, done := storetest.NewOwner(t) // the next process
	done()
	require.False(t, exists(t, dead))
	require.True(t, exists(t, busy), "somebody still uses it")
	require.True(t, exists(t, living))

	require.NoError(t, stray.Close(t.Context()))
	_, done = storetest.NewOwner(t)
	done()
	require.False(t, exists(t, busy))
	_, err = storetest.Maintenance(t).Exec(t.Context(), `DROP DATABASE `+living)
	require.NoError(t, err)
}

// Not in parallel: it takes the template away.
func TestVanishedTemplateIsMadeAgain(t *testing.T) {
	template := storetest.Template(t)
	_, err := storetest.Maintenance(t).Exec(t.Context(), `DROP DATABASE `+template)
	require.NoError(t, err)
	require.NoError(t, migrations.Check(t.Context(), storetest.Open(t)))
	require.True(t, exists(t, template))
}

// TestChild is a test binary of its own, started by the tests below.
func TestChild(t *testing.T) {
	what := os.Getenv(childEnv)
	if what == "" {
		t.Skip("not a child")
	}
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, migrations.Check(t.Context(), storetest.Open(t)))
		})
	}
}

func child(t *testing.T, url string) (string, error) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1", "PAIDONCE_TEST_DATABASE_URL="+url)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Several test binaries on a new server: one makes the template, all clone it, nothing stays but
// the template, and that on the server they were told to use.
func TestManyBinariesOnAGivenServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	if os.Geteuid() == 0 { // t.TempDir is closed to the user postgres
		base, err := os.MkdirTemp("/var/tmp", "storetest-") //nolint:usetesting // see above
		require.NoError(t, err)
		require.NoError(t, os.Chmod(base, 0o755))
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
		dir = filepath.Join(base, "pg")
	}
	pg, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop()) })

	outs, errs := make([]string, 3), make([]error, 3)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { outs[i], errs[i] = child(t, pg.URL("")) })
	}
	wg.Wait()
	for i := range errs {
		require.NoError(t, errs[i], outs[i])
		require.Equal(t, 4, strings.Count(outs[i], "    --- PASS"), outs[i])
	}
	conn, err := pgx.Connect(t.Context(), pg.URL(""))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	rows, _ := conn.Query(t.Context(), `SELECT datname::text FROM pg_database WHERE datname LIKE 'paidonce%'`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{storetest.Template(t)}, names)
}

// A database that cannot be had must not pass for a skipped test.
func TestNoServerFailsTheTest(t *testing.T) {
	t.Parallel()
	out, err := child(t, "postgres://postgres@127.0.0.1:1/postgres?connect_timeout=5")
	require.Error(t, err)
	require.Equal(t, 4, strings.Count(out, "    --- FAIL"), out)
	require.Contains(t, out, "storetest: PAIDONCE_TEST_DATABASE_URL: ")
	require.NotContains(t, out, "SKIP")
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for conn, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable": "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h":                         "postgresql://h/new",
		"host=h dbname=old":                      "host=h dbname=old dbname=new",
	} {
		got := storetest.WithDatabase(conn, "new")
		require.Equal(t, want, got)
		cfg, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "new", cfg.Database)
		require.Equal(t, "h", cfg.Host)
	}
}

// All packages of a checkout share one cluster.
func TestModuleRoot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.Equal(t, deep, storetest.ModuleRoot(deep))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o644))
	require.Equal(t, root, storetest.ModuleRoot(deep))
	require.Equal(t, root, storetest.ModuleRoot(root))
}

func TestStopClock(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	at := time.Date(2026, 3, 1, 10, 0, 59, 999999000, time.UTC)
	set := storetest.StopClock(t, pool, at)
	read := func(db migrations.DB) (clock, now time.Time) {
		require.NoError(t, db.QueryRow(t.Context(), `SELECT clock_timestamp(), now()`).Scan(&clock, &now))
		return clock, now
	}
	clock, now := read(pool)
	require.True(t, at.Equal(clock))
	require.WithinDuration(t, time.Now(), now, time.Hour, "the server's own time goes on")
	require.NoError(t, migrations.Check(t.Context(), pool), "the schema is found as before")
	set(at.Add(time.Microsecond))
	clock, _ = read(pool)
	require.True(t, at.Add(time.Microsecond).Equal(clock))

	other, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	defer other.Close(t.Context())
	clock, _ = read(other)
	require.True(t, at.Add(time.Microsecond).Equal(clock), "whoever connects later has it too")
}
