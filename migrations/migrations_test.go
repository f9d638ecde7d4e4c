package migrations_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/store/storetest"
)

// migrateEnv makes this test binary a process that migrates the database it names.
const migrateEnv = "PAIDONCE_MIGRATIONS_TEST_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(migrateEnv); url != "" {
		log := slog.New(slog.NewTextHandler(os.Stdout, nil))
		if err := migrations.Up(context.Background(), url, log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// recorder is a log that goroutines share.
type recorder struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *recorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *recorder) applied() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.b.String(), "migration applied")
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func count(t *testing.T, db *pgx.Conn, sql string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// file is a migration of goose's.
func file(sql string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + ";\n")}
}

func TestUpFromManyAtOnce(t *testing.T) {
	t.Parallel()
	const goroutines, processes = 8, 3
	url := storetest.OpenEmpty(t)
	exe, err := os.Executable()
	require.NoError(t, err)

	var log recorder
	errs, counts := make([]error, goroutines+processes), make([]int, goroutines)
	outs := make([][]byte, processes)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() { counts[i], errs[i] = migrations.UpCount(t.Context(), url, log.logger()) })
	}
	for i := range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), migrateEnv+"="+url)
			outs[i], errs[goroutines+i] = cmd.CombinedOutput()
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, "worker %d: %s", i, outs[max(0, i-goroutines)])
	}

	applied, counted := log.applied(), 0
	for _, n := range counts {
		counted += n
	}
	require.Equal(t, applied, counted, "each counts what it applied itself")
	for _, out := range outs {
		applied += bytes.Count(out, []byte("migration applied"))
	}
	steps, err := migrations.Status(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, len(steps), applied, "every step by exactly one of them")
	conn := connect(t, url)
	require.NoError(t, migrations.Check(t.Context(), conn))
	require.Equal(t, 1, count(t, conn, `SELECT count(*) FROM paidonce_migrations WHERE version_id = 1`))
	require.Zero(t, count(t, conn, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	url := storetest.OpenEmpty(t)

	before, err := migrations.Status(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, migrations.Step{Origin: "paidonce", Version: 1, Name: "00001_init.sql"}, before[0])
	for _, s := range before {
		require.True(t, s.Pending(), "%+v", s)
		require.NotEmpty(t, s.Name)
	}
	conn := connect(t, url)
	require.Zero(t, count(t, conn, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`), "Status only reads")

	began := time.Now()
	require.NoError(t, migrations.Up(t.Context(), url, nil))
	after, err := migrations.Status(t.Context(), url)
	require.NoError(t, err)
	require.Len(t, after, len(before))
	for i, s := range after {
		require.False(t, s.Pending(), "%+v", s)
		require.WithinDuration(t, began, *s.AppliedAt, 5*time.Minute, "times have their zone")
		s.AppliedAt = nil
		require.Equal(t, before[i], s)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	two := fstest.MapFS{"00001_init.sql": file(`SELECT 1`), "00002_more.sql": file(`CREATE TABLE more ()`)}
	one := fstest.MapFS{"00001_init.sql": two["00001_init.sql"]}

	t.Run("NoSchema", func(t *testing.T) {
		t.Parallel()
		err := migrations.Check(t.Context(), connect(t, storetest.OpenEmpty(t)))
		var old *migrations.OldSchemaError
		require.ErrorAs(t, err, &old)
		require.Zero(t, old.Have)
		require.NotZero(t, old.Need.Paidonce)
		require.EqualError(t, err, "the database has no Paidonce schema; run paidonce migrate up")
	})
	t.Run("Old", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenEmpty(t)
		require.NoError(t, migrations.UpFS(t.Context(), url, one, nil))
		err := migrations.CheckFS(t.Context(), connect(t, url), two)
		var old *migrations.OldSchemaError
		require.ErrorAs(t, err, &old)
		require.EqualValues(t, 1, old.Have.Paidonce)
		require.EqualValues(t, 2, old.Need.Paidonce)
		require.Equal(t, old.Have.River, old.Need.River)
		require.ErrorContains(t, err, "older than this program")
		require.ErrorContains(t, err, "run paidonce migrate up")
		require.NoError(t, migrations.UpFS(t.Context(), url, two, nil))
		require.NoError(t, migrations.CheckFS(t.Context(), connect(t, url), two))
	})
	t.Run("OldRiver", func(t *testing.T) {
		t.Parallel()
		conn := connect(t, storetest.OpenURL(t))
		_, err := conn.Exec(t.Context(), `DELETE FROM river_migration WHERE version = (SELECT max(version) FROM river_migration)`)
		require.NoError(t, err)
		var old *migrations.OldSchemaError
		require.ErrorAs(t, migrations.Check(t.Context(), conn), &old)
		require.Equal(t, old.Need.River-1, old.Have.River)
	})
	t.Run("RiverHalfWayWithoutLines", func(t *testing.T) {
		t.Parallel()
		conn := connect(t, storetest.OpenURL(t))
		_, err := conn.Exec(t.Context(), `
			DROP TABLE river_migration;
			CREATE TABLE river_migration (version bigint, created_at timestamptz DEFAULT now());
			INSERT INTO river_migration (version) VALUES (1), (2)`)
		require.NoError(t, err)
		var old *migrations.OldSchemaError
		require.ErrorAs(t, migrations.Check(t.Context(), conn), &old)
		require.EqualValues(t, 2, old.Have.River)
	})
	t.Run("NewerIsAccepted", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenEmpty(t)
		require.NoError(t, migrations.UpFS(t.Context(), url, two, nil))
		conn := connect(t, url)
		require.NoError(t, migrations.CheckFS(t.Context(), conn, one))
		steps, err := migrations.InspectFS(t.Context(), conn, one)
		require.NoError(t, err)
		require.False(t, steps[0].Newer)
		require.True(t, steps[1].Newer)
		require.EqualValues(t, 2, steps[1].Version)
		require.False(t, steps[1].Pending())
		require.Equal(t, "river", steps[2].Origin)
		require.NoError(t, migrations.UpFS(t.Context(), url, one, nil), "the old program's migrate has nothing to do")
	})
	t.Run("DatabaseGone", func(t *testing.T) {
		t.Parallel()
		conn := connect(t, storetest.OpenURL(t))
		require.NoError(t, conn.Close(t.Context()))
		err := migrations.Check(t.Context(), conn)
		require.ErrorContains(t, err, "read the schema's version")
		var old *migrations.OldSchemaError
		require.NotErrorAs(t, err, &old, "nobody should migrate because of a bad line")
	})
}

func TestFailedStep(t *testing.T) {
	t.Parallel()
	url := storetest.OpenEmpty(t)
	files := fstest.MapFS{
		"00001_good.sql":  file(`CREATE TABLE good ()`),
		"00002_bad.sql":   file("CREATE TABLE half ();\nCREATE TABLE good ()"),
		"00003_never.sql": file(`CREATE TABLE never ()`),
	}
	var log recorder
	err := migrations.UpFS(t.Context(), url, files, log.logger())
	require.ErrorContains(t, err, "00002_bad.sql")
	require.ErrorContains(t, err, `relation "good" already exists`)
	require.Equal(t, 1, log.applied())

	conn := connect(t, url)
	rows, _ := conn.Query(t.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"good", "paidonce_migrations"}, tables, "the failed step left nothing, and River waits for ours")

	files["00002_bad.sql"] = file(`CREATE TABLE better ()`)
	require.NoError(t, migrations.UpFS(t.Context(), url, files, log.logger()))
	require.NoError(t, migrations.CheckFS(t.Context(), conn, files))
}

func TestLock(t *testing.T) {
	t.Parallel()

	t.Run("WaitsForAnotherProcess", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenEmpty(t)
		other := connect(t, url)
		_, err := other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(migrations.LockKey))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err = migrations.Up(ctx, url, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "another process is migrating")
		require.NoError(t, other.Close(t.Context()))
		require.NoError(t, migrations.Up(t.Context(), url, nil))
	})

	// CREATE INDEX CONCURRENTLY waits for every snapshot, so those who wait for the lock must
	// not hold one.
	t.Run("WaitersDoNotBlockConcurrentIndexes", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenEmpty(t)
		files := fstest.MapFS{
			"00001_table.sql": file("CREATE TABLE t AS SELECT 1 AS x"),
			"00002_index.sql": &fstest.MapFile{Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\n" +
				"SELECT pg_sleep(0.3);\nCREATE INDEX CONCURRENTLY i ON t (x);\n")}, // the others are waiting by then
		}
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = migrations.UpFS(t.Context(), url, files, nil) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, 1, count(t, connect(t, url), `SELECT count(*) FROM pg_index WHERE indexrelid = 'i'::regclass AND indisvalid`))
	})

	t.Run("GivesUpRatherThanBlockABusyTable", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenEmpty(t)
		files := fstest.MapFS{"00001_table.sql": file("CREATE TABLE t AS SELECT current_setting('lock_timeout') AS x")}
		require.NoError(t, migrations.UpFS(t.Context(), url, files, nil))
		require.Equal(t, 1, count(t, connect(t, url), `SELECT count(*) FROM t WHERE x = '5s'`))
		busy, err := connect(t, url).Begin(t.Context())
		require.NoError(t, err)
		_, err = busy.Exec(t.Context(), `SELECT * FROM t`)
		require.NoError(t, err)

		files["00002_alter.sql"] = file("ALTER TABLE t ADD COLUMN y int")
		err = migrations.UpFS(t.Context(), url+"&lock_timeout=50ms", files, nil) // what the URL says goes
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, "55P03", pg.Code)
		require.ErrorContains(t, err, "00002_alter.sql")

		require.NoError(t, busy.Rollback(t.Context()))
		require.NoError(t, migrations.UpFS(t.Context(), url, files, nil))
	})
}

// The role's own settings may be made for short queries.
func TestUpIgnoresTheRolesTimeouts(t *testing.T) {
	t.Parallel()
	url := storetest.OpenEmpty(t)
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''1ms''', current_database()); END $$`)
	require.NoError(t, err)
	files := fstest.MapFS{"00001_long.sql": file("SELECT pg_sleep(0.1)")}
	require.NoError(t, migrations.UpFS(t.Context(), url, files, nil))
}

func TestErrorsDoNotShowThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1",
		"postgres://u:hunter2@127.0.0.1:bad/x",
		"host=127.0.0.1 port=x password=hunter2",
	} {
		_, err := migrations.Status(t.Context(), url)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
		err = migrations.Up(t.Context(), url, nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	one, err := migrations.Fingerprint()
	require.NoError(t, err)
	require.Regexp(t, "^[0-9a-f]{64}$", one)
	again, err := migrations.Fingerprint()
	require.NoError(t, err)
	require.Equal(t, one, again)

	a := fstest.MapFS{"00001_a.sql": file("SELECT 1")}
	b := fstest.MapFS{"00001_a.sql": file("SELECT 2")}
	c := fstest.MapFS{"00001_a.sql": file("SELECT 1"), "00002_b.sql": file("SELECT 1")}
	seen := map[string]bool{one: true}
	for _, files := range []fstest.MapFS{a, b, c} {
		sum, err := migrations.FingerprintFS(files)
		require.NoError(t, err)
		require.False(t, seen[sum])
		seen[sum] = true
	}
}
