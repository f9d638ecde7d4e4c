package idempotency

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// errOuter answers a handler that wants to end the transaction that is not its own.
var errOuter = errors.New("idempotency: the unit of work is committed or rolled back when its handler has ended; Begin makes a savepoint")

// unitTx is the unit of work, or a savepoint in it, as a pgx.Tx. BEGIN and COMMIT of the transaction travel in pipelines and are
// not its business.
type unitTx struct {
	conn   *pgx.Conn
	root   *unitTx // of a savepoint
	name   string  // of a savepoint
	depth  int     // savepoints made so far, on the root
	closed atomic.Bool
}

var _ pgx.Tx = (*unitTx)(nil)

func (t *unitTx) usable() error {
	if t.closed.Load() || t.root != nil && t.root.closed.Load() {
		return pgx.ErrTxClosed
	}
	return nil
}

// Begin makes a savepoint.
func (t *unitTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	root := t
	if t.root != nil {
		root = t.root
	}
	root.depth++
	sp := &unitTx{conn: t.conn, root: root, name: "idempotency_" + strconv.Itoa(root.depth)}
	if _, err := t.conn.Exec(ctx, "SAVEPOINT "+sp.name); err != nil {
		return nil, err
	}
	return sp, nil
}

// Commit releases a savepoint.
func (t *unitTx) Commit(ctx context.Context) error {
	if t.root == nil {
		return errOuter
	}
	if err := t.usable(); err != nil {
		return err
	}
	t.closed.Store(true)
	_, err := t.conn.Exec(ctx, "RELEASE SAVEPOINT "+t.name)
	return err
}

// Rollback goes back to a savepoint. After Commit it does nothing but say so, so that it can be deferred.
func (t *unitTx) Rollback(ctx context.Context) error {
	if t.root == nil {
		return errOuter
	}
	if err := t.usable(); err != nil {
		return err
	}
	t.closed.Store(true)
	if _, err := t.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+t.name); err != nil {
		_ = t.conn.Close(ctx) // as pgx does: nobody may go on as if this had been undone
		return err
	}
	return nil
}

// Conn returns the connection, on which nothing may be begun or ended.
func (t *unitTx) Conn() *pgx.Conn { return t.conn }

// LargeObjects needs a type that only pgx can make.
func (t *unitTx) LargeObjects() pgx.LargeObjects {
	panic("idempotency: no large objects in a unit of work")
}

func (t *unitTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	return t.conn.CopyFrom(ctx, table, columns, src)
}

func (t *unitTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.usable(); err != nil {
		return failedBatch{err}
	}
	return t.conn.SendBatch(ctx, b)
}

func (t *unitTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	return t.conn.Prepare(ctx, name, sql)
}

func (t *unitTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.usable(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.conn.Exec(ctx, sql, args...)
}

func (t *unitTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.usable(); err != nil {
		return failedRows{err}, err
	}
	return t.conn.Query(ctx, sql, args...)
}

func (t *unitTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.usable(); err != nil {
		return failedRows{err}
	}
	return t.conn.QueryRow(ctx, sql, args...)
}

// failedRows is the result of a query that was not sent.
type failedRows struct{ err error }

func (r failedRows) Close()                                       {}
func (r failedRows) Err() error                                   { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                            { return r.err }
func (r failedRows) Values() ([]any, error)                       { return nil, r.err }
func (r failedRows) RawValues() [][]byte                          { return nil }
func (r failedRows) Conn() *pgx.Conn                              { return nil }
func (r failedRows) TypeMap() *pgtype.Map                         { return nil }

// failedBatch is the result of a batch that was not sent.
type failedBatch struct{ err error }

func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }
func (b failedBatch) Query() (pgx.Rows, error)         { return failedRows(b), b.err }
func (b failedBatch) QueryRow() pgx.Row                { return failedRows(b) }
func (b failedBatch) Close() error                     { return b.err }
func (b failedBatch) Tx() pgx.Tx                       { return nil }
