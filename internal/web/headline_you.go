package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// you is what a person can do now, as the command to type.
func (t teller) you() string {
	text := t.command()
	for _, p := range t.e.Pages {
		if p.State == "open" && !strings.Contains(text, "setpoint ack") {
			return text + "; then setpoint ack " + p.ID
		}
	}
	return text
}

func (t teller) command() string {
	if on, _ := t.v.State.InFlight(t.svc.Name, ""); on != nil && (on.InDoubt() || on.Effect == execute.Unknown) {
		return fmt.Sprintf("look at the target, then setpoint settle %s --as landed|not-landed --reason '…'", on.Claim.Decision)
	}
	if k, ok := t.v.State.OpenTicket(t.svc.Name); ok {
		return t.ticketCommand(k)
	}
	for _, f := range t.e.Freezes {
		return fmt.Sprintf("setpoint thaw %s --reason '…' lets it act again", f.ID)
	}
	if why := t.v.State.Suspended(t.svc.Name, t.action(), t.v.Now); why != "" {
		return "mend it by hand, then " + t.resetCommand()
	}
	if text := t.unlock(); text != "" {
		return text
	}
	if step.Kind(t.e.Plan.Step) == step.Idle {
		return "nothing"
	}
	if len(t.e.Pages) > 0 && t.e.Pages[0].State == "open" {
		return fmt.Sprintf("setpoint ack %s says that you have it", t.e.Pages[0].ID)
	}
	return t.stop()
}

func (t teller) ticketCommand(k approve.Ticket) string {
	switch {
	case k.State == approve.Approved:
		return fmt.Sprintf("setpoint deny %s --reason '…' stops it while it is not sent", k.ID)
	case t.v.State.Storm.Holds():
		return fmt.Sprintf("setpoint deny %s --reason '…'; nothing can be approved while the storm brake is on", k.ID)
	}
	return fmt.Sprintf("setpoint approve %s --reason '…', or setpoint deny %s --reason '…'", k.ID, k.ID)
}

func (t teller) resetCommand() string {
	if a, ok := t.svc.Action(t.action()); ok {
		cost := t.svc.Remediation.Budget.Costs.Dearest()
		if b := balanceOf(t.v, t.svc, a.Name); b.Remaining > 0 && b.Remaining >= cost && b.GlobalRemaining < cost {
			return "setpoint budget reset --reason '…' --until 24h for the whole fleet"
		}
	}
	return fmt.Sprintf("setpoint budget reset --service %s --action %s --reason '…' --until 24h", t.svc.Name, t.action())
}

// stop is how to keep it from acting.
func (t teller) stop() string {
	return fmt.Sprintf("nothing is needed; setpoint freeze --service %s --reason '…' stops it", t.svc.Name)
}

// unlock is the command that lifts the first reason, or what to do where no
// command does.
func (t teller) unlock() string {
	d, ok := t.first()
	if !ok {
		return ""
	}
	if text := t.unlockBy(d.Code); text != "" {
		return text
	}
	if text, ok := unlocks[d.Code]; ok {
		return text
	}
	return t.policyRemedy(d.Code)
}

// unlockBy are the commands that name something.
func (t teller) unlockBy(code string) string {
	name := t.svc.Name
	switch code {
	case gate.ReasonBudgetSpent:
		return "wait for its ticket (setpoint get approvals), or " + t.resetCommand()
	case gate.ReasonLedgerCeiling:
		return fmt.Sprintf("setpoint ceiling raise --service %s --action %s --to auto --reason '…'", name, t.action())
	case gate.ReasonMode, gate.ReasonMaxMode:
		earned := fmt.Sprintf("setpoint scorecard --service %s says which mode it has earned", name)
		if text := t.byHand(); text != "" {
			return text + "; " + earned
		}
		return earned
	case gate.ReasonDependency:
		return t.dependency()
	case gate.ReasonRepeat, gate.ReasonOscillation, gate.ReasonFight, gate.ReasonForeignChange:
		return fmt.Sprintf("mend the cause: setpoint history --service %s --since 24h shows each step", name)
	case gate.ReasonSpecProblem:
		return fmt.Sprintf("the owner%s has to mend the query or the target: setpoint validate --live", ownerText(t.svc))
	}
	return ""
}

// unlocks are the answers that are the same for every service.
var unlocks = map[string]string{
	gate.ReasonStorm:         "look for what they have in common: setpoint get drift lists what is missed, oldest first",
	gate.ReasonMaintenance:   "nothing; to end it early, take the Maintenance out of the documents and setpoint validate",
	gate.ReasonPolicyFault:   "setpoint policy check says what is wrong with the policy",
	gate.ReasonPersonHold:    "mend it by hand: it is not asked about again in this episode",
	gate.ReasonUnanswered:    "act by hand: nobody answered in time, so it is not asked again in this episode",
	step.ReasonWindowSpent:   "mend it by hand: it is not asked about again in this episode",
	gate.ReasonUnknown:       "setpoint validate --live says why nothing is measured",
	gate.ReasonClock:         "make the clocks of host, ledger and sources agree within 5 s",
	gate.ReasonSilence:       "end the silence at Alertmanager, or wait for its end",
	gate.ReasonClassEscalate: "do it by hand: this action is never run by Setpoint",
}

func ownerText(svc spec.Service) string {
	if svc.Remediation.Owner == "" {
		return ""
	}
	return " (" + svc.Remediation.Owner + ")"
}

// policyRemedy is what the author of a rule says that would help.
func (t teller) policyRemedy(code string) string {
	d := t.e.Plan.Decision
	if d == nil || d.Verdict == gate.Auto.String() || d.Verdict == gate.Approval.String() {
		return ""
	}
	at := slices.IndexFunc(d.Rules, func(r Rule) bool { return gate.PolicyPrefix+r.Reason == code && r.Remedy != "" })
	if at < 0 {
		return ""
	}
	return d.Rules[at].Remedy
}

// dependency points at the service that has to be healed first.
func (t teller) dependency() string {
	for _, name := range t.svc.Remediation.DependsOn {
		if of, ok := t.v.State.Service(name); !ok || of.State != compare.Met {
			return fmt.Sprintf("setpoint explain %s: it is what has to be healed first", name)
		}
	}
	return Remedy(gate.ReasonDependency)
}
