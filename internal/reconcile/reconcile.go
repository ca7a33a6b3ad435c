package reconcile

import (
	"context"

	"github.com/setpoint-dev/setpoint/internal/step"
)

// pass is the product in one list: one look at one service, and at most one
// step. There is no verification in it; whether a step worked is what measure
// says next time.
func (p *pass) run(ctx context.Context) Result {
	p.measure(ctx) // good and total, for each objective and window
	p.compare(ctx) // met, breached or unknown, with the reason
	for _, known := range []func(context.Context) error{
		p.fold,    // what the ledger knows of the past
		p.brake,   // so many red at once that the cause is shared
		p.settle,  // outcomes of earlier actions, from measurement
		p.demote,  // a rung lower, for what made things worse twice
		p.tickets, // questions that ended by themselves
	} {
		if err := known(ctx); err != nil {
			return p.fail(err)
		}
	}
	p.next(ctx) // idle, hold, settle, propose or execute

	if p.step.Kind == step.Propose || p.step.Kind == step.Execute {
		if err := p.propose(ctx); err != nil { // one proposal per service and window
			return p.fail(err)
		}
		if err := p.gate(ctx); err != nil { // ruling and floors: the binding decision
			return p.fail(err)
		}
	}
	var err error
	switch p.step.Kind {
	case step.Ask:
		err = p.ask(ctx) // a ticket for a person
	case step.Execute:
		err = p.execute(ctx) // claim, gate again, started, send once, receipt
	default:
		err = p.refuse(ctx) // an approved ticket that is finally refused
	}
	if err != nil {
		return p.fail(err)
	}
	return p.result
}

// compare gives the state of the service, and counts fresh known reads: two
// with different sample times are needed after a start before anything is
// done.
func (p *pass) compare(ctx context.Context) {
	_, end := p.span(ctx, "compare")
	defer end()
	p.result.Assessment = p.assessment
	p.r.reads.note(p.assessment)
	p.r.tel.assessed(p.svc, p.assessment)
}

// next chooses the step. The facts are those of this pass; the gate fills in
// what belongs to a proposal.
func (p *pass) next(ctx context.Context) {
	p.step = step.Next(p.situation(ctx))
	if moves := p.step.Kind == step.Propose || p.step.Kind == step.Execute; moves && p.r.stopping() {
		p.hold(stopping, stoppingText)
	}
	if p.disputed != "" {
		p.hold(replicasDiffer, p.disputed)
	}
	p.result.Step = p.step
	p.result.Key = p.step.Key
}
