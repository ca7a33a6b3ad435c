package gate

import (
	"slices"
	"strings"
	"time"
)

// Outlook is a decision with what is left of it once everything that passes by
// itself has passed, and for people who were asked for all of it: a held decision,
// and one that refuses an old ticket, say nothing else of their policy.
type Outlook struct {
	Now, Lasting Decision
	// Asked is Now, had the ticket asked for what this policy wants. It is what is
	// compared.
	Asked Decision
}

// Outlook joins a ruling with these floors, and with those of them that last.
func (f Floors) Outlook(r Ruling) Outlook {
	out := Outlook{Now: f.Join(r)}
	out.Asked = out.Now
	if f.Ticket != "" {
		f.TicketNeeds = []Need{f.Document}
		for _, rule := range r.Approval {
			f.TicketNeeds = append(f.TicketNeeds, ruleNeed(rule, f.Document))
		}
		out.Asked = f.Join(r)
	}
	f.Bound = without(f.Bound, effectHold)
	// Tickets that are open now will be answered or expire.
	f.OpenTickets, f.OpenApprovals = 0, 1
	out.Lasting = f.Join(r)
	return out
}

// Difference is what is not the same in two decisions on one case.
type Difference struct {
	// Verdict and Hold differ, Verdict now or in what lasts.
	Verdict, Hold bool
	// Needs: both ask people, and others, or more of them, or for another time.
	// Under which reason they are asked does not count.
	Needs bool
	// Loosened: more can be done without a person, or somebody whose word was
	// needed is not asked any more. Tightened is the opposite. Where other people
	// are asked than before it is both, and between deny, escalate and a hold
	// behind which nothing is granted it is neither.
	Loosened, Tightened bool
	// Reasons: the rules that fired differ, by set and reason, or the codes of the
	// reasons do.
	Reasons bool
	// Hidden: policy alone says something else, and floors make it the same.
	Hidden bool
}

// Binding reports whether anything differs that people or the next step see.
func (d Difference) Binding() bool { return d.Verdict || d.Hold || d.Needs }

// Compare says what changes from one decision to another on the same case.
func Compare(before, after Outlook) Difference {
	d := Difference{
		Verdict: before.Asked.Verdict != after.Asked.Verdict || before.Lasting.Verdict != after.Lasting.Verdict,
		Hold:    before.Asked.Hold != after.Asked.Hold,
		Reasons: !slices.Equal(why(before.Now), why(after.Now)),
	}
	was, is := before.Lasting, after.Lasting
	if was.Verdict == Approval && is.Verdict == Approval {
		d.Needs = !slices.Equal(needTexts(was.Needs), needTexts(is.Needs))
		d.Loosened = !implied(was.Needs, is.Needs)
		d.Tightened = !implied(is.Needs, was.Needs)
	} else {
		d.Loosened = freedom(is.Verdict) > freedom(was.Verdict)
		d.Tightened = freedom(is.Verdict) < freedom(was.Verdict)
	}
	d.Hidden = !d.Binding() && before.Now.Ruling.Verdict() != after.Now.Ruling.Verdict()
	return d
}

// freedom is how much can be done: nothing, what a person allows, or the action
// alone. Handing over does as little as refusing.
func freedom(v Verdict) int {
	switch v {
	case Auto:
		return 2
	case Approval:
		return 1
	default:
		return 0
	}
}

// implied reports whether the answers that satisfy given satisfy every one of
// needs too, whoever is in a group.
func implied(needs, given []Need) bool {
	return !slices.ContainsFunc(needs, func(n Need) bool {
		return !slices.ContainsFunc(given, func(g Need) bool { return covers(g, n) })
	})
}

// covers: as many agree, and all of them are of those who may. Two needs that
// cover a third one only together are taken for a difference.
func covers(given, n Need) bool {
	return given.Quorum >= n.Quorum && !slices.ContainsFunc(given.Approvers, func(who string) bool {
		return !slices.Contains(n.Approvers, who)
	})
}

// needTexts are needs without their reasons, each once.
func needTexts(ns []Need) []string {
	out := make([]string, 0, len(ns))
	for _, n := range ns {
		out = append(out, n.text())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (n Need) text() string {
	who := slices.Compact(slices.Sorted(slices.Values(n.Approvers)))
	return strings.Join(append(who, number(float64(n.Quorum)), n.Expires.Round(time.Second).String()), "\n")
}

// Said is one rule that fired, in the set of a verdict.
type Said struct {
	Set  Verdict
	Rule Rule
}

// Said are all rules of a ruling, strictest first and by reason. A ruling with a
// fault says nothing.
func (r Ruling) Said() []Said {
	if r.Fault != "" {
		return nil
	}
	var out []Said
	for v, rules := range [][]Rule{Deny: r.Deny, Escalate: r.Escalate, Approval: r.Approval, Auto: r.Auto} {
		for _, rule := range sortedRules(rules) {
			out = append(out, Said{Verdict(v), rule})
		}
	}
	return out
}

// why is what a decision gives as reasons, without words, each once.
func why(d Decision) []string {
	out := make([]string, 0, len(d.Reasons))
	for _, r := range d.Reasons {
		out = append(out, r.Code)
	}
	for _, s := range d.Ruling.Said() {
		out = append(out, s.Set.String()+" "+s.Rule.Reason)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
