package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestAliasesAreOnePayment: a gateway names one payment in many ways, each event in
// some of them. Whatever the order in which the events arrive, in which batches, how
// often and by how many workers at once, they end as one payment, whose ledger is
// the fold of all of them, and the order as that ledger says. That the events of a
// gateway do name one payment is held in package gateway; a few are of another
// (an authorisation of PayPal's, a payment link that nobody used).
func TestAliasesAreOnePayment(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	for _, g := range gateway.All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			story := aliasStory(t, g)
			if len(story) == 0 {
				return // a gateway that tells of no payment
			}
			for run := range 6 {
				told := story
				if run > 1 {
					told = thinned(story, run)
				}
				account := fmt.Sprintf("aliases-%s-%d", g.Name, run)
				require.NoError(t, s.EnsureAccounts(t.Context(), []string{account}))
				batches := aliasBatches(account, g.Name, told, run)
				applyAliases(t, s, batches, 1+run%2*2)
				requireAliases(t, pool, account, byPayment(told))
			}
		})
	}
}

// aliasStory is one event of every type that the gateway has, all of one reference.
func aliasStory(t *testing.T, g *gateway.Gateway) []order.Event {
	t.Helper()
	source := g.Example("aliases")
	source.ID = g.Name
	start := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	var story []order.Event
	for i, typ := range g.Types(source) {
		r := gateway.SampleRequest{
			Source: source, Type: typ.Name, Reference: "A-1", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: start.Add(time.Duration(i) * time.Minute),
		}
		evs := spokenBy(t, g, r)
		for _, ev := range evs {
			require.Empty(t, ev.Broken, typ.Name)
			if ev.Ignored == "" && ev.Fetch == "" {
				story = append(story, ev)
			}
		}
	}
	return story
}

// spokenBy are the events of a sample: those of its delivery, or of what the API
// answers about what it names.
func spokenBy(t *testing.T, g *gateway.Gateway, r gateway.SampleRequest) []order.Event {
	t.Helper()
	if g.Fetch != nil && g.Fetch.Always {
		o, answer, err := g.Fetch.Sample(r)
		require.NoError(t, err)
		evs, err := g.Fetched(r.Source, o, gateway.Answer{Body: answer, Started: r.At})
		require.NoError(t, err)
		return evs
	}
	body, err := g.Sample(r)
	require.NoError(t, err)
	d, err := g.Deliver(r.Source, body, r.Type, r.At)
	require.NoError(t, err)
	evs, err := g.Events(r.Source, d)
	require.NoError(t, err)
	return evs
}

// thinned is the story told with fewer names: each event knows some of the ids that
// it knows, and only the one that knows the most keeps them all, so that payments
// that were apart turn out to be one.
func thinned(story []order.Event, run int) []order.Event {
	most := slices.MaxFunc(story, func(a, b order.Event) int { return len(a.Payment) - len(b.Payment) })
	told := slices.Clone(story)
	for i := range told {
		ids := told[i].Payment
		if told[i].ID == most.ID || len(ids) == 1 {
			continue
		}
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, len(ids), rapid.ID[string]).Example(run*100 + i)
		told[i].Payment = some
	}
	return told
}

// byPayment groups events that share an id, however far apart.
func byPayment(events []order.Event) [][]order.Event {
	var groups [][]order.Event
	for _, ev := range events {
		group := []order.Event{ev}
		groups = slices.DeleteFunc(groups, func(other []order.Event) bool {
			if !slices.ContainsFunc(other, func(o order.Event) bool {
				return slices.ContainsFunc(o.Payment, func(id string) bool { return slices.Contains(ev.Payment, id) })
			}) {
				return false
			}
			group = append(group, other...)
			return true
		})
		groups = append(groups, group)
	}
	return groups
}

// aliasBatches are the events, some twice, and the registration of their order, in
// an order and in batches that run fixes.
func aliasBatches(account, source string, story []order.Event, run int) [][]store.Event {
	events := []store.Event{{Account: account, Source: store.APISource, Event: order.Event{
		ID: "register:A-1", Type: "order.registered", Reference: "A-1", At: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC),
		Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
	}}}
	for _, ev := range story {
		events = append(events, store.Event{Account: account, Source: source, Event: ev})
	}
	for i := run % 3; i < len(story); i += 3 {
		events = append(events, store.Event{Account: account, Source: source, Event: story[i]})
	}
	events = rapid.Permutation(events).Example(run)
	sizes := rapid.SliceOfN(rapid.IntRange(1, 4), len(events), len(events)).Example(run)
	var batches [][]store.Event
	for i := 0; len(events) > 0; i++ {
		n := min(sizes[i], len(events))
		batches, events = append(batches, events[:n]), events[n:]
	}
	return batches
}

// applyAliases applies the batches, by so many workers at once.
func applyAliases(t *testing.T, s *store.Store, batches [][]store.Event, workers int) {
	t.Helper()
	queue := make(chan []store.Event, len(batches))
	for _, batch := range batches {
		queue <- batch
	}
	close(queue)
	failed := make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for batch := range queue {
				if _, err := s.Apply(t.Context(), batch); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// requireAliases: the account has one payment for each group of events, all ids of
// the group lead to it, and its ledger and order are what the events say.
func requireAliases(t *testing.T, pool *pgxpool.Pool, account string, groups [][]order.Event) {
	t.Helper()
	type row struct {
		ID     uuid.UUID
		Ledger []byte
	}
	rows, err := pool.Query(t.Context(), `SELECT id, ledger FROM payments WHERE account_id = $1 AND merged_into IS NULL`, account)
	require.NoError(t, err)
	payments, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	require.Len(t, payments, len(groups))

	o := order.Order{Registered: true, Total: 5000, Currency: "EUR", Payments: map[string]*order.Ledger{}}
	for _, group := range groups {
		want := order.NewLedger()
		for _, ev := range group {
			want.JoinEvent(ev)
		}
		id := paymentNamed(t, pool, account, group[0].Realm, want.IDs[0])
		for _, alias := range want.IDs {
			require.Equal(t, id, paymentNamed(t, pool, account, group[0].Realm, alias), "%s is another payment", alias)
		}
		i := slices.IndexFunc(payments, func(p row) bool { return p.ID == id })
		require.GreaterOrEqual(t, i, 0, "%s leads to a payment that was merged", want.IDs[0])
		text, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(payments[i].Ledger))
		if want.Link.Ref == "A-1" {
			o.Payments[want.IDs[0]] = want
		}
	}
	view := o.View()
	var state, wanted string
	var captured int64
	require.NoError(t, pool.QueryRow(context.WithoutCancel(t.Context()),
		`SELECT state, want, captured FROM orders WHERE account_id = $1 AND external_ref = 'A-1'`, account).Scan(&state, &wanted, &captured))
	require.Equal(t, fmt.Sprint(view.State, view.Want, view.Captured), fmt.Sprint(state, wanted, captured))
}

// paymentNamed follows an id to the payment that it means by now.
func paymentNamed(t *testing.T, pool *pgxpool.Pool, account, realm, id string) (found uuid.UUID) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `
		WITH RECURSIVE p AS (
			SELECT p.id, p.merged_into FROM payment_ids i JOIN payments p ON p.account_id = i.account_id AND p.id = i.payment_id
			WHERE i.account_id = $1 AND i.realm = $2 AND i.id = $3
			UNION ALL
			SELECT n.id, n.merged_into FROM p JOIN payments n ON n.account_id = $1 AND n.id = p.merged_into
		)
		SELECT id FROM p WHERE merged_into IS NULL`, account, realm, id).Scan(&found), "no payment is called %s", id)
	return found
}
