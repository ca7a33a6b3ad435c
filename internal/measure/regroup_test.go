package measure_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Two members differ in s, except where the case says otherwise, and each
// expression holds s="x" and z="y".
func TestGroupWritesOneQuery(t *testing.T) {
	cases := map[string]struct {
		reason  string
		expr    string
		members [][]string
		want    string
	}{
		"selector": {
			"the labels of its series tell members apart", `a{s="x",z="y"}`, nil, `a{s=~"w|x",z="y"}`,
		},
		"shared value": {
			"what all members share stays an equality", `sum(rate(a{s="x",z="y"}[5m]))`, [][]string{{"x", "y"}, {"x", "v"}},
			`sum by (z) (rate(a{s="x",z=~"v|y"}[5m]))`,
		},
		"two labels": {
			"values are sorted, each once", `sum(a{s="x",z="y"})`, [][]string{{"x", "y"}, {"w", "v"}, {"x", "v"}},
			`sum by (s, z) (a{s=~"w|x",z=~"v|y"})`,
		},
		"by": {
			"the label is added", `max by (q) (a{s="x",z="y"})`, nil, `max by (q, s) (a{s=~"w|x",z="y"})`,
		},
		"by that has it": {
			"once", `count by (s, q) (a{s="x",z="y"})`, nil, `count by (q, s) (a{s=~"w|x",z="y"})`,
		},
		"without": {
			"it keeps the label as it is", `avg without (q) (a{s="x",z="y"})`, nil, `avg without (q) (a{s=~"w|x",z="y"})`,
		},
		"without it": {
			"the label must stay", `stddev without (q, s) (a{s="x",z="y"})`, nil, `stddev without (q) (a{s=~"w|x",z="y"})`,
		},
		"without only it": {
			"the label must stay", `stdvar without (s) (a{s="x",z="y"})`, nil, `stdvar without () (a{s=~"w|x",z="y"})`,
		},
		"parameter": {
			"it stays first", `quantile(0.9, a{s="x",z="y"})`, nil, `quantile by (s) (0.9, a{s=~"w|x",z="y"})`,
		},
		"ratio": {
			"both sides keep members apart, so they match within one",
			`1 - sum(rate(a{s="x",z="y",code=~"5.."}[5m])) / sum(rate(a{s="x",z="y"}[5m]))`, nil,
			`1 - sum by (s) (rate(a{code=~"5..",s=~"w|x",z="y"}[5m])) / sum by (s) (rate(a{s=~"w|x",z="y"}[5m]))`,
		},
		"on": {
			"on (nothing) would match members with each other", `sum(a{s="x",z="y"}) / on () b{s="x",z="y"}`, nil,
			`sum by (s) (a{s=~"w|x",z="y"}) / on (s) b{s=~"w|x",z="y"}`,
		},
		"on a label": {
			"the label is added", `a{s="x",z="y"} unless on (q) b{s="x",z="y"}`, nil,
			`a{s=~"w|x",z="y"} unless on (q, s) b{s=~"w|x",z="y"}`,
		},
		"ignoring": {
			"what is not ignored matches", `a{s="x",z="y"} + ignoring (q) b{s="x",z="y"}`, nil,
			`a{s=~"w|x",z="y"} + ignoring (q) b{s=~"w|x",z="y"}`,
		},
		"fill": {
			"a missing side is missing for one member", `sum(a{s="x",z="y"}) + fill (-1) sum(b{s="x",z="y"})`, nil,
			`sum by (s) (a{s=~"w|x",z="y"}) + fill (-1) sum by (s) (b{s=~"w|x",z="y"})`,
		},
		"infinite fill": {
			"any number may be filled in", `a{s="x",z="y"} + fill_left(-Inf) fill_right(NaN) b{s="x",z="y"}`, nil,
			`a{s=~"w|x",z="y"} + fill_left (-Inf) fill_right (NaN) b{s=~"w|x",z="y"}`,
		},
		"subquery": {
			"the expression inside is grouped", `max_over_time((sum(a{s="x",z="y"}) > 0)[1h:1m] offset 5m)`, nil,
			`max_over_time((sum by (s) (a{s=~"w|x",z="y"}) > 0)[1h:1m] offset 5m)`,
		},
		"newest sample": {
			"label_replace writes a label that is nobody's",
			`max(label_replace(timestamp(a{s="x",z="y"}), "selector", "0", "", "") or label_replace(timestamp(b{s="x",z="y"}), "selector", "1", "", ""))`, nil,
			`max by (s) (label_replace(timestamp(a{s=~"w|x",z="y"}), "selector", "0", "", "") or label_replace(timestamp(b{s=~"w|x",z="y"}), "selector", "1", "", ""))`,
		},
		"quantile of buckets": {
			"buckets of one member stay together", `histogram_quantile(0.9, sum by (le) (rate(a{s="x",z="y"}[5m])))`, nil,
			`histogram_quantile(0.9, sum by (le, s) (rate(a{s=~"w|x",z="y"}[5m])))`,
		},
		"odd values": {
			"a value is no regular expression, and a string has escapes", `a{s="x",z="y"}`,
			[][]string{{"x", "y"}, {"a.b|c", "y"}, {`\d"`, "y"}, {"\n\x00ü", "y"}},
			`a{s=~"\n\x00ü|\\\\d\"|a\\.b\\|c|x",z="y"}`,
		},
		"quoted label": {
			"quoted in every place", `sum({"a.b"="x",z="y"} * on (z) c{"a.b"="x",z="y"})`, nil,
			`sum by ("a.b") ({"a.b"=~"w|x",z="y"} * on ("a.b", z) c{"a.b"=~"w|x",z="y"})`,
		},
		"one member": {
			"it is asked as it is written", `sum( a{z="y", s="x"} )`, [][]string{{"x", "y"}}, `sum( a{z="y", s="x"} )`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ms := tc.members
			if ms == nil {
				ms = [][]string{{"x", "y"}, {"w", "y"}}
			}
			got, err := measure.Group(tc.expr, ms)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.Expr); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGroupRefuses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		expr    string
		members [][]string
		want    string
	}{
		"no PromQL":     {"nothing can be rendered", `sum(`, [][]string{{"x"}}, "not valid PromQL"},
		"not groupable": {"only what is proved is grouped", `topk(1, a{s="x"})`, [][]string{{"x"}}, "topk"},
		"nobody":        {"a query for nobody", `a{s="x"}`, nil, "no members"},
		"twice":         {"a series has one owner", `a{s="x"}`, [][]string{{"x"}, {"x"}}, "there twice"},
		"twice of two":  {"a series has one owner", `a{s="x",z="y"}`, [][]string{{"x", "y"}, {"w", "y"}, {"x", "y"}}, "there twice"},
		"values":        {"one for each label", `a{s="x"}`, [][]string{{"x"}, {"x", "y"}}, "member 1 has 2 values"},
		"empty":         {"it would match series without the label", `a{s="x"}`, [][]string{{"x"}, {""}}, `the value ""`},
		"not UTF-8":     {"no regular expression can hold it", `a{s="x"}`, [][]string{{"x"}, {"\xff"}}, `the value "\xff"`},
		"of no member": {
			"a shared value would be taken from somebody else", `a{s="x",z="y"}`, [][]string{{"x", "v"}, {"w", "v"}},
			"of no member",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := measure.Group(tc.expr, tc.members)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q, %v, want %q", tc.reason, g.Expr, err, tc.want)
			}
		})
	}
}

