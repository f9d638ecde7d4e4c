package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipedTx is a transaction whose BEGIN and COMMIT travel inside pipelines, so that they cost no round trip of their
// own. It is a pgx.Tx as far as River and Options.InTx need one.
type pipedTx struct{ conn *pgx.Conn }

var errPiped = errors.New("store: this transaction begins and ends inside its pipelines")

func (t *pipedTx) Begin(ctx context.Context) (pgx.Tx, error) { return nil, errPiped }
func (t *pipedTx) Commit(context.Context) error              { return errPiped }
func (t *pipedTx) Rollback(context.Context) error            { return errPiped }
func (t *pipedTx) Conn() *pgx.Conn                           { return t.conn }
func (t *pipedTx) LargeObjects() pgx.LargeObjects            { panic("store: no large objects in an ingest") }

func (t *pipedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	return t.conn.CopyFrom(ctx, table, columns, src)
}

func (t *pipedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, b)
}

func (t *pipedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.conn.Prepare(ctx, name, sql)
}

func (t *pipedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

func (t *pipedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

func (t *pipedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}

// abandonTimeout bounds the ROLLBACK of a transaction whose caller may already have given up.
const abandonTimeout = 2 * time.Second

// abandon ends a transaction that failed. A connection that cannot even roll back is closed: the pool drops it.
func (t *pipedTx) abandon(ctx context.Context) {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = t.conn.Close(ctx)
	}
}
