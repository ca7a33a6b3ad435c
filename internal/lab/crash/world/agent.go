package world

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
	"syscall"
	"time"
)

// Rig is what is done to an agent from inside; the crash tests' build reads it.
type Rig struct {
	Points string `json:"points,omitempty"`
	Acks   string `json:"acks,omitempty"`
	Clock  string `json:"clock,omitempty"`
	At     string `json:"at,omitempty"`
	Do     string `json:"do,omitempty"`
	// OneThread makes all appends by one thread, whose system calls can then be
	// counted.
	OneThread bool `json:"oneThread,omitempty"`
}

// Agent is one process of the built agent.
type Agent struct {
	cmd  *exec.Cmd
	dir  string
	gone chan struct{}
	err  error
}

// Start runs the agent in a site. wrap stands before its command line, e.g.
// strace and its options.
func Start(bin, dir string, rig Rig, wrap ...string) (*Agent, error) {
	text, err := json.Marshal(rig)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the agent's log: %w", err)
	}
	args := append(append([]string(nil), wrap...), bin, "run")
	// No CommandContext: how it ends is the test.
	a := &Agent{cmd: exec.Command(args[0], args[1:]...), dir: dir, gone: make(chan struct{})} //nolint:noctx // ended by Stop and Kill
	a.cmd.Dir, a.cmd.Stdout, a.cmd.Stderr = dir, log, log
	a.cmd.Env = append(environment(), "SETPOINT_RIG="+string(text))
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the agent: %w", err), log.Close())
	}
	go func() {
		a.err = errors.Join(a.cmd.Wait(), log.Close())
		close(a.gone)
	}()
	return a, nil
}

// environment is this process's without what would send the agent elsewhere.
func environment() []string {
	var out []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "SETPOINT_") && !strings.HasPrefix(name, "OTEL_") && !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			out = append(out, kv)
		}
	}
	return out
}

// Gone is closed once the process has ended.
func (a *Agent) Gone() <-chan struct{} { return a.gone }

// Ended reports whether the process has ended.
func (a *Agent) Ended() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// ExitCode is that of an ended process, -1 when a signal ended it.
func (a *Agent) ExitCode() int {
	<-a.gone
	return a.cmd.ProcessState.ExitCode()
}

// PID is the process's id.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Signal sends a signal to the process, and to what it was wrapped in.
func (a *Agent) Signal(s syscall.Signal) {
	if !a.Ended() {
		_ = syscall.Kill(-a.cmd.Process.Pid, s) // It may be gone just now.
	}
}

// Kill ends the process, and whatever it started, as a power cut of the process
// would.
func (a *Agent) Kill() {
	if !a.Ended() {
		_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-a.gone
	// What it was wrapped in may be gone before the process itself, which still
	// holds its locks.
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if errors.Is(syscall.Kill(-a.cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}

// Stop ends the process gently, and kills one that does not end in time.
func (a *Agent) Stop(within time.Duration) error {
	if a.Ended() {
		return nil
	}
	a.Signal(syscall.SIGTERM)
	select {
	case <-a.gone:
		return a.err
	case <-time.After(within):
	}
	a.Kill()
	return fmt.Errorf("the agent did not end within %s of SIGTERM and was killed", within)
}

// Stopped reports whether the process stands still under SIGSTOP.
func (a *Agent) Stopped() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.PID()))
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(text, []byte(") "))
	return ok && len(rest) > 0 && rest[0] == 'T'
}

// Command runs one program to its end in a folder, and returns what it printed
// and its exit code.
func Command(ctx context.Context, dir string, argv ...string) (out string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env = dir, environment()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return stdout.String() + stderr.String(), exit.ExitCode(), nil
	}
	return stdout.String() + stderr.String(), 0, err
}
