//go:build unix

package localpg_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

// userEnv makes this test binary a process that uses a server: see beUser.
const userEnv = "PAIDONCE_LOCALPG_TEST_USER"

func TestMain(m *testing.M) {
	if text := os.Getenv(userEnv); text != "" {
		os.Exit(beUser(text))
	}
	code := m.Run()
	_ = os.RemoveAll(original.dir)
	os.Exit(code)
}

// userOptions are the options a user process starts with.
type userOptions struct {
	Dir     string
	Durable bool
	Linger  time.Duration
}

// beUser starts or joins a server, prints one line of JSON about it, and uses it until its
// input ends.
func beUser(text string) int {
	var o userOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var log bytes.Buffer
	s, err := localpg.Start(context.Background(), localpg.Options{
		Dir: o.Dir, Durable: o.Durable, Linger: o.Linger, Log: io.MultiWriter(&log, os.Stderr),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("%s\n", mustJSON(userAnswer{
		URL: s.URL(""), From: s.From, Version: s.Version(), Dir: s.Dir(), Log: log.String(), Reused: s.Reused,
	}))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type userAnswer struct {
	URL, From, Version, Dir, Log string
	Reused                       bool
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// user is a process that uses a server.
type user struct {
	userAnswer
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *logBuffer // stderr
}

// startUser starts a process that uses the server in o.Dir, and waits until it does.
func startUser(t *testing.T, o userOptions, change ...func(*exec.Cmd)) *user {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	u := &user{cmd: exec.Command(exe), said: &logBuffer{}}
	u.cmd.Env = append(os.Environ(), userEnv+"="+string(mustJSON(o)))
	u.cmd.Stderr = u.said
	for _, f := range change {
		f(u.cmd)
	}
	u.stdin, err = u.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := u.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, u.cmd.Start())
	t.Cleanup(func() { _ = u.cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		_ = u.cmd.Wait()
		t.Fatalf("the user process did not start: %v: %s", err, u.said)
	}
	require.NoError(t, json.Unmarshal(line, &u.userAnswer))
	return u
}

// leave ends the process in good order.
func (u *user) leave(t *testing.T) {
	t.Helper()
	require.NoError(t, u.stdin.Close())
	require.NoError(t, u.cmd.Wait(), "%s", u.said)
}

// kill ends the process with SIGKILL.
func (u *user) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, u.cmd.Process.Kill())
	_ = u.cmd.Wait()
}

// newDir returns a directory for a cluster that the user postgres can reach: t.TempDir is
// closed to others. Whatever server is left in it is stopped when the test ends.
func newDir(t *testing.T) string {
	t.Helper()
	base, err := openTempDir()
	require.NoError(t, err)
	dir := filepath.Join(base, "pg")
	t.Cleanup(func() {
		if pid := keeperPID(t, dir); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		waitStopped(t, dir)
		require.NoError(t, os.RemoveAll(base))
	})
	return dir
}

func openTempDir() (string, error) {
	base := os.TempDir()
	if os.Geteuid() == 0 {
		base = "/var/tmp"
	}
	dir, err := os.MkdirTemp(base, "localpg-test-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// newCluster is newDir with a cluster in it: a copy, because initdb takes half a second of
// a processor and most tests are not about it.
func newCluster(t *testing.T, kind string) string {
	t.Helper()
	original.once.Do(func() {
		if original.dir, original.err = openTempDir(); original.err != nil {
			return
		}
		var s *localpg.Server
		if s, original.err = localpg.Start(context.Background(), localpg.Options{Dir: original.dir}); original.err == nil {
			original.err = s.Stop()
		}
	})
	require.NoError(t, original.err)
	dir := newDir(t)
	out, err := exec.Command("cp", "-a", original.dir, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kind"), []byte(kind), 0o600))
	return dir
}

var original struct {
	once sync.Once
	dir  string
	err  error
}

// keeperPID returns the process that holds keeper.lock, 0 if nobody does.
func keeperPID(t *testing.T, dir string) int {
	t.Helper()
	path := filepath.Join(dir, "keeper.lock")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	if f, err := localpg.Lock(ctx, path); err == nil {
		f.Close()
		return 0
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0 // no keeper, but a child between fork and exec has a copy of the file for a moment
	}
	return pid
}

// waitStopped waits until no keeper is left, and so no server.
func waitStopped(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "keeper.lock")
	if _, err := os.Stat(path); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f, err := localpg.Lock(ctx, path)
	require.NoError(t, err, "the server in %s is still there", dir)
	require.NoError(t, f.Close())
	require.NoFileExists(t, filepath.Join(dir, "data", "postmaster.pid"))
}

func start(t *testing.T, o localpg.Options) *localpg.Server {
	t.Helper()
	s, err := localpg.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// waitCut waits until the server cuts the connection.
func waitCut(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := conn.WaitForNotification(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "the server lives on")
}

func show(t *testing.T, conn *pgx.Conn, setting string) string {
	t.Helper()
	var v string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&v))
	return v
}

// logBuffer is a Log that goroutines may share.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
