package regolint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
)

var variables = regexp.MustCompile(`\b([tdnb])\b`)

// conditions are what the policies of the property test are made of: each is
// true for some inputs.
var conditions = []string{
	`input.proposal.undo`, `input.action.class == "auto"`, `input.action.class != "escalate"`, `input.action.class in {"auto", "approval"}`,
	`input.action.reversal == "restore"`, `input.service.mode != "observe"`, `input.balance.remaining > 1`, `input.balance.remaining < 2`,
	`1 <= input.balance.global`, `is_number(input.balance.remaining)`, `is_number(input.balance.global)`, `input.balance.remaining != "unknown"`,
	`input.balance.remaining >= input.balance.global`, `input.balance.remaining == input.balance.global`, `input.proposal.parameters.force`,
	`input.proposal.parameters.replicas > 3`, `is_number(input.proposal.parameters.replicas)`, `input.live.replicas == 4`, `input.live != "unknown"`,
	`input.ownership == "none"`, `input.ownership != "hpa"`, `count(input.tried) < 2`, `some t in input.tried; t.outcome == "worsened"`,
	`some t in input.tried; t.secondsAgo > 60`, `some t in input.tried; is_number(t.secondsAgo); t.secondsAgo > 60`,
	`count([t | some t in input.tried; t.secondsAgo < 60]) == 0`, `count({t | some t in input.tried; t.outcome == "worsened"}) < 1`,
	`count([t | some t in input.tried; t.action == "scale"]) == 1`, `every t in input.tried { t.secondsAgo > 60 }`,
	`every t in input.tried { t.outcome != "worsened" }`, `every d in input.dependencies { d.state == "met" }`,
	`some d in input.dependencies; d.state != "breached"`, `object.get(input.proposal.parameters, "force", false)`,
	`object.get(input.proposal.parameters, "replicas", 9) > 3`, `object.get(input.proposal.parameters, "mode", "x") == "safe"`,
	`data.canary[input.service.name]`, `n := input.balance.remaining; n > 1`, `b := input.balance; is_number(b.remaining); b.remaining > 1`,
	`max([input.balance.remaining, input.balance.global]) > 1`, `sum([t.before | some t in input.tried; is_number(t.before)]) < 1`,
	`count(input.tried) - count({t | some t in input.tried; t.secondsAgo < 60}) > 0`, `above(input.balance.remaining, 1)`,
	`known(input.balance.remaining)`, `state_of(input.dependencies[_]) == "met"`, `startswith(input.ownership, "n")`, `"worsened" in outcomes`,
	`count(outcomes) == 0`, `late[_].action == "scale"`, `count(late) < 1`, `limit > 1`, `limit < 3`,
}

const conditionHelpers = `
above(n, least) if n > least

known(n) if is_number(n)

state_of(d) := d.state

outcomes contains t.outcome if some t in input.tried

late contains t if {
	some t in input.tried
	t.secondsAgo < 60
}

default limit := 2

limit := 1 if input.balance.remaining > 1
`

// policyOf draws a policy of helpers and one grant, each with some conditions,
// turned around or not.
func policyOf(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(gatePackage)
	body := func(below int, label string) string {
		var lines []string
		for i := range rapid.IntRange(1, 3).Draw(t, label) {
			c := rapid.SampledFrom(conditions).Draw(t, fmt.Sprint(label, i))
			if below > 0 && rapid.Bool().Draw(t, fmt.Sprint(label, i, " helper")) {
				c = fmt.Sprintf("h%d", rapid.IntRange(0, below-1).Draw(t, fmt.Sprint(label, i, " which")))
			}
			// Each condition has variables of its own.
			c = variables.ReplaceAllString(c, fmt.Sprint("${1}", i))
			single := !strings.Contains(c, "; ") || strings.HasPrefix(c, "count(") || strings.HasPrefix(c, "sum(")
			if single && !strings.HasPrefix(c, "some ") && !strings.HasPrefix(c, "every ") && rapid.Bool().Draw(t, fmt.Sprint(label, i, " not")) {
				c = "not " + c
			}
			lines = append(lines, c)
		}
		return strings.Join(lines, "\n\t")
	}
	helpers := rapid.IntRange(0, 3).Draw(t, "helpers")
	for i := range helpers {
		fmt.Fprintf(&b, "h%d if {\n\t%s\n}\n\n", i, body(i, fmt.Sprint("h", i)))
		if rapid.Bool().Draw(t, fmt.Sprint("or", i)) {
			fmt.Fprintf(&b, "h%d if {\n\t%s\n}\n\n", i, body(i, fmt.Sprint("o", i)))
		}
	}
	fmt.Fprintf(&b, "auto contains \"x\" if {\n\t%s\n\tinput.version != \"\"\n}\n", body(helpers, "grant"))
	return b.String() + conditionHelpers
}

