package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
	"github.com/setpoint-dev/setpoint/internal/web"
)

var updateGoldens = flag.Bool("update", false, "write the golden files")

// three is three o'clock in the night: the ledger, the step, the gate and the
// page that somebody reads then are the real ones, the measurement is given.
var three = time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)

type night struct {
	t     *testing.T
	state *ledger.State
	svc   spec.Service
	set   spec.Set
	a     compare.Assessment
	facts gate.Facts
	asked *propose.Proposal
	rules gate.Ruling
	files []ledger.Freeze
	max   spec.Mode
	// live is how many replicas there are.
	live int64
	// entries and blobs are the chain itself.
	entries []ledger.Entry
	blobs   map[string][]byte
}

// before is so many minutes before three.
func before(minutes int) time.Time { return three.Add(-time.Duration(minutes) * time.Minute) }

func newNight(t *testing.T) *night {
	act := func(name string, class spec.Class, reversal spec.Reversal) spec.Action {
		return spec.Action{
			Name: name, Uses: "webhook.post", Class: class, Reversal: reversal, Timeout: 10 * time.Second, MaxLateness: 30 * time.Second,
			Settle: 4 * time.Minute, Cooldown: 20 * time.Minute, Target: spec.Target{URL: "http://ops.internal/" + name, StatusURL: "http://ops.internal/" + name},
		}
	}
	scale := act("scale", spec.ClassAuto, spec.Restore)
	scale.Parameters = []spec.Parameter{{Name: "replicas", Type: spec.Integer}}
	n := &night{t: t, state: ledger.NewState(), max: spec.Auto, live: 3, blobs: map[string][]byte{}}
	n.svc = spec.Service{
		Name: "checkout", Digest: "doc-1",
		Objectives: []spec.Objective{{ID: "availability", SLO: "availability", Target: 0.99, JudgeWindow: 5 * time.Minute, Window: 28 * 24 * time.Hour, BurnRates: spec.DefaultBurnRates()}},
		Remediation: spec.Remediation{
			Name: "checkout", Service: "checkout", Owner: "team-payments", Mode: spec.Auto, ActionWindow: 10 * time.Minute, HoldFor: 5 * time.Minute,
			UnknownFor: 10 * time.Minute, EscalateWithin: 20 * time.Minute, ApprovalFor: 15 * time.Minute, Approvers: []string{"os:alice"}, DependsOn: []string{"payments-db"},
			Actions: []spec.Action{scale, act("restart", spec.ClassAuto, spec.Transient), act("rollback", spec.ClassApproval, spec.Irreversible)},
			Budget:  spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
			Pos:     spec.Position{File: "slo/checkout.yaml", Line: 28},
		},
	}
	n.set = spec.Set{Services: []spec.Service{n.svc, {Name: "payments-db", Digest: "doc-2"}}}
	n.add(14400, ledger.KindInit, "", ledger.Init{Version: ledger.Version, By: "os:alice"})
	n.add(14400, ledger.KindDocuments, "", ledger.Documents{Set: "s", Services: map[string]string{"checkout": "doc-1", "payments-db": "doc-2"}})
	for _, name := range []string{"checkout", "payments-db"} {
		n.add(14399, ledger.KindState, name, ledger.StateChange{To: compare.Met, By: "me"})
	}
	n.facts = gate.Facts{Now: three, FreshReads: 2, Ceiling: gate.Auto, Dependencies: map[string]compare.State{"payments-db": compare.Met}}
	n.rules = gate.Ruling{Revision: "policy-1", Auto: []gate.Rule{{Reason: "reversible", Package: "setpoint.gate"}}}
	n.measured(0.001)
	return n
}

