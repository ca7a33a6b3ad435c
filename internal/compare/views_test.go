package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// seenFrom is an objective with one vantage point for each source.
func seenFrom(id string, sources ...string) spec.Objective {
	o := objective(id)
	for i, source := range sources {
		in := spec.Indicator{
			Good:  &spec.Query{Expr: o.Indicator.Good.Expr, Source: source},
			Total: &spec.Query{Expr: o.Indicator.Total.Expr, Source: source},
		}
		if i == 0 {
			o.Indicator = in
		} else {
			o.Others = append(o.Others, in)
		}
	}
	return o
}

// from applies edits to what one vantage point sees.
func from(vantage int, es ...edit) edit {
	return func(m *measure.Measurement) {
		if m.ID.Vantage == vantage {
			for _, e := range es {
				e(m)
			}
		}
	}
}

// sight is what one vantage point can say of the objective "a".
type sight struct {
	name   string
	edits  []edit
	state  compare.State
	reason compare.Reason
	// alone is what is shown where nobody else looks.
	alone measure.Measurement
}

func sights() []sight {
	few := []edit{on("a", judgeWindow, events(3)), hourBefore("a", events(0))}
	all := []sight{
		{name: "met", edits: nil, state: compare.Met},
		{name: "burning", edits: []edit{burning("a")}, state: compare.Breached, reason: compare.Burning},
		{name: "recovering", edits: []edit{on("a", short30, ratio(0.5)), on("a", sixHours, ratio(0.5))}, state: compare.Breached, reason: compare.Recovering},
		{name: "no data", edits: []edit{on("a", judgeWindow, reason(measure.NoData))}, state: compare.Unknown, reason: measure.NoData},
		{name: "several series", edits: []edit{on("a", judgeWindow, reason(measure.SeveralSeries))}, state: compare.Unknown, reason: measure.SeveralSeries},
		{name: "long window unknown", edits: []edit{on("a", hour, reason(measure.NotFinite))}, state: compare.Unknown, reason: measure.NotFinite},
		{name: "stale", edits: []edit{on("a", judgeWindow, age(time.Hour))}, state: compare.Unknown, reason: compare.Stale},
		{name: "clock skew", edits: []edit{on("a", judgeWindow, age(-time.Minute))}, state: compare.Unknown, reason: compare.ClockSkew},
		{name: "source error", edits: []edit{reason(measure.SourceError)}, state: compare.Unknown, reason: measure.SourceError},
		{name: "source refused", edits: []edit{reason(measure.SourceRefused)}, state: compare.Unknown, reason: measure.SourceRefused},
		{name: "partial", edits: []edit{reason(measure.Partial)}, state: compare.Unknown, reason: measure.Partial},
		{name: "low traffic", edits: few, state: compare.Unknown, reason: compare.LowTraffic},
		{name: "traffic lost", edits: []edit{on("a", judgeWindow, events(3))}, state: compare.Unknown, reason: compare.TrafficLost},
		{name: "burning, then quiet", edits: append([]edit{burning("a")}, few...), state: compare.Unknown, reason: compare.LowTraffic},
	}
	for i, s := range all {
		all[i].alone = assess(service("checkout", seenFrom("a", "x")), s.edits...).Objectives[0].Judge
	}
	return all
}

// verdict is what several vantage points should say together, by the rules as
// the documents have them.
func verdict(all []sight) (compare.State, compare.Reason) {
	count := map[compare.State]int{}
	var telling []compare.Reason
	quiet, recovering := 0, 0
	for rank := range 3 {
		for _, s := range all {
			fault := s.reason.SourceFault()
			if s.state == compare.Unknown && [](bool){!fault && s.reason != compare.LowTraffic, fault, s.reason == compare.LowTraffic}[rank] {
				telling = append(telling, s.reason)
			}
		}
	}
	for _, s := range all {
		count[s.state]++
		if s.reason == compare.LowTraffic {
			quiet++
		}
		if s.reason == compare.Recovering {
			recovering++
		}
	}
	switch {
	case count[compare.Unknown] > quiet, quiet > 0 && count[compare.Breached] == 0:
		return compare.Unknown, telling[0]
	case count[compare.Met] == len(all):
		return compare.Met, ""
	case count[compare.Breached] < len(all):
		return compare.Unknown, compare.Conflicting
	case recovering > 0:
		return compare.Breached, compare.Recovering
	}
	return compare.Breached, compare.Burning
}

// All combinations of what two and three vantage points can see.
func TestVantagePointsAgree(t *testing.T) {
	all := sights()
	check := func(seen ...sight) {
		sources := []string{"server", "probe", "edge"}[:len(seen)]
		var edits []edit
		var names []string
		for i, s := range seen {
			edits = append(edits, from(i, s.edits...))
			names = append(names, s.name)
		}
		name := strings.Join(names, ", ")
		a := assess(service("checkout", seenFrom("a", sources...)), edits...)
		o := a.Objectives[0]
		state, why := verdict(seen)
		if o.State != state || o.Reason != why || a.State != state || a.Reason != why {
			t.Fatalf("%s: got %s(%s) %s, want %s(%s)", name, o.State, o.Reason, o.Detail, state, why)
		}
		if diff := cmp.Diff(sources, o.Sources); diff != "" {
			t.Fatalf("%s: sources (-want +got):\n%s", name, diff)
		}
		if a.Actionable() != (state == compare.Breached && why == compare.Burning) {
			t.Fatalf("%s: actionable is %t", name, a.Actionable())
		}
		checkShown(t, name, o, seen)
		checkFault(t, name, a, seen, sources)
	}
	for _, a := range all {
		for _, b := range all {
			check(a, b)
			for _, c := range all {
				check(a, b, c)
			}
		}
	}
}

