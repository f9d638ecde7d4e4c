package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/scenario"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestScenarios plays testdata/scenarios against one serve in this process and
// one work in a process of its own, as dev --replay does.
func TestScenarios(t *testing.T) {
	t.Parallel()
	scs, err := scenario.Load(filepath.Join("..", "testdata", "scenarios"))
	require.NoError(t, err)
	set, err := scenario.Prepare(scs)
	require.NoError(t, err)
	t.Cleanup(set.Close)
	target, _ := openTarget(t, set)

	problems := make(map[string][]string)
	sum, err := set.Run(t.Context(), target, func(p scenario.Progress) {
		problems[p.Name] = p.Problems
		t.Logf("%2d/%d %-32s %5d ms", p.Done, p.Total, p.Name, p.Took.Milliseconds())
	})
	require.NoError(t, err)
	for _, s := range scs {
		t.Run(s.Name, func(t *testing.T) {
			for _, problem := range problems[s.Name] {
				t.Error(problem)
			}
		})
	}
	require.Equal(t, len(scs), sum.Scenarios)
	require.Zero(t, sum.Failed)
	require.Greater(t, sum.Duplicates, 49)
	text, err := json.Marshal(sum)
	require.NoError(t, err)
	t.Logf("%s", text)
}

// TestScenariosSayEverything holds the shipped scenarios to what their
// documentation promises: each looks at state, flags, outcomes and calls.
func TestScenariosSayEverything(t *testing.T) {
	t.Parallel()
	scs, err := scenario.Load(filepath.Join("..", "testdata", "scenarios"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(scs), 24)
	for _, s := range scs {
		require.NotNil(t, s.Expect.Outcomes, "%s: outcomes", s.Name)
		require.NotNil(t, s.Expect.Statuses, "%s: statuses", s.Name)
		require.NotNil(t, s.Expect.Calls, "%s: calls", s.Name)
		require.NotEmpty(t, s.Expect.Orders, "%s: orders", s.Name)
		for ref, o := range s.Expect.Orders {
			if o.Absent {
				continue
			}
			require.NotNil(t, o.Flags, "%s: flags of %s", s.Name, ref)
			require.NotEmpty(t, o.Told, "%s: told of %s", s.Name, ref)
			// Of a stub, the flag says all that its state can.
			require.True(t, o.State != "" || slices.Contains(o.Flags, "unregistered"), "%s: state of %s", s.Name, ref)
		}
	}
}

// TestScenarioNegative sees that a scenario with a false expectation fails, each
// kind of expectation on its own.
func TestScenarioNegative(t *testing.T) {
	t.Parallel()
	scs, err := scenario.Load(filepath.Join("testdata", "scenarios-false"))
	require.NoError(t, err)
	set, err := scenario.Prepare(scs)
	require.NoError(t, err)
	t.Cleanup(set.Close)
	target, _ := openTarget(t, set)
	sum, err := set.Run(t.Context(), target, nil)
	require.NoError(t, err)
	require.Equal(t, len(scs), sum.Failed, "%+v", sum.Failures)
	for _, f := range sum.Failures {
		data, err := os.ReadFile(filepath.Join("testdata", "scenarios-false", f.Name+".want"))
		require.NoError(t, err)
		want := strings.Split(strings.TrimSpace(string(data)), "\n")
		require.Len(t, f.Problems, len(want), f.Name)
		for i, text := range want {
			require.Contains(t, f.Problems[i], text, f.Name)
		}
	}
}

// TestScenarioEndsWithAnAudit: a story that ends as it should, in a database that does not agree with itself, has failed.
func TestScenarioEndsWithAnAudit(t *testing.T) {
	t.Parallel()
	scs, err := scenario.Load(filepath.Join("..", "testdata", "scenarios", "plain-checkout.yaml"))
	require.NoError(t, err)
	set, err := scenario.Prepare(scs)
	require.NoError(t, err)
	t.Cleanup(set.Close)
	target, _ := openTarget(t, set)
	_, err = target.Pool.Exec(t.Context(), `
		CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.cause := 'odd'; RETURN NEW; END $$;
		CREATE TRIGGER spoil BEFORE INSERT ON order_transitions FOR EACH ROW WHEN (NEW.version = 2) EXECUTE FUNCTION spoil()`)
	require.NoError(t, err)
	sum, err := set.Run(t.Context(), target, nil)
	require.NoError(t, err)
	require.Equal(t, 1, sum.Failed)
	require.Len(t, sum.Failures[0].Problems, 1)
	require.Contains(t, sum.Failures[0].Problems[0], "audit: version_cause: account scenario-plain-checkout")
}

// openTarget starts the program with the accounts of a set.
func openTarget(t *testing.T, set *scenario.Set) (scenario.Target, *program) {
	t.Helper()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	file, err := set.File()
	require.NoError(t, err)
	s := plainSettings()
	require.NoError(t, json.Unmarshal(file, &s)) // beside the two accounts that are always there
	p, err := newProgram(t.TempDir(), url, "", false, s)
	require.NoError(t, err)
	t.Cleanup(p.close)
	p.edges = func(e *app.Edges) { e.DialContext, e.RootCAs = set.DialContext, set.RootCAs() }
	require.NoError(t, p.Start(t.Context(), "serve", 1))

	worker := scenario.NewChild(func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(cleanEnv(), envChild+"=work", envConfig+"="+p.configPath(),
			envNetwork+"=", "PAIDONCE_DATABASE_URL="+url)
		cmd.Stderr = &p.logs
		_, err := cmd.StdinPipe() // open for as long as this process lives
		require.NoError(t, err)
		return cmd
	})
	require.NoError(t, worker.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, worker.Stop(ctx))
	})
	return scenario.Target{URL: "http://" + p.Addr(1), Pool: pool, Workers: worker, Parallel: 8}, p
}
