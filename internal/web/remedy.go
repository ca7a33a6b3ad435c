package web

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// remedies say what lifts a reason. They are advice to people and reach no
// decision.
var remedies = map[string]string{
	gate.ReasonFreeze:             "`setpoint thaw <id> --reason …` (`setpoint get freezes` lists them)",
	gate.ReasonKeyClaimed:         "the next action window",
	gate.ReasonInFlight:           "the outcome of the action that is under way",
	gate.ReasonUnsettled:          "the outcome of the earlier effect, or a person's `setpoint settle`",
	gate.ReasonSpacing:            "limits.minSpacing to pass",
	gate.ReasonCapService:         "an hour with fewer effects on this service (limits.effectsPerServicePerHour)",
	gate.ReasonCapGlobal:          "an hour with fewer effects (limits.effectsPerHour)",
	gate.ReasonCooldown:           "the action's cooldown to pass",
	gate.ReasonStorm:              "fewer services breached at once for limits.stormCooldown; look for what they have in common",
	gate.ReasonUnknown:            "a measurement: `setpoint validate --live` says why there is none",
	gate.ReasonNotBreached:        "nothing: the objectives are met",
	gate.ReasonRecovering:         "nothing: it is recovering already",
	gate.ReasonBreachFor:          "the breach to last for breachFor",
	gate.ReasonSpecProblem:        "the owner: an objective that was never met is wrong in its query or its target (`setpoint explain`, `setpoint validate --live`)",
	gate.ReasonFreshReads:         "a second reading with a newer sample",
	gate.ReasonSilence:            "the end of the silence at Alertmanager",
	gate.ReasonSilencesUnreadable: "make the Alertmanager of the receiver reachable, or take it out of receivers",
	gate.ReasonMaintenance:        "the end of the maintenance",
	gate.ReasonException:          "the end of the exception",
	gate.ReasonDependency:         "its dependency to be met",
	gate.ReasonClock:              "clocks of host, ledger and sources that agree within 5 s; `setpoint ledger lower-mark` after one that ran ahead",
	gate.ReasonPolicyFault:        "a policy that loads (`setpoint policy check`)",
	gate.ReasonUndefined:          "a policy rule that grants it",
	gate.ReasonBudgetSpent:        "charges to age out, or `setpoint budget reset`",
	gate.ReasonClassApproval:      "class: auto on the action",
	gate.ReasonClassEscalate:      "class: approval or auto on the action",
	gate.ReasonIrreversible:       "reversal: transient or restore, if that is true",
	gate.ReasonUnmarked:           "a statusURL or statusArgv, so that it can be asked what became of it",
	gate.ReasonWarming:            "data that covers the long window",
	gate.ReasonGrouped:            "parameters of the action named as the group's labels, with the worst group's values",
	gate.ReasonDocumentsChanged:   "one holdFor without an episode after the change of the documents",
	gate.ReasonSuspended:          "`setpoint budget reset --service … --action … --reason …`",
	gate.ReasonBounds:             "parameters within the bounds, against the observed state",
	gate.ReasonOwnership:          "a target that no other controller owns",
	gate.ReasonExpired:            "a fresh decision",
	gate.ReasonDigest:             "a fresh decision: the action changed after it was gated",
	gate.ReasonPersonHold:         "the end of this episode: a person said no",
	gate.ReasonUnanswered:         "the end of this episode: nobody answered; longer approvalFor or more approvers, for the next one",
	gate.ReasonOpenApprovals:      "an answer to an open ticket (`setpoint get approvals`)",
	gate.ReasonUnknownAction:      "an action of that name in the Remediation",
	gate.ReasonLedgerCeiling:      "a named person's `setpoint ceiling raise`",
	gate.ReasonMode:               "mode: auto in the Remediation",
	gate.ReasonMaxMode:            "limits.maxMode: auto in setpoint.yaml",
	gate.ReasonNoApprovers:        "approvers in the Remediation, in a group of setpoint.yaml",
	gate.ReasonInFlightTarget:     "the outcome of the action that is under way on the same target",
	gate.ReasonOscillation:        "a person: mend the cause by hand, it would only swing back and forth",
	gate.ReasonFight:              "a person: find who keeps changing it back, one of the two has to let go",
	gate.ReasonRepeat:             "a person: the cause, which this action only puts off",
	gate.ReasonForeignChange:      "a person: somebody else changed the target since, look at it before anything is taken back",
	gate.ReasonLiveUnknown:        "an actuator that says what its target holds (statusURL or statusArgv)",
	gate.ReasonNeedsChanged:       "a new ticket: more people have to agree now than were asked",
	gate.ReasonProposedEscalate:   "a person: the proposer has nothing that it would try",
	gate.ReasonProposedNone:       "a rule or a model that proposes something",
	gate.ReasonMalformed:          "a proposer that answers with a proposal (`setpoint explain <decision>` shows what was wrong)",
	gate.ReasonDeclined:           "a person, or another model (`setpoint prompt render --decision <decision>` shows its words)",
	gate.ReasonNoModel:            "an endpoint that answers (`setpoint doctor --only model`), or rules beside it",
	gate.ReasonInputTooLarge:      "fewer evidence queries, groups or changes: policy does not read that much",
	gate.ReasonInput:              "a fresh decision: the facts had no exact form",
	gate.ReasonKey:                "a fresh decision: the key was none of this service",
	gate.ReasonApproved:           "nothing: people approved it",
	step.ReasonNoActions:          "actions in the Remediation",
	step.ReasonAwaiting:           "the outcome of the action that is under way",
	step.ReasonInDoubt:            "an answer of the actuator, or a person's `setpoint settle`",
	step.ReasonWaitApproval:       "an answer: `setpoint approve <ticket>` or `setpoint deny <ticket>`",
	step.ReasonWindowSpent:        "the next action window",
	step.ReasonAsked:              "the proposer's answer, or its deadline",
}

