package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// next says what the next pass does and when, or why it does nothing.
func (t teller) next() string {
	p := t.e.Plan
	if p.Error != "" {
		return "this pass could not be finished, the next one tries again: " + p.Error
	}
	switch step.Kind(p.Step) {
	case step.Idle:
		return t.idle() + t.planned()
	case step.Settle:
		return t.settling()
	case step.Execute:
		return t.executing()
	case step.Ask:
		return fmt.Sprintf("it asks a person about %s: %s", t.proposed(), t.reason())
	case step.Escalate:
		return "it hands over to people: " + t.reason() + t.wouldText() + t.pageText()
	case step.Propose:
		if p.Proposal == nil {
			return "the next pass asks the proposer for one step" + t.ceilingText()
		}
	}
	return t.holding()
}

// executing: by itself, or because people agreed.
func (t teller) executing() string {
	if k, ok := t.v.State.OpenTicket(t.svc.Name); ok && k.State == approve.Approved {
		return fmt.Sprintf("it runs %s in its next pass, because people approved %s", actionText(k.Proposal), k.ID)
	}
	return fmt.Sprintf("it runs %s by itself in its next pass, and measures again", t.proposed())
}

// settling waits for measurement, or for somebody who knows.
func (t teller) settling() string {
	on, _ := t.v.State.InFlight(t.svc.Name, "")
	switch {
	case on == nil:
		return "it waits: " + t.reason()
	case on.Effect == execute.Unknown:
		return fmt.Sprintf("nothing, until a person says whether %s acted: it is never sent again", on.Claim.Action.Name)
	case on.InDoubt():
		text := fmt.Sprintf("it asks what became of %s in each pass, and never sends it again", on.Claim.Action.Name)
		if at := on.Horizon(); at.After(t.v.Now) {
			text += "; it may still land until " + stamp(at, t.v.Now)
		}
		return text
	}
	due := on.AppliedAt.Add(on.Claim.Action.Settle)
	return fmt.Sprintf("it measures what %s did, in the first judge window from %s on, and does nothing else until then", on.Claim.Action.Name, stamp(due, t.v.Now))
}

// holding says why nothing is done.
func (t teller) holding() string {
	switch {
	case t.has(gate.ReasonMaintenance):
		if text := t.drill(); text != "" {
			return "nothing, it is left alone: " + text
		}
	case t.has(step.ReasonWaitApproval):
		if k, ok := t.v.State.OpenTicket(t.svc.Name); ok {
			return fmt.Sprintf("it waits for an answer to %s (%s) until %s; without one it does nothing and pages", k.ID, actionText(k.Proposal), stamp(k.Expires, t.v.Now))
		}
	}
	d := t.e.Plan.Decision
	switch {
	case t.e.Plan.State == string(compare.Unknown):
		return "nothing while it is not known how it is; each pass measures again" + t.blindText()
	case d == nil && !t.spent.IsZero():
		return t.nothing() + ": " + t.came() + t.pageText()
	case d == nil:
		return "nothing for now: " + t.reason() + t.until()
	case d.Hold:
		return fmt.Sprintf("it waits with %s: %s%s", t.proposed(), t.reason(), t.until())
	case t.has(gate.ReasonMode), t.has(gate.ReasonMaxMode):
		return fmt.Sprintf("%s: %s%s%s", t.nothing(), t.reason(), t.wouldText(), t.pageText())
	}
	return fmt.Sprintf("%s: %s%s", t.nothing(), t.reason(), t.pageText())
}

// came is what came of a window that is spent.
func (t teller) came() string {
	for _, k := range t.v.State.Tickets {
		switch {
		case string(k.Key) != t.e.Plan.Key:
		case k.State == approve.Expired:
			return "nobody answered " + k.ID + " in time"
		default:
			return "people did not agree in this window"
		}
	}
	return "what was proposed in this window came to nothing"
}

// guessed takes out what the rules say where the agent asks a model: told as what
// comes next it would promise what nobody knows. It says what they say.
func (t *teller) guessed() string {
	p := t.e.Plan.Proposal
	if p == nil || !p.Guess {
		return ""
	}
	text := "; the rules in its place would propose " + p.Action
	if d := t.e.Plan.Decision; d != nil && p.Action != string(propose.KindNone) {
		text += ": " + d.Verdict
		if d.Hold {
			text += ", held for now"
		}
	}
	t.e.Plan.Step, t.e.Plan.Proposal, t.e.Plan.Decision = string(step.Propose), nil, nil
	return text
}

