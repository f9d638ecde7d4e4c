package processor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/processor"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	waits := processor.DefaultSchedule()
	down, no := errors.New("503"), processor.Refused(errors.New("404"))
	next := func(n int, err error) (time.Duration, bool) {
		return processor.NextTry(waits, 24*time.Hour, n, err)
	}

	for i, want := range waits {
		seen := map[time.Duration]bool{}
		for range 100 {
			wait, again := next(i+1, down)
			require.True(t, again)
			require.InDelta(t, float64(want), float64(wait), float64(want)/5+1, "attempt %d", i+1)
			seen[wait] = true
		}
		require.Greater(t, len(seen), 50, "spread, so that what failed together does not come back together")
	}
	_, again := next(len(waits)+1, down)
	require.False(t, again, "the eleventh failure is the last")

	for n := 1; n <= 9; n++ {
		_, again := next(n, no)
		require.True(t, again, "refused for less than a day")
	}
	_, again = next(10, no)
	require.False(t, again, "the next try would come 46 h after the first")

	_, again = next(1, processor.Dead(errors.New("410")))
	require.False(t, again)

	wait, _ := next(1, processor.RetryAfter(down, time.Minute))
	require.Equal(t, time.Minute, wait, "not before the merchant says")
	wait, _ = next(3, processor.RetryAfter(down, time.Second))
	require.GreaterOrEqual(t, wait, 96*time.Second, "and not before the schedule does")
	wait, _ = next(1, processor.RetryAfter(down, 1000*time.Hour))
	require.Equal(t, processor.MaxRetryAfter, wait)
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	err := errors.New("x")
	for want, errs := range map[string][]error{
		"done":     {nil},
		"retry":    {err, processor.RetryAfter(err, time.Hour), context.Canceled, &net.OpError{Op: "dial", Err: err}},
		"refused":  {processor.Refused(err), fmt.Errorf("wrapped: %w", processor.Refused(err))},
		"rejected": {processor.Dead(err), fmt.Errorf("wrapped: %w", processor.Dead(context.DeadlineExceeded))},
		"timeout":  {context.DeadlineExceeded, fmt.Errorf("wrapped: %w", context.DeadlineExceeded), &net.DNSError{IsTimeout: true}},
	} {
		for _, e := range errs {
			require.Equal(t, want, processor.ResultName(e), "%v", e)
		}
	}
	require.ErrorIs(t, processor.Refused(err), err)
}
