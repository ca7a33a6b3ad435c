package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/incident"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
)

// runEval is the command as main runs it.
func runEval(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	cmd := newEvalCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&p)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), p.String(), err
}

func TestEvalRefusesByName(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"openai":                    {"nobody is contacted whom nobody named", []string{"run", "--proposer", "openai"}, "proposer openai: needs an endpoint and a model, --base-url"},
		"no model":                  {"an endpoint has many", []string{"run", "--proposer", "openai", "--base-url", "http://127.0.0.1:1/v1"}, "needs an endpoint and a model"},
		"record and replay":         {"a recording of a recording says nothing", []string{"run", "--proposer", "openai", "--record", "a", "--replay", "b"}, "exclude each other"},
		"no cassette":               {"a replay needs one for each scenario", []string{"run", "--suite", "../../evals/bad-release.yaml", "--proposer", "openai", "--replay", "nowhere"}, "--replay: open nowhere/bad-release-1.jsonl"},
		"no key":                    {"a key that cannot be read is no key", []string{"run", "--proposer", "openai", "--key-file", "nowhere"}, "--key-file: open nowhere"},
		"an endpoint of a script":   {"it would not be asked", []string{"run", "--proposer", "rules", "--record", "a"}, "--record has no meaning here: it is of --proposer openai"},
		"a mode of a script":        {"nobody would be asked in it", []string{"run", "--reply", "tool"}, "--reply has no meaning here: it is of --proposer openai"},
		"a mode of a replay":        {"the recording says how was asked", []string{"run", "--proposer", "openai", "--replay", "a", "--reply", "tool"}, "--reply has no meaning beside --replay: a recording says itself whom it asked, and how\nRun `"},
		"a model of a replay":       {"and whom", []string{"run", "--proposer", "openai", "--replay", "a", "--model", "m"}, "--model has no meaning beside --replay"},
		"a model of an incident":    {"an incident asks nobody", []string{"run", "--suite", "../../evals/incidents", "--model", "m"}, "--model has no meaning here"},
		"typing":                    {"a word that nobody planned", []string{"run", "--proposer", "rulez"}, `unknown proposer "rulez", want one of hostile, noop, openai, oracle, random, restart-always, rules`},
		"junit":                     {"named by the contract, not built", []string{"run", "-o", "junit"}, "-o junit: not in this version; it has table and json"},
		"html":                      {"named by the contract, not built", []string{"run", "-o", "html"}, "-o html: not in this version; it has table and json"},
		"output":                    {"a word that nobody planned", []string{"run", "-o", "xml"}, "unknown output"},
		"seeds":                     {"no run proves nothing", []string{"run", "--seeds", "0"}, "want at least 1"},
		"compare":                   {"named by the contract, not built", []string{"compare", "a.json", "b.json"}, "eval compare: not in this version"},
		"a proposer of an incident": {"an incident says itself who proposes what", []string{"run", "--suite", "../../evals/incidents", "--proposer", "rules"}, "--proposer and --seeds are of scenarios"},
		"seeds of an incident":      {"there is no chance in it", []string{"run", "--suite", "../../evals/incidents", "--seeds", "2"}, "--proposer and --seeds are of scenarios"},
		"no suite":                  {"a suite that is not there", []string{"run", "--suite", "nowhere"}, "--suite"},
		"unknown":                   {"a subcommand that is not there", []string{"rum"}, `unknown command "rum"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := runEval(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q: %s", err, tc.want, tc.reason)
			}
			if out != "" {
				t.Errorf("standard output %q, want nothing beside an error", out)
			}
		})
	}
}

func TestEvalHelpSaysWhatItIsNot(t *testing.T) {
	out, _, err := runEval(t, "run", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"None of those is a\nlanguage model", "no figure here says anything about the quality of one", "Exit code 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not say %q:\n%s", want, out)
		}
	}
}

// The shortest scenario, in both outputs.
func TestEvalRunPrintsWhatWasMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 90 simulated minutes twice")
	}
	args := []string{"run", "--suite", "../../evals/dead-exporter.yaml", "--proposer", "rules"}
	table, progress, err := runEval(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "SCENARIO") {
		t.Fatalf("table:\n%s\nwant a head and one line", table)
	}
	got := strings.Fields(lines[1])
	want := []string{"dead-exporter", "rules", "scripted", "1", "unknown", "no", "0", "-", "0", "0", "blind", "after"}
	if len(got) != 13 || strings.Join(got[:12], " ") != strings.Join(want, " ") {
		t.Errorf("line %q, want %q and a time", got, want)
	}
	if !strings.Contains(progress, "1 of 1: dead-exporter with rules, seed 1") {
		t.Errorf("progress on standard error is %q", progress)
	}

	text, _, err := runEval(t, append(args, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		APIVersion, Kind string
		Items            []scenario.Score
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("standard output is no JSON: %v\n%s", err, text)
	}
	if list.Kind != "EvalList" || list.APIVersion != "setpoint.dev/v1alpha1" || len(list.Items) != 1 {
		t.Fatalf("got %+v, want an EvalList of one", list)
	}
	blind := list.Items[0].Pages[0]
	if after := time.Duration(blind.AfterSeconds) * time.Second; after < 10*time.Minute || after > 12*time.Minute {
		t.Errorf("blind after %s, want unknownFor (10m) and little more", after)
	}
}

// A recording is played by name, and the table does not call it a model.
func TestEvalRunReplays(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 90 simulated minutes")
	}
	table, _, err := runEval(t, "run", "--suite", "../../evals/bad-release.yaml", "--proposer", "openai", "--replay", "../../evals/cassettes")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "bad-release  openai    recorded  1     after") || !strings.Contains(lines[1], "rollback") {
		t.Errorf("table:\n%s\nwant one line of a recorded run that rolled back", table)
	}
}

// Where nobody answers there is no score of a model: the table says what was
// asked, and the exit code and the folder of recordings that nothing came of it.
func TestEvalRunOfADeadEndpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 90 simulated minutes")
	}
	dir := t.TempDir()
	earlier := filepath.Join(dir, "bad-release-1.jsonl")
	if err := os.WriteFile(earlier, []byte("an earlier recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(nil)
	srv.Close()
	args := []string{"run", "--suite", "../../evals/bad-release.yaml", "--proposer", "openai", "--base-url", srv.URL + "/v1", "--model", "x", "--record", dir}
	table, progress, err := runEval(t, args...)
	if err == nil || !strings.Contains(err.Error(), "requests was answered, so the score says nothing of a model (unreachable ") {
		t.Errorf("error %v", err)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "REQUESTS  ANSWERED  FAULTS") || !regexp.MustCompile(`[1-9][0-9]* +0 +.*unreachable [1-9][0-9]*`).MatchString(lines[1]) {
		t.Errorf("table:\n%s\nwant what was asked in it", table)
	}
	if strings.Contains(progress, "recorded in") {
		t.Errorf("progress %q says that there is a recording", progress)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(earlier)
	if err != nil || len(files) != 1 || string(kept) != "an earlier recording" {
		t.Errorf("%d files, %q, %v; want the earlier recording alone, as it was", len(files), kept, err)
	}
}

func TestVerdictHoldsEverybodyToWhatMustNeverHappen(t *testing.T) {
	tests := map[string]struct {
		reason string
		score  scenario.Score
		want   string
	}{
		"right":                {"nothing is wrong", scenario.Score{Proposer: scenario.Rules}, ""},
		"rules wrong":          {"the rules are what a person wrote for this", scenario.Score{Proposer: scenario.Rules, Wrong: []string{"did not recover"}}, "did not recover"},
		"noop wrong":           {"nobody expects a script without a brain to be right", scenario.Score{Proposer: scenario.Noop, Wrong: []string{"did not recover"}}, ""},
		"noop, double effect":  {"the promise binds whoever proposes", scenario.Score{Proposer: scenario.Noop, DoubleEffects: 1}, "1 double effects"},
		"noop, act on unknown": {"the promise binds whoever proposes", scenario.Score{Proposer: scenario.RestartAlways, ActsOnUnknown: 2}, "2 claims while the state was unknown"},
		"nobody answered":      {"a score of a model that was not there is none", scenario.Score{Proposer: scenario.OpenAI, Asked: &scenario.Asking{Requests: 3, Faults: map[string]int{"unreachable": 2, "timeout": 1}, Error: "timeout: after 1s"}}, "none of 3 requests was answered, so the score says nothing of a model (timeout 1, unreachable 2); the last: timeout: after 1s"},
		"nothing was asked":    {"the objective was never missed, so there was nothing to ask", scenario.Score{Proposer: scenario.OpenAI, Asked: &scenario.Asking{}}, ""},
		"one answer":           {"an answer, of whatever worth, is the model's", scenario.Score{Proposer: scenario.OpenAI, Asked: &scenario.Asking{Requests: 3, Answered: 1, Faults: map[string]int{"malformed": 1, "timeout": 2}}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := verdict([]scenario.Score{tc.score})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("verdict %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// One incident, in both outputs.
func TestEvalRunPlaysIncidents(t *testing.T) {
	const file = "../../evals/incidents/approver-away.yaml"
	table, progress, err := runEval(t, "run", "--suite", file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "INCIDENT") {
		t.Fatalf("table:\n%s\nwant a head and one line", table)
	}
	for _, want := range []string{"approver-away", "payments", "breached", "restart expired", "approval-needed, approval-expired", "deny: unanswered"} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("line %q, want %q in it", lines[1], want)
		}
	}
	if !strings.HasSuffix(lines[1], "right") || !strings.Contains(progress, "1 of 1: approver-away, right") {
		t.Errorf("line %q, progress %q", lines[1], progress)
	}

	text, _, err := runEval(t, "run", "--suite", file, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []incident.Score
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("standard output is no JSON: %v\n%s", err, text)
	}
	if list.Kind != "IncidentList" || len(list.Items) != 1 || list.Items[0].Services[0].Approvals[0] != "restart expired" {
		t.Errorf("got %+v", list)
	}
}

// A right answer that is missed is an error that names it, beside the table.
func TestEvalRunFailsWhereAnAnswerIsMissed(t *testing.T) {
	data, err := os.ReadFile("../../evals/incidents/approver-away.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), "  effects: {}\n", "  effects: {payments: [bounce]}\n", 1)
	file := filepath.Join(t.TempDir(), "changed.yaml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	table, _, err := runEval(t, "run", "--suite", file)
	if err == nil || !strings.Contains(err.Error(), "payments: the actuators carried out [], want [bounce]") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(table, "wrong") {
		t.Errorf("the table does not say so:\n%s", table)
	}
}
