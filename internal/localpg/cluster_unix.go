//go:build unix

package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	startTimeout = 2 * time.Minute  // crash recovery of a dev cluster on a slow disk
	stopTimeout  = 45 * time.Second // the keeper gives a fast shutdown 30 s
)

// cluster is the directory of a server.
//
//	data/         the cluster, of the account postgres runs as
//	password      of the superuser, likewise
//	kind          durable or test
//	postgres.log  what postgres and the keeper say; the one before is postgres.log.1
//	*.lock        see the package comment
type cluster struct {
	dir string
	as  account
}

func openCluster(o Options) (cluster, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return cluster{}, fmt.Errorf("localpg: %w", err)
	}
	as, err := postgresAccount()
	if err != nil {
		return cluster{}, err
	}
	return cluster{dir: dir, as: as}, makeDir(dir, as)
}

func (c cluster) path(name string) string { return filepath.Join(c.dir, name) }
func (c cluster) data() string            { return c.path("data") }

// joinOrStart returns the server that runs, or starts one. The caller holds
// start.lock, and users.lock as a user.
func (c cluster) joinOrStart(ctx context.Context, o Options) (*Server, error) {
	if err := c.settle(o); err != nil {
		return nil, err
	}
	keeper, err := os.OpenFile(c.path("keeper.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	defer keeper.Close()
	wctx, cancel := c.patience(ctx)
	defer cancel()
	for {
		free, err := tryLock(keeper, exclusive)
		if err != nil {
			return nil, err
		}
		if free {
			return c.start(ctx, o, keeper)
		}
		// A keeper lives. Its server runs, or is coming up for somebody who died waiting
		// for it, or is going down on a signal and the lock is free in a moment.
		if s, err := c.join(wctx, o); s != nil || err != nil {
			return s, err
		}
		if err := wait(wctx, poll); err != nil {
			return nil, fmt.Errorf("localpg: %w", err)
		}
	}
}

// join returns the server that runs, nil if there is none just now.
func (c cluster) join(ctx context.Context, o Options) (*Server, error) {
	pid := c.postmaster()
	if !pid.ready {
		return nil, nil
	}
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	s := &Server{Reused: true, dir: c.dir, port: pid.port, password: password}
	s.From = fmt.Sprintf("the server that runs in %s (process %d)", c.dir, pid.pid)
	if err := s.ask(ctx); err != nil {
		var refused *pgconn.PgError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "28") {
			return nil, fmt.Errorf("%w; stop process %d and remove %s to begin anew", err, pid.pid, c.dir)
		}
		return nil, nil // on its way up, or down
	}
	fmt.Fprintf(o.Log, "PostgreSQL %s: using %s on 127.0.0.1:%d\n", s.version, s.From, s.port)
	return s, nil
}

// patience bounds how long a server may take to come up.
func (c cluster) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the server was not ready within %s; see %s", startTimeout, c.path("postgres.log")))
}

// start starts a keeper, and through it postgres, on a cluster that it makes if need be.
// The locked file keeper is handed to the keeper.
func (c cluster) start(ctx context.Context, o Options, keeper *os.File) (*Server, error) {
	if err := c.stopOrphan(ctx); err != nil {
		return nil, err
	}
	bin, err := c.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{From: bin.String(), dir: c.dir}
	if s.password, err = c.password(); err != nil {
		return nil, err
	}
	ctx, cancel := c.patience(ctx)
	defer cancel()
	began := time.Now() //nolint:forbidigo // only for the sentence below
	if s.port, err = launchKeeper(ctx, c.order(o, bin), keeper); err != nil {
		return nil, fmt.Errorf("localpg: start postgres from %s: %w", bin, err)
	}
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Log, "PostgreSQL %s from %s: ready on 127.0.0.1:%d after %s, data in %s\n", s.version, bin, s.port,
		time.Since(began).Round(time.Millisecond), c.dir)
	return s, nil
}

// prepare finds binaries that fit the cluster, making it if there is none.
func (c cluster) prepare(ctx context.Context, o Options) (binaries, error) {
	have := c.major()
	if stale := c.postmaster().pid != 0; stale && o.Durable {
		// Its number may have gone to another process since, as after a reboot: postgres
		// would take that for a server and refuse to start. That none runs is known.
		if err := os.Remove(filepath.Join(c.data(), "postmaster.pid")); err != nil {
			return binaries{}, fmt.Errorf("localpg: %w", err)
		}
	} else if stale {
		// Without fsync, a server that did not say goodbye may have left anything.
		fmt.Fprintf(o.Log, "the test cluster in %s was not shut down properly: making it anew\n", c.dir)
		have = 0
	}
	finder := finder{Options: o, as: c.as, major: have}
	bin, err := finder.find(ctx)
	var wrong *versionError
	if errors.As(err, &wrong) && !o.Durable {
		have, finder.major = 0, 0
		bin, err = finder.find(ctx)
	}
	if err != nil {
		if errors.As(err, &wrong) {
			return binaries{}, fmt.Errorf("%w; install it, or remove %s to begin anew without its data", err, c.dir)
		}
		return binaries{}, err
	}
	if have != 0 {
		return bin, nil
	}
	return bin, c.initdb(ctx, o, bin)
}

