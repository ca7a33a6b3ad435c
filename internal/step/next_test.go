package step_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

var now = time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)

func service() spec.Service {
	return spec.Service{
		Name: "checkout",
		Remediation: spec.Remediation{
			Name: "checkout", Service: "checkout", Mode: spec.Auto, ActionWindow: 10 * time.Minute,
			HoldFor: 5 * time.Minute, UnknownFor: 10 * time.Minute, EscalateWithin: 20 * time.Minute,
			ApprovalFor: 15 * time.Minute, Approvers: []string{"os:alice"},
			Actions: []spec.Action{{
				Name: "rollback", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
				Target: spec.Target{URL: "http://a/x", StatusURL: "http://a/x"}, Settle: time.Minute, Cooldown: 30 * time.Minute,
			}},
			Budget: spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
		},
	}
}

// burning is a situation in which a proposer is asked.
func burning() step.Situation {
	a := compare.Assessment{
		Service: "checkout", At: now, State: compare.Breached, Reason: compare.Burning, SampleAt: now.Add(-5 * time.Second),
		Objectives: []compare.Objective{{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99}},
	}
	return step.Situation{
		Service: service(),
		Facts: gate.Facts{
			Now: now, Assessment: a, Since: now.Add(-time.Minute), Episode: "e7", FreshReads: 2, Ceiling: gate.Auto,
			Balance: budget.Balance{Remaining: 3, Capacity: 3, GlobalRemaining: 10, GlobalCapacity: 10},
		},
		Limits: gate.Limits{MaxMode: spec.Auto, EffectsPerHour: 6, EffectsPerServicePerHour: 2, OpenApproval: 5, MinSpacing: 2 * time.Minute, PermitTTL: 30 * time.Second},
		Window: gate.WindowAt(now, 10*time.Minute),
	}
}

func claimed(effect execute.Effect) *ledger.Effect {
	return &ledger.Effect{
		Service: "checkout", Effect: effect, AppliedAt: now,
		Claim: ledger.Claim{Key: "checkout:1764385200-600", Action: service().Remediation.Actions[0]},
	}
}

func ticket(state approve.State) *approve.Ticket {
	return &approve.Ticket{
		ID: "t4", Service: "checkout", Key: "checkout:1764385200-600", State: state, Expires: now.Add(time.Minute),
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: "rollback"},
	}
}

func TestNext(t *testing.T) {
	proposal := propose.Proposal{Kind: propose.KindAction, Action: "rollback"}
	cases := map[string]struct {
		reason string
		change func(s *step.Situation)
		want   step.Kind
		code   string
	}{
		"Burning":       {"a target is missed and nothing holds: ask", func(*step.Situation) {}, step.Propose, step.ReasonBreach},
		"Met":           {"met: do nothing", func(s *step.Situation) { s.Facts.Assessment.State = compare.Met }, step.Idle, step.ReasonMet},
		"Unknown":       {"unknown is never a reason to act", func(s *step.Situation) { s.Facts.Assessment.State = compare.Unknown }, step.Hold, gate.ReasonUnknown},
		"NoState":       {"a zero assessment is unknown", func(s *step.Situation) { s.Facts.Assessment = compare.Assessment{} }, step.Hold, gate.ReasonUnknown},
		"Recovering":    {"a good judge window proposes nothing", func(s *step.Situation) { s.Facts.Assessment.Reason = compare.Recovering }, step.Hold, gate.ReasonRecovering},
		"PartlyUnknown": {"a breach beside an unknown objective does not act", func(s *step.Situation) { s.Facts.Assessment.Reason = compare.PartlyUnknown }, step.Hold, gate.ReasonUnknown},
		"NoActions":     {"nothing is declared", func(s *step.Situation) { s.Service.Remediation.Actions = nil }, step.Hold, step.ReasonNoActions},
		"Frozen":        {"a freeze holds before anything is asked", func(s *step.Situation) { s.Facts.Freezes = []gate.Hold{{ID: "f1", By: "os:alice"}} }, step.Hold, gate.ReasonFreeze},
		"OneRead":       {"two fresh reads since the start", func(s *step.Situation) { s.Facts.FreshReads = 1 }, step.Hold, gate.ReasonFreshReads},
		"Spacing":       {"effects are spaced", func(s *step.Situation) { s.Facts.LastSent = now.Add(-time.Minute) }, step.Hold, gate.ReasonSpacing},
		"PolicyFault":   {"no policy, no question", func(s *step.Situation) { s.Facts.PolicyFault = "error: x" }, step.Hold, gate.ReasonPolicyFault},
		"Judged":        {"an applied action waits for its outcome", func(s *step.Situation) { s.InFlight = claimed(execute.Applied) }, step.Settle, step.ReasonAwaiting},
		"InDoubt":       {"a lost reply is asked about, never sent again", func(s *step.Situation) { s.InFlight = claimed(execute.InDoubt) }, step.Settle, step.ReasonInDoubt},
		"InDoubtButMet": {"recovery does not settle an effect in doubt", func(s *step.Situation) { s.InFlight = claimed(execute.InDoubt); s.Facts.Assessment.State = compare.Met }, step.Settle, step.ReasonInDoubt},
		"OpenTicket":    {"an open ticket is waited for", func(s *step.Situation) { s.Ticket = ticket(approve.Open) }, step.Hold, step.ReasonWaitApproval},
		"Approved":      {"an approved ticket is executed", func(s *step.Situation) { s.Ticket = ticket(approve.Approved) }, step.Execute, step.ReasonApproved},
		"ApprovedFrozen": {"approval does not override a freeze", func(s *step.Situation) {
			s.Ticket = ticket(approve.Approved)
			s.Facts.Freezes = []gate.Hold{{ID: "f1"}}
		}, step.Hold, gate.ReasonFreeze},
		"ApprovedBlind": {"approval does not make unknown known", func(s *step.Situation) {
			s.Ticket = ticket(approve.Approved)
			s.Facts.Assessment.State = compare.Unknown
		}, step.Hold, gate.ReasonUnknown},
		"Final": {"one proposal per window", func(s *step.Situation) { s.Record = &ledger.Window{Final: ledger.FinalDenied} }, step.Hold, step.ReasonWindowSpent},
		"Recorded": {"a recorded proposal is judged again", func(s *step.Situation) {
			s.Record = &ledger.Window{Asked: &ledger.Asked{}, Proposed: &ledger.Proposed{Proposal: proposal}}
		}, step.Propose, step.ReasonBreach},
		"Asked": {"asked and not answered: wait", func(s *step.Situation) {
			s.Record = &ledger.Window{Asked: &ledger.Asked{Deadline: now.Add(time.Second)}}
		}, step.Hold, step.ReasonAsked},
		"AskedLost": {"asked and never answered counts as malformed", func(s *step.Situation) { s.Record = &ledger.Window{Asked: &ledger.Asked{Deadline: now}} }, step.Propose, step.ReasonAsked},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := burning()
			tc.change(&s)
			got := step.Next(s)
			if got.Kind != tc.want || len(got.Reasons) == 0 || got.Reasons[0].Code != tc.code {
				t.Errorf("%s: got %s %v, want %s %s", tc.reason, got.Kind, got.Reasons, tc.want, tc.code)
			}
		})
	}
}

