package measure

import (
	"math"
	"slices"

	"github.com/prometheus/common/model"
)

// totals are those of the groups.
func (a *answerer) totals(m Measurement, r Reading) Measurement {
	groups, fault := r.grouped(a.q.o.o.GroupBy)
	if fault.reason == NoData {
		m.FirstAt = a.first()
	}
	if !fault.known() {
		return unknown(m, "total", fault)
	}
	for _, name := range sortedKeys(groups) {
		one := a.counted(Measurement{ID: m.ID, Source: m.Source, AsOf: m.AsOf}, groups[name])
		m.Groups = append(m.Groups, NamedGroup{name, one})
	}
	return sum(m)
}

// each measures every group by itself: a raw ratio, or a total and its part.
// The groups are those of the first reading that have a sample which can still
// be seen; others have vanished.
func (a *answerer) each(m Measurement, newest, resets Reading, rs ...Reading) Measurement {
	all, fault := a.byGroup(rs)
	if !fault.known() {
		return unknown(m, "", fault)
	}
	times, fault := newest.grouped(a.q.o.o.GroupBy)
	if !fault.known() {
		return unknown(m, "sample time", fault)
	}
	often, fault := resets.grouped(a.q.o.o.GroupBy)
	if !fault.known() && fault.reason != NoData {
		return unknown(m, "resets", fault)
	}
	for _, name := range sortedKeys(all[0]) {
		at, seen := times[name]
		if !seen {
			continue
		}
		g := Measurement{ID: m.ID, Source: m.Source, AsOf: m.AsOf}
		if len(rs) == 1 {
			g = a.ratio(g, at, all[0][name])
		} else {
			g = steady(a.counts(g, at, all[0][name], all[1].of(name)), often.of(name))
		}
		m.Groups = append(m.Groups, NamedGroup{name, g})
	}
	if len(m.Groups) == 0 {
		return unknown(m, "sample time", ungrouped(newest, a.q.o.o.GroupBy))
	}
	return sum(m)
}

// byGroup gives the numbers of each reading; only the first must have any.
func (a *answerer) byGroup(rs []Reading) ([]groupValues, value) {
	all := make([]groupValues, len(rs))
	for i, r := range rs {
		values, fault := r.grouped(a.q.o.o.GroupBy)
		if !fault.known() && (i == 0 || fault.reason != NoData) {
			return nil, fault
		}
		all[i] = values
	}
	return all, value{}
}

// ungrouped says why no group has a sample time: they all have vanished, or the
// labels of the groups are not those of the series.
func ungrouped(newest Reading, by []string) value {
	for _, s := range newest.Series {
		for _, label := range by {
			if s.Metric[model.LabelName(label)] == "" {
				return unknownValue(QueryError, "the series of the total have no label %s, so the age of a group cannot be told", label)
			}
		}
	}
	return unknownValue(NoData, "no sample of any group is fresh enough to be seen")
}

// sum adds up the known groups, to be shown.
func sum(m Measurement) Measurement {
	for _, g := range m.Groups {
		if !g.Known() {
			continue
		}
		m.HasEvents = m.HasEvents || g.HasEvents
		m.Good, m.Total = min(m.Good+g.Good, math.MaxFloat64), min(m.Total+g.Total, math.MaxFloat64)
		m.ErrorRatio = max(m.ErrorRatio, g.ErrorRatio)
		if m.SampleAt.IsZero() || g.SampleAt.Before(m.SampleAt) {
			m.SampleAt = g.SampleAt
		}
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
