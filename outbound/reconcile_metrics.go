package outbound

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// reconcileMetrics are what Prometheus sees of a Reconciler.
type reconcileMetrics struct {
	runs        *prometheus.CounterVec
	healed      *prometheus.CounterVec
	unexplained *prometheus.CounterVec
	lag         *prometheus.GaugeVec
	succeeded   *prometheus.GaugeVec
	failures    *prometheus.GaugeVec
	open        *prometheus.GaugeVec
}

func newReconcileMetrics() *reconcileMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"source"})
	}
	return &reconcileMetrics{
		runs: counter("paidonce_reconcile_runs_total",
			"Runs over a source, by result: done, more (as much as a run may; the next goes on), failed, stopped, lost (taken over by another).", "source", "result"),
		healed: counter("paidonce_reconcile_healed_total",
			"Events that no webhook had brought and a run found, by what they did: applied has moved an order.", "source", "outcome"),
		unexplained: counter("paidonce_reconcile_unexplained_total", "Answers of gateways that say otherwise than our ledger and moved nothing.", "source"),
		lag: gauge("paidonce_reconcile_lag_seconds",
			"How far behind now the list of a source was read; some minutes of it are the overlap that a list needs."),
		succeeded: gauge("paidonce_reconcile_success_seconds", "How long ago the last run over a source ended that did all there was to do."),
		failures:  gauge("paidonce_reconcile_failures", "Runs over a source in a row that failed."),
		open:      gauge("paidonce_reconcile_open_orders", "Orders of a source whose gateway should have told by now how they go on."),
	}
}

func (m *reconcileMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.runs, m.healed, m.unexplained, m.lag, m.succeeded, m.failures, m.open} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *reconcileMetrics) ended(u unit, result store.ReconcileResult) {
	m.runs.WithLabelValues(u.source.ID, string(result)).Inc()
}

// show sets the gauges.
func (m *reconcileMetrics) show(cursors []store.ReconcileCursor, configured map[store.SourceKey]bool) {
	for _, g := range []*prometheus.GaugeVec{m.lag, m.succeeded, m.failures, m.open} {
		g.Reset()
	}
	for _, c := range cursors {
		if !configured[store.SourceKey{Account: c.Account, ID: c.Source}] {
			continue
		}
		if c.Lists && c.ReachedAt != nil {
			m.lag.WithLabelValues(c.Source).Set(c.Lag.Truncate(time.Second).Seconds())
		}
		if c.SucceededAt != nil {
			m.succeeded.WithLabelValues(c.Source).Set(c.Succeeded.Truncate(time.Second).Seconds())
		}
		m.failures.WithLabelValues(c.Source).Set(float64(c.Failures))
		m.open.WithLabelValues(c.Source).Set(float64(c.Open))
	}
}
