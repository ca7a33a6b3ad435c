package crash

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// recording is the append by which a click is recorded.
const recording = "answer#1"

// clickedInside are the cases that kill an agent before each system call by which
// the answer gets onto the disk. The agent stands still before that append while
// strace takes hold of it, so that no call before it counts.
func clickedInside(ctx context.Context, p *planner) ([]Case, error) {
	if why := noStrace(ctx); why != "" {
		return skippedCase(why), nil
	}
	counts, err := p.countRecording(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the system calls of an answer's record: %w", err)
	}
	var cases []Case
	for _, name := range traced {
		for n := 1; n <= counts[name]; n++ {
			cases = append(cases, clickCase(clicked[0], fmt.Sprintf("kill before %s %d of the record", name, n), 0,
				func(ctx context.Context, r *run) bool { return r.runInside(ctx, name, n) }))
		}
	}
	return cases, nil
}

// countRecording gives the number of each system call on the ledger's files from
// before the append of an answer until after it.
func (p *planner) countRecording(ctx context.Context) (map[string]int, error) {
	w, err := p.New(ctx, clicked[0])
	if err != nil {
		return nil, err
	}
	r := begin(w)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	w.Click(watched, 0)
	agent, err := r.Start(world.Rig{At: "before " + recording, Do: "stop"})
	if err != nil {
		return nil, err
	}
	defer agent.Kill()
	if !r.stopped(ctx, agent) {
		return nil, fmt.Errorf("nobody's answer was recorded: %s", strings.Join(r.result.Violations, "; "))
	}
	log := w.Path("strace.log")
	hold, err := attach(w, agent, trace{files: allFiles, log: log, syscall: strings.Join(traced, ",")})
	if err != nil {
		return nil, err
	}
	agent.Signal(syscall.SIGCONT)
	err = r.Until(ctx, agent, patience, func() bool { return passed(w, "after "+recording) })
	agent.Kill()
	hold.end()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, m := range callLine.FindAllSubmatch(text, -1) {
		counts[string(m[2])]++
	}
	if counts["pwrite64"] == 0 {
		return nil, fmt.Errorf("no write was traced: %q", text)
	}
	return counts, w.Close()
}

// passed reports whether a point was passed.
func passed(w *world.World, point string) bool {
	points, err := w.Points()
	if err != nil {
		return false
	}
	for _, p := range points {
		if p.Point == point {
			return true
		}
	}
	return false
}

// runInside lets an agent die before the n-th call of that name in the append of
// an answer.
func (r *run) runInside(ctx context.Context, call string, n int) bool {
	agent, err := r.Start(world.Rig{At: "before " + recording, Do: "stop"})
	if err != nil {
		r.broke("%v", err)
		return false
	}
	defer agent.Kill()
	if !r.stopped(ctx, agent) {
		return false
	}
	hold, err := attach(r.World, agent, trace{allFiles, os.DevNull, call, fmt.Sprintf("signal=KILL:when=%d", n)})
	if err != nil {
		r.broke("%v", err)
		return false
	}
	defer hold.end()
	agent.Signal(syscall.SIGCONT)
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() || r.over(ctx) })
	if err != nil && !agent.Ended() {
		r.broke("%v", err)
	}
	return agent.Ended()
}

// hold is a strace that has taken hold of a running agent.
type hold struct{ cmd *exec.Cmd }

// attach traces a process that stands still, and returns once all its threads are
// traced.
func attach(w *world.World, agent *world.Agent, t trace) (hold, error) {
	argv := strace(w, t)
	argv = append(argv, "-p", fmt.Sprint(agent.PID()))
	h := hold{cmd: exec.Command(argv[0], argv[1:]...)} //nolint:noctx // it ends with the agent, or by end
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	h.cmd.Stderr = &said
	if err := h.cmd.Start(); err != nil {
		return h, fmt.Errorf("strace a process that runs: %w", err)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if traced := tracer(agent.PID()); traced {
			return h, nil
		}
	}
	h.end()
	return h, fmt.Errorf("strace took no hold of process %d: %s", agent.PID(), said.String())
}

// end lets go.
func (h hold) end() {
	if h.cmd.ProcessState == nil && h.cmd.Process != nil {
		_ = h.cmd.Process.Kill() // It may have ended with the agent.
		_ = h.cmd.Wait()
	}
}

var untraced = regexp.MustCompile(`(?m)^TracerPid:\t0$`)

// tracer reports whether every thread of a process is traced.
func tracer(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		if text, err := os.ReadFile(thread); err != nil || untraced.Match(text) {
			return false
		}
	}
	return true
}
