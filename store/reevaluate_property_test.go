package store_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// misreading is a set of events as they truly are, in the order in which they come, and as a mapping with bugs reads them.
type misreading struct {
	true, wrong []store.Event
	registered  []store.Event // come first, and are no gateway's
	late        []store.Event // come last
}

// drawMisreading draws up to three orders with up to two payments each. Where a payment stands must not depend on what
// came first, so true events name one order, or others that never exist.
func drawMisreading(t *rapid.T) *misreading {
	w := &misreading{}
	orders := rapid.IntRange(1, 3).Draw(t, "orders")
	for o := range orders {
		ref := fmt.Sprintf("ord_%d", o)
		first := rapid.Bool().Draw(t, "registered first")
		r := register(ref, rapid.Int64Range(1, 3).Draw(t, "total")*1000)
		switch {
		case first:
			w.registered = append(w.registered, r)
		case rapid.Bool().Draw(t, "registered late"):
			w.late = append(w.late, r)
		}
		for p := range rapid.IntRange(0, 2).Draw(t, "payments") {
			w.drawPayment(t, ref, fmt.Sprintf("%s_%d", ref, p), first)
		}
	}
	slices.SortStableFunc(w.true, func(a, b store.Event) int { return cmp.Compare(a.Type, b.Type) }) // drawn: the arrival
	for _, e := range w.true {
		w.wrong = append(w.wrong, drawWrong(t, e, orders))
	}
	for i, e := range w.wrong { // of two meanings of one id that are read alike, only one is kept
		for j := range i {
			if w.wrong[j].ID == e.ID && saying(w.wrong[j]) == saying(e) {
				w.wrong[i], w.wrong[j] = w.true[i], w.true[j]
			}
		}
	}
	return w
}

// saying is what tells two events of one id apart.
func saying(e store.Event) string {
	doc, _ := json.Marshal([]any{e.ID, e.Payment, e.Reference, e.Strength, e.Facts, e.Own, e.Ignored, e.Broken})
	return string(doc)
}

func (w *misreading) drawPayment(t *rapid.T, ref, name string, first bool) {
	ids := []string{"ch_" + name, "cs_" + name, "pi_" + name}
	n := rapid.IntRange(1, 4).Draw(t, "events")
	strong := rapid.IntRange(0, n).Draw(t, "the payment's own") // n: none
	weak := "foreign_" + name
	if first && rapid.Bool().Draw(t, "weak ones of its order") {
		weak = ref
	}
	policy := store.OnUnknown(rapid.SampledFrom([]string{"", "create"}).Draw(t, "policy"))
	for i := range n {
		e := store.Event{
			Account: account, Source: rapid.SampledFrom([]string{"stripe", "stripe2"}).Draw(t, "source"), OnUnknown: policy, MappingVersion: 2,
			Event: order.Event{
				ID: fmt.Sprintf("evt_%s_%d", name, i), Type: rapid.StringMatching(`[a-f]`).Draw(t, "arrival"),
				At:    day.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Second),
				Realm: "stripe:live", Payment: []string{rapid.SampledFrom(ids).Draw(t, "id")}, Facts: []order.Fact{drawFact(t, name)},
			},
		}
		if rapid.Bool().Draw(t, "two ids") {
			if id := rapid.SampledFrom(ids).Draw(t, "other id"); id != e.Payment[0] {
				e.Payment = append(e.Payment, id)
			}
		}
		switch {
		case i == strong:
			e.Payment, e.Reference, e.Strength = slices.Clone(ids), ref, order.StrengthPayment
			e.Own = &order.Amount{Minor: rapid.Int64Range(1, 3).Draw(t, "own") * 1000, Currency: "EUR"}
		case rapid.IntRange(0, 3).Draw(t, "weak") == 0:
			e.Reference, e.Strength = weak, order.StrengthModification
		case rapid.IntRange(0, 6).Draw(t, "says nothing") == 0:
			e.Event = order.Event{ID: e.ID, Type: e.Type, At: e.At, Realm: e.Realm, Ignored: "no_fact"}
		}
		w.true = append(w.true, e)
		if e.Ignored == "" && rapid.IntRange(0, 9).Draw(t, "again") == 0 { // the same id, with other facts
			f := e
			f.Facts = []order.Fact{drawFact(t, name)}
			w.true = append(w.true, f)
		}
	}
}

