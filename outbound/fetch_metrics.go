package outbound

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// fetchMetrics are what Prometheus sees of a Fetcher.
type fetchMetrics struct {
	calls   *prometheus.CounterVec
	lag     prometheus.Histogram
	open    *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec
	dead    *prometheus.GaugeVec
	expired prometheus.Counter
	stale   prometheus.Counter
	denied  prometheus.Counter
	renewed prometheus.Counter
}

func newFetchMetrics() *fetchMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"gateway"})
	}
	return &fetchMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_fetches_total",
			Help: "Objects that gateways were asked about, by result: changed, unchanged; retry, gone, denied, refused, unreadable, " +
				"cannot_ask, not_ingested, panic (they come again, or are given up); turned_away, late (no call was made).",
		}, []string{"gateway", "result"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_fetch_lag_seconds", Help: "How long after it was due an object was asked about.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}),
		open:    gauge("paidonce_fetches_open", "Objects that were announced and not asked about since, with success."),
		oldest:  gauge("paidonce_fetches_oldest_seconds", "How long the object that waits the longest has been announced."),
		dead:    gauge("paidonce_fetches_dead", "Objects that were given up until they are announced again."),
		expired: counter("paidonce_fetch_claims_expired_total", "Claims that nobody settled: the process was killed or could not reach the database."),
		stale:   counter("paidonce_fetch_settles_stale_total", "Results of calls whose claim had been taken by another."),
		denied:  counter("paidonce_fetch_denied_total", "Jobs that were turned away because their account had its share of the workers."),
		renewed: counter("paidonce_fetches_renewed_total", "Objects whose promised call had not come and was asked for again."),
	}
}

func (m *fetchMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.calls, m.lag, m.open, m.oldest, m.dead, m.expired, m.stale, m.denied, m.renewed} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// show sets the gauges.
func (m *fetchMetrics) show(piles map[string]store.FetchPile) {
	m.open.Reset()
	m.oldest.Reset()
	m.dead.Reset()
	for gateway, p := range piles {
		m.open.WithLabelValues(gateway).Set(float64(p.Open))
		m.oldest.WithLabelValues(gateway).Set(p.Oldest.Seconds())
		m.dead.WithLabelValues(gateway).Set(float64(p.Dead))
	}
}
