package checker

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// tiny is what sums of decimal costs may be off by.
const tiny = 1e-9

// reset is a named person's fresh start of a balance, while it is in force.
type reset struct {
	service, action string
	at, until       time.Time
}

func dearest(c ledger.Claim) float64 {
	return max(c.Costs.NoChange, c.Costs.Worsened, c.Costs.Unknown)
}

// cost is what a key costs its balances as things stand: the dearest outcome
// until there is one, nothing when nothing was done.
func (l *life) cost() float64 {
	switch {
	case l.claim.Verdict != gate.Auto:
		return 0
	case l.outcome != nil:
		return l.measured()
	case l.claim.Undo:
		return 0
	}
	switch l.effect {
	case execute.Void, execute.Failed, execute.NoOp, execute.NotNow, execute.NotLanded:
		return 0
	}
	return max(l.claim.Charge, dearest(l.claim))
}

// measured is the cost of what was measured. An undo costs only when it made
// things worse, and what made things worse always costs.
func (l *life) measured() float64 {
	j := l.outcome.Judgement
	switch {
	case l.claim.Undo && j.Outcome != compare.OutcomeWorsened:
		return 0
	case j.Outcome == compare.OutcomeUnknown:
		return l.claim.Costs.Unknown
	case j.Outcome == compare.OutcomeWorsened:
		return l.claim.Costs.Worsened
	case j.Recovering:
		return 0
	case j.Outcome == compare.OutcomeNoChange:
		return l.claim.Costs.NoChange
	}
	return 0
}

// afforded checks the charge of an auto claim, and that both balances held it.
func (r *run) afforded(c ledger.Claim) {
	if c.Verdict != gate.Auto || c.Undo {
		return
	}
	r.hold(ChargedAtClaim)
	if c.Charge < dearest(c)-tiny {
		r.broke(ChargedAtClaim, c.Key, r.now.Seq, "charged %g, its dearest outcome costs %g", c.Charge, dearest(c))
	}
	service, action := r.now.Service, c.Action.Name
	own, named := r.o.Budgets[service+"/"+action]
	if !named {
		own = r.o.Budget
	}
	r.affords(c, own, service, action)
	r.affords(c, r.o.Global, "", "")
}

func (r *run) affords(c ledger.Claim, b Budget, service, action string) {
	if b.Period <= 0 {
		return
	}
	name := "the global balance"
	if service != "" {
		name = "the balance of " + service + "/" + action
	}
	r.hold(BalanceLeft)
	left, charge := b.Capacity-r.spent(b, service, action), max(c.Charge, dearest(c))
	switch {
	case left <= tiny:
		r.broke(BalanceLeft, c.Key, r.now.Seq, "%s was %g of %g", name, left, b.Capacity)
	case left < charge-tiny:
		r.broke(ChargedAtClaim, c.Key, r.now.Seq, "%s was %g of %g, the claim costs up to %g", name, left, b.Capacity, charge)
	}
}

// spent adds up what counts now.
func (r *run) spent(b Budget, service, action string) float64 {
	now, since, sum := r.now.Time, r.freshStart(service, action), 0.0
	for _, l := range r.order {
		mine := service == "" || l.service == service && l.claim.Action.Name == action
		aged := !now.Before(l.claimedAt.Add(b.Period - r.o.Skew))
		if mine && !aged && !l.claimedAt.Before(since) {
			sum += l.cost()
		}
	}
	return sum
}

// freshStart is the last reset of a balance that is in force; zero without.
func (r *run) freshStart(service, action string) (since time.Time) {
	for _, x := range r.resets {
		mine := x.service == service && (x.action == action || x.action == "")
		if mine && (x.until.IsZero() || r.now.Time.Before(x.until)) && x.at.After(since) {
			since = x.at
		}
	}
	return since
}

// refunded checks that the recorded cost is not below the measured one.
func (r *run) refunded(l *life) {
	if l.claim.Verdict != gate.Auto {
		return
	}
	r.hold(RefundMeasured)
	if want := l.measured(); l.outcome.Cost < want-tiny {
		r.broke(RefundMeasured, l.claim.Key, r.now.Seq, "%s costs %g, the entry says %g", l.outcome.Judgement.Outcome, want, l.outcome.Cost)
	}
}
