package web_test

import (
	"testing"
	"time"

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

// start is the time of the first entry; each further one is a minute later.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const month = 30 * 24 * time.Hour

const (
	keyOne = gate.Key("checkout:1772366400-600")
	keyTwo = gate.Key("checkout:1772367000-600")
)

func scale() spec.Action {
	return spec.Action{
		Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:  spec.Target{URL: "http://127.0.0.1:1/scale", StatusURL: "http://127.0.0.1:1/scale"},
		Timeout: 10 * time.Second, Settle: time.Minute, Pos: spec.Position{File: "slo/checkout.yaml", Line: 31},
	}
}

func documents() spec.Set {
	rollback := spec.Action{
		Name: "rollback", Uses: "webhook.post", Class: spec.ClassApproval, Reversal: spec.Irreversible,
		Target: spec.Target{URL: "http://127.0.0.1:1/rollback"}, Pos: spec.Position{File: "slo/checkout.yaml", Line: 40},
	}
	return spec.Set{Digest: "set-1", Services: []spec.Service{
		{
			Name: "checkout", Digest: "doc-1",
			Objectives: []spec.Objective{{ID: "availability", SLO: "availability", Target: 0.99, Window: month, BurnRates: spec.DefaultBurnRates()}},
			Remediation: spec.Remediation{
				Name: "checkout", Service: "checkout", Owner: "team-payments", Mode: spec.Auto,
				Actions: []spec.Action{scale(), rollback},
				Budget:  spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
			},
		},
		{Name: "search", Digest: "doc-2", Objectives: []spec.Objective{{ID: "latency", SLO: "latency", Target: 0.95, Window: month}}},
	}}
}

// bodies is the history of the golden files.
func bodies() []ledger.Draft {
	six := propose.Proposal{
		Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)},
		Rationale: "more replicas", Proposer: propose.Proposer{Kind: "rules"},
	}
	granted := gate.Ruling{Revision: "policy-1", Auto: []gate.Rule{{
		Reason: "transient-first", Package: "setpoint.gate", Title: "A first action runs by itself",
		Remedy: "nothing", File: "class.rego", Line: 12,
	}}}
	receipt := execute.Receipt{Effect: execute.Applied, At: start.Add(7 * time.Minute), AppliedAt: start.Add(7 * time.Minute), Detail: "200"}
	asked := gate.Decision{
		Verdict: gate.Approval, Digest: "digest-2", Key: keyTwo, Ruling: granted, Cost: 2,
		Reasons: []gate.Reason{{Code: gate.ReasonBudgetSpent, Text: "2 left, the dearest outcome costs 2"}},
		Needs:   []gate.Need{{Reason: gate.ReasonBudgetSpent, Approvers: []string{"@oncall"}, Quorum: 1, Expires: 15 * time.Minute}},
	}
	return []ledger.Draft{
		{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:root"}},
		{Kind: ledger.KindDocuments, Body: ledger.Documents{Set: "set-1", Services: map[string]string{"checkout": "doc-1", "search": "doc-2"}}},
		{Kind: ledger.KindState, Service: "checkout", Body: ledger.StateChange{To: compare.Breached, Reason: compare.Burning, ErrorRatio: 0.3}},
		{Kind: ledger.KindDecision, Service: "checkout", Body: ledger.Decided{
			Window: "1772366400-600", Episode: "e3", Key: keyOne, Step: "execute", Proposal: six, State: compare.Breached, Reason: compare.Burning,
			Mode: spec.Auto, Decision: gate.Decision{Verdict: gate.Auto, Digest: "digest-1", Key: keyOne, Ruling: granted, Cost: 2},
			Shadow: &ledger.Shadow{Revision: "revision-2", Verdict: gate.Approval, Reasons: []string{"policy:after-hours"}, Differs: true},
		}},
		{Kind: ledger.KindClaim, Service: "checkout", Body: ledger.Claim{
			Key: keyOne, Decision: "d4", Episode: "e3", Digest: "digest-1", Target: "webhook http://127.0.0.1:1/scale", Action: scale(),
			Parameters: six.Parameters, Verdict: gate.Auto, Charge: 2, Expires: start.Add(5 * time.Minute), State: compare.Breached,
		}},
		{Kind: ledger.KindStarted, Service: "checkout", Body: ledger.Started{Key: keyOne}},
		{Kind: ledger.KindReceipt, Service: "checkout", Body: ledger.Receipt{Key: keyOne, Receipt: receipt}},
		{Kind: ledger.KindOutcome, Service: "checkout", Body: ledger.Outcome{Key: keyOne, Cost: 1, Judgement: compare.Judgement{
			Outcome: compare.OutcomeNoChange, Objective: "checkout/availability", Before: 0.3, After: 0.31, Decided: true,
		}}},
		{Kind: ledger.KindDecision, Service: "checkout", Body: ledger.Decided{
			Window: "1772367000-600", Episode: "e3", Key: keyTwo, Step: "ask", Proposal: six, State: compare.Breached, Reason: compare.Burning,
			Mode: spec.Auto, Decision: asked,
		}},
		{Kind: ledger.KindTicket, Service: "checkout", Body: approve.Ticket{
			Service: "checkout", Episode: "e3", Decision: "d9", Key: keyTwo, Digest: "digest-2", Proposal: six, Needs: asked.Needs,
			Reasons: asked.Reasons, Asked: start.Add(9 * time.Minute), Expires: start.Add(24 * time.Minute), State: approve.Open,
		}},
		{Kind: ledger.KindCard, Service: "checkout", Body: approve.Posted{
			Ticket: "t10", Rev: 1, Messages: []approve.Message{{Channel: "C1", ID: "1.1", Link: "https://chat.example/1", Shows: "gist"}},
		}},
		{Kind: ledger.KindPage, Service: "checkout", Body: escalate.Page{
			ID: "e3", Service: "checkout", Episode: "e3", Reason: escalate.ApprovalNeeded, Now: escalate.ApprovalNeeded, Severity: "page",
			Summary: "checkout waits for an approval", Text: "the whole text", Receivers: []string{"oncall", "backup"}, Since: start.Add(10 * time.Minute),
		}},
		{Kind: ledger.KindDelivery, Body: escalate.Delivery{Page: "e3", Receiver: "oncall", Sent: start.Add(11 * time.Minute)}},
		{Kind: ledger.KindFreeze, Service: "checkout", Body: ledger.Freeze{ID: "f1", Service: "checkout", By: "os:alice", Reason: "looking", At: start.Add(12 * time.Minute)}},
	}
}

