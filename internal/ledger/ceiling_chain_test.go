package ledger_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestDemotionRaisesNothing: a demotion lowers what holds at that moment, and is
// no person's word: what held below a raise with an end holds again after it,
// and what a person allowed at most still binds an undo.
func TestDemotionRaisesNothing(t *testing.T) {
	start := minute(0)
	demoted := func(to gate.Verdict) ledger.Ceiling {
		return ledger.Ceiling{Action: "scale", To: to, By: ledger.DemotedBy, Reason: "worsened twice"}
	}
	person := func(to gate.Verdict, until time.Duration) ledger.Ceiling {
		c := ledger.Ceiling{Action: "scale", To: to, By: "os:alice", Reason: "test"}
		if until > 0 {
			c.Until = start.Add(until)
		}
		return c
	}
	for name, tc := range map[string]struct {
		ceilings []ledger.Ceiling // one a minute
		at       time.Duration
		want     gate.Verdict
		people   gate.Verdict
	}{
		"A raise that ended is no floor": {
			[]ledger.Ceiling{demoted(gate.Escalate), person(gate.Auto, time.Hour), demoted(gate.Approval)},
			2 * time.Hour, gate.Escalate, gate.Auto,
		},
		"A raise that holds is lowered": {
			[]ledger.Ceiling{demoted(gate.Escalate), person(gate.Auto, time.Hour), demoted(gate.Approval)},
			30 * time.Minute, gate.Approval, gate.Auto,
		},
		"A person's limit binds an undo": {
			[]ledger.Ceiling{person(gate.Approval, 0), demoted(gate.Escalate)},
			time.Hour, gate.Escalate, gate.Approval,
		},
		"A person's limit with an end": {
			[]ledger.Ceiling{person(gate.Approval, time.Hour), demoted(gate.Escalate)},
			2 * time.Hour, gate.Escalate, gate.Auto,
		},
		"A person's word without an end replaces all": {
			[]ledger.Ceiling{demoted(gate.Approval), person(gate.Auto, 0)},
			time.Hour, gate.Auto, gate.Auto,
		},
		"Raised and demoted again and again": {
			[]ledger.Ceiling{
				demoted(gate.Deny), person(gate.Auto, time.Hour), demoted(gate.Approval), person(gate.Auto, 90*time.Minute), demoted(gate.Approval),
			},
			2 * time.Hour, gate.Deny, gate.Auto,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t)
			for i, c := range tc.ceilings {
				ch.add(at(i+1, ledger.Draft{Kind: ledger.KindCeiling, Service: "checkout", Body: c}))
			}
			now := start.Add(tc.at)
			if got := ch.state.Ceiling("checkout", "scale", now); got != tc.want {
				t.Errorf("the ceiling is %s, want %s", got, tc.want)
			}
			if c, ok := ch.state.Lowering("checkout", "scale", now); ok != (tc.want < gate.Auto) || ok && c.To != tc.want {
				t.Errorf("the ceiling is explained by %+v, want what makes it %s", c, tc.want)
			}
			if got := ch.state.CeilingByPeople("checkout", "scale", now); got != tc.people {
				t.Errorf("people's ceiling is %s, want %s", got, tc.people)
			}
		})
	}
}
