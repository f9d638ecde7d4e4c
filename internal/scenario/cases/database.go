package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// counts holds the keys of an account's rows, by the names of the format.
type counts map[string]map[string]bool

// countQueries return a text that identifies each row, with $1 the account.
var countQueries = map[string]string{
	"events": `
		SELECT source_id || ' ' || event_id FROM processed_events
		WHERE account_id = $1 AND source_id <> '` + store.APISource + `'`,
	"transitions": `
		SELECT order_id || ' ' || version FROM order_transitions
		WHERE account_id = $1 AND from_state IS NOT NULL AND from_state <> to_state`,
	// A merged payment, and one that lost the race for its only id, are no payments.
	"payments": `
		SELECT id::text FROM payments p
		WHERE account_id = $1 AND merged_into IS NULL AND EXISTS (
		  SELECT FROM payment_ids i WHERE i.account_id = p.account_id AND i.payment_id = p.id)`,
	"orders": `
		SELECT external_ref FROM orders WHERE account_id = $1`,
}

// count reads the keys of all rows of an account.
func (p *player) count(ctx context.Context, account string) (counts, error) {
	all := make(counts)
	for name, query := range countQueries {
		keys, err := p.texts(ctx, query, account)
		if err != nil {
			return nil, fmt.Errorf("count %s: %w", name, err)
		}
		all[name] = keys
	}
	keys, err := p.keyRows(ctx, account)
	if err != nil {
		return nil, err
	}
	all["idempotency_keys"] = keys
	return all, nil
}

// keyRows counts idempotency keys.
func (p *player) keyRows(ctx context.Context, account string) (map[string]bool, error) {
	return p.texts(ctx, `
		SELECT (
		  SELECT string_agg(to_jsonb(k) ->> a.attname, ' ' ORDER BY a.attnum)
		  FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		  WHERE i.indrelid = 'idempotency_keys'::regclass AND i.indisprimary)
		FROM idempotency_keys k WHERE account_id = $1`, account)
}

func (p *player) texts(ctx context.Context, query string, args ...any) (map[string]bool, error) {
	rows, _ := p.Pool.Query(ctx, query, args...)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	set := make(map[string]bool, len(list))
	for _, text := range list {
		set[text] = true
	}
	return set, nil
}

// since returns how many rows there are that were not there before.
func (c counts) since(before counts) map[string]int64 {
	n := make(map[string]int64)
	for name, keys := range c {
		for key := range keys {
			if !before[name][key] {
				n[name]++
			}
		}
	}
	return n
}

// eventRow is one row of processed_events.
type eventRow struct {
	Key     string
	Type    string
	Outcome string
	Bodies  [][]byte // the payloads of its deliveries
}

// events reads the events of webhook sources.
func (p *player) events(ctx context.Context) ([]eventRow, error) {
	rows, _ := p.Pool.Query(ctx, `
		SELECT e.source_id || ' ' || e.event_id, e.type, coalesce(e.outcome, ''),
		  (SELECT array_agg(DISTINCT b.body) FROM event_payloads p JOIN event_payloads b ON b.delivery = p.delivery
		   WHERE p.account_id = e.account_id AND p.source_id = e.source_id AND p.event_id = e.event_id AND b.body IS NOT NULL)
		FROM processed_events e WHERE e.account_id = $1 AND e.source_id <> $2`, AccountA, store.APISource)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[eventRow])
}

// newEvents returns the rows whose keys are not in before.
func (p *player) newEvents(ctx context.Context, before map[string]bool) ([]eventRow, error) {
	all, err := p.events(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(e eventRow) bool { return before[e.Key] }), nil
}

// orderRow is one order as the database has it.
type orderRow struct {
	State      string
	Flags      []string
	Told       string
	Registered bool
	Captured   int64
	Refunded   int64
	Version    int64
}

// order reads an order of account A, or nil. An order is registered, by the
// merchant or by a payment's own amount, or else a stub.
func (p *player) order(ctx context.Context, ref string) (*orderRow, error) {
	rows, _ := p.Pool.Query(ctx, `
		SELECT state, flags, told, total IS NOT NULL, captured, refunded, version
		FROM orders WHERE account_id = $1 AND external_ref = $2`, AccountA, ref)
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[orderRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no row is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", ref, err)
	}
	return &o, nil
}

