package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

const (
	// linger is how long output is waited for when the program has ended and
	// something that it started still holds it open.
	linger = time.Second
	// stuck is how long a killed program may take to go. One that hangs inside
	// the kernel takes for ever.
	stuck = 3 * time.Second
)

// oneRun is one process that was not started yet, with what it says.
type oneRun struct {
	cmd *exec.Cmd
	out output
	// killed: the group was still there when the deadline passed.
	killed atomic.Bool
}

// prepare does everything that can fail before a program starts.
func (e *Executor) prepare(ctx context.Context, argv []string, variables ...string) (*oneRun, error) {
	listed, file, err := e.program(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, file)
	cmd.Args = append([]string{listed}, argv[1:]...)
	cmd.Dir = e.directory
	cmd.Env = append(e.environment(), variables...)
	cmd.Stdin = nil // The null device.
	// No Pdeathsig: an agent that dies must not cut a change in two. What was
	// started without a receipt is in doubt in the ledger, and is asked for when
	// the agent is back; half of a change is harder to mend than a whole one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r := &oneRun{cmd: cmd}
	cmd.Cancel = func() error {
		err := killGroup(cmd.Process.Pid)
		r.killed.Store(err == nil)
		return err
	}
	cmd.WaitDelay = linger
	return r, nil
}

// killGroup ends everything that is in the group which a process leads. It is
// not asked politely first: after the deadline nothing more may change.
func killGroup(leader int) error {
	err := syscall.Kill(-leader, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// environment are the listed variables that the agent has. Nothing else is
// handed on: the agent holds secrets that no program needs.
func (e *Executor) environment() []string {
	env := []string{}
	for _, name := range e.envAllow {
		if value, ok := e.lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// ending is how a run ended. Unless it was not started or exited by itself,
// nobody knows what it did.
type ending struct {
	unstarted error
	exited    bool
	code      int
	// clean: it exited with 0, and nothing held its output open.
	clean  bool
	why    string
	output string
}

// run starts the process and waits for its end, which comes a little after the
// context's at the latest.
func (r *oneRun) run(ctx context.Context) ending {
	if err := r.cmd.Start(); err != nil {
		return ending{unstarted: err}
	}
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	select {
	case err := <-done:
		return r.ended(ctx, err)
	case <-ctx.Done():
	}
	patience := time.NewTimer(linger + stuck)
	defer patience.Stop()
	select {
	case err := <-done:
		return r.ended(ctx, err)
	case <-patience.C:
		return ending{why: killedBy(ctx) + ", and it does not go", output: r.out.String()}
	}
}

// ended reads the state of a process that was waited for. The code of one
// whose group was killed is not believed: what it had started was cut off.
func (r *oneRun) ended(ctx context.Context, err error) ending {
	end := ending{output: r.out.String()}
	var status syscall.WaitStatus
	if r.cmd.ProcessState != nil {
		status, _ = r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	switch {
	case r.killed.Load():
		end.why = killedBy(ctx)
	case r.cmd.ProcessState == nil:
		end.why = "nobody knows how it ended: " + err.Error()
	case status.Exited():
		end.exited, end.code, end.clean = true, status.ExitStatus(), err == nil
		end.why = fmt.Sprintf("exit %d", end.code)
	default:
		end.why = "killed by somebody else: " + status.Signal().String()
	}
	return end
}

func killedBy(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "killed at its deadline"
	}
	return "killed because its caller gave up"
}

// output keeps the beginning of what a process prints, and takes the rest, so
// that a process that talks much neither waits nor fills the memory.
type output struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// Write keeps what fits and never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := min(len(p), execute.MaxAnswer-len(o.kept))
	o.kept = append(o.kept, p[:room]...)
	o.cut = o.cut || room < len(p)
	return len(p), nil
}

// String returns what was kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.kept)
}

// whole reports whether everything was kept.
func (o *output) whole() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.cut
}
