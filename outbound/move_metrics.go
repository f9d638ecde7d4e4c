package outbound

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// moveMetrics are what Prometheus sees of a Mover.
type moveMetrics struct {
	calls   *prometheus.CounterVec
	lag     prometheus.Histogram
	open    *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec
	expired prometheus.Counter
	stale   prometheus.Counter
	denied  prometheus.Counter
	renewed prometheus.Counter
	heard   prometheus.Counter
}

func newMoveMetrics() *moveMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"gateway", "status"})
	}
	return &moveMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_moves_total",
			Help: "Calls that move money, and questions what became of them, by kind and result: done, declined; later, denied, unanswered (made again, " +
				"with the same key); unsure, reused, absent, window_over; turned_away, cannot_call, late (no call was made); not_settled, panic.",
		}, []string{"gateway", "kind", "result"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_move_lag_seconds", Help: "How long after it was due a transaction was seen to.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}),
		open:    gauge("paidonce_transactions_open", "Transactions that are not settled, by status."),
		oldest:  gauge("paidonce_transactions_oldest_seconds", "How long ago the oldest of them was entered."),
		expired: counter("paidonce_move_claims_expired_total", "Claims that nobody settled: the process was killed or could not reach the database."),
		stale:   counter("paidonce_move_settles_stale_total", "Results of calls whose claim had been taken by another."),
		denied:  counter("paidonce_move_denied_total", "Jobs that were turned away because their account had its share of the workers."),
		renewed: counter("paidonce_moves_renewed_total", "Transactions whose promised call had not come and was asked for again."),
		heard:   counter("paidonce_moves_heard_total", "Uncertain transactions that a webhook settled."),
	}
}

func (m *moveMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.calls, m.lag, m.open, m.oldest, m.expired, m.stale, m.denied, m.renewed, m.heard} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// show sets the gauges.
func (m *moveMetrics) show(piles map[string]map[store.TransactionStatus]store.MovePile) {
	m.open.Reset()
	m.oldest.Reset()
	for gateway, statuses := range piles {
		for status, p := range statuses {
			m.open.WithLabelValues(gateway, string(status)).Set(float64(p.Count))
			m.oldest.WithLabelValues(gateway, string(status)).Set(p.Oldest.Seconds())
		}
	}
}