// orderID returns the id of an order of account A as text.
func (p *player) orderID(ctx context.Context, ref string) (string, error) {
	var id string
	err := p.Pool.QueryRow(ctx, `
		SELECT id::text FROM orders WHERE account_id = $1 AND external_ref = $2`, AccountA, ref).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("id of order %s: %w", ref, err)
	}
	return id, nil
}

// owed returns the orders, of any account, whose merchant is not told what it should be.
func (p *player) owed(ctx context.Context) ([]string, error) {
	type row struct{ Ref, Told, Want string }
	rows, _ := p.Pool.Query(ctx, `SELECT external_ref, told, want FROM orders ORDER BY external_ref`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, err
	}
	var list []string
	for _, o := range all {
		if e := order.Next(order.Told(o.Told), order.Want(o.Want)); e != order.EffectNone {
			list = append(list, fmt.Sprintf("%s owes %s", o.Ref, e))
		}
	}
	return list, nil
}

// activity is what keeps a database from being quiet.
type activity struct {
	Jobs    []string // running or due
	Claims  int      // live
	Overdue int      // promises to look at an order, or to ask about an object, that nobody has kept
}

func (p *player) activity(ctx context.Context) (activity, error) {
	var a activity
	rows, _ := p.Pool.Query(ctx, `
		SELECT id || ':' || attempt || ' ' || kind || ' ' || state FROM river_job
		WHERE state = 'running'
		  OR state IN ('available', 'retryable', 'scheduled', 'pending') AND scheduled_at <= clock_timestamp()`)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return a, fmt.Errorf("look at jobs: %w", err)
	}
	a.Jobs = jobs
	err = p.Pool.QueryRow(ctx, `
		SELECT
		  (SELECT count(*) FROM order_transitions WHERE effect_state = 'claimed' AND claimed_until > clock_timestamp())
		    + (SELECT count(*) FROM fetches WHERE claimed_until > clock_timestamp()),
		  (SELECT count(*) FROM orders WHERE wake_at <= clock_timestamp())
		    + (SELECT count(*) FROM fetches WHERE next_at <= clock_timestamp() + interval '10 s')`).Scan(&a.Claims, &a.Overdue)
	if err != nil {
		return a, fmt.Errorf("look at claims: %w", err)
	}
	return a, nil
}

// orphans are the jobs that were running when a process was killed. They stay
// "running" until River's rescuer looks, a minute later; nobody runs them.
type orphans struct {
	mu    sync.Mutex
	jobs  map[string]bool // "id:attempt"
	until time.Time       // when the last claim of the dead lapses, by the test's clock
}

// has reports whether a job, as "id:attempt", is one of them.
func (o *orphans) has(job string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.jobs[job]
}

// lapse returns when the last claim of the dead lapses.
func (o *orphans) lapse() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.until
}

// noteKilled remembers what the killed process left behind.
func (p *player) noteKilled(ctx context.Context) error {
	rows, _ := p.Pool.Query(ctx, `SELECT id || ':' || attempt FROM river_job WHERE state = 'running'`)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var left float64
	err = p.Pool.QueryRow(ctx, `
		SELECT coalesce(max(extract(epoch FROM claimed_until - clock_timestamp())), 0)::float8
		FROM (
		  SELECT claimed_until FROM order_transitions WHERE effect_state = 'claimed'
		  UNION ALL SELECT claimed_until FROM fetches WHERE claimed_until IS NOT NULL) c`).Scan(&left)
	if err != nil {
		return err
	}
	p.orphans.mu.Lock()
	defer p.orphans.mu.Unlock()
	if p.orphans.jobs == nil {
		p.orphans.jobs = make(map[string]bool)
	}
	for _, job := range jobs {
		p.orphans.jobs[job] = true
	}
	if until := now().Add(time.Duration(left * float64(time.Second))); until.After(p.orphans.until) {
		p.orphans.until = until
	}
	return nil
}
