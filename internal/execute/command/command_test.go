package command_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/command"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

// folder is an empty folder that only its owner can write, whatever the umask.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// script writes a program and returns its path.
func script(t testing.TB, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// bench is one executor in a folder of its own, with one program.
type bench struct {
	dir     string
	options command.Options
	action  spec.Action
}

// program makes a bench whose program is a script.
func program(t testing.TB, body string, arguments ...string) bench {
	t.Helper()
	dir := folder(t)
	path := script(t, dir, "act.sh", body)
	return bench{
		dir: dir, options: command.Options{Allow: []string{path}, Directory: dir, Now: clock},
		action: spec.Action{
			Name: "act", Uses: command.Uses, Class: spec.ClassAuto, Reversal: spec.Transient,
			Target:  spec.Target{Argv: append([]string{path}, arguments...), StatusArgv: []string{path}},
			Timeout: 20 * time.Second, MaxLateness: 30 * time.Second, Settle: time.Minute,
		},
	}
}

func (b bench) executor(t testing.TB) *command.Executor {
	t.Helper()
	e, err := command.New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (b bench) execute(t testing.TB, p propose.Parameters, ready func() error) (execute.Receipt, error) {
	t.Helper()
	return b.executor(t).Execute(context.Background(), executetest.Permit(t, b.action, p, now), ready)
}

// texts declares free texts, so that the gate lets any value through.
func (b bench) texts(names ...string) bench {
	for _, name := range names {
		b.action.Parameters = append(b.action.Parameters, spec.Parameter{Name: name, Type: spec.String, Pattern: `(?s).*`})
		b.action.Target.Argv = append(b.action.Target.Argv, "${parameters."+name+"}")
	}
	return b
}

func (b bench) read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (b bench) absent(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(b.dir, name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", name, err)
	}
}

func TestContract(t *testing.T) {
	executetest.Run(t, func(t *testing.T, now func() time.Time) executetest.Bench {
		b := program(t, `mode=$(cat mode)
said() { echo "$SETPOINT_KEY $SETPOINT_DIGEST $1 $2" >>journal; }
case $mode in
ok) said applied yes ;;
no-op) said no-op no; exit 3 ;;
not-now) said not-now no; exit 75 ;;
lie) said applied no ;;
hang) said applied yes; sleep 60 ;;
drop-reply) said applied yes; kill -9 $$ ;;
drop-request) said failed no; kill -9 $$ ;;
esac`)
		status := script(t, b.dir, "status.sh", `found=$(grep "^$SETPOINT_KEY " journal 2>/dev/null | cut -d' ' -f3)
if [ -z "$found" ]; then echo '{"known":false,"state":{"replicas":4}}'; exit; fi
echo "{\"known\":true,\"result\":\"$found\",\"state\":{\"replicas\":6}}"`)
		b.options.Allow, b.options.Now = append(b.options.Allow, status), now
		b.options.EnvAllow = []string{"PATH"}
		b.action.Target.StatusArgv = []string{status}
		set := func(m executetest.Mode) bool {
			if err := os.WriteFile(filepath.Join(b.dir, "mode"), []byte(m), 0o644); err != nil {
				t.Fatal(err)
			}
			switch m {
			case executetest.ModeOK, executetest.ModeNoOp, executetest.ModeNotNow, executetest.ModeLie,
				executetest.ModeHang, executetest.ModeDropReply, executetest.ModeDropRequest:
				return true
			}
			return false // An exit code says neither failed nor later.
		}
		set(executetest.ModeOK)
		return executetest.Bench{
			Executor: b.executor(t), Action: b.action, Parameters: propose.Parameters{},
			Fault: set, Journal: func() []executetest.Record { return journal(t, filepath.Join(b.dir, "journal")) },
		}
	})
}

func journal(t *testing.T, path string) []executetest.Record {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var rs []executetest.Record
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var applied string
		var r executetest.Record
		if _, err := fmt.Sscan(lines.Text(), &r.Key, &r.Digest, &r.Result, &applied); err != nil {
			t.Fatal(err)
		}
		r.Applied = applied == "yes"
		rs = append(rs, r)
	}
	return rs
}

func TestExitCodes(t *testing.T) {
	cases := map[string]struct {
		reason, body string
		want         execute.Effect
		detail       string
	}{
		"0":      {"applied", "echo done", execute.Applied, "exit 0: done"},
		"Silent": {"words are not needed", ":", execute.Applied, "exit 0"},
		"3":      {"nothing was to be done", "echo 'already 6' >&2; exit 3", execute.NoOp, "exit 3: already 6"},
		"75":     {"not now", "exit 75", execute.NotNow, "exit 75"},
		"1":      {"went wrong somewhere on its way", "echo half; exit 1", execute.AppliedWithError, "exit 1: half"},
		"2":      {"even when it says that it was misused", "exit 2", execute.AppliedWithError, "exit 2"},
		"126":    {"a shell's word for what it cannot run is about another program", "exit 126", execute.AppliedWithError, "exit 126"},
		"127":    {"and for what it does not find", "no-such-program-here 2>/dev/null", execute.AppliedWithError, "exit 127"},
		"255":    {"ssh's word for a connection that broke", "exit 255", execute.AppliedWithError, "exit 255"},
		"Kill":   {"killed by somebody else: nobody knows", "kill -9 $$", execute.InDoubt, "killed by somebody else: killed"},
		"Term":   {"politely, too", "echo half; kill -15 $$", execute.InDoubt, "killed by somebody else: terminated: half"},
		"Dirty":  {"what it prints is cleaned", `printf 'a\033[31m\000b\n\n c\342\200\256'`, execute.Applied, "exit 0: a [31m b c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := program(t, tc.body).execute(t, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := execute.Receipt{Effect: tc.want, At: now, Detail: tc.detail}
			if tc.want.Judged() {
				want.AppliedAt = now
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// What cannot be started did nothing.
func TestNotStarted(t *testing.T) {
	b := program(t, "touch canary")
	if err := os.WriteFile(b.action.Target.Argv[0], []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r, err := b.execute(t, nil, nil); err != nil || r.Effect != execute.Failed || !strings.HasPrefix(r.Detail, "not started: ") {
		t.Errorf("no interpreter: %+v, %v", r, err)
	}
	b = program(t, "touch canary").texts("x")
	r, err := b.execute(t, propose.Parameters{"x": strings.Repeat("x", 1<<20)}, nil)
	if err != nil || r.Effect != execute.Failed || !strings.HasPrefix(r.Detail, "not started: ") {
		t.Errorf("an argument beyond what the system takes: %+v, %v", r, err)
	}
	b.absent(t, "canary")
	b = program(t, "touch canary")
	b.options.Directory = filepath.Join(b.dir, "nowhere")
	if r, err := b.execute(t, nil, nil); err != nil || r.Effect != execute.Failed {
		t.Errorf("no folder: %+v, %v", r, err)
	}
	b.absent(t, "canary")
}

// A stranger's text reaches the program as one argument, byte by byte, or not
// at all; it never becomes a command of a shell, an option or a second word.
func TestParametersAreArguments(t *testing.T) {
	cases := map[string]struct {
		reason, value string
		refused       bool
	}{
		"Plain":         {"a word", "v41", false},
		"Empty":         {"nothing is an argument too", "", false},
		"Semicolon":     {"no second command", "; touch canary", false},
		"Substitution":  {"no command inside", "$(touch canary)", false},
		"Backquotes":    {"nor in the old form", "`touch canary`", false},
		"And":           {"nor behind another", "x && touch canary || touch canary", false},
		"Pipe":          {"nor at a pipe's end", "| touch canary", false},
		"Redirect":      {"no file is written", "> canary", false},
		"Newline":       {"no second line", "x\ntouch canary\n", false},
		"CarriageTab":   {"white space stays", " a\r\t b ", false},
		"Single":        {"quotes end nothing", "'; touch canary; '", false},
		"Double":        {"of either kind", `"; touch canary; "`, false},
		"Backslash":     {"nor does a backslash", `\`, false},
		"Variable":      {"no variable is read", "$SETPOINT_KEY ${HOME}", false},
		"Glob":          {"no name is looked for", "*", false},
		"Up":            {"a path stays text", "../../canary", false},
		"Placeholder":   {"what a value holds is not read again", "${parameters.y}", false},
		"Unicode":       {"every letter", "ü€𝛑 – e\u0301 \u202etxt", false},
		"Dash":          {"an option is refused", "-rf", true},
		"DoubleDash":    {"of either kind", "--config=/etc/passwd", true},
		"OnlyDash":      {"and the standard input", "-", true},
		"NUL":           {"an argument ends at it", "a\x00b", true},
		"MinusSign":     {"a minus sign that is none is a letter", "\u2212rf", false},
		"DashInside":    {"inside it is a letter", "a-b", false},
		"SpaceThenDash": {"so it is behind a space: there are no words", " -rf", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := program(t, `[ $# = 3 ] || exit 9
printf '%s' "$2" >got
printf '%s' "$3" >other`, "fixed").texts("x", "y")
			r, err := b.executor(t).RunUngated(t.Context(), b.action.Target.Argv, propose.Parameters{"x": tc.value, "y": "second"})
			b.absent(t, "canary")
			if _, err := os.Stat(filepath.Join(filepath.Dir(b.dir), "canary")); err == nil {
				t.Error("a canary above")
			}
			if tc.refused {
				if err == nil || r.Effect != execute.Failed || !strings.Contains(err.Error(), `parameter "x"`) {
					t.Errorf("%s: %+v, %v; want a refusal that names the parameter", tc.reason, r, err)
				}
				b.absent(t, "got")
				return
			}
			if err != nil || r.Effect != execute.Applied {
				t.Fatalf("%s: %+v, %v", tc.reason, r, err)
			}
			if got := b.read(t, "got"); got != tc.value || b.read(t, "other") != "second" {
				t.Errorf("%s: the program got %q, want %q", tc.reason, got, tc.value)
			}
		})
	}
}

func TestParameterTypes(t *testing.T) {
	lo, hi := -100.0, 1e22
	b := program(t, `printf '%s\n' "$@" >got`, "${parameters.n}", "${parameters.f}", "${parameters.b}", "${parameters.n}")
	b.action.Parameters = []spec.Parameter{
		{Name: "b", Type: spec.Boolean}, {Name: "f", Type: spec.Number, Minimum: &lo, Maximum: &hi}, {Name: "n", Type: spec.Integer, Minimum: &lo, Maximum: &hi},
	}
	cases := map[string]struct {
		reason string
		n      int64
		f      float64
		want   string
	}{
		"Plain":    {"as people write them; a placeholder may stand twice", 6, 0.25, "6\n0.25\ntrue\n6\n"},
		"Large":    {"never with an exponent, which few programs read", 1<<53 - 1, 1e21, "9007199254740991\n1000000000000000000000\ntrue\n9007199254740991\n"},
		"Negative": {"a number with a minus looks like an option", -1, 1, ""},
		"Fraction": {"so does this one", 1, -0.5, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(filepath.Join(b.dir, "got"))
			r, err := b.execute(t, propose.Parameters{"n": tc.n, "f": tc.f, "b": true}, nil)
			if tc.want == "" {
				if err == nil || r.Effect != execute.Failed {
					t.Errorf("%s: %+v, %v", tc.reason, r, err)
				}
				b.absent(t, "got")
				return
			}
			if err != nil || b.read(t, "got") != tc.want {
				t.Errorf("%s: %v, got %q, want %q", tc.reason, err, b.read(t, "got"), tc.want)
			}
		})
	}
}

// The agent's environment holds secrets; a program sees what is listed, and
// what it is for.
func TestEnvironment(t *testing.T) {
	t.Setenv("SETPOINT_TEST_SECRET", "hunter2")
	t.Setenv("SETPOINT_TEST_LISTED", "seen by the program")
	b := program(t, "env >got; pwd >where; cat >stdin; [ -t 0 ] && exit 1; exit 0")
	b.options.EnvAllow = []string{"SETPOINT_TEST_LISTED", "SETPOINT_TEST_ABSENT", "PATH", "PATH"}
	p := executetest.Permit(t, b.action, nil, now)
	if r, err := b.executor(t).Execute(t.Context(), p, nil); err != nil || r.Effect != execute.Applied {
		t.Fatal(r, err)
	}
	var got []string
	for line := range strings.Lines(b.read(t, "got")) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PWD", "OLDPWD", "SHLVL", "_": // The shell's own.
		default:
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := map[string]bool{
		"SETPOINT_TEST_LISTED=seen by the program": true, "PATH=" + os.Getenv("PATH"): true,
		"SETPOINT_KEY=" + string(p.Key()): true, "SETPOINT_DIGEST=" + p.Digest(): true,
	}
	for _, line := range got {
		if !want[line] {
			t.Errorf("the program sees %s", line)
		}
		delete(want, line)
	}
	for line := range want {
		t.Errorf("the program does not see %s", line)
	}
	if where := strings.TrimSpace(b.read(t, "where")); where != b.dir {
		t.Errorf("it works in %s, want %s", where, b.dir)
	}
	if b.read(t, "stdin") != "" {
		t.Error("it reads the agent's standard input")
	}
}

// Whatever stands in the way at the last moment, nothing is started; and the
// program is found before that moment, so that nothing is left to do after it.
func TestLastMoment(t *testing.T) {
	frozen := errors.New("frozen")
	b := program(t, "touch canary")
	asked := 0
	r, err := b.execute(t, nil, func() error { asked++; return frozen })
	if !errors.Is(err, frozen) || !errors.Is(err, execute.ErrNoPermit) || r.Effect != execute.Failed || asked != 1 {
		t.Errorf("%+v, %v, asked %d times", r, err, asked)
	}
	at := now
	b.options.Now = func() time.Time { return at }
	r, err = b.execute(t, nil, func() error { at = now.Add(executetest.TTL); return nil })
	if !errors.Is(err, execute.ErrNoPermit) || r.Effect != execute.Failed {
		t.Errorf("expired while asked: %+v, %v", r, err)
	}
	at = now
	b.action.Timeout = 20 * time.Millisecond
	r, err = b.execute(t, nil, func() error { time.Sleep(50 * time.Millisecond); return nil })
	if err != nil || r.Effect != execute.Failed {
		t.Errorf("the timeout passed while asked: %+v, %v", r, err)
	}
	b.action.Timeout = time.Second
	b.action.Target.Argv[0] = filepath.Join(b.dir, "absent.sh")
	r, err = b.execute(t, nil, func() error { t.Error("asked without a program"); return nil })
	if err == nil || r.Effect != execute.Failed {
		t.Errorf("no program: %+v, %v", r, err)
	}
	b.absent(t, "canary")
}
