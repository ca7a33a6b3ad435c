// Package executetest holds what every executor must pass (Run), and a small
// real actuator with a journal of its own. The journal, never the sender's
// record, says how many effects there were.
package executetest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TTL is how long the permits of Permit are valid.
const TTL = 30 * time.Second

// Permit gets a permit for an action from the gate, minted at that time for
// the window that holds it. There is no other way to have one.
func Permit(t testing.TB, a spec.Action, p propose.Parameters, at time.Time) gate.Permit {
	t.Helper()
	d := gate.Decide(permitCase(t, a, p, at), gate.Ruling{
		Revision: "test", Auto: []gate.Rule{{Reason: "granted-by-the-test", Package: "setpoint.gate"}},
	})
	permit, ok := d.Permit()
	if !ok {
		t.Fatalf("the gate gave no permit for %s: %s, hold %t, %+v", a.Name, d.Verdict, d.Hold, d.Reasons)
	}
	return permit
}

// permitCase is a breach in which nothing stands in the way.
func permitCase(t testing.TB, a spec.Action, p propose.Parameters, at time.Time) gate.Case {
	t.Helper()
	const service = "checkout"
	key := gate.KeyOf(service, gate.WindowAt(at, 10*time.Minute))
	seen := propose.Live{} // what would be put back
	maps.Copy(seen, p)
	c := gate.Case{
		Service: spec.Service{Name: service, Remediation: spec.Remediation{
			Name: service, Service: service, Owner: "team-payments", Mode: spec.Auto, ActionWindow: 10 * time.Minute,
			Actions: []spec.Action{a},
			Budget:  spec.Budget{Period: 28 * 24 * time.Hour, Capacity: 10, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
		}},
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: a.Name, Parameters: p, Proposer: propose.Proposer{Kind: "rules"}},
		Key:      key,
		Limits:   gate.Limits{MaxMode: spec.Auto, EffectsPerHour: 100, EffectsPerServicePerHour: 100, OpenApproval: 5, PermitTTL: TTL},
		Facts: gate.Facts{
			Now: at, Since: at.Add(-time.Minute), Episode: "e1", FreshReads: 2, Ceiling: gate.Auto,
			Ownership: gate.OwnershipNone, Item: propose.Item{Action: a, Live: seen, LiveKnown: true},
			Balance: budget.Balance{Remaining: 10, Capacity: 10, GlobalRemaining: 10, GlobalCapacity: 10},
			Assessment: compare.Assessment{
				Service: service, At: at, State: compare.Breached, Reason: compare.Burning, SampleAt: at,
				Objectives: []compare.Objective{{
					ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.999,
					Judge: measure.Measurement{Good: 90, Total: 100, HasEvents: true, ErrorRatio: 0.1, SampleAt: at},
				}},
			},
		},
	}
	// What is not marked, or takes a person by its class, has its approval.
	if a.Mark() == spec.MarkUnmarked || a.Class == spec.ClassApproval || a.Reversal == spec.Irreversible {
		digest, err := gate.Digest(service, key, a, p)
		if err != nil {
			t.Fatal(fmt.Errorf("digest of %s: %w", a.Name, err))
		}
		c.Facts.ApprovedTicket, c.Facts.ApprovedDigest = "t1", digest
	}
	return c
}
