package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// hourly are ages of an hour each.
var hourly = store.AttentionAges{
	Stub: time.Hour, Unplaced: time.Hour, Effect: time.Hour, Movement: time.Hour, Authorized: time.Hour, Pending: time.Hour, Underpaid: time.Hour,
	Silent: time.Hour,
}

// attention are the lists in words.
func attention(t *testing.T, s *store.Store, f store.AttentionFilter) map[string][]string {
	t.Helper()
	a, err := s.Attention(t.Context(), f)
	require.NoError(t, err)
	found := map[string][]string{}
	add := func(list string, words ...any) { found[list] = append(found[list], fmt.Sprint(words...)) }
	for list, ts := range map[string][]store.Transaction{"unknown": a.Unknown, "late": a.Late} {
		for _, tr := range ts {
			add(list, tr.OrderRef, " ", tr.Status, " ", tr.Code)
		}
	}
	for list, es := range map[string][]store.Effect{"dead": a.Dead, "owed": a.Owed} {
		for _, e := range es {
			add(list, e.Ref, " ", e.Effect)
		}
	}
	for list, notes := range map[string][]store.OrderNote{
		"flagged": a.Flagged, "stubs": a.Stubs, "authorized": a.Authorized, "pending": a.Pending, "underpaid": a.Underpaid,
	} {
		for _, n := range notes {
			require.Nil(t, n.Details)
			require.False(t, n.Since.IsZero())
			add(list, n.Ref, " ", n.Flag, n.Payments)
		}
	}
	for list, es := range map[string][]store.StoredEvent{"quarantined": a.Quarantined, "unplaced": a.Unplaced} {
		for _, e := range es {
			add(list, e.ID)
		}
	}
	for _, f := range a.Fetches {
		add("fetches", f.Object)
	}
	for _, q := range a.Silent {
		add("silent", q.ID, " ", q.Events)
	}
	return found
}

// phased says how the payment of an order goes on, without any money.
func phased(id, p, ref string, status order.Status) store.Event {
	e := captured(id, p, ref, 5000)
	e.Facts, e.Own = []order.Fact{{Kind: order.KindPhase, Status: status, Seq: 1}}, nil
	return e
}

