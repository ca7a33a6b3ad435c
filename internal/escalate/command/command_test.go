package command_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/command"
	execcommand "github.com/setpoint-dev/setpoint/internal/execute/command"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func page() escalate.Page {
	return escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct,
		Severity: escalate.SeverityCritical, Summary: "checkout misses availability; $(touch hurt) `touch hurt`", Text: "Measured", Since: now.Add(-time.Minute),
	}
}

func ended(p escalate.Page) escalate.Page {
	p.EndedAt, p.EndReason = now, "recovered"
	return p
}

// bench is a folder with a program.
type bench struct {
	t   *testing.T
	dir string
	o   command.Options
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	program := filepath.Join(b.dir, "siren.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.o = command.Options{
		Name: "siren", Argv: []string{program, "--loud", "$HOME"}, Check: execcommand.Check, Directory: b.dir,
		Timeout: 5 * time.Second, ExternalURL: "http://setpoint.internal:8321",
	}
	return b
}

func (b *bench) send(p escalate.Page) error {
	b.t.Helper()
	r, err := command.New(b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	ref, err := r.Send(b.t.Context(), p, "")
	if ref != "" {
		b.t.Errorf("ref %q: the page's id is enough", ref)
	}
	return err
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// TestRun: the program gets the page on its input and in four variables, and
// nothing else of the agent's.
func TestRun(t *testing.T) {
	t.Setenv("SETPOINT_SECRET_OF_THE_AGENT", "hunter2")
	beat := page()
	beat.Reason, beat.Severity, beat.Service = escalate.Heartbeat, escalate.SeverityNone, ""
	zero := page()
	zero.ID = "e\x0012"
	cases := map[string]struct {
		page   escalate.Page
		env    []string
		status string
	}{
		"Firing":    {page(), []string{"SETPOINT_PAGE=e12", "SETPOINT_SERVICE=checkout", "SETPOINT_SEVERITY=critical", "SETPOINT_STATUS=firing"}, "firing"},
		"Resolved":  {ended(page()), []string{"SETPOINT_PAGE=e12", "SETPOINT_SERVICE=checkout", "SETPOINT_SEVERITY=critical", "SETPOINT_STATUS=resolved"}, "resolved"},
		"Heartbeat": {beat, []string{"SETPOINT_PAGE=e12", "SETPOINT_SERVICE=", "SETPOINT_SEVERITY=none", "SETPOINT_STATUS=heartbeat"}, "firing"},
		"ZeroByte":  {zero, []string{"SETPOINT_PAGE=e12", "SETPOINT_SERVICE=checkout", "SETPOINT_SEVERITY=critical", "SETPOINT_STATUS=firing"}, "firing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `cat > input; env | sort > env; printf '%s|' "$@" > args; pwd > pwd`)
			if err := b.send(tc.page); err != nil {
				t.Fatal(err)
			}
			var m escalate.Message
			if err := json.Unmarshal([]byte(b.read("input")), &m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(escalate.NewMessage(tc.page, "siren", "http://setpoint.internal:8321"), m); diff != "" {
				t.Errorf("input: -want +got:\n%s", diff)
			}
			if m.Status != tc.status {
				t.Errorf("status %s, want %s", m.Status, tc.status)
			}
			var env []string
			for line := range strings.Lines(b.read("env")) {
				// PWD, SHLVL and _ are the shell's own.
				if v := strings.TrimSpace(line); !strings.HasPrefix(v, "PWD=") && !strings.HasPrefix(v, "SHLVL=") && !strings.HasPrefix(v, "_=") {
					env = append(env, v)
				}
			}
			if diff := cmp.Diff(append([]string{"PATH=" + os.Getenv("PATH")}, tc.env...), env); diff != "" {
				t.Errorf("environment: -want +got:\n%s", diff)
			}
			if got := b.read("args"); got != "--loud|$HOME|" {
				t.Errorf("arguments %q: there is no shell", got)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "hurt")); !errors.Is(err, os.ErrNotExist) {
				t.Error("something of the page was run")
			}
		})
	}
}

// TestExits: only exit 0 is a delivery.
func TestExits(t *testing.T) {
	cases := map[string]struct {
		reason, script string
		has            string
	}{
		"Fine":     {"exit 0", "exit 0", ""},
		"Deaf":     {"it need not read the page", "exec <&-; exit 0", ""},
		"Loud":     {"what it prints is not kept", "head -c 3000000 /dev/zero; exit 0", ""},
		"Fails":    {"its first words say why", `echo >&2; printf '\033[31mno \342\200\256modem\n' >&2; echo second >&2; exit 3`, "exit status 3: [31mno modem"},
		"Silent":   {"or nothing does", "exit 75", "page e12 to command siren: exit status 75"},
		"LoudFail": {"a long story is cut", "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1", "exit status 1: " + strings.Repeat("x", 200) + "…"},
		"Signal":   {"somebody else killed it", "kill -9 $$", "signal: killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.script)
			err := b.send(page())
			switch {
			case tc.has == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.has != "" && (err == nil || !strings.HasSuffix(err.Error(), tc.has)):
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.has)
			}
		})
	}
}

