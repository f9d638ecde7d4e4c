package outbound

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what Prometheus sees of a Client.
type metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	circuits prometheus.GaugeFunc
}

func newMetrics(openCircuits func() int) *metrics {
	return &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_gateway_calls_total",
			Help: "Calls to gateways by result: ok, retry, gone, denied, refused; turned_away were not made, to keep a pace.",
		}, []string{"gateway", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "paidonce_gateway_call_seconds", Help: "Duration of calls to gateways.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}, []string{"gateway"}),
		circuits: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "paidonce_gateway_circuits_open", Help: "Hosts of gateways that are left alone because they did not answer.",
		}, func() float64 { return float64(openCircuits()) }),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.calls, m.seconds, m.circuits} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) done(gateway string, e *Error) {
	result := "ok"
	if e != nil {
		result = string(e.Kind)
	}
	m.calls.WithLabelValues(gateway, result).Inc()
}

func (m *metrics) turnedAway(gateway string) { m.calls.WithLabelValues(gateway, "turned_away").Inc() }

func (m *metrics) took(gateway string, d time.Duration) {
	m.seconds.WithLabelValues(gateway).Observe(d.Seconds())
}
