package reconcile

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// The reasons of a hold that another writer caused; the recorded proposal is
// judged again next pass.
const (
	claimLost  = "claim-lost"
	ticketLost = "ticket-lost"
)

// replicasDiffer holds what two replicas read differently.
const replicasDiffer = "replicas-differ"

// ledgerUnverified holds until the chain was gone over.
const ledgerUnverified = "ledger-unverified"

// stopping holds what this process does not begin any more.
const (
	stopping     = "stopping"
	stoppingText = "this process is being stopped; the next one goes on"
)

// ask opens a ticket. It reserves the key of this window; whatever window it
// is when somebody answers, the claim uses that key.
func (p *pass) ask(ctx context.Context) error {
	if p.dry {
		return nil
	}
	t := approve.Ticket{
		Service: p.svc.Name, Episode: p.past.service.Episode, Decision: p.decisionID, Key: p.step.Key,
		Digest: p.decision.Digest, Proposal: p.proposal, Needs: p.decision.Needs, Reasons: p.decision.Reasons,
		Asked: p.now, Expires: approve.ExpiresAt(p.now, p.svc.Remediation.ApprovalFor, p.decision.Needs), State: approve.Open,
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsSampled() {
		t.Trace = sc.TraceID().String()
	}
	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.TicketDraft(s, p.svc.Name, t) })
	if raced(err) {
		p.hold(ticketLost, err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("open a ticket: %w", err)
	}
	p.look()
	return nil
}

// execute sends once, in the one order that makes the promise true: permit,
// claim (durable, conditional), gate again on the same bytes, started
// (durable), send, receipt. A crash between any two of them loses at most the
// window, never the key.
func (p *pass) execute(ctx context.Context) error {
	permit, ok := p.decision.Permit()
	if !ok || p.dry {
		return nil
	}
	// A model may have answered long after the process was told to stop, or the
	// documents were edited.
	if p.r.stopping() {
		p.hold(stopping, stoppingText)
		return nil
	}
	if err := p.current(); err != nil {
		p.hold(gate.ReasonDocumentsChanged, err.Error())
		return nil
	}
	if !p.r.book.audited() {
		p.hold(ledgerUnverified, "the older part of the ledger is still being verified after the start")
		return nil
	}
	ctx, end := p.span(ctx, "execute")
	defer end()
	if err := p.claim(ctx, permit); err != nil {
		if errors.Is(err, ledger.ErrConflict) {
			p.r.conflicted(p.svc.Name, permit.Key(), err)
		}
		if raced(err) {
			p.hold(claimLost, err.Error())
			p.soonAgain()
			return nil
		}
		return fmt.Errorf("claim %s: %w", permit.Key(), err)
	}
	p.result.Effect = execute.Claimed
	if why := p.gateAgain(ctx, permit); why != "" {
		p.result.Effect = execute.Void
		if err := p.void(ctx, permit.Key(), why); err != nil {
			return fmt.Errorf("void %s: %w", permit.Key(), err)
		}
		p.r.log.Info("claim void", "service", p.svc.Name, "key", permit.Key(), "reason", why)
		return nil
	}
	return p.send(ctx, permit)
}

// soonAgain asks for another pass at once: a claim of another service came between
// decision and claim, which says nothing against this one. Once in a sweep, or many
// that break together would chase each other.
func (p *pass) soonAgain() {
	if !p.fleet.early {
		p.r.nudge(p.svc.Name)
	}
}

// claim reserves the key for ever, with the charge.
func (p *pass) claim(ctx context.Context, permit gate.Permit) error {
	charge := 0.0
	if p.decision.Verdict == gate.Auto && !permit.Undo() {
		charge = p.decision.Cost
	}
	a := permit.Action()
	item, _ := p.catalogue.Item(a.Name)
	body := ledger.Claim{
		Key: permit.Key(), Decision: p.decisionID, Episode: p.past.service.Episode, Ticket: permit.Ticket(),
		Digest: permit.Digest(), Target: a.Canonical(), Action: a, Parameters: permit.Parameters(),
		Live: item.Live, Undo: permit.Undo(), Undoes: gate.Key(p.proposal.Undoes), Verdict: p.decision.Verdict, Charge: charge,
		Costs: p.svc.Remediation.Budget.Costs, Expires: permit.Expires(), State: p.assessment.State,
		HoldFor: p.svc.Remediation.HoldFor, UnknownFor: p.svc.Remediation.UnknownFor, Promised: compare.Promised(p.svc),
	}
	return p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ClaimDraft(s, p.svc.Name, body, p.decidedAt)
	})
}

