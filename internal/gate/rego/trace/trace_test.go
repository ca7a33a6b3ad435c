package trace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/trace"
)

// load makes a policy of a text whose lines are counted from its package line, 1.
func load(t testing.TB, more ...string) *rego.Policy {
	t.Helper()
	fsys := fstest.MapFS{"base.rego": &fstest.MapFile{Data: []byte("package setpoint.gate\n\nauto contains \"ok\" if input.action.class == \"auto\"\n")}}
	for i := 0; i < len(more); i += 2 {
		fsys[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	p, err := rego.Load(fsys, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// example is the example input with changes, object by object.
func example(t testing.TB, changes ...map[string]any) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(gate.ExampleInput(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		merge(doc, c)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func merge(into, changes map[string]any) {
	for name, v := range changes {
		was, object := into[name].(map[string]any)
		if now, both := v.(map[string]any); both && object {
			merge(was, now)
			continue
		}
		into[name] = v
	}
}

type obj = map[string]any

func tried(outcome string, secondsAgo float64) obj {
	return obj{
		"action": "scale", "parameters": obj{}, "secondsAgo": secondsAgo, "effect": "applied", "outcome": outcome,
		"before": 0.2, "after": 0.1, "thisEpisode": true,
	}
}

// lines are what the trace says of all rules but the one of the base.
func lines(t testing.TB, p *rego.Policy, input []byte) []string {
	t.Helper()
	rules, err := trace.Of(context.Background(), p, input)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rules {
		if r.Reason != "ok" {
			out = append(out, r.Lines()...)
		}
	}
	return out
}

func TestTrace(t *testing.T) {
	twice := obj{"tried": []any{tried("no-change", 60), tried("improved", 90)}}
	tests := map[string]struct {
		reason, text string
		change       obj
		want         []string
	}{
		"Fired": {"nothing else is said of a rule that fired", `deny contains "a" if input.action.class == "auto"`, nil,
			[]string{`deny a (p.rego:3) fired`}},
		"Equality": {"the value of the input", `deny contains "a" if input.action.class == "escalate"`, nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: input.action.class == "escalate" — input.action.class is "auto"`}},
		"Undefined": {"a parameter that is not there", "deny contains \"a\" if {\n\tinput.proposal.parameters.weight > 3\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:4: input.proposal.parameters.weight > 3 — input.proposal.parameters.weight is undefined`}},
		"Second": {"the first expression held", "deny contains \"a\" if {\n\tinput.action.class == \"auto\"\n\tinput.action.mark == \"dedup\"\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:5: input.action.mark == "dedup" — input.action.mark is "query"`}},
		"Chain": {"helpers down to the last", "deny contains \"a\" if one\n\none if two\n\ntwo if {\n\tthree\n}\n\nthree if input.action.name in {\"x\", \"y\"}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: one; one stopped at p.rego:5: two; two stopped at p.rego:8: three; ` +
				`three stopped at p.rego:11: input.action.name in {"x", "y"} — input.action.name is "scale"`}},
		"Alternatives": {"each of several definitions has its line",
			"deny contains \"a\" if odd\n\nodd if input.action.class == \"escalate\"\n\nodd if {\n\tinput.action.class == \"auto\"\n\tinput.action.name == \"x\"\n}", nil,
			[]string{
				`deny a (p.rego:3) stopped at p.rego:3: odd`,
				`    odd stopped at p.rego:5: input.action.class == "escalate" — input.action.class is "auto"`,
				`    odd stopped at p.rego:9: input.action.name == "x" — input.action.name is "scale"`,
			}},
		"Negation": {"what is negated is true", `deny contains "a" if not input.action.class == "auto"`, nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: not input.action.class == "auto" — input.action.class is "auto"`}},
		"NegatedCalls": {"calls within are told with their values", `deny contains "a" if not startswith(lower(input.action.name), "s")`, nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: not startswith(lower(input.action.name), "s") — lower(input.action.name) is "scale", input.action.name is "scale"`}},
		"NegatedHelper": {"the definition that held, of two",
			"deny contains \"a\" if not fine\n\nfine if input.action.class == \"escalate\"\n\nfine if input.action.name == \"scale\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: not fine; fine (p.rego:7) is true, as input.action.name is "scale"`}},
		"NegatedUndefined": {"what is not there makes a negation true", `deny contains "a" if not input.proposal.parameters.weight`, nil,
			[]string{`deny a (p.rego:3) fired`}},
		"Every": {"the expression inside that was false", "deny contains \"a\" if {\n\tevery o in input.state.objectives {\n\t\to.target > 0.5\n\t\to.state == \"met\"\n\t}\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:6: o.state == "met" — o.state is "breached"`}},
		"EveryHelper": {"and the rule that it asks", "deny contains \"a\" if {\n\tevery o in input.state.objectives {\n\t\tfine(o.target)\n\t}\n}\n\nfine(n) if n > 0.999", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:5: fine(o.target) — o.target is 0.99; fine stopped at p.rego:9: n > 0.999 — n is 0.99`}},
		"EveryOfNothing": {"true of an empty list", "deny contains \"a\" if {\n\tevery t in input.tried { t.outcome == \"worsened\" }\n\tinput.action.name == \"x\"\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:5: input.action.name == "x" — input.action.name is "scale"`}},
		"Some": {"the first of the values that failed, and how many more", "deny contains \"a\" if {\n\tsome t in input.tried\n\tt.outcome == \"worsened\"\n}", twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:5: t.outcome == "worsened" — t.outcome is "no-change" (and 1 more like it)`}},
		"SomeFurthest": {"the value that got furthest", "deny contains \"a\" if {\n\tsome t in input.tried\n\tt.outcome == \"improved\"\n\tt.secondsAgo < 10\n}", twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:6: t.secondsAgo < 10 — t.secondsAgo is 90`}},
		"SomeOfNothing": {"an empty list", "deny contains \"a\" if {\n\tsome t in input.tried\n\tt.outcome == \"worsened\"\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:4: some t in input.tried — input.tried is []`}},
		"Wildcard": {"all values that were looked at", `deny contains "a" if input.tried[_].outcome == "worsened"`, twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: input.tried[_].outcome == "worsened" — input.tried[_].outcome is "no-change" or "improved"`}},
		"Index": {"a variable with a value", "deny contains \"a\" if {\n\tsome i\n\tinput.tried[i].outcome == \"improved\"\n\tinput.tried[i].secondsAgo < 10\n}", twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:6: input.tried[i].secondsAgo < 10 — input.tried[i].secondsAgo is 90`}},
		"Count": {"a comprehension as a whole", `deny contains "a" if count([t | some t in input.tried; t.outcome == "worsened"]) > 0`, twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: count([t | some t in input.tried; t.outcome == "worsened"]) > 0 — count([t | some t in input.tried; t.outcome == "worsened"]) is 0`}},
		"Member": {"a set of helpers", "deny contains \"a\" if \"big\" in traits\n\ntraits contains \"small\" if input.action.class == \"auto\"\n\ntraits contains \"big\" if input.action.class == \"escalate\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: "big" in traits — traits is {"small"}`}},
		"MemberByKey": {"the rule that would add it", "deny contains \"a\" if traits.big\n\ntraits contains \"small\" if input.action.class == \"auto\"\n\ntraits contains \"big\" if input.action.class == \"escalate\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: traits.big; traits stopped at p.rego:7: input.action.class == "escalate" — input.action.class is "auto"`}},
		"Function": {"the value that it gave", "deny contains \"a\" if limit(input.action.name) > 5\n\nlimit(\"scale\") := 3\n\nlimit(\"restart\") := 7", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: limit(input.action.name) > 5 — limit(input.action.name) is 3, input.action.name is "scale"`}},
		"FunctionOfOthers": {"no definition fits", "deny contains \"a\" if limit(input.service.name) > 5\n\nlimit(\"scale\") := 3", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: limit(input.service.name) > 5 — input.service.name is "checkout"; limit (p.rego:5) is for other arguments`}},
		"Default": {"a default says nothing of why", "deny contains \"a\" if risky\n\ndefault risky := false\n\nrisky if input.action.class == \"escalate\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: risky; risky stopped at p.rego:7: input.action.class == "escalate" — input.action.class is "auto"`}},
		"False": {"a rule that is false has a value", "deny contains \"a\" if risky\n\nrisky := input.action.class == \"escalate\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: risky; risky (p.rego:5) is false, as input.action.class is "auto"`}},
		"Else": {"each branch, to the one that held", "deny contains \"a\" if kind == \"x\"\n\nkind := \"x\" if input.action.class == \"escalate\"\n\nelse := \"y\" if input.action.class == \"auto\"\n\nelse := \"z\"", nil,
			[]string{
				`deny a (p.rego:3) stopped at p.rego:3: kind == "x"`,
				`    kind stopped at p.rego:5: input.action.class == "escalate" — input.action.class is "auto"`,
				`    kind (p.rego:7) is "y", as input.action.class is "auto"`,
			}},
		"ElseStopped": {"the source of an else is its condition", "deny contains \"a\" if kind\n\nkind if input.action.class == \"approval\"\n\nelse if input.action.class == \"escalate\"", nil,
			[]string{
				`deny a (p.rego:3) stopped at p.rego:3: kind`,
				`    kind stopped at p.rego:5: input.action.class == "approval" — input.action.class is "auto"`,
				`    kind stopped at p.rego:7: input.action.class == "escalate" — input.action.class is "auto"`,
			}},
		"With": {"the input as it was changed", "deny contains \"a\" if late with input.now as \"2026-01-01T00:00:00Z\"\n\nlate if startswith(input.now, \"2027\")", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: late with input.now as "2026-01-01T00:00:00Z"; late stopped at p.rego:5: startswith(input.now, "2027") — input.now is "2026-01-01T00:00:00Z"`}},
		"WithEqual": {"where it is compared as a whole too", "deny contains \"a\" if late with input.now as \"2026\"\n\nlate if input.now == \"2027\"", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: late with input.now as "2026"; late stopped at p.rego:5: input.now == "2027" — input.now is "2026"`}},
		"Head": {"what the rule would add is undefined", `approval contains {"reason": "a", "approvers": input.live.people} if input.action.class == "auto"`, nil,
			[]string{`approval a (p.rego:3) stopped at p.rego:3: {"reason": "a", "approvers": input.live.people} — input.live.people is undefined`}},
		"Assigned": {"a local value", "deny contains \"a\" if {\n\tn := input.balance.remaining * 2\n\tn > 10\n}", nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:5: n > 10 — n is 6`}},
		"Arithmetic": {"what was compared, and of what it was made", `deny contains "a" if input.balance.remaining + 1 > input.balance.global`, nil,
			[]string{`deny a (p.rego:3) stopped at p.rego:3: input.balance.remaining + 1 > input.balance.global — input.balance.remaining + 1 is 4, input.balance.global is 10, input.balance.remaining is 3`}},
		"SeveralLines": {"a source of several lines is one", "deny contains \"a\" if {\n\tcount([t |\n\t\tsome t in input.tried\n\t]) > 5\n}", twice,
			[]string{`deny a (p.rego:3) stopped at p.rego:4: count([t | some t in input.tried ]) > 5 — count([t | some t in input.tried ]) is 2`}},
		"AskedTwice": {"what was answered before is answered again", "deny contains \"a\" if slow\n\ndeny contains \"b\" if {\n\tinput.action.class == \"auto\"\n\tslow\n}\n\nslow if input.action.name == \"x\"", nil,
			[]string{
				`deny a (p.rego:3) stopped at p.rego:3: slow; slow stopped at p.rego:10: input.action.name == "x" — input.action.name is "scale"`,
				`deny b (p.rego:5) stopped at p.rego:7: slow; slow stopped at p.rego:10: input.action.name == "x" — input.action.name is "scale"`,
			}},
		"OfAnotherSet": {"a set that is asked with a key is not stopped by it",
			"deny contains \"a\" if input.action.class == \"approval\"\n\ndeny contains \"d\" if input.action.name == \"scale\"\n\nescalate contains \"b\" if deny.a", nil,
			[]string{
				`deny a (p.rego:3) stopped at p.rego:3: input.action.class == "approval" — input.action.class is "auto"`,
				`deny d (p.rego:5) fired`,
				`escalate b (p.rego:7) stopped at p.rego:7: deny.a; deny stopped at p.rego:3: input.action.class == "approval" — input.action.class is "auto"`,
			}},
		"Failed": {"the engine gave up on one, the others are told",
			"deny contains \"a\" if odd\n\nodd if to_number(input.action.name) > 3\n\ndeny contains \"b\" if input.action.class == \"approval\"", nil,
			[]string{
				`deny a (p.rego:3) could not be evaluated: p.rego:5: to_number: strconv.ParseFloat: parsing "scale": invalid syntax`,
				`deny b (p.rego:7) stopped at p.rego:7: input.action.class == "approval" — input.action.class is "auto"`,
			}},
		"LeftOut": {"what would fail, and is left out by the index", "deny contains \"a\" if {\n\tto_number(input.action.name) > 3\n\tinput.action.class == \"approval\"\n}\n\ndeny contains \"b\" if input.action.name == \"x\"", nil,
			[]string{
				`deny a (p.rego:3) not asked: the index over rules left it out, because input.action.class is "auto"`,
				`deny b (p.rego:8) stopped at p.rego:8: input.action.name == "x" — input.action.name is "scale"`,
			}},
		"Conflict": {"two values for one rule end all", "deny contains \"a\" if n > 3\n\nn := 1 if input.action.class == \"auto\"\n\nn := 2 if input.action.name == \"scale\"\n\nescalate contains \"b\" if input.action.name == \"x\"", nil,
			[]string{
				`deny a (p.rego:3) could not be evaluated: p.rego:7: rule data.setpoint.gate.n produced conflicting values: 1 at p.rego:5 2 at p.rego:7`,
				`escalate b (p.rego:9) not asked: the policy failed before`,
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := load(t, "p.rego", "package setpoint.gate\n\n"+tc.text+"\n")
			if diff := cmp.Diff(tc.want, lines(t, p, example(t, tc.change))); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestTraceData(t *testing.T) {
	p := load(t, "p.rego", "package setpoint.gate\n\ndeny contains \"a\" if {\n\tsome name in data.limits.names\n\tinput.balance.remaining > data.limits.most\n\tname == input.action.name\n}\n",
		"data.yaml", "limits: {most: 2, names: [x, y]}\n")
	want := []string{`deny a (p.rego:3) stopped at p.rego:6: name == input.action.name — name is "x", input.action.name is "scale" (and 1 more like it)`}
	if diff := cmp.Diff(want, lines(t, p, example(t))); diff != "" {
		t.Error(diff)
	}
	want = []string{`deny a (p.rego:3) stopped at p.rego:5: input.balance.remaining > data.limits.most — input.balance.remaining is 1, data.limits.most is 2 (and 1 more like it)`}
	if diff := cmp.Diff(want, lines(t, p, example(t, obj{"balance": obj{"remaining": 1}}))); diff != "" {
		t.Error(diff)
	}
}

func TestTraceTeamsAndLibraries(t *testing.T) {
	p := load(t,
		"lib.rego", "package setpoint.lib.hours\n\nlate(now) if startswith(now, \"2027\")\n",
		"team.rego", "package setpoint.team[\"team-payments\"]\n\nimport data.setpoint.lib.hours\n\ndeny contains \"theirs\" if hours.late(input.now)\n",
		"others.rego", "package setpoint.team.search\n\ndeny contains \"others\" if input.action.class == \"auto\"\n")
	want := []string{
		`deny others (others.rego:3) not asked: it counts for the services of owner search alone`,
		`deny theirs (team.rego:5) stopped at team.rego:5: hours.late(input.now) — input.now is "2026-11-25T10:12:00Z"; ` +
			`setpoint.lib.hours.late stopped at lib.rego:3: startswith(now, "2027") — now is "2026-11-25T10:12:00Z"`,
	}
	if diff := cmp.Diff(want, lines(t, p, example(t))); diff != "" {
		t.Error(diff)
	}
	if got := lines(t, p, example(t, obj{"service": obj{"owner": "search"}})); got[0] != `deny others (others.rego:3) fired` {
		t.Error(got)
	}
}

// A policy that asks one rule again and again has too many answers to keep; the
// cache of the engine makes them few.
func TestTraceOfMuchWork(t *testing.T) {
	loop := "package setpoint.gate\n\ndeny contains \"a\" if {\n\tsome i in numbers.range(1, 200)\n\tsome j in numbers.range(1, 150)\n\t%s\n}\n\n" +
		"slow if input.action.class == \"auto\"\n\nof(n) if n < 0\n"
	p := load(t, "p.rego", fmt.Sprintf(loop, "slow\n\ti < -j"))
	want := []string{`deny a (p.rego:3) stopped at p.rego:7: i < -j — i is 1, -j is -1 (and 29999 more like it)`}
	if diff := cmp.Diff(want, lines(t, p, example(t))); diff != "" {
		t.Error(diff)
	}
	p = load(t, "p.rego", fmt.Sprintf(loop, "of(i + j)"))
	if _, err := trace.Of(context.Background(), p, example(t)); err == nil || !strings.Contains(err.Error(), "more steps than a trace holds") {
		t.Errorf("%v", err)
	}
}

func TestTraceEnds(t *testing.T) {
	p := load(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := trace.Of(ctx, p, example(t)); err == nil {
		t.Error("a trace although it was stopped")
	}
	if _, err := trace.Of(context.Background(), p, []byte(`{}`)); err == nil {
		t.Error("a trace of no input")
	}
	if _, err := trace.Full(context.Background(), p, []byte(`{}`)); err == nil {
		t.Error("a full trace of no input")
	}
}

func TestFull(t *testing.T) {
	p := load(t, "p.rego", "package setpoint.gate\n\ndeny contains \"a\" if odd\n\nodd if to_number(input.action.name) > 3\n")
	text, err := trace.Full(context.Background(), p, example(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"p.rego:5", "| | Fail to_number", `base.rego:3`, "invalid syntax\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p = load(t, "p.rego", "package setpoint.gate\n\ndeny contains \"a\" if {\n\tsome i in numbers.range(1, 100)\n\tsome j in numbers.range(1, 100)\n\ti + j < 0\n}\n")
	if text, err = trace.Full(context.Background(), p, example(t)); err != nil || !strings.HasSuffix(text, "… there are more than 20000 steps\n") {
		t.Errorf("%v, %d bytes", err, len(text))
	}
}

// Of every rule the trace says what the ruling says, and why where it did not
// fire.
func TestPropertyTraceIsTheRuling(t *testing.T) {
	shipped, err := rego.Load(os.DirFS("../../../../policies"), rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		input := drawInput(t)
		ruling := shipped.Evaluate(context.Background(), input)
		if ruling.Fault != "" {
			t.Fatal(ruling.Fault)
		}
		rules, err := trace.Of(context.Background(), shipped, input)
		if err != nil {
			t.Fatal(err)
		}
		var fired, want []string
		for _, s := range ruling.Said() {
			want = append(want, s.Set.String()+" "+s.Rule.Reason)
		}
		said := map[string]bool{}
		for _, r := range rules {
			if r.Fired {
				said[r.Set+" "+r.Reason] = true
			}
			if r.Fired == (r.Stopped != nil) || r.Note != "" {
				t.Fatalf("%+v", r)
			}
			if s := r.Stopped; s != nil && (s.Line < r.Line || s.File != r.File || s.Expression == "") {
				t.Fatalf("%+v %+v", r, s)
			}
		}
		for _, w := range want {
			if said[w] {
				fired = append(fired, w)
			}
		}
		if diff := cmp.Diff(want, fired); diff != "" || len(said) != len(want) {
			t.Fatalf("%v %s", said, diff)
		}
	})
}

func drawInput(t *rapid.T) []byte {
	pick := func(label string, of ...any) any { return rapid.SampledFrom(of).Draw(t, label) }
	var doc obj
	if err := json.Unmarshal(gate.ExampleInput(), &doc); err != nil {
		t.Fatal(err)
	}
	var tries, changes []any
	for range rapid.IntRange(0, 3).Draw(t, "tried") {
		tries = append(tries, tried(pick("outcome", "no-change", "worsened", "improved").(string), 60))
	}
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		changes = append(changes, obj{"secondsAgo": pick("age", 10, 10000, "unknown"), "what": "deploy", "version": "1"})
	}
	merge(doc, obj{
		"action":    obj{"class": pick("class", "auto", "approval", "escalate", "unknown"), "reversal": pick("reversal", "restore", "transient", "irreversible", "unknown")},
		"balance":   obj{"remaining": pick("remaining", 3, 0, "unknown")},
		"live":      pick("live", "unknown", obj{"replicas": 4}, obj{"replicas": 1}, obj{"weight": "x"}),
		"ownership": pick("ownership", "none", "unknown", "hpa"),
		"proposal":  obj{"undo": pick("undo", true, false), "proposer": obj{"kind": pick("kind", "rules", "undo", "openai")}},
		"state":     obj{"state": pick("state", "breached", "met", "unknown"), "reason": pick("reason", "burning", "recovering")},
		"documents": obj{"changedSeconds": pick("documents", "unknown", 20)},
	})
	if tries != nil {
		doc["tried"] = tries
	}
	if changes != nil {
		doc["changes"] = changes
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
