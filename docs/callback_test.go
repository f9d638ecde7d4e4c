package docs_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

const callbackSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// block returns the one code block of a language in a document.
func block(t *testing.T, doc, language string) string {
	t.Helper()
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, found, 1, "%s blocks in %s", language, doc)
	return string(found[0][1])
}

// The request that the document shows is one that Paidonce signs.
func TestCallbackExampleIsSigned(t *testing.T) {
	t.Parallel()
	head, body, ok := strings.Cut(block(t, "callback.md", "http"), "\n\n")
	require.True(t, ok)
	header := http.Header{}
	for _, line := range strings.Split(head, "\n")[1:] {
		name, value, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		header.Set(name, value)
	}
	scheme, ok := signature.Lookup("standard")
	require.True(t, ok)
	request := signature.Request{Method: http.MethodPost, Header: header, Body: []byte(strings.TrimSuffix(body, "\n"))}
	require.NoError(t, scheme.Verify(request, []string{callbackSecret}, time.Unix(1772366401, 0)))
}

// The endpoints that the document shows take a genuine call once, whatever comes again or late, and refuse others.
func TestCallbackExamples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		language, file string
		needs          string // the program that runs it
		run            func(dir, port string) []string
	}{
		{"go", "main.go", "go", func(dir, _ string) []string { return []string{"go", "run", filepath.Join(dir, "main.go")} }},
		{"js", "main.mjs", "node", func(dir, _ string) []string { return []string{"node", filepath.Join(dir, "main.mjs")} }},
		{"php", "paidonce", "php", func(dir, port string) []string {
			return []string{"php", "-d", "error_log=/dev/stderr", "-S", "127.0.0.1:" + port, filepath.Join(dir, "paidonce")}
		}},
	} {
		t.Run(tt.language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.needs); err != nil {
				t.Skipf("there is no %s here", tt.needs)
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(block(t, "callback.md", tt.language)), 0o600))
			env := []string{"PAIDONCE_SECRET=" + callbackSecret}
			if tt.language == "php" {
				env = append(env, "DATABASE_DSN=sqlite:"+filepath.Join(dir, "shop.db"))
				makeShop(t, filepath.Join(dir, "shop.db"))
			}
			shop := startShop(t, env, func(port string) []string { return tt.run(dir, port) })

			require.Equal(t, http.StatusNoContent, shop.call(t, "fulfil", 3, callbackSecret))
			require.Equal(t, http.StatusNoContent, shop.call(t, "fulfil", 3, callbackSecret), "again")
			require.Equal(t, http.StatusNoContent, shop.call(t, "hold", 2, callbackSecret), "late")
			require.Equal(t, http.StatusUnauthorized, shop.call(t, "revoke", 9, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"))
			require.Equal(t, http.StatusNoContent, shop.call(t, "revoke", 5, callbackSecret))
			// What it prints comes through a pipe; once the last line is there, all are.
			require.Eventually(t, func() bool { return strings.Contains(shop.out.String(), "revoke ord_1") }, time.Minute, 5*time.Millisecond)
			done := regexp.MustCompile(`(fulfil|hold|release|revoke) ord_1 after told`).FindAllStringSubmatch(shop.out.String(), -1)
			var effects []string
			for _, d := range done {
				effects = append(effects, d[1])
			}
			require.Equal(t, []string{"fulfil", "revoke"}, effects, shop.out.String())
		})
	}
}

// makeShop makes the table of the PHP example; php has SQLite where it has PDO for it.
func makeShop(t *testing.T, file string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "php", "-r", `$db = new PDO("sqlite:$argv[1]"); $db->exec("CREATE TABLE orders (ref text, paidonce_version int)"); $db->exec("INSERT INTO orders VALUES ('ord_1', 0)");`,
		file).CombinedOutput()
	if strings.Contains(string(out), "could not find driver") {
		t.Skip("this php has no SQLite")
	}
	require.NoError(t, err, string(out))
}

// shop is a running example.
type shop struct {
	url string
	out *output
}

// output can be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startShop runs a command that listens on a port, and returns when it does.
func startShop(t *testing.T, env []string, command func(port string) []string) shop {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	args := command(port)
	s := shop{url: "http://" + addr + "/paidonce", out: &output{}}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), append(env, "PORT="+port)...)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	ownGroup(cmd) // go run has a child
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, time.Minute, 20*time.Millisecond, "%v does not listen: %s", args, s.out)
	return s
}

// call sends an effect of the order ord_1, signed, and returns the answer's code.
func (s shop) call(t *testing.T, effect string, version int, secret string) int {
	t.Helper()
	id := "0195b1a0-0000-7000-8000-000000000001:" + string(rune('0'+version)) + ":" + effect
	body := []byte(`{"type":"order.` + effect + `","data":{"external_ref":"ord_1","effect":"` + effect + `","version":` + string(rune('0'+version)) + `,"after":"told"}}`)
	scheme, ok := signature.Lookup("standard")
	require.True(t, ok)
	signed, err := scheme.Sign(body, secret, time.Now(), signature.SignOptions{ID: id})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = signed.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}