// world is the view of the golden files.
func world(t *testing.T) web.View {
	t.Helper()
	state := ledger.NewState()
	for i, d := range bodies() {
		e, err := ledger.Link(state.Head, start.Add(time.Duration(i)*time.Minute), d)
		if err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
		if err := state.Apply(e); err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
	}
	if len(state.Skipped) > 0 {
		t.Fatalf("the history contradicts itself: %+v", state.Skipped)
	}
	return web.View{
		State: state, Set: documents(), MaxMode: spec.Auto, Now: start.Add(20 * time.Minute),
		Global: budget.Policy{Period: 28 * 24 * time.Hour, Capacity: 10},
		Files:  []ledger.Freeze{{ID: "f2", By: "unknown", Reason: "half written", At: start.Add(19 * time.Minute)}},
		Last:   map[string]reconcile.Result{"checkout": result()},
	}
}

// result is the newest pass of checkout.
func result() reconcile.Result {
	at := start.Add(19 * time.Minute)
	judge := measure.Measurement{Good: 70, Total: 100, HasEvents: true, ErrorRatio: 0.3, SampleAt: at.Add(-10 * time.Second)}
	p := propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}, Rationale: "more replicas", Proposer: propose.Proposer{Kind: "rules"}}
	return reconcile.Result{
		Service: "checkout",
		Assessment: compare.Assessment{
			Service: "checkout", At: at, State: compare.Breached, Reason: compare.Burning,
			Objectives: []compare.Objective{{
				ID: "availability", Sources: []string{"main"}, State: compare.Breached, Reason: compare.Burning, Target: 0.99,
				Judge: judge, Period: measure.Measurement{ID: measure.ID{Window: month}, Good: 995, Total: 1000, HasEvents: true, ErrorRatio: 0.005}, SampleAge: 10 * time.Second,
				Burns: []compare.Burn{
					{BurnRate: spec.DefaultBurnRates()[0], ShortRate: 30, LongRate: 20, Known: true, Burning: true},
					{BurnRate: spec.DefaultBurnRates()[1]},
				},
			}},
		},
		Step:     step.Step{Kind: step.Ask, Key: keyTwo, Reasons: []gate.Reason{{Code: gate.ReasonBudgetSpent, Text: "2 left"}}},
		Proposal: &p, Key: keyTwo, Balance: budget.Balance{Remaining: 2, Capacity: 3, GlobalRemaining: 9, GlobalCapacity: 10},
		Decision: &gate.Decision{
			Verdict: gate.Approval, Digest: "digest-2", Key: keyTwo, Cost: 2,
			Reasons: []gate.Reason{{Code: gate.ReasonBudgetSpent, Text: "2 left"}},
			Needs:   []gate.Need{{Reason: gate.ReasonBudgetSpent, Approvers: []string{"@oncall"}, Quorum: 1, Expires: 15 * time.Minute}},
		},
		RequeueAfter: 30 * time.Second,
	}
}
