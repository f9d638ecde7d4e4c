package api

import (
	"context"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store"
)

// unit runs what writes. Under an Idempotency-Key it is the transaction in which the answer is stored too, so that both are
// committed or neither; otherwise one of its own, which begins again if Postgres refused it for the sake of another one. f must
// not keep anything of a run that failed.
func (a *API) unit(ctx context.Context, f func(tx store.Tx) error) error {
	if tx, ok := idempotency.Tx(ctx); ok {
		return f(tx)
	}
	return a.store.InTx(ctx, f)
}
