package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// effect is what one reason does to the verdict, strictest first, which is
// also the order in which people read reasons.
type effect int8

const (
	effectDeny effect = iota
	// effectSilent is a policy that grants nothing: it denies, but what passes
	// beside it may be why.
	effectSilent
	effectEscalate
	effectHold
	effectApproval
	effectAuto
)

var effectWords = [...]string{"deny", "silent", "escalate", "hold", "approval", "auto"}

// MarshalText returns the word.
func (e effect) MarshalText() ([]byte, error) { return []byte(effectWords[e]), nil }

// UnmarshalText reads a word; anything unknown denies.
func (e *effect) UnmarshalText(b []byte) error {
	*e = effect(max(0, slices.Index(effectWords[:], string(b))))
	return nil
}

// cap is the highest verdict beside that effect. A hold keeps nothing back for
// ever, so it caps nothing here; Decide handles it last.
func (e effect) cap() Verdict {
	switch e {
	case effectDeny, effectSilent:
		return Deny
	case effectEscalate:
		return Escalate
	case effectApproval:
		return Approval
	default:
		return Auto
	}
}

func effectOf(v Verdict) effect {
	switch v {
	case Auto:
		return effectAuto
	case Approval:
		return effectApproval
	case Escalate:
		return effectEscalate
	default:
		return effectDeny
	}
}

// finding is one floor or rule that fired. Floors of a decision are kept as
// JSON, so that it can be judged again.
type finding struct {
	Effect effect `json:"effect"`
	Reason Reason `json:"reason"`
}

// lowest is the highest verdict that all findings leave.
func lowest(fs []finding) Verdict {
	v := Auto
	for _, f := range fs {
		v = min(v, f.Effect.cap())
	}
	return v
}

// reasonsOf sorts by effect and keeps the order within each.
func reasonsOf(fs []finding) []Reason {
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b finding) int { return int(a.Effect) - int(b.Effect) })
	rs := make([]Reason, 0, len(fs))
	for _, f := range fs {
		rs = append(rs, f.Reason)
	}
	return rs
}

// modeVerdict is the highest verdict in a mode. A mode that is no known word
// allows nothing.
func modeVerdict(m spec.Mode) Verdict {
	switch m {
	case spec.Auto:
		return Auto
	case spec.Approval:
		return Approval
	case spec.Suggest:
		return Escalate
	default:
		return Deny
	}
}

// Ceiling is the highest verdict that an action can get from documents and
// config alone, with the reasons that lower it, for validate and get actions.
// Every reason is named, not only the strictest, so that one reads what raising
// the ceiling would need.
func Ceiling(svc spec.Service, a spec.Action, maxMode spec.Mode, ledger Verdict) (Verdict, []Reason) {
	fs := ceilingFloors(svc, a, maxMode, ledger)
	return lowest(fs), reasonsOf(fs)
}

func ceilingFloors(svc spec.Service, a spec.Action, maxMode spec.Mode, ledger Verdict) []finding {
	var fs []finding
	lower := func(v Verdict, code, text string, args ...any) {
		if v < Auto {
			fs = append(fs, finding{effectOf(v), Reason{Code: code, Text: fmt.Sprintf(text, args...)}})
		}
	}
	mode := svc.Remediation.Mode
	lower(modeVerdict(mode), ReasonMode, "mode %s of the Remediation allows %s at most", mode, modeVerdict(mode))
	lower(modeVerdict(maxMode), ReasonMaxMode, "limits.maxMode %s allows %s at most", maxMode, modeVerdict(maxMode))
	if ledger < Auto {
		v := max(Deny, ledger)
		lower(v, ReasonLedgerCeiling, "demoted to %s at most; a named person raises it with setpoint ceiling raise", v)
	}
	switch a.Class {
	case spec.ClassAuto:
	case spec.ClassApproval:
		lower(Approval, ReasonClassApproval, "%s has class approval: a person must agree", a.Name)
	default:
		lower(Escalate, ReasonClassEscalate, "handed over: %s has class %s and is never run", a.Name, orUnknown(string(a.Class)))
	}
	if a.Reversal != spec.Transient && a.Reversal != spec.Restore {
		lower(Approval, ReasonIrreversible, "%s is %s: a person must agree", a.Name, orUnknown(string(a.Reversal)))
	}
	switch a.Mark() {
	case spec.MarkDedup, spec.MarkConditional, spec.MarkQuery:
	default:
		status := "statusURL"
		if len(a.Target.Argv) > 0 {
			status = "statusArgv"
		}
		lower(Approval, ReasonUnmarked, "%s cannot be asked later what became of it (no %s): a person must agree", a.Name, status)
	}
	return fs
}

// limitFloors are exceptions and maintenances in force, which lower the
// ceiling by their effect. A maintenance with effect observe is a hold instead
// (see PassingFloors): it passes, and the proposal is judged again.
func limitFloors(c Case) []finding {
	var fs []finding
	for _, e := range exceptionsInForce(c) {
		if v := modeVerdict(e.Effect); v < Auto {
			text := fmt.Sprintf("exception %s allows %s at most", e.Name, v)
			if !e.Until.IsZero() {
				text += " until " + clock(e.Until)
			}
			fs = append(fs, finding{effectOf(v), Reason{ReasonException, withReason(text, e.Reason), e.Until}})
		}
	}
	for _, h := range inForce(c.Facts.Maintenances, c.Facts.Now) {
		if v := modeVerdict(h.Effect); h.Effect != spec.Observe && v < Auto {
			fs = append(fs, finding{effectOf(v), Reason{ReasonMaintenance, holdText(fmt.Sprintf("maintenance allows %s at most", v), h), h.Until}})
		}
	}
	return fs
}

// exceptionsInForce keeps the service's exceptions whose end has not passed.
// One without an end limits for ever: it can only tighten.
func exceptionsInForce(c Case) []spec.Exception {
	var out []spec.Exception
	for _, e := range c.Facts.Exceptions {
		if e.Service == c.Service.Name && (e.Until.IsZero() || c.Facts.Now.Before(e.Until)) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b spec.Exception) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func orUnknown(s string) string {
	if s == "" {
		return Unknown
	}
	return s
}
