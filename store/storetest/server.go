package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/migrations"
)

const (
	// urlVariable names a server to use instead of a private one.
	urlVariable = "PAIDONCE_TEST_DATABASE_URL"

	// linger bridges the gap between two test binaries of one "go test". A new start
	// costs 100 ms, so it need not bridge a long compilation.
	linger = 10 * time.Second

	testPrefix     = "paidonce_test_"
	templatePrefix = "paidonce_template_"

	// The advisory locks taken in the server's maintenance database: (lockClass, owner)
	// says that the databases of owner are in use; the two below are no owner's.
	lockClass    = 0x7061_6964
	lockTemplate = 0
	lockSweep    = 1
)

// server is the Postgres that the databases are made on.
type server struct {
	url   func(db string) string
	ours  bool          // a private one, where everything is ours to drop
	admin *pgxpool.Pool // on the maintenance database
	alive *pgx.Conn     // holds the lock of owner until this process ends
	owner uint32
	count atomic.Int64

	mu       sync.Mutex
	template string // "" until it is known to exist
}

// cwd is noted before a test can change it.
var cwd, _ = os.Getwd()

// theServer returns the server of this process.
var theServer = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // npm on a slow line
	defer cancel()
	if external := os.Getenv(urlVariable); external != "" {
		s, err := connect(ctx, external, func(db string) string { return withDatabase(external, db) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", urlVariable, err)
		}
		return s, nil
	}
	// Never stopped: the end of the process is the end of its use.
	pg, err := localpg.Start(ctx, localpg.Options{
		Dir:    localpg.DefaultDir("test "+moduleRoot(cwd), os.Getenv),
		Linger: linger,
		Log:    os.Stderr,
		Settings: map[string]string{
			"max_connections": "300",
			"shared_buffers":  "128MB",
		},
	})
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, pg.URL(""), pg.URL)
	if err != nil {
		return nil, err
	}
	s.ours = true
	return s, nil
})

// moduleRoot returns the folder of the go.mod above dir, so that all packages
// of a checkout name the same cluster.
func moduleRoot(dir string) string {
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
	}
	return dir
}

// connect registers this process with the server, and clears up after those that were killed.
func connect(ctx context.Context, maintenance string, url func(string) string) (*server, error) {
	cfg, err := pgxpool.ParseConfig(maintenance)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 4
	cfg.MaxConnIdleTime = 10 * time.Second
	s := &server{url: url}
	if s.admin, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if s.alive, err = pgx.ConnectConfig(ctx, cfg.ConnConfig); err != nil {
		return nil, err
	}
	var random [4]byte
	_, _ = rand.Read(random[:])                            // never fails
	s.owner = binary.BigEndian.Uint32(random[:])>>1 | 1<<8 // an int4, and not one of the fixed keys
	if _, err := s.alive.Exec(ctx, `SELECT pg_advisory_lock($1, $2)`, lockClass, int32(s.owner)); err != nil {
		return nil, err
	}
	return s, s.sweep(ctx)
}

// sweep drops the databases whose owner has ended without doing so.
func (s *server) sweep(ctx context.Context) error {
	return s.locked(ctx, lockSweep, func(conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, `SELECT datname::text FROM pg_database WHERE starts_with(datname::text, $1)`, testPrefix)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			owner, _, _ := strings.Cut(strings.TrimPrefix(name, testPrefix), "_")
			key, err := strconv.ParseInt(owner, 16, 32)
			if err != nil {
				continue // not a name of ours
			}
			var gone bool
			if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, lockClass, int32(key)).Scan(&gone); err != nil {
				return err
			}
			if !gone {
				continue
			}
			err = s.drop(ctx, name, "")
			if _, e := conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, lockClass, int32(key)); e != nil {
				return e
			}
			if err != nil && !isCode(err, "55006") { // in use, by a process that outlived its test
				return err
			}
		}
		return nil
	})
}

