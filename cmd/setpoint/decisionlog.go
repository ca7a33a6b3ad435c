package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/decisionlog"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// decisionsWait bounds how long a stop waits for the last lines of the decision
// log.
const decisionsWait = 3 * time.Second

// decisions is the agent's decision log; nil is none.
type decisions struct {
	log  *decisionlog.Log
	told *slog.Logger
}

// decisionLog opens the configured decision log. A file that cannot be written
// holds up nothing: it is told, counted and tried again.
func (s site) decisionLog(told *slog.Logger) (*decisions, error) {
	c := s.cfg.Policies.DecisionLog
	if c == nil {
		return nil, nil
	}
	log, err := decisionlog.Open(decisionlog.Options{
		Path: c.Path, Mask: c.Mask, Logger: told,
		Labels: map[string]string{"id": processName(), "version": buildInfo().Version, "config": s.file},
	})
	if err != nil {
		return nil, err
	}
	return &decisions{log: log, told: told}, nil
}

// into makes the loop write to the log, if there is one.
func (d *decisions) into(o *reconcile.Options) {
	if d != nil {
		o.DecisionLog = d
	}
}

// Lost is how many decisions were not written.
func (d *decisions) Lost() uint64 { return d.log.Lost() }

// Record takes a decision of the loop to be written.
func (d *decisions) Record(ctx context.Context, r reconcile.Recorded) {
	// Without what it was built of, nobody knows what a policy masks.
	policy, _ := r.Policy.(decisionlog.Policy)
	d.log.Record(ctx, decisionlog.Decision{
		ID: r.ID, Time: r.Time, Step: r.Decided.Step, Decision: r.Decided.Decision,
		Input: r.Input, Policy: policy, Took: r.Took, Shadow: shadowOf(r.Decided.Shadow),
	})
}

func shadowOf(s *ledger.Shadow) *decisionlog.Shadow {
	if s == nil {
		return nil
	}
	return &decisionlog.Shadow{
		Revision: s.Revision, Verdict: s.Verdict.String(), Hold: s.Hold, Reasons: s.Reasons,
		Differs: s.Differs, Fault: decisionlog.FaultCode(s.Fault),
	}
}

// close writes what is left, within a bound.
func (d *decisions) close() {
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), decisionsWait)
	defer cancel()
	if err := d.log.Close(ctx); err != nil {
		d.told.Error("the last decisions are not in the decision log", "err", err)
	}
}
