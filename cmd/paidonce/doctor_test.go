package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// payment is an event of stripe about a payment of 50.00 EUR.
func payment(id, payment, ref string, facts ...order.Fact) store.Event {
	return store.Event{
		Event: order.Event{
			ID: id, Type: "payment", At: time.Now(), Realm: "stripe:test", Payment: []string{payment}, Reference: ref, Strength: order.StrengthPayment,
			Facts: facts,
		},
		Account: "shop", Source: "stripe", Delivery: uuid.New(), Payload: []byte(`{"id":"` + id + `"}`),
	}
}

func captured(minor int64, currency string) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Amount: minor, Currency: currency}
}

// patient makes a shop with all that needs a person, as of yesterday or a week ago.
func patient(t *testing.T, s *shop) *store.Store {
	t.Helper()
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	t.Cleanup(done)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	enter := func(events ...store.Event) {
		_, err := st.Apply(t.Context(), events)
		require.NoError(t, err)
	}
	told := func(ref string, a store.Answer) uuid.UUID {
		found, err := st.FindOrders(t.Context(), "shop", ref)
		require.NoError(t, err)
		l, err := st.Look(t.Context(), "shop", found[0].ID, time.Minute)
		require.NoError(t, err)
		require.NotNil(t, l.Claim)
		_, err = st.Settle(t.Context(), *l.Claim, a, 0)
		require.NoError(t, err)
		return found[0].ID
	}
	paid := func(ref string, a store.Answer) uuid.UUID {
		registered(t, st, ref, 5000)
		enter(payment("evt_"+ref, "pi_"+ref, ref, captured(5000, "EUR")))
		return told(ref, a)
	}
	fulfilled := store.Answer{Done: true}
	paid("ord_fine", fulfilled)
	registered(t, st, "ord_cart", 10000)

	uncertain := store.MoveAnswer{Status: store.TransactionUncertain, Stop: true, Code: "outcome_unknown", Detail: "it answered 500"}
	refund(t, st, paid("ord_unsure", fulfilled), "rf_unsure", uncertain)
	uncertain.Code, uncertain.Detail = store.CodeKeyReused, "keys for idempotent requests"
	refund(t, st, paid("ord_reused", fulfilled), "rf_reused", uncertain)
	sent := store.MoveAnswer{Status: store.TransactionSent, Wait: 100 * time.Hour, Code: store.CodeCredentialsDenied, Detail: "stripe answered 401"}
	refund(t, st, paid("ord_denied", fulfilled), "rf_denied", sent)
	sent.Code, sent.Detail = "unanswered", "stripe does not answer"
	refund(t, st, paid("ord_slow", fulfilled), "rf_slow", sent)

	paid("ord_dead", store.Answer{Dead: true, Err: "422 Unprocessable Entity"})
	paid("ord_trying", store.Answer{Wait: 100 * time.Hour, Err: "503 Service Unavailable"})
	registered(t, st, "ord_owed", 5000)
	enter(payment("evt_owed", "pi_owed", "ord_owed", captured(5000, "EUR")))

	registered(t, st, "ord_over", 5000)
	enter(payment("evt_over", "pi_over", "ord_over", captured(6000, "EUR")))
	told("ord_over", fulfilled)
	registered(t, st, "ord_usd", 5000)
	enter(payment("evt_usd", "pi_usd", "ord_usd", captured(5000, "USD")))
	registered(t, st, "ord_part", 5000)
	enter(payment("evt_part", "pi_part", "ord_part", captured(2000, "EUR")))
	enter(payment("evt_stub", "pi_stub", "it's ord 7", captured(5000, "EUR")))
	registered(t, st, "ord_held", 5000)
	enter(payment("evt_held", "pi_held", "ord_held", order.Fact{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}))
	registered(t, st, "ord_waits", 5000)
	enter(payment("evt_waits", "pi_waits", "ord_waits", order.Fact{Kind: order.KindPhase, Status: order.StatusProcessing}))

	broken := payment("evt/1?'", "pi_broken", "")
	broken.Payment, broken.Broken = nil, "the amount is no integer"
	enter(broken, payment("evt_nameless", "pi_nameless", "", captured(5000, "EUR")), payment("evt_lost", "pi_lost", "", captured(5000, "EUR")))

	_, err = st.Announce(t.Context(), []store.Announcement{{Account: "shop", Source: "stripe", Gateway: "stripe", Object: "payment/1"}})
	require.NoError(t, err)
	c, err := st.ClaimFetch(t.Context(), "shop", "stripe", "payment/1", time.Minute)
	require.NoError(t, err)
	_, err = st.SettleFetch(t.Context(), *c, store.FetchAnswer{Dead: true, Err: "stripe answered 404"})
	require.NoError(t, err)

	for _, sql := range []string{
		`UPDATE orders SET created_at = created_at - interval '7 days', updated_at = updated_at - interval '7 days'`,
		`UPDATE order_transitions SET at = at - interval '7 days'`,
		`UPDATE order_transitions SET next_at = now() - interval '1 day' WHERE effect_state = 'open' AND attempts = 0`,
		`UPDATE payments SET created_at = created_at - interval '7 days'`,
		`UPDATE processed_events SET received_at = received_at - interval '7 days'`,
		`UPDATE transactions SET created_at = created_at - interval '7 days', sent_at = sent_at - interval '7 days'`,
		`UPDATE fetches SET announced_at = announced_at - interval '7 days', settled_at = settled_at - interval '7 days'`,
		// Ids of orders are by age, which the rows have now.
		`CREATE TEMPORARY TABLE ids AS SELECT id AS old, (lpad(to_hex(('x' || replace(left(id::text, 13), '-', ''))::bit(48)::bigint - 7 * 86400000), 12, '0')
			|| substr(replace(id::text, '-', ''), 13))::uuid AS new FROM orders`,
		`ALTER TABLE order_transitions DISABLE TRIGGER ALL`, `ALTER TABLE payments DISABLE TRIGGER ALL`, `ALTER TABLE transactions DISABLE TRIGGER ALL`,
		`ALTER TABLE orders DISABLE TRIGGER ALL`,
		`UPDATE orders SET id = new FROM ids WHERE id = old`, `UPDATE order_transitions SET order_id = new FROM ids WHERE order_id = old`,
		`UPDATE payments SET order_id = new FROM ids WHERE order_id = old`, `UPDATE transactions SET order_id = new FROM ids WHERE order_id = old`,
		`UPDATE processed_events SET order_id = new FROM ids WHERE order_id = old`,
		`ALTER TABLE order_transitions ENABLE TRIGGER ALL`, `ALTER TABLE payments ENABLE TRIGGER ALL`, `ALTER TABLE transactions ENABLE TRIGGER ALL`,
		`ALTER TABLE orders ENABLE TRIGGER ALL`,
	} {
		_, err := st.Pool().Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	return st
}

// attended is what doctor --json printed.
type attended struct {
	items []attendedItem
	sum   attentionSummary
}

type attendedItem struct {
	Kind, Urgency, Account, What, Text, Do, Command string
	Since                                           time.Time
	AgeSeconds                                      int64 `json:"age_seconds"`
	Request                                         *struct{ Method, Path, Body string }
	OrderID                                         string `json:"order_id"`
	ExternalRef                                     string `json:"external_ref"`
}

func attend(t *testing.T, s *shop, flags string) (a attended) {
	t.Helper()
	out := call(t, words("doctor --json %s -c %s", flags, s.config))
	require.Empty(t, out.stderr)
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	for _, line := range lines[:len(lines)-1] {
		var i attendedItem
		require.NoError(t, json.Unmarshal([]byte(line), &i))
		a.items = append(a.items, i)
	}
	var last struct{ Summary attentionSummary }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	a.sum = last.Summary
	want := exitOK
	if a.sum.Count > 0 {
		want = exitFailed
	}
	require.Equal(t, want, out.code)
	return a
}

func (a attended) kinds() (kinds []string) {
	for _, k := range a.sum.Kinds {
		kinds = append(kinds, fmt.Sprint(k.Kind, " ", k.Count))
	}
	return kinds
}

func (a attended) names() (names []string) {
	for _, i := range a.items {
		names = append(names, i.Kind+" "+i.What)
	}
	return names
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	well := call(t, words("doctor -c %s", s.config))
	require.Equal(t, exitOK, well.code, well.stderr)
	require.Equal(t, "Nothing needs a person.\n", well.stdout)
	require.Empty(t, attend(t, s, "").items)

	yaml, err := os.ReadFile(s.config)
	require.NoError(t, err)
	s.config = write(t, "paidonce.yaml", strings.Replace(string(yaml), `workers: {admin_listen: "off"}`, "workers: {admin_listen: "+freePort(t)+"}", 1))
	st := patient(t, s)
	sick := call(t, words("doctor -c %s", s.config))
	require.Equal(t, exitFailed, sick.code, sick.stderr)
	stable := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).ReplaceAllString(sick.stdout, "00000000-0000-0000-0000-000000000000")
	stable = regexp.MustCompile(`[0-9]{4}(-[0-9]{2}){2}[T ][0-9]{2}(:[0-9]{2}){2}Z?`).ReplaceAllString(stable, "2026-11-23T12:00:00Z")
	golden(t, "doctor.golden", stable)

	first := attend(t, s, "")
	kinds := []string{
		"transaction_uncertain 1", "transaction_key_reused 1", "transaction_denied 1", "effect_dead 1", "effect_late 2",
		"currency_mismatch 1", "overpaid 1", "payment_without_order 2", "order_unregistered 1", "event_quarantined 1", "order_authorized 1",
		"transaction_late 1", "order_pending 1", "underpaid 1", "fetch_dead 1",
	}
	require.Equal(t, kinds, first.kinds())
	require.Equal(t, 17, first.sum.Count)
	require.Len(t, first.items, 17)
	for _, i := range first.items {
		require.Equal(t, "shop", i.Account)
		require.InDelta(t, 7*24*3600, i.AgeSeconds, 600, i.What)
		require.NotEmpty(t, i.Text)
		require.NotEmpty(t, i.Do)
		require.NotEqual(t, i.Command == "", i.Request == nil, "one of them resolves it: %s", i.What)
	}
	require.Equal(t, first.names(), attend(t, s, "--account shop --all").names())
	require.Contains(t, call(t, words("doctor --account nosuch -c %s", s.config)).stderr, `there is no account "nosuch"`)

	// Everything that is printed can be done as it is printed, and what resolves something does.
	resolves := follow(t, s, st, first.items)
	require.Len(t, resolves, 14)
	require.Equal(t, []string{
		"transaction_denied refund " + transactionOf(t, st, "rf_denied"), // the credentials have not been mended
		"effect_late fulfil of order ord_dead",                           // it is called anew
		"effect_late fulfil of order ord_trying",
		"effect_late fulfil of order ord_owed", // no worker runs
		"transaction_late refund " + transactionOf(t, st, "rf_slow"),
	}, attend(t, s, "").names())
}