// locked runs f on a connection that holds an advisory lock.
func (s *server) locked(ctx context.Context, key int, f func(*pgx.Conn) error) error {
	return s.admin.AcquireFunc(ctx, func(pooled *pgxpool.Conn) error {
		conn := pooled.Conn()
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, $2)`, lockClass, key); err != nil {
			return err
		}
		err := f(conn)
		if _, e := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1, $2)`, lockClass, key); e != nil {
			conn.Close(context.WithoutCancel(ctx)) // gives the lock back in any case
			return errors.Join(err, e)
		}
		return err
	})
}

func (s *server) newName() string {
	return fmt.Sprintf("%s%08x_%d", testPrefix, s.owner, s.count.Add(1))
}

func (s *server) empty(ctx context.Context, name string) error {
	return s.exec(ctx, `CREATE DATABASE `+quote(name)+` TEMPLATE template0`)
}

// clone makes a copy of the template. The template may vanish in between, when a
// binary with other migrations tidies up.
func (s *server) clone(ctx context.Context, name string) error {
	for try := 1; ; try++ {
		template, err := s.ensureTemplate(ctx)
		if err != nil {
			return err
		}
		err = s.exec(ctx, `CREATE DATABASE `+quote(name)+` TEMPLATE `+quote(template))
		if try == 5 || !isCode(err, "3D000") {
			return err
		}
		s.mu.Lock()
		s.template = ""
		s.mu.Unlock()
	}
}

// ensureTemplate returns the name of a database with the current schema, which it makes if need be:
// once per server, whoever comes first. The name has the day in it, because the
// first migration makes partitions from that day on.
func (s *server) ensureTemplate(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.template != "" {
		return s.template, nil
	}
	fingerprint, err := migrations.Fingerprint()
	if err != nil {
		return "", err
	}
	err = s.locked(ctx, lockTemplate, func(conn *pgx.Conn) error {
		var name string
		var exists bool
		err := conn.QueryRow(ctx, `
			SELECT n, EXISTS (SELECT FROM pg_database WHERE datname = n)
			FROM (SELECT $1 || $2 || to_char(now() AT TIME ZONE 'UTC', '_YYYYMMDD')) AS name (n)`,
			templatePrefix, fingerprint[:12]).Scan(&name, &exists)
		if err == nil && !exists {
			err = s.makeTemplate(ctx, name)
		}
		if err == nil {
			s.template = name
		}
		return err
	})
	return s.template, err
}

// makeTemplate migrates a database under another name and renames it when it is whole, so
// that a kill in between leaves no half template.
func (s *server) makeTemplate(ctx context.Context, name string) error {
	if s.ours {
		if err := s.dropTemplates(ctx); err != nil {
			return err
		}
	}
	half := name + "_half"
	if err := s.drop(ctx, half, "WITH (FORCE)"); err != nil {
		return err
	}
	if err := s.empty(ctx, half); err != nil {
		return err
	}
	if err := migrations.Up(ctx, s.url(half), nil); err != nil {
		return err
	}
	// A database somebody is connected to cannot be cloned.
	if err := s.exec(ctx, `ALTER DATABASE `+quote(half)+` ALLOW_CONNECTIONS false`); err != nil {
		return err
	}
	return s.exec(ctx, `ALTER DATABASE `+quote(half)+` RENAME TO `+quote(name))
}

// dropTemplates drops those of other migrations and other days.
func (s *server) dropTemplates(ctx context.Context) error {
	rows, _ := s.admin.Query(ctx, `SELECT datname::text FROM pg_database WHERE starts_with(datname::text, $1)`, templatePrefix)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if e := s.drop(ctx, name, ""); e != nil && !isCode(e, "55006") { // being cloned just now
			err = errors.Join(err, e)
		}
	}
	return err
}

func (s *server) drop(ctx context.Context, name, option string) error {
	return s.exec(ctx, `DROP DATABASE IF EXISTS `+quote(name)+` `+option)
}

func (s *server) exec(ctx context.Context, sql string) error {
	_, err := s.admin.Exec(ctx, sql)
	return err
}

func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// withDatabase returns a connection string, in either form, that names another database.
func withDatabase(conn, db string) string {
	u, err := url.Parse(conn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return conn + " dbname=" + db // the last one counts
	}
	u.Path = "/" + db
	return u.String()
}
