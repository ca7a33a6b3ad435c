package crash

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// traced are the system calls by which SQLite and the lock change a file.
var traced = []string{"pwrite64", "fsync", "fdatasync", "ftruncate", "open", "openat", "flock"}

// storeFiles are SQLite's own, and allFiles those that stand beside them too.
var (
	storeFiles = []string{"", "-wal", "-shm"}
	allFiles   = []string{"", "-wal", "-shm", ".lock", ".seen"}
)

// trace is what strace does, to which files.
type trace struct {
	files           []string
	log             string
	syscall, inject string
}

// strace is the command line that traces the ledger's files. Its filter needs
// absolute paths; a relative one matches nothing, silently.
func strace(w *world.World, t trace) []string {
	// Without --seccomp-bpf, under which nothing is injected.
	argv := []string{"strace", "-f", "-qq", "-o", t.log, "-e", "trace=" + t.syscall}
	for _, file := range t.files {
		argv = append(argv, "-P", w.Path(world.LedgerFile+file))
	}
	if t.inject != "" {
		argv = append(argv, "-e", "inject="+t.syscall+":"+t.inject)
	}
	return argv
}

// noStrace says why strace cannot be used; "" where it can.
func noStrace(ctx context.Context) string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "strace is not in PATH: install Debian's package strace"
	}
	out, err := exec.CommandContext(ctx, "strace", "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("strace may not trace here: %v: %s", err, strings.TrimSpace(string(out)))
	}
	return ""
}

// skippedCase stands for a class that cannot be tried on this machine.
func skippedCase(why string) []Case {
	return []Case{{Name: "nothing", run: func(context.Context, *world.Slot) Result { return Result{Skipped: why} }}}
}

// syscallCases kill at each system call that touches the ledger's files, before
// it is carried out. strace counts the calls of each thread by itself, so one
// thread makes all appends.
func syscallCases(ctx context.Context, p *planner) ([]Case, error) {
	if why := noStrace(ctx); why != "" {
		return skippedCase(why), nil
	}
	counts, err := p.countSyscalls(ctx)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range traced {
		for n := 1; n <= counts[name]; n++ {
			if sample := name == "pwrite64" && n%25 == 0 || name == "fsync" && n == 7; p.short && !sample {
				continue
			}
			cases = append(cases, Case{Name: fmt.Sprintf("kill before %s %d", name, n), run: func(ctx context.Context, s *world.Slot) Result {
				return killedInside(ctx, s, name, n)
			}})
		}
	}
	return cases, nil
}

// countSyscalls gives the largest number of each call by one thread in a whole
// episode.
func (p *planner) countSyscalls(ctx context.Context) (map[string]int, error) {
	if p.calls != nil {
		return p.calls, nil
	}
	w, err := p.New(ctx, episodes[0])
	if err != nil {
		return nil, err
	}
	log := w.Path("strace.log")
	agent, err := w.Start(world.Rig{OneThread: true}, strace(w, trace{files: allFiles, log: log, syscall: strings.Join(traced, ",")})...)
	if err != nil {
		return nil, err
	}
	r := begin(w)
	r.settled(ctx, agent)
	if err := w.Close(); err != nil {
		return nil, err
	}
	if len(r.result.Violations) > 0 {
		return nil, fmt.Errorf("count system calls: %s", strings.Join(r.result.Violations, "; "))
	}
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	p.calls, err = tally(bufio.NewScanner(f))
	return p.calls, err
}

var callLine = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// tally counts calls by thread and gives the largest count of each.
func tally(lines *bufio.Scanner) (map[string]int, error) {
	byThread, most := map[string]int{}, map[string]int{}
	for lines.Scan() {
		m := callLine.FindStringSubmatch(lines.Text())
		if m == nil || !slices.Contains(traced, m[2]) {
			continue
		}
		byThread[m[1]+m[2]]++
		most[m[2]] = max(most[m[2]], byThread[m[1]+m[2]])
	}
	return most, lines.Err()
}

func killedInside(ctx context.Context, s *world.Slot, syscall string, n int) Result {
	w, err := s.New(ctx, episodes[0])
	if err != nil {
		return failed(err)
	}
	r := begin(w)
	agent, err := r.Start(world.Rig{OneThread: true}, strace(w, trace{allFiles, os.DevNull, syscall, fmt.Sprintf("signal=KILL:when=%d", n)})...)
	if err != nil {
		return failed(err)
	}
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() || r.over(ctx) })
	switch {
	case agent.Ended() && agent.ExitCode() < 0:
		r.result.Reached = true
	case agent.Ended():
		r.broke("the agent ended by itself, with exit code %d", agent.ExitCode())
	case err != nil:
		r.broke("%v", err)
	}
	agent.Kill()
	r.settle(ctx)
	return r.judge(ctx)
}