// settle notes what the directory is for, or refuses to use it for the other thing.
func (c cluster) settle(o Options) error {
	kind := "test"
	if o.Durable {
		kind = "durable"
	}
	had, err := os.ReadFile(c.path("kind"))
	if len(had) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) { // empty: killed while it wrote
		had, err = []byte(kind), os.WriteFile(c.path("kind"), []byte(kind), 0o600)
	}
	if err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	if string(had) != kind {
		return fmt.Errorf("localpg: %s holds a %s cluster and a %s one was asked for; choose another directory", c.dir, had, kind)
	}
	return nil
}

// initdb makes the cluster beside its place and moves it there when it is whole, so
// that a kill in between leaves nothing that looks like one.
func (c cluster) initdb(ctx context.Context, o Options, bin binaries) error {
	fresh, pwfile := c.path("data.new"), c.path("password")
	for _, path := range []string{fresh, c.data(), pwfile} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("localpg: %w", err)
		}
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	if err := os.WriteFile(pwfile, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	if err := errors.Join(c.as.own(fresh), c.as.own(pwfile)); err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	args := []string{
		"--pgdata", fresh, "--username", superuser, "--pwfile", pwfile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-instructions",
	}
	if !o.Durable {
		args = append(args, "--no-sync")
	}
	began := time.Now() //nolint:forbidigo // only for the sentence below
	cmd := exec.CommandContext(ctx, filepath.Join(bin.dir, "initdb"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.dir, minimalEnv(c.dir), c.as.sysProcAttr()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("localpg: initdb from %s: %w: %s%s", bin, err, tail(string(out), 5), c.hint(string(out)))
	}
	if err := os.Rename(fresh, c.data()); err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	fmt.Fprintf(o.Log, "made a new cluster in %s (%s)\n", c.dir, time.Since(began).Round(time.Millisecond))
	return nil
}

// hint explains the one failure of initdb whose own words do not say what to do.
func (c cluster) hint(out string) string {
	if strings.Contains(out, "could not look up effective user ID") {
		return fmt.Sprintf("; the user id %d has no name in /etc/passwd, as happens in containers started with an arbitrary one, "+
			"and PostgreSQL wants a name: add an entry, or set PAIDONCE_DATABASE_URL (for tests PAIDONCE_TEST_DATABASE_URL)", os.Geteuid())
	}
	return ""
}

// major returns the major version of the cluster, 0 if there is none.
func (c cluster) major() int {
	b, err := os.ReadFile(filepath.Join(c.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

func (c cluster) password() (string, error) {
	b, err := os.ReadFile(c.path("password"))
	if err != nil {
		return "", fmt.Errorf("localpg: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// pidFile is what postmaster.pid says.
type pidFile struct {
	pid, port int
	ready     bool
}

// postmaster reads postmaster.pid. The zero value means that there is none; a
// file that is still being written has a pid but is not ready.
func (c cluster) postmaster() pidFile {
	b, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return pidFile{}
	}
	// Lines: pid, data directory, start time, port, socket directory, listen address, shared memory, status.
	lines := append(strings.Split(string(b), "\n"), make([]string, 8)...)
	var p pidFile
	p.pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	p.port, _ = strconv.Atoi(strings.TrimSpace(lines[3]))
	p.ready = p.pid > 0 && p.port > 0 && strings.TrimSpace(lines[7]) == "ready"
	return p
}

// stopOrphan stops a server whose keeper is gone. The caller holds keeper.lock, so
// whatever runs on this data has none.
func (c cluster) stopOrphan(ctx context.Context) error {
	pid := c.postmaster().pid
	if pid <= 0 || !c.isPostmaster(ctx, pid) {
		return nil
	}
	err := syscall.Kill(pid, syscall.SIGINT)
	for err == nil && c.isPostmaster(ctx, pid) {
		err = wait(ctx, poll)
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("localpg: stop the server left behind in %s (pid %d): %w", c.dir, pid, err)
	}
	return nil
}

// isPostmaster reports whether the process is the server of this cluster: postgres
// works in its data directory, and has it in its arguments.
func (c cluster) isPostmaster(ctx context.Context, pid int) bool {
	if _, err := os.Stat("/proc/self/cwd"); err == nil {
		cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil {
			return false
		}
		data, err := os.Stat(c.data())
		return err == nil && os.SameFile(cwd, data)
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), c.data())
}

// tail returns the last n lines that are not empty, as one.
func tail(s string, n int) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// minimalEnv keeps what the user's shell says about PostgreSQL (PGDATA, PGPORT,
// PGOPTIONS, locales) away from ours.
func minimalEnv(dir string) []string {
	return []string{"LC_ALL=C", "HOME=" + dir, "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
}
