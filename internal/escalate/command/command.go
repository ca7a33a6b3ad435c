// Package command delivers pages to a program of this host. It takes a page and
// runs the program once, with Alertmanager's webhook JSON as its input, so that
// pages reach people where no service of others does.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

const (
	// defaultTimeout bounds one run.
	defaultTimeout = 8 * time.Second
	// linger is how long output is waited for when the program has ended and
	// something that it started still holds it open.
	linger = time.Second
	// stuck is how long a killed program may take to go. One that hangs inside the
	// kernel takes for ever.
	stuck = time.Second
	// maxOutput is how much of what it prints is kept.
	maxOutput = 4096
)

// Options are one receiver of setpoint.yaml.
type Options struct {
	Name string
	// Argv is the program with its arguments. There is no shell, and nothing of a
	// page becomes an argument.
	Argv []string
	// Check says whether a program may be run, and which file that is, each time
	// before it is run.
	Check func(program string) (file string, err error)
	// Directory is where it runs.
	Directory string
	// Timeout of one run; zero is 8 s.
	Timeout time.Duration
	// ExternalURL is where the agent's pages are; empty links nowhere.
	ExternalURL string
}

// Receiver is one program. It is safe for concurrent use: a page that hangs holds
// up no other.
type Receiver struct{ o Options }

var _ escalate.Receiver = (*Receiver)(nil)

// New returns a receiver.
func New(o Options) (*Receiver, error) {
	switch {
	case len(o.Argv) == 0 || o.Argv[0] == "":
		return nil, fmt.Errorf("receiver %q: command: argv is empty: name the program", o.Name)
	case o.Check == nil:
		return nil, fmt.Errorf("receiver %q: command: no check of the program (Options.Check)", o.Name)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Receiver{o: o}, nil
}

// Name returns the receiver's name.
func (r *Receiver) Name() string { return r.o.Name }

// Resolve finds a program by its path, or by its name in PATH. The answer is a
// whole path: a program is run in another folder than the one that it is found
// from.
func Resolve(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("the program %s cannot be found or is not executable: %w", program, errors.Unwrap(err))
	}
	return filepath.Abs(path)
}

// Send runs the program. Exit 0 is a delivery; anything else is not, and is tried
// again, so a program may see the same page more than once.
func (r *Receiver) Send(ctx context.Context, p escalate.Page, _ string) (ref string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	if err := r.run(ctx, p); err != nil {
		return "", fmt.Errorf("page %s to command %s: %w", p.ID, r.o.Name, err)
	}
	return "", nil
}

func (r *Receiver) run(ctx context.Context, p escalate.Page) error {
	input, err := json.Marshal(escalate.NewMessage(p, r.o.Name, r.o.ExternalURL))
	if err != nil {
		return err
	}
	path, err := Resolve(r.o.Argv[0])
	if err != nil {
		return err
	}
	file, err := r.o.Check(path)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, file)
	cmd.Args = r.o.Argv
	cmd.Dir = r.o.Directory
	cmd.Env = environment(p)
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	var said output
	cmd.Stderr = &said // What it prints besides is nobody's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var killed atomic.Bool
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		killed.Store(err == nil)
		return err
	}
	cmd.WaitDelay = linger
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the program %s cannot be started: %w", r.o.Argv[0], err)
	}
	err = wait(ctx, cmd)
	return r.verdict(cmd, killed.Load(), err, said.firstLine())
}

// errStuck says that a killed process is still there.
var errStuck = errors.New("it does not go")

// wait ends a little after the context at the latest, whatever the process does.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger+stuck)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-patience.Done():
		return errStuck
	}
}

// verdict is nil for exit 0 alone. A program that left something behind which
// holds its output open has delivered all the same.
func (r *Receiver) verdict(cmd *exec.Cmd, killed bool, err error, said string) error {
	if said != "" {
		said = ": " + said
	}
	switch {
	case errors.Is(err, errStuck):
		return fmt.Errorf("killed at its deadline of %s, and it does not go", r.o.Timeout)
	case killed:
		return fmt.Errorf("killed at its deadline of %s with all that it started%s", r.o.Timeout, said)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil
	case cmd.ProcessState == nil:
		return fmt.Errorf("nobody knows how it ended: %w", err)
	case cmd.ProcessState.Success():
		return nil // It did not read all of its input, which is its own choice.
	}
	return fmt.Errorf("%s%s", cmd.ProcessState, said)
}

// environment is PATH and what the page is about, and nothing else of the agent's:
// it holds secrets that no program needs.
func environment(p escalate.Page) []string {
	env := []string{}
	if path, ok := os.LookupEnv("PATH"); ok {
		env = append(env, "PATH="+path)
	}
	for _, v := range [][2]string{
		{"SETPOINT_PAGE", p.ID}, {"SETPOINT_STATUS", status(p)},
		{"SETPOINT_SERVICE", p.Service}, {"SETPOINT_SEVERITY", p.Severity},
	} {
		// No variable can hold a zero byte.
		env = append(env, v[0]+"="+strings.ReplaceAll(v[1], "\x00", ""))
	}
	return env
}

// status is firing, resolved or heartbeat: a program that wakes people must be able
// to tell without reading JSON.
func status(p escalate.Page) string {
	switch {
	case !p.EndedAt.IsZero():
		return "resolved"
	case p.Reason == escalate.Heartbeat:
		return "heartbeat"
	}
	return "firing"
}

// output keeps the beginning of what a process prints, and takes the rest, so that
// one that talks much neither waits nor fills the memory.
type output struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps what fits and never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p[:min(len(p), maxOutput-len(o.kept))]...)
	return len(p), nil
}

// firstLine is the first line that says something, fit to be shown.
func (o *output) firstLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(string(o.kept)) {
		if clean := execute.CleanText(line, 200); clean != "" {
			return clean
		}
	}
	return ""
}
