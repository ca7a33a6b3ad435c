package checker_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// site is the real loop over a real ledger and a real actuator, with one
// service, in simulated time.
type site struct {
	t  *testing.T
	mu sync.Mutex
	// now is later than the entry of the ledger's init, which bears real time.
	now time.Time
	// broken are when the service broke and was healed by turns.
	broken   []time.Time
	asking   bool // policy wants a person
	actuator *executetest.Actuator
	cfg      config.Config
	set      spec.Set
	dir      string
	freezes  *freezefile.Dir
	store    *sqlite.Store
	loop     *reconcile.Reconciler
	acked    []ledger.Position
}

func newSite(t *testing.T) *site {
	s := &site{t: t, now: time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC), dir: t.TempDir()}
	var err error
	s.actuator, err = executetest.NewActuator(executetest.ActuatorOptions{
		State: map[string]any{"replicas": 4}, Now: s.clock, OnApply: func(execute.Envelope) { s.flip() },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.actuator)
	t.Cleanup(server.Close)
	s.cfg = config.Default()
	s.cfg.Sources = []config.Source{{Name: "main", MaxSampleAge: 90 * time.Second}}
	s.cfg.Limits.MaxMode = spec.Auto
	s.cfg.Executors.Webhook.Allow = []string{server.URL + "/"}
	s.cfg.Approvers = map[string][]string{"@oncall": {"os:alice"}}
	s.set = spec.Set{Digest: "set", Services: []spec.Service{checkoutAt(server.URL)}}
	s.freezes = freezefile.New(filepath.Join(s.dir, "freeze"), s.clock)
	if err := sqlite.Init(filepath.Join(s.dir, "setpoint.db"), "os:test"); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

func checkoutAt(url string) spec.Service {
	low, high := 3.0, 20.0
	return spec.Service{
		Name: "checkout", Digest: "doc",
		Objectives: []spec.Objective{{
			ID: "availability", SLO: "availability", Target: 0.99, Window: 30 * 24 * time.Hour, JudgeWindow: 5 * time.Minute, MinEvents: 10,
			BurnRates: []spec.BurnRate{{Short: 5 * time.Minute, Long: 10 * time.Minute, Factor: 6, Page: true}},
			Indicator: spec.Indicator{Bad: &spec.Query{Expr: "bad[{{.window}}]"}, Total: &spec.Query{Expr: "total[{{.window}}]"}, AbsentBadZero: true},
		}},
		Remediation: spec.Remediation{
			Name: "checkout", Service: "checkout", Owner: "team-a", Mode: spec.Auto, ActionWindow: 10 * time.Minute,
			HoldFor: 5 * time.Minute, UnknownFor: 10 * time.Minute, EscalateWithin: 20 * time.Minute, ApprovalFor: 15 * time.Minute,
			Approvers: []string{"@oncall"},
			Actions: []spec.Action{{
				Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
				Target: spec.Target{URL: url + "/checkout", StatusURL: url + "/checkout"},
				Settle: 2 * time.Minute, Cooldown: 5 * time.Minute, Timeout: 5 * time.Second, MaxLateness: 30 * time.Second,
				Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &low, Maximum: &high, MaximumFactor: 2}},
			}},
			Budget:   spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
			Outcomes: spec.Outcomes{Improved: 0.5, Worsened: 0.2},
		},
	}
}

// start is a process that begins, after another one ended.
func (s *site) start() {
	s.t.Helper()
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	var err error
	if s.store, err = sqlite.Open(filepath.Join(s.dir, "setpoint.db"), sqlite.Options{Now: s.clock}); err != nil {
		s.t.Fatal(err)
	}
	opened := s.store
	s.t.Cleanup(func() { _ = opened.Close() })
	hook, err := webhook.New(webhook.Options{Allow: s.cfg.Executors.Webhook.Allow, Now: s.clock})
	if err != nil {
		s.t.Fatal(err)
	}
	s.loop, err = reconcile.New(s.t.Context(), reconcile.Options{
		Config: s.cfg, Documents: func() (spec.Set, error) { return s.set, nil }, Measurer: s, Proposer: s, Policy: s,
		Executors: map[string]execute.Executor{"webhook": hook}, Store: acking{s.store, s}, Freezes: s.freezes, Now: s.clock,
	})
	if err == nil {
		err = s.loop.Start(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// acking writes down what was acknowledged.
type acking struct {
	*sqlite.Store
	s *site
}

func (a acking) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	entries, err := a.Store.Append(ctx, after, plan)
	for _, e := range entries {
		a.s.acked = append(a.s.acked, e.Position())
	}
	return entries, err
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// flip breaks the service, or heals it.
func (s *site) flip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, s.now)
}

func (s *site) failing(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, from := range s.broken {
		if !at.Before(from) {
			n++
		}
	}
	return n%2 == 1
}

// Measure gives the mean over the window, with ten events a second.
func (s *site) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		sum, n, step := 0.0, 0.0, max(time.Second, q.ID.Window/200)
		for at := q.ID.At.Add(-q.ID.Window); at.Before(q.ID.At); at = at.Add(step) {
			if n++; s.failing(at) {
				sum += 0.3
			}
		}
		total := 10 * q.ID.Window.Seconds()
		out[i] = measure.Measurement{
			ID: q.ID, Source: "main", HasEvents: true, Total: total, ErrorRatio: sum / n, Good: total * (1 - sum/n),
			SampleAt: q.ID.At.Add(-5 * time.Second),
		}
	}
	return out
}

func (s *site) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{"main": 0}
}

func (s *site) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

func (s *site) Propose(context.Context, propose.Request) reconcile.Proposed {
	return reconcile.Proposed{Proposal: propose.Proposal{
		Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}, Proposer: s.Identity(),
	}}
}

