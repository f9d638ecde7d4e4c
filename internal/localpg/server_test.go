//go:build unix

package localpg_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

func TestStart(t *testing.T) {
	t.Parallel()
	var log logBuffer
	s := start(t, localpg.Options{Dir: newDir(t), Settings: map[string]string{"max_connections": "17"}, Log: &log})
	conn := connect(t, s.URL(""))

	t.Run("SaysWhatItUses", func(t *testing.T) {
		require.False(t, s.Reused)
		require.Regexp(t, `^/.+ \(1[5-9]\.`, s.From)
		require.Contains(t, log.String(), "PostgreSQL "+s.Version()+" from "+s.From)
		require.Equal(t, s.Version(), strings.Fields(show(t, conn, "server_version"))[0])
	})
	t.Run("ListensOnLoopbackOnly", func(t *testing.T) {
		require.Equal(t, "127.0.0.1", show(t, conn, "listen_addresses"))
		require.Empty(t, show(t, conn, "unix_socket_directories"))
		require.Contains(t, s.URL("shop"), "@127.0.0.1:"+show(t, conn, "port")+"/shop?")
	})
	t.Run("TakesSettings", func(t *testing.T) {
		require.Equal(t, "17", show(t, conn, "max_connections"))
	})
	t.Run("TradesOnlyTheSafetyOfTheDiskForSpeed", func(t *testing.T) {
		require.Equal(t, "off", show(t, conn, "fsync"))
		require.Equal(t, "on", show(t, conn, "synchronous_commit"), "the program refuses a server without")
	})
	t.Run("RefusesAWrongPassword", func(t *testing.T) {
		u, err := url.Parse(s.URL(""))
		require.NoError(t, err)
		for _, who := range []*url.Userinfo{url.User("postgres"), url.UserPassword("postgres", "postgres")} {
			u.User = who
			_, err = pgx.Connect(t.Context(), u.String())
			var refused *pgconn.PgError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "28P01", refused.Code)
		}
	})
	t.Run("KeepsItsFilesToItself", func(t *testing.T) {
		for name, mode := range map[string]os.FileMode{"password": 0o600, "data": 0o700, "postgres.log": 0o600} {
			info, err := os.Stat(filepath.Join(s.Dir(), name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), name)
		}
	})
	t.Run("HoldsNoLockItself", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("looks into /proc")
		}
		// The lock says that a keeper lives; a server that has lost its keeper must not say so.
		for _, pid := range []int{postmasterPID(t, s.Dir()), keeperPID(t, s.Dir())} {
			fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			require.NoError(t, err)
			require.NotEmpty(t, fds)
			held := slices.ContainsFunc(fds, func(fd string) bool {
				file, _ := os.Readlink(fd)
				return filepath.Base(file) == "keeper.lock"
			})
			require.Equal(t, pid == keeperPID(t, s.Dir()), held)
		}
	})
	t.Run("DoesNotRunAsRoot", func(t *testing.T) {
		info, err := os.Stat(filepath.Join(s.Dir(), "data", "postmaster.pid"))
		require.NoError(t, err)
		require.NotZero(t, info.Sys().(*syscall.Stat_t).Uid)
	})
}

func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	for _, name := range append(localpg.Fixed, "PORT") {
		_, err := localpg.Start(t.Context(), localpg.Options{Settings: map[string]string{name: "1"}})
		require.ErrorContains(t, err, "Settings: "+name)
	}
	_, err := localpg.Start(t.Context(), localpg.Options{Linger: -time.Second})
	require.ErrorContains(t, err, "Linger -1s")
}

// A second Start uses the server of the first, whose end is not the server's.
func TestLastUserStopsTheServer(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "test")
	first := start(t, localpg.Options{Dir: dir})
	second := start(t, localpg.Options{Dir: dir})
	require.True(t, second.Reused)
	require.Equal(t, first.URL("x"), second.URL("x"))
	require.Equal(t, first.Version(), second.Version())
	conn := connect(t, second.URL(""))

	require.NoError(t, first.Stop())
	require.NoError(t, conn.Ping(t.Context()))

	require.NoError(t, second.Stop())
	require.NoFileExists(t, filepath.Join(dir, "data", "postmaster.pid"), "Stop of the last user waits for the server")
	waitCut(t, conn)
	require.NoError(t, second.Stop(), "a second Stop does nothing")
}

