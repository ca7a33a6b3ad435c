package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// world is one service in simulated time: what it really does, an actuator
// with its own journal, people with a pager, and the loop over a real ledger.
type world struct {
	t testing.TB
	// mu guards now against the actuator's and the loop's own goroutines.
	mu   sync.Mutex
	now  time.Time
	real bool // the clock is the real one
	path string
	set  spec.Set
	cfg  config.Config
	// errorRatio is the truth at each instant; unknown answers instead of it.
	errorRatio func(at time.Time) float64
	unknown    func(at time.Time) measure.Reason
	// truth is the error ratio of one service; nil: all have errorRatio's.
	truth func(service string, at time.Time) float64
	// dark is why one service is unknown; nil: none is.
	dark func(service string, at time.Time) measure.Reason
	// lost is the source that does not answer about a service; nil: all do.
	lost      func(service string) string
	propose   func(propose.Request) propose.Proposal
	rule      func(input []byte) gate.Ruling
	asking    func(context.Context) // while the proposer is asked
	measuring func(service string)  // before real-time answers
	silences  func(service string) ([]gate.Hold, error)
	skew      time.Duration
	// slow is how long a look takes, in simulated time.
	slow time.Duration
	// failing makes real-time services fail; hangs holds up source "second".
	failing     atomic.Bool
	failingOnly atomic.Pointer[string]
	hangs       atomic.Pointer[chan struct{}]

	actuator *executetest.Actuator
	pager    *pager
	freezer  *freezer
	asked    atomic.Int64
	store    *sqlite.Store
	tracer   trace.Tracer // nil: none
	// options changes how the next loop is made; nil: it is not.
	options func(*reconcile.Options)
	// mono is time that no correction moves; only some tests look at it.
	mono time.Duration
	// faulty wraps the store when it is set.
	faulty *faultyStore
	r      *reconcile.Reconciler
}

type pager struct {
	mu   sync.Mutex
	fail error
	hang chan struct{}
	// entered counts deliveries that began.
	entered atomic.Int64
	sent    []escalate.Page
}

func (p *pager) Name() string { return "pager" }

func (p *pager) Send(_ context.Context, page escalate.Page, _ string) (string, error) {
	p.entered.Add(1)
	p.mu.Lock()
	hang := p.hang
	p.mu.Unlock()
	if hang != nil {
		<-hang
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return "", p.fail
	}
	p.sent = append(p.sent, page)
	return "", nil
}

// open are the pages that a person sees now, by id.
func (p *pager) open() map[string]escalate.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]escalate.Page{}
	for _, page := range p.sent {
		out[page.ID] = page
		if !page.EndedAt.IsZero() {
			delete(out, page.ID)
		}
	}
	return out
}

type freezer struct {
	mu    sync.Mutex
	files map[string]ledger.Freeze
	err   error
}

func (f *freezer) Frozen(service string) ([]gate.Hold, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []gate.Hold
	for id, z := range f.files {
		if z.Service == "" || z.Service == service {
			out = append(out, gate.Hold{ID: id, By: z.By, Text: z.Reason, Until: z.Until})
		}
	}
	return out, f.err
}

func (f *freezer) Sending() (func(), error) { return func() {}, nil }

func (f *freezer) List() ([]ledger.Freeze, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []ledger.Freeze
	for _, z := range f.files {
		out = append(out, z)
	}
	return out, f.err
}

func (f *freezer) Remove(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, id)
	return nil
}

func (f *freezer) freeze(z ledger.Freeze) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[z.ID] = z
}

// logTo is a test's log as a writer; a benchmark has none.
type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	if t, ok := l.t.(*testing.T); ok {
		return t.Output().Write(p)
	}
	return len(p), nil
}

// faultyStore is a real store whose disk can fill up.
type faultyStore struct {
	ledger.Store
	mu   sync.Mutex
	full error
}

func (s *faultyStore) fill(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = err
}

func (s *faultyStore) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	s.mu.Lock()
	full := s.full
	s.mu.Unlock()
	if full != nil {
		return nil, full
	}
	return s.Store.Append(ctx, after, plan)
}

// scripted is a proposer made of a function.
type scripted struct{ w *world }

func (s scripted) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

func (s scripted) Propose(ctx context.Context, r propose.Request) reconcile.Proposed {
	s.w.asked.Add(1)
	if s.w.asking != nil {
		s.w.asking(ctx)
	}
	p := s.w.propose(r)
	p.Proposer = s.Identity()
	return reconcile.Proposed{Proposal: p}
}

type ruled struct{ w *world }

func (p ruled) Evaluate(_ context.Context, input []byte) gate.Ruling { return p.w.rule(input) }
func (p ruled) Revision() string                                     { return ledger.BlobDigest([]byte("test")) }

func (p ruled) DataDigest() string { return ledger.BlobDigest(nil) }

func (p ruled) Pack() []byte { return []byte("test") }

const step30 = 30 * time.Second

