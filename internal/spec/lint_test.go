package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestLint lints one SLO of service shop, beside those of base.yaml, which has
// the service stock too.
func TestLint(t *testing.T) {
	const w = "[{{.window}}]"
	const total = "sum(increase(all_total" + w + "))"
	raw := func(expr string) spec.Indicator { return spec.Indicator{Raw: &spec.Query{Expr: expr}} }
	good := func(good, total string) spec.Indicator {
		return spec.Indicator{Good: &spec.Query{Expr: good}, Total: &spec.Query{Expr: total}}
	}
	bad := func(bad, total string) spec.Indicator {
		return spec.Indicator{Bad: &spec.Query{Expr: bad}, Total: &spec.Query{Expr: total}}
	}
	counter := func(good, total string) spec.Indicator {
		return spec.Indicator{Good: &spec.Query{Expr: good, Counter: true}, Total: &spec.Query{Expr: total, Counter: true}}
	}
	cases := map[string]struct {
		reason    string
		indicator spec.Indicator
		want      []string
	}{
		"Clean":     {"Nothing to say.", bad(`sum(increase(all_total{code=~"5.."}`+w+`))`, total), nil},
		"Counter":   {"Nor of what is wrapped.", counter(`all_total{service="shop",code!~"5.."}`, `all_total{service="shop"}`), nil},
		"OtherJob":  {"Another service's job.", counter(`all_total{job="stock",code!~"5.."}`, `all_total{job="shop"}`), []string{"other-service good", "outside-total good"}},
		"OtherBoth": {"In both queries.", counter(`all_total{code="200",deployment="stock"}`, `all_total{deployment="stock"}`), []string{"other-service total", "other-service good"}},
		"OwnCaller": {"A client's view names both.", counter(`all_total{source_app="shop",destination_app="stock",code="200"}`, `all_total{source_app="shop",destination_app="stock"}`), nil},
		"OtherRegex": {
			"An alternation is a choice that somebody made.", counter(`all_total{job=~"stock|shop",code="200"}`, `all_total{job=~"stock|shop"}`), nil,
		},
		"OtherLabel":    {"A label that names no service by convention.", counter(`all_total{upstream="stock",code="200"}`, `all_total{upstream="stock"}`), nil},
		"Unknown":       {"A name that is no service here.", counter(`all_total{job="shop-blue",code="200"}`, `all_total{job="shop-blue"}`), nil},
		"Fixed":         {"A fixed range in the one, the window in the other.", raw("sum(rate(bad_total[5m])) / sum(rate(all_total" + w + "))"), []string{"fixed-window raw"}},
		"FixedOffset":   {"An offset is no range.", raw("sum(rate(bad_total" + w + " offset 5m)) / sum(rate(all_total" + w + " offset 5m))"), nil},
		"FixedPoint":    {"Inside a subquery it is how each point is measured.", raw("avg_over_time((sum(rate(bad_total[5m])) > bool 1)[{{.window}}:1m])"), nil},
		"FixedSmooth":   {"Around the window it is a smoothing.", raw("max_over_time(sum(rate(bad_total" + w + "))[5m:])"), []string{"no-ratio raw"}},
		"FixedSpan":     {"A subquery can be fixed too.", raw("max_over_time(up[10m:1m]) / avg(avg_over_time(up" + w + "))"), []string{"fixed-window raw"}},
		"FixedFilter":   {"A condition has its own range.", raw("avg(avg_over_time(ok" + w + ")) and on () (max_over_time(deploys[5m]) == 0) unless on () max_over_time(drill[1h])"), nil},
		"Lifetime":      {"A counter summed over time.", bad("sum(sum_over_time(bad_total"+w+"))", total), []string{"counter-without-rate bad"}},
		"Bare":          {"Or as it is.", bad("sum(bad_total) - sum(bad_total offset {{.window}}) + 0 * sum(rate(x"+w+"))", "avg_over_time(sum(lat_count)[{{.window}}:])"), []string{"counter-without-rate total", "counter-without-rate bad"}},
		"Bucket":        {"In a quantile.", raw("histogram_quantile(0.9, sum by (le) (avg_over_time(lat_bucket" + w + ")))"), []string{"counter-without-rate raw"}},
		"Named":         {"Whoever writes the name as a label.", bad(`sum(delta({__name__="bad_total"}`+w+`))`, total), []string{"counter-without-rate bad"}},
		"Gauge":         {"A gauge is read so.", raw("avg(avg_over_time(up" + w + "))"), nil},
		"Recorded":      {"A recorded series has its own end.", bad("sum(sum_over_time(job:bad_total:increase5m_total"+w+"))", "sum(sum_over_time(job:all_total:increase5m"+w+"))"), nil},
		"Counted":       {"The number of series is no value of theirs.", raw("avg_over_time((count(lat_count) / group(lat_sum))[{{.window}}:])"), nil},
		"Condition":     {"Nor is a condition.", raw("avg(avg_over_time(ok" + w + ")) and on () (sum(lat_count) > 0)"), nil},
		"Resets":        {"A rate over a subquery, and other reads of a counter.", raw("avg(rate(bad_total[{{.window}}:1m])) / avg(resets(all_total" + w + ") + changes(all_total" + w + ") + timestamp(all_total))"), nil},
		"Outside":       {"Another service's errors beside one's own total.", good(`sum(increase(all_total{namespace="b",code="200"}`+w+`))`, `sum(increase(all_total{namespace="a"}`+w+`))`), []string{"outside-total good"}},
		"OutsideFamily": {"A bucket of another job than the count.", good(`sum(increase(lat_bucket{zone="b",le="0.3"}`+w+`))`, `sum(increase(lat_count{zone="a"}`+w+`))`), []string{"outside-total good"}},
		"Inside":        {"More matchers are a part.", good(`sum(increase(all_total{namespace="a",code="200"}`+w+`))`, `sum(increase(all_total{namespace="a"}`+w+`))`), nil},
		"OtherMetric":   {"Another metric may be labelled otherwise.", bad(`sum(increase(failed_total{zone="b"}`+w+`))`, `sum(increase(all_total{zone="a"}`+w+`))`), nil},
		"AllBuckets":    {"Each event stands in many buckets.", good(`sum(increase(lat_bucket{le="0.3"}`+w+`))`, "sum(increase(lat_bucket"+w+"))"), []string{"all-buckets total"}},
		"InfBucket":     {"One bucket is the count.", good(`sum(increase(lat_bucket{le="0.3"}`+w+`))`, `sum(increase(lat_bucket{le="+Inf"}`+w+`))`), nil},
		"ByLe":          {"A quantile needs them.", raw("histogram_quantile(0.9, sum by (le) (rate(lat_bucket" + w + "))) > bool 1"), nil},
		"Irate":         {"Two samples are no window.", bad("sum(irate(bad_total"+w+"))", "sum(irate(all_total"+w+"))"), []string{"instant-rate total", "instant-rate bad"}},
		"NoRatio":       {"A rate is no share.", raw("sum(rate(bad_total" + w + "))"), []string{"no-ratio raw"}},
		"LeWhole":       {"Stored as 1.0 or 1.", good(`sum(increase(lat_bucket{le="1"}`+w+`))`, "sum(increase(lat_count"+w+"))"), []string{"le-spelling good"}},
		"LePoint":       {"In either spelling.", good(`sum(increase(lat_bucket{le="1.0"}`+w+`))`, "sum(increase(lat_count"+w+"))"), []string{"le-spelling good"}},
		"LeBoth":        {"Unless both are asked.", good(`sum(increase(lat_bucket{le=~"1(\\.0)?"}`+w+`))`, "sum(increase(lat_count"+w+"))"), nil},
		"LeFraction":    {"A fraction has one spelling.", good(`sum(increase(lat_bucket{le="0.5"}`+w+`))`, `sum(increase(lat_bucket{le="+Inf"}`+w+`))`), nil},
		"Constant":      {"A number of points is no traffic.", bad("sum(increase(bad_total"+w+"))", "sum_over_time(vector(1)"+"[{{.window}}:1m]) + 0 * sum(rate(all_total"+w+"))"), []string{"constant-total total"}},
		"Group":         {"Nor is 1 for each series there is.", bad("sum(increase(bad_total"+w+"))", "max(present_over_time(all_total"+w+"))"), []string{"constant-total total"}},
		"Groups":        {"Nor in any other way.", bad("sum(increase(bad_total"+w+"))", "-group(increase(all_total"+w+"))"), []string{"constant-total total"}},
		"Present":       {"How long it is there is counted.", bad("sum(increase(bad_total"+w+"))", "sum_over_time(group(all_total)[{{.window}}:1m])"), nil},
		"Fallback":      {"A fallback hides that nothing is measured.", bad("sum(increase(bad_total"+w+"))", total+" or on () vector(1)"), []string{"constant-total total"}},
		"InnerZero":     {"Inside the sum too.", bad("sum(increase(bad_total"+w+"))", "(sum(increase(all_total"+w+") or vector(0)))"), []string{"constant-total total"}},
		"OrMetric":      {"Another metric is no constant.", bad("sum(increase(bad_total"+w+")) or vector(0)", total+" or "+"sum(increase(old_total"+w+"))"), nil},
		"NeverMissed":   {"The same query twice.", good(`sum by (b, a) ((increase(all_total{x="1",y="2"}`+w+`)))`, `(sum by (a, b) (increase(all_total{y="2", x="1"}`+w+`)))`), []string{"good-equals-total good"}},
		"NeverMet":      {"Of bad events.", counter("all_total", "all_total"), []string{"good-equals-total good"}},
		"AllBad":        {"Of bad events.", bad(total, total), []string{"bad-equals-total bad"}},
		"BadMore":       {"Bad lacks a matcher of total.", bad(`sum(increase(all_total{x="1"}`+w+`))`, `sum(increase(all_total{method="GET",x="1"}`+w+`))`), []string{"bad-includes-more bad"}},
		"GoodMore":      {"So does good.", counter("all_total", `{__name__="all_total",method="GET"}`), []string{"good-includes-more good"}},
		"Otherwise":     {"Matchers of their own may select less.", counter(`all_total{code="200"}`, `all_total{method="GET"}`), nil},
		"OtherFamily":   {"Another metric proves nothing.", counter("ok_total", `all_total{method="GET"}`), nil},
		"OtherRange":    {"Nor another function.", bad("sum(increase(all_total"+w+"))", `sum(count_over_time(all_total{method="GET"}`+w+`))`), nil},
		"Difference":    {"Nor a difference.", bad(total+" - "+total, `sum(increase(all_total{method="GET"}`+w+`))`), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := lintOf(t, tc.indicator)
			var codes []string
			for _, n := range got {
				part, _, _ := strings.Cut(strings.TrimPrefix(n.Text, `SLO "slo": `), " ")
				codes = append(codes, n.Lint+" "+part)
			}
			if diff := cmp.Diff(tc.want, codes); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// lintOf are the findings about one SLO of service shop.
func lintOf(t *testing.T, in spec.Indicator) []spec.Note {
	t.Helper()
	o := spec.Objective{ID: "slo", SLO: "slo", Target: 0.99, Window: 30 * 24 * time.Hour, Indicator: in}
	files := []spec.File{read(t, "base.yaml"), {Name: "f", Data: []byte("apiVersion: fixed/v1\n")}}
	set, err := spec.Load(files, append([]spec.Reader{fixed(o)}, readers...))
	if err != nil {
		t.Fatal(err)
	}
	var found []spec.Note
	for _, n := range set.Notes {
		if n.Lint != "" {
			found = append(found, n)
		}
	}
	return found
}

// TestLintTexts: a finding says where, what, why it matters, and what to write.
func TestLintTexts(t *testing.T) {
	const remediation = `
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  objectives:
    shop-availability:
      sources:
        - main
        - source: probe
          good: sum(sum_over_time(probe_total{job="stock",le="2"}[5m]) + increase(probe_total{code="1"}[{{.window}}]))
          total: sum(increase(probe_total[{{.window}}])) or vector(0)
        - {source: client, counter: true, bad: sent_total, total: 'sent_total{to="shop"}'}
        - {source: other, counter: true, good: 'sent_total{to="shop"}', total: 'sent_total{to="shop"}'}
`
	set := load(t, read(t, "base.yaml"), spec.File{Name: "r.yaml", Data: []byte(remediation)})
	var b strings.Builder
	for _, n := range set.Notes {
		if n.Lint != "" {
			b.WriteString(n.Pos.String() + ": " + n.Lint + ": " + n.Text + "\n")
		}
	}
	golden(t, "testdata/lint.txt", b.String())
}

// TestShippedDocumentsAreClean: nothing that is shipped as an example raises a
// finding.
func TestShippedDocumentsAreClean(t *testing.T) {
	names, err := filepath.Glob("../../slo/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no shipped documents: %v", err)
	}
	var shipped []spec.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shipped = append(shipped, spec.File{Name: name, Data: data})
	}
	noFindings(t, shipped...)
	noFindings(t, readmeExample(t))
	noFindings(t, read(t, "base.yaml"), read(t, "valid.yaml"))
}

// readmeExample is the first YAML of the README.
func readmeExample(t *testing.T) spec.File {
	t.Helper()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no YAML")
	}
	return spec.File{Name: "README.md", Data: []byte(text)}
}

func noFindings(t *testing.T, files ...spec.File) {
	t.Helper()
	for _, n := range load(t, files...).Notes {
		if n.Lint != "" {
			t.Errorf("%s: %s: %s", n.Pos, n.Lint, n.Text)
		}
	}
}
