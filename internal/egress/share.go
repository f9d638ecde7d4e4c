package egress

import (
	"sync"
	"time"
)

// Share divides a process's workers among accounts, so that one merchant's slow or hanging endpoints do not use up
// what the others need: an account never holds more than three quarters of the workers, and no more than one quarter
// while another account was active within the last quiet.
//
// A fixed quarter would leave workers idle; a quarter only "while another has due work" lets a hanging account fill
// every worker in the calm before the other's next work, which then waits a whole deadline. Safe for concurrent use.
type Share struct {
	workers int
	quiet   time.Duration
	elapsed func() time.Duration

	mu     sync.Mutex
	busy   map[string]int // workers held, by account; no zeros
	behind map[string]int // accounts with work that was turned away; counts the times, see CaughtUp

	// The account active last, when, and when any other than that one was.
	last    string
	lastAt  time.Duration
	otherAt time.Duration
}

// NewShare returns the share of so many workers. An account counts as active for so long after its last work; elapsed is
// a clock that only runs forward.
func NewShare(workers int, quiet time.Duration, elapsed func() time.Duration) *Share {
	long := -quiet - time.Nanosecond // nobody was active before the start
	return &Share{
		workers: workers, quiet: quiet, elapsed: elapsed,
		busy: map[string]int{}, behind: map[string]int{}, lastAt: long, otherAt: long,
	}
}

// Acquire takes a worker for account, or reports that its share is used up; the account is then behind.
func (s *Share) Acquire(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active(account)
	if s.busy[account] >= s.limit(account) {
		s.behind[account]++
		return false
	}
	s.busy[account]++
	return true
}

// Release gives the worker back.
func (s *Share) Release(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[account]--; s.busy[account] <= 0 {
		delete(s.busy, account)
	}
}

// Keeps reports whether a worker held by account may go on to other work of it: the share may have become smaller
// since it was taken.
func (s *Share) Keeps(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[account] > s.limit(account) {
		return false
	}
	s.active(account)
	return true
}

// TurnedAway notes that work of account was refused for a reason other than its share.
func (s *Share) TurnedAway(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind[account]++
}

// Backlog reports whether account may have work that no job stands for, as a number for CaughtUp; 0 means none.
func (s *Share) Backlog(account string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind[account]
}

// CaughtUp notes that a look taken after backlog returned n found nothing due. What was turned away since then counts.
func (s *Share) CaughtUp(account string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behind[account] == n {
		delete(s.behind, account)
	}
}

func (s *Share) active(account string) {
	now := s.elapsed()
	if account != s.last {
		s.otherAt, s.last = s.lastAt, account
	}
	s.lastAt = now
}

func (s *Share) limit(account string) int {
	other := s.lastAt
	if account == s.last {
		other = s.otherAt
	}
	alone := s.elapsed()-other > s.quiet
	for a := range s.busy { // the first other one settles it
		if a != account {
			alone = false
			break
		}
	}
	if alone {
		return max(1, s.workers*3/4)
	}
	return max(1, s.workers/4)
}
