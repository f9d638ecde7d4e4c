package docs_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
)

// The guide names every code of the header, with its status, and none that does not exist.
func TestIdempotencyGuideNamesAllCodes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("idempotency.md")
	require.NoError(t, err)
	var documented []string
	for _, name := range regexp.MustCompile("`(?:\\d{3} )?(idempotency_[a-z_]+)`").FindAllSubmatch(text, -1) {
		if !slices.Contains(documented, string(name[1])) {
			documented = append(documented, string(name[1]))
		}
	}
	var known []string
	for _, code := range api.Codes() {
		if strings.HasPrefix(string(code), "idempotency_") {
			known = append(known, string(code))
			require.Regexp(t, fmt.Sprintf("`%d (idempotency_[a-z_]+`, `)?%s`", code.Status(), code), string(text))
		}
	}
	require.ElementsMatch(t, known, documented)
}

// The table of profiles says what the profiles are.
func TestIdempotencyGuideTellsTheProfiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("idempotency.md")
	require.NoError(t, err)
	strict, relaxed := idempotency.Strict(), idempotency.Relaxed()
	require.Contains(t, string(text), fmt.Sprintf("| a key lives, from its first use | %.0f hours | %.0f hours |", strict.TTL.Hours(), relaxed.TTL.Hours()))
	require.Zero(t, strict.MaxBody)
	require.Contains(t, string(text), fmt.Sprintf("| largest body with a key | no limit of its own | %d bytes |", relaxed.MaxBody))
	for status, kept := range map[int][2]idempotency.Outcome{
		200: {idempotency.Keep, idempotency.Keep}, 409: {idempotency.Keep, idempotency.Forget}, 422: {idempotency.Keep, idempotency.Forget},
		408: {idempotency.Retry, idempotency.Forget}, 425: {idempotency.Retry, idempotency.Forget}, 429: {idempotency.Retry, idempotency.Forget},
		500: {idempotency.Retry, idempotency.Forget}, 503: {idempotency.Retry, idempotency.Forget},
	} {
		require.Equal(t, kept[0], strict.Classify(status, nil), status)
		require.Equal(t, kept[1], relaxed.Classify(status, nil), status)
	}
}

// sent is a request that the example made.
type sent struct{ key, body string }

// The loop of the guide ends with the answer, or with what is final, and never sends another key or body.
func TestIdempotencyGuideLoop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node here")
	}
	problem := func(w http.ResponseWriter, status int, code string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":%q}`, code)
	}
	hangUp := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name    string
		answers []func(http.ResponseWriter)
		want    string
	}{
		{"AtOnce", []func(http.ResponseWriter){}, "201 false ord_1"},
		{"AfterEverythingThatPasses", []func(http.ResponseWriter){
			hangUp,
			func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, `{"data":`)
				panic(http.ErrAbortHandler) // in the middle of the answer
			},
			func(w http.ResponseWriter) { http.Error(w, "<html>", http.StatusBadGateway) },
			func(w http.ResponseWriter) { problem(w, 409, idempotency.CodeKeyInProgress) },
			func(w http.ResponseWriter) { problem(w, 503, idempotency.CodeOutcomeUnknown) },
			func(w http.ResponseWriter) { problem(w, 429, string(api.CodeRateLimited)) },
			func(w http.ResponseWriter) {
				w.Header().Set("Idempotent-Replayed", "true")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"data":{"external_ref":"ord_1"}}`)
			},
		}, "201 true ord_1"},
		{"Reused", []func(http.ResponseWriter){func(w http.ResponseWriter) { problem(w, 422, idempotency.CodeKeyReused) }}, "422 " + idempotency.CodeKeyReused},
		{"Unavailable", []func(http.ResponseWriter){func(w http.ResponseWriter) { problem(w, 409, idempotency.CodeResultUnavailable) }}, "409 " + idempotency.CodeResultUnavailable},
		{"Refused", []func(http.ResponseWriter){hangUp, func(w http.ResponseWriter) { problem(w, 422, string(api.CodeInvalidBody)) }}, "422 invalid_body"},
		{"PatienceEnds", slices.Repeat([]func(http.ResponseWriter){hangUp}, 100), "not known yet: look the order up by external_ref"},
		{"RetryAfterIsObeyed", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600") // longer than patience
			problem(w, 409, idempotency.CodeKeyInProgress)
		}}, "not known yet: look the order up by external_ref"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []sent
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				got = append(got, sent{r.Header.Get("Idempotency-Key"), string(body)})
				n := len(got)
				mu.Unlock()
				if n <= len(tt.answers) {
					tt.answers[n-1](w)
					return
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"data":{"external_ref":"ord_1"}}`)
			}))
			t.Cleanup(srv.Close)
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "send.mjs"), []byte(block(t, "idempotency.md", "js")), 0o600))
			main := `import { send } from "./send.mjs";
				try {
					const { status, replayed, data } = await send(process.argv[2], "k-1", '{"b": 1.0, "a": 2}', { token: "t", pause: 0.001, patience: Number(process.argv[3]) });
					console.log(status, replayed, data.external_ref);
				} catch (err) { console.log(err.message); }`
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.mjs"), []byte(main), 0o600))
			patience := "300" // seconds
			if tt.name == "PatienceEnds" {
				patience = "0.1"
			}
			out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "main.mjs"), srv.URL+"/v1/orders", patience).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, tt.want, strings.TrimSpace(string(out)))
			mu.Lock()
			defer mu.Unlock()
			require.NotEmpty(t, got)
			for _, s := range got {
				require.Equal(t, sent{"k-1", `{"b": 1.0, "a": 2}`}, s)
			}
			if tt.name != "PatienceEnds" && tt.name != "AtOnce" {
				require.Len(t, got, len(tt.answers))
			}
		})
	}
}
