package openslo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
	"github.com/setpoint-dev/setpoint/internal/spec/pyrra"
	"github.com/setpoint-dev/setpoint/internal/spec/sloth"
)

// formats are all readers, as the agent has them.
var formats = []spec.Reader{openslo.Reader{}, sloth.File{}, sloth.Resource{}, pyrra.Reader{}}

// TestCases loads SLOs that people have in public, shortened, each with its
// source in its second line and the right answer in its fourth.
func TestCases(t *testing.T) {
	const day = 24 * time.Hour
	objective := func(id string, target float64, window time.Duration, by []string, in spec.Indicator) spec.Objective {
		return spec.Objective{
			ID: id, SLO: id, Target: target, Window: window, GroupBy: by, Indicator: in,
			JudgeWindow: spec.DefaultJudgeWindow, BurnRates: spec.DefaultBurnRates(),
		}
	}
	at := func(line int, expr string) *spec.Query {
		return &spec.Query{Expr: expr, Pos: spec.Position{Line: line}}
	}
	cases := map[string]struct {
		reason  string
		service string
		want    spec.Objective
		// lint are the codes and texts of what the reader says besides.
		lint map[string]string
		// refused are the path and a part of the text of each fault, in order.
		refused []fault
	}{
		"S01-gauge-events-subquery": {
			reason:  "The window goes into the subquery too, 95 is 0.95, and only an absent error query is zero.",
			service: "edge-radio",
			want: objective("client-quality", 0.95, 30*day, nil, spec.Indicator{
				Bad:           at(13, "sum_over_time((count(radio_client_quality_ratio < 0.75))[{{.window}}:]) OR on() vector(0)"),
				Total:         at(14, "sum_over_time((count(radio_client_quality_ratio))[{{.window}}:])"),
				AbsentBadZero: true,
			}),
			lint: map[string]string{"": `service "edge-radio": alerting of 1 SLO is not used: pages are the Remediation's`},
		},
		"S03-crd-with-plugin-chain": {
			reason:  "The plain queries are read, and the chain is named.",
			service: "svc-b",
			want: objective("requests", 0.999, 30*day, nil, spec.Indicator{
				Bad:           at(18, `sum(rate(http_request_duration_seconds_count{job="svc-b",code=~"(5..|429)"}[{{.window}}]))`),
				Total:         at(19, `sum(rate(http_request_duration_seconds_count{job="svc-b"}[{{.window}}]))`),
				AbsentBadZero: true,
			}),
			lint: map[string]string{
				"": `service "svc-b": alerting of 1 SLO is not used: pages are the Remediation's`,
				"plugin-chain": `service "svc-b": the plugins sloth.dev/contrib/denominator_corrected_rules/v1 are not run: ` +
					`the queries are measured as they are written, so the number may differ from what Sloth computes`,
			},
		},
		"S06-grouped-by-host-milliseconds": {
			reason:  "Both queries are many series, so each host is judged.",
			service: "gw",
			want: objective("latency", 0.9995, 30*day, []string{"request_host"}, spec.Indicator{
				Bad: at(15, `( sum(rate(mesh_request_duration_milliseconds_count{job="gw-proxy",response_code="200"}[{{.window}}]))by (request_host)`+
					` - sum(rate(mesh_request_duration_milliseconds_bucket{le="250", job="gw-proxy", response_code="200" }[{{.window}}]) )by (request_host) )`),
				Total:         at(20, `sum(rate(mesh_request_duration_milliseconds_count{job="gw-proxy",response_code="200"}[{{.window}}]))by (request_host)`),
				AbsentBadZero: true,
			}),
			lint: map[string]string{"": `service "gw": alerting of 1 SLO is not used: pages are the Remediation's`},
		},
		"S09-bool-gauge-grouping": {
			reason:  "The good share is the mean of the gauge for each target, with its counts kept.",
			service: "probe-up",
			want: objective("probe-up", 0.99, 7*day, []string{"target"}, spec.Indicator{
				Good:  at(15, "sum by (target) (sum_over_time(probe_success[{{.window}}]))"),
				Total: at(15, "sum by (target) (count_over_time(probe_success[{{.window}}]))"),
			}),
			lint: map[string]string{"": `"probe-up" names no service, so it is one itself: the label pyrra.dev/service names another`},
		},
		"S10-native-histogram-duration-threshold": {
			reason:  "A reader that knows le buckets alone must not make an empty query of it.",
			refused: []fault{{"spec.indicator.latencyNative", "latencyNative needs native histograms, which this version does not measure"}},
		},
		"S12-threshold-op-lt": {
			reason:  "Good is below 500 in the query's own unit, which is said; the fixed range is the query's own.",
			service: "shop",
			want: objective("lookup-time", 0.99, 14*day, nil, spec.Indicator{
				Raw:        at(17, "avg_over_time((((histogram_quantile(0.95, sum by (le) (rate(lookup_duration_milliseconds_bucket[5m])))) >= -Inf) < bool 500)[{{.window}}:30s])"),
				RawSuccess: true,
			}),
			lint: map[string]string{"unit": `SLO "lookup-time": good is < 500 in the query's own unit, which OpenSLO does not state: look at lookup_duration_milliseconds_bucket`},
		},
		"S13-v1alpha-two-objectives-good-metric": {
			reason: "An older version is refused by its name, in each document.",
			refused: []fault{
				{"apiVersion", "openslo/v1alpha is not supported: write it as openslo/v1"},
				{"apiVersion", "openslo/v1alpha is not supported: write it as openslo/v1"},
			},
		},
		"S16-counter-without-rate": {
			reason: "A sum of counters over their lifetime is no ratio of now; nor are calendar windows read.",
			refused: []fault{
				{"spec.indicator.spec.ratioMetric.good.metricSource.spec.query", "is no plain selector, which counter: true needs"},
				{"spec.indicator.spec.ratioMetric.total.metricSource.spec.query", "is no plain selector, which counter: true needs"},
				{"spec.timeWindow[0].calendar", "calendar windows are not supported"},
			},
		},
		"S17-vendor-calendar-words": {
			reason: "Every wrong field is named at once, and no log query is sent to Prometheus.",
			refused: []fault{
				{"spec.indicator.spec.ratioMetric.good.metricSource.type", `"vendor-logs" is not supported: only Prometheus is`},
				{"spec.indicator.spec.ratioMetric.total.metricSource.type", `"vendor-logs" is not supported: only Prometheus is`},
				{"spec.timeWindow[0].duration", `"Week" is not a duration`},
				{"spec.timeWindow[0].calendar", "calendar windows are not supported"},
				{"spec.timeWindow[0].calendar.startTime", `"Monday" is no time`},
			},
		},
		"S19-fixed-window-and-dashboard-variable": {
			reason: "Keys of Sloth's other form are unknown here, with the word that was meant.",
			refused: []fault{
				{"spec.slos[0].sli.events.errorQuery", "is required"},
				{"spec.slos[0].sli.events.totalQuery", "is required"},
				{"spec.slos[0].sli.events.error_query", `unknown key, did you mean "errorQuery"?`},
				{"spec.slos[0].sli.events.total_query", `unknown key, did you mean "totalQuery"?`},
				{"spec.slos[0].alerting.page_alert", `unknown key, did you mean "pageAlert"?`},
			},
		},
	}
	names, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(names) != len(cases) {
		t.Fatalf("%d files for %d cases: %v", len(names), len(cases), err)
	}
	for _, path := range names {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			tc, ok := cases[name]
			if !ok {
				t.Fatal("a file without a right answer")
			}
			set, err := spec.Load([]spec.File{readFile(t, path)}, formats)
			if diff := cmp.Diff(tc.refused, faultsOf(t, err), byPart); diff != "" {
				t.Fatalf("%s faults (-want, +got)\n%s", tc.reason, diff)
			}
			if len(tc.refused) > 0 {
				return
			}
			svc, ok := set.Service(tc.service)
			if !ok || len(svc.Objectives) != 1 {
				t.Fatalf("%s no service %q with one objective in %+v", tc.reason, tc.service, set.Services)
			}
			ignore := []cmp.Option{cmpopts.IgnoreFields(spec.Objective{}, "Pos"), cmpopts.IgnoreFields(spec.Position{}, "File")}
			if diff := cmp.Diff(tc.want, svc.Objectives[0], ignore...); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
			got := map[string]string{}
			for _, n := range set.Notes {
				if _, wanted := tc.lint[n.Lint]; wanted {
					got[n.Lint] = n.Text
				}
			}
			if diff := cmp.Diff(tc.lint, got); diff != "" {
				t.Errorf("%s notes (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// fault is a path with a part of the text.
type fault struct{ Path, Text string }

// byPart holds a wanted text to be a part of the real one.
var byPart = cmp.Comparer(func(x, y fault) bool {
	return x.Path == y.Path && (strings.Contains(x.Text, y.Text) || strings.Contains(y.Text, x.Text))
})

func faultsOf(t *testing.T, err error) []fault {
	t.Helper()
	if err == nil {
		return nil
	}
	var faults spec.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error %T: %v", err, err)
	}
	var out []fault
	for _, f := range faults {
		if f.Pos.Line == 0 || f.Pos.File == "" {
			t.Errorf("a fault without its place: %v", f)
		}
		out = append(out, fault{f.Path, f.Text})
	}
	return out
}

func readFile(t testing.TB, path string) spec.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: filepath.Base(path), Data: data}
}
