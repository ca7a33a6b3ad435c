package budget

import (
	"math"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
)

// harms are the ways in which an action can do harm within its own budget.
type harms struct {
	actor Actor
	// worsened and unknown are what the two outcomes cost.
	worsened, unknown float64
	// options are those of one period.
	options []option
	bound   Bound
}

// option is some number of each outcome in one period.
type option struct {
	claims, effects int
	// cost is of all claims, last of the one that came last.
	cost, last float64
}

func harmsOf(a Actor, pace Pace) harms {
	h := harms{
		actor: a, bound: Bound{0, BoundByBudget},
		worsened: Cost(compare.OutcomeWorsened, false, a.Costs), unknown: Cost(compare.OutcomeUnknown, false, a.Costs),
	}
	room := a.Budget.room() - a.Costs.Dearest()
	if !(room >= 0 && a.Budget.room() > 0) {
		return h
	}
	most := pace.claims(a)
	h.options = h.fitting(room, most, MaxWorsened)
	best, claims := 0, 0
	for _, o := range h.options {
		best, claims = max(best, o.effects), max(claims, o.claims)
	}
	h.bound.Effects = times(best, pace.periods(a.Budget.Period))
	switch {
	case claims >= most:
		h.bound.By = BoundByCaps
	case slices.ContainsFunc(h.fitting(room, most, MaxWorsened+1), func(o option) bool { return o.effects > best }):
		h.bound.By = BoundByDemotion
	}
	h.bound = tighter(h.bound, Bound{times(most, h.each()), BoundByCaps})
	return h
}

// each is how many effects one claim can lead to.
func (h harms) each() int {
	if h.actor.Restore {
		return 2
	}
	return 1
}

// fitting are the options that need no more room and no more claims than that, if
// so many outcomes Worsened demote.
func (h harms) fitting(room float64, most, demotes int) []option {
	var fit []option
	for n := 0; n <= min(demotes, most); n++ {
		for m := 0; n+m <= most; m++ {
			o := option{claims: n + m, effects: n*h.each() + m, cost: float64(n)*h.worsened + float64(m)*h.unknown}
			switch {
			case n > 0 && (m == 0 || n == demotes):
				o.last = h.worsened
			case n == 0 && m > 0:
				o.last = h.unknown
			case n > 0:
				o.last = max(h.worsened, h.unknown)
			}
			if !fits(o.cost-o.last, room) {
				break
			}
			fit = append(fit, o)
		}
	}
	return fit
}

// grain is into how many parts the global budget is divided to share it out.
// Costs are rounded down to whole parts, so the bound is never too small.
const grain = 2000

// spend shares the global budget out over the actions so that most harm comes of
// it within that time, a period of it at most: the most effects whose cost, that
// of the very last claim left out, fits. An action whose own period is shorter has
// its options several times.
func spend(all []harms, room float64, within time.Duration) int {
	const none = math.MinInt / 2
	// open is the best for each cost without the very last claim, closed with it.
	open, closed := make([]int, grain+1), make([]int, grain+1)
	for i := range open {
		open[i], closed[i] = none, none
	}
	open[0], closed[0] = 0, 0
	for _, h := range all {
		for range (Pace{Over: within}).periods(h.actor.Budget.Period) {
			open, closed = share(open, closed, h.options, max(room, 1e-9)/grain)
		}
	}
	return max(slices.Max(open), slices.Max(closed))
}

// share lets one more action have one of its options, or nothing.
func share(open, closed []int, options []option, unit float64) (o2, c2 []int) {
	parts := func(cost float64) int { return int(min(cost/unit+1e-6, grain+1)) }
	o2, c2 = slices.Clone(open), slices.Clone(closed)
	for _, o := range options {
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
	return o2, c2
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

// within is the part of Over that lies in one period of a budget.
func (p Pace) within(of Policy) time.Duration {
	if of.Period > 0 {
		return min(of.Period, p.over(of))
	}
	return p.over(of)
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
