package processor

import (
	"net/netip"
	"time"

	"github.com/paidonce/paidonce/internal/netaddr"
)

// The parts that decide, for tests of their rules alone.

// NextTry is the schedule's word after failed attempt n, which ended with err.
func NextTry(waits []time.Duration, refusedFor time.Duration, n int, err error) (time.Duration, bool) {
	return schedule{waits: waits, refusedFor: refusedFor}.next(n, resultOf(err))
}

// ResultName is what metrics and logs call an error of a Fulfiller.
func ResultName(err error) string { return resultOf(err).name() }

// IsPublic reports whether a callback may go to address a.
func IsPublic(a string) bool { return netaddr.Public(netip.MustParseAddr(a)) }
