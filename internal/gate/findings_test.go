package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// deciding are the codes of the findings that made the verdict.
func deciding(fs []gate.Finding) []string {
	var out []string
	for _, f := range fs {
		if f.Deciding {
			out = append(out, f.Effect+" "+f.Reason.Code)
		}
	}
	return out
}

func TestFindings(t *testing.T) {
	tests := map[string]struct {
		reason string
		change []string
		ruling gate.Ruling
		want   []string
	}{
		"Auto":        {"the grant decides", nil, autos("a"), []string{"auto policy:a"}},
		"Floor":       {"a floor is stricter than the grant", []string{"class"}, autos("a"), []string{"approval class-approval"}},
		"Both":        {"rule and floor ask alike", []string{"class"}, people(asks("p", 1, "@x")), []string{"approval class-approval", "approval policy:p"}},
		"Balance":     {"the balance counts where the rest allows", []string{"balance"}, autos("a"), []string{"approval budget-spent"}},
		"BalanceIdle": {"and is silent where it does not", []string{"balance"}, denies("d"), []string{"deny policy:d"}},
		"Held":        {"what passes decides for now", []string{"freeze"}, autos("a"), []string{"hold freeze"}},
		"HeldSilent":  {"a silent policy beside it is asked again", []string{"freeze"}, gate.Ruling{}, []string{"hold freeze"}},
		"Final":       {"a deny is final whatever passes", []string{"freeze"}, denies("d"), []string{"deny policy:d"}},
		"Silent":      {"nothing grants", nil, gate.Ruling{}, []string{"silent undefined"}},
		"Escalate":    {"handed over whatever passes", []string{"freeze"}, hands("e"), []string{"escalate policy:e"}},
		"Fault":       {"a fault passes", nil, gate.Ruling{Fault: "timeout: 1s"}, []string{"hold policy-fault"}},
		"Nobody":      {"an approval that nobody can give", []string{"approvers"}, people(asks("p", 1)), []string{"escalate no-approvers"}},
		"Tickets":     {"too many questions wait", []string{"tickets"}, people(asks("p", 1)), []string{"hold open-approvals"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := granted()
			for _, change := range tc.change {
				tightenings[change](&c)
			}
			if diff := cmp.Diff(tc.want, deciding(gate.Prepare(c).Floors.Findings(tc.ruling))); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// Findings must never tell another story than the decision.
func TestPropertyFindingsAreTheReasons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		c.Proposal.Action = rapid.SampledFrom([]string{"scale", "scale", "scale", "none"}).Draw(t, "action")
		r := drawRuling(t)
		floors := gate.Prepare(c).Floors
		fs := floors.Findings(r)
		var got []gate.Reason
		for _, f := range fs {
			got = append(got, f.Reason)
		}
		if diff := cmp.Diff(floors.Join(r).Reasons, got); diff != "" {
			t.Fatal(diff)
		}
		if len(deciding(fs)) == 0 {
			t.Fatalf("nothing decided: %+v", fs)
		}
	})
}
