package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	pages "github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
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

// actuatorURL is where the documents say that the shop's actuator is. The port on
// loopback is another one in each run, and a digest covers its target.
const actuatorURL = "http://actuator.internal"

// actuatorSecret signs what is sent to the shop's actuator.
const actuatorSecret = "scenario"

// world is one run: the shop, everything of the product around it, and time.
type world struct {
	s   Scenario
	now *clock

	set spec.Set
	// actuator is the shop's, as host and port.
	actuator string
	shop     *shop.Shop
	engine   *prom.Engine
	pager    *pager.Pager
	cfg      config.Config
	store    *sqlite.Store
	loop     *reconcile.Reconciler
	// whole says after the run whether the proposer could say all it had to; nil:
	// it is a script.
	whole func() error
	// asked counts what the proposer openai asks; nil for all others.
	asked *tally

	// began is the start of the agent.
	began time.Time
	// closers end what was started, the last first.
	closers []func() error
}

// newWorld starts everything but the agent. close ends it, also after an error.
func newWorld(ctx context.Context, s Scenario, o Options, dir string) (*world, error) {
	w := &world{s: s, now: &clock{now: epoch}}
	var err error
	w.shop, err = shop.New(shop.Options{Seed: uint64(max(0, o.Seed)), Secret: []byte(actuatorSecret), Now: w.now.time})
	if err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.shop.Close)
	if w.engine, err = prom.New(prom.Options{Dir: filepath.Join(dir, "engine"), Now: w.now.time}); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.engine.Close)
	actuator, err := w.serve(ctx, "actuator", w.shop.Actuator().ServeHTTP)
	if err != nil {
		return w, err
	}
	w.actuator = strings.TrimPrefix(actuator, "http://")
	if w.set, err = loadDocuments(s.Documents, actuatorURL); err != nil {
		return w, err
	}
	if _, ok := w.set.Service(s.Right.Service); !ok {
		return w, fmt.Errorf("scenario %s: documents %s have no service %s", s.Name, s.Documents, s.Right.Service)
	}
	w.cfg = configure(w.set, s, actuatorURL)
	options, err := w.options(ctx, o, dir)
	if err != nil {
		return w, err
	}
	w.loop, err = reconcile.New(ctx, options)
	return w, err
}

// options is what the agent's own wiring makes of a configuration, over
// simulated time.
func (w *world) options(ctx context.Context, o Options, dir string) (reconcile.Options, error) {
	out := reconcile.Options{
		Config: w.cfg, Documents: func() (spec.Set, error) { return w.set, nil },
		Freezes: freezefile.New(filepath.Join(dir, "freeze"), w.now.time), Now: w.now.time, Logger: o.Logger,
	}
	fleet, err := w.measurer(ctx)
	if err != nil {
		return out, err
	}
	out.Measurer, out.Asker = fleet, fleet
	if out.Proposer, err = w.newProposer(o); err != nil {
		return out, err
	}
	if out.Policy, err = rego.Load(policies.FS, rego.Options{Deadline: patience}); err != nil {
		return out, err
	}
	if o.Policy != nil {
		out.Policy = o.Policy
	}
	hook, err := webhook.New(webhook.Options{
		Allow: w.cfg.Executors.Webhook.Allow, Now: w.now.time,
		Secret: func(string) ([]byte, bool) { return []byte(actuatorSecret), true },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, w.actuator)
		},
	})
	if err != nil {
		return out, err
	}
	out.Executors = map[string]execute.Executor{"webhook": hook}
	if out.Receivers, err = w.receivers(ctx); err != nil {
		return out, err
	}
	path := filepath.Join(dir, "setpoint.db")
	if err := sqlite.Init(path, "os:lab"); err != nil {
		return out, err
	}
	store, err := sqlite.Open(path, sqlite.Options{Now: w.now.time})
	if err != nil {
		return out, err
	}
	w.closers = append(w.closers, store.Close)
	w.store, out.Store = store, store
	return out, nil
}

// measurer asks the engine over loopback, as it would ask any Prometheus.
func (w *world) measurer(ctx context.Context) (*measureprom.Fleet, error) {
	url, err := w.serve(ctx, "engine", w.engine.Handler().ServeHTTP)
	if err != nil {
		return nil, err
	}
	src, err := measureprom.New(measureprom.Options{
		Name: source, URL: url, HTTP: promconfig.DefaultHTTPClientConfig, Timeout: patience, QueriesPerSecond: unlimited,
		Now: w.now.time,
	})
	if err != nil {
		return nil, err
	}
	return measureprom.NewFleet(src)
}

// receivers page the lab's pager, whatever they are called.
func (w *world) receivers(ctx context.Context) ([]escalate.Receiver, error) {
	w.pager = pager.New(w.now.time)
	url, err := w.serve(ctx, "pager", w.pager.Handler().ServeHTTP)
	if err != nil {
		return nil, err
	}
	var out []escalate.Receiver
	for _, c := range w.cfg.Receivers {
		r, err := pages.New(pages.Options{
			Name: c.Name, URL: url + "/page", HTTP: promconfig.DefaultHTTPClientConfig, Timeout: patience, Now: w.now.time,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// close ends everything that was started.
func (w *world) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	return errors.Join(errs...)
}
