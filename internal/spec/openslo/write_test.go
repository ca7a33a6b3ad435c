package openslo_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

func TestWrite(t *testing.T) {
	bad := &spec.Query{Expr: "errors_total", Counter: true}
	total := &spec.Query{Expr: "sum(increase(requests_total[{{.window}}]))"}
	objective := func(id string, target float64) spec.ObjectiveReading {
		return spec.ObjectiveReading{
			Service: "shop", Labels: map[string]string{"tier": "1", "owner": "team-a"},
			Objective: spec.Objective{
				ID: id, SLO: "requests", Description: "Requests are answered.", Target: target, Window: 28 * 24 * time.Hour,
				Indicator: spec.Indicator{Bad: bad, Total: total, AbsentBadZero: true},
			},
		}
	}
	got, err := openslo.Write("From a.yaml:3.", objective("requests/good", 0.99), objective("requests/better", 0.99999))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# From a.yaml:3.
apiVersion: openslo/v1
kind: SLO
metadata:
  name: requests
  labels:
    owner: team-a
    tier: "1"
spec:
  description: Requests are answered.
  service: shop
  indicator:
    metadata:
      name: requests
    spec:
      ratioMetric:
        counter: true
        bad:
          metricSource:
            type: Prometheus
            spec:
              query: errors_total
        total:
          metricSource:
            type: Prometheus
            spec:
              query: sum(increase(requests_total[{{.window}}]))
  timeWindow:
    - duration: 28d
      isRolling: true
  budgetingMethod: Occurrences
  objectives:
    - displayName: good
      target: 0.99
    - displayName: better
      target: 0.99999
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
}

// TestWriteRefuses: what OpenSLO cannot hold is not left out in silence.
func TestWriteRefuses(t *testing.T) {
	with := func(change func(*spec.ObjectiveReading)) spec.ObjectiveReading {
		o := spec.ObjectiveReading{Service: "shop", Objective: spec.Objective{ID: "a/1", SLO: "a", Target: 0.9, Window: time.Hour}}
		o.Objective.Indicator.Raw = &spec.Query{Expr: "a"}
		change(&o)
		return o
	}
	plain := with(func(*spec.ObjectiveReading) {})
	cases := map[string]struct {
		reason     string
		objectives []spec.ObjectiveReading
		err        string
	}{
		"None":         {"There is nothing to write.", nil, "no objective to write"},
		"OtherSLO":     {"A document is one SLO.", []spec.ObjectiveReading{plain, with(func(o *spec.ObjectiveReading) { o.Objective.SLO = "b" })}, "are not one SLO"},
		"OtherService": {"And of one service.", []spec.ObjectiveReading{plain, with(func(o *spec.ObjectiveReading) { o.Service = "b" })}, "are not one SLO"},
		"OtherQuery": {"It has one indicator.", []spec.ObjectiveReading{plain, with(func(o *spec.ObjectiveReading) {
			o.Objective.Indicator.Raw = &spec.Query{Expr: "b"}
		})}, "different indicators or windows"},
		"OtherSense":  {"Success is not failure.", []spec.ObjectiveReading{plain, with(func(o *spec.ObjectiveReading) { o.Objective.Indicator.RawSuccess = true })}, "different indicators"},
		"OtherWindow": {"And one window.", []spec.ObjectiveReading{plain, with(func(o *spec.ObjectiveReading) { o.Objective.Window = 2 * time.Hour })}, "different indicators or windows"},
		"Slices":      {"A slice's length is not in its query.", []spec.ObjectiveReading{with(func(o *spec.ObjectiveReading) { o.Objective.Slice = time.Minute })}, "time slices"},
		"Vantages":    {"OpenSLO has one source.", []spec.ObjectiveReading{with(func(o *spec.ObjectiveReading) { o.Objective.Others = make([]spec.Indicator, 1) })}, "vantage points"},
		"Recorded": {"Nor has it recorded series.", []spec.ObjectiveReading{with(func(o *spec.ObjectiveReading) {
			o.Objective.Indicator.Raw = &spec.Query{Expr: "a{{.window}}", Recorded: true}
		})}, "recorded series"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := openslo.Write("", tc.objectives...)
			if err == nil || !strings.Contains(err.Error(), tc.err) || text != nil {
				t.Errorf("%s wrote %q, error %v, want %q", tc.reason, text, err, tc.err)
			}
		})
	}
}

// TestConvertedMeasuresTheSame: an SLO of any format, written as OpenSLO and
// read again, is the same objective, and Prometheus's own engine gives the same
// values for it, whatever series there are.
func TestConvertedMeasuresTheSame(t *testing.T) {
	engine := newEngine(t)
	for format, draw := range map[string]func(*rapid.T) string{
		"Sloth": slothFile, "SlothResource": slothResource, "Pyrra": pyrraDocument, "OpenSLO": openSLO,
	} {
		t.Run(format, func(t *testing.T) {
			answers := 0
			rapid.Check(t, func(t *rapid.T) {
				original := draw(t)
				before := loaded(t, original)
				readings, err := spec.Read([]spec.File{{Name: "original.yaml", Data: []byte(original)}}, formats)
				if err != nil {
					t.Fatalf("%v\n%s", err, original)
				}
				text, err := openslo.Write("From original.yaml.", readings[0].Objectives...)
				if err != nil {
					t.Fatalf("%v\n%s", err, original)
				}
				after := loaded(t, string(text))
				if diff := cmp.Diff(before, after, cmpopts.IgnoreTypes(spec.Position{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("(-original, +converted)\n%s\n%s", diff, text)
				}
				db := world(t)
				for _, w := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, time.Hour} {
					want, got := values(t, engine, db, before, w), values(t, engine, db, after, w)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("over %s (-original, +converted)\n%s\n%s", w, diff, text)
					}
					for _, v := range got {
						answers += len(v)
					}
				}
			})
			if answers == 0 {
				t.Error("no query had an answer, so nothing was compared")
			}
		})
	}
}

