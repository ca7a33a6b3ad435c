package gate

import (
	"maps"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Decide joins the ruling with the floors. It is monotone: a further deny,
// floor or fault never makes a step possible that was not. It decides actions
// only; a proposal of another kind gets deny or escalate, and never a permit.
func Decide(c Case, r Ruling) Decision { return Prepare(c).Decide(r) }

// Prepared is a case that waits for its ruling.
type Prepared struct {
	// Input is the document to rule on; nil where there is nothing to rule on,
	// which Decide then knows.
	Input  []byte
	Floors Floors

	c      Case
	action spec.Action
}

// Prepare works out all of a decision that does not depend on policy.
func Prepare(c Case) Prepared {
	p := Prepared{c: c, Floors: Floors{Version: FloorsVersion, Key: c.Key}}
	if fs := undecidable(c.Proposal); len(fs) > 0 {
		p.Floors.Undecidable, p.Floors.Bound = true, fs
		return p
	}
	a, ok := c.Service.Action(c.Proposal.Action)
	if !ok {
		p.Floors.Undecidable = true
		p.Floors.Bound = []finding{{effectDeny, Reason{Code: ReasonUnknownAction,
			Text: "no action " + quote(c.Proposal.Action) + " in the documents of " + c.Service.Name}}}
		return p
	}
	p.action = a
	p.bind()
	return p
}

// Decide gives the binding decision, and only here one from which a permit can
// be minted.
func (p Prepared) Decide(r Ruling) Decision {
	return permitted(p.Floors.Join(r), p.c, p.action)
}

// bind fills the floors of an action that the documents know.
func (p *Prepared) bind() {
	c, a, f := p.c, p.action, &p.Floors
	if !isUndo(c) && c.Facts.ApprovedTicket == "" {
		f.Cost = c.Service.Remediation.Budget.Costs.Dearest()
	}
	fs := p.identify()
	fs = append(fs, finalFloors(c, a, f.Digest)...)
	fs = append(fs, dynamicFloors(c, a)...)
	fs = append(fs, actionPassing(c, a)...)
	ceilings := ceilingFloors(c.Service, a, c.Limits.MaxMode, c.Facts.Ceiling)
	fs = append(fs, ceilings...)
	fs = append(fs, limitFloors(c)...)
	f.Bound = append(fs, approvalFloors(c, a)...)
	// The balance is about acting alone: where documents and config never allow
	// that, or a person has agreed, it says nothing.
	if lowest(ceilings) == Auto && c.Facts.ApprovedTicket == "" {
		f.Balance = balanceFloor(c, a, f.Cost)
	}
	f.Document = documentNeed(c.Service)
	f.Ticket, f.TicketNeeds = c.Facts.ApprovedTicket, c.Facts.ApprovedNeeds
	f.OpenTickets, f.OpenApprovals = c.Facts.OpenTickets, c.Limits.OpenApproval
}

// undecidable are the kinds that hold nothing to decide.
func undecidable(p propose.Proposal) []finding {
	switch p.Kind {
	case propose.KindAction:
		return nil
	case propose.KindEscalate:
		return []finding{{effectEscalate, Reason{Code: ReasonProposedEscalate, Text: "the proposer handed over"}}}
	case propose.KindNone:
		return []finding{{effectDeny, Reason{Code: ReasonProposedNone, Text: "the proposer proposed nothing"}}}
	default:
		return []finding{{effectDeny, noProposal(p.Fault)}}
	}
}

// noProposal says why there is none, in no word of a stranger: people read it in
// the first lines of a page.
func noProposal(fault string) Reason {
	switch text := propose.Brief(fault); {
	case propose.Declined(fault):
		return Reason{Code: ReasonDeclined, Text: text}
	case propose.NoModel(fault):
		return Reason{Code: ReasonNoModel, Text: "no model answered: " + text}
	default:
		return Reason{Code: ReasonMalformed, Text: "the reply was no proposal: " + text}
	}
}

// identify fills input and digests; what cannot be named exactly is denied.
func (p *Prepared) identify() []finding {
	c, f := p.c, &p.Floors
	var fs []finding
	deny := func(code, text string, err error) {
		fs = append(fs, finding{effectDeny, Reason{Code: code, Text: text + ": " + err.Error()}})
	}
	if _, err := c.Key.Window(c.Service.Name); err != nil {
		deny(ReasonKey, "refused", err)
	}
	digest, err := Digest(c.Service.Name, c.Key, p.action, c.Proposal.Parameters)
	if err != nil {
		deny(ReasonBounds, "the parameters have no exact form", err)
	}
	f.Digest = digest
	input, err := BuildInput(c)
	if err != nil {
		deny(ReasonInput, "no input for policy", err)
		return fs
	}
	p.Input, f.InputDigest = input, hexSHA256(input)
	return fs
}

// rulingFloors turn the ruling into findings. A fault denies and holds: it is
// ours, it passes when the policy is mended, and the proposal is judged again.
func rulingFloors(r Ruling, input string) []finding {
	fault := r.Fault
	if fault == "" && r.InputDigest != "" && r.InputDigest != input {
		fault = FaultInputInvalid + ": the ruling is on another input"
	}
	if strings.HasPrefix(fault, FaultInputTooLarge) {
		return []finding{{effectDeny, Reason{Code: ReasonInputTooLarge, Text: "policy did not look at it: " + fault}}}
	}
	if fault != "" {
		return []finding{{effectHold, Reason{Code: ReasonPolicyFault, Text: "policy could not be evaluated: " + fault}}}
	}
	var fs []finding
	for _, set := range []struct {
		effect effect
		verb   string
		rules  []Rule
	}{
		{effectDeny, "policy refuses", r.Deny}, {effectEscalate, "policy hands over", r.Escalate},
		{effectApproval, "policy asks a person", r.Approval}, {effectAuto, "policy allows", r.Auto},
	} {
		for _, rule := range sortedRules(set.rules) {
			fs = append(fs, finding{set.effect, ruleReason(set.verb, rule)})
		}
	}
	// Beside what refuses, nobody needs to read that nothing grants.
	if lowest(fs) >= Approval && !r.granted() {
		fs = append(fs, finding{effectSilent, Reason{Code: ReasonUndefined, Text: "policy says nothing about this: no rule grants it"}})
	}
	return fs
}

func ruleReason(verb string, r Rule) Reason {
	text := verb
	if r.Title != "" {
		text += ": " + r.Title
	}
	if r.File != "" {
		text += " (" + (spec.Position{File: r.File, Line: r.Line}).String() + ")"
	}
	if r.Remedy != "" {
		text += "; " + r.Remedy
	}
	return Reason{Code: PolicyPrefix + r.Reason, Text: text}
}

// conclude gives the verdict of the findings: the strictest wins, and what
// passes keeps a grant back.
func conclude(d Decision, fs []finding) Decision {
	d.Verdict = lowest(fs)
	if has(fs, effectHold) {
		d.Hold = lowest(without(fs, effectSilent)) >= Approval
		if d.Verdict >= Approval {
			d.Verdict = Deny
		}
	}
	if d.Verdict != Approval {
		d.Needs = nil
	}
	d.Reasons = reasonsOf(fs)
	return d
}

// permitted fills what Permit mints from, and only where it may be sent.
func permitted(d Decision, c Case, a spec.Action) Decision {
	sendable := d.Verdict == Auto || d.Verdict == Approval && c.Facts.ApprovedTicket != ""
	if d.Hold || !sendable || d.Digest == "" {
		return d
	}
	a.Parameters = append([]spec.Parameter(nil), a.Parameters...)
	d.permit = permitFields{
		service: c.Service.Name, key: c.Key, action: a, parameters: maps.Clone(c.Proposal.Parameters),
		digest: d.Digest, ticket: c.Facts.ApprovedTicket, undo: isUndo(c), at: c.Facts.Now, ttl: c.Limits.PermitTTL,
	}
	return d
}
