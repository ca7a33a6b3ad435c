package people

import (
	"log/slog"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// What documents and configuration say, which the bounds are made of.
const (
	judgeWindow    = 5 * time.Minute
	longWindow     = 10 * time.Minute
	factor         = 6
	target         = 0.99
	escalateWithin = 20 * time.Minute
	unknownFor     = 10 * time.Minute
	settle         = 2 * time.Minute
	maxLateness    = 30 * time.Second
	timeout        = 5 * time.Second
	escalateAfter  = 5 * time.Minute
)

// document is one service with one objective and one action.
func (w *world) document(s Service) spec.Service {
	low, high := 3.0, 20.0
	return spec.Service{
		Name: s.Name, Digest: "doc-" + s.Name,
		Objectives: []spec.Objective{{
			ID: "availability", SLO: "availability", Target: target, Window: 30 * 24 * time.Hour,
			JudgeWindow: judgeWindow, MinEvents: 10, BurnRates: []spec.BurnRate{{Short: judgeWindow, Long: longWindow, Factor: factor, Page: true}},
			Indicator: spec.Indicator{
				Bad: &spec.Query{Expr: `sum(increase(r{code="500"}[{{.window}}]))`}, Total: &spec.Query{Expr: `sum(increase(r[{{.window}}]))`}, AbsentBadZero: true,
			},
		}},
		Remediation: spec.Remediation{
			Name: s.Name, Service: s.Name, Owner: "team-a", Mode: s.Mode, ActionWindow: 10 * time.Minute, DependsOn: s.DependsOn,
			HoldFor: 5 * time.Minute, UnknownFor: unknownFor, EscalateWithin: escalateWithin, ApprovalFor: 15 * time.Minute,
			Approvers: []string{"@oncall"},
			Actions: []spec.Action{{
				Name: "scale", Uses: "webhook.post", Class: s.Class, Reversal: spec.Restore,
				Target: spec.Target{URL: actuators + s.Name, StatusURL: actuators + s.Name},
				Settle: settle, Cooldown: 5 * time.Minute, Timeout: timeout, MaxLateness: maxLateness,
				Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &low, Maximum: &high, MaximumFactor: 2}},
			}},
			Budget:     spec.Budget{Period: 28 * 24 * time.Hour, Capacity: w.plan.Capacity, Costs: spec.Costs{NoChange: 1, Worsened: 1, Unknown: 1}},
			Outcomes:   spec.Outcomes{Improved: 0.5, Worsened: 0.2},
			Escalation: spec.Escalation{Receivers: w.plan.Receivers},
		},
	}
}

func (w *world) documents() (spec.Set, error) {
	set := spec.Set{Digest: "set-1"}
	for _, s := range w.plan.Services {
		set.Services = append(set.Services, w.document(s))
	}
	return set, nil
}

// config is setpoint.yaml. A sweep has no jitter, so that a play is as much the
// same each time as goroutines allow.
func (w *world) config() config.Config {
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: source, MaxSampleAge: 90 * time.Second}}
	cfg.Sweep.Interval, cfg.Sweep.Jitter = sweep, 0
	cfg.Limits.MaxMode = spec.Auto
	cfg.Limits.StormMin, cfg.Limits.StormFraction = 3, 0.5
	cfg.Executors.Webhook.Allow = []string{actuators}
	cfg.Approvers = map[string][]string{"@oncall": {person}}
	for _, name := range w.plan.Receivers {
		cfg.Receivers = append(cfg.Receivers, config.Receiver{Name: name, EscalateAfter: escalateAfter})
	}
	if w.plan.Board {
		cfg.Slack = &config.Slack{Team: "T1", Channel: "C1", OpenCards: 5}
		cfg.Slack.SetDefaults()
	}
	return cfg
}

// person is the one on call.
const person = "slack:T1/U1"

// options is one process's way to everything.
func (g *game) options(name string, dead func() bool) reconcile.Options {
	w := g.world
	o := reconcile.Options{
		Config: w.config(), Documents: w.documents, Measurer: w, Proposer: model{w}, Policy: policy{w},
		Executors: map[string]execute.Executor{"webhook": w}, Store: store{g.chain, w, dead},
		Shared: w.plan.Replicas > 1, Process: name, Freezes: freezes{w}, Loose: w, Now: w.now, Logger: g.log.With("replica", name),
	}
	for _, name := range w.plan.Receivers {
		o.Receivers = append(o.Receivers, escalate.Receiver(receiver{name, w, g.screens[name], dead}))
	}
	if w.plan.Board {
		o.Board = board{g.channel, dead}
	}
	return o
}

// game is one play under way.
type game struct {
	world   *world
	chain   ledger.Store
	screens map[string]*screen
	channel *channel
	log     *slog.Logger
	oracle  *oracle
	// replicas are the processes; the last one is the newest.
	replicas []*replica
}
