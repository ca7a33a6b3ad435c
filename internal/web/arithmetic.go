package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// mostCharges is how many charges fit a sentence; the newest say most.
const mostCharges = 3

// sums is how a sentence about a balance is worded: times of the night of now
// stand without their date (zero: all with it), and most charges are named.
type sums struct {
	now  time.Time
	most int
}

// inFull is for lists, which are read later too.
var inFull = sums{most: mostCharges}

// arithmetic is what is left for an action and why, in one sentence: "auto
// refused: 3 of 3 spent on scale: …" where the balance is what stops it, and
// "2 of 3 left on restart, 8 of 10 global" where it is not.
func (w sums) arithmetic(v View, svc spec.Service, a spec.Action) string {
	b, cost := balanceOf(v, svc, a.Name), svc.Remediation.Budget.Costs.Dearest()
	text := w.left(b, a.Name)
	if !b.Affords(cost) {
		text = w.refused(b, a.Name, cost)
		if room := roomFor(v, svc, b, cost); !room.IsZero() {
			text += "; next room " + stamp(room, w.now)
		}
	}
	if rs := resets(v, svc.Name, a.Name, svc.Remediation.Budget.Period); len(rs) > 0 {
		text += "; reset by " + rs[0].By
		if rs[0].Until != nil {
			text += " until " + stamp(*rs[0].Until, w.now)
		}
	}
	return text
}

func (w sums) left(b budget.Balance, action string) string {
	spent := ""
	if len(b.Charges) > 0 {
		spent = " (" + w.spent(b.Charges, false) + ")"
	}
	return fmt.Sprintf("%s of %s left on %s%s, %s of %s global",
		figure(b.Remaining), figure(b.Capacity), action, spent, figure(b.GlobalRemaining), figure(b.GlobalCapacity))
}

// refused names the balance that does not fit the dearest outcome.
func (w sums) refused(b budget.Balance, action string, cost float64) string {
	if b.Remaining > 0 && b.Remaining >= cost {
		return fmt.Sprintf("auto refused: %s of %s left for the whole fleet, and one more may cost %s; %s of %s left on %s",
			figure(b.GlobalRemaining), figure(b.GlobalCapacity), figure(cost), figure(b.Remaining), figure(b.Capacity), action)
	}
	text := fmt.Sprintf("auto refused: %s of %s spent on %s", figure(b.Capacity-b.Remaining), figure(b.Capacity), action)
	if spent := w.spent(b.Charges, false); spent != "" {
		text += ": " + spent
	}
	if b.Remaining > 0 {
		text += fmt.Sprintf("; one more may cost %s", figure(cost))
	}
	return text
}

// spent lists charges, newest first.
func (w sums) spent(cs []budget.Charge, named bool) string {
	var parts []string
	for _, c := range slices.Backward(cs) {
		if len(parts) == w.most {
			parts = append(parts, fmt.Sprintf("%d more", len(cs)-w.most))
			break
		}
		one := fmt.Sprintf("%s %s at %s", outcomeWord(c.Outcome), figure(c.Cost), stamp(c.At, w.now))
		if named {
			one = c.Service + "/" + c.Action + " " + one
		}
		parts = append(parts, one)
	}
	return strings.Join(parts, ", ")
}

// roomFor is when so many charges have left that the cost is afforded again, if
// the action's own are what is in the way; zero where that is not known.
func roomFor(v View, svc spec.Service, b budget.Balance, cost float64) time.Time {
	if b.GlobalRemaining < cost {
		o := globalBalance(v).Outlook(v.Global, v.Now)
		return o.NextRoom
	}
	left := b.Remaining
	for _, c := range b.Charges {
		if left += c.Cost; left >= cost && svc.Remediation.Budget.Period > 0 {
			return c.At.Add(svc.Remediation.Budget.Period)
		}
	}
	return time.Time{}
}

// balanceAt is the balance as it was before a decision: charges of claims made
// until then, with what was known of their outcomes.
func balanceAt(v View, svc spec.Service, action string, at time.Time) budget.Balance {
	var then []budget.Charge
	by := map[string]*ledger.Effect{}
	for _, e := range v.State.Effects {
		by[e.Claim.Decision] = e
	}
	for _, c := range v.State.Charges() {
		if !c.At.Before(at) {
			continue
		}
		if e := by[c.Decision]; e != nil && knownAfter(e, at) {
			c.Cost, c.Outcome = e.Claim.Charge, compare.OutcomePending
		}
		then = append(then, c)
	}
	own := budget.Policy{Period: svc.Remediation.Budget.Period, Capacity: svc.Remediation.Budget.Capacity}
	return budget.Of(svc.Name, action, own, v.Global, then, v.State.Resets, at)
}

// knownAfter: what the effect costs was learnt only after that time.
func knownAfter(e *ledger.Effect, at time.Time) bool {
	if e.Claim.Undo {
		return false // It was charged with its outcome, or never.
	}
	if e.Judgement != nil {
		return e.OutcomeAt.After(at)
	}
	return e.EffectAt.After(at) && e.Effect != execute.Claimed && e.Effect != execute.Started
}

// DecisionBalance is what a decision had to pay from, as it was then.
type DecisionBalance struct {
	Balance
	GlobalCapacity float64 `json:"globalCapacity"`
	// Text is the arithmetic in words, with what the decision itself was charged.
	Text string `json:"text"`
}

// decisionBalance is nil where the documents do not know the action any more, or
// nothing was proposed that could cost. Capacity and period are those of the
// documents now, and a reset that a later one replaced is not known any more; the
// exact numbers that policy saw stand in the decision's input.
func decisionBalance(v View, d *ledger.Decision) *DecisionBalance {
	svc, ok := v.Set.Service(d.Service)
	a, known := svc.Action(d.Proposal.Action)
	if !ok || !known {
		return nil
	}
	b := balanceAt(v, svc, a.Name, d.Time)
	out := &DecisionBalance{
		Balance:        Balance{Remaining: b.Remaining, Capacity: b.Capacity, GlobalRemaining: b.GlobalRemaining},
		GlobalCapacity: b.GlobalCapacity,
		Text:           inFull.left(b, a.Name),
	}
	if cost := svc.Remediation.Budget.Costs.Dearest(); !b.Affords(cost) {
		out.Text = inFull.refused(b, a.Name, cost)
	}
	out.Text += paidText(v, d)
	return out
}

// paidText is what the decision itself cost.
func paidText(v View, d *ledger.Decision) string {
	e := v.State.Effects[d.Key]
	switch {
	case e == nil || e.Claim.Decision != d.ID:
		return "; nothing was charged"
	case e.Claim.Verdict != gate.Auto:
		return "; a person approved it, so nothing was charged"
	case e.Judgement == nil && e.Charge() > 0:
		return fmt.Sprintf("; %s charged until its outcome is measured", figure(e.Charge()))
	}
	return fmt.Sprintf("; %s charged at the claim, %s since its outcome (%s)", figure(e.Claim.Charge), figure(e.Charge()), outcomeOf(e))
}

// outcomeOf is what became of an effect, in the words of people.
func outcomeOf(e *ledger.Effect) string {
	if e.Judgement != nil {
		return outcomeWord(e.Outcome)
	}
	return string(e.Effect)
}

func outcomeWord(o compare.Outcome) string {
	switch o {
	case "", compare.OutcomeNone, compare.OutcomePending:
		return "not judged yet"
	}
	return string(o)
}

// figure writes an amount as a person would.
func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// minute is a time as people say it: the seconds of an incident stand in the
// lists.
func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
