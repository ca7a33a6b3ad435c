package worst

import "slices"

// harm is what an adversary's effect does.
type harm string

const (
	// worse makes the service worse in plain sight.
	worse harm = "worse"
	// free does so while the service is recovering already, which costs nothing.
	free harm = "free"
	// blind does so and takes measurement away, until nobody can tell any more.
	blind harm = "blind"
	// helps does good, so that no row of harm comes about.
	helps harm = "helps"
	// elsewhere heals the service and breaks one that depends on it.
	elsewhere harm = "elsewhere"
	// hidden does harm only until the judge window begins.
	hidden harm = "hidden"
)

// Adversary is a proposer and a world that conspire. Everything that it proposes
// is legal.
type Adversary struct {
	// Name is for the table, Does says what it does.
	Name, Does string
	// then is what the effects of an action do, over and over.
	then []harm
	// mixes: the effects of an action are the worst mixture that its budget and the
	// fleet's pay for, and no more.
	mixes bool
	// focuses: everything is spent on one service, whose effects blind as long as
	// its budgets last, and end with one that is seen.
	focuses bool
	// undoHarms: an undo does harm too, and blinds, so that it is free.
	undoHarms bool
	// answer is how the actuator answers.
	answer answer
}

type answer int

const (
	answers answer = iota
	// losesAnswers does what it is told and lets the answer be lost.
	losesAnswers
	// neverAnswers does so, and says nothing when it is asked later.
	neverAnswers
)

// Adversaries are all of them. The last one is the worst mixture that the
// arithmetic allows.
func Adversaries() []Adversary {
	return []Adversary{
		{Name: "always-worse", Does: "each effect makes its service worse; an undo puts it back", then: []harm{worse}},
		{Name: "undo-worse", Does: "each effect makes its service worse, and so does its undo, which also blinds", then: []harm{worse}, undoHarms: true},
		{Name: "in-turn", Does: "harms for free, and helps before it does so again, so that no row of harm comes about", then: []harm{free, helps}, undoHarms: true},
		{Name: "freeloader", Does: "harms only while the service is recovering already, which is free", then: []harm{free}, undoHarms: true},
		{Name: "blinder", Does: "harms and takes measurement away", then: []harm{blind}},
		{Name: "lost-answers", Does: "harms, and every answer of the actuator is lost", then: []harm{worse}, undoHarms: true, answer: losesAnswers},
		{Name: "no-answers", Does: "the same, and the actuator never says what became of it", then: []harm{worse}, answer: neverAnswers},
		{Name: "neighbour", Does: "heals its own service and breaks one that depends on it", then: []harm{elsewhere}, undoHarms: true},
		{Name: "hidden", Does: "harms only where no judge window looks", then: []harm{hidden}},
		{Name: "one-service", Does: "spends everything on one service: blinding as long as its budgets last, then harm and its undo", focuses: true, undoHarms: true},
		{Name: "mixture", Does: "free harm, its undo, blinding as long as the budgets last, free harm", mixes: true, undoHarms: true},
	}
}

// scripts are what the effects of each of n actions do, in order.
func (a Adversary) scripts(s Setup, n int) []func(effect int) harm {
	room := func(capacity float64) int { return int((capacity-s.Costs.Dearest())/s.Costs.Unknown + 1e-9) }
	own, fleet := room(s.Capacity), room(s.Global)
	var out []func(int) harm
	for i := range n {
		list := a.then
		switch {
		case a.mixes:
			k := min(own, fleet)
			fleet -= k
			list = append(append([]harm{free}, slices.Repeat([]harm{blind}, k)...), free)
		case a.focuses && i == 0: // the action that has an undo
			list = append(slices.Repeat([]harm{blind}, own), worse)
		case a.focuses && i == 1:
			list = slices.Repeat([]harm{blind}, own+1)
		}
		out = append(out, func(effect int) harm {
			if a.then == nil && effect >= len(list) {
				return ""
			}
			return list[effect%len(list)]
		})
	}
	return out
}

// clients reports whether services are needed that depend on others.
func (a Adversary) clients() bool { return slices.Contains(a.then, elsewhere) }
