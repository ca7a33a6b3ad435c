package gate

import (
	"slices"
	"strings"
)

// teamPrefix is what the packages begin with that only tighten.
const teamPrefix = "setpoint.team."

// granted reports whether a rule of the shared package grants, alone or with a
// person. A team's approval adds a person to what others grant.
func (r Ruling) granted() bool {
	return len(r.Auto) > 0 || slices.ContainsFunc(r.Approval, func(rule Rule) bool { return !strings.HasPrefix(rule.Package, teamPrefix) })
}

// Verdict is what policy alone says, before any floor: the strictest set with a
// rule wins. A ruling with a fault, or one in which no rule grants, is Deny.
func (r Ruling) Verdict() Verdict {
	switch {
	case r.Fault != "" || len(r.Deny) > 0:
		return Deny
	case len(r.Escalate) > 0:
		return Escalate
	case !r.granted():
		return Deny
	case len(r.Approval) > 0:
		return Approval
	case len(r.Auto) > 0:
		return Auto
	}
	return Deny
}

// Deciding are the rules that made the Verdict, by reason: those of its own
// set. Milder ones that fired beside them decided nothing. A fault, and a
// policy that is silent, have none.
func (r Ruling) Deciding() []Rule {
	if r.Fault != "" {
		return nil
	}
	sets := map[Verdict][]Rule{Deny: r.Deny, Escalate: r.Escalate, Approval: r.Approval, Auto: r.Auto}
	return sortedRules(sets[r.Verdict()])
}
