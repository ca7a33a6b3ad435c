package compare_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// drawObjective has one to three vantage points, perhaps groups, perhaps no
// events.
func drawObjective(t *rapid.T, id string) spec.Objective {
	o := seenFrom(id, []string{"server", "probe", "edge"}[:rapid.IntRange(1, 3).Draw(t, "vantage points")]...)
	if rapid.Bool().Draw(t, "raw") {
		raw := spec.Indicator{Raw: &spec.Query{Expr: "avg(avg_over_time(up[{{.window}}]))", Source: "server"}}
		o.Indicator = raw
		for i := range o.Others {
			o.Others[i] = raw
		}
	}
	if rapid.Bool().Draw(t, "grouped") {
		o.GroupBy = []string{"host"}
	}
	return o
}

// moods are what a group, or an objective without groups, goes through.
func drawMood(t *rapid.T, id string) []edit {
	idle := []edit{on(id, judgeWindow, events(0)), hourBefore(id, events(0))}
	return rapid.SampledFrom([][]edit{
		nil, nil, nil, nil, nil, {burning(id)}, {burning(id), on(id, judgeWindow, ratio(0.95))},
		{on(id, short30, ratio(0.5)), on(id, sixHours, ratio(0.5))},
		{on(id, short30, ratio(0.5)), on(id, sixHours, ratio(0.5)), on(id, judgeWindow, ratio(0.5))},
		idle, {on(id, judgeWindow, events(0))}, {on(id, judgeWindow, isGone)}, {on(id, judgeWindow, isGone), hourBefore(id, events(0))},
		{on(id, judgeWindow, reason(measure.NoData))}, {on(id, hour, reason(measure.NoData))}, {hourBefore(id, isGone)},
		{uncovered(id, hour, now.Add(-hour/2))}, {uncovered(id, hour, time.Time{}), burning(id)},
		{on(id, judgeWindow, func(m *measure.Measurement) { m.Low, m.High = 0, 0.9 })},
	}).Draw(t, "mood")
}

// drawWorld is a measurement for each query of the service.
func drawWorld(t *rapid.T, svc spec.Service) []measure.Measurement {
	edits := []edit{}
	for _, o := range svc.Objectives {
		for v := range o.Vantages() {
			of := func(e edit) edit {
				return from(v, func(m *measure.Measurement) {
					if m.ID.Objective == o.ID {
						e(m)
					}
				})
			}
			if o.Indicator.Raw != nil {
				edits = append(edits, of(noEvents))
			}
			if len(o.GroupBy) == 0 {
				for _, e := range drawMood(t, o.ID) {
					edits = append(edits, of(e))
				}
				continue
			}
			gs := map[string][]edit{}
			for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
				gs[fmt.Sprint("g", i)] = drawMood(t, o.ID)
			}
			edits = append(edits, of(inGroups(gs)))
		}
	}
	ms := answer(measure.Pass(svc, now), edits...)
	for i := range ms {
		if ms[i].Detail == gone {
			reason(measure.NoData)(&ms[i])
		}
		if rapid.IntRange(0, 60).Draw(t, "odd") == 41 {
			ms[i].Groups = nil
			reason(rapid.SampledFrom(reasons).Draw(t, "odd reason"))(&ms[i])
		}
	}
	return ms
}

var reasons = []measure.Reason{
	measure.NoData, measure.NotFinite, measure.SeveralSeries, measure.NotAVector, measure.Partial, measure.OutOfRange,
	measure.SourceError, measure.SourceRefused, measure.CounterResets, measure.Unstable, measure.QueryError,
	measure.NotMeasured, measure.ClockSkew,
}

// losses are all ways to make one input unknown: a measurement, or one group in
// it.
func losses(ms []measure.Measurement, why measure.Reason) [][]measure.Measurement {
	var out [][]measure.Measurement
	lost := func(i int) *measure.Measurement {
		less := slices.Clone(ms)
		less[i].Groups = slices.Clone(less[i].Groups)
		out = append(out, less)
		return &less[i]
	}
	for i, m := range ms {
		for j := range m.Groups {
			reason(why)(&lost(i).Groups[j].Measurement)
		}
		m := lost(i)
		m.Groups = nil
		reason(why)(m)
	}
	return out
}

// To know less never makes a service met, and never makes it a case for action.
func TestUnknownNeverHelps(t *testing.T) {
	seen := map[compare.State]int{}
	actionable, changed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		svc := service("checkout", drawObjective(t, "a"))
		if rapid.Bool().Draw(t, "two objectives") {
			svc.Objectives = append(svc.Objectives, drawObjective(t, "b"))
		}
		ms := drawWorld(t, svc)
		for range 2 {
			a := compare.Assess(svc, measure.NewSet(ms), limits, now)
			seen[a.State]++
			if a.Actionable() {
				actionable++
			}
			all := losses(ms, rapid.SampledFrom(reasons).Draw(t, "why"))
			for _, less := range all {
				b := compare.Assess(svc, measure.NewSet(less), limits, now)
				if b.State == compare.Met && a.State != compare.Met {
					t.Fatalf("%s(%s) became met by knowing less", a.State, a.Reason)
				}
				if b.Actionable() && !a.Actionable() {
					t.Fatalf("%s(%s) became %s(%s) by knowing less", a.State, a.Reason, b.State, b.Reason)
				}
				if b.State != a.State {
					changed++
				}
			}
			ms = rapid.SampledFrom(all).Draw(t, "next")
		}
	})
	for _, s := range []compare.State{compare.Met, compare.Breached, compare.Unknown} {
		if seen[s] == 0 {
			t.Errorf("states %v: the test tests little", seen)
		}
	}
	if actionable == 0 || changed < 25 {
		t.Errorf("%d actionable, %d changed: the test tests little", actionable, changed)
	}
}

