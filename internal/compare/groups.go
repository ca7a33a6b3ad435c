package compare

import (
	"cmp"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// view is the objective from one vantage point: its worst group where it has
// groups.
func (x assessor) view() Objective {
	names := x.groups()
	if len(names) == 0 {
		return x.one()
	}
	var groups []Objective
	for _, name := range names {
		x.group = name
		groups = append(groups, x.one())
	}
	out := slices.MinFunc(groups, worseGroup)
	out.Groups = len(groups)
	for _, g := range groups {
		if g.State == Breached {
			out.GroupsBreached++
		}
	}
	if hour := x.hourBefore(); out.State == Met && !hour.Known() {
		out.State, out.Reason, out.UnknownFrom = Unknown, hour.Reason, out.Sources[0]
		out.Detail = "the hour before is not known, so a group may have vanished: " + hour.Detail
	}
	return out
}

// groups are those of the judge window, and those that had traffic in the hour
// before, or may have had: a group that vanished is not well.
func (x assessor) groups() []string {
	judge := x.ms.Get(x.id(x.o.JudgeWindow))
	if len(x.o.GroupBy) == 0 || !judge.Known() {
		return nil
	}
	var names []string
	for _, g := range judge.Groups {
		names = append(names, g.Name)
	}
	for _, g := range x.hourBefore().Groups {
		if x.busy(g.Measurement) || !g.Known() {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hourBefore is what tells traffic that is lost from traffic that was never
// there, of all groups.
func (x assessor) hourBefore() measure.Measurement {
	return x.ms.Get(measure.HourBeforeID(x.service, x.o, x.now).From(x.vantage))
}

// vanished reports whether the group is not in the judge window, although
// others are.
func (x assessor) vanished() bool {
	judge := x.ms.Get(x.id(x.o.JudgeWindow))
	return x.group != "" && judge.Known() &&
		!slices.ContainsFunc(judge.Groups, func(g measure.NamedGroup) bool { return g.Name == x.group })
}

// worseGroup puts the group first that speaks for the objective: one that is
// breached, then one that cannot be seen, then the one with the most errors. A
// group without traffic says nothing beside others.
func worseGroup(a, b Objective) int {
	rank := func(o Objective) int {
		switch {
		case o.State == Breached && o.Reason == Burning:
			return 0
		case o.State == Breached:
			return 1
		case o.State == Unknown && o.Reason != LowTraffic:
			return 2
		case o.State == Met:
			return 3
		}
		return 4
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Judge.ErrorRatio, a.Judge.ErrorRatio),
		cmp.Compare(a.Group, b.Group))
}
