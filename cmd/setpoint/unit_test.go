package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/step"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func TestTableAlignsWithColours(t *testing.T) {
	tab := &table{header: []string{"SERVICE", "STATE", "REASON"}, coloured: []int{1}}
	tab.add("a", "met", "x")
	tab.add("longer-name", "breached", "")
	var plainText, coloured bytes.Buffer
	if err := tab.write(&plainText, false); err != nil {
		t.Fatal(err)
	}
	if err := tab.write(&coloured, true); err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile("\x1b\\[[0-9]+m")
	if !codes.MatchString(coloured.String()) {
		t.Error("no colour although it was asked for")
	}
	if diff := cmp.Diff(plainText.String(), codes.ReplaceAllString(coloured.String(), "")); diff != "" {
		t.Errorf("colours move the columns (-plain, +coloured):\n%s", diff)
	}
}

func TestTableDefusesForeignText(t *testing.T) {
	tab := &table{header: []string{"WORDS"}}
	tab.add("up\x1b[2Jdown\nnext\u202eline")
	var out bytes.Buffer
	if err := tab.write(&out, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("what a stranger wrote steers the terminal: %q", out.String())
	}
}

func TestYAMLKeepsOrderAndText(t *testing.T) {
	var out bytes.Buffer
	v := struct {
		Kind  string   `json:"kind"`
		About string   `json:"about"`
		Items []string `json:"items"`
		None  *int     `json:"none"`
	}{"X", "true: yes\nno", []string{"1", "a"}, nil}
	if err := emit(&out, formatYAML, v); err != nil {
		t.Fatal(err)
	}
	want := "kind: X\nabout: |-\n  true: yes\n  no\nitems:\n  - \"1\"\n  - a\nnone: null\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestAge(t *testing.T) {
	cases := map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 119 * time.Second: "119s", 125 * time.Second: "2m5s", 15 * time.Minute: "15m",
		5 * time.Hour: "5h", 72 * time.Hour: "3d",
	}
	for d, want := range cases {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestDetailedCode(t *testing.T) {
	pass := func(s compare.State, k step.Kind) reconcile.Result {
		return reconcile.Result{Assessment: compare.Assessment{State: s}, Step: step.Step{Kind: k}}
	}
	proposed := pass(compare.Met, step.Propose)
	proposed.Proposal = &propose.Proposal{}
	cases := map[string]struct {
		reason  string
		results []reconcile.Result
		want    int
	}{
		"None":          {"nothing to say", nil, exitFine},
		"Met":           {"all is well", []reconcile.Result{pass(compare.Met, step.Idle)}, exitFine},
		"Unknown":       {"unknown is not well", []reconcile.Result{pass(compare.Met, step.Idle), pass(compare.Unknown, step.Hold)}, exitUnknown},
		"Breached":      {"a breach", []reconcile.Result{pass(compare.Breached, step.Hold)}, exitFound},
		"BreachWins":    {"2 wins over 3", []reconcile.Result{pass(compare.Unknown, step.Hold), pass(compare.Breached, step.Hold)}, exitFound},
		"Proposal":      {"a proposal", []reconcile.Result{proposed}, exitFound},
		"NeverAssessed": {"a pass that failed knows nothing", []reconcile.Result{{}}, exitUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := detailedCode(tc.results); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yml", "notes.md", ".hidden.yaml", "deep/c.yaml", ".git/d.yaml"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason, pattern string
		want            []string
	}{
		"Folder":  {"YAML below it, nothing hidden", ".", []string{"a.yaml", "b.yml", "deep/c.yaml"}},
		"File":    {"a file is itself, whatever its name", "notes.md", []string{"notes.md"}},
		"Glob":    {"what matches", "*.yaml", []string{"a.yaml"}},
		"Nothing": {"a glob that matches nothing is a mistake", "*.json", nil},
		"Missing": {"so is a file that is not there", "nowhere", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := expand(filepath.Join(root, tc.pattern))
			if (err == nil) != (tc.want != nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, f := range found {
				rel, err := filepath.Rel(root, f)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, rel)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCeilingText(t *testing.T) {
	cases := map[string]struct {
		ceiling web.Ceiling
		want    string
	}{
		"Auto":     {web.Ceiling{Ceiling: "auto"}, "auto"},
		"Approval": {web.Ceiling{Ceiling: "approval", Why: []string{"class approval"}}, "approval at most, because class approval"},
		"Observe": {
			web.Ceiling{Ceiling: "deny", Why: []string{"mode is observe", "limits.maxMode is observe"}, AlsoNeed: []string{"class: auto on the action"}},
			"deny, mode is observe and limits.maxMode is observe: nothing is sent; would also need class: auto on the action",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ceilingText(tc.ceiling); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
