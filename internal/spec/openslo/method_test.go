package openslo_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

const (
	goodTotal = `ratioMetric: {counter: true, good: {metricSource: {type: Prometheus, spec: {query: 'requests_total{code!~"5.."}'}}},` +
		` total: {metricSource: {type: Prometheus, spec: {query: requests_total}}}}`
	badTotal = `ratioMetric: {bad: {metricSource: {metricSourceRef: far, spec: {query: 'sum by (route) (increase(requests_total{code=~"5.."}[{{ .window }}]))'}}},` +
		` total: {metricSource: {metricSourceRef: far, spec: {query: 'sum by (route) (increase(requests_total[{{.window}}]))'}}}}`
	rawSuccess = `ratioMetric: {raw: {metricSource: {type: Prometheus, spec: {query: "avg(avg_over_time(probe_success[{{.window}}])) # ones"}}}, rawType: success}`
	rawFailure = `ratioMetric: {raw: {metricSource: {type: Prometheus, spec: {query: "1 - avg(avg_over_time(probe_success[{{.window}}]))"}}}, rawType: failure}`
	threshold  = `thresholdMetric: {metricSource: {type: Prometheus, spec: {query: "max(depth) # in jobs"}}}`
)

// readOne reads the objective of a document without its service.
func readOne(t failer, text string) spec.Objective {
	t.Helper()
	readings, err := spec.Read([]spec.File{{Name: "a.yaml", Data: []byte(text)}}, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return readings[0].Objectives[0].Objective
}

func TestMeasured(t *testing.T) {
	cases := map[string]struct {
		reason                       string
		indicator, method, objective string
		want                         string
		slice                        time.Duration
	}{
		"Threshold": {
			reason:    "The share of points whose value is good; a comment does not swallow what follows it.",
			indicator: threshold, method: "Occurrences", objective: "{op: lte, value: 500, target: 0.99}",
			want: "avg_over_time((((max(depth) # in jobs\n) >= -Inf) <= bool 500)[{{.window}}:30s])",
		},
		"ThresholdAbove": {
			reason:    "A bound may be negative, and large or small numbers are PromQL's.",
			indicator: threshold, method: "Occurrences", objective: "{op: gt, value: -2.5e10, target: 0.99}",
			want: "avg_over_time((((max(depth) # in jobs\n) >= -Inf) > bool -2.5e+10)[{{.window}}:30s])",
		},
		"SlicesOfGood": {
			reason:    "A slice is good when its ratio reaches the slice's target.",
			indicator: goodTotal, method: "Timeslices", objective: "{op: gt, target: 0.99, timeSliceTarget: 0.95, timeSliceWindow: 1m}", slice: time.Minute,
			want: `avg_over_time(((((sum(increase(requests_total{code!~"5.."}[1m]))) / (sum(increase(requests_total[1m])))) >= -Inf) >= bool 0.95)[{{.window}}:1m])`,
		},
		"SlicesOfBad": {
			reason:    "No bad event at all is none, where there was traffic. A number counts minutes.",
			indicator: badTotal, method: "Timeslices", objective: "{target: 0.99, timeSliceTarget: 1, timeSliceWindow: 5}", slice: 5 * time.Minute,
			want: `avg_over_time((((1 - ((sum by (route) (increase(requests_total{code=~"5.."}[5m]))) or (sum by (route) (increase(requests_total[5m]))) * 0)` +
				` / (sum by (route) (increase(requests_total[5m])))) >= -Inf) >= bool 1)[{{.window}}:5m])`,
		},
		"SlicesOfRawSuccess": {
			reason:    "A raw ratio is one already.",
			indicator: rawSuccess, method: "Timeslices", objective: "{target: 0.99, timeSliceTarget: 0.9, timeSliceWindow: 1m}", slice: time.Minute,
			want: "avg_over_time((((avg(avg_over_time(probe_success[1m])) # ones\n) >= -Inf) >= bool 0.9)[{{.window}}:1m])",
		},
		"MeanOfRawFailure": {
			reason:    "RatioTimeslices takes the mean of the slices' ratios.",
			indicator: rawFailure, method: "RatioTimeslices", objective: "{target: 0.99, timeSliceWindow: 1h}", slice: time.Hour,
			want: "avg_over_time((((1 - (1 - avg(avg_over_time(probe_success[1h])))) >= -Inf))[{{.window}}:1h])",
		},
		"SlicesOfThreshold": {
			reason:    "A threshold's ratio in a slice is the share of its good points.",
			indicator: threshold, method: "Timeslices", objective: "{op: lt, value: 500, target: 0.99, timeSliceTarget: 0.9, timeSliceWindow: 10m}", slice: 10 * time.Minute,
			want: "avg_over_time((((avg_over_time((((max(depth) # in jobs\n) >= -Inf) < bool 500)[10m:30s])\n) >= -Inf) >= bool 0.9)[{{.window}}:10m])",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := readOne(t, document(tc.indicator, tc.method, tc.objective))
			if got.Indicator.Raw == nil || !got.Indicator.RawSuccess || got.Indicator.Total != nil {
				t.Fatalf("%s indicator %+v", tc.reason, got.Indicator)
			}
			if diff := cmp.Diff(tc.want, got.Indicator.Raw.Expr); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
			if got.Slice != tc.slice {
				t.Errorf("%s slice %s, want %s", tc.reason, got.Slice, tc.slice)
			}
			if err := got.Indicator.Raw.Check(); err != nil {
				t.Errorf("%s %v", tc.reason, err)
			}
			if want := map[bool]string{true: "far"}[strings.Contains(tc.indicator, "far")]; got.Indicator.Raw.Source != want {
				t.Errorf("%s source %q, want %q", tc.reason, got.Indicator.Raw.Source, want)
			}
		})
	}
}