func transactionOf(t *testing.T, st *store.Store, ref string) (id string) {
	t.Helper()
	require.NoError(t, st.Pool().QueryRow(t.Context(), `SELECT id::text FROM transactions WHERE external_ref = $1`, ref).Scan(&id))
	return id
}

// follow does what items say, with a key of all roles, and returns what of it resolves something.
func follow(t *testing.T, s *shop, st *store.Store, items []attendedItem) (resolved []string) {
	t.Helper()
	a, err := api.New(st, func() []api.Key {
		return []api.Key{{Account: "shop", SHA256: sha256.Sum256([]byte(apiKey)), Read: true, Write: true, Operate: true}}
	}, api.Options{Sources: func(string) []api.Source {
		return []api.Source{{ID: "stripe", Gateway: "stripe", Realm: "stripe:test"}}
	}})
	require.NoError(t, err)
	orders, err := st.FindOrders(t.Context(), "shop", "ord_cart")
	require.NoError(t, err)
	fill := strings.NewReplacer("OUTCOME", "failed", "NOTE", "seen", "AMOUNT", "5000", "CURRENCY", "EUR", "ORDER", orders[0].ID.String())
	for _, i := range items {
		if i.Request == nil {
			a := call(t, append(words("%s", fill.Replace(strings.TrimPrefix(i.Command, "paidonce "))), "-c", s.config))
			require.NotEqual(t, exitUsage, a.code, "%s: %s", i.Command, a.stderr)
			if a.code == exitOK && (strings.Contains(i.Command, "retry") || strings.Contains(i.Command, "resolve")) {
				resolved = append(resolved, i.What)
			}
			continue
		}
		if i.Kind == "order_authorized" { // no gateway of this test can be called: it is let go of
			i.Request.Path, i.Request.Body = strings.Replace(i.Request.Path, "captures", "cancel", 1), ""
		}
		r := httptest.NewRequestWithContext(t.Context(), i.Request.Method, fill.Replace(i.Request.Path), strings.NewReader(fill.Replace(i.Request.Body)))
		r.Header.Set("Authorization", "Bearer "+apiKey)
		if i.Request.Body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, w.Code, "%s %s %s: %s", i.Request.Method, i.Request.Path, i.Request.Body, w.Body)
		resolved = append(resolved, i.What)
	}
	return resolved
}

