//go:build unix

package localpg

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// keeperEnv makes this executable a keeper: its value is the order.
const keeperEnv = "PAIDONCE_LOCALPG_KEEPER"

// A test binary has no other place where it could become a keeper: its main is the testing
// package's. So this runs in whatever program imports localpg.
func init() {
	if text := os.Getenv(keeperEnv); text != "" {
		os.Exit(keep(text))
	}
}

// order tells a keeper what to do.
type order struct {
	Dir      string        `json:"dir"`
	Postgres string        `json:"postgres"`
	As       account       `json:"as"`
	Settings []string      `json:"settings"` // name=value
	Linger   time.Duration `json:"linger"`
}

func (c cluster) order(o Options, bin binaries) order {
	settings := map[string]string{"timezone": "UTC", "log_timezone": "UTC", "cluster_name": "paidonce"}
	if !o.Durable {
		maps.Copy(settings, map[string]string{
			"cluster_name": "paidonce-test", "fsync": "off", "full_page_writes": "off",
			"wal_level": "minimal", "max_wal_senders": "0",
		})
	}
	maps.Copy(settings, o.Settings)
	settings["listen_addresses"] = "127.0.0.1"
	settings["unix_socket_directories"] = "" // the usual folder belongs to the system's own server
	ord := order{Dir: c.dir, Postgres: filepath.Join(bin.dir, "postgres"), As: c.as, Linger: o.Linger}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		ord.Settings = append(ord.Settings, name+"="+settings[name])
	}
	return ord
}

// launchKeeper starts a keeper and returns the port of its server once that is ready. The
// keeper inherits the lock with the file, so there is no moment at which nobody holds it.
func launchKeeper(ctx context.Context, ord order, lock *os.File) (port int, err error) {
	text, err := json.Marshal(ord)
	if err != nil {
		return 0, err
	}
	exe, err := executable()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(exe)
	cmd.Args = []string{"paidonce-postgres-keeper", ord.Dir}
	cmd.Dir = "/"
	cmd.Env = append(minimalEnv("/"), keeperEnv+"="+string(text))
	cmd.ExtraFiles = []*os.File{w, lock}
	// A session of its own: Ctrl-C and a closed terminal are for its users to hear of.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go cmd.Wait() //nolint:errcheck // only so that no zombie is left; what it has to say comes through the pipe
	w.Close()

	// Closing the reading end is how ctx interrupts the read. The keeper goes on, and finds no user.
	defer context.AfterFunc(ctx, func() { r.Close() })()
	answer, err := io.ReadAll(r)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	number, ready := strings.CutPrefix(string(answer), "ready ")
	if !ready {
		return 0, errors.New(cmp.Or(strings.TrimSpace(string(answer)), "its keeper ended without a word"))
	}
	return strconv.Atoi(strings.TrimSpace(number))
}

func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil // is there even when the file has been replaced or deleted
	}
	return os.Executable()
}

// keep is a keeper's life. It returns the exit code.
func keep(text string) int {
	answer, lock := os.NewFile(3, "answer"), os.NewFile(4, "keeper.lock")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4) // or postgres would hold the lock in our place
	fail := func(err error) int {
		fmt.Fprintln(answer, err)
		return 1
	}
	var ord order
	if err := json.Unmarshal([]byte(text), &ord); err != nil {
		return fail(err)
	}
	if _, err := fmt.Fprintf(lock, "%-10d\n", os.Getpid()); err != nil { // for people who wonder who holds it
		return fail(err)
	}
	c := cluster{dir: ord.Dir, as: ord.As}
	users, err := os.OpenFile(c.path("users.lock"), os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	log, err := c.openLog()
	if err != nil {
		return fail(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	// Pdeathsig is the death of the thread that forks. Init functions run on the main
	// thread, which lives as long as the process.
	pg, err := ord.startPostgres(log, freePort)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(answer, "ready", pg.port)
	answer.Close()

	unused := make(chan struct{})
	go func() {
		waitUnused(users, ord.Linger)
		close(unused)
	}()
	select {
	case <-pg.exited:
		fmt.Fprintln(log, "keeper: postgres has ended by itself")
		return 1
	case <-unused:
	case <-stop:
	}
	pg.stop()
	runtime.KeepAlive(lock)
	return 0 // gives the locks back
}

// openLog begins a new log and keeps the one before.
func (c cluster) openLog() (*os.File, error) {
	path := c.path("postgres.log")
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
}

// waitUnused returns when nobody has used the server for the time it lingers. It then
// holds the lock, so nobody can begin to use it.
func waitUnused(users *os.File, linger time.Duration) {
	for {
		if err := flock(users, exclusive); err != nil {
			return // the file system does not lock: better no server than one that stays
		}
		if linger == 0 {
			return
		}
		if err := unlock(users); err != nil {
			return
		}
		time.Sleep(linger)
		if unused, err := tryLock(users, exclusive); unused || err != nil {
			return
		}
	}
}

// process is a running postmaster.
type process struct {
	cmd    *exec.Cmd
	port   int
	exited chan struct{}
}

// startPostgres returns when the server is ready. A port that was free when it was
// picked may have been taken since; then it tries another.
func (ord order) startPostgres(log *os.File, freePort func() (int, error)) (*process, error) {
	for try := 1; ; try++ {
		from, err := log.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, err
		}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		pg, err := ord.run(port, log)
		if err != nil {
			return nil, err
		}
		if pg.waitReady(cluster{dir: ord.Dir}) {
			return pg, nil
		}
		said, err := io.ReadAll(io.NewSectionReader(log, from, 1<<20))
		if err != nil {
			return nil, err
		}
		if try < 5 && strings.Contains(string(said), "could not bind") {
			continue
		}
		return nil, fmt.Errorf("%v: %s", pg.cmd.ProcessState, tail(string(said), 4))
	}
}

// freePort returns a port that nobody listens on just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (ord order) run(port int, log *os.File) (*process, error) {
	data := filepath.Join(ord.Dir, "data")
	args := []string{"-D", data, "-p", strconv.Itoa(port)}
	for _, setting := range ord.Settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(ord.Postgres, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ord.Dir, minimalEnv(ord.Dir), log, log
	cmd.SysProcAttr = ord.As.sysProcAttr()
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pg := &process{cmd: cmd, port: port, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its state is in cmd.ProcessState
		close(pg.exited)
	}()
	return pg, nil
}

// waitReady reports whether the server has come up, or has ended. How long that
// may take is for the user to decide; the keeper has time.
func (p *process) waitReady(c cluster) bool {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-p.exited:
			return false
		case <-tick.C:
			if pid := c.postmaster(); pid.ready && pid.pid == p.cmd.Process.Pid {
				return true
			}
		}
	}
}

// stop shuts the server down: politely to its data but not to its clients, then less so.
func (p *process) stop() {
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGINT, 30 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		_ = p.cmd.Process.Signal(step.sig) // it fails when the process has ended, which is the aim
		select {
		case <-p.exited:
			return
		case <-time.After(step.wait):
		}
	}
}