// inputOf draws an input in which everything is known.
func inputOf(t *rapid.T) map[string]any {
	var doc map[string]any
	if err := json.Unmarshal(gate.ExampleInput(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(name string) map[string]any { return doc[name].(map[string]any) }
	number := rapid.SampledFrom([]any{0.0, 1.0, 2.0, 90.0})
	at("proposal")["undo"] = rapid.Bool().Draw(t, "undo")
	at("proposal")["parameters"] = map[string]any{
		"replicas": rapid.SampledFrom([]any{2.0, 6.0}).Draw(t, "replicas"), "force": rapid.Bool().Draw(t, "force"),
		"mode": rapid.SampledFrom([]any{"safe", "x"}).Draw(t, "mode"),
	}
	at("action")["class"] = rapid.SampledFrom([]any{"auto", "approval", "escalate"}).Draw(t, "class")
	at("action")["reversal"] = rapid.SampledFrom([]any{"restore", "irreversible"}).Draw(t, "reversal")
	at("balance")["remaining"], at("balance")["global"] = number.Draw(t, "remaining"), number.Draw(t, "global")
	doc["live"] = map[string]any{"replicas": rapid.SampledFrom([]any{4.0, 5.0}).Draw(t, "live")}
	doc["ownership"] = rapid.SampledFrom([]any{"none", "hpa"}).Draw(t, "ownership")
	doc["dependencies"] = []any{map[string]any{"service": "db", "state": rapid.SampledFrom([]any{"met", "breached"}).Draw(t, "state")}}
	tried := []any{}
	for i := range rapid.IntRange(0, 2).Draw(t, "tried") {
		tried = append(tried, map[string]any{
			"action": rapid.SampledFrom([]any{"scale", "restart"}).Draw(t, fmt.Sprint("action", i)), "parameters": map[string]any{}, "effect": "applied",
			"outcome":    rapid.SampledFrom([]any{"improved", "worsened"}).Draw(t, fmt.Sprint("outcome", i)),
			"secondsAgo": number.Draw(t, fmt.Sprint("ago", i)), "before": number.Draw(t, fmt.Sprint("before", i)), "after": 0.0, "thisEpisode": true,
		})
	}
	doc["tried"] = tried
	return doc
}

// forget draws what becomes unknown or goes missing.
func forget(t *rapid.T, doc map[string]any) {
	lose := func(in map[string]any, name string, label string) {
		if rapid.Bool().Draw(t, label+name) {
			in[name] = gate.Unknown
		}
	}
	at := func(name string) map[string]any { return doc[name].(map[string]any) }
	parameters := at("proposal")["parameters"].(map[string]any)
	for _, name := range []string{"replicas", "force", "mode"} {
		if rapid.Bool().Draw(t, "drop "+name) {
			delete(parameters, name)
		}
	}
	lose(at("action"), "class", "")
	lose(at("action"), "reversal", "")
	lose(at("balance"), "remaining", "")
	lose(at("balance"), "global", "")
	lose(doc, "live", "")
	lose(doc, "ownership", "")
	for i, e := range slices.Concat(doc["dependencies"].([]any), doc["tried"].([]any)) {
		for _, name := range []string{"state", "outcome", "secondsAgo", "before"} {
			if o := e.(map[string]any); o[name] != nil {
				lose(o, name, fmt.Sprint(i))
			}
		}
	}
}

// A grant that the lint lets pass never holds because something was forgotten:
// what is granted when less is known is granted when all of it is known.
func TestForgettingNeverGrants(t *testing.T) {
	loaded, passed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		src := policyOf(t)
		fsys := bundle("p.rego", src, "data.yaml", "canary: {checkout: true}\n")
		p, err := rego.Load(fsys, rego.Options{})
		if err != nil {
			return // such as a comparison of two different words
		}
		loaded++
		for _, f := range regolint.Check(context.Background(), fsys, regolint.Options{}) {
			if f.Code == regolint.CodeAbsence {
				return
			}
		}
		passed++
		for range 20 {
			doc := inputOf(t)
			before := granted(t, p, doc)
			forget(t, doc)
			if granted(t, p, doc) && !before {
				t.Fatalf("granted because something was forgotten:\n%s", src)
			}
		}
	})
	t.Logf("%d policies load, %d of them pass the lint", loaded, passed)
	if passed == 0 || passed == loaded {
		t.Errorf("the lint let %d of %d policies pass", passed, loaded)
	}
}

func granted(t *rapid.T, p *rego.Policy, doc map[string]any) bool {
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Evaluate(context.Background(), raw)
	if r.Fault != "" && !strings.HasPrefix(r.Fault, gate.FaultError) {
		t.Fatalf("%s", r.Fault)
	}
	return r.Fault == "" && len(r.Auto) > 0
}