// checkShown: the numbers are those of one vantage point, and never between.
func checkShown(t *testing.T, name string, o compare.Objective, seen []sight) {
	t.Helper()
	oneOf := false
	for _, s := range seen {
		oneOf = oneOf || s.alone.ErrorRatio == o.Judge.ErrorRatio && s.alone.Total == o.Judge.Total
	}
	if !oneOf {
		t.Fatalf("%s: %g of %g errors are shown, which nobody saw", name, o.Judge.ErrorRatio, o.Judge.Total)
	}
	if o.State == compare.Breached && !slices.ContainsFunc(seen, func(s sight) bool { return s.name == "recovering" }) && o.Judge.ErrorRatio != 0.8 {
		t.Fatalf("%s: %g is shown, want the worst", name, o.Judge.ErrorRatio)
	}
}

// checkFault: a page for a source names the one that is at fault.
func checkFault(t *testing.T, name string, a compare.Assessment, seen []sight, sources []string) {
	t.Helper()
	want := ""
	if a.Reason.SourceFault() {
		want = sources[slices.IndexFunc(seen, func(s sight) bool { return s.reason == a.Reason })]
	}
	if a.SourceFault != want {
		t.Fatalf("%s: the fault is of the source %q, want %q", name, a.SourceFault, want)
	}
	o := a.Objectives[0]
	if o.State == compare.Unknown && o.Reason != compare.Conflicting && o.UnknownFrom != sources[slices.IndexFunc(seen, func(s sight) bool { return s.reason == o.Reason })] {
		t.Fatalf("%s: unknown from %q", name, o.UnknownFrom)
	}
}

func TestDisagreementNamesBothSides(t *testing.T) {
	o := seenFrom("a", "server", "probe")
	cases := map[string]struct {
		reason string
		edits  []edit
		want   string
	}{
		"met and burning": {"both, with their numbers", []edit{from(1, burning("a"))},
			"the vantage points disagree: server: met with 0 % errors in the judge window; probe: breached with 80 % errors in the judge window"},
		"burning and quiet": {"silence beside a failure is no low traffic", []edit{from(0, on("a", judgeWindow, events(3)), hourBefore("a", events(0))), from(1, burning("a"))},
			"the vantage points disagree: server: unknown (low-traffic); probe: breached with 80 % errors in the judge window"},
		"burning and unknown": {"the one that cannot be seen, with its words", []edit{from(0, burning("a")), from(1, reason(measure.NoData))},
			"from source probe: words (server: breached with 80 % errors in the judge window; probe: unknown (no-data))"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := assess(service("checkout", o), tc.edits...).Objectives[0].Detail; got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// Two reads are two only if all that was seen is newer.
func TestSampleIsTheOldestOfAllVantagePoints(t *testing.T) {
	svc := service("checkout", seenFrom("a", "server", "probe"))
	for worse := range 2 {
		a := assess(svc, from(worse, on("a", judgeWindow, ratio(0.05))), from(1, age(40*time.Second)))
		if a.State != compare.Met || !a.SampleAt.Equal(now.Add(-40*time.Second)) || a.Objectives[0].SampleAge != 40*time.Second {
			t.Errorf("%s, sample %s, age %s: want that of the probe", a.State, a.SampleAt, a.Objectives[0].SampleAge)
		}
		if got := a.Objectives[0].Judge.ErrorRatio; got != 0.05 {
			t.Errorf("%g errors are shown, want those of the worst", got)
		}
	}
}

// The order of the vantage points decides nothing but what is named first.
func TestVantagePointsHaveNoOrder(t *testing.T) {
	all := sights()
	rapid.Check(t, func(t *rapid.T) {
		var seen []sight
		for i := range rapid.IntRange(2, 4).Draw(t, "vantage points") {
			seen = append(seen, rapid.SampledFrom(all).Draw(t, fmt.Sprint("sight", i)))
		}
		outcome := func(order []int) (compare.State, bool, bool) {
			var edits []edit
			var sources []string
			for to, at := range order {
				edits = append(edits, from(to, seen[at].edits...))
				sources = append(sources, fmt.Sprint("source", at))
			}
			a := assess(service("checkout", seenFrom("a", sources...)), edits...)
			return a.State, a.Reason == compare.Conflicting, a.Actionable()
		}
		order := make([]int, len(seen))
		for i := range order {
			order[i] = i
		}
		state, conflicting, actionable := outcome(order)
		s, c, act := outcome(rapid.Permutation(order).Draw(t, "order"))
		if s != state || c != conflicting || act != actionable {
			t.Fatalf("%s %t %t in one order, %s %t %t in another", state, conflicting, actionable, s, c, act)
		}
	})
}
