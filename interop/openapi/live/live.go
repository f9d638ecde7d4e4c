// Package live starts the program for clients to talk to.
package live

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store/storetest"
)

// Program is a running paidonce dev.
type Program struct {
	URL string // without a path
	Key string // of its account, with all roles
}

var address = regexp.MustCompile(`API +(http://\S+)/v1\n`)

// Start builds the command and runs its dev, on a database and in a folder of its own, until the test ends.
func Start(t *testing.T) Program {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "paidonce")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", root(t), "-o", binary, "./cmd/paidonce").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(t.Context(), binary, "dev")
	cmd.Dir = dir
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PAIDONCE_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "PAIDONCE_DATABASE_URL="+storetest.OpenURL(t), "PAIDONCE_LISTEN=127.0.0.1:0", "PAIDONCE_ADMIN_LISTEN=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	said, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		listen(stdout, said)
		_ = cmd.Wait()
	}()
	// The database is dropped after the program has ended: cleanups run from the last to the first, and the test's context is done
	// before all of them.
	t.Cleanup(func() {
		<-ended
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s", text)
		}
	})
	select {
	case url := <-said:
		key, err := os.ReadFile(filepath.Join(dir, ".paidonce", "api_key"))
		require.NoError(t, err)
		return Program{URL: url, Key: strings.TrimSpace(string(key))}
	case <-ended:
	case <-time.After(2 * time.Minute):
	}
	text, _ := os.ReadFile(log.Name())
	require.Fail(t, "paidonce dev did not start", string(text))
	return Program{}
}

// listen reads what the program says until its end, and hands on its address.
func listen(r io.Reader, said chan<- string) {
	var text strings.Builder
	buf := make([]byte, 4096)
	found := false
	for {
		n, err := r.Read(buf)
		text.Write(buf[:n])
		if m := address.FindStringSubmatch(text.String()); m != nil && !found {
			found = true
			said <- m[1]
		}
		if err != nil {
			return
		}
	}
}

// root is the folder of the project.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paidonce/paidonce").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