// A lost answer must not become a second question: the recorded stand-in is
// malformed, which the gate denies and which ends the window.
func TestNextLostAnswerIsMalformed(t *testing.T) {
	s := burning()
	s.Record = &ledger.Window{Asked: &ledger.Asked{Deadline: now, Proposer: propose.Proposer{Kind: "openai", Model: "m"}}}
	got := step.Next(s)
	if got.Recorded == nil || got.Recorded.Kind != propose.KindMalformed || got.Recorded.Proposer.Model != "m" {
		t.Errorf("recorded = %+v, want a malformed proposal of the asked model", got.Recorded)
	}
}

// anySituation draws situations over everything that Next looks at.
func anySituation(t *rapid.T) step.Situation {
	s := burning()
	f := &s.Facts
	f.Assessment.State = rapid.SampledFrom([]compare.State{compare.Met, compare.Breached, compare.Unknown, ""}).Draw(t, "state")
	f.Assessment.Reason = rapid.SampledFrom([]compare.Reason{compare.Burning, compare.Recovering, compare.PartlyUnknown, "no-data", ""}).Draw(t, "reason")
	f.FreshReads = rapid.IntRange(0, 2).Draw(t, "reads")
	if rapid.Bool().Draw(t, "frozen") {
		f.Freezes = []gate.Hold{{ID: "f1"}}
	}
	f.Storm = rapid.SampledFrom([]string{"", "31 of 40"}).Draw(t, "storm")
	f.KeyClaimed = rapid.Bool().Draw(t, "claimed")
	if rapid.Bool().Draw(t, "clock") {
		f.ClocksApart = "main is 9s apart"
	}
	f.LastSent = now.Add(-time.Duration(rapid.IntRange(0, 600).Draw(t, "sent")) * time.Second)
	switch rapid.IntRange(0, 3).Draw(t, "in flight") {
	case 0:
		s.InFlight = claimed(rapid.SampledFrom([]execute.Effect{execute.Claimed, execute.Started, execute.Applied, execute.InDoubt, execute.Unknown}).Draw(t, "effect"))
	case 1:
		s.Ticket = ticket(rapid.SampledFrom([]approve.State{approve.Open, approve.Approved}).Draw(t, "ticket"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "window") {
	case 0:
		s.Record = &ledger.Window{Final: ledger.FinalNone}
	case 1:
		s.Record = &ledger.Window{Asked: &ledger.Asked{Deadline: now.Add(time.Duration(rapid.IntRange(-9, 9).Draw(t, "deadline")) * time.Second)}}
	}
	return s
}

func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation(t)
		got := step.Next(s)
		if diff := cmp.Diff(got, step.Next(s)); diff != "" {
			t.Fatalf("the same situation gave two steps: %s", diff)
		}
		if len(got.Reasons) == 0 {
			t.Fatalf("%s without a reason", got.Kind)
		}
		moves := got.Kind == step.Propose || got.Kind == step.Execute
		a := s.Facts.Assessment
		switch {
		case a.State == compare.Met && s.InFlight == nil && s.Ticket == nil && got.Kind != step.Idle:
			t.Fatalf("met gave %s", got.Kind)
		case moves && !a.Actionable():
			t.Fatalf("%s on %s/%s", got.Kind, a.State, a.Reason)
		case moves && (len(s.Facts.Freezes) > 0 || s.Facts.Storm != "" || s.Facts.ClocksApart != "" || s.InFlight != nil):
			t.Fatalf("%s although something holds: %+v", got.Kind, s.Facts)
		case moves && s.Facts.FreshReads < 2:
			t.Fatalf("%s after %d reads", got.Kind, s.Facts.FreshReads)
		}
	})
}
