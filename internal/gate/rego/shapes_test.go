package rego_test

import (
	"encoding/json"
	"fmt"
	"testing"

	oparego "github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// drawShape is any value that an engine might hand back.
func drawShape(t *rapid.T, depth int) any {
	kinds := []string{"null", "bool", "number", "text", "known", "verdict"}
	if depth > 0 {
		kinds = append(kinds, "list", "list", "object")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "number":
		return json.Number(fmt.Sprint(rapid.Int().Draw(t, "number")))
	case "text":
		return rapid.String().Draw(t, "text")
	case "known": // reasons of other sets
		return rapid.SampledFrom([]string{"big", "old", "named", "no-more"}).Draw(t, "known")
	case "verdict":
		return rapid.SampledFrom([]string{"auto", "allow", "true", "approval", "Scale", "scale "}).Draw(t, "verdict")
	case "list":
		out := make([]any, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range out {
			out[i] = drawShape(t, depth-1)
		}
		return out
	case "object":
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			out[rapid.SampledFrom([]string{"reason", "approvers", "quorum", "expires", "x"}).Draw(t, "key")] = drawShape(t, depth-1)
		}
		return out
	}
	return nil
}

// Whatever shape a result has, it grants nothing unless it is exactly a set that
// holds the reason of a rule that grants.
func TestPropertyResultShapes(t *testing.T) {
	p := load(t, bundle("p.rego", four))
	c := granted()
	rapid.Check(t, func(t *rapid.T) {
		var results oparego.ResultSet
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2}).Draw(t, "results") {
			vars := oparego.Vars{}
			for i := range 4 {
				// Mostly what a set looks like, so that the rest of a result is fine.
				switch name := fmt.Sprintf("s%d", i); rapid.IntRange(0, 9).Draw(t, "bound") {
				case 0:
				case 1, 2:
					vars[name] = drawShape(t, 3)
				case 3, 4, 5:
					vars[name] = []any{drawShape(t, 1)}
				default:
					vars[name] = []any{}
				}
			}
			results = append(results, oparego.Result{Bindings: vars})
		}
		r, err := rego.RulingOf(p, results)
		if err != nil {
			r = gate.Ruling{Fault: "type: " + err.Error()}
		}
		if d := gate.Decide(c, r); d.Verdict == gate.Auto || len(r.Auto) > 0 {
			t.Fatalf("%v gives %s: %+v", results, d.Verdict, r)
		}
	})
	// What chance may miss: a reason of another set, and of none, in one that is fine.
	for _, reason := range []string{"big", "old", "named", "no-more", "auto", "Scale", "scale ", ""} {
		r, err := rego.RulingOf(p, oparego.ResultSet{{Bindings: oparego.Vars{"s0": []any{}, "s1": []any{}, "s2": []any{}, "s3": []any{reason}}}})
		if err == nil || gate.Decide(c, r).Verdict == gate.Auto {
			t.Errorf("reason %q grants: %+v", reason, r)
		}
	}
	// And that one set does grant, or the test above would show nothing.
	r, err := rego.RulingOf(p, oparego.ResultSet{{Bindings: oparego.Vars{"s0": []any{}, "s1": []any{}, "s2": []any{}, "s3": []any{"scale"}}}})
	if err != nil || gate.Decide(c, r).Verdict != gate.Auto {
		t.Errorf("%+v: %v", r, err)
	}
}
