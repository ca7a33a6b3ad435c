package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// agentMetrics are those of the process around the loop.
type agentMetrics struct {
	registry     *prometheus.Registry
	queries      *prometheus.CounterVec
	reloadFailed prometheus.Gauge
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
		reloadFailed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "setpoint_policy_reload_failed", Help: "1 while the policy on disk is not the one in force, because it does not load.",
		}),
	}
	m.registry.MustRegister(built, m.queries, m.reloadFailed,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *agentMetrics) queried(source, result string) {
	m.queries.WithLabelValues(source, result).Inc()
}

// policyLoaded tells whether the last try to load the policy worked.
func (m *agentMetrics) policyLoaded(ok bool) {
	failed := 1.0
	if ok {
		failed = 0
	}
	m.reloadFailed.Set(failed)
}
