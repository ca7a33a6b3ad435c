package command_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// pid waits for a process to have written its id.
func (b bench) pid(t testing.TB, name string) int {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(b.dir, name))
		if n, convErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && convErr == nil {
			return n
		}
	}
	t.Fatalf("nobody wrote %s", name)
	return 0
}

// alive reports whether a process runs; one that only waits to be reaped does
// not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func gone(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d lives on", pid)
		}
	}
}

// kill ends a process that the executor lets live.
func kill(t testing.TB, pid int) {
	t.Helper()
	if !alive(pid) {
		t.Errorf("process %d does not live on", pid)
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	gone(t, pid)
}

// bounded runs an action and fails when it takes about as long as its program
// would.
func (b bench) bounded(t testing.TB, most time.Duration) execute.Receipt {
	t.Helper()
	began := time.Now()
	r, err := b.execute(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > most {
		t.Errorf("took %s, want at most %s", took, most)
	}
	return r
}

// At the deadline the whole group is killed: what the program started would
// otherwise go on changing things after the horizon.
func TestDeadlineKillsTheGroup(t *testing.T) {
	b := program(t, `trap '' TERM INT HUP
sh -c 'trap "" TERM; echo $$ >grandchild.tmp; mv grandchild.tmp grandchild; sleep 50; touch canary' &
echo begun
sleep 50
touch canary`)
	b.action.Timeout = time.Second
	r := b.bounded(t, 20*time.Second)
	if r.Effect != execute.InDoubt || r.Detail != "killed at its deadline: begun" || !r.AppliedAt.IsZero() {
		t.Errorf("%+v, want in-doubt", r)
	}
	gone(t, b.pid(t, "grandchild"))
	b.absent(t, "canary")
}

// What left the group cannot be found. The action is in doubt, and Execute
// comes back all the same.
func TestDeadlineMissesWhatLeftTheGroup(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("no setsid here")
	}
	b := program(t, setsid+` sh -c 'echo $$ >away.tmp; mv away.tmp away; sleep 50' &
sleep 50`)
	b.action.Timeout = time.Second
	if r := b.bounded(t, 20*time.Second); r.Effect != execute.InDoubt {
		t.Errorf("%+v, want in-doubt", r)
	}
	kill(t, b.pid(t, "away"))
}

// A program that ends by itself has said how it went. What it leaves behind
// may be what it was for: it is neither waited for nor killed.
func TestLeavesAProcessBehind(t *testing.T) {
	cases := map[string]struct {
		reason, body string
		needs        string
	}{
		"HoldsTheOutput": {"a child that keeps the output open", `sh -c 'echo $$ >left.tmp; mv left.tmp left; sleep 50' &
while ! [ -e left ]; do :; done; echo done`, ""},
		"DoubleFork": {"a grandchild that nobody waits for", `( ( sh -c 'echo $$ >left.tmp; mv left.tmp left; sleep 50' & ) & )
while ! [ -e left ]; do :; done; echo done`, ""},
		"Daemon": {"one that leaves the group and redirects its output", `setsid sh -c 'echo $$ >left.tmp; mv left.tmp left; sleep 50' >/dev/null 2>&1 </dev/null &
while ! [ -e left ]; do :; done; echo done`, "setsid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.needs != "" {
				if _, err := exec.LookPath(tc.needs); err != nil {
					t.Skip(err)
				}
			}
			b := program(t, tc.body)
			b.options.EnvAllow = []string{"PATH"}
			if r := b.bounded(t, 15*time.Second); r.Effect != execute.Applied || r.Detail != "exit 0: done" {
				t.Errorf("%s: %+v, want applied", tc.reason, r)
			}
			kill(t, b.pid(t, "left"))
		})
	}
}

// A program that floods neither fills the memory nor waits for a reader, and
// is killed at the deadline like another.
func TestFlood(t *testing.T) {
	b := program(t, `echo first; exec yes "much to say"`)
	b.options.EnvAllow = []string{"PATH"}
	b.action.Timeout = 500 * time.Millisecond
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := b.bounded(t, 20*time.Second)
	runtime.ReadMemStats(&after)
	if r.Effect != execute.InDoubt || !strings.HasPrefix(r.Detail, "killed at its deadline: first much to say") || len(r.Detail) > 2*execute.MaxDetail {
		t.Errorf("%+v, want in-doubt with the beginning", r)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes were allocated for a flood, want 4 MiB at most", got)
	}
	b = program(t, `head -c 3000000 /dev/zero | tr '\0' x; exit 3`)
	b.options.EnvAllow = []string{"PATH"}
	if r := b.bounded(t, 15*time.Second); r.Effect != execute.NoOp {
		t.Errorf("%+v, want that 3 MB do not block it", r)
	}
}

// Nobody waits for longer than the caller does.
func TestCallerGivesUp(t *testing.T) {
	b := program(t, "echo $$ >leader.tmp; mv leader.tmp leader; sleep 50")
	ctx, cancel := context.WithCancel(t.Context())
	p := executetest.Permit(t, b.action, nil, now)
	go func() {
		defer cancel()
		b.pid(t, "leader")
	}()
	r, err := b.executor(t).Execute(ctx, p, nil)
	if err != nil || r.Effect != execute.InDoubt || r.Detail != "killed because its caller gave up" {
		t.Errorf("%+v, %v, want in-doubt", r, err)
	}
	gone(t, b.pid(t, "leader"))
}