// Of many, the first are shown; the rest is counted.
func TestDoctorGroups(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	defer done()
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	for i := range 12 {
		ref := fmt.Sprintf("ord_%02d", i)
		registered(t, st, ref, 5000)
		_, err := st.Apply(t.Context(), []store.Event{payment("evt_"+ref, "pi_"+ref, ref, captured(6000, "EUR"))})
		require.NoError(t, err)
	}
	out := call(t, words("doctor -c %s", s.config)).stdout
	require.Contains(t, out, "TODAY, overpaid: 12\n")
	require.Contains(t, out, "ord_09")
	require.NotContains(t, out, "ord_10")
	require.Contains(t, out, "\n  and 2 more; --all shows them\n")
	require.Contains(t, out, "12 things for a person: 0 now, 12 today, 0 soon.\n")
	require.Len(t, attend(t, s, "").items, 10)
	sum := attend(t, s, "").sum
	require.Equal(t, 12, sum.Count)
	require.Equal(t, 10, sum.Kinds[0].Shown)
	require.Len(t, attend(t, s, "--all").items, 12)

	// Without a callback it is not the worker's fault.
	_, err = st.Pool().Exec(t.Context(), `UPDATE order_transitions SET at = at - interval '2 hours'`)
	require.NoError(t, err)
	require.NotContains(t, call(t, words("doctor -c %s", s.config)).stdout, "has no callback")
	yaml, err := os.ReadFile(s.config)
	require.NoError(t, err)
	mute := write(t, "mute.yaml", regexp.MustCompile(`(?m)^    callback: .*\n`).ReplaceAllString(string(yaml), ""))
	require.Contains(t, call(t, words("doctor -c %s", mute)).stdout, "account shop has no callback: nobody is called.\n    Set accounts.shop.callback")
}
