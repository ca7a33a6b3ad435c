// Package shop is three small services that really degrade, and the actuator
// that changes them. It takes faults from its owner alone and actions from
// whoever has the actuator's secret, and gives metrics. One core serves
// simulated time (Tick) and real time (Serve, with real HTTP, queue, workers
// and load on loopback).
package shop

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// Shop is the three services with their actuator. It is safe for concurrent
// use.
type Shop struct {
	core      *core
	actuators []*actuator

	// ctx ends with Close, and every running Serve with it.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a healthy shop.
func New(o Options) (*Shop, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Shop{core: newCore(o.Seed)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.openActuators(o); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// Close ends what Serve started and closes the journals.
func (s *Shop) Close() error {
	s.cancel()
	s.running.Wait()
	return s.closeActuators()
}

// Inject breaks something from now on.
func (s *Shop) Inject(f Fault) { s.core.inject(f) }

// Tick lets simulated time pass: traffic, queue, workers, counters. It is not
// for a shop that Serve runs.
func (s *Shop) Tick(d time.Duration) { s.core.tick(d) }

// Gatherer is the metrics of one service, or nil while its exporter is dead.
func (s *Shop) Gatherer(service string) prometheus.Gatherer {
	if s.core.dead(service) {
		return nil
	}
	r, ok := s.core.registries[service]
	if !ok {
		return nil
	}
	return r
}

// Harm counts failures of service that an action itself caused: requests that
// failed because something healthy was restarted.
func (s *Shop) Harm() int { return s.core.harmed() }
