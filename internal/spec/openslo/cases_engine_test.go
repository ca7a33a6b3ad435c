package openslo_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// steady is a series that takes a step at each scrape; a gauge has none.
func steady(ls labels.Labels, start, step float64) series {
	s := series{labels: ls}
	for at := now.Add(-past); !at.After(now); at = at.Add(scrape) {
		s.points = append(s.points, point{at, start})
		start += step
	}
	return s
}

// TestCasesOnEngine asks Prometheus's own engine what the public cases measure.
func TestCasesOnEngine(t *testing.T) {
	engine := newEngine(t)
	client := func(name string, quality float64) series {
		return steady(labels.FromStrings("__name__", "radio_client_quality_ratio", "client", name), quality, 0)
	}
	requests := func(name, host string, perScrape float64, more ...string) series {
		ls := append([]string{"__name__", "mesh_request_duration_milliseconds_" + name, "job", "gw-proxy", "response_code", "200", "request_host", host}, more...)
		return steady(labels.FromStrings(ls...), 0, perScrape)
	}
	probe := func(target string, values ...float64) series {
		s := series{labels: labels.FromStrings("__name__", "probe_success", "target", target)}
		for i, at := 0, now.Add(-past); !at.After(now); i, at = i+1, at.Add(scrape) {
			s.points = append(s.points, point{at, values[i%len(values)]})
		}
		return s
	}
	cases := map[string]struct {
		reason string
		file   string
		db     database
		want   map[string]map[string]any
	}{
		"S01": {
			reason: "One of three clients is bad at each minute of the window.",
			file:   "S01-gauge-events-subquery", db: database{client("a", 0.7), client("b", 0.75), client("c", 1)},
			want: map[string]map[string]any{"client-quality bad": {"{}": 5.0}, "client-quality total": {"{}": 15.0}},
		},
		"S01NoData": {
			reason: "Zero bad clients beside no clients at all is no data, not all good: the total is absent.",
			file:   "S01-gauge-events-subquery",
			want:   map[string]map[string]any{"client-quality bad": {"{}": 0.0}, "client-quality total": {}},
		},
		"S06": {
			reason: "Each host has its own ratio.",
			file:   "S06-grouped-by-host-milliseconds",
			db: database{
				requests("count", "a", 30), requests("bucket", "a", 30, "le", "250"),
				requests("count", "b", 30), requests("bucket", "b", 15, "le", "250"), requests("bucket", "b", 30, "le", "500"),
			},
			want: map[string]map[string]any{
				"latency bad":   {`{request_host="a"}`: 0.0, `{request_host="b"}`: 0.5},
				"latency total": {`{request_host="a"}`: 1.0, `{request_host="b"}`: 1.0},
			},
		},
		"S09": {
			reason: "The red target is a group of its own, beside its number of samples.",
			file:   "S09-bool-gauge-grouping", db: database{probe("green", 1), probe("red", 1, 0)},
			want: map[string]map[string]any{
				"probe-up good":  {`{target="green"}`: 10.0, `{target="red"}`: 5.0},
				"probe-up total": {`{target="green"}`: 10.0, `{target="red"}`: 10.0},
			},
		},
		"S12": {
			reason: "A quantile of 950 ms is above 500 at every point.",
			file:   "S12-threshold-op-lt",
			db: database{
				steady(labels.FromStrings("__name__", "lookup_duration_milliseconds_bucket", "le", "900"), 0, 0),
				steady(labels.FromStrings("__name__", "lookup_duration_milliseconds_bucket", "le", "1000"), 0, 9),
				steady(labels.FromStrings("__name__", "lookup_duration_milliseconds_bucket", "le", "+Inf"), 0, 9),
			},
			want: map[string]map[string]any{"lookup-time raw": {"{}": 0.0}},
		},
		"S12NoTraffic": {
			reason: "A quantile of nothing is NaN, which is no bad lookup.",
			file:   "S12-threshold-op-lt",
			db: database{
				steady(labels.FromStrings("__name__", "lookup_duration_milliseconds_bucket", "le", "500"), 3, 0),
				steady(labels.FromStrings("__name__", "lookup_duration_milliseconds_bucket", "le", "+Inf"), 3, 0),
			},
			want: map[string]map[string]any{"lookup-time raw": {}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := spec.Load([]spec.File{readFile(t, "testdata/cases/"+tc.file+".yaml")}, formats)
			if err != nil {
				t.Fatal(err)
			}
			got := values(t, engine, tc.db, set.Services[0].Objectives, 5*time.Minute)
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}
