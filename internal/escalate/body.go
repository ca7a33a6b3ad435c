package escalate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// body is the page in the order in which a person needs it: what is broken,
// what was changed before, what was tried, why Setpoint stopped, what is left, what it would do next,
// what to type; a stranger's words last.
func body(f PageFacts) string {
	var b writer
	b.section("Why you read this", orReason(f))
	if f.Service.Name != "" {
		b.section("Measured at "+instant(f.Assessment.At), measured(f)...)
		b.section("Changed lately", changed(f)...)
		b.section("Tried", tried(f)...)
		b.section("Why Setpoint stopped", stopped(f)...)
		b.section("Autonomy budget left", left(f)...)
		b.section("What it would do next", next(f)...)
	}
	b.section("What you can run", commands(f)...)
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
		w.WriteString("  " + execute.CleanText(l, maxLine) + "\n")
	}
}

func measured(f PageFacts) []string {
	var lines []string
	for _, o := range f.Assessment.Objectives {
		s := o.ID + ": " + string(o.State)
		if o.Reason != "" {
			s += " (" + string(o.Reason) + ")"
		}
		if o.State != compare.Unknown && o.Judge.Known() {
			s += fmt.Sprintf(", %s errors%s, %s allowed, burning %s times the budget",
				percent(o.Judge.ErrorRatio), over(o.Judge.ID.Window), percent(1-o.Target), figure(o.Judge.ErrorRatio/(1-o.Target)))
		} else if o.Detail != "" {
			s += ": " + o.Detail
		}
		lines = append(lines, s)
	}
	if !f.Since.IsZero() {
		lines = append(lines, fmt.Sprintf("since %s, that is %s", instant(f.Since), age(f.Now.Sub(f.Since))))
	}
	return lines
}

// tried is what was done in this episode, newest last.
func tried(f PageFacts) []string {
	var lines []string
	for _, t := range f.Tried {
		if !t.ThisEpisode {
			continue
		}
		s := fmt.Sprintf("%s %s%s: effect %s, outcome %s", instant(t.At), t.Action, parameters(t.Parameters),
			orWord(t.Effect, "none"), orWord(string(t.Outcome), "none"))
		switch t.Outcome {
		case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened:
			s += fmt.Sprintf(" (errors %s before, %s after, measured)", percent(t.Before), percent(t.After))
		}
		lines = append(lines, s)
	}
	if n := len(lines) - maxTried; n > 0 {
		lines = append([]string{fmt.Sprintf("… and %d earlier ones", n)}, lines[n:]...)
	}
	if len(lines) == 0 {
		return []string{"nothing in this episode"}
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
			s += ", until " + instant(r.At)
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
	return []string{fmt.Sprintf("%s of %s for %s, %s of %s for the whole fleet", figure(f.Balance.Remaining), figure(f.Balance.Capacity),
		what, figure(f.Balance.GlobalRemaining), figure(f.Balance.GlobalCapacity))}
}

func next(f PageFacts) []string {
	p := f.Proposal
	if p == nil {
		return []string{"nothing was proposed"}
	}
	lines := proposed(f, p)
	if p.Fallback != "" {
		lines = append(lines, "the rules say so, because no model answered: "+propose.Brief(p.Fallback))
	}
	return lines
}

func proposed(f PageFacts, p *propose.Proposal) []string {
	switch p.Kind {
	case propose.KindAction:
		s := p.Action + parameters(p.Parameters)
		if a, ok := f.Service.Action(p.Action); ok {
			s += fmt.Sprintf(" (%s, target %s)", a.Uses, a.Canonical())
		}
		return []string{s}
	case propose.KindEscalate:
		return []string{"nothing: the proposer hands over to you"}
	case propose.KindNone:
		return []string{"nothing: the proposer knows no step that helps"}
	}
	return []string{"nothing: " + propose.Brief(p.Fault)}
}

// commands are what a person would type, ready to be pasted.
func commands(f PageFacts) []string {
	const because = " --reason '…'"
	var lines []string
	if t := f.Ticket; t != nil && t.State == approve.Open {
		lines = append(lines,
			"setpoint approve "+argument(t.ID)+because+"   (until "+instant(t.Expires)+")",
			"setpoint deny "+argument(t.ID)+because)
	}
	if f.Reason == InDoubt && f.Decision != "" {
		lines = append(lines,
			"setpoint settle "+argument(f.Decision)+" --as landed"+because,
			"setpoint settle "+argument(f.Decision)+" --as not-landed"+because)
	}
	if f.Suspended != "" {
		lines = append(lines, "setpoint budget reset --service "+argument(f.Service.Name)+" --action "+argument(f.Suspended)+because)
	}
	lines = append(lines, remedies[f.Reason]...)
	if f.Service.Name != "" {
		lines = append(lines, "setpoint explain "+argument(f.Service.Name))
	}
	return append(lines, "setpoint ack "+argument(f.ID))
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
	if f.Proposal == nil || f.Proposal.Proposer.Kind == "" {
		return ""
	}
	s := f.Proposal.Proposer.Kind
	if m := f.Proposal.Proposer.Model; m != "" {
		s += ", model " + execute.CleanText(m, 60)
	}
	return " (" + s + ")"
}

func words(f PageFacts) []string {
	if f.Proposal == nil {
		return nil
	}
	clean := execute.CleanText(defused.Replace(f.Proposal.Rationale), maxLine-2)
	if clean == "" {
		return nil
	}
	return []string{"“" + clean + "”"}
}

// argument is a word that a shell takes as one, whatever a name holds.
func argument(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(execute.CleanText(s, 100), "'", `'\''`) + "'"
}

// parameters are " a=1 b=x", by name.
func parameters(p propose.Parameters) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		v := fmt.Sprint(p[name])
		if s, ok := p[name].(string); ok && strings.ContainsAny(s, " \t\n=\"") {
			v = strconv.Quote(s)
		}
		b.WriteString(" " + name + "=" + v)
	}
	return b.String()
}

func percent(ratio float64) string { return figure(ratio*100) + " %" }

// figure keeps three digits, which is more than anybody acts on.
func figure(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func age(d time.Duration) string {
	if d >= 2*time.Minute {
		return spec.FormatDuration(d.Truncate(time.Minute))
	}
	return spec.FormatDuration(max(d, 0).Truncate(time.Second))
}
