package measure_test

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// fleet is random services of a few shapes, with the counters they are measured
// by.
type fleet struct {
	services []spec.Service
	db       database
}

const scrapeEvery = 15 * time.Second

func drawFleet(t *rapid.T) fleet {
	var f fleet
	r := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<30).Draw(t, "seed"))))
	for i := range rapid.IntRange(1, 8).Draw(t, "services") {
		name := fmt.Sprintf("s%d", i)
		matchers := fmt.Sprintf(`service="%s",zone="%s",job="shop"`, name, string(rune('a'+r.Intn(2))))
		o := objective()
		o.MinEvents, o.Window = 0, 2*time.Hour
		o.Indicator = spec.Indicator{
			Bad:   &spec.Query{Expr: `sum(increase(requests_total{` + matchers + `,code=~"5.."}[{{.window}}]))`},
			Total: &spec.Query{Expr: `requests_total{` + matchers + `}`, Counter: true}, AbsentBadZero: r.Intn(2) == 0,
		}
		if r.Intn(3) == 0 {
			o.Indicator = spec.Indicator{
				Good:  &spec.Query{Expr: `sum(increase(requests_total{` + matchers + `,code!~"5.."}[{{.window}}]))`},
				Total: o.Indicator.Total,
			}
		}
		f.services = append(f.services, spec.Service{Name: name, Objectives: []spec.Objective{o}})
		zones := []string{"a", "b"}
		for _, code := range []string{"200", "404", "500", "503"}[r.Intn(4):] {
			for _, pod := range []string{"p", "q"}[r.Intn(2):] {
				f.db = append(f.db, series{
					labels: labels.FromStrings("__name__", "requests_total", "service", name, "zone", zones[r.Intn(2)],
						"job", "shop", "code", code, "pod", pod),
					samples: counterSamples(r),
				})
			}
		}
	}
	return f
}

// counterSamples is a counter as it is scraped: with resets, gaps and an end.
func counterSamples(r *rand.Rand) []sample {
	var out []sample
	v, rate := float64(r.Intn(1000)), float64(r.Intn(20))
	begin := time.Duration(r.Intn(7200)) * time.Second
	end := time.Duration(0)
	if r.Intn(3) == 0 {
		end = time.Duration(r.Intn(900)) * time.Second
	}
	restarts := r.Intn(12) == 0
	for age := begin + time.Duration(r.Intn(15000))*time.Millisecond; age > end; age -= scrapeEvery {
		v += float64(r.Intn(3)) * rate
		switch {
		case r.Intn(400) == 0, restarts && r.Intn(4) == 0:
			v = float64(r.Intn(3))
		case r.Intn(40) == 0:
			continue
		}
		out = append(out, sample{at: now.Add(-age), value: v})
	}
	if n := len(out); n > 0 && r.Intn(2) == 0 && end > 0 {
		out = append(out, sample{at: out[n-1].at.Add(scrapeEvery), value: math.Float64frombits(value.StaleNaN)})
	}
	return out
}

// inWindow are the samples of a window, which does not hold its beginning.
func inWindow(ss []sample, window time.Duration, at time.Time) []sample {
	var out []sample
	for _, s := range ss {
		if s.at.After(at.Add(-window)) && !s.at.After(at) && !math.IsNaN(s.value) {
			out = append(out, s)
		}
	}
	return out
}

// increase is Prometheus's, written anew after its documentation: the rise
// without resets, extrapolated to the edges of the window, to zero at most.
func increase(ss []sample, window time.Duration, at time.Time) (rise float64, resets int, ok bool) {
	in := inWindow(ss, window, at)
	if len(in) < 2 {
		return 0, 0, false
	}
	first, last := in[0], in[len(in)-1]
	rise = last.value - first.value
	for i := 1; i < len(in); i++ {
		if in[i].value < in[i-1].value {
			rise += in[i-1].value
			resets++
		}
	}
	span := last.at.Sub(first.at).Seconds()
	step := span / float64(len(in)-1)
	before, after := first.at.Sub(at.Add(-window)).Seconds(), at.Sub(last.at).Seconds()
	if before >= step*1.1 {
		before = step / 2
	}
	if rise > 0 && first.value >= 0 {
		before = min(before, span*first.value/rise)
	}
	if after >= step*1.1 {
		after = step / 2
	}
	return rise * (span + before + after) / span, resets, true
}

// expected is what should be measured of a service, without PromQL.
type expected struct {
	total, bad, good float64
	resets           int
	newest           time.Time
	any, anyBad      bool
	anyGood          bool
}

// expect reckons the series of a service; of one pod, if it is not empty.
func (f fleet) expect(selector, pod string, id measure.ID) expected {
	var e expected
	window, at := id.Window, id.At
	for _, s := range f.db {
		if !strings.Contains(selector, `service="`+s.labels.Get("service")+`"`) || !strings.Contains(selector, `zone="`+s.labels.Get("zone")+`"`) ||
			pod != "" && s.labels.Get("pod") != pod {
			continue
		}
		if seen := lastSeen(s.samples, at); seen.After(e.newest) {
			e.newest = seen
		}
		rise, resets, ok := increase(s.samples, window, at)
		if !ok {
			continue
		}
		e.any, e.total, e.resets = true, e.total+rise, max(e.resets, resets)
		if strings.HasPrefix(s.labels.Get("code"), "5") {
			e.anyBad, e.bad = true, e.bad+rise
		} else {
			e.anyGood, e.good = true, e.good+rise
		}
	}
	return e
}