func newWorld(t testing.TB) *world {
	t.Helper()
	w := prepare(t)
	w.start()
	return w
}

// prepare makes the world around a loop that was not started yet.
func prepare(t testing.TB) *world {
	t.Helper()
	w := &world{
		t:          t, // Later than the entry of ledger init, which bears the real time.
		now:        time.Date(2090, 11, 29, 3, 0, 0, 0, time.UTC),
		path:       filepath.Join(t.TempDir(), "setpoint.db"),
		errorRatio: func(time.Time) float64 { return 0 },
		unknown:    func(time.Time) measure.Reason { return "" },
		pager:      &pager{}, freezer: &freezer{files: map[string]ledger.Freeze{}},
	}
	w.propose = func(propose.Request) propose.Proposal {
		return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}}
	}
	w.rule = func([]byte) gate.Ruling {
		return gate.Ruling{Revision: "test", Auto: []gate.Rule{{Reason: "allowed", Package: "setpoint.gate"}}}
	}
	var err error
	w.actuator, err = executetest.NewActuator(executetest.ActuatorOptions{State: map[string]any{"replicas": 4}, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.actuator)
	t.Cleanup(server.Close)
	w.cfg = config.Default()
	w.cfg.Sources = []config.Source{{Name: "main", MaxSampleAge: 90 * time.Second}}
	w.cfg.Limits.MaxMode = spec.Auto
	w.cfg.Receivers = []config.Receiver{{Name: "pager"}}
	w.cfg.Executors.Webhook.Allow = []string{server.URL + "/"}
	w.cfg.Approvers = map[string][]string{"@oncall": {"os:alice", "os:bob"}}
	w.set = spec.Set{Digest: "set-1", Services: []spec.Service{shop(server.URL)}}
	if err := sqlite.Init(w.path, "os:test"); err != nil {
		t.Fatal(err)
	}
	return w
}

func shop(url string) spec.Service {
	low, high := 3.0, 20.0
	return spec.Service{
		Name: "checkout", Digest: "doc-1",
		Objectives: []spec.Objective{{
			ID: "availability", SLO: "availability", Target: 0.99, Window: 30 * 24 * time.Hour,
			JudgeWindow: 5 * time.Minute, MinEvents: 10, BurnRates: []spec.BurnRate{{Short: 5 * time.Minute, Long: 10 * time.Minute, Factor: 6, Page: true}},
			Indicator: spec.Indicator{
				Bad: &spec.Query{Expr: `sum(increase(r{code="500"}[{{.window}}]))`}, Total: &spec.Query{Expr: `sum(increase(r[{{.window}}]))`}, AbsentBadZero: true,
			},
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
			Budget:     spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
			Outcomes:   spec.Outcomes{Improved: 0.5, Worsened: 0.2},
			Escalation: spec.Escalation{Receivers: []string{"pager"}},
		},
	}
}

func (w *world) documents() (spec.Set, error) { return w.set, nil }

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.real {
		return time.Now()
	}
	return w.now
}

// pass lets simulated time go by.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.mono = w.now.Add(d), w.mono+d
}

// monotonic goes on with the world's time, but not with a clock that is set.
func (w *world) monotonic() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mono
}

// setClock moves the clock, and no time goes by.
func (w *world) setClock(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(by)
}

