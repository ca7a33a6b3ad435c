package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// agent is the built setpoint: a process of its own, and the command line
// beside it.
type agent struct {
	bin  string
	site *site
	http *http.Client
	cmd  *exec.Cmd
	// gone is closed when the process ended; err is valid from then on.
	gone chan struct{}
	err  error
	// stopped: somebody was told how it ended.
	stopped bool
}

func newAgent(bin string, s *site) *agent {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.path(socketFile))
	}
	return &agent{bin: bin, site: s, http: &http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		Timeout:   5 * time.Second,
	}}
}

// environment is this process's without what would send the agent elsewhere.
func environment(all []string) []string {
	var out []string
	for _, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SETPOINT_") || strings.HasPrefix(name, "OTEL_") ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			continue
		}
		out = append(out, kv)
	}
	return out
}

// command runs one command of the agent's command line to its end.
func (a *agent) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, a.bin, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = a.site.dir, environment(os.Environ()), childAttr()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("setpoint %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// start runs the agent. Its log is in the site.
func (a *agent) start() error {
	log, err := os.OpenFile(a.site.path(logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the agent's log: %w", err)
	}
	// No CommandContext: it is ended by stop alone, gently.
	a.cmd = exec.Command(a.bin, "run") //nolint:noctx // it outlives every context but is ended by stop
	a.cmd.Dir, a.cmd.Env, a.cmd.SysProcAttr = a.site.dir, environment(os.Environ()), childAttr()
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the agent: %w", err), log.Close())
	}
	a.gone = make(chan struct{})
	go func() {
		a.err = errors.Join(a.cmd.Wait(), log.Close())
		close(a.gone)
	}()
	return nil
}

// patience is how long the agent may take to finish what it began.
const patience = 10 * time.Second

// stop ends the process by its id: gently at first, then not. An agent that
// never started, or is gone, is stopped.
func (a *agent) stop() error {
	if a.gone == nil || a.stopped {
		return nil
	}
	a.stopped = true
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // It may be gone already.
	select {
	case <-a.gone:
		return a.err
	case <-time.After(patience):
	}
	_ = a.cmd.Process.Kill() // It may have gone just now.
	<-a.gone
	return fmt.Errorf("the agent (pid %d) did not end within %s and was killed", a.cmd.Process.Pid, patience)
}

// died says why the agent is gone, with the end of its log.
func (a *agent) died() error {
	text, err := os.ReadFile(a.site.path(logFile))
	if err != nil {
		return fmt.Errorf("the agent ended (%w), and its log cannot be read: %w", a.err, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	tail := strings.Join(lines[max(0, len(lines)-5):], "\n  ")
	if a.err == nil {
		return fmt.Errorf("the agent ended by itself; its log ends with\n  %s", tail)
	}
	return fmt.Errorf("the agent ended: %w; its log ends with\n  %s", a.err, tail)
}

// get reads one answer of the API over the agent's socket.
func (a *agent) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://setpoint/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // Everything that matters was read.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: HTTP %d: %s", path, resp.StatusCode, bytes.TrimSpace(body))
	}
	return json.Unmarshal(body, into)
}

// snapshot is what the agent says of itself at one moment.
type snapshot struct {
	services   []web.Service
	objectives []web.Objective
	decisions  []web.Decision
	approvals  []web.Approval
	pages      []web.Page
}

// look asks for everything that the demo shows.
func (a *agent) look(ctx context.Context) (snapshot, error) {
	var s snapshot
	err := errors.Join(
		items(ctx, a, "services", &s.services), items(ctx, a, "objectives", &s.objectives),
		items(ctx, a, "decisions", &s.decisions), items(ctx, a, "approvals", &s.approvals),
		items(ctx, a, "pages", &s.pages),
	)
	return s, err
}

func items[T any](ctx context.Context, a *agent, path string, into *[]T) error {
	var list web.List[T]
	if err := a.get(ctx, path, &list); err != nil {
		return err
	}
	*into = list.Items
	return nil
}