func (n *night) add(minutes int, kind ledger.Kind, service string, body any) ledger.Entry {
	n.t.Helper()
	e, err := ledger.Link(n.state.Head, before(minutes), ledger.Draft{Kind: kind, Service: service, Body: body})
	if err == nil {
		err = n.state.Apply(e)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.entries = append(n.entries, e)
	return e
}

// measured is the reading of three o'clock.
func (n *night) measured(errors float64) {
	m := measure.Measurement{Good: 1 - errors, Total: 1, HasEvents: true, ErrorRatio: errors, SampleAt: three.Add(-5 * time.Second)}
	m.Good, m.Total = 1e4*(1-errors), 1e4
	state, reason := compare.Met, compare.Reason("")
	if errors > 0.01 {
		state, reason = compare.Breached, compare.Burning
	}
	n.a = compare.Assessment{
		Service: "checkout", At: three, State: state, Reason: reason, SampleAt: m.SampleAt,
		Objectives: []compare.Objective{{ID: "availability", State: state, Reason: reason, Target: 0.99, Judge: m, Period: m, Sources: []string{"main"}}},
	}
}

// breached began so many minutes ago.
func (n *night) breached(minutes int) {
	n.add(minutes, ledger.KindState, "checkout", ledger.StateChange{From: compare.Met, To: compare.Breached, Reason: compare.Burning, ErrorRatio: 0.125, By: "me"})
	n.measured(0.125)
}

func (n *night) wants(action string, p propose.Parameters) {
	n.asked = &propose.Proposal{Kind: propose.KindAction, Action: action, Parameters: p, Proposer: propose.Proposer{Kind: "rules"}}
}

var six = propose.Parameters{"replicas": int64(6)}

// sent is a claim by verdict auto and its sending, in a window of its own.
func (n *night) sent(minutes int, action string, p propose.Parameters) gate.Key {
	key := gate.KeyOf("checkout", gate.WindowAt(before(minutes), 10*time.Minute))
	a, _ := n.svc.Action(action)
	episode := n.state.Services["checkout"].Episode
	d := n.add(minutes, ledger.KindDecision, "checkout", ledger.Decided{
		Window: strings.TrimPrefix(string(key), "checkout:"), Episode: episode, Key: key, Step: "execute", State: compare.Breached, Mode: spec.Auto,
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: action, Parameters: p}, Decision: gate.Decision{Verdict: gate.Auto, Key: key, Digest: "digest", Cost: 2},
	})
	n.add(minutes, ledger.KindClaim, "checkout", ledger.Claim{
		Key: key, Decision: ledger.DecisionID(d.Seq), Episode: episode, Digest: "digest", Target: a.Canonical(), Action: a, Parameters: p, Verdict: gate.Auto,
		Live: propose.Live{"replicas": n.live}, Charge: 2, Costs: n.svc.Remediation.Budget.Costs, Expires: before(minutes - 1), State: compare.Breached,
	})
	n.add(minutes, ledger.KindStarted, "checkout", ledger.Started{Key: key})
	if to, ok := p["replicas"].(int64); ok {
		n.live = to
	}
	return key
}

func (n *night) answered(minutes int, key gate.Key, e execute.Effect) {
	n.add(minutes, ledger.KindReceipt, "checkout", ledger.Receipt{Key: key, Receipt: execute.Receipt{Effect: e, At: before(minutes), AppliedAt: before(minutes)}})
}

func (n *night) judged(minutes int, key gate.Key, o compare.Outcome, cost float64) {
	after := map[compare.Outcome]float64{compare.OutcomeNoChange: 0.126, compare.OutcomeWorsened: 0.25, compare.OutcomeRecovered: 0.002}[o]
	n.add(minutes, ledger.KindOutcome, "checkout", ledger.Outcome{Key: key, Cost: cost, Judgement: compare.Judgement{
		Outcome: o, Objective: "checkout/availability", Before: 0.125, After: after, Decided: true,
	}})
}

// tried is a whole step that was sent, answered and judged.
func (n *night) tried(minutes int, action string, p propose.Parameters, o compare.Outcome, cost float64) {
	key := n.sent(minutes, action, p)
	n.answered(minutes, key, execute.Applied)
	n.judged(minutes-9, key, o, cost)
}

// undone takes the last step back, to no effect on the errors.
func (n *night) undone(minutes int) {
	keys := n.state.Services["checkout"].Effects
	e := n.state.Effects[keys[len(keys)-1]]
	p := step.UndoOf(*e)
	key := n.state.FreeKey("checkout", gate.WindowAt(before(minutes), 10*time.Minute))
	n.add(minutes, ledger.KindClaim, "checkout", ledger.Claim{
		Key: key, Decision: "d0", Episode: e.Claim.Episode, Digest: "digest", Target: e.Claim.Target, Action: e.Claim.Action, Parameters: p.Parameters, Live: propose.Live{"replicas": n.live},
		Undo: true, Undoes: e.Claim.Key, Verdict: gate.Auto, Expires: before(minutes - 1),
	})
	n.add(minutes, ledger.KindStarted, "checkout", ledger.Started{Key: key})
	n.live = p.Parameters["replicas"].(int64)
	n.answered(minutes, key, execute.Applied)
	n.judged(minutes-9, key, compare.OutcomeNoChange, 0)
}

// ticket asks about scale, so many minutes ago.
func (n *night) ticket(minutes int) string {
	return n.ticketIn(gate.KeyOf("checkout", gate.WindowAt(before(minutes), 10*time.Minute)), minutes)
}