// start opens the ledger and makes a loop, as a new process does.
func (w *world) start() {
	w.t.Helper()
	var err error
	if w.store, err = sqlite.Open(w.path, sqlite.Options{Now: w.clock}); err != nil {
		w.t.Fatal(err)
	}
	opened := w.store
	w.t.Cleanup(func() { _ = opened.Close() })
	w.faulty = &faultyStore{Store: opened}
	w.r = w.made(w.options)
	if err := w.r.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// made is a loop over the open store.
func (w *world) made(change func(*reconcile.Options)) *reconcile.Reconciler {
	w.t.Helper()
	hook, err := webhook.New(webhook.Options{Allow: w.cfg.Executors.Webhook.Allow, Now: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	o := reconcile.Options{
		Config: w.cfg, Documents: w.documents, Measurer: w,
		Proposer: scripted{w}, Policy: ruled{w}, Executors: map[string]execute.Executor{"webhook": hook},
		Receivers: []escalate.Receiver{w.pager}, Silencers: []reconcile.Silencer{w}, Store: w.faulty, Tracer: w.tracer, Freezes: w.freezer, Now: w.clock,
		Logger: slog.New(slog.NewTextHandler(logTo{w.t}, nil)),
	}
	if change != nil {
		change(&o)
	}
	r, err := reconcile.New(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// restart ends the process at this moment, whatever it was doing, and starts
// another.
func (w *world) restart() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

// Measure answers from the truth: the mean error ratio over the window, with
// ten events a second.
func (w *world) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	w.pass(w.slow)
	out := make([]measure.Measurement, len(qs))
	if hang := w.hangs.Load(); hang != nil && len(qs) > 0 && qs[0].Source == "second" {
		<-*hang
	}
	if w.isReal() {
		if w.measuring != nil && len(qs) > 0 {
			w.measuring(qs[0].ID.Service)
		}
		w.measureNow(qs, out)
		return out
	}
	for i, q := range qs {
		m := measure.Measurement{ID: q.ID, Source: q.Source, HasEvents: true}
		if w.lost != nil && w.lost(q.ID.Service) != "" {
			m.Reason, m.Source = measure.SourceError, w.lost(q.ID.Service)
			out[i] = m
			continue
		}
		if m.Reason = w.unknown(q.ID.At); w.dark != nil {
			m.Reason = w.dark(q.ID.Service, q.ID.At)
		}
		if m.Reason != "" {
			out[i] = m
			continue
		}
		sum, n := 0.0, 0
		for at := q.ID.At.Add(-q.ID.Window); at.Before(q.ID.At) && n < 2000; at = at.Add(max(time.Second, q.ID.Window/2000)) {
			sum, n = sum+w.ratio(q.ID.Service, at), n+1
		}
		m.Total = 10 * q.ID.Window.Seconds()
		m.ErrorRatio = sum / float64(n)
		m.Good = m.Total * (1 - m.ErrorRatio)
		m.SampleAt = q.ID.At.Add(-5 * time.Second)
		out[i] = m
	}
	return out
}

func (w *world) ratio(service string, at time.Time) float64 {
	if w.truth != nil {
		return w.truth(service, at)
	}
	return w.errorRatio(at)
}

// SilencesFor are those of the page's service.
func (w *world) SilencesFor(ctx context.Context, p escalate.Page) ([]gate.Hold, error) {
	return w.Silences(ctx, p.Service)
}

// Silences are none unless the test has some.
func (w *world) Silences(_ context.Context, service string) ([]gate.Hold, error) {
	if w.silences == nil {
		return nil, nil
	}
	return w.silences(service)
}

func (w *world) isReal() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.real
}

// measureNow answers for real time: good or failing, whatever the window.
func (w *world) measureNow(qs []measure.Query, out []measure.Measurement) {
	for i, q := range qs {
		ratio := 0.0
		if only := w.failingOnly.Load(); w.failing.Load() || only != nil && *only == q.ID.Service {
			ratio = 0.3
		}
		out[i] = measure.Measurement{
			ID: q.ID, Source: "main", HasEvents: true, Total: 1000, Good: 1000 * (1 - ratio), ErrorRatio: ratio, SampleAt: q.ID.At,
		}
	}
}

func (w *world) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{"main": w.skew}
}

// sweep makes one pass and lets one sweep interval go by.
func (w *world) sweep() reconcile.Result {
	w.t.Helper()
	res := w.r.Sweep(w.t.Context())
	if len(res) != 1 {
		w.t.Fatalf("%d results, want 1", len(res))
	}
	w.pass(step30)
	return res[0]
}

// run sweeps for a while and returns every result.
func (w *world) run(d time.Duration) []reconcile.Result {
	w.t.Helper()
	var out []reconcile.Result
	for end := w.now.Add(d); w.now.Before(end); {
		out = append(out, w.sweep())
	}
	return out
}

// until sweeps until a result fits, or fails after a bound.
func (w *world) until(what string, bound time.Duration, fits func(reconcile.Result) bool) reconcile.Result {
	w.t.Helper()
	for end := w.now.Add(bound); w.now.Before(end); {
		if res := w.sweep(); fits(res) {
			return res
		}
	}
	w.t.Fatalf("no %s within %s; the ledger says:\n%s", what, bound, w.dump())
	return reconcile.Result{}
}

// breakAt makes the service fail from now on, and healAt ends it.
func (w *world) breakNow(ratio float64) {
	from := w.now
	before := w.errorRatio
	w.errorRatio = func(at time.Time) float64 {
		if at.Before(from) {
			return before(at)
		}
		return ratio
	}
}

func (w *world) entries() []ledger.Entry {
	w.t.Helper()
	var out []ledger.Entry
	for {
		after := uint64(len(out))
		got, err := w.store.Read(w.t.Context(), after, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, got...)
		if len(got) < 1000 {
			return out
		}
	}
}

func (w *world) kinds() map[ledger.Kind]int {
	n := map[ledger.Kind]int{}
	for _, e := range w.entries() {
		n[e.Kind]++
	}
	return n
}

func (w *world) dump() string {
	s := ""
	for _, e := range w.entries() {
		body := string(e.Body)
		if len(body) > 300 {
			body = body[:300] + "…"
		}
		s += fmt.Sprintf("%4d %s %-10s %s %s\n", e.Seq, e.Time.Format("15:04:05"), e.Kind, e.Service, body)
	}
	return s
}

func applied(res reconcile.Result) bool { return res.Effect == execute.Applied }

func judged(res reconcile.Result) bool {
	return res.Outcome != compare.OutcomeNone && res.Outcome != ""
}