// first is the reason that decides: those of a decision stand strictest first.
func (t teller) first() (Detail, bool) {
	ds := t.e.Plan.Details
	if d := t.e.Plan.Decision; d != nil && len(d.Details) > 0 {
		ds = d.Details
	}
	if len(ds) == 0 {
		return Detail{}, false
	}
	return ds[0], true
}

func (t teller) has(code string) bool {
	d, ok := t.first()
	return ok && d.Code == code
}

func (t teller) until() string {
	d, _ := t.first()
	if d.Until == nil || strings.Contains(d.Text, "until ") || !d.Until.After(t.v.Now) {
		return ""
	}
	return ", until " + stamp(*d.Until, t.v.Now)
}

// proposed is what is in question, or what that would be.
func (t teller) proposed() string {
	p := t.e.Plan.Proposal
	switch {
	case p == nil:
		return "its step"
	case p.Action == string(propose.KindNone):
		return "no step is proposed"
	case p.Undo:
		return "the undo (" + callText(p.Action, p.Parameters) + ")"
	}
	return callText(p.Action, p.Parameters)
}

// pageText says whether people know already, or when they will.
func (t teller) pageText() string {
	if len(t.e.Pages) > 0 {
		return ""
	}
	r := t.svc.Remediation
	if min(r.Mode, t.v.MaxMode) == spec.Observe && !r.Escalation.Observe {
		return "; nobody is paged"
	}
	if due := t.known.EpisodeSince.Add(r.EscalateWithin); t.known.Episode != "" && due.After(t.v.Now) && !t.pagesNow() {
		return "; it pages at " + stamp(due, t.v.Now)
	}
	return ""
}

// pagesNow: what hands over pages at once, but for a mode that always does.
func (t teller) pagesNow() bool {
	return step.Kind(t.e.Plan.Step) == step.Escalate && !t.has(gate.ReasonMode) && !t.has(gate.ReasonMaxMode)
}

// wouldText is what is not done because of the mode.
func (t teller) wouldText() string {
	if t.e.Plan.Proposal == nil || !t.has(gate.ReasonMode) && !t.has(gate.ReasonMaxMode) {
		return ""
	}
	return "; it would be " + t.proposed()
}

// blindText is when people are told that nobody knows.
func (t teller) blindText() string {
	due := t.known.Since.Add(t.svc.Remediation.UnknownFor)
	if len(t.e.Pages) > 0 || t.known.State != compare.Unknown || !due.After(t.v.Now) || t.known.Reason == compare.LowTraffic {
		return ""
	}
	return "; it pages at " + stamp(due, t.v.Now)
}

// ceilingText is what the step could lead to at most.
func (t teller) ceilingText() string {
	if c := t.e.Service.Ceiling; c != "" && c != gate.Auto.String() && c != undeclared {
		return fmt.Sprintf(" (%s at most: mode %s)", c, min(t.svc.Remediation.Mode, t.v.MaxMode))
	}
	return ""
}

// idle tells a service that is well from one whose errors are over the target and
// have not lasted: a breach takes both windows of a pair.
func (t teller) idle() string {
	if o, _ := t.worst(); o.JudgeErrorRatio != nil && *o.JudgeErrorRatio > 1-o.Target {
		return "errors are over the target just now, and no pair of burn rates burns, so it is no breach and nothing is done"
	}
	return "nothing is wrong, so nothing is done"
}

// planned is the maintenance that is on while nothing is wrong.
func (t teller) planned() string {
	if text := t.drill(); text != "" {
		return "; " + text
	}
	return ""
}

// drill is the planned work that is on now, with its owner and end.
func (t teller) drill() string {
	m := plannedOf(t.v, t.svc.Name)
	if m == nil {
		return ""
	}
	text := "planned maintenance " + m.Name
	if m.Owner != "" {
		text += " of " + m.Owner
	}
	text += " until " + stamp(m.Until, t.v.Now)
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

// Planned is a maintenance that is on.
type Planned struct {
	Name   string    `json:"name"`
	Owner  string    `json:"owner"`
	Reason string    `json:"reason"`
	Effect string    `json:"effect"`
	Until  time.Time `json:"until"`
}

// plannedOf is the maintenance of a service that is on now and ends last; nil
// without one.
func plannedOf(v View, service string) *Planned {
	var out *Planned
	for _, m := range v.Set.Maintenances {
		on, until := m.Schedule.Active(v.Now)
		if on && slices.Contains(m.Services, service) && (out == nil || until.After(out.Until)) {
			out = &Planned{Name: m.Name, Owner: m.Owner, Reason: m.Reason, Effect: m.Effect.String(), Until: until.UTC()}
		}
	}
	return out
}
