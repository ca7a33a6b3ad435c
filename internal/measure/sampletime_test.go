package measure_test

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func at(before time.Duration) sample { return sample{at: now.Add(-before), value: 1} }

// sampleTime is the expression that tells the age of what is asked.
func sampleTime(t *testing.T, o spec.Objective) string {
	t.Helper()
	for expr := range asked(t, measure.At("checkout", o, time.Hour, now), 1) {
		if !isIncrease(expr) {
			return expr
		}
	}
	t.Fatal("nothing asks for the age of the samples")
	return ""
}

func isIncrease(expr string) bool { return len(expr) > 3 && expr[:3] == "sum" }

// The sample time is asked of the real engine, because what "or" keeps is
// easily got wrong.
func TestSampleTimeIsTheNewestOfAllSelectors(t *testing.T) {
	of := func(name, job string, ss ...sample) series {
		return series{labels: labels.FromStrings("__name__", name, "job", job, "host", job), samples: ss}
	}
	a := func(ss ...sample) series { return of("a_total", "shop", ss...) }
	b := func(ss ...sample) series { return of("b_total", "shop", ss...) }
	cases := map[string]struct {
		reason string
		db     database
		want   time.Duration // before now; negative: nothing
	}{
		"first is newer":  {"the newest counts", database{a(at(10 * time.Second)), b(at(40 * time.Second))}, 10 * time.Second},
		"second is newer": {"equal labels on both sides must not hide the second", database{a(at(40 * time.Second)), b(at(10 * time.Second))}, 10 * time.Second},
		"first is absent": {"one selector may select nothing", database{b(at(20 * time.Second))}, 20 * time.Second},
		"both are absent": {"no sample is no time", nil, -1},
		"several series": {
			"the newest series of a selector counts",
			database{a(at(50 * time.Second)), b(at(40 * time.Second)), of("b_total", "other", at(time.Second))},
			time.Second,
		},
		"older than the lookback": {"a sample nobody sees any more is no sample", database{a(at(6 * time.Minute))}, -1},
	}
	o := objective()
	o.Indicator.Total = &spec.Query{Expr: "sum(increase(a_total[{{.window}}])) + sum(increase(b_total[{{.window}}]))"}
	expr := sampleTime(t, o)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := evaluate(t, tc.db, expr, now)
			if tc.want < 0 {
				if len(v) != 0 {
					t.Fatalf("%s: got %v, want nothing", tc.reason, v)
				}
				return
			}
			if len(v) != 1 || !closeTo(v[0].F, float64(now.Add(-tc.want).UnixMilli())/1000, 1e-3) {
				t.Fatalf("%s: got %v, want one value %v before now", tc.reason, v, tc.want)
			}
		})
	}
	t.Run("by group", func(t *testing.T) {
		o := o
		o.GroupBy = []string{"host"}
		o.Indicator = spec.Indicator{
			Bad:   &spec.Query{Expr: "sum by (host) (increase(a_total[{{.window}}]))"},
			Total: &spec.Query{Expr: "sum by (host) (increase(a_total[{{.window}}])) + sum by (host) (increase(b_total[{{.window}}]))"},
		}
		db := database{a(at(50 * time.Second)), b(at(40 * time.Second)), of("b_total", "other", at(time.Second))}
		got := map[string]float64{}
		for _, s := range evaluate(t, db, sampleTime(t, o), now) {
			got[s.Metric.String()] = s.F
		}
		seconds := float64(now.Unix())
		if len(got) != 2 || !closeTo(got[`{host="shop"}`], seconds-40, 1e-3) || !closeTo(got[`{host="other"}`], seconds-1, 1e-3) {
			t.Errorf("got %v, want the newest of each host", got)
		}
	})
}

// The labels of groups are anybody's: one needs quotes, and one is the name that
// tells selectors apart.
func TestSampleTimeOfOddGroups(t *testing.T) {
	for _, label := range []string{"selector", "my.host", "inf"} {
		by := `sum by ("` + label + `") `
		o := objective()
		o.GroupBy = []string{label}
		o.Indicator = spec.Indicator{
			Bad:   &spec.Query{Expr: by + "(increase(a_total[{{.window}}]))"},
			Total: &spec.Query{Expr: by + "(increase(a_total[{{.window}}])) + " + by + "(increase(b_total[{{.window}}]))"},
		}
		var db database
		for i, name := range []string{"a_total", "b_total"} {
			db = append(db, series{
				labels:  labels.FromStrings("__name__", name, label, "x"),
				samples: []sample{at(time.Hour), at(time.Duration(20+20*i) * time.Second)},
			})
		}
		v := evaluate(t, db, sampleTime(t, o), now)
		if len(v) != 1 || v[0].Metric.Get(label) != "x" || !closeTo(v[0].F, float64(now.Unix()-20), 1e-3) {
			t.Errorf("%s: got %v, want the newest of x", label, v)
		}
	}
}

func TestFirstSampleIsWithinOneStep(t *testing.T) {
	// At the second instant no step of a long window falls into the data.
	for _, now := range []time.Time{now, now.Add(3*time.Hour + 17*time.Minute)} {
		var ss []sample
		for age := 20 * time.Minute; age >= 0; age -= 15 * time.Second {
			ss = append(ss, sample{at: now.Add(-age), value: 1})
		}
		db := database{{labels: labels.FromStrings("__name__", "http_requests_total"), samples: ss}}
		for _, q := range measure.Pass(service(objective()), now) {
			if !q.ID.TotalOnly || q.ID.Window == measure.HourBefore {
				continue
			}
			long := now.Sub(q.ID.At) + q.ID.Window
			m := batched(t, []measure.Query{q}, 1, db.answer)[0]
			if m.Reason != measure.NoData {
				t.Errorf("coverage of %s is %+v, want no data", long, m)
			}
			if age := now.Sub(m.FirstAt); age > 20*time.Minute || age < 20*time.Minute-long/60-15*time.Second || age < 0 {
				t.Errorf("first sample in %s is %s old, want 20m to a step", long, age)
			}
		}
	}
}
