package compare_test

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func assess(svc spec.Service, edits ...edit) compare.Assessment {
	return compare.Assess(svc, measure.NewSet(answer(measure.Pass(svc, now), edits...)), limits, now)
}

func TestAssessObjective(t *testing.T) {
	raw := func(o *spec.Objective) {
		o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg_over_time(up[{{.window}}])"}}
	}
	noEvents := func(m *measure.Measurement) { m.HasEvents, m.Good, m.Total = false, 0, 0 }
	a := "a"
	cases := map[string]struct {
		reason string
		change func(*spec.Objective)
		edits  []edit
		state  compare.State
		why    compare.Reason
	}{
		"healthy":                 {reason: "no pair burns", state: compare.Met},
		"pair burns":              {reason: "both rates exceed the factor, and the judge window misses", edits: []edit{burning(a)}, state: compare.Breached, why: compare.Burning},
		"only the short":          {reason: "a pair burns when both rates exceed its factor", edits: []edit{on(a, judgeWindow, ratio(0.8))}, state: compare.Met},
		"only the long":           {reason: "a pair burns when both rates exceed its factor", edits: []edit{on(a, hour, ratio(0.8))}, state: compare.Met},
		"exactly the factor":      {reason: "it must exceed", edits: []edit{on(a, judgeWindow, ratio(0.72)), on(a, hour, ratio(0.72))}, state: compare.Met},
		"long exactly the factor": {reason: "each rate must exceed", edits: []edit{on(a, judgeWindow, ratio(0.8)), on(a, hour, ratio(0.72))}, state: compare.Met},
		"second pair":             {reason: "any page pair will do", edits: []edit{on(a, short30, ratio(0.5)), on(a, sixHours, ratio(0.5)), on(a, judgeWindow, ratio(0.5))}, state: compare.Breached, why: compare.Burning},
		"judge window good":       {reason: "a burning pair with a good judge window is recovering", edits: []edit{on(a, short30, ratio(0.5)), on(a, sixHours, ratio(0.5))}, state: compare.Breached, why: compare.Recovering},
		"judge at the target":     {reason: "exactly the target does not miss it", edits: []edit{on(a, short30, ratio(0.5)), on(a, sixHours, ratio(0.5)), on(a, judgeWindow, ratio(0.1))}, state: compare.Breached, why: compare.Recovering},
		"misses, no burn":         {reason: "only pairs make an objective Breached", edits: []edit{on(a, judgeWindow, ratio(0.2))}, state: compare.Met},
		"ticket pair": {
			reason: "slower pairs are shown and never act",
			change: func(o *spec.Objective) { o.BurnRates[0].Page = false },
			edits:  []edit{burning(a)}, state: compare.Met,
		},
		"ticket pair unknown": {
			reason: "what never acts need not be known",
			change: func(o *spec.Objective) { o.BurnRates[1].Page = false },
			edits:  []edit{on(a, sixHours, reason(measure.SourceError))}, state: compare.Met,
		},
		"budget spent":          {reason: "a spent error budget is shown and never acts", edits: []edit{on(a, period, ratio(1))}, state: compare.Met},
		"period unknown":        {reason: "what never acts need not be known", edits: []edit{on(a, period, reason(measure.SourceError))}, state: compare.Met},
		"judge unknown":         {reason: "never healthy, never breached", edits: []edit{burning(a), on(a, judgeWindow, reason(measure.NoData))}, state: compare.Unknown, why: measure.NoData},
		"long unknown":          {reason: "Met needs every page pair known", edits: []edit{on(a, hour, reason(measure.Partial))}, state: compare.Unknown, why: measure.Partial},
		"short unknown":         {reason: "Met needs every page pair known", edits: []edit{on(a, short30, reason(measure.NotFinite))}, state: compare.Unknown, why: measure.NotFinite},
		"other pair unknown":    {reason: "a pair that burns is not undone by one that is unknown", edits: []edit{burning(a), on(a, sixHours, reason(measure.SourceError))}, state: compare.Breached, why: compare.Burning},
		"sample at the limit":   {reason: "maxSampleAge for the judge window", edits: []edit{on(a, judgeWindow, age(90*time.Second))}, state: compare.Met},
		"sample too old":        {reason: "maxSampleAge for the judge window", edits: []edit{burning(a), on(a, judgeWindow, age(91*time.Second))}, state: compare.Unknown, why: compare.Stale},
		"slow source":           {reason: "the limit is the source's", edits: []edit{func(m *measure.Measurement) { m.Source = "slow" }, on(a, judgeWindow, age(4*time.Minute))}, state: compare.Met},
		"long at the limit":     {reason: "longer windows may be older by twice their cadence", edits: []edit{on(a, hour, age(210*time.Second))}, state: compare.Met},
		"long too old":          {reason: "longer windows may be older by twice their cadence", edits: []edit{on(a, hour, age(211*time.Second))}, state: compare.Unknown, why: compare.Stale},
		"no sample time":        {reason: "an age that is not known is no age", edits: []edit{on(a, judgeWindow, func(m *measure.Measurement) { m.SampleAt = time.Time{} })}, state: compare.Unknown, why: compare.Stale},
		"sample in the future":  {reason: "clocks apart", edits: []edit{on(a, judgeWindow, age(-6*time.Second))}, state: compare.Unknown, why: compare.ClockSkew},
		"a little ahead":        {reason: "5 s are allowed", edits: []edit{on(a, judgeWindow, age(-5*time.Second))}, state: compare.Met},
		"NaN":                   {reason: "every comparison with NaN is false, which must not read as healthy", edits: []edit{on(a, hour, func(m *measure.Measurement) { m.ErrorRatio = math.NaN() })}, state: compare.Unknown, why: measure.NotFinite},
		"ratio above one":       {reason: "no ratio", edits: []edit{on(a, hour, func(m *measure.Measurement) { m.ErrorRatio = 1.5 })}, state: compare.Unknown, why: measure.OutOfRange},
		"low traffic":           {reason: "too few events to mean anything", edits: []edit{burning(a), on(a, judgeWindow, events(49)), hourBefore(a, events(599))}, state: compare.Unknown, why: compare.LowTraffic},
		"minEvents":             {reason: "exactly minEvents are enough", edits: []edit{on(a, judgeWindow, events(50))}, state: compare.Met},
		"traffic lost":          {reason: "the hour before had minEvents per judge window", edits: []edit{on(a, judgeWindow, events(0)), hourBefore(a, events(600))}, state: compare.Unknown, why: compare.TrafficLost},
		"hour before no data":   {reason: "what was never there is not lost", edits: []edit{on(a, judgeWindow, events(0)), hourBefore(a, reason(measure.NoData))}, state: compare.Unknown, why: compare.LowTraffic},
		"hour before unknown":   {reason: "low traffic pages nobody, and it may have been lost", edits: []edit{on(a, judgeWindow, events(0)), hourBefore(a, reason(measure.QueryError))}, state: compare.Unknown, why: measure.QueryError},
		"no floor, no events":   {reason: "no events have no ratio", change: func(o *spec.Objective) { o.MinEvents = 0 }, edits: []edit{on(a, judgeWindow, events(0)), hourBefore(a, events(11))}, state: compare.Unknown, why: compare.LowTraffic},
		"no floor, lost":        {reason: "without a floor, one event per judge window is traffic", change: func(o *spec.Objective) { o.MinEvents = 0 }, edits: []edit{on(a, judgeWindow, events(0)), hourBefore(a, events(12))}, state: compare.Unknown, why: compare.TrafficLost},
		"no floor, one event":   {reason: "zero is no floor", change: func(o *spec.Objective) { o.MinEvents = 0 }, edits: []edit{on(a, judgeWindow, events(1))}, state: compare.Met},
		"raw without events":    {reason: "minEvents cannot bind a raw indicator", change: raw, edits: []edit{noEvents}, state: compare.Met},
		"long without events":   {reason: "no events have no rate", edits: []edit{on(a, hour, events(0))}, state: compare.Unknown, why: compare.LowTraffic},
		"not covered, no burn":  {reason: "an uncovered pair that does not burn limits nothing", edits: []edit{uncovered(a, hour, time.Time{})}, state: compare.Met},
		"several series, burns": {reason: "never the first of a list", edits: []edit{burning(a), on(a, judgeWindow, reason(measure.SeveralSeries))}, state: compare.Unknown, why: measure.SeveralSeries},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective(a)
			if tc.change != nil {
				tc.change(&o)
			}
			got := assess(service("checkout", o), tc.edits...).Objectives[0]
			if got.State != tc.state || got.Reason != tc.why {
				t.Errorf("%s: got %s(%s) %s, want %s(%s)", tc.reason, got.State, got.Reason, got.Detail, tc.state, tc.why)
			}
		})
	}
}

