package gate_test

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 11, 29, 3, 12, 0, 0, time.UTC)

func ptr(f float64) *float64 { return &f }

// scale is an action that nothing but a floor keeps from auto.
func scale() spec.Action {
	return spec.Action{
		Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:   spec.Target{URL: "http://scaler.internal/checkout?x=1", StatusURL: "http://scaler.internal/checkout", Secret: "scaler"},
		Settle:   time.Minute,
		Cooldown: 10 * time.Minute, Timeout: 10 * time.Second,
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: ptr(3), Maximum: ptr(20), MaximumFactor: 2}},
	}
}

// granted is a case in which every floor says yes.
func granted() gate.Case {
	a := scale()
	svc := spec.Service{
		Name: "checkout",
		Remediation: spec.Remediation{
			Name: "checkout", Service: "checkout", Owner: "team-payments", Mode: spec.Auto,
			ActionWindow: 10 * time.Minute, HoldFor: 5 * time.Minute, ApprovalFor: 15 * time.Minute,
			Approvers: []string{"@payments-oncall"}, DependsOn: []string{"payments-db"},
			Actions: []spec.Action{a},
			Budget:  spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
		},
	}
	judge := measure.Measurement{Good: 900, Total: 1000, HasEvents: true, ErrorRatio: 0.1, SampleAt: now.Add(-5 * time.Second)}
	return gate.Case{
		Service: svc,
		Proposal: propose.Proposal{
			Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)},
			Rationale: "traffic doubled", Proposer: propose.Proposer{Kind: "rules"},
		},
		Key: gate.KeyOf("checkout", gate.WindowAt(now, 10*time.Minute)),
		Facts: gate.Facts{
			Now: now, Since: now.Add(-4 * time.Minute), Episode: "e17", FreshReads: 2, Ceiling: gate.Auto,
			Assessment: compare.Assessment{
				Service: "checkout", At: now, State: compare.Breached, Reason: compare.Burning,
				Objectives: []compare.Objective{{
					ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99,
					Judge: judge, Period: judge, SampleAge: 5 * time.Second,
					Burns: []compare.Burn{{BurnRate: spec.DefaultBurnRates()[0], ShortRate: 20, LongRate: 16, Known: true, Burning: true}},
				}},
				SampleAt: now.Add(-5 * time.Second),
			},
			Dependencies: map[string]compare.State{"payments-db": compare.Met},
			Balance:      budget.Balance{Remaining: 3, Capacity: 3, GlobalRemaining: 10, GlobalCapacity: 10},
			Item:         propose.Item{Action: a, Live: propose.Live{"replicas": int64(4)}, LiveKnown: true},
			Ownership:    gate.OwnershipNone,
		},
		Limits: gate.Limits{
			MaxMode: spec.Auto, EffectsPerHour: 6, EffectsPerServicePerHour: 2, OpenApproval: 5,
			MinSpacing: 2 * time.Minute, PermitTTL: 30 * time.Second,
		},
	}
}

// allows is a ruling that grants.
func allows() gate.Ruling {
	return gate.Ruling{Revision: "r1", Auto: []gate.Rule{{Reason: "reversible", Package: "setpoint.gate", Title: "Reversible actions run", File: "class.rego", Line: 12}}}
}
