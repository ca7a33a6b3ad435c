package compare_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func grouped() spec.Objective {
	o := objective("a")
	o.GroupBy = []string{"host"}
	return o
}

func groupedRaw() spec.Objective {
	o := grouped()
	o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg by (host) (avg_over_time(up[{{.window}}]))"}}
	return o
}

// inGroups gives every measurement groups, which differ by their edits.
func inGroups(gs map[string][]edit) edit {
	return func(m *measure.Measurement) {
		m.Groups = nil
		whole := *m
		for _, name := range slices.Sorted(maps.Keys(gs)) {
			g := whole
			for _, e := range gs[name] {
				e(&g)
			}
			if g.Detail != gone {
				m.Groups = append(m.Groups, measure.NamedGroup{Name: name, Measurement: g})
			}
		}
	}
}

const gone = "the group is not there"

// isGone takes the group out of a measurement.
func isGone(m *measure.Measurement) { m.Detail = gone }

// whole applies edits to the measurement of all groups.
func whole(es ...edit) edit {
	return func(m *measure.Measurement) {
		for _, e := range es {
			e(m)
		}
		if !m.Known() {
			m.Groups = nil
		}
	}
}

func noEvents(m *measure.Measurement) { m.HasEvents, m.Good, m.Total = false, 0, 0 }

