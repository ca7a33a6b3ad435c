package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// paper writes an explanation for people. Its first error stays.
type paper struct {
	w   io.Writer
	now time.Time
	err error
}

func (p *paper) line(format string, args ...any) {
	if p.err == nil {
		text := fmt.Sprintf(format, args...)
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(strings.Map(printable, text), " "))
	}
}

func (p *paper) head(title string) {
	p.line("")
	p.line("%s", title)
}

// headline is what whoever is woken reads first.
func (p *paper) headline(lines []web.Line) {
	for _, l := range lines {
		p.line("%-*s%s", web.TopicWidth, l.Topic, l.Text)
	}
	p.line("")
}

func (p *paper) service(e web.Explanation) {
	p.headline(e.Headline)
	s, plan := e.Service, e.Plan
	p.line("%s is %s by what was measured just now", plan.Service, stateText(plan.State, plan.Reason))
	if s.SinceSeconds != nil {
		episode := ""
		if s.Episode != "" {
			episode = ", episode " + s.Episode
		}
		p.line("  the ledger has it %s for %s%s", stateText(s.State, s.Reason), secondsAge(s.SinceSeconds), episode)
	}
	p.asked(s.Asked)
	p.line("  mode %s, ceiling %s%s", modeText(plan.Mode, plan.EffectiveMode), s.Ceiling, keyText(plan.Key))
	p.measured(plan.Objectives)
	p.changes("changed lately", e.Changes, p.now, plan.Service)
	p.head("next step: " + plan.Step)
	p.reasons(plan.Details)
	p.proposal(plan)
	if plan.Decision != nil {
		p.verdict(*plan.Decision)
	}
	p.ceilings(e.Actions)
	p.budgets(e.Budgets)
	p.people(e)
	p.needed(e.Needed)
	if plan.Error != "" {
		p.head("this pass could not be finished: " + plan.Error)
	}
}

// stateText is a state with its reason, where there is one.
func stateText(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + " (" + reason + ")"
}

func keyText(key string) string {
	if key == "" {
		return ""
	}
	return ", key " + key
}

func (p *paper) measured(objectives []web.Objective) {
	p.head("measured")
	for _, o := range objectives {
		p.line("  %s: %s, target %s%s", o.Name, stateText(o.State, o.Reason), percent(&o.Target), vantageText(o.Sources))
		if o.Groups > 0 {
			p.line("    groups breached: %s; the numbers are its", groupsText(o))
		}
		p.line("    errors in the judge window %s, in the SLO's window %s, error budget %s",
			percent(o.JudgeErrorRatio), percent(o.ErrorRatio), budgetText(o.ErrorBudgetRemaining))
		if o.CoveredSeconds != nil {
			p.line("    window truncated to %s of %s: there are no older data", secondsAge(o.CoveredSeconds), secondsAge(&o.WindowSeconds))
		}
		if rates := burnRates(o); rates != "" {
			p.line("    burn rates %s", rates)
		}
		if o.SampleAgeSeconds != nil {
			p.line("    newest sample %s old", secondsAge(o.SampleAgeSeconds))
		}
		if o.WarmingUntil != nil {
			p.line("    warming until %s", clock(*o.WarmingUntil))
		}
		if o.Detail != "" {
			p.line("    %s", detailText(o))
		}
	}
}

// vantageText names the vantage points of an objective that has several.
func vantageText(sources []string) string {
	if len(sources) < 2 {
		return ""
	}
	return ", seen from " + and(sources)
}

// budgetText says how much of an error budget is left, or how far it is
// overspent.
func budgetText(left *float64) string {
	if left != nil && *left < 0 {
		return fmt.Sprintf("spent %.3g times over", 1-*left)
	}
	return percent(left) + " left"
}

func (p *paper) reasons(details []web.Detail) {
	for _, d := range details {
		until := ""
		if d.Until != nil {
			until = " (until " + clock(*d.Until) + ")"
		}
		p.line("  %s: %s%s", d.Code, d.Text, until)
	}
}

