package outbound

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/store"
)

// Work does what River does for a job.
func Work(ctx context.Context, f *Fetcher, args store.FetchArgs) error {
	return (&fetchWorker{fetcher: f}).Work(ctx, &river.Job[store.FetchArgs]{Args: args})
}

// Move does what River does for a job.
func Move(ctx context.Context, m *Mover, args store.MoveArgs) error {
	return (&moveWorker{mover: m}).Work(ctx, &river.Job[store.MoveArgs]{Args: args})
}
