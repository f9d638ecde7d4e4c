package api

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds how many accounts' buckets are remembered at once.
const maxBuckets = 10_000

// buckets holds a token bucket for every account that was heard of lately. It counts the requests of this process alone.
type buckets struct {
	perSecond, burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func newBuckets(perSecond, burst int) *buckets {
	return &buckets{perSecond: perSecond, burst: burst, of: map[string]*rate.Limiter{}}
}

// take takes a token of the account, or says after which time there is one again.
func (b *buckets) take(account string, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.of[account]
	if !ok {
		if len(b.of) >= maxBuckets {
			b.forget(now)
		}
		l = rate.NewLimiter(rate.Limit(b.perSecond), b.burst)
		b.of[account] = l
	}
	r := l.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now) // who is refused has not been served
	}
	return wait
}

// forget drops the buckets that are full, of which a new one differs in nothing; if none is, the fullest.
func (b *buckets) forget(now time.Time) {
	var fullest string
	most := -1
	for account, l := range b.of {
		tokens := int(l.TokensAt(now))
		if tokens >= b.burst {
			delete(b.of, account)
		}
		if tokens > most {
			fullest, most = account, tokens
		}
	}
	delete(b.of, fullest)
}

// limit refuses the requests of an account that sends too many. It comes after authenticate, so that nobody can use up
// another account's share.
func (a *API) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := a.buckets.take(callOf(r.Context()).key.Account, a.opts.Now()); wait > 0 {
			p := problemf(CodeRateLimited, "An account may send %d requests in a second, and %d at once, to one process.", a.opts.Rate, a.opts.Burst)
			p.retryAfter = wait
			a.fail(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}
