package regolint_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
)

const told = `# METADATA
# title: Scaling runs by itself
# description: Grants it.
# custom:
#   remedy: set class approval
`

func TestMetadata(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   string
		want   []string
	}{
		"All":     {"title, description and remedy", told + `auto contains "x" if input.proposal.undo`, nil},
		"None":    {"no words at all", `auto contains "x" if input.proposal.undo`, []string{`p.rego:3: rule "x" has no METADATA right above it; a verdict needs title, description and custom.remedy (metadata)`}},
		"Apart":   {"a blank line before the rule", told + "\n" + `auto contains "x" if input.proposal.undo`, nil},
		"NoTitle": {"the object of an approval", strings.Replace(told, "# title: Scaling runs by itself\n", "", 1) + `approval contains {"reason": "x", "quorum": 2} if input.proposal.undo`, []string{`p.rego:7: METADATA of rule "x" lacks title (metadata)`}},
		"Remedy":  {"a remedy that is no text", strings.Replace(told, "set class approval", "[1]", 1) + `deny contains "x" if input.proposal.undo`, []string{`p.rego:8: METADATA of rule "x" lacks custom.remedy (metadata)`}},
		"Two":     {"blank ones", "# METADATA\n# title: ' '\n# custom: {remedy: x}\nescalate contains \"x\" if input.proposal.undo", []string{`p.rego:6: METADATA of rule "x" lacks title and description (metadata)`}},
		"Helper":  {"a helper needs none", "helper if input.proposal.undo", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := found(t, regolint.CodeMetadata, bundle("p.rego", gatePackage+tc.rule+"\n"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	team := bundle("p.rego", "package setpoint.team.payments\n\ndeny contains \"x\" if input.proposal.undo\n",
		"l.rego", "package setpoint.lib.deny\n\nauto contains 1 if input.proposal.undo\n",
		"p_test.rego", "package setpoint.gate\n\nauto contains \"y\" if input.proposal.undo\n")
	if got := found(t, regolint.CodeMetadata, team); len(got) != 1 || !strings.HasPrefix(got[0], "p.rego:3: ") {
		t.Errorf("of a team's rules, a library's and a test's: %q", got)
	}
}

// Somebody who knows why absence is safe says so, and the words go when what
// they speak of has gone.
func TestExcuse(t *testing.T) {
	excuse := func(words, rule string) string {
		return strings.Replace(told, "custom:\n", "custom:\n#   absence: "+words+"\n", 1) + rule + "\n"
	}
	grant := `approval contains "x" if not helper`
	plain := "\nhelper if input.action.reversal == \"restore\"\n"
	cases := map[string]struct {
		reason string
		src    string
		want   string
	}{
		"Without":     {"a finding", told + grant + "\n" + plain, "not helper holds also when"},
		"OnGrant":     {"said at the grant", excuse("a person decides", grant) + plain, ""},
		"OnHelper":    {"said at the helper", told + grant + "\n" + "\n" + excuse("a person decides", `helper if input.action.reversal == "restore"`), ""},
		"OfOther":     {"another grant is not excused", excuse("a person decides", grant) + "\n" + told + `auto contains "y" if not helper` + "\n" + plain, "grant y: not helper"},
		"Empty":       {"without words", excuse("''", grant) + plain, "not helper holds also when"},
		"NoText":      {"no words", excuse("true", grant) + plain, "must say in words"},
		"Nothing":     {"where there is nothing to excuse", excuse("a person decides", `approval contains "x" if input.proposal.undo`), "excuses nothing"},
		"OnOtherRule": {"where no grant goes", told + grant + plain + "\n" + excuse("x", `other if input.action.class != "auto"`), "excuses nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(found(t, regolint.CodeAbsence, bundle("p.rego", gatePackage+tc.src)), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// What an excuse says too much is shown, and fails nothing.
func TestIdleExcuseWarns(t *testing.T) {
	src := gatePackage + strings.Replace(told, "custom:\n", "custom:\n#   absence: x\n", 1) + "deny contains \"x\" if input.proposal.undo\n"
	for _, f := range regolint.Check(context.Background(), bundle("p.rego", src), regolint.Options{}) {
		if f.Code == regolint.CodeAbsence && f.Severity != rego.SeverityWarning {
			t.Errorf("%s is of severity %s", f, f.Severity)
		}
	}
}

func TestNever(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		want   string
	}{
		"Word":           {"no such word", `input.action.class == "aut0"`, `p.rego:4: input.action.class is never "aut0": it is "auto", "approval", "escalate" or "unknown"; did you mean "auto"? (never)`},
		"WordTurned":     {"the other way round", `"aut0" == input.action.class`, `did you mean "auto"?`},
		"WordNotEqual":   {"never equal, so always different", `input.action.class != "aut0"`, `did you mean "auto"?`},
		"WordIn":         {"in a set", `input.action.class in {"auto", "approvals"}`, `did you mean "approval"?`},
		"WordElement":    {"of an element", `some d in input.dependencies; d.state == "breach"`, "input.dependencies[_].state is never \"breach\""},
		"WordVariable":   {"through a variable", `c := input.action.class; c == "aut0"`, `input.action.class is never "aut0"`},
		"WordFunction":   {"through a function", `classed(input.action.class)`, `p.rego:9: input.action.class is never "aut0"`},
		"WordRule":       {"through a rule", `class == "aut0"`, `input.action.class is never "aut0"`},
		"WordEvery":      {"in every", `every d in input.dependencies { d.state == "mett" }`, `did you mean "met"?`},
		"WordInside":     {"in a comprehension", `count([1 | input.action.class == "aut0"]) > 0`, "is never"},
		"WordFree":       {"free text", `input.action.name == "aut0"`, ""},
		"WordRight":      {"a word", `input.action.class == "auto"`, ""},
		"Unknown":        {"the word for unknown", `input.balance.remaining == "unknow"`, `input.balance.remaining is never "unknow": it is a number or "unknown"; did you mean "unknown"?`},
		"NumberText":     {"a number as text", `input.balance.remaining == "10"`, `is never "10"`},
		"OrderText":      {"a number against text", `input.tried[_].secondsAgo > "10"`, `p.rego:4: input.tried[_].secondsAgo is a number or "unknown" and "10" is "10": values of different kinds are ordered by their kind alone (never)`},
		"OrderTextOfIn":  {"text against a number", `input.now > 10`, "input.now is text"},
		"OrderCount":     {"a count against text", `count(input.tried) >= "3"`, "count(…) is a number"},
		"OrderData":      {"against data of another kind", `count(input.tried) < data.limits.most`, "data.limits.most is text"},
		"OrderDataFine":  {"against a number in data", `count(input.tried) < data.limits.few`, ""},
		"Order":          {"numbers", `is_number(input.balance.remaining); input.balance.remaining > 10`, ""},
		"Parameter":      {"of any kind", `input.proposal.parameters.x == "10"`, ""},
		"NameFunction":   {"a name that only the call shows", `stated(input.dependencies[_])`, "p.rego:11: input.dependencies[_].stat is not in the gate input; did you mean state? (input-reference)"},
		"NameFunctionOf": {"with what has it", `stated({"stat": "met"})`, ""},
		"NameEvery":      {"a name in every", `every d in input.dependencies { d.stat == "met" }`, "p.rego:4: input.dependencies[_].stat is not in the gate input; did you mean state?"},
		"NameDeep":       {"further down", `every o in input.state.objectives { every b in o.burnRates { b.shortRat == 1 } }`, "did you mean shortRate?"},
	}
	functions := "class := input.action.class\n\nclassed(c) if c == \"aut0\"\n\nstated(d) if d.stat == \"met\"\n"
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			src := gatePackage + "auto contains \"x\" if {\n\t" + tc.body + "\n}\n\n" + functions
			fsys := bundle("p.rego", src, "data.yaml", "limits: {most: \"3\", few: 3}\n")
			got := strings.Join(append(found(t, regolint.CodeNever, fsys), found(t, rego.CodeInput, fsys)...), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A test that puts a misspelt field in place of the input tests nothing.
func TestNamesInTests(t *testing.T) {
	fsys := bundle("p.rego", gatePackage+"deny contains \"x\" if input.proposal.undo\n",
		"p_test.rego", "package setpoint.gate_test\n\nimport data.setpoint.gate\n\ntest_x if \"x\" in gate.deny with input.proposl.undo as true\n\ntest_y if count(gate.deny) == 0 with input.proposal.undo as false\n")
	want := []string{"p_test.rego:5: input.proposl is not in the gate input; did you mean proposal? (input-reference)"}
	if diff := cmp.Diff(want, found(t, rego.CodeInput, fsys)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUntested(t *testing.T) {
	grants := gatePackage + "auto contains \"one\" if input.action.class == \"auto\"\n\napproval contains \"two\" if {\n\tinput.action.class == \"approval\"\n\tnot input.proposal.undo\n}\n\ndeny contains \"three\" if input.action.class == \"escalate\"\n"
	test := func(body string) string {
		return "package setpoint.gate_test\n\nimport data.setpoint.gate\n\n" + body
	}
	one := "test_one if \"one\" in gate.auto with input as {\"action\": {\"class\": \"auto\"}}\n"
	both := one + "\ntest_two if \"two\" in gate.approval with input as {\"action\": {\"class\": \"approval\"}, \"proposal\": {\"undo\": false}}\n"
	half := one + "\ntest_two if count(gate.approval) == 0 with input as {\"action\": {\"class\": \"approval\"}, \"proposal\": {\"undo\": true}}\n"
	looked := "test_one if count(gate.auto) == 0 with input as {\"action\": {\"class\": \"approval\"}}\n"
	cases := map[string]struct {
		reason string
		tests  string
		want   []string
	}{
		"None":   {"no test at all", "package setpoint.gate_test\n", []string{"p.rego:3: ", "p.rego:5: "}},
		"One":    {"one grant is reached", test(one), []string{"p.rego:5: "}},
		"Both":   {"both are", test(both), nil},
		"Half":   {"a rule that was looked at and did not grant", test(half), []string{"p.rego:5: "}},
		"Looked": {"also on one line", test(looked), []string{"p.rego:3: ", "p.rego:5: "}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := found(t, regolint.CodeUntested, bundle("p.rego", grants, "p_test.rego", tc.tests))
			if len(got) != len(tc.want) {
				t.Fatalf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			for i, w := range tc.want {
				if !strings.HasPrefix(got[i], w) {
					t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
				}
			}
		})
	}
}

func TestCheckReads(t *testing.T) {
	missing := os.DirFS(filepath.Join(t.TempDir(), "missing"))
	if fs := regolint.Check(context.Background(), missing, regolint.Options{}); len(fs) != 1 || fs[0].Code != rego.CodeRead || len(fs.Errors()) != 1 {
		t.Errorf("a folder that is missing: %v", fs)
	}
	// What does not load is not looked at further.
	fs := regolint.Check(context.Background(), bundle("p.rego", gatePackage+"auto contains \"x\" if input.acton.class == \"auto\"\n"), regolint.Options{})
	if len(fs) != 1 || fs[0].Code != rego.CodeInput || fs[0].Severity != rego.SeverityError {
		t.Errorf("a typo: %v", fs)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fs = regolint.Check(ctx, bundle("p.rego", gatePackage+told+"auto contains \"x\" if input.proposal.undo\n"), regolint.Options{})
	if len(fs.Failing()) == 0 {
		t.Errorf("tests that were not run pass: %v", fs)
	}
}