// trouble makes one of everything that a person must look at, and much that nobody must.
func trouble(t *testing.T, s *store.Store, pool *pgxpool.Pool) {
	t.Helper()
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account, "other", "still"}))
	// All is well.
	fine := owing(t, s, "fine")
	settle(t, s, claim(t, s, fine), store.Answer{Done: true})
	apply(t, s, register("cart", 5000))
	apply(t, s, register("failed", 5000), phased("evt_failed", "pi_failed", "failed", order.StatusFailed))
	says(t, s, "cart", order.Command{Cancel: true})
	apply(t, s, register("noted", 5000), captured("evt_noted", "pi_noted", "noted", 6000))
	says(t, s, "noted", order.Command{Dismiss: order.FlagOverpaid})
	settle(t, s, claim(t, s, readOrder(t, pool, "noted").ID), store.Answer{Done: true})

	// Calls that move money.
	for ref, a := range map[string]store.MoveAnswer{
		"unsure":  {Status: store.TransactionUncertain, Stop: true, Code: "outcome_unknown"},
		"reused":  {Status: store.TransactionUncertain, Wait: time.Hour, Code: store.CodeKeyReused},
		"looking": {Status: store.TransactionUncertain, Wait: time.Hour, Code: "outcome_unknown"},
		"denied":  {Status: store.TransactionSent, Wait: time.Hour, Code: store.CodeCredentialsDenied},
		"silent":  {Status: store.TransactionSent, Wait: 3 * time.Hour, Code: "unanswered"},
		"refused": {Status: store.TransactionFailed, Code: "declined"},
	} {
		id := owing(t, s, ref)
		settle(t, s, claim(t, s, id), store.Answer{Done: true})
		settles(t, s, claims(t, s, moves(t, s, ref, order.MovementRefund, amount(1000))), a)
	}
	move2 := moves(t, s, "unsure", order.MovementRefund, amount(1)) // waits for its turn behind the other
	require.Equal(t, store.TransactionPending, move2.Status)

	// Effects.
	dead(t, s, "dead")
	settle(t, s, claim(t, s, owing(t, s, "trying")), store.Answer{Wait: 3 * time.Hour, Err: "503"})
	owing(t, s, "owed")
	parked := owing(t, s, "parked")
	settle(t, s, claim(t, s, parked), store.Answer{Wait: time.Hour, Err: "503"})
	apply(t, s, disputed("evt_dispute", "pi_parked", order.StatusOpen, 1, 5000))

	// Flags.
	done := func(ref string) {
		settle(t, s, claim(t, s, readOrder(t, pool, ref).ID), store.Answer{Done: true})
	}
	apply(t, s, register("over", 5000), captured("evt_over", "pi_over", "over", 6000))
	done("over")
	apply(t, s, register("back", 5000), captured("evt_back", "pi_back", "back", 5000))
	done("back")
	apply(t, s, refunded("evt_back_1", "pi_back", 5000), refunded("evt_back_2", "pi_back", 3000))
	done("back")
	test := captured("evt_test", "pi_test", "test", 5000)
	test.Facts[0].Misfit = order.MisfitMode
	foreign := captured("evt_usd", "pi_usd", "usd", 5000)
	foreign.Facts[0].Currency, foreign.Own.Currency = "USD", "USD"
	apply(t, s, register("test", 5000), test, register("usd", 5000), foreign)
	apply(t, s, register("gone", 5000))
	says(t, s, "gone", order.Command{Cancel: true})
	apply(t, s, captured("evt_gone", "pi_gone", "gone", 5000))

	// Orders.
	apply(t, s, captured("evt_stub", "pi_stub", "stub", 5000))
	apply(t, s, register("held", 5000), authorized("evt_held", "pi_held", "held", 5000))
	apply(t, s, register("slow", 5000), phased("evt_slow", "pi_slow", "slow", order.StatusProcessing))
	apply(t, s, register("part", 5000), captured("evt_part", "pi_part", "part", 2000))
	apply(t, s, register("parts", 5000), captured("evt_parts", "pi_parts", "parts", 2000))
	says(t, s, "parts", order.Command{Dismiss: order.FlagUnderpaid})

	// Events.
	broken := captured("evt_broken", "pi_broken", "", 0)
	broken.Facts, broken.Own, broken.Payment, broken.Broken = nil, nil, nil, "no amount"
	nameless := captured("evt_nameless", "pi_nameless", "", 5000)
	tried := phased("evt_tried", "pi_tried", "", order.StatusFailed)
	late := captured("evt_late", "pi_late", "", 5000)
	apply(t, s, broken, nameless, tried, late)
	apply(t, s, register("late", 5000), phased("evt_late_2", "pi_late", "late", order.StatusProcessing))
	done("late")

	// Objects.
	announce(t, s, "payment/dead", "payment/open")
	settleFetch(t, s, claimFetch(t, s, "payment/dead"), store.FetchAnswer{Dead: true, Err: "404"})
}

var allTrouble = map[string][]string{
	"unknown":     {"unsure uncertain outcome_unknown", "reused uncertain idempotency_key_reused"},
	"late":        {"denied sent credentials_denied", "silent sent unanswered"},
	"dead":        {"dead fulfil"},
	"owed":        {"trying fulfil", "owed fulfil"},
	"flagged":     {"over overpaid[pi_over]", "back over_refunded[pi_back]", "test mode_mismatch[pi_test]", "usd currency_mismatch[pi_usd]", "gone paid_after_cancel[pi_gone]"},
	"stubs":       {"stub [pi_stub]"},
	"authorized":  {"held [pi_held]"},
	"pending":     {"slow [pi_slow]"},
	"underpaid":   {"part underpaid[pi_part]"},
	"quarantined": {"evt_broken"},
	"unplaced":    {"evt_nameless"},
	"fetches":     {"payment/dead"},
}