func (s *site) Revision() string { return ledger.BlobDigest([]byte("test")) }

func (s *site) DataDigest() string { return ledger.BlobDigest(nil) }

func (s *site) Pack() []byte { return []byte("test") }

func (s *site) Evaluate(context.Context, []byte) gate.Ruling {
	rule := []gate.Rule{{Reason: "allowed", Package: "setpoint.gate"}}
	if s.asking {
		return gate.Ruling{Revision: "test", Approval: rule}
	}
	return gate.Ruling{Revision: "test", Auto: rule}
}

// run makes a pass every half minute.
func (s *site) run(d time.Duration) {
	s.t.Helper()
	for end := s.clock().Add(d); s.clock().Before(end); {
		for _, res := range s.loop.Sweep(s.t.Context()) {
			if res.Err != nil {
				s.t.Fatal(res.Err)
			}
		}
		s.mu.Lock()
		s.now = s.now.Add(30 * time.Second)
		s.mu.Unlock()
	}
}

// answerAll says yes, or no, to every open ticket.
func (s *site) answerAll(yes bool) {
	s.t.Helper()
	var open []string
	s.loop.View(func(st *ledger.State) {
		if t, ok := st.OpenTicket("checkout"); ok {
			open = append(open, t.ID)
		}
	})
	if len(open) == 0 {
		s.t.Fatal("nobody was asked")
	}
	for _, id := range open {
		_, err := s.loop.Answer(s.t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: yes, Reason: "test"})
		var refused *approve.Refusal
		if err != nil && !errors.As(err, &refused) {
			s.t.Fatal(err)
		}
	}
}

func (s *site) export() ledger.Exported {
	s.t.Helper()
	r, err := sqlite.OpenReader(filepath.Join(s.dir, "setpoint.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var out bytes.Buffer
	if err := ledger.Export(s.t.Context(), r, &out); err != nil {
		s.t.Fatal(err)
	}
	x, err := ledger.ReadExport(&out)
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

func (s *site) options() checker.Options {
	l, b := s.cfg.Limits, s.set.Services[0].Remediation.Budget
	return checker.Options{
		Slack: time.Second, MinSpacing: l.MinSpacing, Sweep: s.cfg.Sweep.Interval, Acknowledged: s.acked,
		EffectsPerHour: l.EffectsPerHour, EffectsPerServicePerHour: l.EffectsPerServicePerHour,
		Budget: checker.Budget{Period: b.Period, Capacity: b.Capacity},
		Global: checker.Budget{Period: s.cfg.Budget.Period, Capacity: s.cfg.Budget.Capacity},
	}
}

// TestRealLoop: what the product really writes down is clean, and was checked.
func TestRealLoop(t *testing.T) {
	s := newSite(t)
	s.run(30 * time.Minute)
	// It acts, and what it does heals.
	s.flip()
	s.run(40 * time.Minute)
	s.start()
	// People are asked; the answer of the actuator is lost.
	s.asking = true
	s.actuator.SetMode(executetest.ModeDropReply)
	s.run(20 * time.Minute)
	s.flip()
	s.run(9 * time.Minute)
	s.answerAll(true)
	s.run(40 * time.Minute)
	// A day later (or it would be handed over as a repeat) somebody freezes it, and
	// it breaks; thawed, the actuator refuses.
	s.mu.Lock()
	s.now = s.now.Add(24 * time.Hour)
	s.mu.Unlock()
	s.run(15 * time.Minute)
	s.asking = false
	s.actuator.SetMode(executetest.ModeNotNow)
	if err := s.freezes.Write(ledger.Freeze{ID: "f1", By: "os:alice", Reason: "drill", At: s.clock()}); err != nil {
		t.Fatal(err)
	}
	s.run(10 * time.Minute)
	s.flip()
	s.run(20 * time.Minute)
	if err := s.loop.Thaw(t.Context(), "f1", "os:alice", "over"); err != nil {
		t.Fatal(err)
	}
	s.run(50 * time.Minute)

	x, journal := s.export(), s.actuator.Journal()
	r := checker.Check(x, journal, s.options())
	t.Logf("%d entries, %d keys, %d requests, %d effects, %d acknowledged", r.Entries, r.Keys, r.Requests, r.Effects, r.Acknowledged)
	for _, v := range r.Violations {
		t.Errorf("%s", v)
	}
	if r.Keys < 4 || r.Effects != 2 || r.Requests < 4 || r.LostAcknowledged != 0 || r.Acknowledged < 50 {
		t.Errorf("%d keys, %d requests, %d effects, %d acknowledged: too little happened", r.Keys, r.Requests, r.Effects, r.Acknowledged)
	}
	var idle []checker.Invariant
	for _, c := range r.Checked {
		if c.Instances == 0 {
			idle = append(idle, c.Invariant)
		}
	}
	// Nobody denied anything, no claim was void, and nothing made it worse.
	if diff := cmp.Diff([]checker.Invariant{checker.DenyStops, checker.VoidButSent, checker.UndoOnce}, idle); diff != "" {
		t.Errorf("held against nothing (-want +got):\n%s", diff)
	}
	twice := append(journal, journal[0])
	if named := checker.Check(x, twice, s.options()).Named(); !cmp.Equal(named, []checker.Invariant{checker.OneEffect, checker.NeverResent}) {
		t.Errorf("a second effect in the journal was named %v", named)
	}
	if named := checker.Check(x, journal[1:], s.options()).Named(); !cmp.Equal(named, []checker.Invariant{checker.JournalAgrees}) {
		t.Errorf("an effect that the journal lacks was named %v", named)
	}
}
