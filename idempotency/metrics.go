package idempotency

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// What the middleware decided, as the label "decision" of paidonce_idempotency_decisions_total.
const (
	executedOnce    = "executed"
	replayed        = "replayed"
	mismatched      = "mismatch"
	decidedInFlight = "in_flight"
	tookOver        = "takeover"
	lateFinish      = "late_finish"
	fencedOut       = "fenced_out"
	unknownCommit   = "unknown_commit"
	tombstoned      = "tombstone"
	failed          = "failed"      // the handler did; nothing was kept
	unstored        = "unstored"    // done without a transaction, and not recorded
	unprotected     = "unprotected" // no key was sent, and none was required
	keyMissing      = "key_missing"
	keyInvalid      = "key_invalid"
	bodyInvalid     = "body_invalid"
	bodyTooSlow     = "body_too_slow"
	bodyTooLarge    = "body_too_large"
	forbidden       = "forbidden"
	storeAway       = "unavailable"
)

// refusals are the decisions behind the problems that end a call at once.
var refusals = map[string]string{
	CodeKeyMissing: keyMissing, CodeKeyInvalid: keyInvalid, CodeBodyInvalid: bodyInvalid, CodeBodyTooSlow: bodyTooSlow, CodeBodyTooLarge: bodyTooLarge,
	CodeKeyReused: mismatched, CodeReplayForbidden: forbidden, CodeUnavailable: storeAway,
}

// maxPolicies bounds the label "policy": names come from code, but code can make them up.
const maxPolicies = 32

type metrics struct {
	decisions *prometheus.CounterVec // nil: nobody asked

	mu       sync.Mutex
	policies map[string]bool
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{policies: map[string]bool{}}
	if reg == nil {
		return m, nil
	}
	m.decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_idempotency_decisions_total",
		Help: "Calls with an Idempotency-Key, by what became of them. Alert on takeover, unknown_commit and unstored.",
	}, []string{"decision", "policy"})
	if err := reg.Register(m.decisions); err != nil {
		return nil, fmt.Errorf("idempotency: metrics: %w", err)
	}
	return m, nil
}

// registerGauges registers what the sweeps of a store have found. They stand with the store and not with the middleware,
// since the process that sweeps is often not the one that serves.
func (s *Store) registerGauges(reg prometheus.Registerer) error {
	gauge := func(name, help string, read func(*SweepResult) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if r := s.stats.Load(); r != nil {
				return read(r)
			}
			return 0
		})
	}
	for _, c := range []prometheus.Collector{
		gauge("paidonce_idempotency_oldest_processing_seconds", "Silence of the call that has been silent for longest, as of the last sweep.",
			func(r *SweepResult) float64 { return r.OldestProcessing.Seconds() }),
		gauge("paidonce_idempotency_rows", "Keys in the table, as estimated at the last sweep.",
			func(r *SweepResult) float64 { return float64(r.Rows) }),
		gauge("paidonce_idempotency_expired_unswept", "Expired keys that the last sweep has left.",
			func(r *SweepResult) float64 { return float64(r.Unswept) }),
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("idempotency: metrics: %w", err)
		}
	}
	return nil
}

// count counts a decision. p may be nil.
func (m *metrics) count(decision string, p *Policy) {
	if m.decisions == nil {
		return
	}
	name := "none"
	if p != nil {
		name = m.bounded(p.Name)
	}
	m.decisions.WithLabelValues(decision, name).Inc()
}

func (m *metrics) bounded(policy string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.policies[policy] {
		if len(m.policies) >= maxPolicies {
			return "other"
		}
		m.policies[policy] = true
	}
	return policy
}