func drawFact(t *rapid.T, p string) order.Fact {
	f := order.Fact{Amount: rapid.Int64Range(1, 3).Draw(t, "amount") * 1000, Currency: "EUR", Seq: rapid.Int64Range(0, 2).Draw(t, "seq")}
	items := []order.Status{order.StatusPending, order.StatusDenied, order.StatusOK, order.StatusFailed}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		f.Kind, f.Seq = order.KindCaptured, 0
	case 2:
		f.Kind, f.Ref, f.Status = order.KindCaptured, p+"_c", rapid.SampledFrom(items).Draw(t, "status")
	case 3:
		f.Kind, f.Ref, f.Status = order.KindRefunded, p+"_r", rapid.SampledFrom(items).Draw(t, "status")
	case 4:
		f.Kind, f.Ref = order.KindDisputed, p+"_d"
		f.Status = rapid.SampledFrom([]order.Status{order.StatusOpen, order.StatusWon, order.StatusLost}).Draw(t, "status")
	default:
		f = order.Fact{Kind: order.KindPhase, Status: rapid.SampledFrom([]order.Status{order.StatusFailed, order.StatusAuthorized}).Draw(t, "status")}
	}
	return f
}

// drawWrong is what a mapping with a bug may make of an event: anything but another id.
func drawWrong(t *rapid.T, e store.Event, orders int) store.Event {
	e.Payment, e.Facts, e.MappingVersion = slices.Clone(e.Payment), slices.Clone(e.Facts), 1
	p := fmt.Sprintf("ord_%d_%d", rapid.IntRange(0, orders-1).Draw(t, "wrong payment"), rapid.IntRange(0, 1).Draw(t, "of two"))
	if e.Ignored != "" && rapid.Bool().Draw(t, "not ignored") {
		e.Ignored, e.Payment, e.Facts = "", []string{"pi_" + p}, []order.Fact{drawFact(t, p)}
	}
	switch bug := rapid.IntRange(0, 11).Draw(t, "bug"); {
	case e.Ignored != "" || bug > 10:
	case bug == 0:
		e.Facts[0].Amount *= 10
	case bug == 1:
		e.Facts = []order.Fact{drawFact(t, p)}
	case bug == 2:
		e.Event = order.Event{ID: e.ID, Type: e.Type, At: e.At, Realm: e.Realm, Ignored: "unknown_type"}
	case bug == 3:
		e.Event = order.Event{ID: e.ID, Type: "odd", Realm: e.Realm, Broken: "no amount"}
	case bug == 4:
		e.Reference, e.Strength = fmt.Sprintf("ord_%d", rapid.IntRange(0, orders-1).Draw(t, "wrong order")), order.StrengthPayment
	case bug == 5:
		e.Reference, e.Strength = "", 0
	case bug == 6:
		e.Payment = []string{"pi_" + p}
	case bug == 7:
		if id := "ch_" + p; !slices.Contains(e.Payment, id) {
			e.Payment = append(e.Payment, id)
		}
	case bug == 8:
		e.Facts[0].Misfit = order.MisfitMode
	case bug == 9:
		e.OnUnknown, e.At = store.OnUnknownIgnore, e.At.Add(time.Minute)
	case bug == 10:
		e.Realm = "stripe:test"
	}
	return e
}

// in returns events of another account, with bytes from which they can be read again as truth has them.
func in(acct string, events, truth []store.Event) []store.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Account = acct
		if truth != nil {
			events[i].Payload = fmt.Appendf(nil, "%d", i)
		}
	}
	return events
}

// standing is everything that must not depend on how the facts came about.
func standing(t require.TestingT, pool *pgxpool.Pool, acct string) (orders, payments []string) {
	ctx := bgContext
	rows, _ := pool.Query(ctx, `
		SELECT o.external_ref, o.state, array_to_string(array_remove(o.flags, 'unexpected_move'), ','),
			CASE WHEN o.kept = 0 AND o.want IN ('wait', 'stop') THEN 'nothing' ELSE o.want END, o.total, o.currency, o.captured, o.refunded,
			o.lost, o.kept, o.at_risk, o.authorized, o.create_from_payment
		FROM orders o
		WHERE o.account_id = $1 AND (o.registered OR EXISTS (SELECT FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id))
		ORDER BY 1`, acct)
	orders, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		v, err := row.Values()
		for i, x := range v {
			if x == nil {
				v[i] = "-"
			}
		}
		return fmt.Sprint(v...), err
	})
	require.NoError(t, err)
	rows, _ = pool.Query(ctx, `
		SELECT p.ledger::text || ' on ' || coalesce(o.external_ref, 'none')
		FROM payments p LEFT JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id
		WHERE p.account_id = $1 AND p.merged_into IS NULL AND p.ledger <> '{}' ORDER BY 1`, acct)
	payments, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return orders, payments
}

