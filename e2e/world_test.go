package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/fault"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// world is a stage that a test plays on by itself: real processes, a stripe
// source of account A, and a clock that stands still.
type world struct {
	*cases.Stage
	t       *testing.T
	program *program
	client  *http.Client
}

// newWorld starts one serve and one work, as processes. change may change their
// configuration. However the test ends, its database is audited.
func newWorld(t *testing.T, change func(*settings)) *world {
	t.Helper()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return newWorldOn(t, url, pool, change)
}

// newWorldOn is newWorld on a database that the test has made itself.
func newWorldOn(t *testing.T, url string, pool *pgxpool.Pool, change func(*settings)) *world {
	t.Helper()
	s := plainSettings()
	source, err := json.Marshal(stripeSource())
	require.NoError(t, err)
	s.Accounts[cases.AccountA].Sources["stripe"] = source
	if change != nil {
		change(&s)
	}
	stage, p, err := newStage(t, url, pool, true, s)
	require.NoError(t, err)
	t.Cleanup(stage.Close)
	require.NoError(t, p.SetClock(time.Unix(ownNow, 0)))
	require.NoError(t, startBoth(t.Context(), p))
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log:\n%s", tail(p.Logs()))
		}
	})
	t.Cleanup(func() { // before anything of it is stopped
		if !t.Failed() {
			audittest.Clean(t, pool)
		}
	})
	return &world{Stage: stage, t: t, program: p, client: client}
}

// register registers orders of 50.00 EUR.
func (w *world) register(refs ...string) {
	w.t.Helper()
	for chunk := range slices.Chunk(refs, 100) {
		events := make([]store.Event, len(chunk))
		for i, ref := range chunk {
			events[i] = store.Event{Account: cases.AccountA, Source: store.APISource, Delivery: uuid.New(), Event: order.Event{
				ID: "register:" + ref, Type: "order.registered", At: time.Unix(ownNow, 0), Reference: ref, Strength: order.StrengthPerson,
				Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
			}}
		}
		_, err := w.Store.Apply(w.t.Context(), events)
		require.NoError(w.t, err)
	}
}

// delivery is a signed webhook.
type delivery struct {
	header http.Header
	body   []byte
}

// paid is the webhook that pays an order.
func paid(ref string) delivery {
	return signed(stripeEvent("payment_intent.succeeded", ref, "evt_"+ref))
}

// refunded is the webhook that gives all of it back.
func refunded(ref string) delivery {
	return signed(stripeEvent("refund.created", ref, "evt_refund_"+ref).with(func(m *message) {
		m.sample.Ref, m.sample.At = "re_"+ref, m.sample.At.Add(time.Second)
	}))
}

func signed(m message) delivery {
	header, body, err := m.gateway.Sign(m.source, must(m.gateway.Sample(m.sample)), m.at)
	return delivery{header, must(body, err)}
}

// post sends a delivery to an instance once. A connection that was refused or
// dropped is code 0.
func (w *world) post(ctx context.Context, instance int, d delivery) int {
	addr := w.program.Addr(instance)
	if addr == "" {
		return 0
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/webhooks/stripe", bytes.NewReader(d.body))
	if err != nil {
		return 0
	}
	req.Header = d.header.Clone()
	resp, err := w.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// deliver sends a delivery as a gateway does: again until it is answered 200, to
// one instance or the other.
func (w *world) deliver(ctx context.Context, d delivery, instances ...int) error {
	for try := 0; ; try++ {
		if code := w.post(ctx, instances[try%len(instances)], d); code == http.StatusOK {
			return nil
		} else if code != 0 && code != http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d", code)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eventually polls until f returns "", and fails with what it said last.
func (w *world) eventually(within time.Duration, f func() string) {
	w.t.Helper()
	end := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		said := f()
		if said == "" {
			return
		}
		require.False(w.t, time.Now().After(end), "after %s: %s", within, said)
		<-tick.C
	}
}

// count returns a number from the database.
func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	var n int
	require.NoError(w.t, w.Pool.QueryRow(w.t.Context(), query, args...).Scan(&n))
	return n
}

// owed says which orders still owe their merchant something.
func (w *world) owed() string {
	w.t.Helper()
	rows, _ := w.Pool.Query(w.t.Context(), `SELECT external_ref, told, want FROM orders`)
	type row struct{ Ref, Told, Want string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(w.t, err)
	n, first := 0, ""
	for _, o := range all {
		if effect := order.Next(order.Told(o.Told), order.Want(o.Want)); effect != order.EffectNone {
			n, first = n+1, o.Ref+" owes "+string(effect)
		}
	}
	if n > 0 {
		return fmt.Sprintf("%d orders owe something, like %s", n, first)
	}
	// What was called and not settled may turn out to owe its opposite.
	if n := w.count(`SELECT count(*) FROM order_transitions WHERE effect_state = 'claimed'`); n > 0 {
		return fmt.Sprintf("%d claims", n)
	}
	return ""
}

// held waits until a transaction stands before its commit, and returns its backend.
func (w *world) held(f *fault.Fault) int32 {
	w.t.Helper()
	var pid int32
	w.eventually(30*time.Second, func() string {
		var err error
		pid, err = f.Held(w.t.Context())
		require.NoError(w.t, err)
		if pid == 0 {
			return "no transaction is held"
		}
		return ""
	})
	return pid
}

// killHeld kills the process whose transaction is held, and ends what it left at
// the server: a process that died there never sent its COMMIT.
func (w *world) killHeld(f *fault.Fault, process string, instance int) time.Time {
	w.t.Helper()
	pid := w.held(f)
	require.NoError(w.t, f.Clear(w.t.Context()))
	require.NoError(w.t, w.program.Kill(w.t.Context(), process, instance))
	at := time.Now()
	require.NoError(w.t, fault.Terminate(w.t.Context(), w.Pool, pid))
	return at
}

// hold arms a stop before the commit of a process's transaction.
func (w *world) hold(process string, instance, skip int, verb, table string) *fault.Fault {
	w.t.Helper()
	f, err := fault.Install(w.t.Context(), w.Pool, fault.Spec{
		Kind: fault.HoldCommit, Verb: verb, Table: table, Process: cases.ProcessName(process, instance), Skip: skip, Times: 1,
	})
	require.NoError(w.t, err)
	return f
}
