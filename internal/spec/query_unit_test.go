package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestPerSecond(t *testing.T) {
	const w = "[{{.window}}]"
	cases := map[string]struct {
		reason, expr string
		want         bool
	}{
		"Rate":        {"The plain case.", "sum(rate(a" + w + "))", true},
		"Irate":       {"The last two samples are one too.", "sum by (x) (irate(a" + w + "))", true},
		"Increase":    {"Events, not per second.", "sum(increase(a" + w + "))", false},
		"OverTime":    {"What is stored may be anything.", "sum(sum_over_time(a" + w + "))", false},
		"Sum":         {"Rates of one thing and another.", "-(-(sum(rate(a" + w + ")) + sum(rate(b" + w + ")))) - max(rate(c" + w + "))", true},
		"Mixed":       {"A rate and an increase are neither.", "sum(rate(a" + w + ")) + sum(increase(b" + w + "))", false},
		"OrZero":      {"A zero is one in any unit.", "sum(rate(a" + w + ")) or on () vector(0)", true},
		"ZeroFirst":   {"On either side.", "vector(0) + sum(rate(a" + w + "))", true},
		"Scaled":      {"A factor may be a number of seconds.", "sum(rate(a" + w + ")) * 300", false},
		"Divided":     {"Or so divided.", "sum(rate(a" + w + ")) / 60", false},
		"Ratio":       {"A ratio of rates has no unit.", "sum(rate(a" + w + ")) / sum(rate(b" + w + "))", false},
		"Share":       {"A share of a rate is one.", "(sum(rate(a" + w + ")) / sum(rate(b" + w + "))) * sum(rate(c" + w + "))", true},
		"Fraction":    {"Of a native histogram too.", "histogram_fraction(0, 0.2, sum(rate(a" + w + "))) * histogram_count(sum(rate(a" + w + ")))", true},
		"Masked":      {"0 and 1 are shares.", "sum(rate(a" + w + ")) * (sum(b) > bool 2)", true},
		"Filtered":    {"A bound keeps the value.", "sum(rate(a" + w + ")) > 0.1 and b", true},
		"FilteredBy":  {"From the other side too.", "0.1 < sum(rate(a" + w + "))", true},
		"Clamped":     {"As do functions of the value.", "clamp_min(sort_desc(sum(rate(a" + w + "))), 0)", true},
		"Subquery":    {"An average of rates is a rate.", "avg_over_time(sum(rate(a[1m]))[{{.window}}:1m])", true},
		"SubquerySum": {"A sum of them is not.", "sum_over_time(sum(rate(a[1m]))[{{.window}}:1m])", false},
		"Stored":      {"A stored average proves nothing.", "avg_over_time(a:rate5m" + w + ")", false},
		"Count":       {"A number of series is none.", "count(rate(a" + w + "))", false},
		"Bare":        {"Nor a gauge.", "a", false},
		"Square":      {"Nor a square.", "sum(rate(a" + w + ")) * sum(rate(a" + w + "))", false},
		"Constant":    {"Nor a number.", "vector(1)", false},
		"Broken":      {"Nor what does not parse.", "rate(", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (spec.Query{Expr: tc.expr}).PerSecond(); got != tc.want {
				t.Errorf("%s %s: got %t", tc.reason, tc.expr, got)
			}
		})
	}
	for _, q := range []spec.Query{{Expr: "a", Counter: true}, {Expr: "a:rate{{.window}}", Recorded: true}} {
		if q.PerSecond() {
			t.Errorf("%+v is no rate per second", q)
		}
	}
}

func TestCounters(t *testing.T) {
	const w = "[{{.window}}]"
	cases := map[string]struct {
		reason string
		query  spec.Query
		want   []string
	}{
		"Counter":  {"The selector itself.", spec.Query{Expr: `a{b="c"}`, Counter: true}, []string{`a{b="c"}`}},
		"Several":  {"Each once, sorted.", spec.Query{Expr: "sum(rate(b" + w + ")) + sum(increase(a{x=\"y\"}" + w + ")) - sum(irate(b" + w + "))"}, []string{`a{x="y"}`, "b"}},
		"Gauge":    {"A gauge has no resets.", spec.Query{Expr: "avg_over_time(a" + w + ") / sum(rate(b" + w + "))"}, []string{"b"}},
		"Fixed":    {"Another range is another question.", spec.Query{Expr: "sum(rate(a[5m])) + sum_over_time(b" + w + ")"}, nil},
		"Offset":   {"So is another time.", spec.Query{Expr: "sum(rate(a" + w + " offset 5m))"}, nil},
		"At":       {"Or a fixed one.", spec.Query{Expr: "sum(rate(a" + w + " @ 5))"}, nil},
		"Subquery": {"A subquery asks at other times too.", spec.Query{Expr: "sum_over_time(rate(a" + w + ")[{{.window}}:])"}, nil},
		"Inner":    {"The rate of a subquery is of no stored series.", spec.Query{Expr: "rate(sum(a)[{{.window}}:])"}, nil},
		"Recorded": {"Recorded ratios are no counters.", spec.Query{Expr: "a{{.window}}", Recorded: true}, nil},
		"Broken":   {"What does not parse has none.", spec.Query{Expr: "rate("}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.query.Counters()); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}