func TestGroups(t *testing.T) {
	healthy := []edit{on("a", judgeWindow, ratio(0.01))}
	recovering := []edit{on("a", short30, ratio(0.5)), on("a", sixHours, ratio(0.5)), on("a", judgeWindow, ratio(0.09))}
	idle := []edit{on("a", judgeWindow, events(0)), hourBefore("a", events(0))}
	left := on("a", judgeWindow, isGone)
	worse := []edit{burning("a"), on("a", judgeWindow, ratio(0.9))}
	type want struct {
		State            compare.State
		Reason           compare.Reason
		Group            string
		Groups, Breached int
		Ratio            float64
	}
	cases := map[string]struct {
		reason string
		o      spec.Objective
		groups map[string][]edit
		edits  []edit
		want   want
	}{
		"all met":                    {"the one with the most errors is shown", grouped(), map[string][]edit{"x": nil, "y": healthy}, nil, want{compare.Met, "", "y", 2, 0, 0.01}},
		"all equal":                  {"the first by name is shown", grouped(), map[string][]edit{"y": nil, "x": nil}, nil, want{compare.Met, "", "x", 2, 0, 0}},
		"one burns":                  {"it speaks for the objective", grouped(), map[string][]edit{"x": healthy, "y": {burning("a")}}, nil, want{compare.Breached, compare.Burning, "y", 2, 1, 0.8}},
		"two burn":                   {"worst first, both counted", grouped(), map[string][]edit{"x": {burning("a")}, "y": worse, "z": nil}, nil, want{compare.Breached, compare.Burning, "y", 3, 2, 0.9}},
		"one recovers":               {"the page stays", grouped(), map[string][]edit{"x": healthy, "y": recovering}, nil, want{compare.Breached, compare.Recovering, "y", 2, 1, 0.09}},
		"one recovers, one burns":    {"what burns comes first", grouped(), map[string][]edit{"x": {burning("a")}, "y": recovering}, nil, want{compare.Breached, compare.Burning, "x", 2, 2, 0.8}},
		"one unknown":                {"what cannot be seen is not met", grouped(), map[string][]edit{"x": healthy, "y": {on("a", judgeWindow, reason(measure.NotFinite))}}, nil, want{compare.Unknown, measure.NotFinite, "y", 2, 0, 0}},
		"one unknown, one burns":     {"a burning group is not undone by an unknown one", grouped(), map[string][]edit{"x": {burning("a")}, "y": {on("a", judgeWindow, reason(measure.NotFinite))}}, nil, want{compare.Breached, compare.Burning, "x", 2, 1, 0.8}},
		"one without good":           {"a part that is missing is no lack of traffic", grouped(), map[string][]edit{"x": healthy, "y": {on("a", judgeWindow, reason(measure.NoData))}}, nil, want{compare.Unknown, measure.NoData, "y", 2, 0, 0}},
		"one stale":                  {"the age limit is of each", grouped(), map[string][]edit{"x": healthy, "y": {on("a", judgeWindow, age(91*time.Second))}}, nil, want{compare.Unknown, compare.Stale, "y", 2, 0, 0}},
		"one idle":                   {"a group without traffic says nothing beside others", grouped(), map[string][]edit{"x": healthy, "y": idle}, nil, want{compare.Met, "", "x", 2, 0, 0.01}},
		"one idle, one burns":        {"a group without traffic says nothing beside others", grouped(), map[string][]edit{"x": {burning("a")}, "y": idle}, nil, want{compare.Breached, compare.Burning, "x", 2, 1, 0.8}},
		"all idle":                   {"nobody has traffic", grouped(), map[string][]edit{"x": idle, "y": idle}, nil, want{compare.Unknown, compare.LowTraffic, "x", 2, 0, 0}},
		"one lost its traffic":       {"the hour before had it", grouped(), map[string][]edit{"x": healthy, "y": {on("a", judgeWindow, events(3))}}, nil, want{compare.Unknown, compare.TrafficLost, "y", 2, 0, 0}},
		"one vanished":               {"a group that had traffic is not well when it is gone", grouped(), map[string][]edit{"x": healthy, "y": {left}}, nil, want{compare.Unknown, compare.TrafficLost, "y", 2, 0, 0}},
		"one vanished, one burns":    {"what burns comes first", grouped(), map[string][]edit{"x": {burning("a")}, "y": {left}}, nil, want{compare.Breached, compare.Burning, "x", 2, 1, 0.8}},
		"an idle one vanished":       {"nobody misses it", grouped(), map[string][]edit{"x": healthy, "y": {left, hourBefore("a", events(599))}}, nil, want{compare.Met, "", "x", 1, 0, 0.01}},
		"vanished an hour ago":       {"nobody misses it any more", grouped(), map[string][]edit{"x": healthy, "y": {left, hourBefore("a", isGone)}}, nil, want{compare.Met, "", "x", 1, 0, 0.01}},
		"vanished, hour is odd":      {"nobody knows whether it is missed", grouped(), map[string][]edit{"x": healthy, "y": {left, hourBefore("a", reason(measure.NotFinite))}}, nil, want{compare.Unknown, measure.NotFinite, "y", 2, 0, 0}},
		"hour before unknown":        {"a group may have vanished", grouped(), map[string][]edit{"x": healthy}, []edit{whole(hourBefore("a", reason(measure.SourceError)))}, want{compare.Unknown, measure.SourceError, "x", 1, 0, 0.01}},
		"hour before returned none":  {"nothing is no answer", grouped(), map[string][]edit{"x": healthy}, []edit{whole(hourBefore("a", reason(measure.NoData)))}, want{compare.Unknown, measure.NoData, "x", 1, 0, 0.01}},
		"hour unknown, one burns":    {"it burns, whoever else may have vanished", grouped(), map[string][]edit{"x": {burning("a")}}, []edit{whole(hourBefore("a", reason(measure.SourceError)))}, want{compare.Breached, compare.Burning, "x", 1, 1, 0.8}},
		"hour unknown, all idle":     {"nobody knows whether traffic was lost", grouped(), map[string][]edit{"x": idle}, []edit{whole(hourBefore("a", reason(measure.SourceError)))}, want{compare.Unknown, measure.SourceError, "x", 1, 0, 0}},
		"new since the long windows": {"a burn that is not known is not met", grouped(), map[string][]edit{"x": healthy, "y": {on("a", sixHours, isGone)}}, nil, want{compare.Unknown, measure.NoData, "y", 2, 0, 0}},
		"all unknown":                {"no groups are known", grouped(), map[string][]edit{"x": healthy}, []edit{whole(on("a", judgeWindow, reason(measure.Partial)))}, want{compare.Unknown, measure.Partial, "", 0, 0, 0}},
		"no group at all":            {"no data", grouped(), nil, []edit{whole(on("a", judgeWindow, reason(measure.NoData)))}, want{compare.Unknown, measure.NoData, "", 0, 0, 0}},
		"raw":                        {"the worst group is shown", groupedRaw(), map[string][]edit{"x": append(healthy, noEvents), "y": {noEvents}}, []edit{noEvents}, want{compare.Met, "", "x", 2, 0, 0.01}},
		"raw, one vanished":          {"a gauge has no events: that it was there is enough", groupedRaw(), map[string][]edit{"x": {noEvents}, "y": {noEvents, left}}, []edit{noEvents}, want{compare.Unknown, compare.TrafficLost, "y", 2, 0, 0}},
		"raw, vanished an hour ago":  {"nobody misses it any more", groupedRaw(), map[string][]edit{"x": {noEvents}, "y": {noEvents, left, hourBefore("a", isGone)}}, []edit{noEvents}, want{compare.Met, "", "x", 1, 0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := assess(service("checkout", tc.o), append([]edit{inGroups(tc.groups)}, tc.edits...)...)
			o := a.Objectives[0]
			got := want{o.State, o.Reason, o.Group, o.Groups, o.GroupsBreached, o.Judge.ErrorRatio}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, diff, o.Detail)
			}
			if a.State != tc.want.State || a.Actionable() != (tc.want.Reason == compare.Burning) {
				t.Errorf("the service is %s(%s), actionable %t", a.State, a.Reason, a.Actionable())
			}
			wantFault := ""
			if tc.want.Reason.SourceFault() {
				wantFault = "main"
			}
			if a.SourceFault != wantFault {
				t.Errorf("the fault is of the source %q, want %q", a.SourceFault, wantFault)
			}
		})
	}
}

