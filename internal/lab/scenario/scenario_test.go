package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const whole = `name: one
description: What it is about.
documents: ../slo/
rules: rules.yaml
seed: 7
for: 90m
faults:
  - {at: 10m, fault: bad-release}
answers: {who: os:alice, approve: true, after: 2m}
right:
  service: checkout
  state: met
  recoveredWithin: 25m
  actions: [rollback]
`

func TestParse(t *testing.T) {
	got, err := scenario.Parse(spec.File{Name: "one.yaml", Data: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	want := scenario.Scenario{
		Name: "one", Description: "What it is about.", Documents: "../slo/", Rules: "rules.yaml", Seed: 7, For: 90 * time.Minute,
		Faults:  []scenario.Fault{{At: 10 * time.Minute, Fault: shop.BadRelease}},
		Answers: &scenario.Answers{Who: "os:alice", Approve: true, After: 2 * time.Minute},
		Right: scenario.Right{
			Service: "checkout", State: compare.Met, RecoveredWithin: 25 * time.Minute, Actions: []string{"rollback"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(spec.Position{})); diff != "" {
		t.Errorf("scenario (-want +got):\n%s", diff)
	}
}

func TestParseIsStrict(t *testing.T) {
	tests := map[string]struct {
		reason string
		// old is replaced by with in the whole file above.
		old, with string
		want      string
	}{
		"unknown key":           {"a misspelt key would be a silent default", "seed: 7", "sed: 7", `one.yaml:5: sed: unknown key, did you mean "seed"?`},
		"missing key":           {"without it nothing can be right", "name: one\n", "", "name: is required"},
		"duplicate key":         {"one of them would win", "seed: 7", "seed: 7\nseed: 8", "one.yaml:6: seed: duplicate key, first given in line 5"},
		"wrong type":            {"5 is no text, and seven no number", "seed: 7", "seed: seven", "one.yaml:5: seed: "},
		"negative seed":         {"seeds are counted up from 0", "seed: 7", "seed: -7", "seed: is negative"},
		"no duration":           {"a number has no unit", "for: 90m", "for: 90", "one.yaml:6: for: "},
		"too long":              {"it would not end in a moment", "for: 90m", "for: 30d", "for: 720h0m0s is not between 1m and 1d"},
		"name":                  {"it stands in tables and is typed", "name: one", "name: One Two", `name: "One Two" is no name`},
		"no fault":              {"nothing breaks", "faults:\n  - {at: 10m, fault: bad-release}", "faults: []", "faults: is empty"},
		"unknown fault":         {"the shop would not break", "fault: bad-release", "fault: bad-relaese", `one.yaml:8: faults[0].fault: unknown fault "bad-relaese"`},
		"late fault":            {"it would never happen", "at: 10m", "at: 2h", "faults[0].at: 2h is not within the 1h30m of the scenario"},
		"fault without a time":  {"when it breaks is part of the scenario", "at: 10m, ", "", "faults[0].at: is required"},
		"principal":             {"a display name is nobody's", "who: os:alice", "who: Alice", "answers.who: \"Alice\" is no principal"},
		"answer without a yes":  {"a default would decide for a person", "approve: true, ", "", "answers.approve: is required"},
		"service":               {"the shop has no such service", "service: checkout", "service: checkin", `right.service: "checkin" is no service of the shop`},
		"state":                 {"there are three", "state: met", "state: fine", `right.state: unknown state "fine"`},
		"recovered and unknown": {"what is unknown has not recovered", "state: met", "state: unknown", "right.recoveredWithin: goes with state met, not unknown"},
		"recovers too late":     {"nobody would see it", "recoveredWithin: 25m", "recoveredWithin: 2h", "right.recoveredWithin: is not within the 1h30m"},
		"actions":               {"none has to be said", "  actions: [rollback]\n", "", "right.actions: is required"},
		"too many approved":     {"more than there are", "actions: [rollback]", "actions: []\n  approved: 1", "right.approved: 1 of 0 actions cannot be approved"},
		"approved by nobody":    {"no answer, no approval", "answers: {who: os:alice, approve: true, after: 2m}\nright:", "right:\n  approved: 1", "right.approved: needs answers"},
		"second document":       {"a file is one scenario", "name: one", "---\na: 1\n---\nname: one", "a second document"},
		"empty":                 {"an emptied file is no scenario", whole, "", "name: is required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, tc.old) {
				t.Fatalf("the whole file has no %q", tc.old)
			}
			data := strings.Replace(whole, tc.old, tc.with, 1)
			_, err := scenario.Parse(spec.File{Name: "one.yaml", Data: []byte(data)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	for _, name := range []string{"bad-release", "dead-exporter", "poisoned-workers"} {
		data, err := os.ReadFile(filepath.Join(evals, name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("faults: [{at: -1s}]\nright: {approved: -1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse(spec.File{Name: "f.yaml", Data: data})
		if err != nil {
			return
		}
		if s.Name == "" || len(s.Faults) == 0 || s.For <= 0 || s.Seed < 0 || s.Right.Approved > len(s.Right.Actions) {
			t.Errorf("took %+v", s)
		}
	})
}

func TestLoad(t *testing.T) {
	const rules = "rules:\n  - {state: unknown, propose: none}\n"
	tests := map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"rules lie beside them": {"a rules file is no scenario", map[string]string{"one.yaml": whole, "rules.yaml": rules}, []string{"one"}, ""},
		"sorted by name": {"the order of a table does not hang on file names", map[string]string{
			"a.yaml": whole, "b.yml": strings.Replace(whole, "name: one", "name: a-first-one", 1),
		}, []string{"a-first-one", "one"}, ""},
		"one is broken": {"half a suite would look like a whole one", map[string]string{
			"a.yaml": whole, "b.yaml": "name: two\n",
		}, nil, "b.yaml:1: description: is required"},
		"one name twice": {"two lines of a table could not be told apart", map[string]string{"a.yaml": whole, "b.yaml": whole}, nil, `name: "one" is the name of`},
		"rules alone":    {"nothing to play", map[string]string{"rules.yaml": rules}, nil, "no scenario in it"},
		"a rules scenario": {"a scenario whose rules are no path is a broken scenario, not a rules file", map[string]string{
			"a.yaml": strings.Replace(whole, "rules: rules.yaml", "rules: []", 1),
		}, nil, "a.yaml:4: rules: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			all, err := scenario.Load(dir)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q: %s", err, tc.err, tc.reason)
			}
			var got []string
			for _, s := range all {
				got = append(got, s.Name)
				if s.Rules != filepath.Join(dir, "rules.yaml") {
					t.Errorf("rules at %s, want beside the scenario", s.Rules)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
