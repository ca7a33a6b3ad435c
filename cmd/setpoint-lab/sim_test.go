package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// simRun runs sim and returns its output and exit code.
func simRun(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := rootCommand(strings.NewReader(""), &out, &errs)
	cmd.SetArgs(append([]string{"sim"}, args...))
	err := cmd.ExecuteContext(t.Context())
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return out.String(), 0
	case errors.As(err, &coded):
		return out.String() + err.Error(), coded.ExitCode()
	}
	return out.String() + err.Error(), 1
}

func TestSimCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"OneSeed":   {"one seed need not reach everything", []string{"--seed", "7", "--steps", "50"}, 0, "1 seeds,"},
		"Verbose":   {"each step is a line", []string{"--seed", "7", "--steps", "50", "-v"}, 0, "replica 0"},
		"Unreached": {"a run that reaches little proves little", []string{"--seeds", "2", "--steps", "5"}, 2, "never reached: claim lost"},
		"Output":    {"an unknown output", []string{"-o", "html"}, 1, "want table or json"},
		"NoSeeds":   {"nothing to play", []string{"--seeds", "0"}, 1, "at least 1"},
		"AllOfThem": {"ten thousand traces help nobody", []string{"-v"}, 1, "name it with --seed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, code := simRun(t, tc.args...)
			if code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("%s: exit code %d, want %d with %q in\n%.2000s", tc.reason, code, tc.code, tc.want, out)
			}
		})
	}
}

func TestSimJSON(t *testing.T) {
	out, code := simRun(t, "--seed", "7", "--steps", "50", "-o", "json")
	var got struct {
		APIVersion, Kind string
		Seeds            int
		Counters         []struct{ Name string }
		Violations       []any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("exit code %d, no JSON: %v\n%s", code, err, out)
	}
	if code != 0 || got.Kind != "SimReport" || got.APIVersion == "" || got.Seeds != 1 || len(got.Counters) == 0 || got.Violations == nil {
		t.Errorf("exit code %d, got %+v", code, got)
	}
}