func TestAttention(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	var start time.Time
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT now()`).Scan(&start))
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
	require.Empty(t, attention(t, s, store.AttentionFilter{}), "a database in which nothing has happened")
	trouble(t, s, pool)

	same := func(want, have map[string][]string) {
		t.Helper()
		require.Len(t, have, len(want), have)
		for list := range want {
			require.ElementsMatch(t, want[list], have[list], list)
		}
	}
	same(allTrouble, attention(t, s, store.AttentionFilter{}))
	same(allTrouble, attention(t, s, store.AttentionFilter{Account: account}))
	require.Empty(t, attention(t, s, store.AttentionFilter{Account: "other"}), "accounts are apart")
	for list, have := range attention(t, s, store.AttentionFilter{Limit: 1}) {
		if list != "flagged" {
			require.Len(t, have, 1, list)
		}
	}

	// What is only a matter of time is none yet.
	young := map[string][]string{}
	for _, list := range []string{"unknown", "dead", "flagged", "quarantined", "fetches"} {
		young[list] = allTrouble[list]
	}
	young["late"] = []string{"denied sent credentials_denied"}
	same(young, attention(t, s, store.AttentionFilter{Ages: hourly}))
	storetest.StopClock(t, pool, start.Add(2*time.Hour))
	same(allTrouble, attention(t, s, store.AttentionFilter{Ages: hourly}))
}

// What a person does about it takes it off the list.
func TestAttentionEnds(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	trouble(t, s, pool)
	found := func(list string) []string { return attention(t, s, store.AttentionFilter{})[list] }
	resolve := func(ref string, to store.TransactionStatus) {
		var id uuid.UUID
		require.NoError(t, pool.QueryRow(t.Context(), `
			SELECT t.id FROM transactions t JOIN orders o ON o.id = t.order_id WHERE o.external_ref = $1 AND t.status = 'uncertain'`, ref).Scan(&id))
		require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) error {
			_, err := s.ResolveTransaction(t.Context(), tx, account, id, store.MoveResolution{Status: to, Code: store.ResolvedByPerson})
			return err
		}))
	}
	resolve("unsure", store.TransactionFailed)
	resolve("reused", store.TransactionPending)
	require.Empty(t, found("unknown"))

	require.NoError(t, s.RetryEffects(t.Context(), store.EffectFilter{}, func(store.Effect, store.RetryOutcome) {}))
	require.Empty(t, found("dead"))
	require.Contains(t, found("owed"), "dead fulfil", "it is owed again")

	says(t, s, "over", order.Command{Dismiss: order.FlagOverpaid})
	says(t, s, "back", order.Command{Dismiss: order.FlagOverRefunded})
	says(t, s, "usd", order.Command{Dismiss: order.FlagCurrencyMismatch})
	require.Equal(t, []string{"test mode_mismatch[pi_test]", "gone paid_after_cancel[pi_gone]"}, found("flagged"))
	apply(t, s, refunded("evt_gone_2", "pi_gone", 5000))
	require.Equal(t, []string{"test mode_mismatch[pi_test]"}, found("flagged"), "the money went back")

	apply(t, s, register("stub", 5000))
	require.Empty(t, found("stubs"))
	says(t, s, "slow", order.Command{Cancel: true})
	says(t, s, "held", order.Command{Cancel: true})
	says(t, s, "part", order.Command{Dismiss: order.FlagUnderpaid})
	require.Empty(t, found("authorized"))
	require.Empty(t, found("underpaid"))
	require.Empty(t, found("pending"), "flags say more, also where they are dismissed")

	dismiss := func(id string) {
		require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) error {
			return s.DismissEvent(t.Context(), tx, store.EventKey{Account: account, Source: "stripe", ID: id}, true)
		}))
	}
	dismiss("evt_broken")
	require.Empty(t, found("quarantined"))
	apply(t, s, register("named", 5000), phased("evt_named", "pi_nameless", "named", order.StatusProcessing))
	require.Empty(t, found("unplaced"), "its payment has an order now")
	apply(t, s, captured("evt_other", "pi_other", "", 5000))
	require.Equal(t, []string{"evt_other"}, found("unplaced"))
	dismiss("evt_other")
	require.Empty(t, found("unplaced"))

	n, err := s.RetryFetches(t.Context(), store.FetchFilter{States: []string{store.FetchDead}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, found("fetches"))
}

// A flag is there since it came the last time, an order in its state since it came to it.
func TestAttentionSince(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
	apply(t, s, register("o", 5000))
	apply(t, s, captured("evt_1", "pi_1", "o", 6000))
	says(t, s, "o", order.Command{Dismiss: order.FlagOverpaid})
	apply(t, s, captured("evt_2", "pi_1", "o", 7000))
	apply(t, s, captured("evt_3", "pi_1", "o", 8000))
	apply(t, s, register("h", 5000))
	apply(t, s, authorized("evt_h", "pi_h", "h", 5000))
	at := func(ref string, version int) (at time.Time) {
		exec(t, pool, `UPDATE order_transitions t SET at = o.created_at + t.version * interval '1 minute' FROM orders o WHERE o.id = t.order_id`)
		require.NoError(t, pool.QueryRow(t.Context(), `
			SELECT t.at FROM order_transitions t JOIN orders o ON o.id = t.order_id WHERE o.external_ref = $1 AND t.version = $2`, ref, version).Scan(&at))
		return at
	}
	var raised int
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT max(t.version) + 1 FROM order_transitions t JOIN orders o ON o.id = t.order_id WHERE external_ref = 'o' AND NOT 'overpaid' = ANY(t.flags)`).Scan(&raised))
	require.Greater(t, raised, 3, "it was there, and dismissed, before")
	require.Less(t, raised, readOrder(t, pool, "o").Version, "and has changed since")
	a, err := s.Attention(t.Context(), store.AttentionFilter{Ages: store.AttentionAges{Authorized: -24 * time.Hour}})
	require.NoError(t, err)
	require.Len(t, a.Flagged, 1)
	want := at("o", raised)
	a, err = s.Attention(t.Context(), store.AttentionFilter{Ages: store.AttentionAges{Authorized: -24 * time.Hour}})
	require.NoError(t, err)
	require.Equal(t, want, a.Flagged[0].Since)
	require.Equal(t, at("h", 2), a.Authorized[0].Since)
}