// A group that started lately warms up, whatever the others have.
func TestGroupIsWarming(t *testing.T) {
	coverageGone := func(m *measure.Measurement) {
		if m.ID == measure.CoverageID("checkout", grouped(), hour, now) {
			isGone(m)
		}
	}
	covered := assess(service("checkout", grouped()), inGroups(map[string][]edit{"x": nil, "y": {burning("a")}}))
	if covered.Warming || !covered.Actionable() {
		t.Errorf("a group that is covered is warming: %+v", covered)
	}
	a := assess(service("checkout", grouped()), inGroups(map[string][]edit{"x": nil, "y": {burning("a"), coverageGone}}))
	if !a.Warming || !a.WarmingUntil.Equal(now.Add(hour-judgeWindow)) {
		t.Errorf("warming %t until %s, want until a window from now on is covered", a.Warming, a.WarmingUntil)
	}
	other := assess(service("checkout", grouped()), inGroups(map[string][]edit{"x": {coverageGone}, "y": {burning("a")}}))
	if other.Warming {
		t.Error("a group that does not burn limits nothing")
	}
}

// Groups are judged at each vantage point by themselves.
func TestGroupsFromTwoVantagePoints(t *testing.T) {
	o := seenFrom("a", "server", "probe")
	o.GroupBy = []string{"host"}
	cases := map[string]struct {
		reason         string
		server, probe  map[string][]edit
		state          compare.State
		why            compare.Reason
		group          string
		groups, burned int
	}{
		"both met":    {"they agree", map[string][]edit{"x": nil}, map[string][]edit{"y": {on("a", judgeWindow, ratio(0.01))}}, compare.Met, "", "y", 1, 0},
		"both burn":   {"they agree that something burns", map[string][]edit{"x": {burning("a")}, "z": nil}, map[string][]edit{"x": {burning("a"), on("a", judgeWindow, ratio(0.9))}}, compare.Breached, compare.Burning, "x", 1, 1},
		"not alike":   {"they do not agree which burns", map[string][]edit{"x": {burning("a")}, "z": nil}, map[string][]edit{"x": nil, "z": {burning("a")}}, compare.Unknown, compare.Conflicting, "x", 2, 1},
		"one alike":   {"what only one sees burn is not the worst", map[string][]edit{"x": {burning("a"), on("a", judgeWindow, ratio(0.9))}, "z": {burning("a")}}, map[string][]edit{"x": nil, "z": {burning("a")}}, compare.Breached, compare.Burning, "z", 2, 1},
		"one burns":   {"they do not agree", map[string][]edit{"x": {burning("a")}}, map[string][]edit{"x": nil}, compare.Unknown, compare.Conflicting, "x", 1, 1},
		"one is lost": {"it cannot be seen", map[string][]edit{"x": {burning("a")}}, map[string][]edit{"x": nil, "y": {on("a", judgeWindow, isGone)}}, compare.Unknown, compare.TrafficLost, "y", 2, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := assess(service("checkout", o), from(0, inGroups(tc.server)), from(1, inGroups(tc.probe))).Objectives[0]
			if got.State != tc.state || got.Reason != tc.why || got.Group != tc.group || got.Groups != tc.groups || got.GroupsBreached != tc.burned {
				t.Errorf("%s: got %s(%s) of %s, %d of %d: %s", tc.reason, got.State, got.Reason, got.Group, got.GroupsBreached, got.Groups, got.Detail)
			}
		})
	}
}
