package fleet_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
	"github.com/setpoint-dev/setpoint/internal/measure"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
)

const month = 30 * day

// spiky is a month of a few services with most requests in little time.
func spiky(services int) fleet.Options {
	return fleet.Options{Services: services, Interval: time.Minute, Span: month + day, Spiky: true, Target: 0.99}
}

// off is by how much of the truth a value is wrong.
func off(got, want float64) float64 { return math.Abs(got-want) / want }

// budgets are how much of the error budget is left by the recorded counts, and
// by the raw query, for each service.
func budgets(t testing.TB, r *rig) (recorded, raw []float64, samples int64) {
	t.Helper()
	r.Clock.Set(r.End())
	for i := range r.set.Services {
		v, err := r.Ratio(t.Context(), i, month, r.End())
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, v)
	}
	rules, err := yaml.Marshal(measure.Rules(r.set))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Engine.Record(t.Context(), rules, r.Begin().Add(measure.CountStep), r.End()); err != nil {
		t.Fatal(err)
	}
	source, err := measureprom.New(measureprom.Options{Name: "main", URL: r.url, HTTP: config.DefaultHTTPClientConfig, QueriesPerSecond: 1e6, Now: r.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	before := r.Engine.Counts()
	for _, svc := range r.set.Services {
		qs := slices.DeleteFunc(measure.Pass(svc, r.End()), func(q measure.Query) bool { return q.ID.Window != month })
		ms := source.Measure(t.Context(), qs)
		if len(ms) != 1 || !ms[0].Known() {
			t.Fatalf("%s: %+v", svc.Name, ms)
		}
		recorded = append(recorded, ms[0].ErrorRatio)
	}
	return recorded, raw, r.Engine.Counts().Since(before).Samples
}

// TestBudgetByRecordedCounts is B15: on traffic that fools averages of ratios,
// what `setpoint slo rules` records gives the 30-day error ratio of the raw
// query, to half a percent of it, and reads a small part of its samples.
func TestBudgetByRecordedCounts(t *testing.T) {
	const services = 10
	r := newRig(t, spiky(services))
	recorded, raw, samples := budgets(t, r)
	worst := 0.0
	for i := range raw {
		worst = max(worst, off(recorded[i], raw[i]))
	}
	t.Logf("the worst of %d is %.4f %% off", services, 100*worst)
	if worst > 0.005 {
		t.Errorf("recorded counts give %v, the raw query %v: %.2f %% off, want at most 0.5 %%", recorded, raw, 100*worst)
	}
	// Good, total and how many there are of each, every five minutes.
	if most := int64(services * (4*int(month/measure.CountStep) + 10)); samples > most {
		t.Errorf("%d samples were read, want at most %d: the raw series were asked", samples, most)
	}
}

// TestHeldBudgetIsThatOfItsTime is B15 for held values: each is exactly what
// the raw query gives for the time that it says it is of, and that is at most a
// sixtieth of the window ago.
func TestHeldBudgetIsThatOfItsTime(t *testing.T) {
	const services, every = 2, 30 * time.Minute
	if racing {
		t.Skip("one goroutine, and much to compute")
	}
	r := newRig(t, spiky(services))
	r.Clock.Set(r.End().Add(-20 * time.Hour))
	a := r.agent(t, func(o *fleet.AgentOptions) { o.Interval = every })
	var stale []float64
	for i := range 40 {
		for k, res := range a.Sweep(t.Context()) {
			if i == 0 {
				continue // a window that is only shown is read a little later
			}
			period := res.Assessment.Objectives[0].Period
			if !period.Known() || res.Assessment.State == compare.Unknown {
				t.Fatalf("%s is %+v at %s", res.Service, res.Assessment, r.Clock.Now())
			}
			asOf := period.AsOf
			if age := r.Clock.Now().Sub(asOf); age > month/60 {
				t.Errorf("%s: its budget is %s old, want at most %s", res.Service, age, month/60)
			}
			then, err := r.Ratio(t.Context(), k, month, asOf)
			if err != nil || off(period.ErrorRatio, then) > 1e-9 {
				t.Errorf("%s: %v is held for %s, and the raw query says %v, %v", res.Service, period.ErrorRatio, asOf, then, err)
			}
			now, err := r.Ratio(t.Context(), k, month, r.Clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			stale = append(stale, off(period.ErrorRatio, now))
		}
		r.Clock.Pass(every)
	}
	slices.Sort(stale)
	t.Logf("against the raw query of the same moment: median %.3f %%, worst %.3f %% off", 100*stale[len(stale)/2], 100*stale[len(stale)-1])
}
