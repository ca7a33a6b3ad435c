package escalate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// body is the page in the order in which a person needs it: the five lines of the
// lead, then what is measured, what was changed before, what was tried, why
// Setpoint stopped, what is left, what else to type; a stranger's words last. What
// the lead says is not said twice.
func body(f PageFacts, l approve.Lead) string {
	var b writer
	for _, line := range l.Lines() {
		b.WriteString(line + "\n")
	}
	if f.Service.Name != "" {
		b.section("Measured at "+approve.Instant(f.Assessment.At), approve.Measured(f.Assessment)...)
		b.section(headChanged, changed(f)...)
		b.section(headTried, tried(f, l)...)
		b.section("Why Setpoint stopped", stopped(f)...)
		b.section("Autonomy budget left", left(f)...)
		b.section("What it would do next", next(f, l)...)
	}
	if owner := f.Service.Remediation.Owner; owner != "" {
		b.section("Owner", owner)
	}
	b.section("What else you can run", commands(f, l)...)
	b.section("In the proposer's own words, which reached no decision"+speaker(f), words(f)...)
	return strings.TrimRight(b.String(), "\n")
}

type writer struct{ strings.Builder }

// section writes a heading with its lines; without lines nothing.
func (w *writer) section(heading string, lines ...string) {
	if len(lines) == 0 {
		return
	}
	w.WriteString(heading + "\n")
	for _, l := range lines {
		w.WriteString("  " + execute.CleanText(l, approve.MaxLine) + "\n")
	}
}

// tried is what was done in this episode, newest last, unless the lead says it
// all.
func tried(f PageFacts, l approve.Lead) []string {
	var lines []string
	for _, t := range f.Tried {
		if t.ThisEpisode {
			lines = append(lines, strings.TrimPrefix(approve.Did(t), "did: "))
		}
	}
	if len(lines) == 1 && l.Step == "did: "+lines[0] {
		return nil
	}
	if n := len(lines) - maxTried; n > 0 {
		lines = append([]string{fmt.Sprintf("… and %d earlier ones", n)}, lines[n:]...)
	}
	return lines
}

func stopped(f PageFacts) []string {
	var lines []string
	for i, r := range f.Reasons {
		if i == maxReasons {
			lines = append(lines, fmt.Sprintf("… and %d more", len(f.Reasons)-i))
			break
		}
		s := r.Code
		if r.Text != "" {
			s += ": " + r.Text
		}
		if !r.At.IsZero() {
			s += ", until " + approve.Instant(r.At)
		}
		lines = append(lines, s)
	}
	return lines
}

func left(f PageFacts) []string {
	if f.Balance == nil {
		return nil
	}
	what := "this action"
	if f.Proposal != nil && f.Proposal.Action != "" {
		what = f.Proposal.Action
	}
	return []string{fmt.Sprintf("%s of %s for %s, %s of %s for the whole fleet", approve.Figure(f.Balance.Remaining), approve.Figure(f.Balance.Capacity),
		what, approve.Figure(f.Balance.GlobalRemaining), approve.Figure(f.Balance.GlobalCapacity))}
}

func next(f PageFacts, l approve.Lead) []string {
	p := f.Proposal
	if p == nil || f.Lapsed != nil {
		return nil // What was asked for and lapsed would be shown as coming.
	}
	var lines []string
	if would := approve.Would(f.Service, *p); !strings.HasSuffix(l.Step, would) {
		lines = append(lines, strings.TrimPrefix(would, "would do: "))
	}
	if p.Fallback != "" {
		lines = append(lines, "the rules say so, because no model answered: "+propose.Brief(p.Fallback))
	}
	return lines
}

// commands are what else a person would type, ready to be pasted.
func commands(f PageFacts, l approve.Lead) []string {
	const because = " --reason '…'"
	var lines []string
	if t := f.Ticket; t != nil && t.State == approve.Open {
		lines = append(lines,
			"setpoint approve "+approve.Argument(t.ID)+because,
			"setpoint deny "+approve.Argument(t.ID)+because)
	}
	if f.Reason == InDoubt && f.Decision != "" {
		lines = append(lines,
			"setpoint settle "+approve.Argument(f.Decision)+" --as landed"+because,
			"setpoint settle "+approve.Argument(f.Decision)+" --as not-landed"+because)
	}
	if f.Suspended != "" {
		lines = append(lines, "setpoint budget reset --service "+approve.Argument(f.Service.Name)+" --action "+approve.Argument(f.Suspended)+because)
	}
	lines = append(lines, remedies[f.Reason]...)
	if f.Service.Name != "" {
		lines = append(lines, "setpoint explain "+approve.Argument(f.Service.Name))
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(l.Do, line) })
	if f.Reason == Heartbeat {
		return lines
	}
	return append(lines, "setpoint ack "+approve.Argument(f.ID))
}

// remedies are the commands that go with a reason, whatever the service.
var remedies = map[string][]string{
	PolicyFault:      {"setpoint policy check"},
	LedgerFault:      {"setpoint ledger verify"},
	Storm:            {"setpoint get drift", "setpoint freeze --reason '…'"},
	SpecProblem:      {"setpoint validate --live"},
	ExceptionExpired: {"setpoint validate"},
}

func speaker(f PageFacts) string {
	if f.Proposal == nil {
		return ""
	}
	if s := approve.Speaker(f.Proposal.Proposer); s != "" {
		return " (" + s + ")"
	}
	return ""
}

func words(f PageFacts) []string {
	if f.Proposal == nil {
		return nil
	}
	if said := approve.Quote(f.Proposal.Rationale, maxLine); said != "" {
		return []string{said}
	}
	return nil
}
