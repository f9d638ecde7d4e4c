package outbound

import (
	"context"

	"github.com/paidonce/paidonce/store"
)

// Work does what River does for a job.
func Work(ctx context.Context, f *Fetcher, args store.FetchArgs) error { return f.work(ctx, args) }