// conflicted remembers that a key is held with other bytes, until its window is
// over: replicas that do not decide alike are a fault that people must see.
func (r *Reconciler) conflicted(service string, key gate.Key, err error) {
	r.tel.conflicts.WithLabelValues(service).Inc()
	r.log.Error("refused: the key is claimed with another digest; do all replicas have the same documents?", "service", service, "key", key, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conflicts[service] = key
}

// gateAgain decides about the same bytes with everything fresh, and without
// this claim. It mints nothing; it returns why the claim must be void, or "".
func (p *pass) gateAgain(ctx context.Context, permit gate.Permit) string {
	if p.current() != nil {
		return gate.ReasonDocumentsChanged
	}
	p.now = p.r.o.Now()
	p.lookAgain(ctx)
	p.catalogue = nil
	p.observe(ctx)
	// The fleet as it was last seen, not as this pass began: a dependency may
	// have failed while a model was thinking.
	p.r.watchClock(ctx)
	p.fleet = p.r.seen()
	p.now = p.r.o.Now()
	again := p.decide(ctx, &permit).decision
	if _, still := again.Permit(); !still {
		return codes(again.Reasons)
	}
	return ""
}

// send appends started, looks at the freeze files once more, and sends. A
// shutdown does not interrupt it: what was begun is said.
func (p *pass) send(ctx context.Context, permit gate.Permit) error {
	key := permit.Key()
	p.r.sending.add(key)
	defer p.r.sending.remove(key)
	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.StartDraft(s, key) })
	if raced(err) {
		// A person's deny came between the claim and the send: it still counts.
		p.result.Effect = execute.Void
		return p.voidFor(ctx, key, err)
	}
	if err != nil {
		return fmt.Errorf("record that %s is started: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), permit.Action().Timeout+p.r.o.Config.Sweep.Interval)
	defer cancel()
	var receipt execute.Receipt
	p.r.unslotted(func() { receipt = p.sendOnce(ctx, permit) })
	p.result.Effect = receipt.Effect
	err = p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.ReceiptDraft(s, key, receipt) })
	p.r.tel.effect(p.svc.Name, permit.Action().Name, receipt.Effect)
	p.r.log.Info("sent", "service", p.svc.Name, "key", key, "action", permit.Action().Name,
		"effect", receipt.Effect, "detail", receipt.Detail, "digest", permit.Digest())
	if err != nil {
		return fmt.Errorf("record the receipt of %s: %w", key, err)
	}
	p.look()
	return nil
}

// sendOnce is the only place from which a byte leaves toward an actuator.
func (p *pass) sendOnce(ctx context.Context, permit gate.Permit) execute.Receipt {
	unsent := func(why string) execute.Receipt {
		return execute.Receipt{Effect: execute.Failed, At: p.r.o.Now(), Detail: "nothing was sent: " + why}
	}
	ex, ok := p.r.o.Executors[permit.Action().Executor()]
	if !ok {
		return unsent("no executor for " + permit.Action().Uses)
	}
	held := func(err error) execute.Receipt {
		r := unsent(err.Error())
		r.Held = true
		return r
	}
	done, err := p.r.o.Freezes.Sending()
	if err != nil {
		return held(err)
	}
	defer done()
	// Asked again when the connection stands: a freeze that came meanwhile stops
	// it before the first byte.
	if err := p.ready(); err != nil {
		return held(err)
	}
	receipt, err := ex.Execute(ctx, permit, p.ready)
	switch {
	case errors.Is(err, execute.ErrNoPermit):
		return held(err)
	case err != nil:
		return unsent(err.Error())
	}
	return receipt
}

// current says whether the documents that this pass decides by are still those
// in force: a pass may be older than a reload.
func (p *pass) current() error {
	svc, declared := p.r.Set().Service(p.svc.Name)
	if !declared || svc.Digest != p.svc.Digest {
		return fmt.Errorf("the documents of %s were changed meanwhile", p.svc.Name)
	}
	if mode, why := p.r.Set().Mode(p.svc.Name, p.r.o.Now()); mode == spec.Observe {
		return errors.New(why)
	}
	return nil
}

// ready is the last look before the first byte: at the documents, the clock and
// the freeze files, which need nothing that could hang.
func (p *pass) ready() error {
	if err := p.current(); err != nil {
		return err
	}
	if apart := p.r.clockNow(); apart != "" {
		return fmt.Errorf("clocks differ: %s", apart)
	}
	if holds := p.r.freezes(p.svc.Name, p.r.o.Now()); len(holds) > 0 {
		return fmt.Errorf("frozen by %s: %s", holds[0].By, holds[0].Text)
	}
	return nil
}

// voidFor ends a claim that lost its permission before it was started.
func (p *pass) voidFor(ctx context.Context, key gate.Key, why error) error {
	if err := p.void(ctx, key, "not-started"); err != nil && !raced(err) {
		return fmt.Errorf("void %s: %w", key, err)
	}
	p.r.log.Info("claim void", "service", p.svc.Name, "key", key, "reason", why)
	p.look()
	return nil
}

// hold keeps the proposal for a later pass.
func (p *pass) hold(code, text string) {
	p.step = step.Step{Kind: step.Hold, Key: p.step.Key, Ticket: p.step.Ticket, Reasons: []gate.Reason{{Code: code, Text: text}}}
	p.result.Step = p.step
}
