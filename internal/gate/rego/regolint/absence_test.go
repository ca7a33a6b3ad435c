package regolint_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
)

const gatePackage = "package setpoint.gate\n\n"

// bundle makes a bundle of names and texts in turn.
func bundle(files ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return out
}

// found are the findings of one code, or an error of loading.
func found(t *testing.T, code string, fsys fstest.MapFS) []string {
	t.Helper()
	var out []string
	for _, f := range regolint.Check(context.Background(), fsys, regolint.Options{}) {
		if f.Severity == rego.SeverityError {
			t.Fatalf("does not load: %s", f)
		}
		if f.Code == code {
			out = append(out, f.String())
		}
	}
	return out
}

// helpers are what the grants of the table below may use.
const helpers = `
reversible if input.action.reversal in {"transient", "restore"}

undone if input.proposal.undo

undone_too if not undone_not

undone_not if not input.proposal.undo

classed if input.action.class in {"auto", "approval"}

enough if input.balance.remaining > 0

guarded if {
	is_number(input.balance.remaining)
	input.balance.remaining > 0
}

measured if is_number(input.balance.remaining)

measured_or_full if is_number(input.balance.remaining)

measured_or_full if input.balance.remaining == 3

remaining := input.balance.remaining

above(n, least) if n > least

state_of(d) := d.state

bad contains t if {
	some t in input.tried
	t.outcome == "worsened"
}

late contains t if {
	some t in input.tried
	t.secondsAgo < 600
}

named("checkout") if true

named("cart") if input.proposal.undo

classes("auto") if true

not_known := "unknown"

daytime if {
	[hour, _, _] := time.clock(time.parse_rfc3339_ns(input.now))
	hour >= 8
}

printed if {
	print(input.live.replicas)
	input.proposal.undo
}

default open := true

open := false if input.action.class == "escalate"

default closed := false

closed if input.action.class == "auto"

default limit := 3

limit := data.limits[input.service.name]

default cap := 3

cap := 2 if input.proposal.undo

fallen if input.action.class == "auto"
else if input.action.class == "approval"

otherwise := false if input.action.class == "escalate"
else := true if input.action.uses == "webhook.post"

unconditional := false if input.proposal.undo
else := true

loop_a if loop_b

loop_b if input.proposal.undo

deny contains "no" if input.action.class == "escalate"
`

