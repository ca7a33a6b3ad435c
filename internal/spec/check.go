package spec

import (
	"fmt"
	"slices"
	"time"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// remediation checks what one Remediation says, without its service.
func (c *checker) remediation(r Remediation) {
	c.validName("spec.service", r.Service)
	c.durations(r)
	c.unique("spec.approvers", r.Approvers)
	c.unique("spec.dependsOn", r.DependsOn)
	c.unique("spec.escalation.receivers", r.Escalation.Receivers)
	c.unique("spec.escalation.ownerReceivers", r.Escalation.OwnerReceivers)
	c.people(r)
	c.evidence(r.Evidence)
	c.budget(r)
	c.actionNames(r.Actions)
	c.share("spec.outcomes.improved", &r.Outcomes.Improved, 1)
	c.share("spec.outcomes.worsened", &r.Outcomes.Worsened, 10)
}

// share checks a share of the excess, where one is given.
func (c *checker) share(path string, v *float64, most float64) {
	c.that(v == nil || *v > 0 && *v <= most, path, "is %v, want a share above 0, at most %v", deref(v), most)
}

func (c *checker) durations(r Remediation) {
	c.between("spec.actionWindow", r.ActionWindow, time.Second, day)
	c.that(r.ActionWindow%time.Second == 0, "spec.actionWindow",
		"is %s, want whole seconds: window ids count them", FormatDuration(r.ActionWindow))
	c.between("spec.breachFor", r.BreachFor, 0, day)
	c.between("spec.holdFor", r.HoldFor, time.Second, day)
	c.between("spec.unknownFor", r.UnknownFor, time.Second, day)
	c.between("spec.escalateWithin", r.EscalateWithin, time.Second, 7*day)
	c.between("spec.approvalFor", r.ApprovalFor, time.Second, day)
}

// people checks that whoever a mode needs is named: an approval that nobody
// can give and a page that nobody gets would be silence.
func (c *checker) people(r Remediation) {
	if r.Mode > Observe || r.Escalation.Observe {
		why := "in mode " + r.Mode.String()
		if r.Mode == Observe {
			why = "with escalation.observe"
		}
		c.that(len(r.Escalation.Receivers) > 0, "spec.escalation.receivers",
			"is required %s: name who is told when Setpoint cannot or may not act", why)
	}
	if r.Mode >= Approval && len(r.Actions) > 0 {
		c.that(len(r.Approvers) > 0, "spec.approvers",
			"is required in mode %s: name who may answer, because a spent budget turns auto into approval", r.Mode)
	}
}

func (c *checker) budget(r Remediation) {
	b := r.Budget
	c.between("spec.budget.period", b.Period, time.Second, year)
	c.that(b.Capacity >= 0 && b.Capacity <= 1000, "spec.budget.capacity", "is %v, want 0 to 1000", b.Capacity)
	for _, cost := range []struct {
		key   string
		value float64
	}{{"noChange", b.Costs.NoChange}, {"worsened", b.Costs.Worsened}, {"unknown", b.Costs.Unknown}} {
		c.that(cost.value >= 0 && cost.value <= 1000, "spec.budget.costs."+cost.key, "is %v, want 0 to 1000", cost.value)
	}
	auto := slices.IndexFunc(r.Actions, func(a Action) bool { return a.Class == ClassAuto })
	if auto < 0 {
		return
	}
	name := r.Actions[auto].Name
	c.that(b.Costs.Dearest() > 0, "spec.budget.costs",
		"are all 0, so class auto of action %q would be free: charge at least one outcome", name)
	c.that(b.Capacity >= b.Costs.Dearest(), "spec.budget.capacity",
		"is %v, below the dearest cost %v, so class auto of action %q could never be paid: "+
			"raise the capacity, or make its class approval", b.Capacity, b.Costs.Dearest(), name)
}

func (c *checker) actionNames(actions []Action) {
	first := map[string]int{}
	for i, a := range actions {
		at := IndexPath("spec.actions", i) + ".name"
		c.validName(at, a.Name)
		c.that(a.Name != "none" && a.Name != "escalate", at,
			"%q is a word of the proposer, not a name: choose another", a.Name)
		if j, dup := first[a.Name]; dup {
			c.fault(at, "%q names spec.actions[%d] already", shorten(a.Name), j)
			continue
		}
		first[a.Name] = i
	}
}

// overrides checks what can be checked without the objective itself.
func (c *checker) overrides(all map[string]override) {
	for _, name := range sortedKeys(all) {
		o, at := all[name], KeyPath("spec.objectives", name)
		if o.JudgeWindow != nil {
			c.between(at+".judgeWindow", *o.JudgeWindow, time.Second, day)
		}
		if o.MinEvents != nil {
			c.that(*o.MinEvents >= 0, at+".minEvents", "is %v, want 0 or more", *o.MinEvents)
		}
		if o.AbsentBad != nil {
			c.that(*o.AbsentBad == "zero" || *o.AbsentBad == "unknown", at+".absentBad",
				"%q is unknown here, want zero or unknown", shorten(*o.AbsentBad))
		}
		c.sources(at+".sources", o.Sources)
		c.that(o.Recorded == nil || *o.Recorded == "sloth", at+".recorded", "want sloth: no other rules are known")
		c.share(at+".outcomes.improved", o.Outcomes.Improved, 1)
		c.share(at+".outcomes.worsened", o.Outcomes.Worsened, 10)
		for i, b := range o.BurnRates {
			c.burnRate(IndexPath(at+".burnRates", i), b)
		}
	}
}

func (c *checker) burnRate(at string, b burnRateDoc) {
	c.between(at+".short", b.Short, time.Second, 31*day)
	c.between(at+".long", b.Long, time.Second, year)
	c.that(b.Short < b.Long || b.Long == 0, at, "has short %s, want less than long %s", FormatDuration(b.Short), FormatDuration(b.Long))
	c.that(b.Factor > 0, at+".factor", "is %v, want more than 0", b.Factor)
}

// burnText says why a pair can never burn.
func burnText(factor, target float64) string {
	return fmt.Sprintf("has factor %v: %v x (1 - target %v) = %.4g, and no error ratio exceeds 1, so the pair could never burn",
		factor, factor, target, factor*(1-target))
}
