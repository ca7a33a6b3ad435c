package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// receiverTelemetry is what is known of the ways to people.
type receiverTelemetry struct {
	open      *prometheus.GaugeVec
	failures  *prometheus.CounterVec
	isDown    *prometheus.GaugeVec
	heartbeat *prometheus.GaugeVec
	interval  *prometheus.GaugeVec
}

func newReceiverTelemetry() *receiverTelemetry {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"receiver"})
	}
	return &receiverTelemetry{
		open: gauge("setpoint_pages_open", "Open pages by receiver."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "setpoint_receiver_failures_total", Help: "Failed deliveries of pages and heartbeats.",
		}, []string{"receiver"}),
		isDown:    gauge("setpoint_receiver_down", "1 while a receiver takes nothing: three failures in a row, and no success since."),
		heartbeat: gauge("setpoint_heartbeat_timestamp_seconds", "When the receiver last took a heartbeat; 0 before the first."),
		interval:  gauge("setpoint_heartbeat_interval_seconds", "How often a heartbeat is sent to the receiver."),
	}
}

func (t *receiverTelemetry) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.open, t.failures, t.isDown, t.heartbeat, t.interval}
}

// pages counts the open ones. A heartbeat is none.
func (t *receiverTelemetry) pages(pages []escalate.Page) {
	t.open.Reset()
	for _, p := range pages {
		if !p.EndedAt.IsZero() || p.Reason == escalate.Heartbeat {
			continue
		}
		for _, rec := range p.Receivers {
			t.open.WithLabelValues(rec).Inc()
		}
	}
}

func (t *receiverTelemetry) failed(name string) { t.failures.WithLabelValues(name).Inc() }

func (t *receiverTelemetry) down(name string, down bool) {
	t.isDown.WithLabelValues(name).Set(bit(down))
}

func (t *receiverTelemetry) beat(name string, every time.Duration, last time.Time) {
	t.interval.WithLabelValues(name).Set(every.Seconds())
	at := 0.0
	if !last.IsZero() {
		at = float64(last.UnixMilli()) / 1000
	}
	t.heartbeat.WithLabelValues(name).Set(at)
}
