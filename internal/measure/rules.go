package measure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxRules bounds a group: Prometheus evaluates the rules of one group one after
// another, and a group that takes longer than its interval loses evaluations.
const maxRules = 100

// RuleGroups is a rule file of Prometheus, with what could not be written into
// it.
type RuleGroups struct {
	Groups []RuleGroup `yaml:"groups"`
	// Uncounted are the indicators that the rules leave out, sorted by service,
	// objective and vantage point.
	Uncounted []Uncounted `yaml:"-"`
}

// RuleGroup is a group of recording rules.
type RuleGroup struct {
	// Source is where the rules must be evaluated; "" is the default source.
	Source   string          `yaml:"-"`
	Name     string          `yaml:"name"`
	Interval string          `yaml:"interval"`
	Rules    []RecordingRule `yaml:"rules"`
}

// RecordingRule records one series.
type RecordingRule struct {
	Record string            `yaml:"record"`
	Expr   string            `yaml:"expr"`
	Labels map[string]string `yaml:"labels"`
}

// Uncounted is an indicator whose counts no rule records.
type Uncounted struct {
	Service, Objective, Source string
	// Reason says why, for people.
	Reason string
	Pos    spec.Position
}

// Rules are the recording rules that make the long windows of the set's
// objectives cheap: counts of good or bad and of total events in each CountStep,
// the very series that are asked in place of the raw ones where they are there.
// The groups are sorted by source, and none mixes two.
func Rules(set spec.Set) RuleGroups {
	var out RuleGroups
	perSource := map[string][][]RecordingRule{}
	for _, svc := range set.Services {
		for _, o := range svc.Objectives {
			for _, in := range o.Vantages() {
				source := sourceOf(in)
				if why := uncounted(o, in); why != "" {
					out.Uncounted = append(out.Uncounted, Uncounted{svc.Name, o.ID, source, why, o.Pos})
					continue
				}
				perSource[source] = append(perSource[source], countRules(CountID(svc.Name, o.ID, in), in))
			}
		}
	}
	for _, source := range sortedKeys(perSource) {
		out.Groups = append(out.Groups, groupsOf(source, perSource[source])...)
	}
	slices.SortStableFunc(out.Uncounted, func(a, b Uncounted) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Objective, b.Objective))
	})
	return out
}

// Of are the groups to be evaluated by one source, and what is left out there.
func (g RuleGroups) Of(source string) RuleGroups {
	return RuleGroups{
		Groups:    slices.DeleteFunc(slices.Clone(g.Groups), func(x RuleGroup) bool { return x.Source != source }),
		Uncounted: slices.DeleteFunc(slices.Clone(g.Uncounted), func(x Uncounted) bool { return x.Source != source }),
	}
}

// uncounted says why an indicator's counts are not recorded; "" when they are.
func uncounted(o spec.Objective, in spec.Indicator) string {
	switch {
	case in.Raw != nil:
		return "a ratio holds no counts, and the mean of ratios is not the ratio of a window"
	case len(o.GroupBy) > 0:
		return "it is judged by group (" + strings.Join(o.GroupBy, ", ") + "), and counts are recorded for one series only"
	case !Countable(o, in):
		return "an absent bad is not zero here (absentBad), and a sum of counts cannot tell the two apart"
	case o.Slice > CountStep:
		return "its time slices of " + spec.FormatDuration(o.Slice) + " are longer than the " +
			spec.FormatDuration(CountStep) + " of a count"
	}
	if ws := o.Windows(); len(ws) == 0 || ws[len(ws)-1] < countedFrom {
		return "no window of it is as long as " + spec.FormatDuration(countedFrom) + ", from which counts are used"
	}
	if selectors, err := in.Total.Selectors(); err != nil || len(selectors) == 0 {
		return "its total selects no series"
	}
	return ""
}

func sourceOf(in spec.Indicator) string {
	for _, q := range in.Queries() {
		return q.Source
	}
	return ""
}

// countRules record the total and its part, which stand beside each other, so
// that one evaluation sees both.
func countRules(id string, in spec.Indicator) []RecordingRule {
	perSecond := in.Total.PerSecond()
	count := func(q spec.Query) string {
		expr := q.At(CountStep)
		if perSecond {
			expr = strconv.FormatFloat(CountStep.Seconds(), 'f', -1, 64) + " * (" + uncommented(expr) + ")"
		}
		return expr
	}
	rule := func(record, expr string) RecordingRule {
		return RecordingRule{record, expr, map[string]string{CountLabel: id}}
	}
	rules := []RecordingRule{rule(CountTotal, count(*in.Total))}
	if in.Bad == nil {
		return append(rules, rule(CountGood, count(*in.Good)))
	}
	// An absent bad is recorded as the zero that it is, so that one which no rule
	// counted is told from it.
	return append(rules, rule(CountBad, "("+uncommented(count(*in.Bad))+") or on () 0 * ("+uncommented(in.Total.At(CountStep))+")"))
}

// uncommented ends a comment at the end of an expression with its line, so that
// something may follow.
func uncommented(expr string) string {
	if strings.Contains(expr, "#") {
		return expr + "\n"
	}
	return expr
}

// groupsOf fills groups of bounded size. The pair of one objective is never
// split: a total and a part of different evaluations tell of different times.
func groupsOf(source string, pairs [][]RecordingRule) []RuleGroup {
	var out []RuleGroup
	name := "setpoint-slo-counts"
	if source != "" {
		name += "-" + source
	}
	for _, pair := range pairs {
		if n := len(out); n == 0 || len(out[n-1].Rules)+len(pair) > maxRules {
			out = append(out, RuleGroup{
				Source: source, Name: name + "-" + strconv.Itoa(n+1), Interval: spec.FormatDuration(CountStep),
			})
		}
		last := &out[len(out)-1]
		last.Rules = append(last.Rules, pair...)
	}
	return out
}