// Whoever starts first, everybody gets the same server and nobody makes two clusters.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	const goroutines, processes = 8, 3
	var log logBuffer
	users := make([]*user, processes)
	servers := make([]*localpg.Server, goroutines)
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() { servers[i], errs[i] = localpg.Start(t.Context(), localpg.Options{Dir: dir, Log: &log}) })
	}
	for i := range users {
		wg.Go(func() { users[i] = startUser(t, userOptions{Dir: dir}) })
	}
	wg.Wait()

	said, started := log.String(), 0
	for _, u := range users {
		require.NotNil(t, u)
		require.Equal(t, servers[0].URL(""), u.URL)
		said += u.Log
		if !u.Reused {
			started++
		}
	}
	for i, s := range servers {
		require.NoError(t, errs[i])
		require.Equal(t, servers[0].URL(""), s.URL(""))
		if !s.Reused {
			started++
		}
	}
	require.Equal(t, 1, started)
	require.Equal(t, 1, strings.Count(said, "made a new cluster"))

	for _, s := range servers {
		wg.Go(func() { _ = s.Stop() })
	}
	for _, u := range users {
		wg.Go(func() { u.leave(t) })
	}
	wg.Wait()
	waitStopped(t, dir)
}

// Whoever comes while the last user goes either finds the server running or
// starts it again, and whoever goes does not wait for a server that others use.
func TestUsersComeAndGo(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "test")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				s, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				conn, err := pgx.Connect(t.Context(), s.URL(""))
				if err != nil {
					t.Errorf("connect: %v", err)
				} else if err := conn.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
				if err := s.Stop(); err != nil {
					t.Errorf("stop: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	waitStopped(t, dir)
}

func TestKilledUser(t *testing.T) {
	t.Parallel()

	t.Run("WasTheStarter", func(t *testing.T) {
		t.Parallel()
		dir := newCluster(t, "test")
		starter := startUser(t, userOptions{Dir: dir})
		s := start(t, localpg.Options{Dir: dir})
		require.True(t, s.Reused)
		conn := connect(t, s.URL(""))
		starter.kill(t)
		// Nothing reaches the server now, and that cannot be waited for. But the
		// next user takes the start lock after everything the kill could set off.
		another := startUser(t, userOptions{Dir: dir})
		require.Equal(t, s.URL(""), another.URL)
		another.leave(t)
		require.NoError(t, conn.Ping(t.Context()))
	})
	t.Run("WasTheOnlyOne", func(t *testing.T) {
		t.Parallel()
		dir := newCluster(t, "test")
		only := startUser(t, userOptions{Dir: dir})
		conn := connect(t, only.URL) // a connection is not a use
		only.kill(t)
		waitCut(t, conn)
		waitStopped(t, dir)
	})
	t.Run("LeftAProcessBehindThatForks", func(t *testing.T) {
		t.Parallel()
		dir := newCluster(t, "test")
		s, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
		require.NoError(t, err)
		child := exec.Command("cat") // must not inherit the lock
		stdin, err := child.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		require.NoError(t, s.Stop())
		waitStopped(t, dir)
		require.NoError(t, stdin.Close())
		require.NoError(t, child.Wait())
	})
}

func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent has died")
	}
	dir := newCluster(t, "durable")
	s := start(t, localpg.Options{Dir: dir, Durable: true})
	conn := connect(t, s.URL(""))
	_, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 1`)
	require.NoError(t, err)

	require.NoError(t, syscall.Kill(keeperPID(t, dir), syscall.SIGKILL))
	waitCut(t, conn)
	again := start(t, localpg.Options{Dir: dir, Durable: true})
	require.False(t, again.Reused)
	_, err = connect(t, again.URL("")).Exec(t.Context(), `SELECT * FROM kept`)
	require.NoError(t, err)
}

// A server whose keeper is dead and which nobody told, as on a system without Pdeathsig.
func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "durable")
	orphan, err := localpg.StartWithoutKeeper(localpg.Options{Dir: dir, Durable: true})
	require.NoError(t, err)
	s := start(t, localpg.Options{Dir: dir, Durable: true})
	require.False(t, s.Reused)
	require.NotEqual(t, orphan.PID, postmasterPID(t, dir))
	<-orphan.Exited
}

func TestKilledServer(t *testing.T) {
	t.Parallel()
	kill := func(t *testing.T, durable bool) (before, after *localpg.Server, said string) {
		dir := newCluster(t, map[bool]string{true: "durable", false: "test"}[durable])
		var log logBuffer
		o := localpg.Options{Dir: dir, Durable: durable, Log: &log}
		before = start(t, o)
		conn := connect(t, before.URL(""))
		_, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 1`)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(postmasterPID(t, dir), syscall.SIGKILL))
		waitCut(t, conn)
		return before, start(t, o), log.String()
	}
	t.Run("DurableRecovers", func(t *testing.T) {
		t.Parallel()
		_, after, _ := kill(t, true)
		require.False(t, after.Reused)
		_, err := connect(t, after.URL("")).Exec(t.Context(), `SELECT * FROM kept`)
		require.NoError(t, err)
	})
	t.Run("TestIsMadeAnew", func(t *testing.T) {
		t.Parallel()
		_, after, said := kill(t, false)
		require.False(t, after.Reused)
		require.Contains(t, said, "was not shut down properly: making it anew")
		_, err := connect(t, after.URL("")).Exec(t.Context(), `SELECT * FROM kept`)
		require.ErrorContains(t, err, `"kept" does not exist`)
	})
}