func TestUnstable(t *testing.T) {
	flaps := func(low, high float64) edit {
		return on("a", judgeWindow, func(m *measure.Measurement) { m.Low, m.High = low, high })
	}
	cases := map[string]struct {
		reason string
		edits  []edit
		state  compare.State
		why    compare.Reason
	}{
		"steady":              {"the target is 0.9", []edit{flaps(0.05, 0.06)}, compare.Met, ""},
		"steady and burning":  {"on one side of the target", []edit{burning("a"), flaps(0.7, 0.9)}, compare.Breached, compare.Burning},
		"crosses the target":  {"it rises, and is not twice as much", []edit{flaps(0.09, 0.12)}, compare.Met, ""},
		"from nothing to all": {"two rules write one series", []edit{flaps(0, 1)}, compare.Unknown, measure.Unstable},
		"burning and flaps":   {"nobody acts on it", []edit{burning("a"), flaps(0, 0.8)}, compare.Unknown, measure.Unstable},
		"exactly twice":       {"half as much is the border", []edit{flaps(0.1, 0.2)}, compare.Met, ""},
		"more than twice":     {"half as much is the border", []edit{flaps(0.099, 0.2)}, compare.Unknown, measure.Unstable},
		"within the target":   {"both are good", []edit{flaps(0, 0.1)}, compare.Met, ""},
		"not asked":           {"nothing is known of it", []edit{burning("a")}, compare.Breached, compare.Burning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := assess(service("checkout", objective("a")), tc.edits...)
			if a.State != tc.state || a.Reason != tc.why {
				t.Errorf("%s: got %s(%s) %s", tc.reason, a.State, a.Reason, a.Objectives[0].Detail)
			}
		})
	}
}

func TestCovered(t *testing.T) {
	since := func(first time.Time) edit { return uncovered("a", period, first) }
	day := 24 * time.Hour
	cases := map[string]struct {
		reason string
		edits  []edit
		want   time.Duration
	}{
		"covered":            {"all of it holds data", nil, 0},
		"fifteen days":       {"the server keeps no more", []edit{since(now.Add(-15 * day))}, 15 * day},
		"almost all":         {"within a fiftieth", []edit{since(now.Add(-(period - period/50)))}, 0},
		"not quite":          {"within a fiftieth", []edit{since(now.Add(-(period - period/50) + time.Second))}, period - period/50 - time.Second},
		"since when unknown": {"nobody knows", []edit{since(time.Time{})}, 0},
		"in the future":      {"nobody knows", []edit{since(now.Add(time.Hour))}, 0},
		"other window":       {"of the period only", []edit{uncovered("a", hour, now.Add(-hour/2))}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := assess(service("checkout", objective("a")), tc.edits...)
			if got := a.Objectives[0].Covered; got != tc.want || a.State != compare.Met {
				t.Errorf("%s: %s covered and %s, want %s", tc.reason, got, a.State, tc.want)
			}
		})
	}
}

// Windows that are asked again at a cadence may be older by twice of it.
func TestAgeLimitsFollowTheCadence(t *testing.T) {
	cases := map[string]struct {
		window time.Duration
		sweep  time.Duration
		limit  time.Duration
	}{
		"judge window":       {judgeWindow, 30 * time.Second, 90 * time.Second},
		"half an hour":       {short30, 30 * time.Second, 150 * time.Second},
		"hour":               {hour, 30 * time.Second, 210 * time.Second},
		"six hours":          {sixHours, 30 * time.Second, 810 * time.Second},
		"hour, slow sweep":   {hour, 5 * time.Minute, 690 * time.Second},
		"judge, slow sweep":  {judgeWindow, 5 * time.Minute, 90 * time.Second},
		"hour, no sweep":     {hour, 0, 210 * time.Second},
		"hour, absurd sweep": {hour, -time.Hour, 210 * time.Second},
	}
	svc := service("checkout", objective("a"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := compare.Limits{Sweep: tc.sweep}
			at := func(d time.Duration) compare.Assessment {
				return compare.Assess(svc, measure.NewSet(answer(measure.Pass(svc, now), on("a", tc.window, age(d)))), limits, now)
			}
			if a := at(tc.limit); a.State != compare.Met {
				t.Errorf("at the limit of %s: %s(%s)", tc.limit, a.State, a.Reason)
			}
			if a := at(tc.limit + time.Second); a.Reason != compare.Stale {
				t.Errorf("a second past the limit of %s: %s(%s)", tc.limit, a.State, a.Reason)
			}
		})
	}
}

func TestErrorBudgetRemaining(t *testing.T) {
	cases := map[string]struct {
		reason string
		e      edit
		want   float64
		ok     bool
	}{
		"untouched": {"no errors", ratio(0), 1, true},
		"half":      {"half of a tenth", ratio(0.05), 0.5, true},
		"overspent": {"twice the tenth", ratio(0.2), -1, true},
		"unknown":   {"nobody knows", reason(measure.NoData), 0, false},
		"no events": {"no events have no ratio", events(0), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := assess(service("checkout", objective("a")), on("a", period, tc.e)).Objectives[0].ErrorBudgetRemaining()
			if ok != tc.ok || math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("%s: got %g, %t, want %g, %t", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}
