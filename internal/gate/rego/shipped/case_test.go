package shipped_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/policies"
)

var now = time.Date(2026, 11, 29, 3, 12, 0, 0, time.UTC)

// granted is a case that the floors and the shipped policy let run alone.
func granted() gate.Case {
	a := spec.Action{
		Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:     spec.Target{URL: "http://scaler.internal/checkout", StatusURL: "http://scaler.internal/checkout"},
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer}},
	}
	judge := measure.Measurement{Good: 900, Total: 1000, HasEvents: true, ErrorRatio: 0.1, SampleAt: now}
	return gate.Case{
		Service: spec.Service{Name: "checkout", Remediation: spec.Remediation{
			Owner: "team-payments", Mode: spec.Auto, Approvers: []string{"@payments-oncall"}, ApprovalFor: 15 * time.Minute,
			Actions: []spec.Action{a}, Budget: spec.Budget{Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
		}},
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)},
			Proposer: propose.Proposer{Kind: "rules"}},
		Key: gate.KeyOf("checkout", gate.WindowAt(now, 10*time.Minute)),
		Facts: gate.Facts{
			Now: now, Since: now.Add(-time.Minute), Episode: "e1", FreshReads: 2, Ceiling: gate.Auto,
			Assessment: compare.Assessment{State: compare.Breached, Reason: compare.Burning, Objectives: []compare.Objective{
				{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99, Judge: judge, Period: judge}}},
			Balance:   budget.Balance{Remaining: 3, Capacity: 3, GlobalRemaining: 10, GlobalCapacity: 10},
			Item:      propose.Item{Action: a, Live: propose.Live{"replicas": int64(4)}, LiveKnown: true},
			Ownership: gate.OwnershipNone,
		},
		Limits: gate.Limits{MaxMode: spec.Auto, EffectsPerHour: 6, EffectsPerServicePerHour: 2, OpenApproval: 5, PermitTTL: time.Minute},
	}
}

func input(t failer, c gate.Case) []byte {
	b, err := gate.BuildInput(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// failer is a test, or one draw of a property.
type failer interface{ Fatal(args ...any) }

func TestGrantedIsGranted(t *testing.T) {
	if d := gate.Decide(granted(), load(t, policies.FS).Evaluate(t.Context(), input(t, granted()))); d.Verdict != gate.Auto {
		t.Fatalf("%s %+v: every test here would pass for nothing", d.Verdict, d.Reasons)
	}
}
