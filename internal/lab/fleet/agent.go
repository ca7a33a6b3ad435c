package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// unlimited is a rate that never holds anything up: what is measured is work,
// not waiting.
const unlimited = 1e6

// AgentOptions describe a whole agent over a fleet.
type AgentOptions struct {
	// Dir holds its ledger; it is the caller's to remove. One that is there
	// already is opened, as after a restart.
	Dir string
	// URL is of the server that it measures with.
	URL string
	// Set is what it keeps.
	Set spec.Set
	// Interval of its sweeps (15 s).
	Interval time.Duration
	// Chunk is services per query (100), Concurrency queries at once (2).
	Chunk, Concurrency int
	// Clock is its time, and the server's.
	Clock *Clock
}

// Agent is the product's whole loop, with an SQLite ledger and a source over
// HTTP, in time that goes by only when it is told. Its proposer and its policy
// do nothing but count.
type Agent struct {
	*reconcile.Reconciler

	// Proposals and Rulings are how often the proposer and the policy were asked.
	Proposals, Rulings atomic.Int64

	clock *Clock
	store *sqlite.Store
}

// NewAgent starts an agent; it makes no pass yet.
func NewAgent(ctx context.Context, o AgentOptions) (*Agent, error) {
	orElse(&o.Interval, 15*time.Second)
	orElse(&o.Chunk, 100)
	orElse(&o.Concurrency, 2)
	a := &Agent{clock: o.Clock}
	path := filepath.Join(o.Dir, "setpoint.db")
	store, err := sqlite.Open(path, sqlite.Options{Now: o.Clock.Now})
	if err != nil {
		if err := sqlite.Init(path, "os:lab"); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
		if store, err = sqlite.Open(path, sqlite.Options{Now: o.Clock.Now}); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
	}
	a.store = store
	if err := a.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), store.Close())
	}
	return a, nil
}

func (a *Agent) start(ctx context.Context, o AgentOptions) error {
	source, err := measureprom.New(measureprom.Options{
		Name: "main", URL: o.URL, HTTP: promconfig.DefaultHTTPClientConfig, Timeout: 10 * time.Minute,
		MaxConcurrency: o.Concurrency, QueriesPerSecond: unlimited, Chunk: o.Chunk, Now: a.clock.Now,
	})
	if err != nil {
		return err
	}
	sources, err := measureprom.NewFleet(source)
	if err != nil {
		return err
	}
	cfg := config.Default()
	cfg.Sweep.Interval, cfg.Sweep.Jitter, cfg.Sweep.Concurrency = o.Interval, 0, 2
	cfg.Sources = []config.Source{{Name: "main", MaxSampleAge: 90 * time.Second, Chunk: o.Chunk}}
	a.Reconciler, err = reconcile.New(ctx, reconcile.Options{
		Config: cfg, Documents: func() (spec.Set, error) { return o.Set, nil },
		Measurer: sources, Proposer: counter{&a.Proposals}, Policy: counter{&a.Rulings},
		Store: a.store, Freezes: freezefile.New(filepath.Join(o.Dir, "freeze"), a.clock.Now), Now: a.clock.Now,
	})
	if err != nil {
		return err
	}
	return a.Start(ctx)
}

// Close closes the ledger.
func (a *Agent) Close() error { return a.store.Close() }

// counter is a proposer and a policy that count, and permit nothing.
type counter struct{ n *atomic.Int64 }

// Identity is that of rules: no model is asked.
func (counter) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

// Propose counts, and proposes nothing.
func (c counter) Propose(context.Context, propose.Request) reconcile.Proposed {
	c.n.Add(1)
	return reconcile.Proposed{Proposal: propose.Proposal{Kind: propose.KindNone}}
}

// Evaluate counts, and permits nothing.
func (c counter) Evaluate(context.Context, []byte) gate.Ruling {
	c.n.Add(1)
	return gate.Ruling{Revision: "lab"}
}

// Revision names the policy.
func (counter) Revision() string { return ledger.BlobDigest([]byte("lab")) }

// DataDigest names its data, of which it has none.
func (counter) DataDigest() string { return ledger.BlobDigest(nil) }

// Pack is what its name is of.
func (counter) Pack() []byte { return []byte("lab") }
