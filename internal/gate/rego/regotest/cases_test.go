package regotest_test

import (
	"context"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

const sizes = gatePackage + `# METADATA
# title: Scaling runs by itself
auto contains "scale" if input.proposal.action == "scale"

approval contains {"reason": "big"} if input.proposal.parameters.replicas > 5

approval contains "old" if input.service.name == "old"

escalate contains "named" if input.service.name == "cart"

deny contains "odd" if regex.match(input.service.owner, "x")
`

const overlay = `package setpoint.team.payments

deny contains "payments-only" if input.service.name == "shop"
`

func runTable(t *testing.T, text string, o regotest.Options) regotest.Report {
	t.Helper()
	b, err := rego.Read(bundle("p.rego", sizes, "team.rego", overlay))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := table(text)
	if err != nil {
		t.Fatal(err)
	}
	o.Tables = []regotest.Table{cases}
	r, err := regotest.Run(context.Background(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCases(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		body   string
		result regotest.Result
		text   string
		fired  int
	}{
		"Auto":         {"a grant", "changes: {proposal: {parameters: {replicas: 5}}}\n    expect: {verdict: auto, reasons: [scale]}", regotest.Passed, "", 1},
		"OnlyVerdict":  {"without reasons the verdict counts", "expect: {verdict: approval}", regotest.Passed, "", 2},
		"Deciding":     {"milder rules made no verdict", "expect: {verdict: approval, reasons: [big]}", regotest.Passed, "", 2},
		"AnyOrder":     {"reasons are a set", "changes: {service: {name: old}}\n    expect: {verdict: approval, reasons: [old, big]}", regotest.Passed, "", 3},
		"Missing":      {"all of them", "changes: {service: {name: old}}\n    expect: {verdict: approval, reasons: [old]}", regotest.Failed, "want approval by old, got approval by big, old", 3},
		"Looser":       {"a verdict that is not the one", "expect: {verdict: auto, reasons: [scale]}", regotest.Failed, "want auto by scale, got approval by big", 2},
		"Stricter":     {"stricter is as wrong as looser", "expect: {verdict: deny}", regotest.Failed, "want deny, got approval by big", 2},
		"Misspelt":     {"a reason that no rule has", "expect: {verdict: approval, reasons: [bigg]}", regotest.Failed, `want approval by bigg, got approval by big; no rule has the reason "bigg", did you mean "big"?`, 2},
		"Silent":       {"nothing fires", "changes: {proposal: {action: restart, parameters: {replicas: 1}}}\n    expect: {verdict: deny, reasons: []}", regotest.Passed, "", 0},
		"NotSilent":    {"deny by a rule is not silence", "changes: {service: {owner: x}}\n    expect: {verdict: deny, reasons: []}", regotest.Failed, "want deny by no rule, got deny by odd", 3},
		"Escalate":     {"handing over", "changes: {service: {name: cart}}\n    expect: {verdict: escalate, reasons: [named]}", regotest.Passed, "", 3},
		"Team":         {"the rules of the owner's team count", "changes: {service: {name: shop, owner: payments}}\n    expect: {verdict: deny, reasons: [payments-only]}", regotest.Passed, "", 3},
		"AnotherTeam":  {"those of another do not", "changes: {service: {name: shop}}\n    expect: {verdict: approval}", regotest.Passed, "", 2},
		"Fault":        {"a policy that cannot be evaluated is not what a case wants", "changes: {service: {owner: \"(\"}}\n    expect: {verdict: deny}", regotest.Errored, "policy could not be evaluated: error: p.rego:13: eval_builtin_error: regex.match: error parsing regexp: missing closing ): `(`", 0},
		"FaultSilence": {"nor silence", "changes: {service: {owner: \"(\"}}\n    expect: {verdict: deny, reasons: []}", regotest.Errored, "policy could not be evaluated: error: p.rego:13: eval_builtin_error: regex.match: error parsing regexp: missing closing ): `(`", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := runTable(t, "cases:\n  - name: one\n    "+tc.body+"\n", regotest.Options{Folder: "policies"})
			if len(r.Tests) != 1 {
				t.Fatalf("%+v", r)
			}
			one := r.Tests[0]
			if one.Result != tc.result || one.Text != tc.text || len(one.Fired) != tc.fired {
				t.Errorf("%s: got %s %q with %d fired rules, want %s %q with %d", tc.reason, one.Result, one.Text, len(one.Fired), tc.result, tc.text, tc.fired)
			}
			if one.File != "cases.yaml" || one.Line != 2 || one.Name != "one" || one.Package != "" {
				t.Errorf("place and name: %+v", one)
			}
			for _, rule := range one.Fired {
				if !strings.HasPrefix(rule.File, "policies/") {
					t.Errorf("a person cannot open %s", rule.File)
				}
			}
			if bad := r.Failed == 1; bad != (tc.result != regotest.Passed) || r.OK() == bad {
				t.Errorf("counted as %d failed", r.Failed)
			}
		})
	}
}

// The rule that a case wants tells where it stopped; one that it does not want
// is no matter.
func TestCasesTellWhatTheyMissed(t *testing.T) {
	const text = `cases:
  - {name: by reason, changes: {proposal: {parameters: {replicas: 1}}}, expect: {verdict: approval, reasons: [big, old]}}
  - {name: by verdict, changes: {proposal: {parameters: {replicas: 1}}}, expect: {verdict: escalate}}
`
	for detail, want := range map[bool][]string{true: {"big", "old", "named"}, false: nil} {
		var got []string
		for _, one := range runTable(t, text, regotest.Options{Folder: "policies", Detail: detail}).Tests {
			for _, m := range one.Missed {
				got = append(got, m.Reason)
				if m.Fired || m.Stopped == nil || m.Stopped.File != "policies/p.rego" {
					t.Errorf("%+v", m)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("missed with detail %v (-want +got):\n%s", detail, diff)
		}
	}
}

func TestCasesAreChosenAndMeasured(t *testing.T) {
	const text = `cases:
  - {name: scale, changes: {proposal: {parameters: {replicas: 1}}}, expect: {verdict: auto}}
  - {name: team, changes: {service: {name: shop, owner: payments}}, expect: {verdict: deny}}
`
	uncovered := func(r regotest.Report) (out []string) {
		for _, l := range r.Uncovered {
			out = append(out, l.File)
		}
		return out
	}
	all := runTable(t, text, regotest.Options{})
	if len(all.Tests) != 2 || all.Coverage < 50 || all.Coverage >= 100 {
		t.Errorf("%d cases, coverage %.0f %%", len(all.Tests), all.Coverage)
	}
	if diff := cmp.Diff([]string{"p.rego", "p.rego", "p.rego"}, uncovered(all)); diff != "" {
		t.Errorf("not reached by both (-want +got):\n%s", diff)
	}
	one := runTable(t, text, regotest.Options{Run: regexp.MustCompile("^scale$")})
	if len(one.Tests) != 1 || one.Coverage <= 0 || one.Coverage >= all.Coverage {
		t.Errorf("%d cases, coverage %.0f %% after %.0f %%", len(one.Tests), one.Coverage, all.Coverage)
	}
	if diff := cmp.Diff([]string{"p.rego", "p.rego", "p.rego", "p.rego", "team.rego"}, uncovered(one)); diff != "" {
		t.Errorf("not reached by one (-want +got):\n%s", diff)
	}
}

func TestJUnit(t *testing.T) {
	r := regotest.Report{Tests: []regotest.Test{
		{Name: "at night", File: "cases.yaml", Line: 2, Result: regotest.Failed, Seconds: 0.25, Text: "want auto, got deny by night",
			Got: &regotest.Outcome{}, Fired: []gate.Rule{{Reason: "night", Title: "Nothing acts at night", File: "policies/p.rego", Line: 7}}},
		{Name: "setpoint.gate_test.test_a[one]", Package: "setpoint.gate_test", File: "policies/p_test.rego", Line: 3, Result: regotest.Passed, Seconds: 0.5, Output: "x\x00<y>"},
		{Name: "setpoint.gate_test.test_b", Package: "setpoint.gate_test", File: "policies/p_test.rego", Line: 9, Result: regotest.Errored, Text: "regex"},
		{Name: "setpoint.gate_test.todo_test_c", Package: "setpoint.gate_test", File: "policies/p_test.rego", Line: 11, Result: regotest.Skipped, Text: "todo"},
		{Name: "setpoint.gate_test.test_d", Package: "setpoint.gate_test", File: "policies/p_test.rego", Line: 12, Result: regotest.Failed, Text: "failed",
			FailedAt: &regotest.Expression{File: "policies/p_test.rego", Line: 13, Text: "1 == 2"}},
	}}
	got, err := r.JUnit("setpoint policy test")
	if err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="setpoint policy test" tests="5" failures="2" errors="1" skipped="1" time="0.750000">
  <testsuite name="cases.yaml" tests="1" failures="1" errors="0" skipped="0" time="0.250000">
    <testcase name="at night" classname="cases.yaml" file="cases.yaml" line="2" time="0.250000">
      <failure message="want auto, got deny by night">cases.yaml:2: want auto, got deny by night&#xA;fired    policies/p.rego:7: night: Nothing acts at night</failure>
    </testcase>
  </testsuite>
  <testsuite name="policies/p_test.rego" tests="4" failures="1" errors="1" skipped="1" time="0.500000">
    <testcase name="test_a[one]" classname="setpoint.gate_test" file="policies/p_test.rego" line="3" time="0.500000">
      <system-out>x�&lt;y&gt;</system-out>
    </testcase>
    <testcase name="test_b" classname="setpoint.gate_test" file="policies/p_test.rego" line="9" time="0.000000">
      <error message="regex">policies/p_test.rego:9: regex</error>
    </testcase>
    <testcase name="todo_test_c" classname="setpoint.gate_test" file="policies/p_test.rego" line="11" time="0.000000">
      <skipped message="todo"></skipped>
    </testcase>
    <testcase name="test_d" classname="setpoint.gate_test" file="policies/p_test.rego" line="12" time="0.000000">
      <failure message="false: 1 == 2">policies/p_test.rego:12: failed&#xA;false at policies/p_test.rego:13: 1 == 2</failure>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var any struct{ XMLName xml.Name }
	if err := xml.Unmarshal(got, &any); err != nil {
		t.Error(err)
	}
	if empty, err := (regotest.Report{}).JUnit("x"); err != nil || !strings.Contains(string(empty), `tests="0"`) {
		t.Errorf("a report without tests: %s (%v)", empty, err)
	}
}
