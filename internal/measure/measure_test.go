package measure_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	goodExpr  = `sum(increase(http_requests_total{code!~"5.."}[{{.window}}]))`
	totalExpr = `sum(increase(http_requests_total[{{.window}}]))`
)

func objective() spec.Objective {
	return spec.Objective{
		ID: "availability", Target: 0.999, Window: 720 * time.Hour, JudgeWindow: 5 * time.Minute, MinEvents: 50,
		Indicator: spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: totalExpr}},
		BurnRates: spec.DefaultBurnRates(),
	}
}

func service(os ...spec.Objective) spec.Service {
	return spec.Service{Name: "checkout", Objectives: os}
}

func TestPassAsksWhatAssessNeeds(t *testing.T) {
	id := func(w time.Duration, before time.Duration, total bool) measure.ID {
		return measure.ID{
			Service: "checkout", Objective: "availability", Window: w, At: now.Add(-before), TotalOnly: total,
		}
	}
	m, h := time.Minute, time.Hour
	cases := map[string]struct {
		reason string
		edit   func(*spec.Objective)
		want   []measure.ID
	}{
		"default pairs": {
			reason: "the judge window is the short window of a pair too, and asked once; the coverage of a long " +
				"window is the judge window at now - window + judgeWindow; the hour before ends where the judge " +
				"window begins",
			edit: func(*spec.Objective) {},
			want: []measure.ID{
				id(5*m, 0, false), id(30*m, 0, false), id(h, 0, false), id(6*h, 0, false), id(720*h, 0, false),
				id(5*m, 55*m, true), id(5*m, 355*m, true), id(h, 5*m, true),
			},
		},
		"raw": {
			reason: "a raw indicator has no events, so no traffic that could be lost",
			edit: func(o *spec.Objective) {
				o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg_over_time(up[{{.window}}])"}}
				o.BurnRates = o.BurnRates[:1]
			},
			want: []measure.ID{id(5*m, 0, false), id(h, 0, false), id(720*h, 0, false), id(5*m, 55*m, true)},
		},
		"judge window of an hour": {
			reason: "the coverage of the long window and the hour before are other questions than the judge window",
			edit: func(o *spec.Objective) {
				o.JudgeWindow = h
				o.BurnRates = []spec.BurnRate{{Short: h, Long: 2 * h, Factor: 2, Page: true}}
			},
			want: []measure.ID{id(h, 0, false), id(2*h, 0, false), id(720*h, 0, false), id(h, h, true)},
		},
		"long window within the judge window": {
			reason: "coverage is never asked of the future",
			edit: func(o *spec.Objective) {
				o.BurnRates = []spec.BurnRate{{Short: m, Long: 2 * m, Factor: 2, Page: true}}
			},
			want: []measure.ID{
				id(m, 0, false), id(2*m, 0, false), id(5*m, 0, false), id(720*h, 0, false),
				id(5*m, 0, true), id(h, 5*m, true),
			},
		},
		"no burn rates": {
			reason: "the judge window and the period are always asked",
			edit:   func(o *spec.Objective) { o.BurnRates = nil },
			want:   []measure.ID{id(5*m, 0, false), id(720*h, 0, false), id(h, 5*m, true)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			tc.edit(&o)
			var got []measure.ID
			for _, q := range measure.Pass(service(o), now.Add(400*time.Microsecond)) {
				got = append(got, q.ID)
				if q.Refused != "" {
					t.Errorf("%s: refused: %s", tc.reason, q.Refused)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAtFillsTheQueries(t *testing.T) {
	o := objective()
	o.Indicator.AbsentBadZero = true // carried as it is; only an absent bad heeds it
	o.Indicator.Good.Source, o.Indicator.Total.Source = "probe", "probe"
	want := measure.Query{
		ID:     measure.ID{Service: "checkout", Objective: "availability", Window: time.Hour, At: now},
		Source: "probe",
		Good:   `sum(increase(http_requests_total{code!~"5.."}[1h]))`,
		Total:  `sum(increase(http_requests_total[1h]))`, AbsentBadZero: true,
		SampleTime: `max(timestamp(http_requests_total))`,
	}
	if diff := cmp.Diff(want, measure.At("checkout", o, time.Hour, now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCoverageAsksTheTotalAlone(t *testing.T) {
	for _, q := range measure.Pass(service(objective()), now) {
		if !q.ID.TotalOnly {
			continue
		}
		if q.Good != "" || q.Bad != "" || q.SampleTime != "" || q.Total == "" {
			t.Errorf("query %+v, want the total and nothing beside it", q)
		}
		if isCoverage := q.ID.Window == 5*time.Minute; isCoverage != (q.FirstSample != "") {
			t.Errorf("query %+v, want the first sample on coverage only", q)
		}
	}
}

func TestRefusedQueriesAreNotAsked(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     spec.Indicator
		want   string
	}{
		"two sources": {
			reason: "the ratio of two sources' counts is no ratio",
			in: spec.Indicator{
				Good: &spec.Query{Expr: goodExpr, Source: "a"}, Total: &spec.Query{Expr: totalExpr, Source: "b"},
			},
			want: "different sources",
		},
		"no selector": {
			reason: "nothing would tell the age of its samples",
			in:     spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: "vector(1)"}},
			want:   "no selector",
		},
		"no PromQL": {
			reason: "a query that cannot be parsed has no selectors to look at",
			in:     spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: "sum("}},
			want:   "cannot be parsed",
		},
		"empty": {
			reason: "nothing to ask",
			in:     spec.Indicator{},
			want:   "neither a total nor a raw query",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			o.Indicator = tc.in
			for _, q := range measure.Pass(service(o), now) {
				if !strings.Contains(q.Refused, tc.want) {
					t.Errorf("%s: refused %q, want %q in it", tc.reason, q.Refused, tc.want)
				}
			}
		})
	}
}

func at(before time.Duration) sample { return sample{at: now.Add(-before), value: 1} }

// The sample time is asked of the real engine, because what "or" keeps is
// easily got wrong.
func TestSampleTimeIsTheNewestOfAllSelectors(t *testing.T) {
	a := func(ss ...sample) series {
		return series{labels: labels.FromStrings("__name__", "a_total", "job", "shop"), samples: ss}
	}
	b := func(ss ...sample) series {
		return series{labels: labels.FromStrings("__name__", "b_total", "job", "shop"), samples: ss}
	}
	other := series{
		labels: labels.FromStrings("__name__", "b_total", "job", "other"), samples: []sample{at(time.Second)},
	}
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
			database{a(at(50 * time.Second)), b(at(40 * time.Second)), other},
			time.Second,
		},
		"older than the lookback": {"a sample nobody sees any more is no sample", database{a(at(6 * time.Minute))}, -1},
	}
	o := objective()
	o.Indicator.Total = &spec.Query{Expr: "sum(increase(a_total[{{.window}}])) + sum(increase(b_total[{{.window}}]))"}
	expr := measure.At("checkout", o, 5*time.Minute, now).SampleTime
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := evaluate(t, tc.db, expr, now)
			if tc.want < 0 {
				if len(v) != 0 {
					t.Fatalf("%s: got %v, want nothing", tc.reason, v)
				}
				return
			}
			if len(v) != 1 || math.Abs(v[0].F-float64(now.Add(-tc.want).UnixMilli())/1000) > 1e-3 {
				t.Fatalf("%s: got %v, want one value %v before now", tc.reason, v, tc.want)
			}
		})
	}
}