func (n *night) answer(id string, minutes int, yes bool) {
	n.add(minutes, ledger.KindAnswer, "checkout", approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: yes, At: before(minutes), Reason: "not tonight", Satisfies: []int{0}})
}

// refusedNow is what the gate says of a proposal in the window of three o'clock,
// recorded a moment ago.
func (n *night) refusedNow(action string, p propose.Parameters) {
	n.wants(action, p)
	r := n.result()
	window := gate.WindowAt(three, 10*time.Minute).String()
	n.add(0, ledger.KindDecision, "checkout", ledger.Decided{
		Window: window, Episode: n.state.Services["checkout"].Episode, Key: r.Key, Step: string(r.Step.Kind), Proposal: *n.asked, Decision: *r.Decision, Mode: n.svc.Remediation.Mode,
	})
}

func (n *night) ticketIn(key gate.Key, minutes int) string {
	e := n.add(minutes, ledger.KindTicket, "checkout", approve.Ticket{
		Service: "checkout", Episode: n.state.Services["checkout"].Episode, Key: key, Digest: "digest", Asked: before(minutes), Expires: before(minutes - 15),
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: six}, Needs: []gate.Need{{Reason: "x", Approvers: []string{"os:alice"}, Quorum: 1}},
	})
	return ledger.TicketID(e.Seq)
}

func (n *night) page(minutes int, reason string) {
	id := n.state.Services["checkout"].Episode
	n.add(minutes, ledger.KindPage, "checkout", escalate.Page{
		ID: id, Service: "checkout", Episode: id, Reason: reason, Now: reason, Severity: escalate.SeverityCritical, Summary: "checkout", Since: before(minutes), Receivers: []string{"oncall"},
	})
}

// result is the pass of three o'clock, step and gate as the loop has them.
func (n *night) result() reconcile.Result {
	known := n.state.Services["checkout"]
	f := n.facts
	f.Assessment, f.Since, f.Episode = n.a, known.Since, known.Episode
	limits := gate.Limits{MaxMode: n.max, EffectsPerHour: 60, EffectsPerServicePerHour: 20, OpenApproval: 5, MinSpacing: 2 * time.Minute, PermitTTL: 30 * time.Second}
	s := step.Situation{Service: n.svc, Facts: f, Limits: limits, Window: gate.WindowAt(three, 10*time.Minute)}
	s.Record = known.Windows[s.Window.String()]
	s.InFlight, _ = n.state.InFlight("checkout", "")
	if k, ok := n.state.OpenTicket("checkout"); ok {
		s.Ticket = &k
	}
	if s.Undo = n.state.Undoable("checkout", three, n.svc.Remediation.EscalateWithin); s.Undo != nil {
		s.UndoKey = n.state.FreeKey("checkout", s.Window)
		f.Undoes = &gate.Undone{Key: s.Undo.Claim.Key, Target: s.Undo.Claim.Target, Wrote: s.Undo.Claim.Parameters}
	}
	r := reconcile.Result{Service: "checkout", Assessment: n.a, Step: step.Next(s)}
	r.Key = r.Step.Key
	if r.Step.Recorded != nil {
		n.asked = r.Step.Recorded
	}
	if r.Step.Kind != step.Propose || n.asked == nil {
		return r
	}
	a, _ := n.svc.Action(n.asked.Action)
	f.Item = propose.Item{Action: a, Live: propose.Live{"replicas": n.live}, LiveKnown: true}
	f.Suspended = n.state.Suspended("checkout", a.Name, three)
	f.Ceiling = n.state.Ceiling("checkout", a.Name, three)
	f.Sent = n.state.SentSince("checkout", a.Canonical(), three.Add(-gate.Day), "")
	own := budget.Policy{Period: n.svc.Remediation.Budget.Period, Capacity: n.svc.Remediation.Budget.Capacity}
	f.Balance = budget.Of("checkout", a.Name, own, fleetBudget, n.state.Charges(), n.state.Resets, three)
	d := gate.Decide(gate.Case{Service: n.svc, Proposal: *n.asked, Key: r.Key, Facts: f, Limits: limits}, n.rules)
	r.Proposal, r.Decision, r.Balance, r.Step.Reasons = n.asked, &d, f.Balance, d.Reasons
	switch _, permitted := d.Permit(); {
	case d.Hold:
		r.Step.Kind = step.Hold
	case permitted:
		r.Step.Kind = step.Execute
	case d.Verdict == gate.Approval:
		r.Step.Kind = step.Ask
	case d.Verdict == gate.Escalate:
		r.Step.Kind = step.Escalate
	default:
		r.Step.Kind = step.Hold
	}
	return r
}

var fleetBudget = budget.Policy{Period: 28 * 24 * time.Hour, Capacity: 10}

