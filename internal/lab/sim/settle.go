package sim

import (
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// settle moves the effect under way: void, outcome, or the question about it.
func (w *world) settle(r *replica) bool {
	p := &r.pass
	e := p.past.inFlight
	if e == nil {
		return r.on(ending)
	}
	if e.InDoubt() && w.provable(p, e) {
		return w.inquire(r, e)
	}
	plan := w.settling(p, e)
	if plan == nil {
		return r.on(ending)
	}
	if err := w.write(r, plan); err != nil && !raced(err) {
		return r.end()
	}
	r.glance()
	return r.then(ending)
}

// settling is the entry that ends what is under way; nil while nothing does.
func (w *world) settling(p *pass, e *ledger.Effect) planning {
	key := e.Claim.Key
	switch {
	case w.bad == lateVoid && e.Effect == execute.Started && !p.now.Before(e.Claim.Expires):
		return one(func(*ledger.State) (ledger.Draft, error) {
			return ledger.Draft{Kind: ledger.KindVoid, Service: e.Service, Body: ledger.Void{Key: key, Reason: gate.ReasonExpired}}, nil
		})
	case e.Effect == execute.Claimed && !p.now.Before(e.Claim.Expires):
		w.hit("expired claim voided")
		return one(func(s *ledger.State) (ledger.Draft, error) { return ledger.VoidDraft(s, key, gate.ReasonExpired) })
	case e.Effect.Judged() && !p.now.Before(e.AppliedAt.Add(e.Claim.Action.Settle+judgeWindow)):
		return one(func(s *ledger.State) (ledger.Draft, error) { return ledger.OutcomeDraft(s, w.judge(p, e)) })
	}
	return nil
}

// judge is what measurement says of an effect, by how the service is now.
func (w *world) judge(p *pass, e *ledger.Effect) ledger.Outcome {
	out := compare.OutcomeNoChange
	switch {
	case p.saw.State == compare.Met:
		out = compare.OutcomeRecovered
	case p.saw.State == compare.Unknown:
		out = compare.OutcomeUnknown
	case w.roll(450):
		out = compare.OutcomeWorsened
	case w.roll(300):
		out = compare.OutcomeImproved
	}
	cost := 0.0
	if e.Claim.Charge > 0 {
		cost = budget.Cost(out, false, e.Claim.Costs)
	}
	w.hit("outcome " + string(out))
	return ledger.Outcome{Key: e.Claim.Key, Judgement: compare.Judgement{Outcome: out, Decided: true}, Cost: cost}
}

// provable: from now on "no such key" proves that nothing landed, by clocks that
// are together.
func (w *world) provable(p *pass, e *ledger.Effect) bool {
	if w.bad == earlyProof {
		return !p.now.Before(e.StartedAt.Add(e.Claim.Action.Horizon()))
	}
	return p.apart == "" && !p.now.Before(p.hostTime(e.Horizon()))
}

// inquire asks the actuator about a key in doubt.
func (w *world) inquire(r *replica, e *ledger.Effect) bool {
	p := &r.pass
	o := w.ask(e.Claim.Action, e.Claim.Key)
	b := ledger.Settled{Key: e.Claim.Key, By: ledger.SettledByObservation, Effect: markOf(o)}
	if b.Effect == execute.Landed {
		b.AppliedAt = e.Horizon()
	}
	if b.Effect == "" {
		w.hit("no answer about a key")
		if p.now.Before(p.hostTime(e.Horizon().Add(e.Claim.UnknownFor))) {
			return r.on(ending)
		}
		b.Effect, b.By, b.Reason = execute.Unknown, "setpoint", "no answer about the key"
	}
	p.settled = b
	return r.then(resolving)
}

func markOf(o execute.Observation) execute.Effect {
	switch {
	case !o.Known:
		return ""
	case !o.KeyKnown:
		return execute.NotLanded
	case o.Result == execute.Applied:
		return execute.Landed
	}
	return o.Result
}

func (w *world) resolve(r *replica) bool {
	p := &r.pass
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) { return ledger.SettleDraft(s, p.settled) }))
	if err != nil && !raced(err) {
		return r.end()
	}
	if raced(err) {
		w.hit("settlement lost")
	}
	r.glance()
	return r.then(ending)
}
