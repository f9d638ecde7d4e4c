package app

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/paidonce/paidonce/store"
)

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// registerPool shows how busy the connections of a part of the program are.
func registerPool(r prometheus.Registerer, part string, pool *pgxpool.Pool) {
	labels := prometheus.Labels{"part": part}
	gauge := func(name, help string, value func(*pgxpool.Stat) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return value(pool.Stat()) },
		))
	}
	gauge("paidonce_pool_connections", "Connections to Postgres.", func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) })
	gauge("paidonce_pool_connections_used", "Connections to Postgres that are in use.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) })
	gauge("paidonce_pool_connections_max", "Connections to Postgres that this process may open.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
	counter := func(name, help string, value func(*pgxpool.Stat) float64) {
		r.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return value(pool.Stat()) },
		))
	}
	counter("paidonce_pool_waits_total", "Times that all connections were in use and one had to be waited for.",
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
	counter("paidonce_pool_wait_seconds_total", "Time spent waiting for a connection.",
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
}

// registerRetries shows how often transactions of a part of the program began again, and why. A deadlock is a bug: all
// of them take their locks in one order.
func registerRetries(r prometheus.Registerer, part string, st *store.Store) {
	for reason, count := range map[string]func(store.Retries) int64{
		"deadlock":      func(n store.Retries) int64 { return n.Deadlock },
		"serialization": func(n store.Retries) int64 { return n.Serialization },
		"lock_timeout":  func(n store.Retries) int64 { return n.LockTimeout },
		"moved":         func(n store.Retries) int64 { return n.Moved },
	} {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "paidonce_transactions_again_total", Help: "Transactions that began again, by what refused them.",
			ConstLabels: prometheus.Labels{"part": part, "reason": reason},
		}, func() float64 { return float64(count(st.Retries())) }))
	}
}