// Whatever a mapping made of the events: once they are read again, everything stands as if today's mapping had read them
// when they came, and what the merchant was told comes to the same.
func TestReevaluateIsWhatIngestWouldHaveMade(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		w := drawMisreading(t)
		acct, fresh := fmt.Sprintf("m%d", runs), fmt.Sprintf("f%d", runs)
		ingest := func(acct string, events, truth []store.Event) {
			all := slices.Concat(in(acct, w.registered, nil), in(acct, events, truth), in(acct, w.late, nil))
			for len(all) > 0 {
				n := rapid.IntRange(1, 4).Draw(t, "batch")
				n = min(n, len(all))
				_, err := s.Apply(bgContext, all[:n])
				require.NoError(t, err)
				all = all[n:]
			}
		}
		ingest(acct, w.wrong, w.true)
		ingest(fresh, w.true, nil)
		if rapid.Bool().Draw(t, "the merchant was told") {
			workAccount(t, s, pool, acct)
		}
		read := func(d store.StoredDelivery) ([]store.Event, error) {
			var i int
			if err := json.Unmarshal(d.Body, &i); err != nil {
				return nil, err
			}
			return []store.Event{w.true[i]}, nil
		}
		opts := store.ReevaluateOptions{Filter: store.ReevaluateFilter{Account: acct}, Read: read, Apply: true}
		if rapid.Bool().Draw(t, "in parts") {
			part := opts
			part.Filter.Sources, part.Limit = []string{"stripe2"}, rapid.IntRange(0, 2).Draw(t, "limit")
			require.NoError(t, s.Reevaluate(bgContext, part))
		}
		dry := opts
		dry.Apply = false
		require.NoError(t, s.Reevaluate(bgContext, dry))
		require.NoError(t, s.Reevaluate(bgContext, opts))

		wantOrders, wantPayments := standing(t, pool, fresh)
		orders, payments := standing(t, pool, acct)
		require.Equal(t, strings.Join(wantPayments, "\n"), strings.Join(payments, "\n"))
		require.Equal(t, strings.Join(wantOrders, "\n"), strings.Join(orders, "\n"))

		again := 0
		opts.Each = func(r store.Reevaluated) error { again += len(r.Events); return nil }
		require.NoError(t, s.Reevaluate(bgContext, opts))
		require.Zero(t, again)
		requireConsistent(t, pool, acct)
		requireClean(t, pool, acct)

		workAccount(t, s, pool, acct)
		rows, _ := pool.Query(bgContext, `SELECT told, want FROM orders WHERE account_id = $1`, acct)
		var told order.Told
		var want order.Want
		_, err := pgx.ForEachRow(rows, []any{&told, &want}, func() error {
			require.Equal(t, order.EffectNone, order.Next(told, want), "told %s, want %s", told, want)
			return nil
		})
		require.NoError(t, err)
		requireClean(t, pool, acct)
	})
}

// requireClean audits an account.
func requireClean(t require.TestingT, pool *pgxpool.Pool, acct string) {
	found, err := audittest.Differences(bgContext, pool, acct)
	require.NoError(t, err)
	require.Empty(t, found)
}

// requireConsistent checks what holds of every account at rest.
func requireConsistent(t require.TestingT, pool *pgxpool.Pool, acct string) {
	for what, sql := range map[string]string{
		"an order whose versions are not its rows": `SELECT count(*) FROM orders o WHERE account_id = $1 AND version <> (
			SELECT count(*) FROM order_transitions t WHERE t.account_id = o.account_id AND t.order_id = o.id)`,
		"a chain of states with a gap": `SELECT count(*) FROM (
			SELECT from_state, lag(to_state) OVER (PARTITION BY order_id ORDER BY version) AS was, version
			FROM order_transitions WHERE account_id = $1) x WHERE version > 1 AND from_state IS DISTINCT FROM was`,
		"an id that leads to a payment which does not know it": `SELECT count(*) FROM payment_ids i JOIN payments p ON p.account_id = i.account_id AND p.id = i.payment_id
			WHERE i.account_id = $1 AND p.merged_into IS NULL AND p.ledger <> '{}' AND NOT p.ledger -> 'ids' ? i.id`,
		"an event without an outcome": `SELECT count(*) FROM processed_events WHERE account_id = $1 AND outcome IS NULL`,
		"an event that was replaced by itself": `SELECT count(*) FROM event_meanings m
			JOIN processed_events e USING (account_id, source_id, event_id, facts, facts_hash, type, realm)
			WHERE account_id = $1 AND m.occurred_at IS NOT DISTINCT FROM e.occurred_at AND m.reason IS DISTINCT FROM 'id_reused'`,
		"what is owed without a promise": `SELECT count(*) FROM orders o JOIN order_transitions t ON t.account_id = o.account_id AND t.order_id = o.id
			WHERE o.account_id = $1 AND t.effect_state = 'open' AND NOT t.tried AND o.wake_at IS NULL`,
	} {
		var n int
		require.NoError(t, pool.QueryRow(bgContext, sql, acct).Scan(&n))
		require.Zero(t, n, what)
	}
}
