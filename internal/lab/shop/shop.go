// Package shop is three small services that really degrade, and the actuator
// that changes them. It takes faults from its owner alone and actions from
// whoever has the actuator's secret, and gives metrics. One core serves
// simulated time (Tick) and real time (Serve, with real HTTP, queue, workers
// and load on loopback).
package shop

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// The services.
const (
	Checkout   = "checkout"
	Fulfilment = "fulfilment"
	Catalog    = "catalog"
)

// Names are the services, sorted.
func Names() []string { return []string{Catalog, Checkout, Fulfilment} }

// Fault is what the owner of a shop can break. The agent cannot reach it.
type Fault string

// The faults.
const (
	// BadRelease: checkout runs v42, which fails most requests; the rollback to
	// v41 mends it, scale and restart do not.
	BadRelease Fault = "bad-release"
	// PoisonedWorkers: two shards of fulfilment's workers fail half of the
	// jobs; recycle-workers mends one shard, and the share of failures stays
	// until the second is mended too.
	PoisonedWorkers Fault = "poisoned-workers"
	// DeadExporter: catalog's metrics can no longer be read; catalog is fine.
	DeadExporter Fault = "dead-exporter"
	// SelfHealing: checkout fails for 90 s of its own time and recovers alone.
	SelfHealing Fault = "self-healing"
	// Unfixable: checkout fails whatever is done.
	Unfixable Fault = "unfixable"
)

// Options are what a shop is made of.
type Options struct {
	// Seed makes simulated traffic repeatable.
	Seed uint64
	// Secret is the actuator's.
	Secret []byte
	// JournalDir, when set, keeps the actuator's journals as synced files.
	JournalDir string
	// Now stamps the journal; nil is the real clock.
	Now func() time.Time
}

// Shop is the three services with their actuator.
type Shop struct{}

// New returns a healthy shop.
func New(o Options) (*Shop, error) { panic("lab") }

// Close closes the journals.
func (s *Shop) Close() error { panic("lab") }

// Inject breaks something from now on.
func (s *Shop) Inject(f Fault) { panic("lab") }

// Tick lets simulated time pass: traffic, queue, workers, counters.
func (s *Shop) Tick(d time.Duration) { panic("lab") }

// Gatherer is the metrics of one service, or nil while its exporter is dead.
func (s *Shop) Gatherer(service string) prometheus.Gatherer { panic("lab") }

// Actuator receives webhook.post as CONTRACTS has it, at the paths of slo/:
// /checkout/release, /checkout/scale, /fulfilment/workers, /catalog/restart.
// It does not deduplicate, so that a second send shows as a double effect.
func (s *Shop) Actuator() http.Handler { panic("lab") }

// Journal is what the actuator did, in order of time: the oracle.
func (s *Shop) Journal() []executetest.Record { panic("lab") }

// Harm counts failures of service that an action itself caused: requests that
// failed because something healthy was restarted.
func (s *Shop) Harm() int { panic("lab") }

// Live is a shop in real time.
type Live struct {
	// Metrics are the exporters' URLs by service.
	Metrics map[string]string
	// ActuatorURL is the base URL of the actuator, without a slash at the end.
	ActuatorURL string
}

// Serve runs the services, their load, exporters and actuator on loopback
// until ctx ends.
func (s *Shop) Serve(ctx context.Context) (Live, error) { panic("lab") }