// loaded is the one service of a document, as the agent would have it.
func loaded(t failer, text string) []spec.Objective {
	t.Helper()
	set, err := spec.Load([]spec.File{{Name: "a.yaml", Data: []byte(text)}}, formats)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return set.Services[0].Objectives
}

func values(t failer, e *promql.Engine, db database, objectives []spec.Objective, w time.Duration) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, o := range objectives {
		in := o.Indicator
		for name, q := range map[string]*spec.Query{"good": in.Good, "bad": in.Bad, "total": in.Total, "raw": in.Raw} {
			if q != nil {
				out[o.ID+" "+name] = ask(t, e, db, q.At(w), now)
			}
		}
	}
	return out
}

// percent draws a target that the default burn rates can reach.
func percent(t *rapid.T) string {
	return strconv.FormatFloat(float64(rapid.IntRange(94_000, 99_999).Draw(t, "percent x 1000"))/1000, 'f', -1, 64)
}

// matchers draws what a selector of requests_total may add.
func matchers(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{"", `{job="shop"}`, `{route=~"cart|gone"}`, `{code!~"4..",route!="pay"}`}).Draw(t, name)
}

func errorMatchers(t *rapid.T) string {
	return rapid.SampledFrom([]string{`{code=~"5.."}`, `{code="418"}`, `{job="shop",code=~"(5..|404)"}`}).Draw(t, "errors")
}

// slothSLI is the SLI of one of Sloth's forms, with its own words.
func slothSLI(t *rapid.T, raw, bad, total string) string {
	by := rapid.SampledFrom([]string{"", " by (route) "}).Draw(t, "by")
	quote := strconv.Quote
	switch rapid.SampledFrom([]string{"events", "subquery", "raw"}).Draw(t, "sli") {
	case "raw":
		return "{raw: {" + raw + ": " + quote(`1 - avg`+by+`(avg_over_time(probe_success[{{.window}}]))`) + "}}"
	case "subquery":
		return "{events: {" + bad + ": " + quote(`sum_over_time((count(depth > 499))[{{.window}}:]) OR on() vector(0)`) +
			", " + total + ": " + quote(`sum_over_time((count(depth))[{{ .window }}:])`) + "}}"
	}
	return "{events: {" + bad + ": " + quote("sum"+by+"(rate(requests_total"+errorMatchers(t)+"[{{.window}}]))") +
		", " + total + ": " + quote("\n  sum"+by+"(\n    rate(requests_total"+matchers(t, "total")+"[{{.window}}]) # all\n  )\n") + "}}"
}

func slothFile(t *rapid.T) string {
	return "version: prometheus/v1\nservice: shop\nlabels: {tier: \"1\"}\nslos:\n" +
		"  - {name: requests, description: \"a: 'b' #c\", objective: " + percent(t) + ", sli: " +
		slothSLI(t, "error_ratio_query", "error_query", "total_query") + "}\n"
}

func slothResource(t *rapid.T) string {
	return "apiVersion: sloth.slok.dev/v1\nkind: PrometheusServiceLevel\nmetadata: {name: a, namespace: b}\nspec:\n  service: shop\n  slos:\n" +
		"    - {name: requests, objective: " + percent(t) + ", sli: " +
		slothSLI(t, "errorRatioQuery", "errorQuery", "totalQuery") + "}\n"
}

func pyrraDocument(t *rapid.T) string {
	by := rapid.SampledFrom([]string{"[]", "[route]", "[route, job]"}).Draw(t, "grouping")
	var indicator string
	switch rapid.SampledFrom([]string{"ratio", "latency", "gauge"}).Draw(t, "indicator") {
	case "ratio":
		indicator = "ratio: {errors: {metric: 'requests_total" + errorMatchers(t) + "'}, total: {metric: 'requests_total" + matchers(t, "total") + "'}, grouping: " + by + "}"
	case "latency":
		indicator = `latency: {success: {metric: 'seconds_bucket{le="0.5"}'}, total: {metric: seconds_count}, grouping: ` + by + "}"
	default:
		indicator = "bool_gauge: {metric: probe_success, grouping: " + strings.Replace(by, "route", "target", 1) + "}"
	}
	window := rapid.SampledFrom([]string{"28d", "4w", "36h", "12h30m"}).Draw(t, "window")
	return "apiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\nmetadata: {name: requests, labels: {pyrra.dev/service: shop, a: \"true\"}}\n" +
		"spec: {target: '" + percent(t) + "', window: " + window + ", indicator: {" + indicator + "}}\n"
}

func openSLO(t *rapid.T) string {
	objective := rapid.SampledFrom([]string{
		"{target: 0.99}", "{displayName: good, targetPercent: " + percent(t) + "}, {displayName: best one, target: 0.9999}",
	}).Draw(t, "objectives")
	indicator := rapid.SampledFrom([]string{goodTotal, badTotal, rawSuccess, rawFailure, threshold}).Draw(t, "indicator")
	if indicator == threshold {
		objective = "{op: lt, value: 500, target: 0.99}"
	}
	return document(indicator, "Occurrences", objective)
}
