package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/store/storetest"
)

// client is a checkout of examples/.
type client struct {
	name    string
	needs   []string // programs
	works   []string // a command that fails where the runtime lacks something
	lacks   string   // what that is
	syntax  []string // checks the syntax, without that
	command []string
}

func clients() []client {
	file := func(name string) string { return filepath.Join("..", "examples", filepath.FromSlash(name)) }
	return []client{
		{
			name: "node", needs: []string{"node"}, works: []string{"node", "-e", "fetch.name"}, lacks: "fetch",
			syntax: []string{"node", "--check", file("node/checkout.mjs")}, command: []string{"node", file("node/checkout.mjs")},
		},
		{
			name: "python", needs: []string{"python3"}, works: []string{"python3", "-c", "import sqlite3"}, lacks: "sqlite3",
			syntax:  []string{"python3", "-c", "import ast,sys; ast.parse(open(sys.argv[1]).read())", file("python/checkout.py")},
			command: []string{"python3", file("python/checkout.py")},
		},
		{
			name: "php", needs: []string{"php"}, works: []string{"php", "-r", "curl_version();"}, lacks: "the extension curl",
			syntax: []string{"php", "-l", file("php/checkout.php")}, command: []string{"php", file("php/checkout.php")},
		},
		{
			name: "curl", needs: []string{"bash", "curl"}, works: []string{"curl", "--version"},
			syntax: []string{"bash", "-n", file("curl/checkout.sh")}, command: []string{"bash", file("curl/checkout.sh")},
		},
	}
}

// available skips the test if this machine cannot run the client, after a look at its syntax if it can do that.
func (c client) available(t *testing.T) {
	t.Helper()
	for _, program := range c.needs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here", program)
		}
	}
	out, err := exec.CommandContext(t.Context(), c.syntax[0], c.syntax[1:]...).CombinedOutput()
	require.NoError(t, err, "syntax: %s", out)
	if exec.CommandContext(t.Context(), c.works[0], c.works[1:]...).Run() != nil {
		t.Skipf("%s lacks %s: only the syntax was checked", c.needs[0], c.lacks)
	}
}

// checkout is a client that runs, or is run again, for one cart.
type checkout struct {
	client
	cart     string
	dir      string // of the shop
	url      string
	key      string
	patience string // seconds
}

// run runs the client to its end, or to that of ctx, which kills it.
func (c checkout) run(ctx context.Context) (stdout, stderr string, code int, err error) {
	args := slices.Concat(c.command[1:], []string{c.cart, "5000", "EUR", "stripe", "pi_" + c.cart})
	cmd := exec.CommandContext(ctx, c.command[0], args...)
	ownGroup(cmd) // a script has children
	cmd.Env = append(cleanEnv(), "PAIDONCE_URL="+c.url, "PAIDONCE_API_KEY="+c.key, "SHOP_DIR="+c.dir, "PATIENCE="+c.patience)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode(), err
}

// done runs the client and expects that it ends well, and says which order it was.
func (c checkout) done(t *testing.T) (id string) {
	t.Helper()
	stdout, stderr, code, err := c.run(t.Context())
	require.NoError(t, err)
	require.Zero(t, code, "%s%s", stdout, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2, stdout)
	said := regexp.MustCompile(`^order ([0-9a-f-]{36}) (\w+)$`)
	created, confirmed := said.FindStringSubmatch(lines[0]), said.FindStringSubmatch(lines[1])
	require.NotNil(t, created, stdout)
	require.NotNil(t, confirmed, stdout)
	require.Equal(t, created[1], confirmed[1])
	require.Equal(t, "paid", confirmed[2])
	return created[1]
}

// mall is a running program that shops call through wires.
type mall struct {
	program *program
	pool    *pgxpool.Pool
}

// newMall starts the program. Accounts call the given URLs back.
func newMall(t *testing.T, callbacks map[string]string) *mall {
	t.Helper()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := plainSettings()
	source, err := json.Marshal(stripeSource())
	require.NoError(t, err)
	for name, a := range s.Accounts {
		// Webhooks have one address in the world, whoever they are for.
		a.Sources["stripe-"+strings.ToLower(name)] = source
		if to, ok := callbacks[name]; ok {
			a.Callback["url"] = to
		}
	}
	p, err := newProgram(t.TempDir(), url, "", false, s)
	require.NoError(t, err)
	t.Cleanup(p.close)
	require.NoError(t, startBoth(t.Context(), p))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log:\n%s", tail(p.Logs()))
		}
	})
	return &mall{program: p, pool: pool}
}

func (m *mall) url() string { return "http://" + m.program.Addr(1) }

// orders are the ids of the orders of a cart.
func (m *mall) orders(t *testing.T, cart string) []string {
	t.Helper()
	rows, err := m.pool.Query(t.Context(), `SELECT id::text FROM orders WHERE external_ref = $1`, cart)
	require.NoError(t, err)
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Err())
	return ids
}

