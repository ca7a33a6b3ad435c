package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestGrouping(t *testing.T) {
	const w = "[{{.window}}]"
	cases := map[string]struct {
		reason, expr string
		want         []string
	}{
		"None":         {"An aggregation without labels is one series.", "sum(rate(a" + w + "))", nil},
		"Bare":         {"What is not aggregated may have any label.", "rate(a" + w + ")", nil},
		"Broken":       {"What does not parse proves nothing.", "sum by (x)(", nil},
		"By":           {"Sorted, each once.", "sum by (z, a, z) (rate(a" + w + "))", []string{"a", "z"}},
		"Trailing":     {"By stands behind the value too.", "(sum(rate(a" + w + ")) by (host))", []string{"host"}},
		"Outermost":    {"Only the outermost counts.", "sum by (x) (sum by (x, y) (rate(a" + w + ")))", []string{"x"}},
		"Scalars":      {"Numbers change no label.", "2 * (-sum by (x) (rate(a" + w + ")) + 1) / 3 ^ 2", []string{"x"}},
		"Functions":    {"Functions keep them.", "clamp_min(round(sum by (x) (rate(a" + w + ")), 0.1), 0)", []string{"x"}},
		"Difference":   {"Two values of one grouping.", "sum by (x) (rate(a" + w + ")) - sum by (x) (rate(b" + w + "))", []string{"x"}},
		"Common":       {"A pair has only labels that both have.", "sum by (x, y) (rate(a" + w + ")) - sum by (y, z) (rate(b" + w + "))", []string{"y"}},
		"OneSide":      {"One side proves it for both.", "rate(a" + w + ") / sum by (x) (rate(b" + w + "))", []string{"x"}},
		"On":           {"on() says what is left.", "rate(a" + w + ") / on (y, x) rate(b" + w + ")", []string{"x", "y"}},
		"Ignoring":     {"ignoring() takes away.", "sum by (x, y) (rate(a" + w + ")) / ignoring (y) sum by (x) (rate(b" + w + "))", []string{"x"}},
		"GroupLeft":    {"The many side, with what it takes over.", "sum by (x, y) (rate(a" + w + ")) * on (x) group_left (z) sum by (x, z) (b)", []string{"x", "y", "z"}},
		"GroupRight":   {"And the other way round.", "sum by (x) (rate(a" + w + ")) * on (x) group_right sum by (x, y) (b)", []string{"x", "y"}},
		"Or":           {"A union of series has the labels of both.", "sum by (x) (rate(a" + w + ")) or vector(0)", []string{"x"}},
		"And":          {"A condition has no labels of its own.", "sum by (x) (rate(a" + w + ")) and on () sum by (y) (b)", []string{"x"}},
		"Unless":       {"Nor has an exception.", "sum by (x) (rate(a" + w + ")) unless sum by (y) (b)", []string{"x"}},
		"Comparison":   {"Nor a bound.", "0 < sum by (x) (rate(a" + w + "))", []string{"x"}},
		"Filter":       {"The left side of a filter keeps its name.", "a > sum by (x) (rate(b" + w + "))", nil},
		"FilterOn":     {"on() takes that too.", "a > on (x) sum by (x) (rate(b" + w + "))", []string{"x"}},
		"TopK":         {"topk picks series.", "topk by (x) (3, sum by (x, y) (rate(a" + w + ")))", []string{"x", "y"}},
		"CountValues":  {"count_values adds a label.", `count_values by (x) ("v", a` + ` offset 1m)`, []string{"v", "x"}},
		"Quantile":     {"A quantile takes le away.", "histogram_quantile(0.9, sum by (le, x) (rate(a_bucket" + w + ")))", []string{"x"}},
		"Subquery":     {"Over time, per series.", "sum_over_time((count by (x) (a < 1))" + "[{{.window}}:1m])", []string{"x"}},
		"Relabelled":   {"A new label is not followed.", `label_replace(sum by (x) (rate(a` + w + `)), "y", "$1", "x", "(.*)")`, nil},
		"Without":      {"What is dropped says not what is left.", "sum without (pod) (rate(a" + w + "))", nil},
		"Inside":       {"Inside it does not matter.", "sum by (x) (sum without (pod) (rate(a" + w + ")))", []string{"x"}},
		"MetricName":   {"The metric's name comes and goes.", "sum by (__name__, x) ({x=~\".+\"})", nil},
		"Absent":       {"absent() makes labels up.", "absent(sum by (x) (rate(a" + w + ")))", nil},
		"Fill":         {"A filled pair may have the labels of either side.", "sum by (x) (rate(a" + w + ")) + fill (0) sum by (x, y) (rate(b" + w + "))", []string{"x", "y"}},
		"FillGrouping": {"Of a filled many-to-one pair nothing is proved.", "sum by (x, y) (a) + on (x) group_left () fill (0) sum by (x) (b)", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, spec.Query{Expr: tc.expr}.Grouping()); diff != "" {
				t.Errorf("%s %s (-want, +got)\n%s", tc.reason, tc.expr, diff)
			}
		})
	}
	if got := (spec.Query{Expr: "a", Counter: true}).Grouping(); got != nil {
		t.Errorf("a wrapped counter is one sum, got %v", got)
	}
	if got := (spec.Query{Expr: "a{{.window}}", Recorded: true}).Grouping(); got != nil {
		t.Errorf("a recorded series has whatever labels were recorded, got %v", got)
	}
}
