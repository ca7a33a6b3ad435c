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
func Decide(c Case, r Ruling) Decision {
	d := Decision{Key: c.Key, Ruling: r, Reasons: []Reason{}}
	if fs := undecidable(c.Proposal); len(fs) > 0 {
		return conclude(d, fs)
	}
	a, ok := c.Service.Action(c.Proposal.Action)
	if !ok {
		return conclude(d, []finding{{effectDeny, Reason{Code: ReasonUnknownAction,
			Text: "no action " + quote(c.Proposal.Action) + " in the documents of " + c.Service.Name}}})
	}
	undo := isUndo(c)
	if !undo && c.Facts.ApprovedTicket == "" {
		d.Cost = c.Service.Remediation.Budget.Costs.Dearest()
	}
	var fs []finding
	d, fs = identify(d, c, a)
	fs = append(fs, finalFloors(c, a, d)...)
	fs = append(fs, rulingFloors(r, d.InputDigest)...)
	fs = append(fs, actionPassing(c, a)...)
	ceilings := ceilingFloors(c.Service, a, c.Limits.MaxMode, c.Facts.Ceiling)
	fs = append(fs, ceilings...)
	fs = append(fs, limitFloors(c)...)
	fs = append(fs, approvalFloors(c, a)...)
	// The balance is about acting alone: where documents and config never allow
	// that, or a person has agreed, it says nothing. A rule that asks for a
	// person does not hide an empty balance: people see every reason.
	if lowest(ceilings) == Auto && lowest(fs) >= Approval && c.Facts.ApprovedTicket == "" {
		fs = append(fs, balanceFloor(c, a, d.Cost)...)
	}
	fs, d.Needs = needs(c, r, fs)
	return permitted(conclude(d, fs), c, a)
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
		return []finding{{effectDeny, Reason{Code: ReasonMalformed, Text: withReason("the reply was no proposal", p.Fault)}}}
	}
}

// identify fills digest and input digest; what cannot be named exactly is
// denied.
func identify(d Decision, c Case, a spec.Action) (Decision, []finding) {
	var fs []finding
	deny := func(code, text string, err error) {
		fs = append(fs, finding{effectDeny, Reason{Code: code, Text: text + ": " + err.Error()}})
	}
	if _, err := c.Key.Window(c.Service.Name); err != nil {
		deny(ReasonKey, "refused", err)
	}
	digest, err := Digest(c.Service.Name, c.Key, a, c.Proposal.Parameters)
	if err != nil {
		deny(ReasonBounds, "the parameters have no exact form", err)
	}
	d.Digest = digest
	input, err := BuildInput(c)
	if err != nil {
		deny(ReasonInput, "no input for policy", err)
		return d, fs
	}
	d.InputDigest = hexSHA256(input)
	return d, fs
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
	if len(fs) == 0 {
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
