package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// settle moves the service's effect under way as far as the present allows:
// a claim that was never started is void, one in doubt is asked for its mark,
// and one that was applied is judged once, by measurement.
func (p *pass) settle(ctx context.Context) error {
	e := p.past.inFlight
	if e == nil || p.dry || p.disputed != "" || p.r.sending.holds(e.Claim.Key) {
		return nil
	}
	var err error
	switch {
	case e.Effect == execute.Claimed:
		err = p.voidExpired(ctx, e)
	case e.Effect.Judged():
		err = p.judge(ctx, e)
	case e.InDoubt():
		err = p.resolve(ctx, e)
	}
	if err != nil && !raced(err) {
		return fmt.Errorf("settle %s: %w", e.Claim.Key, err)
	}
	p.look()
	return nil
}

// voidExpired ends a claim whose permit ran out before it was started: a crash
// between the two. Nothing was sent, so the charge is refunded.
func (p *pass) voidExpired(ctx context.Context, e *ledger.Effect) error {
	if p.now.Before(e.Claim.Expires) {
		return nil
	}
	return p.void(ctx, e.Claim.Key, gate.ReasonExpired)
}

func (p *pass) void(ctx context.Context, key gate.Key, reason string) error {
	return p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.VoidDraft(s, key, reason) })
}

// assumedScrape is the scrape interval that the last fifth of a judge window
// must span twice. Where scrapes are rarer than this, the fifth holds no two
// samples, is unknown, and does not count either.
const assumedScrape = 15 * time.Second

// judge appends the outcome as soon as measurement has one.
func (p *pass) judge(ctx context.Context, e *ledger.Effect) error {
	ctx, end := p.span(ctx, "judge")
	defer end()
	t := p.trial(e)
	ms := p.take(ctx, append(compare.BeforeQueries(t), compare.AfterQueries(t, p.now)...))
	j := compare.Effect(t, ms, p.r.compareLimits(), p.now)
	if !j.Decided {
		return nil
	}
	cost := 0.0
	if e.Claim.Verdict == gate.Auto {
		cost = budget.Cost(j.Outcome, j.Recovering, e.Claim.Costs)
	}
	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return ledger.OutcomeDraft(s, ledger.Outcome{Key: e.Claim.Key, Judgement: j, Cost: cost})
	})
	if err == nil {
		p.result.Outcome = j.Outcome
		p.r.tel.outcome(p.svc.Name, e.Claim.Action.Name, j.Outcome)
		p.r.log.Info("action judged", "service", p.svc.Name, "key", e.Claim.Key, "action", e.Claim.Action.Name,
			"outcome", j.Outcome, "before", j.Before, "after", j.After, "cost", cost)
	}
	return err
}

// trial is judged by the service's own objectives, and by those of the
// services that depend on it.
func (p *pass) trial(e *ledger.Effect) compare.Trial {
	judged := []spec.Service{p.svc}
	for _, other := range p.fleet.set.Services {
		for _, dep := range other.Remediation.DependsOn {
			if dep == p.svc.Name {
				judged = append(judged, other)
			}
		}
	}
	return compare.Trial{
		Service: p.svc.Name, ClaimedAt: e.ClaimedAt, AppliedAt: e.AppliedAt,
		Settle: e.Claim.Action.Settle, Judged: judged, WorstScrape: assumedScrape, Promised: e.Claim.Promised,
	}
}

// resolve asks what became of an effect in doubt, once its horizon has passed.
// It is never sent again, and a service that recovered proves nothing about
// who fixed it.
func (p *pass) resolve(ctx context.Context, e *ledger.Effect) error {
	horizon, now := e.Horizon(), p.r.storeTime(p.now)
	// An early look would take what is still under way for what never came.
	if now.Before(horizon) || p.fleet.clocksApart != "" {
		return nil
	}
	body := ledger.Settled{Key: e.Claim.Key, By: ledger.SettledByObservation}
	if ex, ok := p.r.o.Executors[e.Claim.Action.Executor()]; ok && e.Claim.Action.Mark() != spec.MarkUnmarked {
		var o execute.Observation
		p.r.unslotted(func() { o = ex.Observe(ctx, e.Claim.Action, e.Claim.Key) })
		body.Effect, body.Reason = markOf(o), o.Detail
	}
	if body.Effect == "" {
		if now.Before(horizon.Add(e.Claim.UnknownFor)) {
			return nil
		}
		body.Effect, body.By = execute.Unknown, "setpoint"
		body.Reason = fmt.Sprintf("no answer about the key for %s", e.Claim.UnknownFor)
	}
	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return settleDraft(s, body)
	})
	if err == nil {
		p.r.log.Warn("effect in doubt settled", "service", p.svc.Name, "key", e.Claim.Key, "effect", body.Effect, "reason", body.Reason)
	}
	return err
}

// markOf reads an actuator's answer about a key after the horizon: known and
// applied has landed, known not has not. No answer is "".
func markOf(o execute.Observation) execute.Effect {
	switch {
	case !o.Known:
		return ""
	case !o.KeyKnown:
		return execute.NotLanded
	case o.Result == execute.Applied:
		return execute.Landed
	case o.Result == execute.NoOp, o.Result == execute.Failed, o.Result == execute.NotNow:
		return o.Result
	}
	return ""
}
