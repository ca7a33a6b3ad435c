package fleet_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// idle is a proposer and a policy that nobody should ask.
type idle struct{}

func (idle) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

func (idle) Propose(context.Context, propose.Request) reconcile.Proposed {
	return reconcile.Proposed{Proposal: propose.Proposal{Kind: propose.KindNone}}
}
func (idle) Evaluate(context.Context, []byte) gate.Ruling { return gate.Ruling{Revision: "test"} }
func (idle) Revision() string                             { return ledger.BlobDigest([]byte("test")) }

func (idle) DataDigest() string { return ledger.BlobDigest(nil) }

func (idle) Pack() []byte { return []byte("test") }

// slow is a source that takes its time, and remembers when it was asked.
type slow struct {
	takes func(n int) time.Duration

	mu     sync.Mutex
	starts []time.Time
}

func (s *slow) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	s.mu.Lock()
	n := len(s.starts)
	s.starts = append(s.starts, time.Now())
	s.mu.Unlock()
	time.Sleep(s.takes(n))
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		out[i] = measure.Measurement{ID: q.ID, Source: q.Source, HasEvents: true, Good: 1000, Total: 1000, SampleAt: q.ID.At}
	}
	return out
}

func (s *slow) Clocks(context.Context) map[string]time.Duration { return nil }

// begun are when the source was asked since the first time.
func (s *slow) begun() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]time.Duration, len(s.starts))
	for i, at := range s.starts {
		out[i] = at.Sub(s.starts[0])
	}
	return out
}

// century moves the clock of a bubble, which begins in 2000, past the entry
// with which a ledger begins.
const century = 100 * 365 * 24 * time.Hour

// TestSweepsKeepTheirTime is B9: after ten thousand sweeps with slow queries,
// each begins when it should, to 1 % of the interval; those that could not
// begin, because the last look still ran, are counted.
func TestSweepsKeepTheirTime(t *testing.T) {
	const interval = 30 * time.Second
	sweeps := 10_000
	if racing {
		sweeps = 1000
	}
	random := rand.New(rand.NewPCG(1, 2))
	cases := map[string]struct {
		reason string
		jitter float64
		takes  func(n int) time.Duration
		// store is how long the ledger's store takes to tell its time.
		store time.Duration
		// late is how many sweeps find the last look still running.
		late int
	}{
		"Slow": {
			reason: "a ledger far away takes its time before each sweep, and queries take most of an interval", store: 100 * time.Millisecond,
			takes: func(int) time.Duration { return time.Duration(random.Int64N(int64(interval - time.Second))) },
		},
		"Jittered": {reason: "jitter spreads the sweeps and does not move them", jitter: 0.1, takes: func(int) time.Duration { return time.Duration(random.Int64N(int64(interval / 2))) }},
		"Overrun": {
			reason: "one look in a hundred takes two intervals and a half", late: 2 * sweeps / 102,
			takes: func(n int) time.Duration {
				if n%100 == 99 {
					return 5 * interval / 2
				}
				return interval / 2
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "setpoint.db")
			if err := sqlite.Init(path, "os:test"); err != nil {
				t.Fatal(err)
			}
			source := &slow{takes: tc.takes}
			var late float64
			synctest.Test(t, func(t *testing.T) {
				late = sweepFor(t, path, time.Duration(sweeps)*interval, func(o *reconcile.Options) {
					o.Measurer = source
					o.Config.Sweep.Interval, o.Config.Sweep.Jitter = interval, tc.jitter
					o.StoreClock = func(context.Context) (time.Time, error) {
						time.Sleep(tc.store)
						return o.Now(), nil
					}
				})
			})
			begun := source.begun()
			worst := time.Duration(0)
			for _, at := range begun {
				off := time.Duration(math.Abs(float64(at - at.Round(interval))))
				worst = max(worst, off-time.Duration(2*tc.jitter*float64(interval)))
			}
			if worst > interval/100 {
				t.Errorf("%s: a sweep begins %s off its time, want at most 1 %% of %s", tc.reason, worst, interval)
			}
			if all := len(begun) + int(late); all < sweeps-1 || all > sweeps+1 {
				t.Errorf("%s: %d looks and %v late ones in the time of %d sweeps", tc.reason, len(begun), late, sweeps)
			}
			if int(late) < tc.late-2 || int(late) > tc.late+2 {
				t.Errorf("%s: %v late sweeps are counted, want %d", tc.reason, late, tc.late)
			}
		})
	}
}

// sweepFor runs the loop over one healthy service for a while of simulated time
// and returns how many late sweeps it counted.
func sweepFor(t *testing.T, path string, d time.Duration, change func(*reconcile.Options)) float64 {
	now := func() time.Time { return time.Now().Add(century) }
	store, err := sqlite.Open(path, sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	registry := prometheus.NewRegistry()
	o := reconcile.Options{
		Config: config.Default(), Documents: func() (spec.Set, error) { return oneService(), nil }, Proposer: idle{}, Policy: idle{},
		Store: store, Freezes: freezefile.New(filepath.Join(filepath.Dir(path), "freeze"), now), Now: now, Registerer: registry,
	}
	change(&o)
	o.Config.Sources = []config.Source{{Name: "main", MaxSampleAge: 10 * o.Config.Sweep.Interval}}
	r, err := reconcile.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(d - o.Config.Sweep.Interval/2)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return total(t, registry, "setpoint_sweep_late_total")
}

func total(t *testing.T, g prometheus.Gatherer, name string) float64 {
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func oneService() spec.Set {
	q := func(sel string) *spec.Query { return &spec.Query{Expr: sel, Counter: true} }
	return spec.Set{Digest: "one", Services: []spec.Service{{
		Name: "checkout", Digest: "one", Remediation: spec.DefaultRemediation("checkout"),
		Objectives: []spec.Objective{{
			ID: "availability", SLO: "availability", Target: 0.99, Window: time.Hour, JudgeWindow: 5 * time.Minute,
			Indicator: spec.Indicator{Good: q(`r{code="200"}`), Total: q("r")},
			BurnRates: []spec.BurnRate{{Short: 5 * time.Minute, Long: time.Hour, Factor: 6, Page: true}},
		}},
	}}}
}
