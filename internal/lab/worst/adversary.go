package worst

import (
	"math"
	"slices"
)

// harm is what an adversary's effect does.
type harm string

const (
	// worse makes the service worse in plain sight.
	worse harm = "worse"
	// late does so while the service is recovering already.
	late harm = "late"
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
	// spends: it follows the plan that does most harm to so many services, everyone
	// where that is more than there are; then has no meaning.
	spends int
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

// Adversaries are all of them. The last two plan ahead.
func Adversaries() []Adversary {
	return []Adversary{
		{Name: "always-worse", Does: "each effect makes its service worse; an undo puts it back", then: []harm{worse}},
		{Name: "undo-worse", Does: "each effect makes its service worse, and so does its undo, which also blinds", then: []harm{worse}, undoHarms: true},
		{Name: "in-turn", Does: "harms what is recovering, and helps before it does so again, so that no row of harm comes about", then: []harm{late, helps}, undoHarms: true},
		{Name: "latecomer", Does: "harms only while the service is recovering already", then: []harm{late}, undoHarms: true},
		{Name: "blinder", Does: "harms and takes measurement away", then: []harm{blind}},
		{Name: "lost-answers", Does: "harms, and every answer of the actuator is lost", then: []harm{worse}, undoHarms: true, answer: losesAnswers},
		{Name: "no-answers", Does: "the same, and the actuator never says what became of it", then: []harm{worse}, answer: neverAnswers},
		{Name: "neighbour", Does: "heals its own service and breaks one that depends on it", then: []harm{elsewhere}, undoHarms: true},
		{Name: "hidden", Does: "harms only where no judge window looks", then: []harm{hidden}},
		{Name: "one-service", Does: "harm, undo and blinding in the mixture of which the budgets of one service pay most", spends: 1, undoHarms: true},
		{Name: "mixture", Does: "the same with all services and the fleet's budget", spends: math.MaxInt, undoHarms: true},
	}
}

// Adversaries are those that are played under a setup: of a larger fleet only some,
// because it is there to show that it changes nothing.
func (s Setup) Adversaries() []Adversary {
	all := Adversaries()
	if s.Services > Setups()[0].Services {
		return slices.DeleteFunc(all, func(a Adversary) bool { return a.spends == 0 && a.Name != "always-worse" && a.Name != "undo-worse" })
	}
	return all
}

// next is what an effect of an action would do now: after effects that it had, and
// turn effects of all. A plan is followed step by step, and whoever is through with
// it goes on doing harm in plain sight.
func (a Adversary) next(plan []step, turn int, service, action string, effects int) harm {
	switch {
	case a.spends == 0:
		return a.then[effects%len(a.then)]
	case turn >= len(plan):
		return worse
	case plan[turn].service == service && plan[turn].action == action:
		return plan[turn].kind
	}
	return ""
}

// clients reports whether services are needed that depend on others.
func (a Adversary) clients() bool { return slices.Contains(a.then, elsewhere) }
