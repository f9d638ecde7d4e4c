package receiver

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what Prometheus sees of a Receiver. Sources and gateways are label values only where they are configured;
// a request for anything else counts under the empty ones, so a caller cannot make a time series.
type metrics struct {
	deliveries *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	events     *prometheus.CounterVec
	announced  *prometheus.CounterVec
	ingest     *prometheus.HistogramVec
	inFlight   prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_webhook_deliveries_total",
			Help: "Requests to the webhook endpoints, by their answer.",
		}, []string{"gateway", "source", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_webhook_refusals_total",
			Help: "Requests that were not answered 200, by reason.",
		}, []string{"gateway", "source", "reason"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_webhook_events_total",
			Help: "Events of deliveries that were answered 200, by outcome.",
		}, []string{"gateway", "source", "outcome"}),
		announced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_fetch_announcements_total",
			Help: "Objects that deliveries named, to be asked about at the gateway: stored, known (a call was asked for before), dropped (too many of the source are open), displaced (unknown to the gateway, deleted to make room).",
		}, []string{"gateway", "source", "result"}),
		ingest: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "paidonce_webhook_ingest_seconds",
			Help:    "Time from a verified and parsed delivery to its commit or failure.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"gateway"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "paidonce_webhook_in_flight",
			Help: "Verified deliveries that wait for their commit.",
		}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.deliveries, m.refusals, m.events, m.announced, m.ingest, m.inFlight} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) count(l *record) {
	m.deliveries.WithLabelValues(l.gateway, l.source, strconv.Itoa(l.status)).Inc()
	if l.reason != "" && l.status != http.StatusOK {
		m.refusals.WithLabelValues(l.gateway, l.source, l.reason).Inc()
	}
	for result, n := range map[string]int{
		"stored": l.announced.Stored, "known": l.announced.Known, "dropped": l.announced.Dropped, "displaced": l.announced.Displaced,
	} {
		if n > 0 {
			m.announced.WithLabelValues(l.gateway, l.source, result).Add(float64(n))
		}
	}
	for _, r := range l.results {
		m.events.WithLabelValues(l.gateway, l.source, string(r.Outcome)).Inc()
	}
}
