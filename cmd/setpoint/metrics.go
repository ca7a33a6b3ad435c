package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// agentMetrics are those of the process around the loop.
type agentMetrics struct {
	registry *prometheus.Registry
	queries  *prometheus.CounterVec
	changes  prometheus.Counter
}

func newAgentMetrics() *agentMetrics {
	b := buildInfo()
	built := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "setpoint_build_info", Help: "1; what was built.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	built.Set(1)
	m := &agentMetrics{
		registry: prometheus.NewRegistry(),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "setpoint_source_queries_total", Help: "Queries to a source by their result.",
		}, []string{"source", "result"}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "setpoint_change_feed_errors_total", Help: "Lines of the change file that were left out, and faults that kept it from being read.",
		}),
	}
	m.registry.MustRegister(built, m.queries, m.changes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *agentMetrics) queried(source, result string) {
	m.queries.WithLabelValues(source, result).Inc()
}

func (m *agentMetrics) changesLost(n int) { m.changes.Add(float64(n)) }