func TestFirstSampleIsWithinOneStep(t *testing.T) {
	var ss []sample
	for age := 20 * time.Minute; age >= 0; age -= 15 * time.Second {
		ss = append(ss, at(age))
	}
	db := database{{labels: labels.FromStrings("__name__", "http_requests_total"), samples: ss}}
	for _, q := range measure.Pass(service(objective()), now) {
		if q.FirstSample == "" {
			continue
		}
		long := now.Sub(q.ID.At) + q.ID.Window
		if v := evaluate(t, db, q.Total, q.ID.At); len(v) != 0 {
			t.Errorf("coverage of %s has the value %v, want none", long, v)
		}
		v := evaluate(t, db, q.FirstSample, q.ID.At)
		if len(v) != 1 {
			t.Fatalf("first sample in %s: got %v, want one", long, v)
		}
		age := now.Sub(time.UnixMilli(int64(v[0].F * 1000)))
		if age > 20*time.Minute || age < 20*time.Minute-long/60-15*time.Second {
			t.Errorf("first sample in %s is %s old, want 20m to a step", long, age)
		}
	}
}

func TestSetDoesNotBelieveTwoAnswers(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now}
	one := measure.Measurement{ID: id, Good: 1, Total: 1, HasEvents: true}
	two := measure.Measurement{ID: id, Total: 1, HasEvents: true, ErrorRatio: 1}
	none := measure.Measurement{ID: id, Reason: measure.NoData}
	cases := map[string]struct {
		reason string
		ms     []measure.Measurement
		want   measure.Reason
	}{
		"equal":           {"the same answer twice is one answer", []measure.Measurement{one, one}, ""},
		"differ":          {"neither is believed", []measure.Measurement{one, two}, measure.SourceError},
		"unknown, known":  {"unknown stays", []measure.Measurement{none, one}, measure.NoData},
		"known, unknown":  {"whatever the order", []measure.Measurement{one, none}, measure.NoData},
		"nothing":         {"what was not asked is unknown", nil, measure.NotMeasured},
		"unknown, differ": {"unknown stays", []measure.Measurement{none, one, two}, measure.NoData},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := measure.NewSet(tc.ms).Get(id).Reason; got != tc.want {
				t.Errorf("%s: reason %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTotalOnlyIsAnotherIdentity(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now, TotalOnly: true}
	set := measure.NewSet([]measure.Measurement{{ID: id, Total: 9, HasEvents: true}})
	id.TotalOnly = false
	if m := set.Get(id); m.Known() {
		t.Errorf("a total alone was taken for a ratio: %+v", m)
	}
}

func TestPassProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.IntRange(1, 400)
		o := objective()
		o.JudgeWindow = time.Duration(minutes.Draw(t, "judge")) * time.Minute
		o.BurnRates = nil
		for range rapid.IntRange(0, 4).Draw(t, "pairs") {
			o.BurnRates = append(o.BurnRates, spec.BurnRate{
				Short: time.Duration(minutes.Draw(t, "short")) * time.Minute,
				Long:  time.Duration(minutes.Draw(t, "long")) * time.Minute,
			})
		}
		qs := measure.Pass(service(o), now)
		if diff := cmp.Diff(qs, measure.Pass(service(o), now)); diff != "" {
			t.Fatalf("two plans differ:\n%s", diff)
		}
		seen := map[measure.ID]bool{}
		for _, q := range qs {
			if seen[q.ID] {
				t.Fatalf("%+v is asked twice", q.ID)
			}
			seen[q.ID] = true
		}
		for _, b := range o.BurnRates {
			for _, w := range []time.Duration{b.Short, b.Long, o.JudgeWindow, o.Window} {
				if !seen[measure.ID{Service: "checkout", Objective: o.ID, Window: w, At: now}] {
					t.Fatalf("window %s is not asked", w)
				}
			}
			if !seen[measure.CoverageID("checkout", o, b.Long, now)] {
				t.Fatalf("coverage of %s is not asked", b.Long)
			}
		}
	})
}
