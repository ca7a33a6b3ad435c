package inputfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/inputfile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func faults(t *testing.T, text string) []string {
	t.Helper()
	err := inputfile.Check(spec.File{Name: "input.json", Data: []byte(text)})
	var fs spec.Faults
	if err != nil && !errors.As(err, &fs) {
		t.Fatal(err)
	}
	var out []string
	for _, f := range fs {
		out = append(out, f.Error())
	}
	return out
}

func TestCheck(t *testing.T) {
	example := string(gate.ExampleInput())
	change := func(pairs ...string) string {
		for _, old := range pairs {
			if !strings.Contains(example, old) && old == pairs[0] {
				t.Fatalf("the example has no %s", old)
			}
		}
		return strings.NewReplacer(pairs...).Replace(example)
	}
	const every = "; what is not known is \"unknown\", and `setpoint policy schema --example` prints an input with every field"
	tests := map[string]struct {
		reason, text string
		want         []string
	}{
		"Example": {"complete", example, nil},
		"Compact": {"lines are for people alone", strings.Join(strings.Fields(example), ""), nil},
		"Misspelt": {"the nearest name, and what is missing for it", change(`"ownership"`, `"ownersip"`), []string{
			`input.json:1: has no ownership` + every,
			`input.json:31: ownersip: is not in a gate input, did you mean "ownership"?`,
		}},
		"Unknown": {"nothing is near", change(`"reversal": "restore",`, `"reversal": "restore", "zz": 1,`), []string{
			`input.json:6: action.zz: is not in a gate input, there are class, mark, name, reversal, target, uses`,
		}},
		"Word":       {"one of a few", change(`"restore"`, `"restor"`), []string{`input.json:6: action.reversal: is "restor", want transient, restore, irreversible or unknown; did you mean "restore"?`}},
		"Type":       {"text for a number", change(`"capacity": 3`, `"capacity": "3"`), []string{`input.json:11: balance.capacity: is "3", want a number or unknown`}},
		"Null":       {"null is no value", change(`"capacity": 3`, `"capacity": null`), []string{`input.json:11: balance.capacity: is null, want a number or unknown`}},
		"List":       {"an object for a list", change(`"silences": []`, `"silences": {}`), []string{`input.json:49: silences: is an object, want a list`}},
		"InList":     {"the element of a list", change(`"burning": true`, `"burning": "yes"`), []string{`input.json:56: state.objectives[0].burnRates[0].burning: is "yes", want true or false`}},
		"Parameter":  {"a parameter is a plain value", change(`"replicas": 6`, `"replicas": [6]`), []string{`input.json:35: proposal.parameters.replicas: is a list, want text, a number or true or false`}},
		"Live":       {"live state is an object or unknown", change("\"live\": {\n    \"replicas\": 4\n  }", `"live": 4`), []string{`input.json:26: live: is 4, want an object or unknown`}},
		"LiveInside": {"its values are of known types", change(`"replicas": 4`, `"replicas": {"a": 1}`), []string{`input.json:27: live.replicas: is an object, want text, a number, true or false or a list`}},
		"Version":    {"another version", change(`setpoint.dev/gate/v1`, `setpoint.dev/gate/v2`), []string{`input.json:81: version: is "setpoint.dev/gate/v2", want setpoint.dev/gate/v1; did you mean "setpoint.dev/gate/v1"?`}},
		"Time":       {"no time", change(`2026-11-25T10:12:00Z`, `yesterday`), []string{`input.json:30: now: is "yesterday", want a time such as 2026-11-29T03:00:00Z`}},
		"Twice":      {"said twice", change(`"capacity": 3,`, "\"capacity\": 3,\n    \"capacity\": 4,"), []string{`input.json:12: balance.capacity: is given twice, first in line 11`}},
		"Half":       {"cut off", example[:len(example)/2], []string{`input.json:47: is no JSON: it ends in the middle`}},
		"Comma":      {"no JSON", change(`"capacity": 3,`, `"capacity": 3`), []string{`input.json:12: is no JSON: invalid character '"' after object key:value pair`}},
		"Two":        {"two documents", example + "{}", []string{`input.json:87: is no JSON: there is more than one JSON value`}},
		"Nothing":    {"an empty file", "", []string{`input.json:1: is no JSON: it ends in the middle`}},
		"NoObject":   {"a list is none", "[]", []string{`input.json:1: is a list, want an object`}},
		"Deep":       {"nested too deep", strings.Repeat("[", 200), []string{`input.json:1: is no JSON: it is nested more than 100 deep`}},
		"TooLong":    {"over the cap", strings.Repeat(" ", gate.MaxInput+1), []string{`input.json: has 262145 bytes, an input at most 262144`}},
		"PartsMissing": {"a part of a part", change(`"mode": "auto",`, ``), []string{
			`input.json:44: service: has no mode` + every,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, faults(t, tc.text)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// What passes here is what the gate takes, and the other way round.
func FuzzCheck(f *testing.F) {
	f.Add(string(gate.ExampleInput()))
	f.Add(`{"a":{"b":[1,{"c":null}]},"a":2}`)
	f.Add(`{"":{"a.b":[]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		err := inputfile.Check(spec.File{Name: "x", Data: []byte(text)})
		if err == nil && gate.ValidateInput([]byte(text)) != nil {
			t.Fatal("passes although the gate refuses it")
		}
		if _, wrong := gate.CaseOf([]byte(text)); wrong == nil && err != nil && !strings.Contains(err.Error(), "given twice") {
			t.Fatalf("refuses what the gate takes: %v", err)
		}
	})
}
