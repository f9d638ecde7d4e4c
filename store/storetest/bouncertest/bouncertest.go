//go:build unix

// Package bouncertest puts a PgBouncer in transaction mode between a test and its Postgres.
//
// It runs the binary of the machine, without which the test is skipped: .ci/run installs one where it may. Each test has
// a PgBouncer of its own, on a socket in a folder that is closed to everybody else, which ends with the test. It takes no
// startup parameter that it does not know, as in its own defaults.
package bouncertest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// startWithin is how long PgBouncer may take to listen, on a machine that is busy.
const startWithin = 30 * time.Second

// Options are optional settings.
type Options struct {
	// PoolSize is how many connections to the server there are at most. Default 5: fewer than a test's clients, so that
	// one connection serves many of them.
	PoolSize int

	// Params are added to the connection string that is returned, as in default_query_exec_mode=exec.
	Params map[string]string
}

// Open starts a PgBouncer in front of the server of a connection string, and returns the one that leads through it.
// Where there is no PgBouncer the test is skipped.
func Open(tb testing.TB, conn string, o Options) string {
	tb.Helper()
	binary := find()
	if binary == "" {
		tb.Skip("there is no pgbouncer on this machine; install the package of that name")
	}
	cfg, err := pgconn.ParseConfig(conn)
	if err != nil {
		tb.Fatalf("bouncertest: %v", err)
	}
	if o.PoolSize == 0 {
		o.PoolSize = 5
	}
	as, err := account()
	if err != nil {
		tb.Fatalf("bouncertest: %v", err)
	}
	dir, err := as.folder()
	if err != nil {
		tb.Fatalf("bouncertest: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := configure(dir, cfg, o.PoolSize, as); err != nil {
		tb.Fatalf("bouncertest: %v", err)
	}
	start(tb, binary, dir, as)
	return through(dir, cfg, o.Params)
}

// find returns the path of the binary, or "". Packagers put it where only root's PATH leads.
func find() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

const port = 6432

func configure(dir string, cfg *pgconn.Config, poolSize int, as identity) error {
	ini := fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr =
listen_port = %d
unix_socket_dir = %s
unix_socket_mode = 0700
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
server_lifetime = 3600
`, cfg.Host, cfg.Port, port, dir, filepath.Join(dir, "users"), poolSize)
	users := fmt.Sprintf("%s %s\n", quote(cfg.User), quote(cfg.Password))
	for name, text := range map[string]string{"pgbouncer.ini": ini, "users": users} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := as.own(path); err != nil {
			return err
		}
	}
	return nil
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// start runs PgBouncer until the test ends.
func start(tb testing.TB, binary, dir string, as identity) {
	tb.Helper()
	var said output
	cmd := exec.Command(binary, filepath.Join(dir, "pgbouncer.ini")) //nolint:noctx // it ends with the test, after its cleanups
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	cmd.SysProcAttr = as.attributes()
	if err := cmd.Start(); err != nil {
		tb.Fatalf("bouncertest: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		err := <-ended
		if tb.Failed() {
			tb.Logf("PgBouncer ended (%v) and had said:\n%s", err, said.String())
		}
	})
	socket := filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(port))
	deadline := time.After(startWithin)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("unix", socket); err == nil { //nolint:noctx // answers at once
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			tb.Fatalf("bouncertest: PgBouncer ended: %v\n%s", err, said.String())
		case <-deadline:
			tb.Fatalf("bouncertest: PgBouncer does not listen after %s\n%s", startWithin, said.String())
		}
	}
}

// through returns the connection string that leads through the PgBouncer of a folder.
func through(dir string, cfg *pgconn.Config, params map[string]string) string {
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}, "sslmode": {"disable"}}
	for name, value := range params {
		query.Set(name, value)
	}
	u := url.URL{Scheme: "postgres", User: url.User(cfg.User), Path: "/" + cfg.Database, RawQuery: query.Encode()}
	return u.String()
}

// identity is the user that PgBouncer runs as, which refuses to be root.
type identity struct {
	uid, gid int
	change   bool
}

func account() (identity, error) {
	if os.Geteuid() != 0 {
		return identity{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return identity{}, err
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return identity{}, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return identity{uid, gid, true}, err
}

// folder makes a folder whose path is short enough for a socket's, unlike many a test's own.
func (i identity) folder() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "bouncer-")
	if err != nil {
		return "", err
	}
	return dir, i.own(dir)
}

func (i identity) own(path string) error {
	if !i.change {
		return nil
	}
	return os.Chown(path, i.uid, i.gid)
}

func (i identity) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if i.change {
		attr.Credential = &syscall.Credential{Uid: uint32(i.uid), Gid: uint32(i.gid)}
	}
	dieWithParent(attr)
	return attr
}

// output is a bytes.Buffer for a process that writes while a test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
