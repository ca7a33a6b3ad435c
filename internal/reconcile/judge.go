package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// gate asks policy and floors about the proposal, records the decision when it
// is news, and turns the step into what the verdict allows.
func (p *pass) gate(ctx context.Context) error {
	if p.step.Kind == step.Hold {
		return nil // another replica asked first
	}
	ctx, end := p.span(ctx, "gate")
	defer end()
	judged := p.decide(ctx, nil)
	decision := judged.decision
	p.decision = decision
	p.result.Decision = &p.decision
	was := p.step
	p.step = stepOf(was, decision, p.mode())
	p.result.Step = p.step
	if err := p.recordDecision(ctx, judged); err != nil {
		return fmt.Errorf("record the decision: %w", err)
	}
	return nil
}

// mode is the highest that documents and config allow.
func (p *pass) mode() spec.Mode {
	return min(p.svc.Remediation.Mode, p.r.o.Config.Limits.MaxMode)
}

// decide is the gate on exactly these bytes. It is asked twice: before a
// claim, and after it with the permit that the claim keeps, with fresh facts
// and without that claim.
func (p *pass) decide(ctx context.Context, claimed *gate.Permit) judged {
	item, _ := p.catalogue.Item(p.proposal.Action)
	var f gate.Facts
	if claimed == nil {
		f = p.facts(item, p.step.Key, "")
	} else {
		f = p.facts(item, p.step.Key, claimed.Key())
		f.PermitDigest, f.PermitExpires = claimed.Digest(), claimed.Expires()
	}
	if t := p.past.ticket; t != nil && t.ID == p.step.Ticket {
		f.ApprovedTicket, f.ApprovedDigest, f.ApprovedNeeds = t.ID, t.Digest, t.Needs
	}
	p.silences(ctx, &f)
	c := gate.Case{Service: p.svc, Proposal: p.proposal, Key: p.step.Key, Facts: f, Limits: p.r.limits()}
	p.result.Balance = f.Balance
	prepared, rules := gate.Prepare(c), p.r.rules()
	if prepared.Input == nil {
		// There is nothing for a policy to look at, which the floors know.
		return judged{Prepared: prepared, decision: prepared.Decide(gate.Ruling{}), policy: rules.policy}
	}
	ruling, took := gate.Ruling{Fault: "policy-fault: " + rules.fault}, time.Duration(0)
	if rules.policy != nil {
		began := time.Now()
		ruling = rules.policy.Evaluate(ctx, prepared.Input)
		took = time.Since(began)
	}
	return judged{Prepared: prepared, decision: prepared.Decide(ruling), policy: rules.policy, took: took, shadow: rules.shadow}
}

// judged is a decision with what it was made of.
type judged struct {
	gate.Prepared
	decision gate.Decision
	// policy is the one of that moment, nil without one; took is how long it
	// ruled, 0 where there was nothing to rule on.
	policy Policy
	took   time.Duration
	// shadow is the shadow policy of that moment; nil without one.
	shadow Policy
}

// stepOf is what the verdict makes of a proposed step.
func stepOf(s step.Step, d gate.Decision, mode spec.Mode) step.Step {
	s.Reasons = d.Reasons
	_, permitted := d.Permit()
	switch {
	case d.Hold:
		s.Kind = step.Hold
	case permitted:
		s.Kind = step.Execute
	case d.Verdict == gate.Approval && s.Ticket == "" && mode >= spec.Approval:
		s.Kind = step.Ask
	case d.Verdict == gate.Escalate:
		s.Kind = step.Escalate
	default:
		s.Kind = step.Hold
	}
	return s
}

// recordDecision appends the decision unless the last one of this window said
// the same, so that a held proposal does not write in every pass. The shadow
// policy is asked only about news, and after the decision was made.
func (p *pass) recordDecision(ctx context.Context, j judged) error {
	if p.dry {
		return nil
	}
	n, err := p.draft(j)
	if err != nil {
		return err
	}
	entries, err := p.share(ctx, n.plan)
	if err == nil && n.missed {
		// Outside of the book, which others wait for.
		n.body.Shadow, n.complete = p.r.shadowed(ctx, j), true
		entries, err = p.share(ctx, n.plan)
	}
	if err != nil {
		return err
	}
	p.decisionID = n.same
	if last := len(entries) - 1; n.same == "" && last >= 0 {
		// Its own is the last one; those before it are other replicas'.
		p.recorded(ctx, entries[last], n.body, j)
	}
	return nil
}

// draft is a decision that may have to be recorded.
type draft struct {
	service string
	body    ledger.Decided
	blobs   [][]byte
	// complete: the shadow policy was asked. Until then nothing is appended, and
	// missed says whether it would have been.
	complete, missed bool
	// same is the last decision, where that said the same.
	same string
}

// draft is the entry of the decision, before the shadow policy was asked.
func (p *pass) draft(j judged) (*draft, error) {
	n := &draft{service: p.svc.Name, body: ledger.Decided{
		Episode: p.past.service.Episode, Key: p.step.Key,
		Step: string(p.step.Kind), Proposal: p.proposal, Decision: p.decision,
		State: p.assessment.State, Reason: p.assessment.Reason, Mode: p.svc.Remediation.Mode,
	}}
	n.body.Window = p.windowID()
	if j.Input != nil {
		floors, err := json.Marshal(j.Floors)
		if err != nil {
			return nil, fmt.Errorf("encode the floors: %w", err)
		}
		n.body.Floors, n.blobs = ledger.BlobDigest(floors), [][]byte{j.Input, floors}
	}
	return n, nil
}

// plan is the entry, where the decision is news.
func (n *draft) plan(s *ledger.State) ([]ledger.Draft, error) {
	n.same, n.missed = "", false
	if known := s.Services[n.service]; known != nil {
		if last := s.Decisions[known.Decision]; last != nil && sameDecision(last.Decided, n.body) {
			n.same = last.ID
			return nil, nil
		}
	}
	if !n.complete {
		n.missed = true
		return nil, nil
	}
	return []ledger.Draft{{Kind: ledger.KindDecision, Service: n.service, Body: n.body, Blobs: n.blobs}}, nil
}

// recorded tells of a decision that has just been recorded.
func (p *pass) recorded(ctx context.Context, e ledger.Entry, body ledger.Decided, j judged) {
	p.decisionID = fmt.Sprintf("d%d", e.Seq)
	p.r.tel.decided(p.svc.Name, p.proposal, p.decision)
	p.r.tel.shadowed(p.decision, body.Shadow)
	p.r.log.Info("decided", "service", p.svc.Name, "key", p.step.Key, "action", p.proposal.Action,
		"verdict", p.decision.Verdict, "step", p.step.Kind, "reason", codes(p.decision.Reasons), "decision", p.decisionID)
	if p.r.o.DecisionLog != nil {
		p.r.o.DecisionLog.Record(ctx, Recorded{
			ID: p.decisionID, Time: e.Time, Service: p.svc.Name, Decided: body, Input: j.Input, Policy: j.policy, Took: j.took,
		})
	}
}

// sameDecision compares what people and the next step see.
func sameDecision(a, b ledger.Decided) bool {
	return a.Key == b.Key && a.Step == b.Step && a.Decision.Digest == b.Decision.Digest &&
		a.Decision.Verdict == b.Decision.Verdict && a.Decision.Hold == b.Decision.Hold &&
		a.Decision.Ruling.Revision == b.Decision.Ruling.Revision &&
		codes(a.Decision.Reasons) == codes(b.Decision.Reasons)
}

func codes(rs []gate.Reason) string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Code
	}
	return strings.Join(out, ",")
}
