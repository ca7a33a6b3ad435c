package main

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// edit is one change that a person could commit. Setpoint never writes it.
type edit struct {
	// File and Line are where the key stands, or its nearest parent.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why"`
}

// caps are what the documents allow whatever the mode is.
func (s *scorer) caps(svc spec.Service, a spec.Action, out *score) {
	out.cap = spec.Auto
	if a.Class == "" {
		return // Known from an export alone, which has no documents.
	}
	svc.Remediation.Mode = spec.Auto
	verdict, reasons := gate.Ceiling(svc, a, spec.Auto, gate.Auto)
	if out.cap = modeOf(verdict); out.cap == spec.Auto {
		return
	}
	out.CappedAt = out.cap.String()
	for _, r := range reasons {
		out.CappedBy = append(out.CappedBy, capWord(r.Code, a))
	}
}

// capWord is a key of a document that caps an action.
func capWord(code string, a spec.Action) string {
	switch code {
	case gate.ReasonClassApproval, gate.ReasonClassEscalate:
		return "class " + string(a.Class)
	case gate.ReasonIrreversible:
		return "reversal " + string(a.Reversal)
	case gate.ReasonUnmarked:
		return "no statusURL or statusArgv"
	}
	return code
}

// edits are what would bring an action to the rung that it has earned.
func (s *scorer) edits(svc spec.Service, sc score, all []score) []edit {
	mode, to := svc.Remediation.Mode, min(sc.rung, sc.cap)
	out := []edit{}
	switch {
	case svc.Remediation.Pos.File == "":
		return out // Known from an export alone: nobody could edit it.
	case min(mode, sc.cap) > sc.rung:
		if len(sc.Against) > 0 {
			out = append(out, lowered(svc, sc))
		}
		return out
	case mode < to:
		out = append(out, s.raised(svc, sc, to, all)...)
		out = append(out, s.above(to)...)
	default:
		out = append(out, s.above(min(mode, to))...)
	}
	return append(out, uncapped(svc, sc)...)
}

// uncapped lifts a class that is all that caps the action: somebody chose it, so
// it is said last, and why.
func uncapped(svc spec.Service, sc score) []edit {
	if sc.rung <= sc.cap || len(sc.CappedBy) != 1 || sc.cap < spec.Suggest {
		return nil
	}
	for i, a := range svc.Remediation.Actions {
		if word := "class " + string(a.Class); a.Name == sc.Action && sc.CappedBy[0] == word {
			return []edit{at(svc, fmt.Sprintf("spec.actions[%d].class", i), string(a.Class), classOf(sc.rung),
				fmt.Sprintf("only if it is no longer wanted that %s needs a person", a.Name))}
		}
	}
	return nil
}

// raised raises the mode, which holds for all actions of the service: one that
// has earned less is capped by its class in the same commit.
func (s *scorer) raised(svc spec.Service, sc score, to spec.Mode, all []score) []edit {
	out := []edit{at(svc, "spec.mode", svc.Remediation.Mode.String(), to.String(), fmt.Sprintf("%s has earned %s", sc.Action, sc.rung))}
	for i, a := range svc.Remediation.Actions {
		for _, other := range all {
			if other.Service != svc.Name || other.Action != a.Name || other.Action == sc.Action {
				continue
			}
			// What it has now nobody takes away by the way.
			if keeps := max(other.rung, svc.Remediation.Mode); min(to, other.cap) > keeps {
				out = append(out, at(svc, fmt.Sprintf("spec.actions[%d].class", i), string(a.Class), classOf(keeps),
					fmt.Sprintf("%s has earned %s only, and the mode holds for it too", a.Name, other.rung)))
			}
		}
	}
	return out
}

// lowered takes back what was granted and is not earned, or not any more.
func lowered(svc spec.Service, sc score) edit {
	why := fmt.Sprintf("%s has earned %s only: %s", sc.Action, sc.rung, strings.Join(sc.Against, ", "))
	for i, a := range svc.Remediation.Actions {
		if a.Name == sc.Action && sc.rung >= spec.Suggest {
			return at(svc, fmt.Sprintf("spec.actions[%d].class", i), string(a.Class), classOf(sc.rung), why)
		}
	}
	return at(svc, "spec.mode", svc.Remediation.Mode.String(), sc.rung.String(), why)
}

// classOf is the class that lets an action get no more than a rung.
func classOf(rung spec.Mode) string {
	switch rung {
	case spec.Auto:
		return string(spec.ClassAuto)
	case spec.Approval:
		return string(spec.ClassApproval)
	}
	return string(spec.ClassEscalate)
}

// above is what caps the action outside its document.
func (s *scorer) above(to spec.Mode) []edit {
	if s.maxMode >= to {
		return nil
	}
	return []edit{{File: s.config, Key: "limits.maxMode", From: s.maxMode.String(), To: to.String(), Why: "it caps every service"}}
}

func at(svc spec.Service, key, from, to, why string) edit {
	pos := svc.Remediation.Where.At(key)
	if pos.File == "" {
		pos = svc.Remediation.Pos
	}
	return edit{File: pos.File, Line: pos.Line, Key: key, From: from, To: to, Why: why}
}