// After a reboot the number in postmaster.pid may be anybody's.
func TestPIDOfSomebodyElse(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "durable")
	o := localpg.Options{Dir: dir, Durable: true}
	stranger := exec.Command("cat")
	_, err := stranger.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	defer func() {
		require.NoError(t, stranger.Process.Kill(), "it must still live")
		_ = stranger.Wait()
	}()
	text := fmt.Sprintf("%d\n%s\n%d\n5432\n\n127.0.0.1\n\nready\n", stranger.Process.Pid, filepath.Join(dir, "data"), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(text), 0o600))
	require.False(t, start(t, o).Reused)
}

func TestLinger(t *testing.T) {
	t.Parallel()
	t.Run("NextUserFindsItRunning", func(t *testing.T) {
		t.Parallel()
		o := localpg.Options{Dir: newCluster(t, "test"), Linger: time.Hour}
		startUser(t, userOptions{Dir: o.Dir, Linger: o.Linger}).leave(t)
		require.True(t, start(t, o).Reused)
	})
	t.Run("NobodyComesAndItStops", func(t *testing.T) {
		t.Parallel()
		o := localpg.Options{Dir: newCluster(t, "test"), Linger: 50 * time.Millisecond}
		s := start(t, o)
		conn := connect(t, s.URL(""))
		require.NoError(t, s.Stop())
		waitCut(t, conn)
		waitStopped(t, o.Dir)
	})
	t.Run("SignalEndsIt", func(t *testing.T) {
		t.Parallel()
		o := localpg.Options{Dir: newCluster(t, "test"), Linger: time.Hour}
		require.NoError(t, start(t, o).Stop())
		require.NoError(t, syscall.Kill(keeperPID(t, o.Dir), syscall.SIGTERM))
		waitStopped(t, o.Dir)
	})
}

func TestDurableAndTestDoNotMix(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "durable")
	start(t, localpg.Options{Dir: dir, Durable: true})
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
	require.ErrorContains(t, err, "holds a durable cluster and a test one was asked for")
}

func TestDurableKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "durable")
	s := start(t, localpg.Options{Dir: dir, Durable: true})
	conn := connect(t, s.URL(""))
	require.Equal(t, "on", show(t, conn, "fsync"))
	_, err := conn.Exec(t.Context(), `CREATE DATABASE shop`)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	s = start(t, localpg.Options{Dir: dir, Durable: true})
	require.False(t, s.Reused)
	require.NoError(t, connect(t, s.URL("shop")).Ping(t.Context()))
}

func TestPortTakenMeanwhile(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "test")
	taken, got, err := localpg.StartOnTakenPort(localpg.Options{Dir: dir})
	require.NoError(t, err)
	require.NotEqual(t, taken, got)
	log, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "could not bind", "the first try must have met the taken port")
}

// The text of an error is all that a user has: it must hold what postgres said.
func TestServerThatWillNotStart(t *testing.T) {
	t.Parallel()
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: newCluster(t, "test"), Settings: map[string]string{"max_connections": "many"}})
	require.ErrorContains(t, err, `invalid value for parameter "max_connections": "many"`)
}

func TestContextEndsTheWait(t *testing.T) {
	t.Parallel()
	dir := newCluster(t, "test")
	lock, err := localpg.Lock(t.Context(), filepath.Join(dir, "start.lock"))
	require.NoError(t, err)
	defer lock.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, io.ErrNoProgress)
	defer cancel()
	_, err = localpg.Start(ctx, localpg.Options{Dir: dir})
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func postmasterPID(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(b), &pid)
	require.NoError(t, err)
	return pid
}
