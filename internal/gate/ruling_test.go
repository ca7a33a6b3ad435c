package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

func TestRulingVerdict(t *testing.T) {
	rules := func(reasons ...string) (out []gate.Rule) {
		for _, r := range reasons {
			out = append(out, gate.Rule{Reason: r})
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		ruling gate.Ruling
		want   gate.Verdict
		by     []string
	}{
		"Nothing":    {"a policy that is silent grants nothing", gate.Ruling{}, gate.Deny, nil},
		"Auto":       {"a grant alone", gate.Ruling{Auto: rules("b", "a")}, gate.Auto, []string{"a", "b"}},
		"Approval":   {"a person beats acting alone", gate.Ruling{Auto: rules("a"), Approval: rules("p")}, gate.Approval, []string{"p"}},
		"Escalate":   {"handing over beats asking", gate.Ruling{Auto: rules("a"), Approval: rules("p"), Escalate: rules("e")}, gate.Escalate, []string{"e"}},
		"Deny":       {"refusing beats everything", gate.Ruling{Auto: rules("a"), Approval: rules("p"), Escalate: rules("e"), Deny: rules("d")}, gate.Deny, []string{"d"}},
		"Fault":      {"a fault grants nothing, whatever fired before it", gate.Ruling{Auto: rules("a"), Fault: "timeout: slow"}, gate.Deny, nil},
		"FaultyDeny": {"with a fault nobody knows which rules fired", gate.Ruling{Deny: rules("d"), Fault: "timeout: slow"}, gate.Deny, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.ruling.Verdict(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
			var by []string
			for _, r := range tc.ruling.Deciding() {
				by = append(by, r.Reason)
			}
			if diff := cmp.Diff(tc.by, by); diff != "" {
				t.Errorf("%s: deciding rules (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever else fires, the verdict is never looser than any rule that did.
func TestRulingIsNeverLooserThanItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) []gate.Rule { return make([]gate.Rule, rapid.IntRange(0, 2).Draw(t, name)) }
		r := gate.Ruling{Auto: n("auto"), Approval: n("approval"), Escalate: n("escalate"), Deny: n("deny")}
		for v, rules := range map[gate.Verdict][]gate.Rule{
			gate.Auto: r.Auto, gate.Approval: r.Approval, gate.Escalate: r.Escalate, gate.Deny: r.Deny,
		} {
			if got := r.Verdict(); len(rules) > 0 && got > v {
				t.Fatalf("%s, though a rule says %s", got, v)
			}
		}
	})
}
