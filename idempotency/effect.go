package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// savepoint is where a unit of work begins: what lies before it, the row's lock, outlives an answer that is kept without its writes.
const savepoint = "idempotency_handler"

// sqlHold locks the row of the key for this call's transaction, which is what proves that it lives, and sets what the
// session has not set by itself: a session that hangs must not hold the row for ever.
const sqlHold = `
SELECT ` + sqlDurable + `,
  CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0' THEN set_config('idle_in_transaction_session_timeout', $3::text, true) END,
  CASE WHEN current_setting('statement_timeout') = '0' THEN set_config('statement_timeout', $3::text, true) END
FROM idempotency_keys
WHERE id = $1::uuid AND fence = $2::bigint AND status = 'PROCESSING'
FOR NO KEY UPDATE`

var beginnings = map[pgx.TxIsoLevel]string{
	pgx.ReadCommitted:  "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
	pgx.RepeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
	pgx.Serializable:   "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
}

// begin opens the effect transaction in one round trip. It reports false if the key is another call's by now.
func begin(ctx context.Context, conn *pgx.Conn, h hold, p *Policy) (held bool, err error) {
	var b pgx.Batch
	b.Queue(beginnings[p.Isolation])
	limit := strconv.FormatInt((p.Deadline + time.Second).Milliseconds(), 10)
	b.Queue(sqlHold, pgUUID(h.id), h.fence, limit).Query(func(rows pgx.Rows) error {
		held = rows.Next()
		return nil
	})
	if !p.KeepWrites {
		b.Queue("SAVEPOINT " + savepoint)
	}
	if err := send(ctx, conn, &b); err != nil {
		return false, fmt.Errorf("begin the effect of a key: %w", err)
	}
	return held, nil
}

// answer is a response as it is stored.
type answer struct {
	code         int
	headers      *string // JSON
	body         *string // JSON that JSONB can hold
	raw          []byte  // nil: a tombstone
	sealed       bool
	resourceType *string
	resourceID   pgtype.UUID
}

// sqlComplete stores the answer. That it concerns exactly one row is not looked at but enforced, by a division by zero, since
// the COMMIT is already on its way behind it.
const sqlComplete = `
WITH done AS (` + sqlStore + `id)
SELECT 1 / count(*) FROM done`

const sqlStore = `
  UPDATE idempotency_keys
  SET status = 'COMPLETED', response_code = $3::int, response_headers = $4::text::jsonb, response_body = $5::text::jsonb,
    response_raw = $6::bytea, sealed = $7::boolean, resource_id = $8::uuid, resource_type = $9::text, locked_at = NULL,
    completed_at = clock_timestamp(), last_error = NULL
  WHERE id = $1::uuid AND fence = $2::bigint AND status = 'PROCESSING'
  RETURNING `

func (h hold) complete(a *answer) []any {
	return []any{pgUUID(h.id), h.fence, a.code, a.headers, a.body, a.raw, a.sealed, a.resourceID, a.resourceType}
}

// commit stores the answer and commits, in one round trip. Without keepWrites what the handler wrote is rolled back first.
func commit(ctx context.Context, conn *pgx.Conn, h hold, a *answer, keepWrites bool) error {
	if conn.PgConn().IsBusy() {
		return errNoTransaction // rows that the handler has left open
	}
	if !keepWrites && conn.PgConn().TxStatus() == 'E' {
		// Nothing new can be prepared in a failed transaction.
		if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
			return err
		}
	}
	if s := conn.PgConn().TxStatus(); s != 'T' {
		return errNoTransaction
	}
	var b pgx.Batch
	if !keepWrites {
		b.Queue("ROLLBACK TO SAVEPOINT " + savepoint)
	}
	b.Queue(sqlComplete, h.complete(a)...)
	b.Queue("COMMIT")
	return send(ctx, conn, &b)
}

// errNoTransaction says that a handler answered success although its transaction had failed, was ended behind our back, or is
// still in use.
var errNoTransaction = errors.New("idempotency: the handler has left its unit of work failed, ended or in use")

// abandonTimeout bounds the ROLLBACK of a transaction whose caller may already have given up.
const abandonTimeout = 2 * time.Second

// abandon ends a transaction. A connection that cannot even roll back is closed, which ends it as well.
func abandon(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx)
	}
}

// sqlRelease frees a key whose call has failed. It waits for the row, should a transaction of this call's fence still hold it.
const sqlRelease = `
UPDATE idempotency_keys
SET status = 'FAILED', locked_at = NULL, hash_bound = $3::boolean, last_error = $4::text
WHERE id = $1::uuid AND fence = $2::bigint AND status = 'PROCESSING'`

// sqlFree is sqlRelease where a COMMIT is on its way behind it, as of sqlComplete.
const sqlFree = `
WITH done AS (` + sqlRelease + `
  RETURNING id)
SELECT 1 / count(*) FROM done`

// commitFreed frees the key and commits what the handler wrote, whose answer is not stored, in one round trip.
func commitFreed(ctx context.Context, conn *pgx.Conn, h hold, o Outcome, cause error) error {
	if conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'T' {
		return errNoTransaction
	}
	var b pgx.Batch
	b.Queue(sqlFree, pgUUID(h.id), h.fence, o != Forget, errorClass(cause))
	b.Queue("COMMIT")
	return send(ctx, conn, &b)
}

// release frees the key, for the same request or for any. It reports whether it was still this call's.
func release(ctx context.Context, conn *pgx.Conn, h hold, o Outcome, why string) (bool, error) {
	tag, err := conn.Exec(ctx, sqlRelease, pgUUID(h.id), h.fence, o != Forget, why)
	return tag.RowsAffected() == 1, err
}

// sqlRead reads the state of a key by id. No row: it was deleted.
const sqlRead = `SELECT fence, status::text FROM idempotency_keys WHERE id = $1::uuid`

func read(ctx context.Context, conn *pgx.Conn, id uuid.UUID) (fence int64, status string, err error) {
	err = conn.QueryRow(ctx, sqlRead, pgUUID(id)).Scan(&fence, &status)
	return fence, status, err
}

// completeAlone stores an answer without an effect transaction. It reports false if the key is another call's by now.
func completeAlone(ctx context.Context, conn *pgx.Conn, h hold, a *answer) (bool, error) {
	var one int
	err := conn.QueryRow(ctx, sqlCompleteAlone, h.complete(a)...).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

const sqlCompleteAlone = sqlStore + `CASE WHEN ` + sqlDurable + ` <> 'off' THEN 1 END`

// sqlBeat renews the lock of a call that has no effect transaction.
const sqlBeat = `
UPDATE idempotency_keys
SET locked_at = clock_timestamp()
WHERE id = $1::uuid AND fence = $2::bigint AND status = 'PROCESSING'`

func beat(ctx context.Context, conn *pgx.Conn, h hold) (bool, error) {
	tag, err := conn.Exec(ctx, sqlBeat, pgUUID(h.id), h.fence)
	return tag.RowsAffected() == 1, err
}