// alive reports whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// TestDeadline: a program that hangs is killed with all that it started, and the
// next page does not wait for it.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, `trap '' TERM; sleep 60 & echo $! > child; echo dialling >&2; sleep 60`)
	b.o.Timeout = 500 * time.Millisecond
	begin := time.Now()
	err := b.send(page())
	if err == nil || !strings.Contains(err.Error(), "killed at its deadline of 500ms with all that it started: dialling") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("child")))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("what it started lives on")
		}
	}
}

// TestLeftBehind: something that goes on by itself and holds the output open does
// not make a delivery a failure.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t, `sleep 60 & echo $! > child; exit 0`)
	if err := b.send(page()); err != nil {
		t.Errorf("got %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("child")))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// TestPrograms: a program that others can change is not run, nor one that is not
// there.
func TestPrograms(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		given func(*bench)
		has   string
	}{
		"Missing":    {func(b *bench) { b.o.Argv[0] += "x" }, "cannot be found"},
		"Writable":   {func(b *bench) { _ = os.Chmod(b.o.Argv[0], 0o777) }, "can be written by others"},
		"NotRunning": {func(b *bench) { _ = os.Chmod(b.o.Argv[0], 0o600) }, "not executable"},
		"Folder":     {func(b *bench) { b.o.Argv[0] = b.dir }, "cannot be found or is not executable"},
		"NoName":     {func(b *bench) { b.o.Argv[0] = "setpoint-no-such-program" }, "cannot be found"},
		"NotOne":     {func(b *bench) { _ = os.WriteFile(b.o.Argv[0], []byte("\x00\x01"), 0o600) }, "cannot be started"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "exit 0")
			tc.given(b)
			if err := b.send(page()); err == nil || !strings.Contains(err.Error(), tc.has) {
				t.Errorf("got %v, want %q", err, tc.has)
			}
		})
	}
}

// TestRelative: a program that is named from the agent's folder is found although
// it runs in another one.
func TestRelative(t *testing.T) {
	b := newBench(t, `pwd -P > pwd`)
	t.Chdir(filepath.Dir(b.dir))
	b.o.Argv = []string{filepath.Join(filepath.Base(b.dir), "siren.sh")}
	if err := b.send(page()); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(b.read("pwd")); got != want {
		t.Errorf("it ran in %s, want %s", got, want)
	}
}

// TestInPath: a bare name is looked up in PATH.
func TestInPath(t *testing.T) {
	b := newBench(t, `echo "$0" > name`)
	t.Setenv("PATH", b.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	b.o.Argv = []string{"siren.sh"}
	if err := b.send(page()); err != nil {
		t.Fatal(err)
	}
	b.read("name")
}

func TestNew(t *testing.T) {
	cases := map[string]struct {
		o   command.Options
		has string
	}{
		"Empty": {command.Options{Name: "siren", Check: execcommand.Check}, "argv is empty"},
		"Blank": {command.Options{Name: "siren", Argv: []string{""}, Check: execcommand.Check}, "argv is empty"},
		"Check": {command.Options{Name: "siren", Argv: []string{"x"}}, "no check"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := command.New(tc.o); err == nil || !strings.Contains(err.Error(), tc.has) {
				t.Errorf("got %v, want %q", err, tc.has)
			}
		})
	}
}
