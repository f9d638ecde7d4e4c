package processor

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

type workerMetrics struct {
	calls    *prometheus.CounterVec
	seconds  prometheus.Histogram
	lag      prometheus.Histogram
	died     prometheus.Counter
	dead     prometheus.Gauge
	overdue  prometheus.Gauge
	expired  prometheus.Counter
	stale    prometheus.Counter
	late     prometheus.Counter
	denied   *prometheus.CounterVec
	looks    *prometheus.CounterVec
	renewed  prometheus.Counter
	silent   prometheus.Gauge
	circuits prometheus.GaugeFunc
}

func newWorkerMetrics(openCircuits func() int) *workerMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &workerMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_effect_calls_total",
			Help: "Calls to merchants by effect and result: done, retry, timeout, refused (tried again for a day), rejected (dead at once).",
		}, []string{"effect", "result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_effect_call_seconds", Help: "Duration of calls to merchants.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_effect_lag_seconds", Help: "How long after it was due an effect was called.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}),
		died: counter("paidonce_effects_died_total", "Effects that this process gave up."),
		dead: gauge("paidonce_effects_dead", fmt.Sprintf("Dead effects that wait for a person, up to %d.", store.MaxDeadCount)),
		overdue: gauge("paidonce_effects_overdue_seconds",
			"How long the order that waits the longest for its look has been due; 0 while none is late."),
		expired: counter("paidonce_effect_claims_expired_total", "Claims that nobody settled: the worker was killed or could not reach the database."),
		stale:   counter("paidonce_effect_settles_stale_total", "Results of calls whose claim had been taken by another; nothing was written."),
		late:    counter("paidonce_effect_calls_dropped_total", "Calls that were not made because the process had slept through most of the lease."),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_drain_denied_total", Help: "Jobs that were turned away, by reason: share, circuit, no_callback.",
		}, []string{"reason"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_drain_looks_total", Help: "Looks at orders, by how they came (job, pull) and whether there was something to call.",
		}, []string{"by", "found"}),
		renewed: counter("paidonce_ticker_renewed_total", "Orders whose promised look had not come and was asked for again."),
		silent:  gauge("paidonce_accounts_without_callback", "Accounts that have effects due and no callback."),
		circuits: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "paidonce_callback_circuits_open", Help: "Endpoints that are left alone because they only timed out.",
		}, func() float64 { return float64(openCircuits()) }),
	}
}

func (m *workerMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{
		m.calls, m.seconds, m.lag, m.died, m.dead, m.overdue, m.expired, m.stale, m.late, m.denied, m.looks, m.renewed, m.silent, m.circuits,
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