// TestThresholdPoints computes the share of good points by hand.
func TestThresholdPoints(t *testing.T) {
	engine := newEngine(t)
	holds := map[string]func(v float64) bool{
		"lt": func(v float64) bool { return v < 500 }, "lte": func(v float64) bool { return v <= 500 },
		"gt": func(v float64) bool { return v > 500 }, "gte": func(v float64) bool { return v >= 500 },
	}
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]string{"lt", "lte", "gt", "gte"}).Draw(t, "op")
		s := gauge(t, labels.FromStrings("__name__", "depth"), []float64{1, 499, 500, 501, -4, math.NaN(), math.Inf(1), math.Inf(-1)})
		indicator := `thresholdMetric: {metricSource: {type: Prometheus, spec: {query: depth}}}`
		o := readOne(t, document(indicator, "Occurrences", "{op: "+op+", value: 500, target: 0.99}"))
		for _, w := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
			// An odd instant: the points do not move with it.
			at := now.Add(-7 * time.Second)
			good, all := 0, 0
			for p := at.Truncate(scrape); p.After(at.Add(-w)); p = p.Add(-scrape) {
				if v, ok := lookback(s, p); ok && !math.IsNaN(v) {
					all++
					if holds[op](v) {
						good++
					}
				}
			}
			want := map[string]any{}
			if all > 0 {
				want["{}"] = float64(good) / float64(all)
			}
			got := ask(t, engine, database{s}, o.Indicator.Raw.At(w), at)
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Fatalf("%s over %s (-want, +got)\n%s", op, w, diff)
			}
		}
	})
}

// near leaves the last digits of a mean open.
var near = cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-9 })

// lookback is what Prometheus has for a series at an instant: the newest sample
// of the last five minutes.
func lookback(s series, at time.Time) (v float64, ok bool) {
	for _, p := range s.points {
		if !p.at.After(at) && p.at.After(at.Add(-5*time.Minute)) {
			v, ok = p.value, true
		}
	}
	return v, ok
}

// TestSlices computes the share of good slices by hand from the counts of each
// slice. A slice without traffic counts neither way, nor does one of which
// nothing is known.
func TestSlices(t *testing.T) {
	engine := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		db := world(t)
		slice := rapid.SampledFrom([]time.Duration{2 * time.Minute, 5 * time.Minute}).Draw(t, "slice")
		method := rapid.SampledFrom([]string{"Timeslices", "RatioTimeslices"}).Draw(t, "method")
		bad := rapid.Bool().Draw(t, "bad")
		part, events := "good", `code!~"5.."`
		if bad {
			part, events = "bad", `code=~"5.."`
		}
		indicator := `ratioMetric: {counter: true, ` + part + `: {metricSource: {type: Prometheus, spec: {query: 'requests_total{` + events + `}'}}},` +
			` total: {metricSource: {type: Prometheus, spec: {query: requests_total}}}}`
		objective := "{target: 0.99, timeSliceTarget: 0.75, timeSliceWindow: " + spec.FormatDuration(slice) + "}"
		if method == "RatioTimeslices" {
			objective = strings.Replace(objective, "timeSliceTarget: 0.75, ", "", 1)
		}
		o := readOne(t, document(indicator, method, objective))
		for _, w := range []time.Duration{slice, 30 * time.Minute, time.Hour} {
			sum, all := 0.0, 0
			for end := now.Truncate(slice); end.After(now.Add(-w)); end = end.Add(-slice) {
				ratio, known := sliceRatio(t, engine, db, end, events, slice, bad)
				if !known {
					continue
				}
				all++
				switch {
				case method == "RatioTimeslices":
					sum += ratio
				case ratio >= 0.75:
					sum++
				}
			}
			want := map[string]any{}
			if all > 0 {
				want["{}"] = sum / float64(all)
			}
			got := ask(t, engine, db, o.Indicator.Raw.At(w), now)
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Fatalf("%s of %s over %s (-want, +got)\n%s", method, part, w, diff)
			}
		}
	})
}

func sliceRatio(t failer, e *promql.Engine, db database, end time.Time, events string, slice time.Duration, bad bool) (float64, bool) {
	count := func(matcher string) (float64, bool) {
		v, ok := ask(t, e, db, "sum(increase(requests_total{"+matcher+"}["+spec.FormatDuration(slice)+"]))", end)["{}"].(float64)
		return v, ok
	}
	total, ok := count(`job="shop"`)
	some, found := count(events)
	switch {
	case !ok || total == 0:
		return 0, false
	case bad:
		return 1 - some/total, true
	}
	return some / total, found
}
