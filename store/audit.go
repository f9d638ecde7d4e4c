package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// An audit reads everything that the tables say, as of one moment, a page at a time, and judges nothing: whether the rows
// agree is internal/audit's to say. What is said here beside the rows themselves are look-ups: where a pointer leads, what a
// hash should be.

// AuditSnapshot is the database as of one moment. It is good within the function that [Store.Audit] calls, and for one
// goroutine.
type AuditSnapshot struct {
	tx     pgx.Tx
	now    time.Time
	leads  map[gatewayID]uuid.UUID // of ids that lead astray, the payment that knows them
	extra  map[paymentKey][]string // ids that a payment should know
	strays map[gatewayID]*AuditStray
	reader *rereader // nil: bytes are not read
}

// auditPage is how many events one page holds, and auditOrders how many orders: what is in memory at once.
const (
	auditPage   = 500
	auditOrders = 100
)

// sqlAuditSettings: the statements reach rows by their keys, whatever the planner believes of tables that have just been
// filled; and a long audit is no statement that hangs.
const sqlAuditSettings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true), set_config('statement_timeout', '0', true),
	set_config('idle_in_transaction_session_timeout', '0', true), clock_timestamp()`

// AuditOptions are optional settings of [Store.Audit]. The zero value reads no bytes.
type AuditOptions struct {
	// Read, if set, maps the kept bytes of events as a delivery of today would be: see [ReevaluateOptions]. Its error concerns that
	// delivery alone.
	Read func(StoredDelivery) ([]Event, error)

	// Same is that of [ReevaluateOptions].
	Same func(id string, today Event) bool
}

// Audit calls f with the database as of this moment, whatever is written meanwhile: in one transaction that takes no locks and
// writes nothing. As long as it runs, the database keeps what was deleted since.
func (s *Store) Audit(ctx context.Context, o AuditOptions, f func(*AuditSnapshot) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		a := &AuditSnapshot{tx: tx, leads: map[gatewayID]uuid.UUID{}, extra: map[paymentKey][]string{}, strays: map[gatewayID]*AuditStray{}}
		if o.Read != nil {
			a.reader = &rereader{q: tx, read: o.Read, same: o.Same}
		}
		var discard [7]string
		dest := make([]any, 0, len(discard)+1)
		for i := range discard {
			dest = append(dest, &discard[i])
		}
		if err := tx.QueryRow(ctx, sqlAuditSettings).Scan(append(dest, &a.now)...); err != nil {
			return fmt.Errorf("begin the audit: %w", err)
		}
		return f(a)
	})
}

// Now is the moment, by the database's clock: everything that is seen was written before it.
func (a *AuditSnapshot) Now() time.Time { return a.now }

// auditTables are the tables that an account may have rows in, whether or not it is configured.
var auditTables = []string{"processed_events", "orders", "payments", "payment_ids", "incomes", "recurrences", "transactions", "idempotency_keys"}

// Accounts are the names of all accounts that have rows, sorted. It reads one row per account of each table.
func (a *AuditSnapshot) Accounts(ctx context.Context) ([]string, error) {
	sql := `SELECT DISTINCT account_id FROM (`
	for i, table := range auditTables {
		if i > 0 {
			sql += ` UNION ALL `
		}
		sql += `(WITH RECURSIVE r(account_id) AS (
			(SELECT account_id FROM ` + table + ` ORDER BY account_id LIMIT 1)
			UNION ALL
			SELECT n.account_id FROM r CROSS JOIN LATERAL (
				SELECT x.account_id FROM ` + table + ` x WHERE x.account_id > r.account_id ORDER BY x.account_id LIMIT 1) n)
			SELECT account_id FROM r)`
	}
	rows, _ := a.tx.Query(ctx, sql+`) x ORDER BY 1`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return names, nil
}

// AuditCounts is how many rows an account has.
type AuditCounts struct {
	Events, Orders, Payments, PaymentIDs, Incomes, Recurrences, Transactions, Keys int
}

// Count counts the rows of an account.
func (a *AuditSnapshot) Count(ctx context.Context, account string) (n AuditCounts, err error) {
	err = a.tx.QueryRow(ctx, `SELECT
		(SELECT count(*) FROM processed_events WHERE account_id = $1), (SELECT count(*) FROM orders WHERE account_id = $1),
		(SELECT count(*) FROM payments WHERE account_id = $1), (SELECT count(*) FROM payment_ids WHERE account_id = $1),
		(SELECT count(*) FROM incomes WHERE account_id = $1), (SELECT count(*) FROM recurrences WHERE account_id = $1),
		(SELECT count(*) FROM transactions WHERE account_id = $1), (SELECT count(*) FROM idempotency_keys WHERE account_id = $1)`, account).
		Scan(&n.Events, &n.Orders, &n.Payments, &n.PaymentIDs, &n.Incomes, &n.Recurrences, &n.Transactions, &n.Keys)
	if err != nil {
		return n, fmt.Errorf("count the rows of account %s: %w", account, err)
	}
	return n, nil
}

// Reread reports whether any event of the account was ever read again with another mapping.
func (a *AuditSnapshot) Reread(ctx context.Context, account string) (reread bool, err error) {
	err = a.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM event_meanings WHERE account_id = $1)`, account).Scan(&reread)
	if err != nil {
		return false, fmt.Errorf("look for events of account %s that were read again: %w", account, err)
	}
	return reread, nil
}
