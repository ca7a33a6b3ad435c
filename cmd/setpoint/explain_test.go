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
	r := reconcile.Result{Service: "checkout", Assessment: n.a, Step: step.Next(s)}
	r.Key = r.Step.Key
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

// nights are what can be the matter at three o'clock.
var nights = map[string]func(n *night){
	"met": func(*night) {},
	"met-later": func(n *night) {
		n.breached(55)
		n.tried(50, "restart", nil, compare.OutcomeRecovered, 0)
		n.metAt(40)
		n.over(35)
	},
	"met-again": func(n *night) { n.breached(25); n.tried(20, "scale", six, compare.OutcomeRecovered, 0); n.metAt(3) },
	"auto-next": func(n *night) { n.breached(4); n.wants("scale", six) },
	"awaiting":  func(n *night) { n.breached(12); n.answered(2, n.sent(2, "scale", six), execute.Applied) },
	"in-doubt":  func(n *night) { n.breached(12); n.answered(2, n.sent(2, "scale", six), execute.InDoubt) },
	"doubt-unknown": func(n *night) {
		n.breached(40)
		key := n.sent(30, "scale", six)
		n.answered(30, key, execute.InDoubt)
		n.add(18, ledger.KindSettled, "checkout", ledger.Settled{Key: key, Effect: execute.Unknown, By: "observation", Reason: "no answer"})
		n.page(17, escalate.InDoubt)
	},
	"budget-spent": func(n *night) {
		n.tried(3*24*60, "scale", six, compare.OutcomeWorsened, 2)
		n.breached(60)
		n.tried(55, "scale", propose.Parameters{"replicas": int64(9)}, compare.OutcomeNoChange, 1)
		n.wants("scale", propose.Parameters{"replicas": int64(12)})
	},
	"fleet-spent": func(n *night) { n.fleetSpends(); n.breached(4); n.wants("scale", six) },
	"ticket":      func(n *night) { n.breached(14); n.ticket(4); n.page(3, escalate.ApprovalNeeded) },
	"approved": func(n *night) {
		n.breached(14)
		id := n.ticket(4)
		n.answer(id, 1, true)
	},
	"denied": func(n *night) {
		n.breached(24)
		id := n.ticket(14)
		n.answer(id, 9, false)
		n.facts.PersonHold = id + " was denied by os:alice"
		n.wants("scale", six)
	},
	"denied-now": func(n *night) {
		n.breached(24)
		n.answer(n.ticketIn(gate.KeyOf("checkout", gate.WindowAt(three, 10*time.Minute)), 2), 1, false)
	},
	"observe-later": func(n *night) {
		n.svc.Remediation.Mode = spec.Observe
		n.breached(6)
		n.refusedNow("scale", six)
	},
	"suspended": func(n *night) {
		n.breached(100)
		n.tried(90, "scale", six, compare.OutcomeWorsened, 2)
		n.tried(50, "scale", propose.Parameters{"replicas": int64(9)}, compare.OutcomeWorsened, 2)
		n.page(40, escalate.Suspended)
		n.wants("scale", six)
		n.facts.Sent = nil
	},
	"storm": func(n *night) {
		n.breached(6)
		n.facts.Storm = "12 of 20 services are breached, 3 unknown by fault of their source"
	},
	"frozen":      func(n *night) { n.breached(6); n.freeze() },
	"frozen-met":  func(n *night) { n.freeze() },
	"maintenance": func(n *night) { n.breached(6); n.drill() },
	"drill-met":   func(n *night) { n.drill() },
	"blind": func(n *night) {
		n.add(14, ledger.KindState, "checkout", ledger.StateChange{From: compare.Met, To: compare.Unknown, Reason: measure.SourceError, SourceFault: "main", By: "me"})
		n.a = compare.Assessment{Service: "checkout", At: three, State: compare.Unknown, Reason: measure.SourceError, Objectives: []compare.Objective{{
			ID: "availability", State: compare.Unknown, Reason: measure.SourceError, Target: 0.99, Sources: []string{"main"}, UnknownFrom: "main", Detail: "503 Service Unavailable: starting up",
		}}}
		n.page(3, escalate.Blind)
	},
	"dependency": func(n *night) {
		n.add(8, ledger.KindState, "payments-db", ledger.StateChange{From: compare.Met, To: compare.Breached, Reason: compare.Burning, By: "me"})
		n.breached(6)
		n.facts.Dependencies["payments-db"] = compare.Breached
	},
	"observe": func(n *night) {
		n.svc.Remediation.Mode, n.max = spec.Observe, spec.Observe
		n.breached(6)
		n.wants("scale", six)
	},
	"suggest": func(n *night) { n.svc.Remediation.Mode = spec.Suggest; n.breached(6); n.wants("scale", six) },
	"demoted": func(n *night) {
		n.add(300, ledger.KindCeiling, "checkout", ledger.Ceiling{Action: "scale", To: gate.Escalate, By: "setpoint", Reason: "worsened 2 times in its period"})
		n.breached(6)
		n.wants("scale", six)
	},
	"cooldown": func(n *night) {
		n.breached(30)
		n.tried(12, "scale", six, compare.OutcomeNoChange, 1)
		n.facts.ActionSent = before(12)
		n.wants("scale", propose.Parameters{"replicas": int64(9)})
	},
	"repeat": func(n *night) {
		for _, minutes := range []int{700, 400} {
			n.breached(minutes + 5)
			n.tried(minutes, "restart", nil, compare.OutcomeRecovered, 0)
			n.metAt(minutes - 10)
			n.over(minutes - 15)
		}
		n.breached(5)
		n.wants("restart", nil)
	},
	"oscillation": func(n *night) {
		n.breached(70)
		n.tried(60, "scale", six, compare.OutcomeNoChange, 1)
		n.tried(40, "scale", propose.Parameters{"replicas": int64(3)}, compare.OutcomeNoChange, 1)
		n.wants("scale", six)
	},
	"fight": func(n *night) {
		n.breached(200)
		n.tried(190, "scale", six, compare.OutcomeNoChange, 1)
		n.live = 3 // Somebody else put it back.
		n.tried(150, "scale", six, compare.OutcomeNoChange, 0)
		n.live = 3
		n.page(100, escalate.HandedOver)
		n.wants("scale", six)
	},
	"spec-problem": func(n *night) { n.breached(6); n.facts.SpecProblem = "never met since its documents were loaded" },
	"policy": func(n *night) {
		n.breached(6)
		n.wants("rollback", nil)
		n.rules = gate.Ruling{Revision: "p", Deny: []gate.Rule{{Reason: "schema-migration", Title: "No rollback across a schema migration", Remedy: "roll forward, or ask the database team", File: "migrations.rego", Line: 9}}}
	},
	"reset": func(n *night) {
		n.tried(3*24*60, "scale", six, compare.OutcomeWorsened, 2)
		n.add(2*24*60, ledger.KindReset, "checkout", ledger.Reset{Action: "scale", By: "os:alice", Reason: "the scaler is fixed", Until: three.Add(48 * time.Hour)})
		n.breached(6)
		n.wants("scale", six)
	},
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
