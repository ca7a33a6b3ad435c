package sim

import (
	"errors"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// execute are the stages from claim to receipt, and the first look of a pass.
func (w *world) execute(r *replica) bool {
	switch r.stage {
	case claiming:
		return w.claim(r)
	case gating:
		return w.gateAgain(r)
	case voiding:
		return w.void(r)
	case starting:
		return w.begin(r)
	case sending:
		return w.send(r)
	case awaiting:
		return w.await(r)
	case recording:
		return w.record(r)
	default:
		return w.lookAround(r)
	}
}

// decideFirst asks the gate and records the decision when it is news.
func (w *world) decideFirst(r *replica) bool {
	p := &r.pass
	p.decision = w.decide(r, nil)
	ticket, key := p.step.Ticket, p.step.Key
	p.step = step.Step{Kind: kindOf(p.decision, ticket), Key: key, Ticket: ticket, Reasons: p.decision.Reasons}
	w.say(r, "%s: %s %s (%s)", p.svc.Name, p.decision.Verdict, p.step.Kind, codes(p.decision.Reasons))
	w.held(p.decision.Reasons)
	written, err := w.recordDecision(r)
	if err != nil {
		return r.end()
	}
	switch {
	case p.step.Kind == step.Ask:
		r.stage = ticketing
	case p.step.Kind == step.Execute:
		p.permit, _ = p.decision.Permit()
		p.minted = p.mono
		r.stage = claiming
		if w.bad == claimAfterSend {
			r.stage = sending
		}
	case ticket != "" && !p.decision.Hold && p.decision.Verdict < gate.Approval:
		r.stage = refusing
	default:
		return r.end()
	}
	return written
}

func kindOf(d gate.Decision, ticket string) step.Kind {
	_, permitted := d.Permit()
	switch {
	case d.Hold:
		return step.Hold
	case permitted:
		return step.Execute
	case d.Verdict == gate.Approval && ticket == "":
		return step.Ask
	case d.Verdict == gate.Escalate:
		return step.Escalate
	}
	return step.Hold
}

func (w *world) recordDecision(r *replica) (bool, error) {
	p := &r.pass
	body := ledger.Decided{
		Window: windowOf(p.step.Key).String(), Episode: p.past.service.Episode, Key: p.step.Key, Step: string(p.step.Kind),
		Proposal: p.proposal, Decision: p.decision, State: p.saw.State, Reason: p.saw.Reason, Mode: p.svc.Remediation.Mode,
	}
	same := ""
	before := w.chain.head.Head.Seq
	err := w.write(r, func(s *ledger.State) ([]ledger.Draft, error) {
		same = ""
		known, _ := s.Service(p.svc.Name)
		if last := s.Decisions[known.Decision]; last != nil && sameDecision(last.Decided, body) {
			same = last.ID
			return nil, nil
		}
		same = ledger.DecisionID(s.Head.Seq + 1)
		return []ledger.Draft{{Kind: ledger.KindDecision, Service: p.svc.Name, Body: body}}, nil
	})
	p.decisionID = same
	return w.chain.head.Head.Seq != before, err
}

func sameDecision(a, b ledger.Decided) bool {
	return a.Key == b.Key && a.Step == b.Step && a.Decision.Digest == b.Decision.Digest &&
		a.Decision.Verdict == b.Decision.Verdict && a.Decision.Hold == b.Decision.Hold &&
		a.Decision.Ruling.Revision == b.Decision.Ruling.Revision && codes(a.Decision.Reasons) == codes(b.Decision.Reasons)
}

func (w *world) openTicket(r *replica) bool {
	p := &r.pass
	t := approve.Ticket{
		Service: p.svc.Name, Episode: p.past.service.Episode, Decision: p.decisionID, Key: p.step.Key,
		Digest: p.decision.Digest, Proposal: p.proposal, Needs: p.decision.Needs, Reasons: p.decision.Reasons,
		Asked: p.now, Expires: approve.ExpiresAt(p.now, p.svc.Remediation.ApprovalFor, p.decision.Needs), State: approve.Open,
	}
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) { return ledger.TicketDraft(s, p.svc.Name, t) }))
	if raced(err) {
		w.hit("ticket lost to another replica")
	}
	return r.end()
}

// refuse voids an approved ticket that the gate finally refuses.
func (w *world) refuse(r *replica) bool {
	p := &r.pass
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.TicketEndDraft(s, ledger.TicketEnd{Ticket: p.step.Ticket, State: approve.Void, Reason: codes(p.decision.Reasons)})
	}))
	if err == nil {
		w.hit("approved ticket refused")
	}
	return r.end()
}

// current: the documents that the pass decides by are still those in force.
func (w *world) current(r *replica) error {
	p := &r.pass
	if w.specs(r)[p.i].Digest != p.svc.Digest {
		return errors.New("the documents were changed meanwhile")
	}
	return nil
}

func (w *world) claim(r *replica) bool {
	p := &r.pass
	if w.current(r) != nil {
		w.hit("documents changed before the claim")
		return r.end()
	}
	charge := 0.0
	if p.decision.Verdict == gate.Auto && w.bad != noCharge {
		charge = p.decision.Cost
	}
	a := p.permit.Action()
	body := ledger.Claim{
		Key: p.permit.Key(), Decision: p.decisionID, Episode: p.past.service.Episode, Ticket: p.permit.Ticket(),
		Digest: p.permit.Digest(), Target: a.Canonical(), Action: a, Parameters: p.permit.Parameters(), Live: live(),
		Verdict: p.decision.Verdict, Charge: charge, Costs: p.svc.Remediation.Budget.Costs,
		Expires: p.permit.Expires(), State: p.saw.State, HoldFor: p.svc.Remediation.HoldFor, UnknownFor: p.svc.Remediation.UnknownFor,
	}
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return w.claimDraft(s, p, body)
	}))
	if err != nil {
		if raced(err) {
			w.hit("claim lost")
		}
		return r.end()
	}
	switch w.bad {
	case noSecondGate:
		return r.then(starting)
	case claimAfterSend:
		return r.end()
	}
	return r.then(gating)
}

