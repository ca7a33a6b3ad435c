package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const month = 28 * 24 * time.Hour

func actor(service string, capacity float64, costs spec.Costs, restore bool) budget.Actor {
	return budget.Actor{
		Service: service, Action: "act", Budget: budget.Policy{Period: month, Capacity: capacity}, Costs: costs,
		Restore: restore, Every: 10 * time.Minute,
	}
}

func TestWorstFollowsFromConfiguration(t *testing.T) {
	usual := spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}
	global := budget.Policy{Period: month, Capacity: 10}
	pace := budget.Pace{PerHour: 6, PerServicePerHour: 2, Over: month}
	fleet := func(n int, a budget.Actor) []budget.Actor {
		var as []budget.Actor
		for i := range n {
			a.Service = fmt.Sprint("s", i)
			as = append(as, a)
		}
		return as
	}
	caps := 2 * 24 * 28
	for _, c := range []struct {
		name    string
		actors  []budget.Actor
		global  budget.Policy
		pace    budget.Pace
		harmful budget.Bound // of the first action
		costly  budget.Bound
		overall budget.Bound
	}{
		{"defaults", fleet(1, actor("", 3, usual, true)), global, pace,
			budget.Bound{Effects: 3, By: "budget"}, budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 3, By: "budget"}},
		{"a restart has no undo", fleet(1, actor("", 3, usual, false)), global, pace,
			budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 2, By: "budget"}},
		{"capacity of one harm", fleet(1, actor("", 2, usual, true)), global, pace,
			budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 1, By: "budget"}, budget.Bound{Effects: 2, By: "budget"}},
		{"harm is cheaper than a demotion lets through", fleet(1, actor("", 5, spec.Costs{NoChange: 2, Worsened: 1, Unknown: 2}, true)), global, pace,
			budget.Bound{Effects: 5, By: "demotion"}, budget.Bound{Effects: 4, By: "budget"}, budget.Bound{Effects: 5, By: "demotion"}},
		{"capacity below the dearest", fleet(1, actor("", 1.5, usual, true)), global, pace,
			budget.Bound{By: "budget"}, budget.Bound{By: "budget"}, budget.Bound{By: "budget"}},
		{"no capacity", fleet(1, actor("", 0, usual, true)), global, pace,
			budget.Bound{By: "budget"}, budget.Bound{By: "budget"}, budget.Bound{By: "budget"}},
		{"what nobody can see costs nothing", fleet(1, actor("", 3, spec.Costs{NoChange: 1, Worsened: 2}, false)), global, pace,
			budget.Bound{Effects: caps, By: "caps"}, budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: caps, By: "caps"}},
		{"a fleet spends the global budget", fleet(20, actor("", 3, usual, false)), global, pace,
			budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 2, By: "budget"}, budget.Bound{Effects: 9, By: "global budget"}},
		{"caps below every budget", fleet(3, actor("", 100, usual, false)), budget.Policy{Period: month, Capacity: 1000},
			budget.Pace{PerHour: 1, PerServicePerHour: 1, Over: 5 * time.Hour},
			budget.Bound{Effects: 5, By: "caps"}, budget.Bound{Effects: 5, By: "caps"}, budget.Bound{Effects: 5, By: "caps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := budget.Worst(c.actors, c.global, c.pace)
			if diff := cmp.Diff(c.harmful, got.Actions[0].Harmful); diff != "" {
				t.Errorf("harmful of an action (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.costly, got.Actions[0].Costly); diff != "" {
				t.Errorf("costly of an action (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.overall, got.Overall); diff != "" {
				t.Errorf("overall (-want +got):\n%s", diff)
			}
		})
	}
}

