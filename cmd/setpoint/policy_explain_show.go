package main

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) showExplanation(e policyExplanation, output string) error {
	if output != formatTable {
		if err := emit(a.out, output, e); err != nil {
			return err
		}
	} else {
		p := &paper{w: a.out}
		p.policyExplanation(e)
		if p.err != nil {
			return p.err
		}
	}
	if e.Reproduced != nil && !*e.Reproduced {
		a.say("setpoint: %s does not reproduce: %s; the ledger, or this version, is not the one that decided", e.ID, strings.Map(printable, e.Why))
		return exitCode(exitError)
	}
	return nil
}

func (p *paper) policyExplanation(e policyExplanation) {
	p.line("%s: %s on %s, %s", e.ID, strings.TrimSpace(e.Action+" "+parametersText(e.Parameters)), e.Service, clock(e.Time))
	p.line("  the service was %s, mode %s", stateText(e.State, e.Reason), e.Mode)
	p.revision(e.Policy)
	switch {
	case e.Reproduced == nil:
		p.line("  it was not evaluated again: %s", e.notAgain())
	case *e.Reproduced:
		p.line("  evaluated again on the recorded input it comes out alike")
	default:
		p.line("  evaluated again on the recorded input it comes out otherwise: %s", e.Why)
	}
	p.head(fmt.Sprintf("verdict: %s, step %s, by what is marked *", verdictText(e.saidDecision), e.Step))
	switch {
	case e.Fault != "":
		p.line("  policy could not rule: %s", e.Fault)
	case len(e.Rules) == 0 && e.Policy.Revision != "":
		p.line("  no rule fired")
	}
	p.saidRules(e.Rules)
	if len(e.Floors) > 0 {
		p.head("floors")
		p.saidFloors(e.Floors)
	}
	if len(e.Needs) > 0 {
		p.head("needs " + needsText(e.Needs))
	}
	p.shadow(web.Decision{Verdict: e.Verdict, Hold: e.Hold, Shadow: e.Shadow})
	p.traced(e.traced)
	if e.InputDigest != "" {
		p.head(fmt.Sprintf("as a test: setpoint policy explain %s --input > input.json, then setpoint policy eval --input input.json", e.ID))
	}
}

// notAgain says why a decision was not evaluated again.
func (e policyExplanation) notAgain() string {
	switch {
	case e.Why != "":
		return e.Why
	case e.InputDigest == "":
		return "there was nothing to rule on"
	}
	return "no policy ruled on it"
}

// revision names the bundle, and says of what its files and lines are.
func (p *paper) revision(x explainedPolicy) {
	text := "no policy"
	if x.Revision != "" {
		text = fmt.Sprintf("policy %s, data %s", short(x.Revision), short(x.DataDigest))
	}
	switch {
	case x.Revision == "":
	case x.InForce == nil:
		text += "; files and lines are of that bundle"
	case *x.InForce:
		text += ", as configured now"
	default:
		text += fmt.Sprintf("; configured now is %s, so files and lines are of the recorded bundle", short(x.InForceRevision))
	}
	p.line("  %s", text)
}
