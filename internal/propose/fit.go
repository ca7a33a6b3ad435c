package propose

import (
	"fmt"
	"sort"
)

// Fit renders within an estimated number of tokens, besides so many characters
// that are sent beside the prompt. Where it does not fit, facts are left out one
// by one in this order, and the evidence says how many: attempts of earlier
// episodes, oldest first; rows of breakdowns, the last one of the longest
// breakdown first; changes, oldest first; attempts of this episode, oldest
// first. The catalogue is never cut: then it is ErrPromptSize. Zero tokens is no
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

// unit is one fact that may be left out: an attempt, a row or a change.
type unit struct {
	kind  unitKind
	index int
}

type unitKind int

const (
	unitAttempt unitKind = iota
	unitRow
	unitChange
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
	var cut int
	e.Tried, cut = keep(e.Tried, func(i int) bool { return !gone[unit{unitAttempt, i}] })
	e.TriedOmitted += cut
	e.Changes, cut = keep(e.Changes, func(i int) bool { return !gone[unit{unitChange, i}] })
	e.ChangesOmitted += cut
	return e
}

func keep[T any](all []T, kept func(i int) bool) (out []T, cut int) {
	for i, one := range all {
		if kept(i) {
			out = append(out, one)
		}
	}
	return out, len(all) - len(out)
}
