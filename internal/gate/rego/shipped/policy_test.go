package shipped_test

import (
	"context"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/policies"
)

func TestCheck(t *testing.T) {
	for _, f := range regolint.Check(t.Context(), policies.FS, regolint.Options{}) {
		t.Error(f)
	}
	for _, r := range load(t, policies.FS).Rules() {
		if r.Title == "" || r.Remedy == "" || r.Line == 0 {
			t.Errorf("rule %s lacks title, remedy or line: %+v", r.Reason, r)
		}
	}
}

// Reasons are labels of metrics and what people search for: they stay.
func TestReasonsStay(t *testing.T) {
	have := map[string]bool{}
	for _, r := range load(t, policies.FS).Rules() {
		have[r.Reason] = true
	}
	for _, reason := range strings.Fields(`after-hours balance-spent class dependency-down fresh-documents handed-over
		large-change model-irreversible not-in-documents not-reversible owned-elsewhere recent-change repeatedly-fruitless
		reversible second-try state-not-seen undo weak-proposer worsened-before`) {
		if !have[reason] {
			t.Errorf("no rule has the reason %s any more", reason)
		}
	}
}

func TestOwnTests(t *testing.T) {
	r := passes(t, policies.FS)
	if r.Passed < 60 || r.Skipped > 0 {
		t.Errorf("%d passed, %d skipped", r.Passed, r.Skipped)
	}
	if r.Coverage < 95 {
		t.Errorf("coverage %.1f %%, want 95; not reached: %+v", r.Coverage, r.Uncovered)
	}
}

// data.yaml is there to be changed. A test that held for the shipped values
// alone would refuse the whole bundle at the next reload.
func TestOwnTestsHoldWhateverDataSays(t *testing.T) {
	cases := map[string]struct{ reason, data string }{
		"Night": {"business hours", `
limits: {largeFactor: 2, fruitlessAttempts: 3, recentChangeMinutes: 30, weakProposers: []}
hours: {zone: Europe/Berlin, alone: [{days: [Monday], from: 8, to: 18.5}]}
labels: {}`},
		"Never": {"nothing runs alone", `
limits: {largeFactor: 1, fruitlessAttempts: 1, recentChangeMinutes: 100000, weakProposers: [main, m, other, ""]}
hours: {zone: Asia/Kathmandu, alone: []}
labels: {checkout: {canary: true, tier: critical, replicaCost: 1}}`},
		"Loose": {"hardly a limit", `
limits: {largeFactor: 1000, fruitlessAttempts: 1000, recentChangeMinutes: 0, weakProposers: []}
hours: {zone: UTC, alone: [{days: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday], from: 0, to: 24}]}
labels: {checkout: {}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := files(t, policies.FS)
			b["data.yaml"] = &fstest.MapFile{Data: []byte(tc.data)}
			passes(t, b)
		})
	}
}

// What a wrong value in data.yaml would do shows nowhere: a rule is silent, or
// each decision is an error. The bundle's tests say so before it is swapped in.
func TestOwnTestsRefuseWrongData(t *testing.T) {
	cases := map[string]struct{ reason, was, is, test string }{
		"Text":      {"text sorts above every number", "fruitlessAttempts: 3", `fruitlessAttempts: "3"`, "test_limits_are_numbers"},
		"Name":      {"a list of names", "weakProposers: []", "weakProposers: main", "test_weak_proposers_are_a_list"},
		"Zone":      {"a zone that there is not", "zone: UTC", "zone: Europe/Berlim", "test_zone_exists"},
		"Day":       {"the days have their names", "days: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday", "days: [Mo, Tuesday", "test_hours_open_and_close"},
		"Backwards": {"hours over midnight", "from: 0\n      to: 24", "from: 22\n      to: 6", "test_hours_open_and_close"},
		"Clock":     {"an hour is a number", "to: 24", "to: 18:30", "test_hours_open_and_close"},
		"Labels":    {"labels are of a service", "labels: {}", "labels: {canary: true}", "test_labels_are_by_service"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := files(t, policies.FS)
			comments, text, _ := strings.Cut(string(b["data.yaml"].Data), "\nlimits:")
			if strings.Count(text, tc.was) != 1 {
				t.Fatalf("%q is not once in data.yaml", tc.was)
			}
			b["data.yaml"] = &fstest.MapFile{Data: []byte(comments + "\nlimits:" + strings.Replace(text, tc.was, tc.is, 1))}
			r, err := tryMatching(b, regexp.MustCompile(`\.test_(limits_are|weak_proposers_are|zone_exists|hours_open|labels_are)`))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Name, "."+tc.test) {
				t.Errorf("%s: got %+v, want %s alone to fail", tc.reason, r.Failures, tc.test)
			}
		})
	}
}

func load(t testing.TB, fsys fs.FS) *rego.Policy {
	t.Helper()
	p, err := rego.Load(fsys, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// try runs a bundle's own tests, with time to spare on a machine that is busy.
func try(fsys fs.FS) (regotest.Report, error) { return tryMatching(fsys, nil) }

// tryMatching runs those of them whose names match; nil: all.
func tryMatching(fsys fs.FS, names *regexp.Regexp) (regotest.Report, error) {
	b, err := rego.Read(fsys)
	if err != nil {
		return regotest.Report{}, err
	}
	return regotest.Run(context.Background(), b, regotest.Options{Timeout: time.Minute, Run: names})
}

func run(t testing.TB, fsys fs.FS) regotest.Report {
	t.Helper()
	r, err := try(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// passes runs a bundle's own tests, all of which must pass.
func passes(t testing.TB, fsys fs.FS) regotest.Report {
	t.Helper()
	r := run(t, fsys)
	for _, f := range r.Failures {
		t.Errorf("%s:%d: %s: %s", f.File, f.Line, f.Name, f.Text)
	}
	return r
}