func (n *night) view() web.View {
	n.set.Services[0] = n.svc
	return web.View{State: n.state, Set: n.set, MaxMode: n.max, Global: fleetBudget, Files: n.files, Now: three}
}

func (n *night) metAt(minutes int) {
	n.add(minutes, ledger.KindState, "checkout", ledger.StateChange{From: compare.Breached, To: compare.Met, By: "me"})
	n.measured(0.002)
}

func (n *night) over(minutes int) {
	n.add(minutes, ledger.KindRecovered, "checkout", ledger.Recovered{Episode: n.state.Services["checkout"].Episode})
}

func (n *night) freeze() {
	f := ledger.Freeze{ID: "f1a2b3c4", By: "os:alice", Reason: "looking at the database", At: before(20), Until: three.Add(time.Hour)}
	n.files = []ledger.Freeze{f}
	n.facts.Freezes = []gate.Hold{{ID: f.ID, By: f.By, Text: f.Reason, Until: f.Until}}
}

func (n *night) drill() {
	m := spec.Maintenance{
		Name: "failover-drill", Services: []string{"checkout"}, Effect: spec.Observe, Owner: "team-payments", Reason: "quarterly failover drill",
		Schedule: spec.Schedule{Cron: "30 3 29 11 *", Duration: time.Hour, TimeZone: "Europe/Berlin"},
	}
	n.set.Maintenances = []spec.Maintenance{m}
	_, until := m.Schedule.Active(three)
	n.facts.Maintenances = []gate.Hold{{ID: m.Name, By: m.Owner, Text: m.Reason, Until: until, Effect: m.Effect}}
}

// fleetSpends lets another service spend what all may.
func (n *night) fleetSpends() {
	for i := range 5 {
		at := 600 - 20*i
		key := gate.KeyOf("payments-db", gate.WindowAt(before(at), 10*time.Minute))
		a := spec.Action{Name: "failover", Settle: time.Minute}
		n.add(at, ledger.KindClaim, "payments-db", ledger.Claim{
			Key: key, Decision: ledger.DecisionID(n.state.Head.Seq), Digest: "digest", Target: "db", Action: a, Verdict: gate.Auto, Charge: 2, Expires: before(at - 1),
		})
		n.add(at, ledger.KindStarted, "payments-db", ledger.Started{Key: key})
		n.add(at, ledger.KindReceipt, "payments-db", ledger.Receipt{Key: key, Receipt: execute.Receipt{Effect: execute.Applied, At: before(at)}})
		n.add(at-10, ledger.KindOutcome, "payments-db", ledger.Outcome{Key: key, Cost: 2, Judgement: compare.Judgement{Outcome: compare.OutcomeWorsened, Decided: true}})
	}
}

// TestExplainBegins: the first five lines of explain say what is broken, what
// was tried, what comes next, what to do and what is left, whatever the matter
// is, in lines that fit a terminal.
func TestExplainBegins(t *testing.T) {
	for name, what := range nights {
		t.Run(name, func(t *testing.T) {
			n := newNight(t)
			what(n)
			if len(n.state.Skipped) > 0 {
				t.Fatalf("the past contradicts itself: %+v", n.state.Skipped)
			}
			v, r := n.view(), n.result()
			e := web.Explain(v, web.PlanOf(v.Set, v.MaxMode, r))
			var out bytes.Buffer
			p := &paper{w: &out, now: three}
			p.service(e)
			lines := strings.SplitAfterN(out.String(), "\n", 6)
			got := strings.Join(lines[:5], "")
			for i, topic := range []string{web.TopicState, web.TopicTried, web.TopicNext, web.TopicYou, web.TopicBalance} {
				if !strings.HasPrefix(lines[i], topic+" ") || e.Headline[i].Topic != topic || !strings.HasSuffix(strings.TrimSpace(lines[i]), e.Headline[i].Text) {
					t.Errorf("line %d is %q, want that of %s: %+v", i+1, lines[i], topic, e.Headline[i])
				}
				if n := utf8.RuneCountInString(lines[i]) - 1; n > web.HeadlineWidth {
					t.Errorf("line %d has %d columns", i+1, n)
				}
				if strings.HasSuffix(e.Headline[i].Text, "…") {
					t.Errorf("line %d is cut: %s", i+1, lines[i])
				}
			}
			sameGolden(t, filepath.Join("testdata", "explain", name+".txt"), got)
		})
	}
}

func sameGolden(t *testing.T, file, got string) {
	t.Helper()
	if *updateGoldens {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want, +got); -update writes it after a change on purpose:\n%s", file, diff)
	}
}
