package people

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// errFault is what everything says that fails.
var errFault = errors.New("it fails, as planned")

// badShare is the error ratio of a service that is missed.
const badShare = 0.5

// world is the truth: what services really do, what actuators got, and which
// faults there are.
type world struct {
	plan  Plan
	began time.Time

	mu sync.Mutex
	// sent are the instants at which actuators got something, by service, and
	// mended the instant from which one is well again.
	sent   map[string][]time.Time
	mended map[string]time.Time
	keys   map[gate.Key]bool
	loose  map[string]escalate.Page
	// covered counts what was met on the way.
	covered map[string]int
}

func newWorld(p Plan, began time.Time) *world {
	return &world{
		plan: p, began: began, sent: map[string][]time.Time{}, mended: map[string]time.Time{},
		keys: map[gate.Key]bool{}, loose: map[string]escalate.Page{}, covered: map[string]int{},
	}
}

func (w *world) now() time.Time { return time.Now() }

// has reports whether a fault holds at an instant. Of "" is any.
func (w *world) has(f Fault, of string, at time.Time) bool {
	since := at.Sub(w.began)
	return slices.ContainsFunc(w.plan.Windows, func(x Window) bool {
		return x.Fault == f && (of == "" || x.Of == of) && since >= x.From && since < x.To
	})
}

func (w *world) cover(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.covered[what]++
}

// bad is the error ratio of a service over a window.
func (w *world) bad(service string, from, to time.Time) float64 {
	w.mu.Lock()
	mended := w.mended[service]
	w.mu.Unlock()
	var sum time.Duration
	for _, x := range w.plan.Windows {
		if x.Fault != Miss || x.Of != service {
			continue
		}
		begin, end := w.began.Add(x.From), w.began.Add(x.To)
		if !mended.IsZero() && mended.Before(end) {
			end = mended
		}
		begin, end = latest(begin, from), earliest(end, to)
		sum += max(0, end.Sub(begin))
	}
	return min(1, badShare*sum.Seconds()/to.Sub(from).Seconds())
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Measure answers from the truth, with ten events a second.
func (w *world) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		m := measure.Measurement{ID: q.ID, Source: q.Source, HasEvents: true}
		switch {
		case w.has(NoSource, "", w.now()):
			m.Reason = measure.SourceError
		case w.has(Dark, q.ID.Service, w.now()):
			m.Reason = measure.NoData
		default:
			m.ErrorRatio = w.bad(q.ID.Service, q.ID.At.Add(-q.ID.Window), q.ID.At)
			m.Total = 10 * q.ID.Window.Seconds()
			m.Good = m.Total * (1 - m.ErrorRatio)
			m.SampleAt = q.ID.At.Add(-5 * time.Second)
		}
		out[i] = m
	}
	return out
}

// Clocks all agree.
func (w *world) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{source: 0}
}

// source is the one place to measure.
const source = "main"

func (w *world) service(name string) Service {
	i := slices.IndexFunc(w.plan.Services, func(s Service) bool { return s.Name == name })
	return w.plan.Services[i]
}

// Execute is the actuator: it counts what it got, and mends what can be mended.
func (w *world) Execute(_ context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	if err := execute.LastLook(p, w.now, ready); err != nil {
		return execute.Refused(w.now(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.keys[p.Key()] = true
	w.sent[p.Service()] = append(w.sent[p.Service()], now)
	w.covered["an action was sent"]++
	s := w.service(p.Service())
	if s.Helps && w.mended[s.Name].IsZero() {
		w.mended[s.Name] = now
	}
	if s.Doubtful {
		return execute.Receipt{Effect: execute.InDoubt, At: now, Detail: "the answer was lost"}, nil
	}
	return execute.Receipt{Effect: execute.Applied, At: now, AppliedAt: now, Detail: "200 applied"}, nil
}

// Observe knows its keys, but for a doubtful actuator's, which nobody can tell.
func (w *world) Observe(_ context.Context, a spec.Action, key gate.Key) execute.Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.service(strings.TrimPrefix(a.Target.URL, actuators)); s.Doubtful && w.keys[key] {
		return execute.Observation{Detail: "no answer"}
	}
	o := execute.Observation{Known: true, KeyKnown: w.keys[key], State: propose.Live{"replicas": int64(4)}}
	if o.KeyKnown {
		o.Result = execute.Applied
	}
	return o
}

// actuators is where all actuators are.
const actuators = "http://actuators/"

// model proposes the one action, unless something is wrong with it.
type model struct{ w *world }

// Identity is recorded before the call.
func (model) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

// Propose answers at once, or never.
func (m model) Propose(ctx context.Context, _ propose.Request) reconcile.Proposed {
	p := propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}}
	switch now := m.w.now(); {
	case m.w.has(Mute, "", now):
		wait(ctx, 20*time.Second)
		p = propose.Proposal{Kind: propose.KindMalformed, Parameters: propose.Parameters{}, Fault: "timeout: it never answered"}
	case m.w.has(NoIdea, "", now):
		p = propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}
	}
	p.Proposer = m.Identity()
	return reconcile.Proposed{Proposal: p}
}

// wait sleeps, or ends with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// policy allows what the class of the action allows, unless it is broken.
type policy struct{ w *world }

// Evaluate never fails: a fault is in the ruling.
func (p policy) Evaluate(context.Context, []byte) gate.Ruling {
	if p.w.has(NoPolicy, "", p.w.now()) {
		return gate.Ruling{Revision: p.Revision(), Fault: gate.FaultError + ": as planned"}
	}
	return gate.Ruling{Revision: p.Revision(), Auto: []gate.Rule{{Reason: "allowed", Package: "setpoint.gate"}}}
}

// Revision names the bundle.
func (policy) Revision() string { return ledger.BlobDigest([]byte("people")) }

// DataDigest is that of no data.
func (policy) DataDigest() string { return ledger.BlobDigest(nil) }

// Pack is what the revision is made of.
func (policy) Pack() []byte { return []byte("people") }

// freezes are files that somebody wrote.
type freezes struct{ w *world }

// Frozen are the freezes of a service.
func (f freezes) Frozen(string) ([]gate.Hold, error) {
	if !f.w.has(Frozen, "", f.w.now()) {
		return nil, nil
	}
	return []gate.Hold{{ID: "f-1", By: "os:alice", Text: "as planned"}}, nil
}

// Sending is always allowed: the last look reads the files.
func (freezes) Sending() (func(), error) { return func() {}, nil }

// List has no file to be copied.
func (freezes) List() ([]ledger.Freeze, error) { return nil, nil }

// Remove removes nothing.
func (freezes) Remove(string) error { return nil }

// KeepPages keeps them through a restart, as a file beside the ledger would.
func (w *world) KeepPages(pages map[string]escalate.Page) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loose = maps.Clone(pages)
	return nil
}

// KeptPages are those that were kept.
func (w *world) KeptPages() (map[string]escalate.Page, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.loose), nil
}

// store is the ledger as one process reaches it.
type store struct {
	ledger.Store
	w    *world
	dead func() bool
}

// Append fails while the disk is full, and for a process that is dead.
func (s store) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	if s.dead() || s.w.has(ReadOnly, "", s.w.now()) || s.w.has(Unreadable, "", s.w.now()) {
		return nil, errFault
	}
	return s.Store.Append(ctx, after, plan)
}

// Read fails while the ledger is away.
func (s store) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if s.dead() || s.w.has(Unreadable, "", s.w.now()) {
		return nil, errFault
	}
	return s.Store.Read(ctx, after, limit)
}
