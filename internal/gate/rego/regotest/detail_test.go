package regotest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

const nights = gatePackage + `deny contains "night" if {
	not office
	input.service.name == "night"
}

deny contains "big" if input.proposal.parameters.replicas > 5

office if input.service.owner == "office"
`

// explained runs one test in Rego with everything that can be told of it.
func explained(t *testing.T, test string, o regotest.Options) regotest.Report {
	t.Helper()
	head := "package setpoint.gate_test\n\n\n\n"
	if strings.Contains(test, "gate.deny") {
		head = "package setpoint.gate_test\n\nimport data.setpoint.gate\n\n" // Strict: an unused one is an error.
	}
	b, err := rego.Read(bundle("p.rego", nights, "p_test.rego", head+test))
	if err != nil {
		t.Fatal(err)
	}
	o.Detail, o.Folder = true, "policies"
	r, err := regotest.Run(context.Background(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhyATestFails(t *testing.T) {
	name := func(v string) []regotest.Value { return []regotest.Value{{Name: "input.service.name", Value: v}} }
	replicas := func(v string) []regotest.Value {
		return []regotest.Value{{Name: "input.proposal.parameters.replicas", Value: v}}
	}
	for what, tc := range map[string]struct {
		reason  string
		test    string
		at      regotest.Expression
		stopped []regotest.Expression
	}{
		"Equality": {
			"the index leaves out a rule with an unequal value; it is what an author asks about",
			`test_x if "night" in gate.deny with input as {"service": {"name": "day", "owner": "o"}}`,
			regotest.Expression{File: "policies/p_test.rego", Line: 5, Text: `"night" in gate.deny with input as {"service": {"name": "day", "owner": "o"}}`},
			[]regotest.Expression{
				{File: "policies/p.rego", Line: 5, Text: `input.service.name == "night"`, Input: name(`"day"`)},
				{File: "policies/p.rego", Line: 8, Text: `input.proposal.parameters.replicas > 5`, Input: replicas("undefined")},
			},
		},
		"Helper": {
			"a condition on another rule stands for what that rule asks",
			`test_x if "night" in gate.deny with input as {"service": {"name": "night", "owner": "office"}, "proposal": {"parameters": {"replicas": 4}}}`,
			regotest.Expression{File: "policies/p_test.rego", Line: 5, Text: `"night" in gate.deny with input as {"service": {"name": "night", "owner": "office"}, "proposal": {"parameters": {"replicas": 4}}}`},
			[]regotest.Expression{
				{File: "policies/p.rego", Line: 4, Text: `not office`},
				{File: "policies/p.rego", Line: 8, Text: `input.proposal.parameters.replicas > 5`, Input: replicas("4")},
			},
		},
		"Earlier": {
			"what an earlier expression asked, which was true, is left out",
			"test_x if {\n\tcount(gate.deny) == 0 with input as {\"service\": {\"name\": \"day\", \"owner\": \"o\"}}\n\t1 == 2\n}",
			regotest.Expression{File: "policies/p_test.rego", Line: 7, Text: "1 == 2"},
			nil,
		},
		"Every": {
			"the expression inside says more",
			"test_x if {\n\tevery n in [1, 2, 3] {\n\t\tn <\n\t\t\t3\n\t}\n}",
			regotest.Expression{File: "policies/p_test.rego", Line: 7, Text: "n < 3"},
			nil,
		},
		"Input": {
			"a test that looks at the input shows it",
			"at_night if input.service.name == \"night\"\n\ntest_x if at_night with input.service.name as \"day\"",
			regotest.Expression{File: "policies/p_test.rego", Line: 7, Text: `at_night with input.service.name as "day"`, Input: name(`"day"`)},
			nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := explained(t, tc.test, regotest.Options{})
			if len(r.Tests) != 1 || r.Tests[0].Result != regotest.Failed || r.Tests[0].FailedAt == nil {
				t.Fatalf("%s: got %+v", tc.reason, r)
			}
			if diff := cmp.Diff(tc.at, *r.Tests[0].FailedAt); diff != "" {
				t.Errorf("%s: failed at (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.stopped, r.Tests[0].Stopped); diff != "" {
				t.Errorf("%s: stopped (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Each case of a data-driven test has its own expression and values.
func TestWhyACaseFails(t *testing.T) {
	r := explained(t, `test_cases[name][n] if {
	some name, n in {"b": 1, "a": 2, "c": 3}
	x := n * 2
	x == 4
	print("case", name)
}`, regotest.Options{Values: true})
	var got []string
	for _, one := range r.Tests {
		line := one.Name + " " + string(one.Result)
		if one.FailedAt != nil {
			line += "\n" + one.FailedAt.Values
		}
		got = append(got, line)
	}
	want := []string{
		"setpoint.gate_test.test_cases[a][2] passed",
		"setpoint.gate_test.test_cases[b][1] failed\nx == 4\n|\n2",
		"setpoint.gate_test.test_cases[c][3] failed\nx == 4\n|\n6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Tests[0].Output != "" || r.Tests[1].Output != "case a" {
		t.Errorf("what the test printed belongs to the first case that failed: %q, %q", r.Tests[0].Output, r.Tests[1].Output)
	}
}

func TestTraces(t *testing.T) {
	test := `test_x if "big" in gate.deny with input as {"proposal": {"parameters": {"replicas": 4}}}`
	fails := explained(t, test, regotest.Options{Trace: regotest.TraceFails}).Tests[0].Trace
	full := explained(t, test, regotest.Options{Trace: regotest.TraceFull, Values: true}).Tests[0].Trace
	for _, want := range []string{"p.rego:8", "Fail gt(", "Enter data.setpoint.gate.deny"} {
		if !strings.Contains(fails, want) || !strings.Contains(full, want) {
			t.Errorf("no %q in a trace:\n%s\n%s", want, fails, full)
		}
	}
	if strings.Contains(fails, "Eval ") || !strings.Contains(full, "Eval ") {
		t.Errorf("only the full trace has every step:\n%s\n%s", fails, full)
	}
	if !strings.Contains(full, ": 4}") {
		t.Errorf("no value of a variable:\n%s", full)
	}
}

// A test that goes through very much fails all the same, and is not kept in
// memory.
func TestLongTraceIsLeftOut(t *testing.T) {
	r := explained(t, `test_x if {
	some a in numbers.range(1, 200)
	some b in numbers.range(1, 200)
	a + b == 0
}`, regotest.Options{Trace: regotest.TraceFull})
	one := r.Tests[0]
	if one.Result != regotest.Failed || one.Trace != "" || !strings.Contains(one.Text, "too many to show") {
		t.Errorf("got %s %q, %d bytes of trace", one.Result, one.Text, len(one.Trace))
	}
}