func TestAssessService(t *testing.T) {
	recovering := func(id string) edit {
		return func(m *measure.Measurement) {
			on(id, short30, ratio(0.5))(m)
			on(id, sixHours, ratio(0.5))(m)
		}
	}
	type want struct {
		State      compare.State
		Reason     compare.Reason
		Actionable bool
		Fault      string
		HasSample  bool
	}
	cases := map[string]struct {
		reason string
		edits  []edit
		want   want
	}{
		"all met":                 {"nothing misses", nil, want{compare.Met, "", false, "", true}},
		"one breached":            {"Breached if any objective is", []edit{burning("b")}, want{compare.Breached, compare.Burning, true, "", true}},
		"one unknown":             {"else Unknown if any is", []edit{on("b", judgeWindow, reason(measure.NoData))}, want{compare.Unknown, measure.NoData, false, "", false}},
		"breached and unknown":    {"it pages and does not act", []edit{burning("a"), on("b", judgeWindow, reason(measure.NoData))}, want{compare.Breached, compare.PartlyUnknown, false, "", false}},
		"breached, low traffic":   {"low traffic is unknown as well", []edit{burning("a"), on("b", judgeWindow, events(0)), hourBefore("b", events(0))}, want{compare.Breached, compare.PartlyUnknown, false, "", false}},
		"recovering":              {"the page stays, nothing is proposed", []edit{recovering("a")}, want{compare.Breached, compare.Recovering, false, "", true}},
		"recovering and burning":  {"one still burns", []edit{recovering("a"), burning("b")}, want{compare.Breached, compare.Burning, true, "", true}},
		"recovering and unknown":  {"not known to recover", []edit{recovering("a"), on("b", judgeWindow, reason(measure.NoData))}, want{compare.Breached, compare.PartlyUnknown, false, "", false}},
		"source down":             {"one page for the source", []edit{reason(measure.SourceError)}, want{compare.Unknown, measure.SourceError, false, "main", false}},
		"source down and no data": {"a dead exporter is not hidden behind the source", []edit{on("a", judgeWindow, reason(measure.SourceError)), on("b", judgeWindow, reason(measure.NoData))}, want{compare.Unknown, measure.NoData, false, "", false}},
		"low traffic and partial": {"what pages comes before what is only shown", []edit{on("a", judgeWindow, events(0)), hourBefore("a", events(0)), on("b", judgeWindow, reason(measure.Partial))}, want{compare.Unknown, measure.Partial, false, "main", false}},
		"low traffic and no data": {"what pages comes before what is only shown", []edit{on("a", judgeWindow, events(0)), hourBefore("a", events(0)), on("b", judgeWindow, reason(measure.NoData))}, want{compare.Unknown, measure.NoData, false, "", false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := assess(service("checkout", objective("a"), objective("b")), tc.edits...)
			got := want{a.State, a.Reason, a.Actionable(), a.SourceFault, !a.SampleAt.IsZero()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("no objectives", func(t *testing.T) {
		if a := assess(service("checkout")); a.State != compare.Unknown {
			t.Errorf("a service that promises nothing is %s", a.State)
		}
	})
	t.Run("nothing measured", func(t *testing.T) {
		a := compare.Assess(service("checkout", objective("a")), nil, limits, now)
		if a.State != compare.Unknown || a.Reason != measure.NotMeasured {
			t.Errorf("got %s(%s)", a.State, a.Reason)
		}
	})
}

func TestWarming(t *testing.T) {
	first := now.Add(-20 * time.Minute)
	both := func(id string) edit {
		return func(m *measure.Measurement) {
			for _, w := range []time.Duration{judgeWindow, short30, hour, sixHours} {
				on(id, w, ratio(0.8))(m)
			}
		}
	}
	cases := map[string]struct {
		reason string
		edits  []edit
		want   time.Time // zero: not warming
	}{
		"covered":              {"its long window has data", []edit{burning("a")}, time.Time{}},
		"not covered":          {"until the first sample leaves the window but for one judge window", []edit{burning("a"), uncovered("a", hour, first)}, first.Add(hour - judgeWindow)},
		"first sample unknown": {"at the latest when a window from now on is covered", []edit{burning("a"), uncovered("a", hour, time.Time{})}, now.Add(hour - judgeWindow)},
		"other pair uncovered": {"an uncovered pair that does not burn limits nothing", []edit{burning("a"), uncovered("a", sixHours, first)}, time.Time{}},
		"one of two covered":   {"a covered pair that burns is enough", []edit{both("a"), uncovered("a", sixHours, first)}, time.Time{}},
		"none of two covered":  {"the first to be covered counts", []edit{both("a"), uncovered("a", hour, first), uncovered("a", sixHours, first)}, first.Add(hour - judgeWindow)},
		"other objective covered": {"recovering leads to nothing, so it lends no coverage", []edit{
			burning("a"), uncovered("a", hour, first), on("b", short30, ratio(0.5)), on("b", sixHours, ratio(0.5)),
		}, first.Add(hour - judgeWindow)},
		"nothing burns": {"nothing to limit", []edit{uncovered("a", hour, first)}, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := assess(service("checkout", objective("a"), objective("b")), tc.edits...)
			if a.Warming != !tc.want.IsZero() || !a.WarmingUntil.Equal(tc.want) {
				t.Errorf("%s: warming %t until %s, want %s", tc.reason, a.Warming, a.WarmingUntil, tc.want)
			}
		})
	}
}

func TestAssessShowsTheNumbers(t *testing.T) {
	a := assess(service("checkout", objective("a")), burning("a"), on("a", judgeWindow, age(12*time.Second)))
	o := a.Objectives[0]
	if o.Judge.ErrorRatio != 0.8 || o.SampleAge != 12*time.Second || !a.SampleAt.Equal(now.Add(-12*time.Second)) {
		t.Errorf("judge %+v, age %s, sample %s", o.Judge, o.SampleAge, a.SampleAt)
	}
	if diff := cmp.Diff([]string{"main"}, o.Sources); diff != "" {
		t.Error(diff)
	}
	if b := o.Burns[0]; !b.Burning || math.Abs(b.ShortRate-8) > 1e-9 || math.Abs(b.LongRate-8) > 1e-9 || !b.CoveredAt.IsZero() {
		t.Errorf("burn %+v", b)
	}
	if left, ok := o.ErrorBudgetRemaining(); !ok || left != 1 {
		t.Errorf("error budget %g, %t", left, ok)
	}
	if w, ok := a.Worst(); !ok || w.ID != "a" {
		t.Errorf("worst %+v, %t", w, ok)
	}
}

// anything draws an answer for one query, sane or not.
func anything(t *rapid.T, q measure.Query) measure.Measurement {
	m := answer([]measure.Query{q})[0]
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		reason(rapid.SampledFrom([]measure.Reason{
			measure.NoData, measure.SourceError, measure.Partial, measure.NotFinite, measure.SeveralSeries,
		}).Draw(t, "reason"))(&m)
	case 1:
		m.ErrorRatio = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1, 2}).Draw(t, "odd")
	case 2:
		age(time.Duration(rapid.IntRange(-20, 400).Draw(t, "age")) * time.Second)(&m)
	case 3:
		events(float64(rapid.IntRange(0, 100).Draw(t, "events")))(&m)
	case 4, 5, 6:
		ratio(rapid.Float64Range(0, 1).Draw(t, "ratio"))(&m)
	case 7:
		ratio(0.9)(&m)
	}
	return m
}

