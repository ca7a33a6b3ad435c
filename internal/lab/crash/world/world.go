package world

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
	"path/filepath"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// lateBy is when a late actuator acts after it hung up, well within its stated
// lateness.
const lateBy = 700 * time.Millisecond

// Options are what a run differs in.
type Options struct {
	// Class of the one action: auto (the default) or approval.
	Class string
	// Mode is how the actuator answers; ok when empty.
	Mode executetest.Mode
	// Slack is how clicks come in, http or socket; no channel when empty.
	Slack string
}

// World is one run: a site, and what the servers of its slot say.
type World struct {
	// Dir is the site's folder.
	Dir      string
	Source   *Source
	Actuator *executetest.Actuator
	Pager    *pager.Pager
	// Slack is asked only by a site that has one.
	Slack *fakeslack.Slack

	// Enter stands before every command line, of agents too: how to get into
	// the site's mount namespace, where it has one of its own.
	Enter []string

	bin     string
	o       Options
	http    *http.Client
	closed  bool
	effects int
	// dsn is how a shared ledger is reached, replicas are the sites on it.
	dsn      string
	replicas []*World
}

func (s *Slot) world(dir string, o Options) (*World, error) {
	w := &World{Dir: dir, Source: &Source{}, Pager: pager.New(time.Now), Slack: fakeslack.New(fakeslack.Options{}), bin: s.bin, o: o}
	if err := w.actuate(); err != nil {
		return nil, err
	}
	w.dial()
	s.current.Store(w)
	return w, nil
}

// dial makes the client that speaks over the agent's socket.
func (w *World) dial() {
	path := w.Path("setpoint.sock")
	w.http = &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}},
	}
}

// actuate makes the actuator, which knows again what its journal says.
func (w *World) actuate() (err error) {
	w.Actuator, err = executetest.NewActuator(executetest.ActuatorOptions{
		Journal: w.Path(JournalFile), Secret: []byte(secret), State: map[string]any{"level": 1}, Now: time.Now,
		OnApply: func(e execute.Envelope) {
			if fmt.Sprint(e.Parameters["level"]) == Fixed {
				w.Source.Mend(time.Now())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("the actuator: %w", err)
	}
	switch o := w.o; o.Mode {
	case "":
	case executetest.ModeLate, executetest.ModeLateDropReply:
		w.Actuator.Treat(executetest.Treatment{Mode: o.Mode, Delay: lateBy})
	default:
		w.Actuator.SetMode(o.Mode)
	}
	return nil
}

// Path is a file of the site.
func (w *World) Path(name string) string { return filepath.Join(w.Dir, name) }

// Close waits for what the actuator is still to do and closes its journal.
func (w *World) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.Slack.Close()
	for end := time.Now().Add(2 * lateBy); w.coming() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	return w.Actuator.Close()
}

// Reopen has the actuator go on with its journal after a Close.
func (w *World) Reopen() error {
	w.closed = false
	return w.actuate()
}

// coming reports whether a late effect was announced and has not happened.
func (w *World) coming() bool {
	open := 0
	for _, r := range w.Actuator.Journal() {
		switch {
		case r.Late && r.Applied:
			open--
		case r.Late:
			open++
		}
	}
	return open > 0
}

// Start runs the agent with its points and acknowledged entries written down.
func (w *World) Start(rig Rig, wrap ...string) (*Agent, error) {
	rig.Points, rig.Acks, rig.Clock = w.Path(PointsFile), w.Path(AcksFile), w.Path(ClockFile)
	return Start(w.bin, w.Dir, rig, slices.Concat(w.Enter, wrap)...)
}

// Command runs one command of the agent's command line in the site.
func (w *World) Command(ctx context.Context, args ...string) (out string, code int, err error) {
	return Command(ctx, w.Dir, slices.Concat(w.Enter, []string{w.bin}, args)...)
}

// Until waits for something to become true while the agent lives.
func (w *World) Until(ctx context.Context, agent *Agent, within time.Duration, ok func() bool) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(within)
	defer end.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-agent.Gone():
			return fmt.Errorf("%w: exit code %d\n%s", ErrEnded, agent.ExitCode(), w.tail())
		case <-end.C:
			return fmt.Errorf("%w: nothing within %s\n%s", ErrTime, within, w.tail())
		case <-tick.C:
		}
	}
	return nil
}

// The errors of Until.
var (
	ErrEnded = errors.New("the agent ended by itself")
	ErrTime  = errors.New("it did not happen")
)

