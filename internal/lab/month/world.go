package month

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

//go:embed site
var site embed.FS

// How often the shop is measured and the agent looks, in simulated time: half as
// often as the defaults, which halves the work and decides nothing.
const (
	scrape = 30 * time.Second
	sweep  = time.Minute
)

// A simulated wait costs nothing; the only real limits are against a hang.
const (
	patience  = time.Minute
	unlimited = 1e6
)

// world is everything around the loop.
type world struct {
	clock  atomic.Int64
	engine *prom.Engine
	shop   *shop
	chain  *chain
	loop   *reconcile.Reconciler
	people *people
	// closers end what was started, the last first.
	closers []func() error
}

func (w *world) now() time.Time { return time.Unix(0, w.clock.Load()).UTC() }

// newWorld starts everything but the agent. close ends it, also after an error.
func newWorld(ctx context.Context, o Options, dir string) (*world, error) {
	w := &world{}
	w.clock.Store(Start().Add(-history).UnixNano())
	var err error
	if w.engine, err = prom.New(prom.Options{Dir: filepath.Join(dir, "engine"), Now: w.now}); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.engine.Close)
	//nolint:gosec // A month has to be repeatable, not secret.
	chance := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, stream)) }
	w.shop = newShop(w.engine, plan(o.Days, chance(1)), chance(2), w.now)
	// The healthy hours that the long windows need.
	for range history / scrape {
		if err := w.tick(); err != nil {
			return w, err
		}
	}
	if w.chain, err = newChain("os:alice", w.now); err != nil {
		return w, err
	}
	freezes := freezefile.New(filepath.Join(dir, "freeze"), w.now)
	options, err := w.options(ctx, o, freezes)
	if err != nil {
		return w, err
	}
	if w.loop, err = reconcile.New(ctx, options); err != nil {
		return w, err
	}
	w.people = &people{loop: w.loop, shop: w.shop, freezes: freezes, random: chance(3), minds: map[string]mind{}}
	return w, nil
}

// history is what the engine holds before the agent starts: the longest window
// that decides, and one judge window.
const history = 6*time.Hour + 10*time.Minute

// options is what the agent's own wiring makes of a configuration.
func (w *world) options(ctx context.Context, o Options, freezes *freezefile.Dir) (reconcile.Options, error) {
	set, err := w.documents()
	if err != nil {
		return reconcile.Options{}, err
	}
	proposer, err := newProposer(set)
	if err != nil {
		return reconcile.Options{}, err
	}
	measurer, err := w.measurer(ctx)
	if err != nil {
		return reconcile.Options{}, err
	}
	cfg := config.Default()
	cfg.Limits.MaxMode = spec.Auto
	cfg.Limits.EffectsPerServicePerHour, cfg.Limits.EffectsPerHour = 4, 12
	cfg.Sweep = config.Sweep{Interval: sweep, Concurrency: 1}
	cfg.Budget.Capacity = 40
	cfg.Sources = []config.Source{{Name: source, MaxSampleAge: 90 * time.Second}}
	cfg.Executors.Webhook.Allow = []string{actuatorURL}
	cfg.Approvers = oncall
	cfg.Receivers = []config.Receiver{{Name: pager("oncall").Name()}}
	return reconcile.Options{
		Config: cfg, Documents: w.documents, Measurer: measurer, Proposer: proposer, Policy: o.Policy,
		Executors: map[string]execute.Executor{"webhook": actuator{w.shop}}, Receivers: []escalate.Receiver{pager("oncall")},
		Store: w.chain, Freezes: freezes, Now: w.now, Logger: o.Logger,
	}, nil
}

// documents are those of this day: an exception stands in them for a while.
func (w *world) documents() (spec.Set, error) {
	names := []string{"slo.yaml", "remediation.yaml"}
	if onSale(w.now()) {
		names = append(names, "sale.yaml")
	}
	var files []spec.File
	for _, name := range names {
		data, err := site.ReadFile("site/" + name)
		if err != nil {
			return spec.Set{}, err
		}
		files = append(files, spec.File{Name: name, Data: data})
	}
	return spec.Load(files, []spec.Reader{openslo.Reader{}})
}

func onSale(now time.Time) bool {
	const from, until = 15 * day, 24 * day
	at := now.Sub(Start())
	return at >= from && at < until
}

// play lets the days pass.
func (w *world) play(ctx context.Context, o Options) error {
	if err := w.loop.Start(ctx); err != nil {
		return err
	}
	sale := false
	for minute := 0; minute < o.Days*24*60; minute++ {
		if err := errors.Join(ctx.Err(), w.tick(), w.tick()); err != nil {
			return err
		}
		if now := onSale(w.now()); now != sale {
			sale = now
			if err := w.loop.Reload(ctx, nil); err != nil {
				return err
			}
		}
		if err := w.people.act(ctx, w.now()); err != nil {
			return err
		}
		for _, r := range w.loop.Sweep(ctx) {
			if r.Err != nil {
				return fmt.Errorf("the pass of %s at %s: %w", r.Service, w.now(), r.Err)
			}
		}
		if o.Progress != nil && (minute+1)%(24*60) == 0 {
			o.Progress((minute + 1) / (24 * 60))
		}
	}
	return nil
}

func (w *world) tick() error {
	w.clock.Add(int64(scrape))
	return w.shop.scrape(scrape)
}

// source is the one place to measure.
const source = "main"

// measurer asks the engine over loopback, as it would ask any Prometheus.
func (w *world) measurer(ctx context.Context) (reconcile.Measurer, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the engine on loopback: %w", err)
	}
	srv := &http.Server{Handler: w.engine.Handler(), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	w.closers = append(w.closers, func() error {
		err := srv.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	src, err := measureprom.New(measureprom.Options{
		Name: source, URL: "http://" + ln.Addr().String(), HTTP: promconfig.DefaultHTTPClientConfig,
		Timeout: patience, QueriesPerSecond: unlimited, Now: w.now,
	})
	if err != nil {
		return nil, err
	}
	f, err := measureprom.NewFleet(src)
	return f, err
}

// close ends everything that was started.
func (w *world) close() error {
	var errs []error
	for _, end := range slices.Backward(w.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// pager takes every page.
type pager string

// Name is the receiver's.
func (p pager) Name() string { return string(p) }

// Send takes the page.
func (pager) Send(context.Context, escalate.Page, string) (string, error) { return "", nil }

// proposer is the rules of the month.
type proposer struct{ book *rules.Rules }

func newProposer(set spec.Set) (proposer, error) {
	data, err := site.ReadFile("site/rules.yaml")
	if err != nil {
		return proposer{}, err
	}
	book, err := rules.Load(spec.File{Name: "rules.yaml", Data: data})
	if err != nil {
		return proposer{}, err
	}
	return proposer{book}, book.Validate(set)
}

// Identity is recorded before the call.
func (proposer) Identity() propose.Proposer { return propose.Proposer{Kind: rules.Kind} }

// Propose answers at once.
func (p proposer) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	out := p.book.Propose(r)
	out.Proposer = p.Identity()
	reply, err := json.Marshal(out)
	if err != nil {
		reply = nil // The proposal is recorded all the same.
	}
	return reconcile.Proposed{Proposal: out, Reply: reply}
}
