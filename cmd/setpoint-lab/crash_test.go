package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/crash"
)

func TestCrashCommandLine(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Class":   {"a class that does not exist names those that do", []string{"--agent", agent, "--only", "kil"}, `no fault class "kil"; there are kill, `},
		"Output":  {"a format that does not exist", []string{"--agent", agent, "-o", "xml"}, "want table or json"},
		"Agent":   {"an agent that was not built says how", []string{"--agent", agent + "-missing"}, "-tags crashtest"},
		"Starts":  {"an agent that cannot run is an error, not a clean table", []string{"--agent", agent, "--only", "clock", "--point", "clock/x"}, "no point of that name"},
		"Prepare": {"so is one that cannot prepare a site", []string{"--agent", agent, "--only", "kill"}, "setpoint ledger init"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := rootCommand(strings.NewReader(""), io.Discard, io.Discard)
			cmd.SetArgs(append([]string{"crash"}, tc.args...))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestFoundEndsWithTwo(t *testing.T) {
	var coded interface{ ExitCode() int }
	if err := error(found{errors.New("x")}); !errors.As(err, &coded) || coded.ExitCode() != 2 {
		t.Errorf("exit code of %v, want 2", err)
	}
}

func TestProgressNamesFailures(t *testing.T) {
	var out bytes.Buffer
	tell := progress(&out)
	tell(1, 100, crash.Result{Class: "kill", Name: "a"})
	tell(2, 100, crash.Result{Class: "kill", Name: "b", Violations: []string{"INV-1: two effects"}})
	tell(50, 100, crash.Result{Class: "kill", Name: "c"})
	want := "FAILED kill/b: INV-1: two effects\n50 of 100 points tried\n"
	if out.String() != want {
		t.Errorf("got %q, want %q: a pipe gets failures and every fiftieth point", out.String(), want)
	}
}
