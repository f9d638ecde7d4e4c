package processor

import (
	"math/rand/v2"
	"time"
)

// DefaultSchedule is how long to wait after the first, second … failed attempt: about two days in all. After the last
// the effect is dead.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
}

// schedule decides when a failed effect is tried again.
type schedule struct {
	waits      []time.Duration
	refusedFor time.Duration
}

// jitter spreads the waits by a fifth either way, so that what failed together does not come back together.
const jitter = 0.2

// next returns the wait after failed attempt number n, counted from 1, or reports that there is no further one. How long
// an effect has been refused is told by the schedule, not by a clock: the waits so far and the next one.
func (s schedule) next(n int, r result) (wait time.Duration, again bool) {
	if r.class == classDead || n > len(s.waits) {
		return 0, false
	}
	if r.class == classRefused {
		var sum time.Duration
		for _, w := range s.waits[:n] {
			sum += w
		}
		if sum > s.refusedFor {
			return 0, false
		}
	}
	wait = time.Duration(float64(s.waits[n-1]) * (1 - jitter + 2*jitter*rand.Float64()))
	return max(wait, min(r.wait, MaxRetryAfter)), true
}
