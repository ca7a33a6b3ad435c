package budget

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
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
// if the proposer is the worst there can be?". It follows from configuration alone, and no proposal, policy or model can exceed
// it: the policy may allow everything.
//
// An effect is harmful when it leaves an objective of its service, or of a
// service that names it in dependsOn and was measured at the claim, worse by the
// document's share over the first judge window after it settled than before the
// claim, whether that was measured or not. Of such an effect measurement can say
// two things only:
//
//	Worsened   charged w = costs.worsened, or nothing where the service was
//	           recovering already; the second within a period takes auto away
//	Unknown    charged u = costs.unknown, where the effect also blinded those who
//	           measure; a row of outcomes and a demotion know nothing of it
//
// Let C be the capacity and D the dearest cost. A claim by verdict auto needs
// D <= what remains, in the action's budget and in the fleet's, and holds D until
// its outcome is known, so claims that are in flight together find no more room
// than one after another. What was charged within a period stays charged for the
// rest of it, so in any stretch of one period
//
//	the last claim needs    cost of all claims before it  <=  C - D
//
// and with m outcomes Unknown and at most MaxWorsened outcomes Worsened, the last
// of which ends the row because the action is demoted then, of the cheapest price
// w' = min over both ways to be charged:
//
//	one Worsened    w' + m u - max(w', u)  <=  C - D     1 + m claims
//	two Worsened    w' + m u               <=  C - D     2 + m claims
//	none            (m - 1) u              <=  C - D         m claims
//
// Where nothing but Worsened at its full price is looked at, this is the rule of
// thumb floor((C - D) / w) + 1, and 0 where C < D.
//
// Each Worsened with reversal restore may be followed by one undo, which needs no
// balance, may do harm as well, and has no undo itself; it may blind, so that it
// is free. A demotion does not keep it back. It counts with the effect that it
// takes back. So with the defaults (C 3, costs 1, 2 and 1) an action does harm 5
// times in 28 days at most: Worsened while recovering, its undo, one Unknown,
// Worsened once more, and its undo.
//
// The fleet's budget bounds all actions together in the same way, with its own C
// and the smallest D; it does not see what is free. Whatever no budget bounds
// (a cost of 0) is bounded by the caps and the pace of one action, and so is
// every outcome that costs nothing because it was none of the action's doing or
// did no harm: no-op, failed, not-now (three in a row suspend), not-landed,
// improved and recovered.
//
// Not bounded by any budget, because nothing can see it: harm to services that
// do not say that they depend on this one, to a dependent that was not measured
// at the claim, harm that is over before the judge window begins or begins after
// it, and harm beside what would have happened without the effect, as long as the
// service does not get worse. There the caps are the bound.
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

// harms are the ways in which an action can do harm within its own budget.
type harms struct {
	actor Actor
	// worsened and unknown are the cheapest prices of the two outcomes.
	worsened, unknown float64
	options           []option
	bound             Bound
}

// option is some number of each outcome in one period.
type option struct {
	claims, effects int
	// cost is of all claims, last of the one that came last.
	cost, last float64
}

func harmsOf(a Actor, pace Pace) harms {
	h := harms{
		actor: a, unknown: Cost(compare.OutcomeUnknown, false, a.Costs),
		worsened: min(Cost(compare.OutcomeWorsened, false, a.Costs), Cost(compare.OutcomeWorsened, true, a.Costs)),
	}
	room := a.Budget.room() - a.Costs.Dearest()
	if !(room >= 0 && a.Budget.room() > 0) {
		h.bound = Bound{0, BoundByBudget}
		return h
	}
	most := pace.claims(a)
	for n := range MaxWorsened + 1 {
		h.addOptions(n, room, most)
	}
	best, claims := 0, 0
	for _, o := range h.options {
		best, claims = max(best, o.effects), max(claims, o.claims)
	}
	h.bound = Bound{times(best, pace.periods(a.Budget.Period)), BoundByBudget}
	switch {
	case claims >= most:
		h.bound.By = BoundByCaps
	case h.undemoted(room) > best:
		h.bound.By = BoundByDemotion
	}
	h.bound = tighter(h.bound, Bound{most * h.each(), BoundByCaps})
	return h
}

// each is how many effects one claim can lead to.
func (h harms) each() int {
	if h.actor.Restore {
		return 2
	}
	return 1
}

// addOptions adds those with n outcomes Worsened and as many Unknown as fit.
func (h *harms) addOptions(n int, room float64, most int) {
	undos := 0
	if h.actor.Restore {
		undos = n
	}
	for m := 0; n+m <= most; m++ {
		o := option{claims: n + m, effects: n + m + undos, cost: float64(n)*h.worsened + float64(m)*h.unknown}
		switch {
		case n == MaxWorsened, m == 0 && n > 0:
			o.last = h.worsened
		case n == 0 && m > 0:
			o.last = h.unknown
		case n > 0:
			o.last = max(h.worsened, h.unknown)
		}
		if !fits(o.cost-o.last, room) {
			return
		}
		h.options = append(h.options, o)
	}
}

