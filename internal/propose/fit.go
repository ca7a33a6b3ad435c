package propose

import (
	"fmt"
	"sort"

	"github.com/setpoint-dev/setpoint/internal/compare"
)

// Fit renders within an estimated number of tokens, besides so many characters
// that are sent beside the prompt. Where it does not fit, facts are left out one
// by one in this order, and the evidence says how many: attempts of earlier
// episodes, oldest first; rows of breakdowns, the last one of the longest
// breakdown first; changes, oldest first; dependencies and objectives that are
// met, the last first; attempts of this episode, oldest first. The catalogue,
// and what is wrong, is never cut: then it is ErrPromptSize. Zero tokens is no
// limit.
func (p *Prompts) Fit(r Request, tokens, besides int) (Prompt, error) {
	whole := newEvidence(r)
	out, err := p.fitted(r, whole, besides)
	if err != nil || tokens <= 0 || out.Tokens <= tokens {
		return out, err
	}
	// Each fact that is left out makes the prompt shorter, so the fewest that
	// have to be can be searched for.
	units := whole.units()
	n := 1 + sort.Search(len(units), func(i int) bool {
		one, failed := p.fitted(r, whole.without(units[:i+1]), besides)
		if failed != nil {
			err = failed
			return true
		}
		return one.Tokens <= tokens
	})
	if err != nil {
		return Prompt{}, err
	}
	out, err = p.fitted(r, whole.without(units[:min(n, len(units))]), besides)
	if err == nil && out.Tokens > tokens {
		err = fmt.Errorf("%w (about %d tokens, promptTokens is %d)", ErrPromptSize, out.Tokens, tokens)
	}
	if err != nil {
		return Prompt{}, err
	}
	return out, nil
}

func (p *Prompts) fitted(r Request, e evidence, besides int) (Prompt, error) {
	system, user, err := p.renderWith(r, e.bytes())
	if err != nil {
		return Prompt{}, err
	}
	out := Prompt{
		System: system, User: user, TriedOmitted: e.TriedOmitted, ChangesOmitted: e.ChangesOmitted,
		Tokens: EstimateText(system) + EstimateText(user) + EstimateTokens(besides),
	}
	for _, b := range e.Breakdowns {
		out.RowsOmitted += b.Omitted
	}
	return out, nil
}

// unit is one fact that may be left out.
type unit struct {
	kind  unitKind
	index int
}

type unitKind int

const (
	unitAttempt unitKind = iota
	unitRow
	unitChange
	unitDependency
	unitObjective
)

// units are all facts that may be left out, in the order of Fit. The index of a
// row is that of its breakdown.
func (e evidence) units() []unit {
	var earlier, present []unit
	for i, t := range e.Tried {
		if t.ThisEpisode {
			present = append(present, unit{unitAttempt, i})
		} else {
			earlier = append(earlier, unit{unitAttempt, i})
		}
	}
	out := append(earlier, e.rowUnits()...)
	for i := len(e.Changes) - 1; i >= 0; i-- {
		out = append(out, unit{unitChange, i})
	}
	for i := len(e.Dependencies) - 1; i >= 0; i-- {
		if e.Dependencies[i].State == word(compare.Met) {
			out = append(out, unit{unitDependency, i})
		}
	}
	for i := len(e.Objectives) - 1; i >= 0; i-- {
		if e.Objectives[i].State == word(compare.Met) {
			out = append(out, unit{unitObjective, i})
		}
	}
	return append(out, present...)
}

func (e evidence) rowUnits() []unit {
	left, total := make([]int, len(e.Breakdowns)), 0
	for i, b := range e.Breakdowns {
		left[i] = len(b.Rows)
		total += len(b.Rows)
	}
	var out []unit
	for range total {
		longest := 0
		for i, n := range left {
			if n >= left[longest] {
				longest = i
			}
		}
		left[longest]--
		out = append(out, unit{unitRow, longest})
	}
	return out
}

// without leaves facts out of a copy.
func (e evidence) without(units []unit) evidence {
	gone := map[unit]bool{}
	e.Breakdowns = append([]breakdownFacts(nil), e.Breakdowns...)
	for _, u := range units {
		if u.kind != unitRow {
			gone[u] = true
			continue
		}
		b := &e.Breakdowns[u.index]
		b.Rows = b.Rows[:len(b.Rows)-1]
		b.Omitted++
	}
	e.Tried, e.TriedOmitted = keep(e.Tried, e.TriedOmitted, unitAttempt, gone)
	e.Changes, e.ChangesOmitted = keep(e.Changes, e.ChangesOmitted, unitChange, gone)
	e.Dependencies, e.DependenciesOmitted = keep(e.Dependencies, e.DependenciesOmitted, unitDependency, gone)
	e.Objectives, e.ObjectivesOmitted = keep(e.Objectives, e.ObjectivesOmitted, unitObjective, gone)
	return e
}

// keep leaves out what is gone, and counts it as omitted.
func keep[T any](all []T, omitted int, kind unitKind, gone map[unit]bool) (out []T, now int) {
	for i, one := range all {
		if !gone[unit{kind, i}] {
			out = append(out, one)
		}
	}
	return out, omitted + len(all) - len(out)
}