func (p *paper) proposal(plan web.PlanItem) {
	if plan.Proposal == nil {
		return
	}
	pr := plan.Proposal
	who := "proposed by " + pr.Proposer
	if pr.Guess {
		who = "the agent asks a model here; the rules in its place propose"
	}
	p.head(fmt.Sprintf("%s: %s", who, strings.TrimSpace(pr.Action+" "+parametersText(pr.Parameters))))
	p.words(pr.Rationale, pr.Fault, pr.Fallback)
}

// words marks what a proposer said as its own words.
func (p *paper) words(rationale, fault, fallback string) {
	if rationale != "" {
		p.line("  in its own words, which reach no decision: %q", rationale)
	}
	for _, f := range []struct{ text, fault string }{
		{"no proposal came of it", fault}, {"the rules spoke because no model answered", fallback},
	} {
		if f.fault != "" {
			p.line("  %s: %s", f.text, propose.Brief(f.fault))
			p.line("    as it was recorded, which quotes strangers: %q", f.fault)
		}
	}
}

func (p *paper) verdict(v web.Verdict) {
	hold := ""
	if v.Hold {
		hold = ", held for now"
	}
	p.head("verdict: " + v.Verdict + hold)
	p.reasons(v.Details)
	p.rules(v.Rules, v.Details)
	p.needs("needs", v.Needs)
	if v.Digest != "" {
		p.line("  digest %s, policy %s", short(v.Digest), short(v.PolicyRevision))
	}
}

func (p *paper) needs(word string, needs []web.Need) {
	if len(needs) > 0 {
		p.line("  %s %s", word, needsText(needs))
	}
}

// rules shows those that no reason has told of already: the grants.
func (p *paper) rules(rules []web.Rule, told []web.Detail) {
	for _, r := range rules {
		if slices.ContainsFunc(told, func(d web.Detail) bool { return d.Code == "policy:"+r.Reason }) {
			continue
		}
		title := r.Title
		if title == "" {
			title = r.Reason
		}
		p.line("  rule %s %q: %s (%s:%d)", r.Set, r.Reason, title, r.File, r.Line)
		if r.Remedy != "" {
			p.line("    %s", r.Remedy)
		}
	}
}

func (p *paper) ceilings(actions []web.Action) {
	if len(actions) == 0 {
		return
	}
	p.head("ceilings")
	for _, a := range actions {
		text := a.Ceiling
		if a.Ceiling != "deny" && len(a.Reasons) > 0 {
			text += " at most"
		}
		if len(a.Reasons) > 0 {
			text += ": " + strings.Join(a.Reasons, ", ")
		}
		p.line("  %s: %s", a.Action, text)
		if a.Suspended != "" {
			p.line("    suspended: %s", a.Suspended)
		}
	}
}

func (p *paper) budgets(budgets []web.Budget) {
	if len(budgets) == 0 {
		return
	}
	p.head("autonomy budget")
	for _, b := range budgets {
		p.line("  %s: %.4g left of %.4g in %s%s", b.Action, b.Remaining, b.Capacity, b.Period, outlookText(b))
		for _, c := range b.Charges {
			p.line("    %s %s cost %.4g (%s), leaves %s", clock(c.Time), c.Decision, c.Cost, c.Outcome, clock(c.Leaves))
		}
		for _, r := range b.Resets {
			p.line("    reset %s by %s%s%s", clock(r.At), r.By, until(r.Until), because(r.Reason))
		}
	}
}

// outlookText is what the charges lead to; nothing while there are none.
func outlookText(b web.Budget) string {
	if len(b.Charges) == 0 {
		return ""
	}
	text := fmt.Sprintf("; %.3g spent a week", b.PerWeek)
	if b.NextRoom != nil {
		text += ", next room " + clock(*b.NextRoom)
	}
	if b.Empty != nil && b.Remaining > 0 {
		text += ", empty " + clock(*b.Empty) + " at that pace"
	}
	return text
}

func (p *paper) people(e web.Explanation) {
	if d := e.Decision; d != nil {
		p.head(fmt.Sprintf("last decision: %s %s, %s, effect %s, outcome %s (`setpoint explain %s`)",
			d.ID, clock(d.Time), d.Verdict, d.Effect, d.Outcome, d.ID))
		p.shadow(*d)
	}
	for _, a := range e.Approvals {
		p.ticket(a)
	}
	for _, pg := range e.Pages {
		p.head(fmt.Sprintf("page %s is open: %s", pg.ID, pg.Summary))
	}
	for _, f := range e.Freezes {
		p.head(fmt.Sprintf("frozen by %s: %s (%s)", f.By, f.Reason, f.ID))
	}
}