// undemoted is how many harmful effects there would be if no outcome demoted.
func (h harms) undemoted(room float64) int {
	cheapest := min(h.worsened, h.unknown)
	if cheapest <= 0 {
		return math.MaxInt
	}
	n := steps(room, cheapest)
	if h.actor.Restore {
		n = max(n, 2*steps(room, h.worsened))
	}
	return n
}

// together bounds some actions by the global budget too. hourly is the cap that
// binds all of them.
func together(all []harms, global Policy, pace Pace, hourly int) Bound {
	sum, each, by, free := 0, 1, "", false
	dearest := math.Inf(1)
	for _, h := range all {
		sum = add(sum, h.bound.Effects)
		each = max(each, h.each())
		free = free || h.bound.By == BoundByCaps
		if by == "" || h.bound.By == BoundByDemotion {
			by = h.bound.By
		}
		if len(h.options) > 0 {
			dearest = min(dearest, h.actor.Costs.Dearest())
		}
	}
	if free {
		by = BoundByCaps
	}
	own := Bound{sum, cmp.Or(by, BoundByBudget)}
	b := tighter(own, Bound{times(hourly*hours(pace.over(global)), each), BoundByCaps})
	if room := global.room() - dearest; !free && !math.IsInf(dearest, 1) {
		n := 0
		if room >= 0 {
			n = spend(all, room, pace)
		}
		b = tighter(b, Bound{times(n, pace.periods(global.Period)), BoundByGlobal})
	}
	return b
}

// grain is into how many parts the global budget is divided to share it out.
// Costs are rounded down to whole parts, so the bound is never too small.
const grain = 2000

// spend shares the global budget out over the actions so that most harm comes of
// it: the most effects whose cost, that of the very last claim left out, fits.
func spend(all []harms, room float64, pace Pace) int {
	unit := max(room, 1e-9) / grain
	parts := func(cost float64) int { return int(min(cost/unit+1e-6, grain+1)) }
	const none = math.MinInt / 2
	// open is the best for each cost without the very last claim, closed with it.
	open, closed := make([]int, grain+1), make([]int, grain+1)
	for i := range open {
		open[i], closed[i] = none, none
	}
	open[0], closed[0] = 0, 0
	for _, h := range all {
		o2, c2 := slices.Clone(open), slices.Clone(closed)
		for _, o := range h.frontier(pace) {
			whole, but := parts(o.cost), parts(o.cost-o.last)
			for i := range open {
				if i+whole <= grain {
					o2[i+whole] = max(o2[i+whole], open[i]+o.effects)
					c2[i+whole] = max(c2[i+whole], closed[i]+o.effects)
				}
				if i+but <= grain {
					c2[i+but] = max(c2[i+but], open[i]+o.effects)
				}
			}
		}
		open, closed = o2, c2
	}
	return max(slices.Max(open), slices.Max(closed))
}

// frontier are the options for all of the time: the own budget may be filled
// several times in it.
func (h harms) frontier(pace Pace) []option {
	if n := pace.periods(h.actor.Budget.Period); n > 1 {
		return []option{{effects: h.bound.Effects}} // Not looked at more closely.
	}
	return h.options
}

// costlyOf bounds the claims of one action that cost anything: helped ones and
// those of a service that was recovering already are free.
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

// claims is how many effects of one action the caps and its own pace leave.
func (p Pace) claims(a Actor) int {
	over := p.over(a.Budget)
	n := min(p.PerHour, p.PerServicePerHour) * hours(over)
	if a.Every > 0 {
		n = min(n, int((over+a.Every-1)/a.Every))
	}
	return max(0, n)
}

func (p Pace) over(of Policy) time.Duration {
	switch {
	case p.Over > 0:
		return p.Over
	case of.Period > 0:
		return of.Period
	}
	return time.Hour
}

// periods is how often a budget can be spent within Over.
func (p Pace) periods(period time.Duration) int {
	if period <= 0 || p.Over <= period {
		return 1
	}
	return int((p.Over + period - 1) / period)
}

func hours(d time.Duration) int { return int((d + time.Hour - 1) / time.Hour) }

// steps is how many claims fit: all but the last must leave room.
func steps(room, cost float64) int {
	if cost <= 0 || room/cost > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(room/cost+1e-9) + 1
}

func fits(cost, room float64) bool { return cost <= room+1e-9 }

func tighter(a, b Bound) Bound {
	if b.Effects < a.Effects {
		return b
	}
	return a
}

func times(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
