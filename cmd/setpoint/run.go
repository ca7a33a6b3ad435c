package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) runCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent until SIGTERM; SIGHUP reloads documents, rules, policy and tokens",
		Long: `Run the agent. SIGTERM and SIGINT take no new work and finish what was begun;
SIGHUP and POST /-/reload read documents, rules, policy and tokens again, and
the last good ones stay on a fault. The log goes to standard error.

The folders of policies.path and policies.shadow are read again by themselves: a
changed bundle rules once it has held still for a second (half a minute where a
file is gone), compiles, and passes its own tests. Otherwise the last good one
rules on, which the log, the metrics and, when it lasts, a page say.`,
		Example: `  setpoint run
  setpoint run --once        # one pass for each service, then exit
  OTEL_TRACES_EXPORTER=console setpoint run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.site()
			if err != nil {
				return err
			}
			return a.runAgent(cmd.Context(), s, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "make one sweep and exit; no listener is opened")
	return cmd
}

func (a *app) logger(format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, nil))
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// daemon is a running agent.
type daemon struct {
	*wiring
	app     *app
	log     *slog.Logger
	metrics *agentMetrics
	loop    *reconcile.Reconciler
	tokens  tokenBox
	// policy and shadow are the folders of the policies; shadow is nil without.
	policy, shadow *bundleFolder
	// shadowFault is why the shadow policy did not load at the start.
	shadowFault string
	// decisions is nil without a decision log.
	decisions *decisions
	// slack is nil without Slack.
	slack *slackgo.Client
	// beside is what runs beside the loop until the agent stops.
	beside []func(ctx context.Context)
	// reloading keeps two reloads from mixing what they read.
	reloading sync.Mutex
}

func (a *app) runAgent(ctx context.Context, s site, once bool) (err error) {
	log := a.logger(s.cfg.Telemetry.LogFormat)
	if err := s.unmet().Err(); err != nil {
		return err
	}
	if err := s.checkSecrets(log); err != nil {
		return err
	}
	if err := a.freezeDir(s.cfg.Ledger.FreezeDir).Make(); err != nil {
		return err
	}
	store, err := a.openToRun(ctx, s)
	if err != nil {
		return noWriter(s, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tracer, flush, err := newTracer(ctx, a.getenv)
	if err != nil {
		return fmt.Errorf("tracing, set by the OTEL_* variables: %w", err)
	}
	defer flush()
	d, err := a.daemon(ctx, s, store, log)
	if err != nil {
		return err
	}
	defer d.decisions.close()
	d.options.Tracer = tracer
	var end context.CancelFunc
	ctx, end = context.WithCancel(ctx)
	defer end()
	var failed error
	if once {
		d.endAfterSweep(end, &failed)
	}
	if d.loop, err = reconcile.New(ctx, d.options); err != nil {
		return err
	}
	d.options.Policy, d.options.Shadow = nil, nil // The loop has them, until they are swapped.
	d.hello()
	if once {
		return errors.Join(d.sweepOnce(ctx), failed)
	}
	return d.serve(ctx)
}

// daemon makes the parts of an agent.
func (a *app) daemon(ctx context.Context, s site, store *opened, log *slog.Logger) (*daemon, error) {
	metrics := newAgentMetrics()
	w, err := a.wire(ctx, s, store.Store, purpose{
		ask: true, send: true, onQuery: metrics.queried,
		onNote: func(source, text string) { log.Info("a source remarks", "source", source, "text", text) },
		feed: changefile.Options{
			Notice: func(text string) { log.Warn("the change feed", "text", text) }, Bad: metrics.changesLost,
		},
	})
	if err != nil {
		return nil, err
	}
	o, began := &w.options, time.Now()
	o.LedgerFault, o.StoreClock, o.Hints, o.Shared, o.Process = store.fault, store.clock, store.hints, store.shared, store.process
	o.Loose = w.freezes
	o.Monotonic = func() time.Duration { return time.Since(began) }
	d := &daemon{wiring: w, app: a, log: log, metrics: metrics}
	w.options.Registerer, w.options.Logger = metrics.registry, log
	tokens, err := s.tokens()
	if err != nil {
		return nil, err
	}
	d.tokens.set(tokens)
	if d.decisions, err = s.decisionLog(log); err != nil {
		return nil, err
	}
	d.decisions.into(&w.options)
	if err := d.connectSlack(); err != nil {
		return nil, err
	}
	d.watchPolicies(ctx)
	d.watchChanges()
	return d, nil
}

func (d *daemon) hello() {
	b := buildInfo()
	d.log.Info("started", "version", b.Version, "revision", short(b.Revision), "config", d.site.file, "ledger", d.site.where(),
		"services", len(d.loop.Set().Services), "maxMode", d.site.cfg.Limits.MaxMode.String())
	if fault := d.options.PolicyFault; fault != "" {
		d.log.Error("the policy does not load; observing only until it does", "err", fault)
	}
	d.loop.ShadowFaulted(d.shadowFault)
	for _, n := range d.loop.Set().Notes {
		d.log.Info("note", "at", n.Pos.String(), "code", n.Lint, "text", n.Text)
	}
}

// serve runs loop and listeners until ctx ends or one of them fails.
func (d *daemon) serve(ctx context.Context) error {
	server, err := web.New(d.webOptions())
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	clicks, err := d.clicks(ctx)
	if err != nil {
		return err
	}
	if err := d.listen(ctx, g, server); err != nil {
		return err
	}
	if clicks != nil {
		g.Go(func() error { return clicks(ctx) })
	}
	for _, run := range d.beside {
		g.Go(func() error {
			run(ctx)
			return nil
		})
	}
	g.Go(func() error { return d.reloadOnHangup(ctx) })
	g.Go(func() error {
		err := d.loop.Run(ctx)
		d.log.Info("stopped; what was begun is recorded")
		return err
	})
	return g.Wait()
}

func (d *daemon) listen(ctx context.Context, g *errgroup.Group, server *web.Server) error {
	var tcp, socket net.Listener
	var err error
	if at := d.site.cfg.Web.Listen; at != "" {
		var lc net.ListenConfig
		if tcp, err = lc.Listen(ctx, "tcp", at); err != nil {
			return fmt.Errorf("web.listen: %w", err)
		}
		d.log.Info("listening", "address", tcp.Addr().String())
	}
	if path := d.site.cfg.Web.Socket; path != "" {
		if socket, err = web.ListenUnix(ctx, path); err != nil {
			if tcp != nil {
				_ = tcp.Close() // The error that matters is the socket's.
			}
			return err
		}
	}
	if tcp != nil {
		g.Go(func() error { return server.Serve(ctx, tcp) })
	}
	if socket != nil {
		g.Go(func() error { return server.ServeSocket(ctx, socket) })
	}
	return nil
}

func (d *daemon) reloadOnHangup(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			// The error is in the log, and the last good state stays.
			_ = d.reload(ctx)
		}
	}
}

// reload reads policy, documents, rules and tokens again. Everything must be
// good before anything changes: half a reload would be a state that nobody
// wrote down. What cannot fail is swapped last.
func (d *daemon) reload(ctx context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if d.site.edited() {
		// Who edited it and reloads would believe that it counts now.
		d.log.Warn("the configuration was edited since the start, and is read at a start only: restart the agent", "file", d.site.file)
	}
	policy, tokens, err := d.reloadAll(ctx)
	if d.shadow != nil {
		_ = d.shadow.Reload(ctx, d.shadow.swap) // It binds nobody, and has said what is wrong.
	}
	if err != nil {
		d.log.Error("reload failed; the last good state stays, with its tokens", "err", err)
		return err
	}
	d.log.Info("reloaded", "services", len(d.loop.Set().Services), "tokens", tokens.Len(), "policy", short(policy))
	return nil
}

// reloadAll gives the revision of the policy and the tokens, or an error with
// all faults at once, and nothing changed.
func (d *daemon) reloadAll(ctx context.Context) (policy string, tokens web.Tokens, err error) {
	tokens, tokensErr := d.site.tokens()
	_, documentsErr := (&fileRules{site: d.site}).documents()
	rest := errors.Join(documentsErr, tokensErr)
	loads := false
	err = d.policy.Reload(ctx, func(ctx context.Context, l reload.Loaded) error {
		loads, policy = true, l.Policy.Revision()
		if rest != nil {
			return rest
		}
		if err := d.loop.Reload(ctx, l.Policy); err != nil {
			return err
		}
		d.tokens.set(tokens)
		d.policy.took(l)
		return nil
	})
	if !loads {
		err = errors.Join(rest, err)
	}
	return policy, tokens, err
}

// freeze writes the file, and waits for the sends that had begun: nothing leaves
// after it is answered.
func (d *daemon) freeze(f ledger.Freeze) error {
	if err := d.freezes.Write(f); err != nil {
		return err
	}
	settled, err := d.freezes.Settled(sendWait)
	if err == nil && !settled {
		d.log.Warn("frozen while a send that had begun is still under way", "freeze", f.ID)
	}
	return err
}

func (d *daemon) webOptions() web.Options {
	return web.Options{
		View: d.view, Desk: d.loop.Desk, Files: d.freezes.List,
		WriteFreeze: d.freeze, RemoveFreeze: d.freezes.Remove,
		Ready: d.loop.Ready, Reload: d.reload, Hint: d.loop.Hint,
		PagerDuty: d.site.pagerDuties(),
		Tokens:    d.tokens.get, Gatherer: d.metrics.registry, Logger: d.log, Now: d.app.now,
	}
}
