package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/trace"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// saidRule is one rule that fired.
type saidRule struct {
	web.Rule
	Package string `json:"package"`
	// Deciding: it made the decision, alone or with others.
	Deciding bool `json:"deciding"`
	// Approvers, Quorum and ExpiresSeconds are those that the rule itself asks for.
	Approvers      []string `json:"approvers,omitempty"`
	Quorum         int      `json:"quorum,omitempty"`
	ExpiresSeconds float64  `json:"expiresSeconds,omitempty"`
}

// saidFloor is one floor that bound, or stood beside.
type saidFloor struct {
	// Effect is what it does to the verdict: deny, silent (policy grants nothing),
	// escalate, hold or approval; "" where it was not recorded.
	Effect   string     `json:"effect"`
	Code     string     `json:"code"`
	Text     string     `json:"text"`
	Until    *time.Time `json:"until,omitempty"`
	Remedy   string     `json:"remedy"`
	Deciding bool       `json:"deciding"`
}

// saidDecision is the binding answer.
type saidDecision struct {
	Verdict string `json:"verdict"`
	Hold    bool   `json:"hold"`
	// Lasting is the verdict once what holds has passed; "" where the floors of a
	// recorded decision are not known.
	Lasting string       `json:"lasting"`
	Reasons []string     `json:"reasons"`
	Details []web.Detail `json:"details"`
	Needs   []web.Need   `json:"needs"`
}

// saidRules are the rules that fired, those that decided first. Where no floors
// are known, the strictest set decides if its verdict is the one that binds.
func saidRules(d gate.Decision, findings []gate.Finding, folder string) []saidRule {
	out := []saidRule{}
	known := slices.ContainsFunc(findings, func(f gate.Finding) bool { return f.Effect != "" })
	for _, s := range d.Ruling.Said() {
		r := saidRule{
			Rule: web.Rule{
				Set: s.Set.String(), Reason: s.Rule.Reason, Title: s.Rule.Title, Remedy: s.Rule.Remedy,
				File: path.Join(folder, s.Rule.File), Line: s.Rule.Line,
			},
			Package: s.Rule.Package, Approvers: s.Rule.Approvers, Quorum: s.Rule.Quorum, ExpiresSeconds: s.Rule.Expires.Seconds(),
			Deciding: !known && !d.Hold && s.Set == d.Verdict && s.Set == d.Ruling.Verdict(),
		}
		for _, f := range findings {
			if f.Effect == r.Set && f.Reason.Code == gate.PolicyPrefix+r.Reason {
				r.Deciding = f.Deciding
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b saidRule) int { return first(a.Deciding, b.Deciding) })
	return out
}

// first sorts what decided to the front.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// saidFloors are the findings that no rule made, those that decided first.
func saidFloors(findings []gate.Finding) []saidFloor {
	out := []saidFloor{}
	for _, f := range findings {
		if strings.HasPrefix(f.Reason.Code, gate.PolicyPrefix) {
			continue
		}
		out = append(out, saidFloor{
			Effect: f.Effect, Code: f.Reason.Code, Text: f.Reason.Text, Until: whenOrNil(f.Reason.At),
			Remedy: web.Remedy(f.Reason.Code), Deciding: f.Deciding,
		})
	}
	slices.SortStableFunc(out, func(a, b saidFloor) int { return first(a.Deciding, b.Deciding) })
	return out
}

func whenOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func decisionSaid(d gate.Decision) saidDecision {
	out := saidDecision{Verdict: d.Verdict.String(), Hold: d.Hold, Reasons: []string{}, Details: []web.Detail{}, Needs: []web.Need{}}
	for _, r := range d.Reasons {
		if !slices.Contains(out.Reasons, r.Code) {
			out.Reasons = append(out.Reasons, r.Code)
		}
		out.Details = append(out.Details, web.Detail{Code: r.Code, Text: r.Text, Until: whenOrNil(r.At)})
	}
	for _, n := range d.Needs {
		out.Needs = append(out.Needs, web.Need{Reason: n.Reason, Approvers: n.Approvers, Quorum: n.Quorum, ExpiresSeconds: n.Expires.Seconds()})
	}
	return out
}

// mark shows what decided.
func mark(deciding bool) string {
	if deciding {
		return "*"
	}
	return " "
}

func (p *paper) saidRules(rules []saidRule) {
	for _, r := range rules {
		title := r.Title
		if title == "" {
			title = "(no title)"
		}
		p.line("%s %s %s: %s (%s:%d)", mark(r.Deciding), r.Set, r.Reason, title, r.File, r.Line)
		if r.Remedy != "" {
			p.line("    %s", r.Remedy)
		}
	}
}

func (p *paper) saidFloors(floors []saidFloor) {
	for _, f := range floors {
		until := ""
		if f.Until != nil && !strings.Contains(f.Text, clock(*f.Until)) {
			until = " (until " + clock(*f.Until) + ")"
		}
		effect := f.Effect
		if effect != "" {
			effect += " "
		}
		p.line("%s %s%s: %s%s", mark(f.Deciding), effect, f.Code, f.Text, until)
		if f.Remedy != "" {
			p.line("    %s", f.Remedy)
		}
	}
}

// The depths of --trace.
const (
	traceRules = "rules"
	traceFull  = "full"
)

// traced is what --trace adds to an answer.
type traced struct {
	// Trace says of each rule whether it fired, or where it stopped.
	Trace []trace.Rule `json:"trace,omitempty"`
	// EngineTrace is OPA's own trace of a decision, a line a step.
	EngineTrace []string `json:"engineTrace,omitempty"`
}

// traceFlag adds --trace[=full].
func traceFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "trace", "", "say of each rule whether it fired, or at which expression it stopped; full: every step of the engine")
	cmd.Flags().Lookup("trace").NoOptDefVal = traceRules
	_ = cmd.RegisterFlagCompletionFunc("trace", cobra.FixedCompletions([]string{traceRules, traceFull}, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

// checkTrace refuses another depth.
func checkTrace(cmd *cobra.Command, depth string) error {
	switch depth {
	case "", traceRules, traceFull:
		return nil
	}
	return usageError(cmd, "--trace wants nothing or full, as in --trace=full, not %q", depth)
}

func tracedOf(ctx context.Context, depth string, p *rego.Policy, input []byte, folder string) (t traced, err error) {
	switch depth {
	case traceRules:
		t.Trace, err = trace.Of(ctx, p, input)
		for i, r := range t.Trace {
			t.Trace[i] = r.In(folder)
		}
	case traceFull:
		var text string
		text, err = trace.Full(ctx, p, input)
		t.EngineTrace = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	if err != nil {
		return t, fmt.Errorf("--trace: %w", err)
	}
	return t, nil
}

func (p *paper) traced(t traced) {
	if len(t.Trace) == 0 && len(t.EngineTrace) == 0 {
		return
	}
	p.head("trace")
	for _, r := range t.Trace {
		for _, line := range r.Lines() {
			p.line("  %s", line)
		}
	}
	for _, line := range t.EngineTrace {
		p.line("%s", line)
	}
}
