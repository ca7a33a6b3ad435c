package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// facts are filled as internal/reconcile fills them; without is the claim that
// the second gate leaves out.
func (w *world) facts(r *replica, item propose.Item, key, without gate.Key) gate.Facts {
	p := &r.pass
	f := gate.Facts{
		Now: p.now, Assessment: p.saw, FreshReads: r.reads[p.i].n, ClocksApart: p.apart,
		Item: item, Ownership: gate.Unknown, Dependencies: p.others, Freezes: r.freezes(p.svc.Name),
	}
	if r.policy == policyFault {
		f.PolicyFault = "the policy does not compile"
	}
	w.pastFacts(r, &f, key, without)
	return f
}

// freezes are those of the host's files and of the ledger.
func (r *replica) freezes(service string) []gate.Hold {
	var out []gate.Hold
	for _, f := range append(r.fileFreezes(service), r.known.Frozen(service, r.pass.now)...) {
		out = append(out, gate.Hold{ID: f.ID, By: f.By, Text: f.Reason, Until: f.Until})
	}
	return out
}

func (r *replica) fileFreezes(service string) []ledger.Freeze {
	var out []ledger.Freeze
	for _, f := range r.files {
		if f.Service == "" || f.Service == service {
			out = append(out, f)
		}
	}
	return out
}

func (w *world) pastFacts(r *replica, f *gate.Facts, key, without gate.Key) {
	s, p, item := r.known, &r.pass, f.Item
	p.decidedAt = s.Head
	known, _ := s.Service(p.svc.Name)
	f.Since, f.Episode = known.Since, known.Episode
	if known.Documents != "" && known.State != "" && !known.EverMet {
		f.SpecProblem = "never met since its documents were loaded"
	}
	f.KeyClaimed = p.foreign || key != without && s.KeyClaimed(p.svc.Name, windowOf(key))
	target := ""
	if item.Action.Name != "" {
		target = item.Action.Canonical()
	}
	onService, onTarget := s.InFlight(p.svc.Name, target)
	f.InFlight, f.InFlightTarget = naming(onService, without), naming(onTarget, without)
	hour := p.now.Add(p.ahead - time.Hour)
	f.SentService, f.SentGlobal = s.Sent(p.svc.Name, hour), s.Sent("", hour)
	if w.bad != sentOnly {
		// Two services that are claimed at once must not share the last place.
		f.SentService += s.Claimed(p.svc.Name, without)
		f.SentGlobal += s.Claimed("", without)
	}
	f.LastSent = p.hostTime(s.LastSent(p.svc.Name, ""))
	f.ActionSent = p.hostTime(s.LastSent(p.svc.Name, item.Action.Name))
	f.OpenTickets = s.OpenTickets()
	f.PersonHold, f.Unanswered = personHold(s.Refused(p.svc.Name, known.Episode), p.svc, item.Action)
	f.Suspended = s.Suspended(p.svc.Name, item.Action.Name, p.now)
	if f.Suspended != "" {
		w.hit("suspended")
	}
	f.Ceiling = s.Ceiling(p.svc.Name, item.Action.Name, p.now)
	if !known.DocumentsSettled(p.svc.Remediation.HoldFor, p.now) {
		f.DocumentsChangedAt = known.DocumentsAt
	}
	decision := ""
	if e := s.Effects[without]; e != nil {
		decision = e.Claim.Decision
	}
	f.Balance = balance(s, p, item.Action.Name, decision)
}

func windowOf(key gate.Key) gate.WindowID {
	_, id, _ := strings.Cut(string(key), ":")
	w, _ := gate.ParseWindowID(id)
	return w
}

func naming(e *ledger.Effect, without gate.Key) string {
	if e == nil || e.Claim.Key == without {
		return ""
	}
	return e.Claim.Action.Name + " of " + string(e.Claim.Key) + " is " + string(e.Effect)
}

func personHold(refused []approve.Ticket, svc spec.Service, a spec.Action) (denied, unanswered string) {
	for _, t := range refused {
		other, known := svc.Action(t.Proposal.Action)
		if t.Proposal.Action != a.Name && (!known || other.Canonical() != a.Canonical()) {
			continue
		}
		name := fmt.Sprintf("%s (%s)", t.ID, t.Proposal.Action)
		if t.State == approve.Expired {
			unanswered = name
		} else {
			denied = name + " was " + string(t.State)
		}
	}
	return denied, unanswered
}

func balance(s *ledger.State, p *pass, action, without string) budget.Balance {
	var charges []budget.Charge
	for _, c := range s.Charges() {
		if without == "" || c.Decision != without {
			charges = append(charges, c)
		}
	}
	b := p.svc.Remediation.Budget
	own := budget.Policy{Period: b.Period, Capacity: b.Capacity}
	return budget.Of(p.svc.Name, action, own, globalBudget(), charges, s.Resets, p.now)
}

// decide is the gate on the pass's proposal; again is the claim's permit.
func (w *world) decide(r *replica, again *gate.Permit) gate.Decision {
	p := &r.pass
	var item propose.Item
	if a, ok := p.svc.Action(p.proposal.Action); ok {
		item = propose.Item{Action: a, Live: live(), LiveKnown: a.Mark() != spec.MarkUnmarked}
	}
	without := gate.Key("")
	if again != nil {
		without = again.Key()
	}
	f := w.facts(r, item, p.step.Key, without)
	if again != nil {
		f.PermitDigest, f.PermitExpires = again.Digest(), again.Expires()
	}
	if t := p.past.ticket; t != nil && t.ID == p.step.Ticket {
		f.ApprovedTicket, f.ApprovedDigest, f.ApprovedNeeds = t.ID, t.Digest, t.Needs
		if w.bad == looseApproval {
			f.ApprovedDigest, _ = gate.Digest(p.svc.Name, p.step.Key, item.Action, p.proposal.Parameters)
		}
	}
	c := gate.Case{Service: p.svc, Proposal: p.proposal, Key: p.step.Key, Facts: f, Limits: w.limits}
	rule := ruling(r.policy)
	if p.proposal.Kind != propose.KindAction {
		rule = gate.Ruling{}
	}
	return gate.Decide(c, rule)
}

// hostTime is a time of the store's clock in this host's; zero stays zero.
func (p *pass) hostTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-p.ahead)
}
