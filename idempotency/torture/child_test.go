package torture_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childVariable makes the test binary a server; see TestServerProcess.
const childVariable = "PAIDONCE_TEST_IDEMPOTENT_SERVER"

// TestServerProcess is no test: it is what a child process runs.
func TestServerProcess(t *testing.T) {
	doc := os.Getenv(childVariable)
	if doc == "" {
		return
	}
	go func() { // the parent holds the other end: it dies, we die
		_, _ = io.Copy(io.Discard, os.Stdin)
		die()
	}()
	var c serverConfig
	require.NoError(t, json.Unmarshal([]byte(doc), &c))
	s, err := newServer(t.Context(), c, os.Stderr)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	parent := os.NewFile(3, "parent")
	_, err = io.WriteString(parent, listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, parent.Close())
	require.NoError(t, http.Serve(listener, s)) // until it is killed
}

// child is a server in a process of its own.
type child struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startChild starts a server, which is killed at the end of the test at the latest.
func startChild(t *testing.T, c serverConfig) *child {
	t.Helper()
	doc, err := json.Marshal(c)
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "server.log"))
	require.NoError(t, err)
	defer log.Close()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerProcess$", "-test.timeout=0", "-test.count=1")
	cmd.Env = append(os.Environ(), childVariable+"="+string(doc))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{writer} // descriptor 3
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	k := &child{cmd: cmd, stdin: stdin}
	t.Cleanup(func() {
		k.kill()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil && len(text) > 0 {
			t.Logf("a server said:\n%s", text)
		}
	})
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(patience)))
	addr, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NotEmpty(t, addr, "the server did not start")
	k.url = "http://" + string(addr)
	return k
}

// kill is kill -9.
func (k *child) kill() {
	_ = k.cmd.Process.Kill()
	k.ended()
}

// ended waits until the process is gone.
func (k *child) ended() {
	_ = k.cmd.Wait()
	_ = k.stdin.Close()
}

// pid tells servers apart.
func (k *child) pid() int { return k.cmd.Process.Pid }

// diedByItself asserts that the process has killed itself.
func (k *child) diedByItself(t *testing.T) {
	t.Helper()
	k.ended()
	status, ok := k.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal())
}