// The fleet's budget bounds the fleet, however large it is and however often the
// action's own budget is refilled before the fleet's is.
func TestWorstDoesNotGrowWithTheFleet(t *testing.T) {
	usual := spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}
	pace := budget.Pace{PerHour: 1000, PerServicePerHour: 1000, Over: month}
	global := budget.Policy{Period: month, Capacity: 10}
	for _, c := range []struct {
		name    string
		period  time.Duration
		restore bool
		want    int
	}{
		{"harm and its undo", month, true, 10},
		{"no undo", month, false, 9},
		{"an action's week", month / 4, true, 10},
	} {
		for _, n := range []int{6, 12, 100} {
			var as []budget.Actor
			for i := range n {
				a := actor(fmt.Sprint("s", i), 3, usual, c.restore)
				a.Budget.Period = c.period
				as = append(as, a)
			}
			if got := budget.Worst(as, global, pace).Overall; got != (budget.Bound{Effects: c.want, By: budget.BoundByGlobal}) {
				t.Errorf("%s, %d services: %+v, want %d by the global budget", c.name, n, got, c.want)
			}
		}
	}
	// A fleet's week is spent four times in a month.
	week := budget.Policy{Period: month / 4, Capacity: 10}
	var as []budget.Actor
	for i := range 100 {
		as = append(as, actor(fmt.Sprint("s", i), 3, usual, true))
	}
	if got := budget.Worst(as, week, pace).Overall.Effects; got != 40 {
		t.Errorf("four weeks of a fleet: %d, want 40", got)
	}
}

// adversary is an independent little model of permission: what remains, what is
// in the ledger, and nothing else of this package. It tries every order of every
// outcome.
type adversary struct {
	actors []budget.Actor
	global float64
	seen   map[string]int
}

type standing struct {
	spent    [3]float64
	worsened [3]int
	total    float64
}

func (a *adversary) most(s standing) int {
	key := fmt.Sprint(s)
	if n, ok := a.seen[key]; ok {
		return n
	}
	best := 0
	for i, x := range a.actors {
		dear := max(x.Costs.NoChange, x.Costs.Worsened, x.Costs.Unknown)
		if s.worsened[i] >= 2 || x.Budget.Capacity-s.spent[i] < dear || a.global-s.total < dear {
			continue
		}
		charge := func(cost float64) standing {
			next := s
			next.spent[i] += cost
			next.total += cost
			return next
		}
		// It blinds whoever measures.
		if x.Costs.Unknown > 0 {
			best = max(best, 1+a.most(charge(x.Costs.Unknown)))
		}
		// It is seen to do harm; what may be undone is undone once, with harm and
		// blinding, which is free.
		next, n := charge(x.Costs.Worsened), 1
		next.worsened[i]++
		if x.Restore {
			n = 2
		}
		best = max(best, n+a.most(next))
	}
	a.seen[key] = best
	return best
}

// No order of outcomes does more harm than the bound, and in a fleet of equals
// some order does as much.
func TestWorstIsReachedAndNeverExceeded(t *testing.T) {
	pace := budget.Pace{PerHour: 1000, PerServicePerHour: 1000, Over: month}
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.SampledFrom([]float64{0.5, 1, 2, 3})
		draw := func(i int) budget.Actor {
			return actor(fmt.Sprint("s", i), rapid.SampledFrom([]float64{0.5, 1, 2, 3, 4, 5}).Draw(t, "capacity"),
				spec.Costs{NoChange: cost.Draw(t, "no change"), Worsened: cost.Draw(t, "worsened"), Unknown: cost.Draw(t, "unknown")},
				rapid.Bool().Draw(t, "restore"))
		}
		n, equals := rapid.IntRange(1, 3).Draw(t, "services"), rapid.Bool().Draw(t, "equals")
		var actors []budget.Actor
		for i := range n {
			a := draw(i)
			if equals && i > 0 {
				a = actors[0]
				a.Service = fmt.Sprint("s", i)
			}
			actors = append(actors, a)
		}
		global := rapid.SampledFrom([]float64{0, 1, 2, 3, 5, 8, 100}).Draw(t, "global")
		bound := budget.Worst(actors, budget.Policy{Period: month, Capacity: global}, pace).Overall.Effects
		search := &adversary{actors: actors, global: global, seen: map[string]int{}}
		found := search.most(standing{})
		if found > bound {
			t.Fatalf("an adversary does harm %d times, the bound is %d", found, bound)
		}
		if equals && found < bound {
			t.Fatalf("the bound is %d, no adversary does harm more than %d times", bound, found)
		}
	})
}