func errExit(code int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("exit code %d", code)
}

// tail is the end of the agent's log.
func (w *World) tail() string {
	text := bytes.TrimSpace(w.Log())
	lines := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-6):], []byte("\n")))
}

// Log is what the agents of this run logged.
func (w *World) Log() []byte {
	text, _ := os.ReadFile(w.Path(LogFile)) // none yet
	return text
}

// call asks the agent over its socket.
func (w *World) call(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://setpoint"+path, in)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // Everything that matters was read.
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: HTTP %d: %s", method, path, resp.StatusCode, bytes.TrimSpace(data))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

// Services are those that the running agent knows.
func (w *World) Services(ctx context.Context) ([]web.Service, error) {
	var list web.List[web.Service]
	err := w.call(ctx, http.MethodGet, "/api/v1/services", nil, &list)
	return list.Items, err
}

// Decisions are those that the running agent knows.
func (w *World) Decisions(ctx context.Context) ([]web.Decision, error) {
	var list web.List[web.Decision]
	err := w.call(ctx, http.MethodGet, "/api/v1/decisions", nil, &list)
	return list.Items, err
}

// Ready reports whether the agent calls itself ready.
func (w *World) Ready(ctx context.Context) bool {
	return w.call(ctx, http.MethodGet, "/-/ready", nil, nil) == nil
}

// Break begins a new episode: only an effect that comes from now on ends it.
func (w *World) Break() { w.effects = len(w.Actuator.Effects()) }

// Settled reports whether the episode is over and nothing is open: the actuator
// did something in it, the service is met without an episode, and every effect is
// final and judged.
func (w *World) Settled(ctx context.Context) bool {
	if len(w.Actuator.Effects()) <= w.effects {
		return false
	}
	services, err := w.Services(ctx)
	if err != nil || len(services) != 1 || services[0].State != "met" || services[0].Episode != "" {
		return false
	}
	decisions, err := w.Decisions(ctx)
	if err != nil {
		return false
	}
	for _, d := range decisions {
		if d.Outcome == "pending" || !execute.Effect(d.Effect).Final() && d.Effect != string(execute.None) {
			return false
		}
	}
	return true
}

// Answer approves every open ticket, as the person on call would, until ctx
// ends. An agent that is dead or gone is asked again.
func (w *World) Answer(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var list web.List[web.Approval]
		if w.call(ctx, http.MethodGet, "/api/v1/approvals", nil, &list) != nil {
			continue
		}
		for _, a := range list.Items {
			if a.State == "open" {
				// It may have been answered, or the agent killed, meanwhile.
				_ = w.call(ctx, http.MethodPost, "/api/v1/approvals/"+a.ID, map[string]string{"answer": "approve", "reason": "crash suite"}, nil)
			}
		}
	}
}

// Export is the ledger as `setpoint ledger export` writes it; it is kept as a
// file of the site.
func (w *World) Export(ctx context.Context) (ledger.Exported, error) {
	out, code, err := w.Command(ctx, "ledger", "export")
	if err := errors.Join(err, errExit(code)); err != nil {
		return ledger.Exported{}, fmt.Errorf("setpoint ledger export: %w: %s", err, out)
	}
	if err := os.WriteFile(w.Path(ExportFile), []byte(out), 0o600); err != nil {
		return ledger.Exported{}, err
	}
	return ledger.ReadExport(bytes.NewReader([]byte(out)))
}

// Acks are the entries whose append was about to return.
func (w *World) Acks() ([]ledger.Position, error) {
	return w.allAcks()
}

// Points are those that were passed, in order.
func (w *World) Points() ([]Point, error) { return lines[Point](w.Path(PointsFile)) }

// Point is one that was passed.
type Point struct {
	Point string `json:"point"`
	// At is in milliseconds since 1970.
	At int64 `json:"at"`
}

// lines reads JSON lines; a missing file has none, and a torn last one is none.
func lines[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []T
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// SavePages writes what people were told beside the other files of the run.
func (w *World) SavePages() error {
	data, err := json.MarshalIndent(w.Pager.Pages(), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(w.Path(PagesFile), append(data, '\n'), 0o600)
}

// Save copies the files that tell what happened.
func (w *World) Save(dir string) error {
	for _, r := range w.replicas {
		if err := r.Save(filepath.Join(dir, filepath.Base(r.Dir))); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, pattern := range []string{"*.jsonl", "*.json", "*.log", "*.yaml", LedgerFile + "*", ClockFile} {
		found, err := filepath.Glob(w.Path(pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