func TestAssessProperties(t *testing.T) {
	svc := service("checkout", objective("a"), objective("b"))
	usable := func(m measure.Measurement, limit time.Duration) bool {
		return m.Known() && m.ErrorRatio >= 0 && m.ErrorRatio <= 1 && m.Total > 0 &&
			now.Sub(m.SampleAt) <= limit && m.SampleAt.Sub(now) <= 5*time.Second
	}
	rapid.Check(t, func(t *rapid.T) {
		var ms []measure.Measurement
		for _, q := range measure.Pass(svc, now) {
			if rapid.IntRange(0, 30).Draw(t, "lost") != 0 {
				ms = append(ms, anything(t, q))
			}
		}
		set := measure.NewSet(ms)
		a := compare.Assess(svc, set, limits, now)
		get := func(id string, w time.Duration) measure.Measurement {
			return set.Get(measure.ID{Service: "checkout", Objective: id, Window: w, At: now})
		}
		for _, o := range svc.Objectives {
			judge := get(o.ID, judgeWindow)
			judgeUsable := usable(judge, 90*time.Second) && judge.Total >= o.MinEvents
			allUsable := judgeUsable
			pairs := 0
			for _, b := range o.BurnRates {
				limit := func(w time.Duration) time.Duration { return 90*time.Second + 2*measure.Cadence(w, limits.Sweep) }
				ok := usable(get(o.ID, b.Short), limit(b.Short)) && usable(get(o.ID, b.Long), limit(b.Long))
				allUsable = allUsable && ok
				if ok && get(o.ID, b.Short).ErrorRatio > b.Factor*0.0999 && get(o.ID, b.Long).ErrorRatio > b.Factor*0.0999 {
					pairs++
				}
			}
			if a.State == compare.Met && !allUsable {
				t.Fatalf("met, although %s is not wholly known", o.ID)
			}
			if a.Actionable() && !judgeUsable {
				t.Fatalf("actionable, although the judge window of %s is unknown", o.ID)
			}
			if got := a.Objectives[indexOf(a, o.ID)]; got.State == compare.Breached && pairs == 0 {
				t.Fatalf("%s breached without a known pair that burns", o.ID)
			}
		}
		shuffled := append([]measure.Measurement(nil), ms...)
		rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<20).Draw(t, "seed")))).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		again := compare.Assess(svc, measure.NewSet(shuffled), limits, now)
		if diff := cmp.Diff(a, again, cmp.Comparer(sameFloat)); diff != "" {
			t.Fatalf("the order of the measurements matters:\n%s", diff)
		}
	})
}

func indexOf(a compare.Assessment, id string) int {
	for i, o := range a.Objectives {
		if o.ID == id {
			return i
		}
	}
	return -1
}

func sameFloat(a, b float64) bool { return a == b || (math.IsNaN(a) && math.IsNaN(b)) }