func (p *paper) needed(needed []web.Needed) {
	if len(needed) == 0 {
		return
	}
	p.head("it would need")
	for _, n := range needed {
		p.line("  %s: %s", n.Code, n.Text)
	}
}

func (p *paper) decision(d web.DecisionDetail) {
	p.line("%s: %s %s on %s, %s", d.ID, d.Action, parametersText(d.Parameters), d.Service, clock(d.Time))
	p.line("  the service was %s, mode %s, episode %s", stateText(d.Measured.State, d.Measured.Reason), d.Mode, d.Episode)
	p.line("  key %s, digest %s, policy %s", d.Key, short(d.Digest), short(d.PolicyRevision))
	p.head("proposed by " + strings.TrimSpace(strings.Join([]string{d.Proposer.Kind, d.Proposer.Endpoint, d.Proposer.Model}, " ")))
	p.words(d.Rationale, d.Fault, d.Fallback)
	p.exchanges(d)
	hold := ""
	if d.Hold {
		hold = ", held"
	}
	p.head(fmt.Sprintf("verdict: %s%s, step %s", d.Verdict, hold, d.Step))
	p.reasons(d.Details)
	p.rules(d.Rules, d.Details)
	word := "needs"
	if t := d.Ticket; t != nil && t.State != "open" {
		word = "needed"
	}
	p.needs(word, d.Needs)
	if d.Balance != nil {
		p.line("  balance then: %s", d.Balance.Text)
	}
	p.shadow(d.Decision)
	if d.Ticket != nil {
		p.ticket(*d.Ticket)
	}
	p.receipt(d)
	if j := d.Judgement; j != nil {
		p.head(fmt.Sprintf("outcome: %s by %s, errors %s before, %s after, cost %.4g",
			j.Outcome, j.Objective, percent(&j.Before), percent(&j.After), j.Cost))
	} else if d.Outcome == "pending" {
		p.head(fmt.Sprintf("outcome: pending; %.4g is charged until it is measured", d.Charge))
	}
}

// ticket is what people were asked and what they said.
func (p *paper) ticket(t web.Approval) {
	asked := strings.TrimSpace(t.Action + " " + parametersText(t.Parameters))
	switch {
	case t.State == "open":
		p.head(fmt.Sprintf("ticket %s is open: %s, expires %s", t.ID, asked, clock(t.Expires)))
		p.line("  setpoint approve %s --reason '…', or setpoint deny %s --reason '…'", t.ID, t.ID)
	case t.Started != nil:
		p.head(fmt.Sprintf("ticket %s is %s: %s, executed %s", t.ID, t.State, asked, clock(*t.Started)))
	default:
		p.head(fmt.Sprintf("ticket %s is %s: %s", t.ID, t.State, asked))
	}
	if t.Reason != "" && len(t.Answers) == 0 {
		p.line("  %s", t.Reason)
	}
	for _, a := range t.Answers {
		p.line("  %s by %s (%s) %s%s", pastWord(a.Answer), a.By, a.Via, clock(a.Time), because(a.Reason))
	}
}

// because is the reason that somebody gave, if any.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (p *paper) receipt(d web.DecisionDetail) {
	r := d.Receipt
	if r == nil {
		p.head("effect: none, nothing was sent by this decision")
		return
	}
	p.head("effect: " + r.Effect)
	if r.Sent != nil {
		p.line("  sent %s to %s", clock(*r.Sent), r.Target)
	}
	if r.Detail != "" {
		p.line("  the actuator: %s", r.Detail)
	}
	if r.Void != "" {
		p.line("  void: %s", r.Void)
	}
	if r.Settled != "" {
		p.line("  settled by %s%s", r.Settled, because(r.SettledFor))
	}
	if inDoubt(r.Effect) {
		p.line("  nobody knows whether it acted, and it is never sent again; service and target stay locked")
		if r.Horizon != nil {
			p.line("  it may still land until %s", clock(*r.Horizon))
		}
		p.line("  look at the target, then: setpoint settle %s --as landed|not-landed --reason '…'", d.ID)
	}
}
