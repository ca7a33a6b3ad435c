package propose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

type serviceFacts struct {
	Name         word   `json:"name"`
	State        word   `json:"state"`
	Reason       word   `json:"reason"`
	SinceSeconds number `json:"sinceSeconds"`
	Warming      bool   `json:"warming,omitempty"`
}

type objectiveFacts struct {
	Name                 word        `json:"name"`
	State                word        `json:"state"`
	Reason               word        `json:"reason"`
	Groups               *groupFacts `json:"groups,omitempty"`
	Target               number      `json:"target"`
	JudgeErrorRatio      number      `json:"judgeErrorRatio"`
	JudgeEvents          number      `json:"judgeEvents"`
	ErrorRatio           number      `json:"errorRatio"`
	ErrorBudgetRemaining number      `json:"errorBudgetRemaining"`
	SampleAgeSeconds     number      `json:"sampleAgeSeconds"`
	BurnRates            []burnFacts `json:"burnRates"`
}

// groupFacts tell which part of a service it is.
type groupFacts struct {
	Count    int       `json:"count"`
	Breached int       `json:"breached"`
	Worst    arguments `json:"worst"`
}

type burnFacts struct {
	Short     length `json:"short"`
	Long      length `json:"long"`
	ShortRate number `json:"shortRate"`
	LongRate  number `json:"longRate"`
	Factor    number `json:"factor"`
	Burning   bool   `json:"burning"`
}

type dependencyFacts struct {
	Name  word `json:"name"`
	State word `json:"state"`
}

type triedFacts struct {
	Action           word      `json:"action"`
	Parameters       arguments `json:"parameters"`
	SecondsAgo       number    `json:"secondsAgo"`
	ThisEpisode      bool      `json:"thisEpisode"`
	Effect           word      `json:"effect"`
	Outcome          word      `json:"outcome"`
	ErrorRatioBefore number    `json:"errorRatioBefore"`
	ErrorRatioAfter  number    `json:"errorRatioAfter"`
}

type actionFacts struct {
	Action        word             `json:"action"`
	Class         word             `json:"class"`
	Reversal      word             `json:"reversal"`
	SettleSeconds number           `json:"settleSeconds"`
	Remaining     number           `json:"autonomyBudgetRemaining"`
	Obstacle      word             `json:"notProposable,omitempty"`
	Parameters    []parameterFacts `json:"parameters"`
}

type parameterFacts struct {
	Name    word    `json:"name"`
	Type    word    `json:"type"`
	Minimum *exact  `json:"minimum,omitempty"`
	Maximum *exact  `json:"maximum,omitempty"`
	Values  []word  `json:"values,omitempty"`
	Omitted int     `json:"valuesOmitted,omitempty"`
	Pattern pattern `json:"pattern,omitempty"`
	Current *scalar `json:"current,omitempty"`
}

func factsOfObjective(n *register, o compare.Objective) objectiveFacts {
	f := objectiveFacts{
		Name: word(o.ID), State: word(o.State), Reason: word(o.Reason), Target: number(o.Target),
		JudgeErrorRatio: ratio(o.Judge), ErrorRatio: ratio(o.Period),
		JudgeEvents: notKnown, ErrorBudgetRemaining: notKnown, SampleAgeSeconds: notKnown,
		BurnRates: []burnFacts{}, Groups: factsOfGroups(n, o),
	}
	if o.Judge.Known() {
		f.SampleAgeSeconds = number(math.Round(o.SampleAge.Seconds()))
		if o.Judge.HasEvents {
			f.JudgeEvents = number(o.Judge.Total)
		}
	}
	if left, ok := o.ErrorBudgetRemaining(); ok {
		f.ErrorBudgetRemaining = number(left)
	}
	for _, b := range o.Burns {
		f.BurnRates = append(f.BurnRates, factsOfBurn(b))
	}
	return f
}

func factsOfGroups(n *register, o compare.Objective) *groupFacts {
	if o.Groups == 0 {
		return nil
	}
	f := &groupFacts{Count: o.Groups, Breached: o.GroupsBreached, Worst: arguments{}}
	labels := measure.GroupLabels(o.Group)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		f.Worst = append(f.Worst, argument{word(plainLabel(name)), scalar{n.anywhere(name, labels[name])}})
	}
	return f
}

func factsOfBurn(b compare.Burn) burnFacts {
	f := burnFacts{
		Short: length(b.Short), Long: length(b.Long),
		Factor: number(b.Factor), Burning: b.Burning, ShortRate: notKnown, LongRate: notKnown,
	}
	if b.Known {
		f.ShortRate, f.LongRate = number(b.ShortRate), number(b.LongRate)
	}
	return f
}

func factsOfDependencies(r Request) (out []dependencyFacts, omitted int) {
	names := slices.SortedFunc(maps.Keys(r.Dependencies), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(r.Dependencies[a]), rank(r.Dependencies[b])), cmp.Compare(a, b))
	})
	omitted = max(0, len(names)-maxDependencies)
	for _, name := range names[:len(names)-omitted] {
		out = append(out, dependencyFacts{word(name), word(r.Dependencies[name])})
	}
	return out, omitted
}

func factsOfTried(n *register, r Request, t Tried) triedFacts {
	f := triedFacts{
		Action: word(t.Action), Parameters: arguments{}, SecondsAgo: ago(r.Now, t.At),
		ThisEpisode: t.ThisEpisode, Effect: word(t.Effect), Outcome: word(t.Outcome),
		ErrorRatioBefore: notKnown, ErrorRatioAfter: notKnown,
	}
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		f.Parameters = append(f.Parameters, argument{word(name), n.scalar(name, t.Parameters[name])})
	}
	switch t.Outcome {
	case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened:
		f.ErrorRatioBefore, f.ErrorRatioAfter = number(t.Before), number(t.After)
	}
	return f
}

func factsOfItem(n *register, r Request, it Item) actionFacts {
	a := it.Action
	f := actionFacts{
		Action: word(a.Name), Class: word(a.Class), Reversal: word(a.Reversal),
		SettleSeconds: number(a.Settle.Seconds()), Remaining: remaining(r, a.Name),
		Obstacle: word(it.Obstacle()), Parameters: []parameterFacts{},
	}
	for _, d := range a.Parameters {
		f.Parameters = append(f.Parameters, factsOfParameter(n, it, d))
	}
	return f
}

func factsOfParameter(n *register, it Item, d spec.Parameter) parameterFacts {
	f := parameterFacts{Name: word(d.Name), Type: word(d.Type), Pattern: pattern(d.Pattern)}
	b, err := it.Bounds(d)
	if err == nil {
		lo, hi := b.limits(d.Type)
		f.Minimum, f.Maximum = (*exact)(lo), (*exact)(hi)
		var values []string
		values, f.Omitted = showable(b.Values)
		for _, v := range values {
			f.Values = append(f.Values, word(v))
		}
	}
	current := it.live(d.Name)
	if _, text := current.(string); text && !b.Listed {
		// Where a pattern permits what is not listed, a placeholder could be
		// taken for a permitted value.
		return f
	}
	if v := n.scalar(d.Name, current); v != (scalar{}) {
		f.Current = &v
	}
	return f
}
