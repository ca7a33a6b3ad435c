package incident

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing/fstest"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	pages "github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/policies"
)

// A simulated wait costs nothing, so the only real limits are against a hang on
// a busy machine. None of them may decide anything.
const (
	patience  = time.Minute
	unlimited = 1e6
)

// watched is how long the agent runs before the incident begins.
const watched = 10 * time.Minute

// world is one run: everything around the loop, and time.
type world struct {
	in    Incident
	sweep time.Duration
	clock atomic.Int64
	// began is the start of the incident.
	began time.Time

	set       spec.Set
	cfg       config.Config
	engine    *prom.Engine
	traffic   *traffic
	actuators *actuators
	timers    timers
	phone     *phone
	store     ledger.Store
	freezes   *freezefile.Dir
	frozen    map[string]bool
	options   reconcile.Options
	loop      *reconcile.Reconciler

	// said are the reasons that passes gave, by service.
	mu   sync.Mutex
	said map[string]map[string]bool

	// closers end what was started, the last first.
	closers []func() error
}

func (w *world) now() time.Time { return time.Unix(0, w.clock.Load()).UTC() }

// newWorld starts everything but the agent. close ends it, also after an error.
func newWorld(ctx context.Context, in Incident, sweep time.Duration, o Options, dir string) (*world, error) {
	w := &world{in: in, sweep: sweep, began: in.Start, frozen: map[string]bool{}, said: map[string]map[string]bool{}}
	var err error
	if w.set, err = documents(in); err != nil {
		return w, err
	}
	w.cfg = configure(in, w.set, sweep)
	w.clock.Store(w.began.Add(-watched - history(w.set)).UnixNano())
	if w.engine, err = prom.New(prom.Options{Dir: filepath.Join(dir, "engine"), Now: w.now}); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.engine.Close)
	w.traffic = newTraffic(in, w.engine, w.began)
	if w.actuators, err = newActuators(in, targetPaths(w.set), w); err != nil {
		return w, err
	}
	for w.now().Before(w.began.Add(-watched)) {
		if err := w.scrape(coarse); err != nil {
			return w, err
		}
	}
	if w.store, err = month.NewChain("os:lab", w.now); err != nil {
		return w, err
	}
	w.freezes = freezefile.New(filepath.Join(dir, "freeze"), w.now)
	if w.options, err = w.wire(ctx, o); err != nil {
		return w, err
	}
	w.loop, err = reconcile.New(ctx, w.options)
	return w, err
}

// scrape lets time pass and reads the counters.
func (w *world) scrape(d time.Duration) error {
	from := w.now()
	w.clock.Add(int64(d))
	return w.traffic.scrape(from, w.now())
}

// wire is what the agent's own wiring makes of a configuration, over simulated
// time.
func (w *world) wire(ctx context.Context, o Options) (reconcile.Options, error) {
	out := reconcile.Options{
		Config: w.cfg, Documents: func() (spec.Set, error) { return w.set, nil }, Proposer: script{w.in.Proposes, w.began},
		Store: w.store, Freezes: w.freezes, Now: w.now, Logger: o.Logger, OnPass: w.heard,
		Silencers: []reconcile.Silencer{silencer{w}},
	}
	var err error
	if out.Policy, err = policy(w.in); err != nil {
		return out, err
	}
	if out.Measurer, err = w.measurer(ctx); err != nil {
		return out, err
	}
	if out.Executors, err = w.executors(ctx); err != nil {
		return out, err
	}
	out.Receivers, err = w.receivers(ctx)
	return out, err
}

// shipped is the policy that ships, loaded once: it never changes.
var shipped = sync.OnceValues(func() (*rego.Policy, error) { return rego.Load(policies.FS, rego.Options{Deadline: patience}) })

func policy(in Incident) (*rego.Policy, error) {
	if in.Policy == nil {
		return shipped()
	}
	return rego.Load(fstest.MapFS{"incident.rego": &fstest.MapFile{Data: []byte(in.Policy.Text)}}, rego.Options{Deadline: patience})
}

// measurer asks the engine over loopback, as it would ask any Prometheus.
func (w *world) measurer(ctx context.Context) (reconcile.Measurer, error) {
	engine := w.engine.Handler()
	address, err := w.serve(ctx, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.unreachable() {
			http.Error(rw, "no answer", http.StatusServiceUnavailable)
			return
		}
		engine.ServeHTTP(rw, r)
	}))
	if err != nil {
		return nil, err
	}
	src, err := measureprom.New(measureprom.Options{
		Name: source, URL: "http://" + address, HTTP: promconfig.DefaultHTTPClientConfig, Timeout: patience,
		QueriesPerSecond: unlimited, Now: w.now,
	})
	if err != nil {
		return nil, err
	}
	f, err := measureprom.NewFleet(src)
	return f, err
}

func (w *world) unreachable() bool {
	since := w.now().Sub(w.began)
	return slices.ContainsFunc(w.in.Unreachable, func(s Span) bool { return since >= s.From && since < s.Until })
}

// executors send over loopback, whatever host the documents name.
func (w *world) executors(ctx context.Context) (map[string]execute.Executor, error) {
	address, err := w.serve(ctx, w.actuators)
	if err != nil {
		return nil, err
	}
	hook, err := webhook.New(webhook.Options{
		Allow: w.cfg.Executors.Webhook.Allow, Now: w.now,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
	})
	return map[string]execute.Executor{"webhook": hook}, err
}

// receivers page the phone, whatever they are called.
func (w *world) receivers(ctx context.Context) ([]escalate.Receiver, error) {
	w.phone = newPhone(w.now)
	address, err := w.serve(ctx, w.phone)
	if err != nil {
		return nil, err
	}
	var out []escalate.Receiver
	for _, c := range w.cfg.Receivers {
		r, err := pages.New(pages.Options{
			Name: c.Name, URL: "http://" + address + "/page", HTTP: promconfig.DefaultHTTPClientConfig, Timeout: patience, Now: w.now,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// serve answers on loopback until the world is closed.
func (w *world) serve(ctx context.Context, h http.Handler) (address string, err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve on loopback: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	w.closers = append(w.closers, func() error {
		err := srv.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return ln.Addr().String(), nil
}

// close ends everything that was started.
func (w *world) close() error {
	var errs []error
	for _, end := range slices.Backward(w.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// heard keeps the reasons of a pass.
func (w *world) heard(r reconcile.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	codes := w.said[r.Service]
	if codes == nil {
		codes = map[string]bool{}
		w.said[r.Service] = codes
	}
	for _, reason := range r.Step.Reasons {
		codes[reason.Code] = true
	}
	if r.Decision != nil {
		for _, reason := range r.Decision.Reasons {
			codes[reason.Code] = true
		}
	}
}

// Options are what is not in the file.
type Options struct {
	// Logger is the agent's; nil discards its log.
	Logger *slog.Logger
}
