package regotest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// bases are the files that a table may name.
func bases(name string) ([]byte, error) {
	switch name {
	case "example.json":
		return gate.ExampleInput(), nil
	case "half.json":
		return []byte("{\n  \"now\": \n"), nil
	case "two.json":
		return []byte("{} {}"), nil
	case "null.json":
		return []byte("null"), nil
	}
	return nil, os.ErrNotExist
}

func table(text string) (regotest.Table, error) {
	return regotest.ReadTable(spec.File{Name: "cases.yaml", Data: []byte(text)}, bases)
}

// field looks into the input of a case.
func field(t testing.TB, c regotest.Case, path ...string) any {
	t.Helper()
	var doc any
	if err := json.Unmarshal(c.Input, &doc); err != nil {
		t.Fatal(err)
	}
	for _, p := range path {
		doc = doc.(map[string]any)[p]
	}
	return doc
}

func TestReadTable(t *testing.T) {
	got, err := table(`base: example.json
cases:
  - name: as it is
    expect: {verdict: auto}
  - name: by field
    changes:
      now: 2026-11-29T03:00:00Z
      proposal: {parameters: {replicas: 9, force: true}}
      dependencies: []
      live: unknown
    expect: {verdict: approval, reasons: [b, a]}
  - {name: none, expect: {verdict: deny, reasons: []}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Cases) != 3 || got.File != "cases.yaml" {
		t.Fatalf("got %+v", got)
	}
	var example any
	if err := json.Unmarshal(gate.ExampleInput(), &example); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example, field(t, got.Cases[0])); diff != "" {
		t.Errorf("no changes change something (-want +got):\n%s", diff)
	}
	changed := got.Cases[1]
	for want, have := range map[any]any{
		"2026-11-29T03:00:00Z": field(t, changed, "now"),
		"scale":                field(t, changed, "proposal", "action"),
		9.0:                    field(t, changed, "proposal", "parameters", "replicas"),
		true:                   field(t, changed, "proposal", "parameters", "force"),
		"unknown":              field(t, changed, "live"),
	} {
		if have != want {
			t.Errorf("got %v, want %v", have, want)
		}
	}
	if diff := cmp.Diff([]any{}, field(t, changed, "dependencies")); diff != "" {
		t.Errorf("a list is replaced (-want +got):\n%s", diff)
	}
	wants := []regotest.Outcome{
		{Verdict: gate.Auto}, {Verdict: gate.Approval, Reasons: []string{"a", "b"}}, {Verdict: gate.Deny, Reasons: []string{}},
	}
	for i, c := range got.Cases {
		if diff := cmp.Diff(wants[i], c.Want); diff != "" {
			t.Errorf("case %d wants (-want +got):\n%s", i, diff)
		}
	}
	if line := got.Cases[1].Pos.Line; line != 5 {
		t.Errorf("the second case is in line %d", line)
	}
}

func TestReadTableRefuses(t *testing.T) {
	one := func(format string, args ...any) string {
		return "cases:\n  - name: one\n    " + fmt.Sprintf(format, args...) + "\n    expect: {verdict: deny}\n"
	}
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Empty":        {"an emptied table must not pass", "", "cases.yaml:1: cases: is required"},
		"NoCase":       {"nor one without cases", "cases: []", "cases.yaml:1: cases: holds no case"},
		"List":         {"a list is no table", "- name: one", "cases.yaml:1: want a mapping, got a list"},
		"Syntax":       {"half a file", "cases: [", "cases.yaml:2: is not valid YAML: did not find expected node content"},
		"UnknownKey":   {"a misspelt key would be ignored", one("change: {}"), `cases.yaml:3: cases[0].change: unknown key, did you mean "changes"?`},
		"DuplicateKey": {"one of two would win", one("changes: {}\n    changes: {}"), "cases.yaml:4: cases[0].changes: duplicate key, first given in line 3"},
		"NoName":       {"a failure could not be named", "cases:\n  - expect: {verdict: deny}\n", "cases.yaml:2: cases[0].name: is required"},
		"EmptyName":    {"likewise", "cases:\n  - name: \"\"\n    expect: {verdict: deny}\n", "cases.yaml:2: cases[0].name: is empty: say what the case shows"},
		"NumberName":   {"no type is converted", "cases:\n  - name: 5\n    expect: {verdict: deny}\n", "cases.yaml:2: cases[0].name: want text, got the number 5: put it in quotes"},
		"SameName": {"a report could not tell which failed", "cases:\n  - {name: a, expect: {verdict: deny}}\n  - {name: a, expect: {verdict: auto}}\n",
			"cases.yaml:3: cases[1].name: is the name of the case in line 2 too: each has its own"},
		"NoExpect":     {"a case that wants nothing shows nothing", "cases:\n  - name: one\n", "cases.yaml:2: cases[0].expect: is required"},
		"NoVerdict":    {"likewise", "cases:\n  - name: one\n    expect: {reasons: [a]}\n", "cases.yaml:3: cases[0].expect.verdict: is required"},
		"Verdict":      {"a misspelt verdict must not become deny", "cases:\n  - name: one\n    expect: {verdict: escalat}\n", `cases.yaml:3: cases[0].expect.verdict: "escalat" is no verdict, did you mean "escalate"?`},
		"OtherVerdict": {"likewise", "cases:\n  - name: one\n    expect: {verdict: allow}\n", `cases.yaml:3: cases[0].expect.verdict: "allow" is no verdict: want auto, approval, escalate or deny`},
		"Reasons":      {"one reason is a list of one", "cases:\n  - name: one\n    expect: {verdict: deny, reasons: a}\n", `cases.yaml:3: cases[0].expect.reasons: want a list, got text "a"`},
		"Field":        {"a misspelt field would change nothing", one("changes: {acton: {name: restart}}"), `cases.yaml:3: cases[0].changes.acton: … did you mean "action"?`},
		"DeepField":    {"likewise below", one("changes: {service: {ownr: a}}"), `cases.yaml:3: cases[0].changes.service.ownr: … did you mean "owner"?`},
		"OddField":     {"nothing is near", one("changes: {window: {colour: red}}"), "cases.yaml:3: cases[0].changes.window.colour: … id, key"},
		"Enum":         {"a word that no input has", one("changes: {service: {mode: loud}}"), "cases.yaml:3: cases[0].changes.service.mode: … observe"},
		"Type":         {"text sorts above each number in Rego", one("changes: {state: {sinceSeconds: soon}}"), "cases.yaml:3: cases[0].changes.state.sinceSeconds: … a number or unknown"},
		"ScalarType":   {"an object that becomes a scalar", one("changes: {service: checkout}"), "cases.yaml:3: cases[0].changes.service: … an object"},
		"ListType":     {"a list that becomes an object", one("changes: {tried: {action: scale}}"), "cases.yaml:3: cases[0].changes.tried: … a list"},
		"Parameter":    {"parameters are plain values", one("changes: {proposal: {parameters: {n: [1]}}}"), "cases.yaml:3: cases[0].changes.proposal.parameters.n: … text"},
		"Live":         {"the observed state holds lists of texts too", one("changes: {live: {n: {}}}"), "cases.yaml:3: cases[0].changes.live.n: … text"},
		"Element":      {"a list is given whole", one("changes: {dependencies: [{service: db}]}"), "cases.yaml:3: cases[0].changes.dependencies[0]: … state"},
		"ElementField": {"fields of an element are known too", one("changes: {dependencies: [{service: db, state: met, sate: met}]}"), `cases.yaml:3: cases[0].changes.dependencies[0].sate: … did you mean "state"?`},
		"Null":         {"a null sorts below each number in Rego", one("changes: {state: {sinceSeconds: null}}"), "cases.yaml:3: cases[0].changes.state.sinceSeconds: … null"},
		"DeepNull":     {"likewise in free values", one("changes: {proposal: {parameters: {n: null}}}"), "cases.yaml:3: cases[0].changes.proposal.parameters.n: … null"},
		"NoChanges":    {"a key without a value", one("changes:"), "cases.yaml:3: cases[0].changes: want changes to the base by field, such as {service: {owner: team-payments}}"},
		"ListChanges":  {"a list changes nothing", one("changes: [a]"), "cases.yaml:3: cases[0].changes: want changes to the base by field, such as {service: {owner: team-payments}}"},
		"Now":          {"the only time that policy knows", one("changes: {now: yesterday}"), "cases.yaml:3: cases[0].changes.now: … yesterday"},
		"NoBase":       {"a base that is not there", one("base: nowhere.json"), "cases.yaml:3: cases[0].base: file does not exist"},
		"HalfBase":     {"a base of half a file", one("base: half.json"), "half.json:2: … JSON"},
		"TwoBase":      {"which one of two?", one("base: two.json"), "two.json:1: … more than one"},
		"NullBase":     {"nothing is no input", one("base: null.json"), "null.json:1: … null"},
		"ListBase":     {"a list is no input", one("base: [a]"), "cases.yaml:3: cases[0].base: want a file of JSON or an object"},
		"BareBase":     {"an own base is the whole input", one("base: {service: {owner: o}}"), "cases.yaml:3: cases[0].base: … balance"},
		"SharedBase": {"what is wrong with the table's base is told once", "base: {service: {name: a}}\ncases:\n  - {name: a, expect: {verdict: deny}}\n  - {name: b, expect: {verdict: deny}}\n",
			"cases.yaml:1: base: … balance"},
		"BaseField": {"an object in the table is checked by field", "base: {acton: {}}\ncases:\n  - {name: a, expect: {verdict: deny}}\n", `cases.yaml:1: base: … base.acton: is not in a gate input, did you mean "action"?`},
		"Alias":     {"aliases make bombs", one("changes: &x {}"), "cases.yaml:3: cases[0].changes: anchor &x is not supported: write the value out where it is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := table(tc.text)
			var faults spec.Faults
			if !errors.As(err, &faults) || len(got.Cases) > 0 || len(faults) > 2 {
				t.Fatalf("%s: got %+v (%v)", tc.reason, got, err)
			}
			// Of what the schema says, the place and the point.
			place, point, _ := strings.Cut(tc.want, "… ")
			if got := err.Error(); !strings.HasPrefix(got, place) || !strings.Contains(got, point) || point == "" && got != place {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}

// Changes of a value to what it is already change nothing, whichever they are.
func TestChangesOfNothing(t *testing.T) {
	var example map[string]any
	if err := json.Unmarshal(gate.ExampleInput(), &example); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		changes := map[string]any{}
		for name, v := range example {
			if rapid.Bool().Draw(t, name) {
				changes[name] = v
			}
		}
		text, err := json.Marshal(map[string]any{"cases": []any{map[string]any{
			"name": "a", "changes": changes, "expect": map[string]any{"verdict": "auto"}}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := table(string(text))
		if err != nil {
			t.Fatal(err)
		}
		var input any
		if err := json.Unmarshal(got.Cases[0].Input, &input); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(example), input); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzReadTable(f *testing.F) {
	for _, seed := range []string{
		"", "cases: []", "cases: [{name: a, expect: {verdict: auto}}]", "base: example.json\ncases:\n  - name: a\n    changes: {live: unknown, tried: []}\n    expect: {verdict: deny, reasons: [x, x]}\n",
		"base: half.json\ncases: [{name: a, expect: {verdict: auto}}]", "cases:\n - name: a\n   base: {}\n   expect: {verdict: auto}\n", "cases: [{name: [], changes: 1, expect: 2}]",
		"cases: [{name: a, changes: {proposal: {parameters: {x: .nan}}}, expect: {verdict: auto}}]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := table(text)
		var faults spec.Faults
		if err != nil {
			if !errors.As(err, &faults) || len(faults) == 0 || len(got.Cases) > 0 {
				t.Fatalf("a fault without a place: %v, %+v", err, got)
			}
			for _, one := range faults {
				if !slices.Contains([]string{"cases.yaml", "example.json", "half.json", "two.json", "null.json"}, one.Pos.File) || strings.TrimSpace(one.Text) == "" {
					t.Fatalf("a fault without a place: %+v", one)
				}
			}
			return
		}
		names := map[string]bool{}
		for _, c := range got.Cases {
			if c.Name == "" || names[c.Name] || c.Pos.Line < 1 {
				t.Fatalf("case %+v", c)
			}
			names[c.Name] = true
			if err := gate.ValidateInput(c.Input); err != nil {
				t.Fatalf("case %q: %v", c.Name, err)
			}
		}
		if len(names) == 0 {
			t.Fatal("a table without cases was taken")
		}
	})
}