// A payment that goes by another one's name by now has that one's order, or none.
func TestAttentionFollowsMergedPayments(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
	unplaced := func() []string { return attention(t, s, store.AttentionFilter{})["unplaced"] }
	apply(t, s, captured("evt_1", "ch_1", "", 5000))
	apply(t, s, captured("evt_2", "ch_2", "", 5000))
	require.Equal(t, []string{"evt_1", "evt_2"}, unplaced())
	one := phased("evt_3", "ch_1", "", order.StatusProcessing)
	one.Payment = []string{"ch_1", "ch_2"}
	apply(t, s, one)
	require.Equal(t, []string{"evt_1", "evt_2", "evt_3"}, unplaced(), "they are one payment, which has no order still")
	apply(t, s, register("o", 5000), phased("evt_4", "pi_1", "o", order.StatusProcessing))
	two := phased("evt_5", "pi_1", "", order.StatusProcessing)
	two.Payment = []string{"ch_2", "pi_1"}
	apply(t, s, two)
	require.Empty(t, unplaced())
}

func TestAttentionOfSilentSources(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
	of := func(id string) store.SourceKey { return store.SourceKey{Account: account, ID: id} }
	f := store.AttentionFilter{Ages: hourly, Sources: []store.SourceKey{of("stripe"), of("mollie"), of("new")}}
	for i := range 3 {
		apply(t, s, captured(fmt.Sprint("evt_", i), fmt.Sprint("pi_", i), "", 5000))
	}
	require.NoError(t, s.NoteReceived(t.Context(), []store.SourceKey{of("stripe"), of("mollie"), of("old")}))
	require.Empty(t, attention(t, s, f)["silent"])
	exec(t, pool, `UPDATE sources SET last_received_at = now() - interval '4 hours'`)
	exec(t, pool, `UPDATE processed_events SET received_at = now() - interval '4 hours' - interval '1 minute' * right(event_id, 1)::int`)
	require.Empty(t, attention(t, s, f)["silent"], "nobody receives: it is not the gateways")
	require.NoError(t, s.NoteReceived(t.Context(), []store.SourceKey{of("mollie")}))
	require.Equal(t, []string{"stripe 3"}, attention(t, s, f)["silent"], "and not what is not configured")
	a, err := s.Attention(t.Context(), f)
	require.NoError(t, err)
	require.InDelta(t, 2*time.Minute, a.Silent[0].At.Sub(a.Silent[0].First), float64(time.Second))
}

// What is looked through is bounded, and it is said where that left something out.
func TestAttentionSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
	const bound = 10_000 // of one account
	partly := func() (out []bool) {
		t.Helper()
		a, err := s.Attention(t.Context(), store.AttentionFilter{})
		require.NoError(t, err)
		require.LessOrEqual(t, len(a.Flagged), 1000)
		return []bool{a.Partly.Owed, a.Partly.Flagged, a.Partly.Pending, a.Partly.Unplaced}
	}
	fill := func(from, until int) {
		exec(t, pool, `INSERT INTO orders (account_id, id, external_ref, registered, total, currency, flags)
			SELECT $1, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, n::text, true, 1, 'EUR', '{overpaid}' FROM generate_series($2::int, $3::int) n`, account, from, until)
		exec(t, pool, `INSERT INTO order_transitions (account_id, order_id, version, to_state, cause, after, effect, effect_state)
			SELECT account_id, id, 1, 'paid', 'c', 'nothing', 'fulfil', 'open' FROM orders WHERE external_ref::int BETWEEN $1 AND $2`, from, until)
		exec(t, pool, `INSERT INTO processed_events (account_id, source_id, event_id, type, outcome, reason, facts, facts_hash, mapping_version)
			SELECT $1, 's', n::text, 't', 'waiting', 'no_reference', '{}', '', 1 FROM generate_series($2::int, $3::int) n`, account, from, until)
	}
	fill(1, bound)
	require.Equal(t, []bool{false, false, false, false}, partly())
	fill(bound+1, bound+1)
	require.Equal(t, []bool{true, true, true, true}, partly())
}