// lastSeen is the time of the sample that an instant selector sees.
func lastSeen(ss []sample, at time.Time) time.Time {
	i := slices.IndexFunc(ss, func(s sample) bool { return s.at.After(at) })
	if i < 0 {
		i = len(ss)
	}
	if i == 0 || math.IsNaN(ss[i-1].value) || !ss[i-1].at.After(at.Add(-5*time.Minute)) {
		return time.Time{}
	}
	return ss[i-1].at
}

func (e expected) reason(in spec.Indicator, judge bool) measure.Reason {
	absent := e.total > 0 && (in.Bad != nil && !e.anyBad && !in.AbsentBadZero || in.Good != nil && !e.anyGood)
	switch {
	case !e.any, absent, e.newest.IsZero():
		return measure.NoData
	case judge && e.resets > 3:
		return measure.CounterResets
	}
	return ""
}

func (e expected) ratio(in spec.Indicator) float64 {
	switch {
	case e.total == 0:
		return 0
	case in.Bad != nil:
		return e.bad / e.total
	}
	return (e.total - e.good) / e.total
}

// Grouped or not, what is measured is the same, and it is what the counters
// say, reckoned by hand.
func TestFleetIsMeasuredAsItIs(t *testing.T) {
	seen := map[measure.Reason]int{}
	grouped := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		plans := measure.Compile(f.services, nil)
		var qs []measure.Query
		for _, svc := range f.services {
			qs = append(qs, plans.Service(svc.Name).Pass(now)...)
		}
		single := batched(t, qs, 1, f.db.answer)
		together := batched(t, qs, 100, func(r measure.Request) measure.Reading {
			grouped += r.Members - 1
			return f.db.answer(r)
		})
		if diff := gocmp.Diff(single, together, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Fatalf("asked together, the answers differ (-single +together):\n%s", diff)
		}
		for i, m := range single {
			o := f.objective(m.ID)
			e := f.expect(o.Indicator.Total.Expr, "", m.ID)
			if m.ID.TotalOnly {
				if m.Known() != e.any || !near(m.Total, e.total) {
					t.Fatalf("%+v: total %g (%s), want %g (%t)", qs[i].ID, m.Total, m.Reason, e.total, e.any)
				}
				continue
			}
			want := e.reason(o.Indicator, m.ID.Window == o.JudgeWindow)
			seen[want]++
			if m.Reason != want {
				t.Fatalf("%+v: %q %s, want %q: %+v", qs[i].ID, m.Reason, m.Detail, want, e)
			}
			if m.Known() && (!near(m.Total, e.total) || !near(m.ErrorRatio, e.ratio(o.Indicator)) || !m.SampleAt.Equal(e.newest)) {
				t.Fatalf("%+v: got %+v, want %+v", qs[i].ID, m, e)
			}
		}
	})
	if grouped < 100 || seen[""] < 50 || seen[measure.NoData] < 50 || seen[measure.CounterResets] == 0 {
		t.Errorf("%d asked together, reasons %v: the test tests little", grouped, seen)
	}
}

func (f fleet) objective(id measure.ID) spec.Objective {
	return f.services[slices.IndexFunc(f.services, func(s spec.Service) bool { return s.Name == id.Service })].Objectives[0]
}

// byPod makes each pod a group of its own.
func (f fleet) byPod() {
	for i, svc := range f.services {
		o := &f.services[i].Objectives[0]
		o.GroupBy = []string{"pod"}
		in := svc.Objectives[0].Indicator
		o.Indicator.Total = &spec.Query{Expr: "sum by (pod) (increase(" + in.Total.Expr + "[{{.window}}]))"}
		for _, q := range []**spec.Query{&o.Indicator.Good, &o.Indicator.Bad} {
			if *q != nil {
				*q = &spec.Query{Expr: strings.Replace((*q).Expr, "sum(", "sum by (pod) (", 1)}
			}
		}
	}
}

func TestGroupsOfAFleetAreMeasuredAsTheyAre(t *testing.T) {
	seen := map[measure.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		f.byPod()
		plans := measure.Compile(f.services, nil)
		var qs []measure.Query
		for _, svc := range f.services {
			qs = append(qs, plans.Service(svc.Name).Pass(now)...)
		}
		single := batched(t, qs, 1, f.db.answer)
		if diff := gocmp.Diff(single, batched(t, qs, 100, f.db.answer), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Fatalf("asked together, the answers differ (-single +together):\n%s", diff)
		}
		for _, m := range single {
			o := f.objective(m.ID)
			for _, pod := range []string{"p", "q"} {
				e := f.expect(o.Indicator.Total.Expr, pod, m.ID)
				g := m.Of(`pod="` + pod + `"`)
				want := e.reason(o.Indicator, m.ID.Window == o.JudgeWindow)
				if m.ID.TotalOnly {
					want = map[bool]measure.Reason{true: "", false: measure.NoData}[e.any]
				}
				seen[want]++
				if g.Reason != want || g.Known() && !near(g.Total, e.total) {
					t.Fatalf("%+v, pod %s: got %+v, want %q, %+v", m.ID, pod, g, want, e)
				}
				if g.Known() && !m.ID.TotalOnly && (!near(g.ErrorRatio, e.ratio(o.Indicator)) || !g.SampleAt.Equal(e.newest)) {
					t.Fatalf("%+v, pod %s: got %+v, want %+v", m.ID, pod, g, e)
				}
			}
		}
	})
	if seen[""] < 50 || seen[measure.NoData] < 50 || seen[measure.CounterResets] == 0 {
		t.Errorf("reasons %v: the test tests little", seen)
	}
}

func near(got, want float64) bool { return closeTo(got, want, 1e-6*max(1, math.Abs(want))) }