// The checkouts of examples/ end with one paid order, and their shops are told once to deliver it, though every answer gets
// lost: all of it, half of it, or because somebody on the way says that it is busy.
func TestClients(t *testing.T) {
	t.Parallel()
	accounts, callers := []string{cases.AccountA, cases.AccountB}, []*shop{startShop(t, "node"), startShop(t, "python")}
	callbacks := map[string]string{}
	for i, s := range callers {
		if s != nil {
			callbacks[accounts[i]] = s.url
		}
	}
	m := newMall(t, callbacks)
	for i, c := range clients() {
		shop := callers[i%2]
		buy := checkout{client: c, cart: "cart_" + c.name, key: apiKeys[accounts[i%2]], patience: "120"}

		t.Run(c.name+"/AnswersAreLost", func(t *testing.T) {
			t.Parallel()
			c.available(t)
			buy := buy
			buy.dir = t.TempDir()
			w := newWire(t, m.url())
			mishaps := []mishap{losesAnswer, cutsAnswer, says(503, "unavailable", 1), says(409, "idempotency_key_in_progress", 1), says(429, "rate_limited", 1), says(502, "", 0)}
			w.on("/v1/orders", mishaps...)
			w.on("/confirm", mishaps...)
			buy.url = w.url

			id := buy.done(t)
			require.Equal(t, []string{id}, m.orders(t, buy.cart))
			created, confirmed := w.seen("/v1/orders"), w.seen("/v1/orders/"+id+"/confirm")
			for _, tries := range [][]seen{created, confirmed} {
				require.Len(t, tries, len(mishaps)+1)
				for i, try := range tries {
					require.Equal(t, tries[0].key, try.key, "one key for all attempts")
					require.Equal(t, tries[0].body, try.body, "the same bytes")
					require.Equal(t, "Bearer "+buy.key, try.authorization)
					if i > 0 {
						require.GreaterOrEqual(t, try.at.Sub(tries[i-1].at), tries[i-1].retryAfter, "Retry-After")
					}
				}
				require.NotEmpty(t, tries[0].key)
				require.True(t, tries[len(tries)-1].replayed, "the first answer, again")
			}
			require.NotEqual(t, created[0].key, confirmed[0].key, "another thing to do, another key")

			// Another process, as after a page was reloaded.
			require.Equal(t, id, buy.done(t))
			require.Equal(t, created[0].key, w.seen("/v1/orders")[len(created)].key)
			require.Equal(t, []string{id}, m.orders(t, buy.cart))
			if shop != nil {
				shop.told(t, "fulfil "+buy.cart+" after nothing")
			}
		})

		t.Run(c.name+"/KilledWhileItWaits", func(t *testing.T) {
			t.Parallel()
			c.available(t)
			buy := buy
			buy.cart, buy.dir = buy.cart+"_killed", t.TempDir()
			w := newWire(t, m.url())
			hold, arrived := holds()
			w.on("/v1/orders", hold)
			buy.url = w.url

			ctx, kill := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, _, code, err := buy.run(ctx)
				if err == nil && code == 0 {
					err = errors.New("it ended well")
				}
				ended <- err
			}()
			select {
			case <-arrived:
			case err := <-ended:
				require.Fail(t, "the client ended before it was killed", "%v", err)
			}
			kill()
			t.Log("it ended with", <-ended)

			id := buy.done(t)
			require.Equal(t, []string{id}, m.orders(t, buy.cart))
			created := w.seen("/v1/orders")
			require.Len(t, created, 2)
			require.Equal(t, created[0].key, created[1].key)
			require.Equal(t, created[0].body, created[1].body)
		})

		t.Run(c.name+"/NotKnownYet", func(t *testing.T) {
			t.Parallel()
			c.available(t)
			buy := buy
			buy.cart, buy.dir, buy.patience = buy.cart+"_later", t.TempDir(), "1"
			w := newWire(t, m.url())
			w.on("/v1/orders", says(503, "unavailable", 3600))
			buy.url = w.url
			stdout, stderr, code, err := buy.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, 75, code, "%s%s", stdout, stderr)
			require.Contains(t, stderr, "not known yet: 503")
			require.Empty(t, stdout)

			buy.patience = "120"
			id := buy.done(t)
			require.Equal(t, []string{id}, m.orders(t, buy.cart))
			require.Equal(t, w.seen("/v1/orders")[0].key, w.seen("/v1/orders")[1].key)
		})

		t.Run(c.name+"/Refused", func(t *testing.T) {
			t.Parallel()
			c.available(t)
			elsewhere := newWire(t, m.url())
			for _, refusal := range []mishap{
				says(400, "idempotency_key_invalid", 0), says(401, "unauthorized", 0), says(403, "forbidden", 0),
				says(409, "possible_duplicate", 0), says(422, "idempotency_key_reused", 0), redirects(307, elsewhere.url),
			} {
				buy := buy
				buy.cart, buy.dir = fmt.Sprintf("%s_%d", buy.cart, refusal.status), t.TempDir()
				w := newWire(t, m.url())
				w.on("/v1/orders", refusal)
				buy.url = w.url
				stdout, stderr, code, err := buy.run(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, code, "%d: %s%s", refusal.status, stdout, stderr)
				require.Len(t, w.seen(""), 1, "%d is final", refusal.status)
				require.Contains(t, stderr, "refused: "+fmt.Sprint(refusal.status))
				require.Contains(t, stderr, refusal.code)
				require.Empty(t, stdout)
				require.Empty(t, m.orders(t, buy.cart))
			}
			require.Empty(t, elsewhere.seen(""), "the key goes to nobody else")
		})
	}
}

// Without what they need they say so, and send nothing.
func TestClientsCalledWrongly(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.available(t)
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), c.command[0], append(c.command[1:len(c.command):len(c.command)], "cart_1", "5000")...)
			cmd.Env = append(cleanEnv(), "PAIDONCE_API_KEY=k", "SHOP_DIR="+dir)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, 2, cmd.ProcessState.ExitCode(), string(out))
			require.Contains(t, string(out), "usage: ")
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