func TestSplitDealsSeriesOut(t *testing.T) {
	type metric = model.Metric
	cases := map[string]struct {
		reason  string
		expr    string
		members [][]string
		answer  []metric
		want    [][]metric
	}{
		"aggregate": {
			"the single answer has no label", `sum(a{s="x"})`, [][]string{{"x"}, {"w"}, {"none"}},
			[]metric{{"s": "w"}, {"s": "x"}}, [][]metric{{{}}, {{}}, nil},
		},
		"selector": {
			"the single answer has it", `a{s="x"}`, [][]string{{"x"}, {"w"}},
			[]metric{{"__name__": "a", "s": "w", "i": "1"}, {"__name__": "a", "s": "w", "i": "2"}},
			[][]metric{nil, {{"__name__": "a", "s": "w", "i": "1"}, {"__name__": "a", "s": "w", "i": "2"}}},
		},
		"by that has one": {
			"the single answer has the one that it is aggregated by", `sum by (s, q) (a{s="x",z="y"})`,
			[][]string{{"x", "y"}, {"w", "v"}},
			[]metric{{"s": "x", "z": "y", "q": "1"}, {"s": "w", "z": "v"}, {"s": "x", "z": "v"}, {"s": "w", "z": "y", "q": "1"}},
			[][]metric{{{"s": "x", "q": "1"}}, {{"s": "w"}}},
		},
		"by twice": {
			"the inner sum drops the label, so the outer has none to keep", `sum by (s) (sum by (q) (a{s="x"}))`,
			[][]string{{"x"}, {"w"}}, []metric{{"s": "w"}}, [][]metric{nil, {{}}},
		},
		"without": {
			"the single answer lacks what it is without", `sum without (s) (a{s="x",z="y"})`, [][]string{{"x", "y"}, {"w", "v"}},
			[]metric{{"s": "x", "z": "y", "q": "1"}}, [][]metric{{{"z": "y", "q": "1"}}, nil},
		},
		"on": {
			"one to one keeps what it is matched on", `a{s="x",z="y"} / on (s) b{s="x",z="y"}`, [][]string{{"x", "y"}, {"w", "v"}},
			[]metric{{"s": "x", "z": "y"}}, [][]metric{{{"s": "x"}}, nil},
		},
		"set on": {
			"a set operation keeps the left side as it is", `a{s="x",z="y"} and on (s) b{s="x",z="y"}`,
			[][]string{{"x", "y"}, {"w", "v"}}, []metric{{"s": "x", "z": "y"}}, [][]metric{{{"s": "x", "z": "y"}}, nil},
		},
		"ambiguous ends": {
			"values are not run together", `sum(a{s="x",z="y"})`, [][]string{{"x", "y"}, {"xy", "z"}, {"x", "yz"}},
			[]metric{{"s": "x", "z": "yz"}, {"s": "xyz", "z": ""}, {"s": "xy", "z": "z"}, {"z": "y"}},
			[][]metric{nil, {{}}, {{}}},
		},
		"one member": {
			"everything is its own", `sum by (q) (a{s="x"})`, [][]string{{"x"}}, []metric{{"q": "1"}, {}}, [][]metric{{{"q": "1"}, {}}},
		},
		"nothing": {"no answer is no answer for each", `sum(a{s="x"})`, [][]string{{"x"}, {"w"}}, nil, [][]metric{nil, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := measure.Group(tc.expr, tc.members)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1, 0)
			var answer []measure.Sample
			for i, m := range tc.answer {
				answer = append(answer, measure.Sample{Metric: m, Value: float64(i), At: at, Histogram: i%2 == 1})
			}
			var got [][]metric
			for _, part := range g.Split(answer) {
				var ms []metric
				for _, s := range part {
					if i := int(s.Value); s.At != at || s.Histogram != (i%2 == 1) {
						t.Errorf("sample %+v is not what it was", s)
					}
					ms = append(ms, s.Metric)
				}
				got = append(got, ms)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