func TestGrantsByAbsence(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		// want is part of the finding, "" for none.
		want string
	}{
		"Positive":              {"what must be there", `input.action.class == "auto"; reversible; guarded`, ""},
		"NotRequiredBoolean":    {"the schema requires a boolean", `not input.proposal.undo`, ""},
		"NotHelperOfIt":         {"through a helper too", `not undone`, ""},
		"NotNot":                {"twice", `not undone_too`, ""},
		"NotEnum":               {"unknown is none of the words", `not input.action.class == "approval"`, `p.rego:4: grant x: not input.action.class == "approval" holds also when input.action.class is "unknown"`},
		"NotEqual":              {"nor here", `input.action.class != "approval"`, `input.action.class is "unknown"`},
		"NotEqualKnown":         {"a condition beside it says that it is known", `classed; input.action.class != "approval"`, ""},
		"NotEnumKnown":          {"so for not", `input.action.class in {"auto", "approval"}; not input.action.class == "approval"`, ""},
		"NotEnumWithoutUnknown": {"the mode is always known", `not input.service.mode == "auto"`, ""},
		"NotUnknown":            {"this asks that it is known", `input.action.class != "unknown"`, ""},
		"NotIsUnknown":          {"so does this", `not input.action.class == "unknown"`, ""},
		"NotInUnknown":          {"and this", `not input.action.class in {"escalate", "unknown"}`, ""},
		"IsUnknown":             {"a grant on what is not known", `input.action.class == "unknown"`, `grants because input.action.class is "unknown"`},
		"InUnknown":             {"hidden in a set", `input.ownership in {"none", "unknown"}`, `grants because input.ownership is "unknown"`},
		"Truth":                 {"a number that stands alone is true, and so is unknown", `input.balance.remaining`, `input.balance.remaining is "unknown"`},
		"NotHelper":             {"auto if not deny", `not reversible`, `not reversible holds also when input.action.reversal is "unknown"`},
		"NotSet":                {"the rule sets", `not deny["no"]`, "rests on nothing being in deny"},
		"CountDeny":             {"by counting", `count(deny) == 0`, "count(deny) == 0 rests on nothing being in deny"},
		"CountDenyByPath":       {"by its whole name", `count(data.setpoint.gate.deny) < 1`, "rests on nothing being in deny"},
		"DenyIsEmpty":           {"by comparing", `deny == set()`, "rests on nothing being in deny"},
		"NotInDeny":             {"by looking", `not "no" in deny`, "rests on nothing being in deny"},
		"CountVariable":         {"through a variable", `n := count(deny); n == 0`, "rests on nothing being in deny"},
		"CountZeroOfList":       {"a list of the input is there", `count(input.tried) == 0`, ""},
		"CountChanges":          {"but that of changes also where nobody writes it", `count(input.changes) == 0`, "input.changes is empty because there is no change feed"},
		"EveryChange":           {"every holds for none", `every c in input.changes { c.what == "x" }`, "there is no change feed"},
		"CountSomeChanges":      {"nor is one of them there", `count([c | some c in input.changes; c.what == "release"]) == 0`, "there is no change feed"},
		"NotInChanges":          {"or in what they are", `not "release" in {c.what | some c in input.changes}`, "there is no change feed"},
		"CountSomeTried":        {"a list that is always there is none of these", `count([t | some t in input.tried; t.action == "scale"]) == 0`, ""},
		"NotEqualUpper":         {"unknown in capitals is no word either", `upper(input.action.reversal) != "IRREVERSIBLE"`, `input.action.reversal is "unknown"`},
		"NotEqualSprintf":       {"nor inside another text", `sprintf("%v", [input.action.reversal]) != "irreversible"`, `input.action.reversal is "unknown"`},
		"NotEqualList":          {"nor in a list", `[input.balance.remaining] != [0]`, `input.balance.remaining is "unknown"`},
		"NotEqualUpperKnown":    {"what is known is a word", `input.action.reversal != "unknown"; upper(input.action.reversal) != "IRREVERSIBLE"`, ""},
		"EqualUpper":            {"what must be a word is known", `upper(input.action.reversal) == "RESTORE"`, ""},
		"CountBad":              {"what may be unknown is in no set", `count(bad) == 0`, `input.tried[_].outcome is "unknown"`},
		"CountLate":             {"one of unknown numbers may not", `count(late) == 0`, `input.tried[_].secondsAgo is "unknown"`},
		"CountLateFew":          {"nor be small", `count(late) < 3`, `input.tried[_].secondsAgo is "unknown"`},
		"CountLateMany":         {"but large", `count(bad) > 3`, ""},
		"Comprehension":         {"a comprehension is a set too", `count([t | some t in input.tried; t.secondsAgo < 60]) == 0`, `input.tried[_].secondsAgo is "unknown"`},
		"NotComprehension":      {"the other way round", `not count({t | some t in input.tried; t.secondsAgo < 60}) > 0`, `input.tried[_].secondsAgo is "unknown"`},
		"SumSmall":              {"a small sum", `sum([1 | some t in input.tried; t.secondsAgo < 60]) <= 2`, `input.tried[_].secondsAgo is "unknown"`},
		"Difference":            {"what is taken away", `count(input.tried) - count(late) > 0`, `input.tried[_].secondsAgo is "unknown"`},
		"Above":                 {"unknown sorts above every number", `input.balance.remaining > 0`, `holds also when input.balance.remaining is "unknown", which sorts above every number: is_number(input.balance.remaining) comes first`},
		"AboveTurned":           {"written the other way", `0 < input.balance.remaining`, "sorts above every number"},
		"AboveOrEqual":          {"or equal", `input.balance.remaining >= 1`, "sorts above every number"},
		"Below":                 {"unknown is not below", `input.balance.remaining < 2`, ""},
		"AboveGuarded":          {"is_number beside it", `is_number(input.balance.remaining); input.balance.remaining > 0`, ""},
		"AboveGuardedByName":    {"of the same value", `is_number(input.balance.global); input.balance.remaining > 0`, "sorts above every number"},
		"AboveGuardedByWord":    {"not unknown is a number", `input.balance.remaining != "unknown"; input.balance.remaining > 0`, ""},
		"AboveGuardedByType":    {"by its type", `type_name(input.balance.remaining) == "number"; input.balance.remaining > 0`, ""},
		"AboveGuardedByHelper":  {"a helper may say so", `measured; input.balance.remaining > 0`, ""},
		"AboveGuardedAround":    {"also for the rules that are used", `measured; enough`, ""},
		"AboveGuardedHalf":      {"in one of two ways", `measured_or_full; input.balance.remaining > 0`, ""},
		"AboveHelper":           {"in a helper", `enough`, "p.rego:17: grant x: input.balance.remaining > 0 holds also when"},
		"AboveVariable":         {"through a variable", `n := input.balance.remaining; n > 0`, "input.balance.remaining is \"unknown\""},
		"AboveVariableGuarded":  {"guarded by another name", `n := input.balance.remaining; is_number(input.balance.remaining); n > 0`, ""},
		"AboveField":            {"through an object", `b := input.balance; b.remaining > 0`, "input.balance.remaining is \"unknown\""},
		"AboveRule":             {"through a rule's value", `remaining > 0`, "input.balance.remaining is \"unknown\""},
		"AboveRuleGuarded":      {"guarded", `is_number(remaining); remaining > 0`, ""},
		"AboveFunction":         {"through a function", `above(input.balance.remaining, 0)`, "input.balance.remaining is \"unknown\""},
		"AboveFunctionGuarded":  {"guarded by its caller", `is_number(input.balance.remaining); above(input.balance.remaining, 0)`, ""},
		"AboveFunctionNumber":   {"with what is a number", `above(count(input.tried), 0)`, ""},
		"AboveElement":          {"of a list", `some t in input.tried; t.before > 0.5`, "input.tried[_].before is \"unknown\""},
		"AboveElementGuarded":   {"guarded", `some t in input.tried; is_number(t.before); t.before > 0.5`, ""},
		"AboveIndex":            {"by index", `some i; input.tried[i].before > 0.5`, "input.tried[_].before is \"unknown\""},
		"AboveIndexGuarded":     {"guarded", `some i; is_number(input.tried[i].before); input.tried[i].before > 0.5`, ""},
		"AboveOtherIndex":       {"of another element", `some i, j; is_number(input.tried[i].before); input.tried[j].before > 0.5`, "input.tried[_].before is \"unknown\""},
		"AboveEvery":            {"in every", `every o in input.state.objectives { o.errorBudgetRemaining > 0 }`, "input.state.objectives[_].errorBudgetRemaining is \"unknown\""},
		"AboveEveryGuarded":     {"guarded", `every o in input.state.objectives { is_number(o.errorBudgetRemaining); o.errorBudgetRemaining > 0 }`, ""},
		"Parameter":             {"a parameter may be text", `input.proposal.parameters.replicas > 3`, "is text, which sorts above every number"},
		"ParameterBelow":        {"or a truth value", `input.proposal.parameters.replicas < 3`, "is true or false, which sorts below every number"},
		"ParameterGuarded":      {"or a number", `is_number(input.proposal.parameters.replicas); input.proposal.parameters.replicas < 3`, ""},
		"BothUnknown":           {"both unknown are equal", `input.balance.remaining == input.balance.capacity`, "is \"unknown\""},
		"TextOrder":             {"text by text", `input.now > "2026-01-01T00:00:00Z"`, ""},
		"IsText":                {"unknown is text", `is_string(input.balance.remaining)`, "is \"unknown\", which is text"},
		"NotIsNumber":           {"a test of kinds that fails", `not is_number(input.balance.remaining)`, "input.balance.remaining is \"unknown\""},
		"NotData":               {"data that may lack it", `not data.frozen[input.service.name]`, "data.frozen[_] is missing"},
		"NotDataGround":         {"data that is there", `input.proposal.undo; not data.flags.frozen`, ""},
		"NotDataCompare":        {"compared", `not data.frozen[input.service.name] == "x"`, "data.frozen[_] is missing"},
		"Data":                  {"data that must be there", `data.frozen[input.service.name]`, ""},
		"NotParameter":          {"a parameter that may be missing", `not input.proposal.parameters.force`, "input.proposal.parameters.force is missing"},
		"NotIndex":              {"an element that may be missing", `not input.tried[0].thisEpisode`, "is missing"},
		"NotLive":               {"state that may be unknown", `not input.live.replicas == 3`, "input.live.replicas is missing"},
		"NotSome":               {"an element of which nothing is unknown", `not "x" in {t.action | some t in input.tried}`, ""},
		"DefaultTrue":           {"a default that grants", `open`, "default open := true holds also when none of its conditions can be evaluated"},
		"NotDefaultTrue":        {"one that refuses", `not open`, ""},
		"DefaultFalse":          {"a default that refuses", `closed`, ""},
		"NotDefaultFalse":       {"turned", `not closed`, `not closed holds also when input.action.class is "unknown"`},
		"DefaultValue":          {"a default for missing data", `count(input.tried) < limit`, "default limit := 3 holds also when data.limits[_] is missing"},
		"DefaultValueSound":     {"a default for what is always known", `count(input.tried) < cap`, ""},
		"Else":                  {"both branches ask for something", `fallen`, ""},
		"ElseAfterUnknown":      {"an else that is reached by the unknown", `otherwise`, `input.action.class is "unknown"`},
		"ElseTrue":              {"an else without a condition", `unconditional`, "holds also when the conditions before it cannot be evaluated"},
		"ObjectGet":             {"a value for what is missing", `object.get(input.proposal.parameters, "replicas", 1) < 3`, "object.get gives its default then"},
		"ObjectGetEqual":        {"that is not the one asked for", `object.get(input.proposal.parameters, "mode", "none") == "safe"`, ""},
		"ObjectGetSame":         {"that is", `object.get(input.proposal.parameters, "mode", "safe") == "safe"`, "object.get gives its default then"},
		"ObjectGetFalse":        {"false grants nothing", `object.get(data.frozen, input.service.name, false)`, ""},
		"ObjectGetTrue":         {"true does", `object.get(data.frozen, input.service.name, true)`, "object.get gives its default then"},
		"NotObjectGetFalse":     {"and false turned", `not object.get(data.frozen, input.service.name, false)`, "object.get gives its default then"},
		"NotObjectGetTrue":      {"but not true turned", `not object.get(data.frozen, input.service.name, true)`, ""},
		"ObjectGetVariable":     {"through a variable", `n := object.get(input.proposal.parameters, "replicas", 1); n < 3`, "object.get gives its default then"},
		"With":                  {"another input", `reversible with input.action.reversal as "restore"`, "judges another input"},
		"Nothing":               {"a grant of everything", `true`, "grants whatever the input says"},
		"NothingOfTheInput":     {"by data alone", `data.flags.frozen == false`, "grants whatever the input says"},
		"SetAlone":              {"an empty set is true", `bad`, "true even when the set is empty"},
		"Membership":            {"what must be in a set", `some t in bad; t.action == input.action.name`, ""},
		"FunctionValue":         {"a value that a function gives", `some d in input.dependencies; not state_of(d) == "breached"`, `input.dependencies[_].state is "unknown"`},
		"NotLoop":               {"helpers of helpers", `not loop_a`, ""},
		"Parts":                 {"taken out of an object", `{"remaining": n, "capacity": _, "global": _} = input.balance; n > 0`, `input.balance.remaining is "unknown"`},
		"PartsGuarded":          {"guarded", `{"remaining": n, "capacity": _, "global": _} = input.balance; is_number(n); n > 0`, ""},
		"AnyField":              {"any field", `some _, n in input.balance; n > 0`, `is "unknown"`},
		"Max":                   {"the largest", `max([input.balance.remaining, 1]) > 0`, `input.balance.remaining is "unknown"`},
		"Listed":                {"one of a list", `some n in [input.balance.remaining, input.balance.global]; n > 0`, `input.balance.remaining is "unknown"`},
		"CalledZero":            {"nothing by another name", `zero := 0; count(deny) == zero`, "rests on nothing being in deny"},
		"CalledUnknown":         {"the word by another name", `input.action.class == not_known`, `grants because input.action.class is "unknown"`},
		"FreeText":              {"text that may be unknown among others", `input.ownership != "horizontal-pod-autoscaler"`, `input.ownership is "unknown"`},
		"FreeTextKnown":         {"text that is always known", `input.service.name != "cart"`, ""},
		"Clock":                 {"what a function takes apart", `not daytime`, ""},
		"Print":                 {"printing needs nothing", `not printed`, ""},
		"NotInOutcomes":         {"an element that may be unknown", `not "worsened" in {t.outcome | some t in input.tried}`, `input.tried[_].outcome is "unknown"`},
		"InOutcomes":            {"one that is there", `"worsened" in {t.outcome | some t in input.tried}`, ""},
		"Distinct":              {"unknown is another element", `count({t.outcome | some t in input.tried}) > 1`, `input.tried[_].outcome is "unknown"`},
		"Pattern":               {"a literal parameter", `classes(input.action.class)`, ""},
		"NotPattern":            {"is a condition", `not classes(input.action.class)`, `input.action.class is "unknown"`},
		"NotPatternKnown":       {"on what is known", `not named(input.service.name)`, ""},
		"CountTeam":             {"the sets of teams", `count(data.setpoint.team[input.service.owner].deny) == 0`, "rests on nothing being in"},
		"CountTeamByName":       {"by name", `count(data.setpoint.team.payments.deny) == 0`, "rests on nothing being in deny"},
		"Walk":                  {"what nobody can follow", `[_, v] = walk(input); not v.frozen`, "is missing"},
	}
	data := "limits: {checkout: 3}\nfrozen: {checkout: false}\nflags: {frozen: false}\n"
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			src := gatePackage + "auto contains \"x\" if {\n\t" + strings.ReplaceAll(tc.body, "; ", "\n\t") + "\n}\n"
			if strings.Contains(tc.body, "{ ") || strings.Contains(tc.body, "| some") {
				src = gatePackage + "auto contains \"x\" if {\n\t" + tc.body + "\n}\n"
			}
			// The line of a helper is counted from that of the grant.
			src += helpers
			got := found(t, regolint.CodeAbsence, bundle("p.rego", src, "data.yaml", data, "t.rego", "package setpoint.team.payments\n\ndeny contains \"never\" if false\n"))
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("%s: got %s", tc.reason, strings.Join(got, "\n"))
			case tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want):
				t.Errorf("%s: got %q, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
