package budget

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Actor is one action of one service that verdict auto may run.
type Actor struct {
	Service, Action string
	Budget          Policy
	Costs           spec.Costs
	// Restore: measurement may lead to an undo.
	Restore bool
	// Every is the least time between two of its effects that are no undo:
	// minSpacing, its cooldown, and the wait for its outcome.
	Every time.Duration
}

// Pace are the rolling caps; 0 allows nothing.
type Pace struct {
	PerHour, PerServicePerHour int
	// Over is the stretch of time that is looked at; one period when zero.
	Over time.Duration
}

// What binds a bound.
const (
	BoundByBudget   = "budget"
	BoundByGlobal   = "global budget"
	BoundByDemotion = "demotion"
	BoundByCaps     = "caps"
)

// Bound is a greatest number of effects, and what it follows from.
type Bound struct {
	Effects int
	By      string
}

// ActorBound is the bound of one action.
type ActorBound struct {
	Service, Action string
	// Harmful are its harmful effects, undos included. Costly are its effects that
	// cost anything, undos not included.
	Harmful, Costly Bound
}

// WorstCase is what the most harmful proposer can do.
type WorstCase struct {
	// Actions are in the order of the actors.
	Actions []ActorBound
	// Services are the harmful effects of each service, Overall those of all.
	Services map[string]Bound
	Overall  Bound
	// Costly is how many effects of all actions can cost anything.
	Costly Bound
}

// Worst is the greatest number of harmful effects that a fleet's configuration
// lets through, if nobody approves, resets or raises anything: the answer to "and
// if the proposer is the worst there can be?". It follows from configuration
// alone, and no proposal, policy or model can exceed it: the policy may allow
// everything.
//
// An effect is harmful when it leaves an objective of its service worse by the
// document's share over the first judge window after it settled than before the
// claim, or makes one miss its target that was met; or when it does the latter to
// a service that names its own in dependsOn and met its targets at the claim. Of
// such an effect a source that counts either all events or none, and keeps what it
// counted, can say two things only:
//
//	Worsened   costs w, also where the service was recovering already; may be
//	           followed by one undo (r = 1 with reversal restore, else 0); the
//	           second within a period takes auto away
//	Unknown    costs u, where the effect also blinded those who measure; a row of
//	           outcomes and a demotion know nothing of it
//
// An undo needs no balance and has no undo itself. It may do harm as well and
// blind, and then it is free: it counts with the effect that it takes back, and a
// demotion does not keep it back.
//
// Let C be the capacity and D the dearest cost. A claim by verdict auto needs
// D <= what remains, in the action's budget and in the fleet's, and holds D until
// its outcome is known, so claims that are in flight together find no more room
// than one after another. What was charged within a period stays charged for the
// rest of it. So in any stretch of one period the last claim needs that all
// before it cost C - D or less, and with n outcomes Worsened, m Unknown, an action
// does harm at most
//
//	max n (1 + r) + m   where   n w + m u - last <= C - D   and   n <= MaxWorsened
//
// times. last is the cost of the claim that comes last: the dearer of those that
// there are, but w where n is MaxWorsened, because that demotes. For a service and
// for the fleet the sum of this over their actions is taken, with the same
// condition once more for the fleet's budget, over all their actions together:
//
//	sum of (n w + m u) - last <= C of the fleet - D, the smallest one
//
// No harm is free there, so the fleet's worst case does not grow with the fleet.
// With the defaults (C 3 and 10, costs 1, 2 and 1) an action does harm 3 times in
// 28 days at most (Unknown, Worsened, its undo), and any fleet 10 times.
//
// The caps bound what costs nothing by configuration, and what is none of the
// action's doing or did no harm: no-op, failed, not-now (three in a row suspend),
// not-landed, improved and recovered.
//
// Only the caps bound harm that nothing can see: to services that do not say that
// they depend on this one, to a dependent that missed its target or was not
// measured at the claim, before the judge window begins or after it (a relapse is
// NoChange), beside what would have happened without the effect, in events that a
// source no longer counts while it counts others, to a dependent whose past it
// forgot, and by an actuator that acts and says that it did not.
func Worst(actors []Actor, global Policy, pace Pace) WorstCase {
	wc := WorstCase{Services: map[string]Bound{}}
	var all []harms
	costly := 0
	for _, a := range actors {
		h := harmsOf(a, pace)
		all = append(all, h)
		b := ActorBound{Service: a.Service, Action: a.Action, Harmful: h.bound, Costly: costlyOf(a, pace)}
		wc.Actions = append(wc.Actions, b)
		costly = add(costly, b.Costly.Effects)
	}
	for _, a := range actors {
		if _, done := wc.Services[a.Service]; !done {
			own := slices.DeleteFunc(slices.Clone(all), func(h harms) bool { return h.actor.Service != a.Service })
			wc.Services[a.Service] = together(own, global, pace, pace.PerServicePerHour)
		}
	}
	wc.Overall = together(all, global, pace, pace.PerHour)
	wc.Costly = costlyTogether(actors, global, pace, costly)
	return wc
}

