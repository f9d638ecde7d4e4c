package outbound

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/gateway"
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

// Ruled is what follows from what came of a call, in the words that tests look at.
type Ruled struct {
	store.MoveAnswer
	Result string
	Alarm  bool
}

// Judged and Unanswered decide what follows from a verdict, and from a call without an answer.
func Judged(o MoveOptions, c store.MoveClaim, canLook bool, v gateway.Verdict) Ruled {
	r := o.withDefaults().judged(c, canLook, v)
	return Ruled{r.answer, r.result, r.level == alarm}
}

func Unanswered(o MoveOptions, c store.MoveClaim, canLook bool, err error) Ruled {
	r := o.withDefaults().unanswered(c, canLook, err)
	return Ruled{r.answer, r.result, r.level == alarm}
}
