package e2e_test

import (
	"bytes"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// shop is a callback of examples/ that runs as a process.
type shop struct {
	url string

	language string
	dir      string
	cmd      *exec.Cmd
	out      *buffer
}

var shops = map[string][]string{
	"node": {"node", "../examples/node/callback.mjs"}, "python": {"python3", "../examples/python/callback.py"},
}

// startShop starts the callback of a language, on a folder of its own. It returns nil where this machine cannot run it.
func startShop(t *testing.T, language string) *shop {
	t.Helper()
	if _, err := exec.LookPath(shops[language][0]); err != nil {
		t.Logf("there is no %s here", shops[language][0])
		return nil
	}
	s := &shop{language: language, dir: t.TempDir()}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *shop) start(t *testing.T) {
	t.Helper()
	command := shops[s.language]
	listening := make(chan string, 1)
	s.out = &buffer{}
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Env = append(cleanEnv(), "PAIDONCE_SECRET="+callbackSecret, "PORT=0", "SHOP_DIR="+s.dir)
	s.cmd.Stderr = s.out
	s.cmd.Stdout = &lineWriter{line: func(line string) {
		if port, ok := strings.CutPrefix(line, "listening on "); ok {
			listening <- port
			return
		}
		_, _ = s.out.Write([]byte(line + "\n"))
	}}
	require.NoError(t, s.cmd.Start())
	select {
	case port := <-listening:
		s.url = "http://127.0.0.1:" + port + "/paidonce"
	case <-time.After(readyWithin):
		s.kill()
		require.Fail(t, "the callback does not listen", s.out.String())
	}
}

func (s *shop) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// told waits until the shop has been told to do something, and sees that it was told once.
func (s *shop) told(t *testing.T, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.out.String(), what+"\n") }, readyWithin, 5*time.Millisecond, "%s: %s", what, s.out)
	require.Equal(t, 1, strings.Count(s.out.String(), what+"\n"), s.out.String())
}

// call sends an effect of ord_1, signed at a time, and returns the answer's code.
func (s *shop) call(t *testing.T, effect, version, secret string, at time.Time) int {
	t.Helper()
	body := []byte(`{"type":"order.` + effect + `","data":{"external_ref":"ord_1","effect":"` + effect + `","version":` + version + `,"after":"told"}}`)
	scheme, ok := signature.Lookup("standard")
	require.True(t, ok)
	signed, err := scheme.Sign(body, secret, at, signature.SignOptions{ID: "0195b1a0-0000-7000-8000-000000000001:" + version + ":" + effect})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = signed.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// The callbacks of examples/ take a genuine call once, whatever comes again or late, also after they were killed, and refuse others.
func TestClientCallbacks(t *testing.T) {
	t.Parallel()
	for language := range shops {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, language)
			if s == nil {
				t.Skip("its runtime is not here")
			}
			now := time.Now()
			require.Equal(t, http.StatusNoContent, s.call(t, "fulfil", "3", callbackSecret, now))
			require.Equal(t, http.StatusNoContent, s.call(t, "fulfil", "3", callbackSecret, now), "again")
			require.Equal(t, http.StatusNoContent, s.call(t, "hold", "2", callbackSecret, now), "late")
			require.Equal(t, http.StatusUnauthorized, s.call(t, "revoke", "9", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", now))
			require.Equal(t, http.StatusUnauthorized, s.call(t, "revoke", "9", callbackSecret, now.Add(-6*time.Minute)), "old")
			s.told(t, "fulfil ord_1 after told")

			s.kill()
			before := s.out.String()
			s.start(t)
			require.Equal(t, http.StatusNoContent, s.call(t, "fulfil", "3", callbackSecret, now), "again, after a crash")
			require.Equal(t, http.StatusNoContent, s.call(t, "revoke", "5", callbackSecret, now))
			s.told(t, "revoke ord_1 after told")
			done := regexp.MustCompile(`(?m)^(\w+) ord_1 after told$`).FindAllStringSubmatch(before+s.out.String(), -1)
			require.Len(t, done, 2, before+s.out.String())
			require.Equal(t, []string{"fulfil", "revoke"}, []string{done[0][1], done[1][1]})
		})
	}
}