// claimDraft is ledger.ClaimDraft, or what a mutant makes of it.
func (w *world) claimDraft(s *ledger.State, p *pass, body ledger.Claim) (ledger.Draft, error) {
	switch t := s.Tickets[body.Ticket]; {
	case w.bad == twoClaims, w.bad == claimAfterSend:
		return ledger.Draft{Kind: ledger.KindClaim, Service: p.svc.Name, Unique: "claim/" + string(body.Key), Body: body}, nil
	case w.bad == looseApproval && t != nil:
		other := body
		other.Digest = t.Digest
		d, err := ledger.ClaimDraft(s, p.svc.Name, other, p.decidedAt)
		d.Body = body
		return d, err
	}
	return ledger.ClaimDraft(s, p.svc.Name, body, p.decidedAt)
}

// gateAgain decides about the same bytes with everything fresh, and without
// this claim.
func (w *world) gateAgain(r *replica) bool {
	p := &r.pass
	if w.current(r) != nil {
		p.why = gate.ReasonDocumentsChanged
		w.hit("void by second gate: documents-changed")
		return r.then(voiding)
	}
	permit := p.permit
	w.measure(r)
	again := w.decide(r, &permit)
	if _, still := again.Permit(); !still {
		p.why = codes(again.Reasons)
		w.say(r, "%s: the second gate refuses (%s)", p.svc.Name, p.why)
		w.hit("void by second gate")
		for _, x := range again.Reasons {
			w.hit("void by second gate: " + x.Code)
		}
		return r.then(voiding)
	}
	return r.then(starting)
}

func (w *world) void(r *replica) bool {
	p := &r.pass
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) { return ledger.VoidDraft(s, p.permit.Key(), p.why) }))
	if raced(err) {
		w.hit("void lost")
	}
	return r.end()
}

// begin appends started: from here on the effect may have been sent.
func (w *world) begin(r *replica) bool {
	p := &r.pass
	key := p.permit.Key()
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		if w.bad == looseStart {
			return ledger.Draft{Kind: ledger.KindStarted, Service: p.svc.Name, Body: ledger.Started{Key: key}}, nil
		}
		return ledger.StartDraft(s, key)
	}))
	if raced(err) {
		w.hit("start lost")
		if t := w.chain.head.Tickets[p.permit.Ticket()]; t != nil && t.State == approve.Denied {
			w.hit("denied between claim and start")
		}
		p.why = "not-started"
		return r.then(voiding)
	}
	if err != nil {
		return r.end()
	}
	return r.then(sending)
}

// send looks once more at documents, freeze files and permit, and posts. The
// permit's age is measured by the monotonic clock.
func (w *world) send(r *replica) bool {
	p := &r.pass
	now := func() time.Time { return p.permit.Expires().Add(w.at.Sub(p.minted) - limits().PermitTTL) }
	err := execute.LastLook(p.permit, now, func() error { return w.ready(r) })
	if err != nil && w.bad != blindSend {
		if !p.permit.Valid(now()) {
			w.hit("permit expired at the last look")
		}
		w.say(r, "sends nothing: %s", err)
		p.receipt = execute.Receipt{Effect: execute.Failed, At: p.now, Detail: err.Error()}
		return r.then(recording)
	}
	w.mon.lastLook(r, p.permit.Key(), p.svc.Name)
	p.msg, p.sentAt = w.post(r, p.permit), w.at
	return r.then(awaiting)
}

func (w *world) ready(r *replica) error {
	if err := w.current(r); err != nil {
		w.hit("documents changed at the last look")
		return err
	}
	if len(r.fileFreezes(r.pass.svc.Name)) > 0 {
		w.hit("frozen at the last look")
		return errors.New("frozen")
	}
	return nil
}

// await takes the answer, or gives up at the timeout and never sends again.
func (w *world) await(r *replica) bool {
	p := &r.pass
	m := w.mail[p.msg]
	switch {
	case !m.reply.IsZero() && !m.reply.After(w.at) && m.life == r.life:
		p.receipt = execute.Receipt{Effect: m.result, At: w.wall(r)}
	case w.at.Sub(p.sentAt) >= p.permit.Action().Timeout:
		w.hit("no answer in time")
		p.receipt = execute.Receipt{Effect: execute.InDoubt, At: w.wall(r), Detail: "no answer"}
		if w.bad == resend && !p.again {
			p.again, p.minted = true, w.at
			return r.on(sending)
		}
	default:
		return true
	}
	if p.receipt.Effect.Judged() {
		p.receipt.AppliedAt = p.receipt.At
	}
	return r.on(recording)
}

func (w *world) record(r *replica) bool {
	p := &r.pass
	if w.bad == claimAfterSend {
		return r.then(claiming)
	}
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ReceiptDraft(s, p.permit.Key(), p.receipt)
	}))
	if raced(err) {
		w.hit("receipt lost to a settlement")
	}
	return r.end()
}
