package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func paid(id, p, ref string) gateway.SampleRequest {
	return gateway.SampleRequest{Type: "payment_intent.succeeded", ID: id, Payment: p, Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}}
}

// lose takes out of a database what events had made, but for their bytes.
func lose(t *testing.T, st *store.Store) {
	t.Helper()
	_, err := st.Pool().Exec(t.Context(), `TRUNCATE processed_events, payment_ids, payments, order_transitions, orders CASCADE`)
	require.NoError(t, err)
}

func TestReplayTells(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	misread(t, l.st, paid("evt_1", "pi_1", "ord_7"), nil)
	misread(t, l.st, paid("evt_2", "pi_2", "ord_8"), nil)
	lose(t, l.st)
	registered(t, l.st, "ord_7", 5000)
	registered(t, l.st, "ord_9", 5000)
	misread(t, l.st, paid("evt_3", "pi_3", "ord_9"), nil)
	misread(t, l.st, gateway.SampleRequest{Type: "charge.succeeded", ID: "evt_4", Payment: "pi_3", Reference: "ord_9", Amount: order.Amount{Minor: 5000, Currency: "EUR"}}, nil)
	_, err := l.st.Pool().Exec(t.Context(), `DELETE FROM processed_events WHERE event_id = 'evt_4'`)
	require.NoError(t, err)
	replay := func(args string) answer { return call(t, words("replay --from-db %s -c %s", args, l.config)) }

	dry := replay("")
	require.Equal(t, exitOK, dry.code, dry.stderr)
	require.Empty(t, dry.stderr)
	golden(t, "replay_db.golden", dry.stdout)
	manual, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	require.Contains(t, string(manual), "$ paidonce replay --from-db\n    "+strings.ReplaceAll(strings.TrimSuffix(dry.stdout, "\n"), "\n", "\n    ")+"\n", "the manual shows it")
	require.Equal(t, dry.stdout, replay("--dry-run").stdout, "nothing was written")

	var out struct {
		Applied            bool
		Deliveries, Chosen int
		Events, Known      int
		Orders             []struct {
			Ref           string `json:"external_ref"`
			New           bool
			Before, After struct{ State, Owed string }
		}
		Entered []struct{ ID, Outcome string }
		Skipped []struct{ Code string }
		Next    *string
	}
	read := func(args string) {
		t.Helper()
		a := replay(args + " --json")
		require.Equal(t, exitOK, a.code, a.stderr)
		require.NoError(t, json.Unmarshal([]byte(a.stdout), &out), "and nothing else: "+a.stdout)
	}
	read("")
	require.Equal(t, []any{false, 4, 4, 1}, []any{out.Applied, out.Deliveries, out.Events, out.Known})
	require.Len(t, out.Entered, 3)
	require.Len(t, out.Orders, 2)
	require.Equal(t, "ord_7", out.Orders[0].Ref)
	require.Equal(t, "pending", out.Orders[0].Before.State)
	require.Equal(t, "paid", out.Orders[0].After.State)
	require.True(t, out.Orders[1].New)
	require.NotNil(t, out.Skipped)
	require.Nil(t, out.Next, "it was not interrupted")

	// What each term finds, of what is known and of what is missing.
	for args, want := range map[string][3]int{
		"--where source=stripe": {4, 4, 3}, "--source stripe": {4, 4, 3}, "--source adyen": {}, "--where gateway=stripe,account=shop": {4, 4, 3},
		"--where gateway=paypal": {}, "--where since=1h": {4, 4, 3}, "--where until=1h": {},
		"--where outcome=applied": {1, 1, 0}, "--where outcome=flagged": {}, "--where reason=no_reference": {}, "--where mapping_version<2": {1, 1, 0},
		"--where event=evt_3": {4, 1, 0}, "--where event=evt_2": {4, 1, 1}, "--where type=charge.succeeded": {4, 1, 1}, "--where type=payment_intent.succeeded": {4, 3, 2},
		"--where event=evt_2,type=charge.succeeded": {4, 0, 0}, "--where order=ord_7": {4, 1, 1}, "--where order=ord_8": {4, 1, 1}, "--where order=ord_9": {4, 2, 1},
		"--where order=nosuch": {4, 0, 0}, "--where order=ord_9,outcome=applied": {1, 1, 0}, "--where order=ord_9,type=charge.succeeded --source adyen": {},
	} {
		read(args)
		require.Equal(t, want, [3]int{out.Deliveries, out.Chosen, len(out.Entered)}, args)
	}
	require.Contains(t, replay("--where order=ord_8").stdout, "4 deliveries to read.\n")
	require.Contains(t, replay("--where order=ord_8").stdout, "4 deliveries read, 1 chosen: 1 event, 0 known, 1 missing (1 waiting), 0 skipped.\n1 order would move.")
	require.Equal(t, exitFailed, replay("--where order=nosuch,outcome=applied").code)

	applied := replay("--apply")
	require.Equal(t, exitOK, applied.code, applied.stderr)
	require.Contains(t, applied.stdout, "ord_7 moved from pending to paid (account shop)\n")
	require.Contains(t, applied.stdout, "ord_8 was made, partially_paid (account shop)\n")
	require.Contains(t, applied.stdout, "\n3 events entered, 2 orders moved.\n")
	require.Equal(t, "4 deliveries to read.\n4 deliveries read: 4 events, 4 known, 0 missing, 0 skipped.\nNothing changed.\n", replay("--apply").stdout)
	require.Contains(t, replay("").stdout, "Would change nothing.\n")
	require.Contains(t, call(t, words("explain ord_7 -c %s", l.config)).stdout, "is paid: 50.00 EUR of 50.00 EUR is kept.")

	// What it leaves alone, it says, and ends with 1.
	misread(t, l.st, paid("evt_5", "pi_5", "ord_7"), func(ev *order.Event) { ev.Facts[0].Amount, ev.Own.Minor = 500, 500 })
	other := replay("--apply")
	require.Equal(t, exitFailed, other.code)
	require.Contains(t, other.stdout, "skipped: event evt_5 of source stripe: its bytes mean something else today; paidonce events reevaluate replaces what they meant\n")
	require.Contains(t, other.stdout, "5 deliveries read: 5 events, 4 known, 0 missing, 1 skipped (1 other_meaning).\nNothing changed.\n")
}