// The program leads a group of its own, so that a Ctrl-C in the agent's
// terminal does not reach it.
func TestOwnGroup(t *testing.T) {
	b := program(t, "echo $$ >leader; ps -o pgid= -p $$ >group")
	b.options.EnvAllow = []string{"PATH"}
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip(err)
	}
	b.bounded(t, 15*time.Second)
	if got, want := strings.TrimSpace(b.read(t, "group")), strings.TrimSpace(b.read(t, "leader")); got != want {
		t.Errorf("group %s of process %s", got, want)
	}
}

func TestObserve(t *testing.T) {
	cases := map[string]struct {
		reason, body string
		want         execute.Observation
	}{
		"Known": {"the whole answer", `echo "{\"known\":true,\"result\":\"applied\",\"state\":{\"replicas\":6}}"`, execute.Observation{
			Known: true, KeyKnown: true, Result: execute.Applied, State: propose.Live{"replicas": int64(6)},
		}},
		"Unknown":  {"known false is an answer", `echo '{"known":false}'`, execute.Observation{Known: true, State: propose.Live{}}},
		"Stderr":   {"what goes wrong beside it does not matter", `echo '{"known":false}'; echo warning >&2`, execute.Observation{Known: true, State: propose.Live{}}},
		"Exit":     {"another exit is no answer, whatever it says", `echo '{"known":false}'; echo broken >&2; exit 1`, execute.Observation{Detail: `no answer: exit 1: broken {"known":false}`}},
		"NoOpExit": {"nor are the codes of an action", `echo '{"known":false}'; exit 3`, execute.Observation{Detail: `no answer: exit 3: {"known":false}`}},
		"Signal":   {"nor is a signal", `echo '{"known":false}'; kill -9 $$`, execute.Observation{Detail: `no answer: killed by somebody else: killed: {"known":false}`}},
		"Silent":   {"nor is silence", ":", execute.Observation{Detail: "no answer: no JSON object"}},
		"Words":    {"nor are words", "echo known", execute.Observation{Detail: "no answer: no JSON object"}},
		"Half":     {"nor is half an object", `printf '{"known":false'`, execute.Observation{Detail: "no answer: the JSON object is cut off"}},
		"Long":     {"nor is one that does not end", `printf '{"known":false}'; head -c 70000 /dev/zero | tr '\0' ' '`, execute.Observation{Detail: "no answer: it prints more than 65536 bytes"}},
		"Open":     {"nor is one that may go on", `echo '{"known":false}'; sleep 20 & echo $! >left`, execute.Observation{Detail: "no answer: exit 0, but something that it started holds its output open"}},
		"Key":      {"it is asked for that key, and for nothing else", `[ -z "$SETPOINT_DIGEST" ] && [ $# = 1 ] && [ "$1" = shop ] && printf '{"known":false,"state":{"key":"%s"}}' "$SETPOINT_KEY"`, execute.Observation{Known: true, State: propose.Live{"key": "checkout:1764417600-600"}}},
		"Hangs":    {"nor is none in time", "sleep 50", execute.Observation{Detail: "no answer: killed at its deadline:"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := program(t, tc.body)
			b.action.Target.StatusArgv = []string{b.action.Target.Argv[0], "shop"}
			b.options.EnvAllow = []string{"PATH"}
			if name == "Hangs" {
				b.action.Timeout = 200 * time.Millisecond
			}
			o := b.executor(t).Observe(t.Context(), b.action, "checkout:1764417600-600")
			if diff := cmp.Diff(tc.want, o); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if name == "Open" {
				kill(t, b.pid(t, "left"))
			}
		})
	}
}

func TestObserveIsBoundToo(t *testing.T) {
	b := program(t, "touch canary; echo '{\"known\":false}'")
	e := b.executor(t)
	for detail, change := range map[string]func(*bench){
		"the action has no statusArgv": func(b *bench) { b.action.Target.StatusArgv = nil },
		"executors.command.allow":      func(b *bench) { b.action.Target.StatusArgv = []string{"/bin/sh"} },
		"needs parameter":              func(b *bench) { b.action.Target.StatusArgv = []string{b.action.Target.Argv[0], "${parameters.x}"} },
		"has no timeout":               func(b *bench) { b.action.Timeout = 0 },
	} {
		changed := b
		change(&changed)
		if o := e.Observe(t.Context(), changed.action, "k"); o.Known || !strings.Contains(o.Detail, detail) {
			t.Errorf("%+v, want no answer: %s", o, detail)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if o := e.Observe(cancelled, b.action, "k"); o.Known {
		t.Errorf("a cancelled question: %+v", o)
	}
	b.absent(t, "canary")
}

// One executor serves many services at once.
func TestConcurrent(t *testing.T) {
	b := program(t, `echo "$1" >>all`, "x").texts("x")
	e := b.executor(t)
	p := executetest.Permit(t, b.action, propose.Parameters{"x": "a"}, now)
	done := make(chan error)
	for range 8 {
		go func() {
			r, err := e.Execute(context.Background(), p, nil)
			if err == nil && r.Effect != execute.Applied {
				err = errors.New(r.Detail)
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(b.read(t, "all"), "\n"); n != 8 {
		t.Errorf("%d runs, want 8", n)
	}
}