// together bounds some actions by the global budget too. hourly is the cap that
// binds all of them.
func together(all []harms, global Policy, pace Pace, hourly int) Bound {
	sum, each, by := 0, 1, ""
	dearest := math.Inf(1)
	for _, h := range all {
		sum, each = add(sum, h.bound.Effects), max(each, h.each())
		if rank(h.bound.By) > rank(by) {
			by = h.bound.By
		}
		if len(h.options) > 0 {
			dearest = min(dearest, h.actor.Costs.Dearest())
		}
	}
	b := tighter(Bound{sum, cmp.Or(by, BoundByBudget)}, Bound{times(hourly*hours(pace.over(global)), each), BoundByCaps})
	if math.IsInf(dearest, 1) {
		return b
	}
	n := 0
	if room := global.room() - dearest; room >= 0 && global.room() > 0 {
		n = spend(all, room, pace.within(global))
	}
	return tighter(b, Bound{times(n, pace.periods(global.Period)), BoundByGlobal})
}

// rank orders what binds the actions of a sum; it is named after the last.
func rank(by string) int {
	return slices.Index([]string{BoundByBudget, BoundByDemotion, BoundByCaps}, by)
}

// costlyOf bounds the claims of one action that cost anything.
func costlyOf(a Actor, pace Pace) Bound {
	room := a.Budget.room() - a.Costs.Dearest()
	cheapest := cheapestOf(a.Costs)
	if !(room >= 0) || cheapest <= 0 {
		return Bound{0, BoundByBudget}
	}
	n := Bound{times(steps(room, cheapest), pace.periods(a.Budget.Period)), BoundByBudget}
	if cheapest == a.Costs.Worsened && (a.Costs.NoChange <= 0 || a.Costs.NoChange > 2*cheapest) && a.Costs.Unknown <= 0 {
		n = tighter(n, Bound{times(MaxWorsened, pace.periods(a.Budget.Period)), BoundByDemotion})
	}
	return tighter(n, Bound{pace.claims(a), BoundByCaps})
}

func costlyTogether(actors []Actor, global Policy, pace Pace, sum int) Bound {
	cheapest, dearest := math.Inf(1), math.Inf(1)
	for _, a := range actors {
		if c := cheapestOf(a.Costs); c > 0 {
			cheapest, dearest = min(cheapest, c), min(dearest, a.Costs.Dearest())
		}
	}
	b := tighter(Bound{sum, BoundByBudget}, Bound{pace.PerHour * hours(pace.over(global)), BoundByCaps})
	if math.IsInf(cheapest, 1) {
		return b
	}
	n := 0
	if room := global.room() - dearest; room >= 0 {
		n = steps(room, cheapest)
	}
	return tighter(b, Bound{times(n, pace.periods(global.Period)), BoundByGlobal})
}

// cheapestOf is the smallest cost that is one; 0 without any.
func cheapestOf(c spec.Costs) float64 {
	least := 0.0
	for _, v := range []float64{c.NoChange, c.Worsened, c.Unknown} {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}