// stopping gives a command up once it has written something.
type stopping struct {
	bytes.Buffer
	at   string
	stop context.CancelFunc
}

func (s *stopping) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// A replay that is interrupted says how to go on, and what goes on from there leaves nothing out and does nothing twice.
func TestReplayIsInterrupted(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	const n = 100
	for i := range n {
		misread(t, l.st, paid(fmt.Sprintf("evt_%03d", i), fmt.Sprintf("pi_%d", i), fmt.Sprintf("ord_%d", i)), nil)
	}
	lose(t, l.st)
	run := func(at, args string) (answer, string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, errs := &stopping{at: at, stop: cancel}, &bytes.Buffer{}
		e := &env{getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: out, stderr: errs, now: time.Now}
		code := e.run(ctx, words("replay --from-db %s -c %s", args, l.config))
		next := regexp.MustCompile(`(?m)^paidonce: to go on where it ended: the same with --after (\S+)$`).FindStringSubmatch(errs.String())
		return answer{code, out.String(), errs.String()}, strings.Join(next[min(1, len(next)):], "")
	}
	count := func() (n int) {
		require.NoError(t, l.st.Pool().QueryRow(t.Context(), `SELECT count(*) FROM processed_events`).Scan(&n))
		return n
	}

	a, next := run("to read.", "--apply")
	require.Equal(t, exitFailed, a.code)
	require.Empty(t, next, "nothing was done")
	require.Zero(t, count())

	a, next = run("was made", "--apply")
	require.Equal(t, exitFailed, a.code, a.stdout)
	require.NotEmpty(t, next, a.stderr)
	first := count()
	require.Positive(t, first)
	require.Less(t, first, n)
	require.NotContains(t, a.stdout, "orders moved.", "it is not done")
	require.Contains(t, a.stdout, fmt.Sprintf("%d deliveries read: %d events, 0 known, %d missing (%d waiting), 0 skipped.\n", first, first, first, first))

	a, none := run("never", "--apply --after "+next)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Empty(t, none)
	require.Contains(t, a.stdout, fmt.Sprintf("%d deliveries to read.\n", n-first))
	require.Contains(t, a.stdout, fmt.Sprintf("%d events entered, %d orders moved.\n", n-first, n-first))
	require.Equal(t, n, count())
	a, _ = run("never", "--json --after "+next)
	require.Contains(t, a.stdout, fmt.Sprintf(`"known": %d`, n-first))
}