// Remedy says what lifts a reason; "" when nothing general can be said.
func Remedy(code string) string { return remedies[code] }

// Ceiling is the highest verdict of one action, why, and what else would keep
// it from auto once that were lifted.
type Ceiling struct {
	Service string   `json:"service"`
	Action  string   `json:"action"`
	Ceiling string   `json:"ceiling"`
	Because []Detail `json:"because"`
	// Why is Because in a few words each.
	Why      []string `json:"why"`
	AlsoNeed []string `json:"alsoNeed"`
	Source   string   `json:"source"`
}

// Ceilings is the table of `validate`, in the order of the documents.
func Ceilings(set spec.Set, maxMode spec.Mode) []Ceiling {
	out := []Ceiling{}
	for _, svc := range set.Services {
		for _, a := range svc.Remediation.Actions {
			out = append(out, ceilingOf(svc, a, maxMode))
		}
	}
	return out
}

func ceilingOf(svc spec.Service, a spec.Action, maxMode spec.Mode) Ceiling {
	verdict, reasons := gate.Ceiling(svc, a, maxMode, gate.Auto)
	c := Ceiling{
		Service: svc.Name, Action: a.Name, Ceiling: verdict.String(),
		Because: []Detail{}, Why: []string{}, AlsoNeed: []string{}, Source: a.Pos.String(),
	}
	for _, r := range reasons {
		if capOf(r.Code, svc.Remediation.Mode, maxMode) == verdict {
			c.Because = append(c.Because, Detail{Code: r.Code, Text: plainly(r)})
			c.Why = append(c.Why, why(r, svc.Remediation.Mode, maxMode))
		} else {
			c.AlsoNeed = append(c.AlsoNeed, need(r, svc.Remediation.Mode, maxMode))
		}
	}
	return c
}

// capOf is the highest verdict beside one reason of a ceiling.
func capOf(code string, mode, maxMode spec.Mode) gate.Verdict {
	switch code {
	case gate.ReasonMode:
		return verdictOfMode(mode)
	case gate.ReasonMaxMode:
		return verdictOfMode(maxMode)
	case gate.ReasonClassEscalate:
		return gate.Escalate
	}
	return gate.Approval
}

// verdictOfMode is the highest verdict in a mode: the words are in one order.
func verdictOfMode(m spec.Mode) gate.Verdict { return gate.Verdict(m) }

// why is a reason of a ceiling in a few words.
func why(r gate.Reason, mode, maxMode spec.Mode) string {
	switch r.Code {
	case gate.ReasonMode:
		return "mode " + modeWord(mode)
	case gate.ReasonMaxMode:
		return "limits.maxMode " + modeWord(maxMode)
	case gate.ReasonClassApproval:
		return "class approval"
	case gate.ReasonClassEscalate:
		return "class escalate"
	case gate.ReasonIrreversible:
		return "reversal irreversible"
	case gate.ReasonUnmarked:
		return "it is unmarked (no statusURL or statusArgv)"
	}
	return r.Text
}

// modeWord reads as a sentence where the mode lets nothing be sent.
func modeWord(m spec.Mode) string {
	if m == spec.Observe {
		return "is observe"
	}
	return m.String()
}

func need(r gate.Reason, mode, maxMode spec.Mode) string {
	switch r.Code {
	case gate.ReasonMode:
		return fmt.Sprintf("mode: auto instead of %s", mode)
	case gate.ReasonMaxMode:
		return fmt.Sprintf("limits.maxMode: auto instead of %s", maxMode)
	}
	if text := Remedy(r.Code); text != "" {
		return text
	}
	return r.Text
}
