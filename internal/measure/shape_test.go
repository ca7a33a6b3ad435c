package measure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

func TestShapeTakesValuesOut(t *testing.T) {
	cases := map[string]struct {
		reason string
		expr   string
		key    string
		labels []string
		values []string
	}{
		"counter": {
			"one equality", `sum(rate(http_requests_total{service="shop"}[5m]))`,
			`sum(rate(http_requests_total{service="*"}[5m])) {service}`, []string{"service"}, []string{"shop"},
		},
		"order and spaces": {
			"how it is written does not matter",
			"sum  by(b,a) (rate(x_total{ zone = 'z', code=~\"5..\", app=`shop`, }[300s])) # why",
			`sum by (a, b) (rate(x_total{app="*",code=~"5..",zone="*"}[5m])) {app,zone}`, []string{"app", "zone"}, []string{"shop", "z"},
		},
		"every selector": {
			"only what all selectors have, with one value",
			`sum(a{service="s",le="1",q="1"}) / sum(b{service="s",le="2"})`,
			`sum(a{le="1",q="1",service="*"}) / sum(b{le="2",service="*"}) {service}`, []string{"service"}, []string{"s"},
		},
		"name": {
			"the name of a metric is part of the shape", `{__name__="a.b",service="s"}`,
			`{__name__="a.b",service="*"} {service}`, []string{"service"}, []string{"s"},
		},
		"the database's own": {
			"labels with two underscores are dropped as the server pleases", `a{__type__="counter",service="s"}`,
			`a{__type__="counter",service="*"} {service}`, []string{"service"}, []string{"s"},
		},
		"quoted label": {
			"a label may have any name", `sum by ("a.b") ({"m.x", "a.b"="ü\n\"\\"})`,
			`sum by ("a.b") ({"a.b"="*",__name__="m.x"}) {a.b}`, []string{"a.b"}, []string{"ü\n\"\\"},
		},
		"two matchers": {
			"two matchers of one label are more than one equality", `a{service="s",service!="x",zone="z"}`,
			`a{service!="x",service="s",zone="*"} {zone}`, []string{"zone"}, []string{"z"},
		},
		"words that are no labels in a list": {
			"by (inf) is a number", `a{inf="1",NaN="2",without="3",by="4"}`,
			`a{NaN="2",by="*",inf="1",without="3"} {by}`, []string{"by"}, []string{"4"},
		},
		"not UTF-8": {
			"no regular expression can hold it", `a{service="\xff",zone="z"}`,
			`a{service="\xff",zone="*"} {zone}`, []string{"zone"}, []string{"z"},
		},
		"empty": {
			"an empty value matches series without the label", `a{service="",zone="z"}`,
			`a{service="",zone="*"} {zone}`, []string{"zone"}, []string{"z"},
		},
		"modifiers": {
			"they stay", `max_over_time(sum(a{s="x"} offset -90s)[1h:] @ 17.5 offset 1d) > bool -1`,
			`max_over_time(sum(a{s="*"} offset -1m30s)[1h:] @ 17.500 offset 1d) > bool -1 {s}`, []string{"s"}, []string{"x"},
		},
		"edges": {
			"they stay", `rate(a{s="x"}[5m] anchored) + ignoring (z) fill_left(0) rate(a{s="x"}[5m] smoothed)`,
			`rate(a{s="*"}[5m] anchored) + ignoring (z) fill_left (0) rate(a{s="*"}[5m] smoothed) {s}`, []string{"s"}, []string{"x"},
		},
		"changed label": {
			"a label that is written is none that can vary", `label_replace(a{s="x",z="y"}, "z", "1", "", "")`,
			`label_replace(a{s="*",z="y"}, "z", "1", "", "") {s}`, []string{"s"}, []string{"x"},
		},
		"read label": {
			"nor one that is read: after sum() the single query has none", `label_replace(sum(a{s="x",z="y"}), "n", "$1", "z", "(.*)")`,
			`label_replace(sum(a{s="*",z="y"}), "n", "$1", "z", "(.*)") {s}`, []string{"s"}, []string{"x"},
		},
		"joined label": {
			"nor one that is joined", `label_join(a{s="x",z="y",q="r"}, "q", "-", "z", "p")`,
			`label_join(a{q="r",s="*",z="y"}, "q", "-", "z", "p") {s}`, []string{"s"}, []string{"x"},
		},
		"buckets": {
			"a quantile takes series of several le together", `histogram_quantile(0.9, rate(a{le="1",s="x"}[5m]))`,
			`histogram_quantile(0.9, rate(a{le="1",s="*"}[5m])) {s}`, []string{"s"}, []string{"x"},
		},
		"bucket": {
			"a bucket alone may vary", `rate(a_bucket{le="1"}[5m])`,
			`rate(a_bucket{le="*"}[5m]) {le}`, []string{"le"}, []string{"1"},
		},
		"ignored": {
			"ignoring a label would match two members", `a{s="x",z="y"} / ignoring (z) b{s="x",z="y"}`,
			`a{s="*",z="y"} / ignoring (z) b{s="*",z="y"} {s}`, []string{"s"}, []string{"x"},
		},
		"on one side": {
			"alone they never match, as one side has no zone", `sum by (s, z) (a{s="x",z="y"}) / sum by (s) (b{s="x",z="y"})`,
			`sum by (s, z) (a{s="*",z="y"}) / sum by (s) (b{s="*",z="y"}) {s}`, []string{"s"}, []string{"x"},
		},
		"on one side, named": {
			"on (zone) does not match what has none", `sum by (s, z) (a{s="x",z="y"}) / on (s, z) sum by (s) (b{s="x",z="y"})`,
			`sum by (s, z) (a{s="*",z="y"}) / on (s, z) sum by (s) (b{s="*",z="y"}) {s}`, []string{"s"}, []string{"x"},
		},
		"on one side, not named": {
			"on (s) matches and leaves s alone", `sum by (s, z) (a{s="x",z="y"}) / on (s) sum by (s) (b{s="x",z="y"})`,
			`sum by (s, z) (a{s="*",z="*"}) / on (s) sum by (s) (b{s="*",z="*"}) {s,z}`, []string{"s", "z"}, []string{"x", "y"},
		},
		"or with other labels": {
			"some series of the answer would have the zone and others not", `a{s="x",z="y"} or on (q) sum by (s) (b{s="x",z="y"})`,
			`a{s="*",z="y"} or on (q) sum by (s) (b{s="*",z="y"}) {s}`, []string{"s"}, []string{"x"},
		},
		"and with other labels": {
			"the answer has the left side's series", `a{s="x",z="y"} and on (q) sum by (s) (b{s="x",z="y"})`,
			`a{s="*",z="*"} and on (q) sum by (s) (b{s="*",z="*"}) {s,z}`, []string{"s", "z"}, []string{"x", "y"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shape, values, reason := measure.Analyse(tc.expr)
			if reason != "" {
				t.Fatalf("%s: refused: %s", tc.reason, reason)
			}
			got := []any{shape.Key(), shape.Labels(), values}
			if diff := cmp.Diff([]any{tc.key, tc.labels, tc.values}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestShapeRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		expr   string
		want   string
	}{
		"no PromQL":         {"nothing can be said of it", `sum(`, "not-parsed"},
		"empty":             {"nothing can be said of it", ``, "not-parsed"},
		"placeholder":       {"the window is to be filled in", `rate(a{s="x"}[{{.window}}])`, "not-parsed"},
		"scalar":            {"a number has no series", `1 + 1`, "not-a-vector"},
		"matrix":            {"neither is it one number for each series", `a{s="x"}[5m]`, "not-a-vector"},
		"no matcher":        {"nothing varies", `sum(a)`, "no-equality"},
		"expressions":       {"only equalities vary", `sum(a{s=~"x",z!="y"})`, "no-equality"},
		"two services":      {"the selectors have no value in common", `sum(a{s="x"}) / sum(b{s="y"})`, "no-equality"},
		"one without":       {"the other selector would be asked for all", `sum(a{s="x"}) / sum(b)`, "no-equality"},
		"or vector":         {"a member without series would get the zero of none", `sum(a{s="x"}) or vector(0)`, "set-operator-with-vector"},
		"or on vector":      {"likewise", `sum(a{s="x"}) OR on() vector(0)`, "set-operator-with-vector"},
		"or nested vector":  {"likewise", `a{s="x"} or (label_replace(-vector(0), "s", "x", "", ""))`, "set-operator-with-vector"},
		"vector":            {"one series for all members", `sum(a{s="x"}) + vector(1)`, "vector"},
		"time of day":       {"one series for all members", `sum(a{s="x"}) * on () hour()`, "hour"},
		"scalar of series":  {"the number of one member would be used for all", `a{s="x"} / scalar(b{s="x"})`, "scalar"},
		"scalar in an arg":  {"likewise", `clamp_max(a{s="x"}, 1 + scalar(b{s="x"}))`, "scalar"},
		"scalar as a level": {"likewise", `quantile(scalar(b{s="x"}), a{s="x"})`, "scalar"},
		"scalar over time":  {"likewise", `quantile_over_time(scalar(b{s="x"}), a{s="x"}[5m])`, "scalar"},
		"topk":              {"the best of all are not the best of each", `topk(1, a{s="x"})`, "topk"},
		"bottomk":           {"likewise", `bottomk(1, a{s="x"})`, "bottomk"},
		"limitk":            {"likewise", `limitk(1, a{s="x"})`, "limitk"},
		"limit_ratio":       {"likewise", `limit_ratio(0.5, a{s="x"})`, "limit-ratio"},
		"count_values":      {"it makes a label", `count_values("s", a{s="x"})`, "count-values"},
		"absent":            {"it gives a series where there is none", `absent(a{s="x"})`, "absent"},
		"absent_over_time":  {"likewise", `absent_over_time(a{s="x"}[5m])`, "absent-over-time"},
		"sort":              {"the order is part of the answer", `sort(a{s="x"})`, "sort"},
		"sort by label":     {"likewise", `sort_by_label_desc(a{s="x"}, "s")`, "sort-by-label-desc"},
		"group_left":        {"one series matches many", `a{s="x"} * on (s) group_left (v) b{s="x"}`, "group-left"},
		"group_right":       {"likewise", `a{s="x"} * on (s) group_right b{s="x"}`, "group-left"},
		"info":              {"it joins series of another metric", `info(a{s="x"}, {s="x"})`, "info"},
		"smoothing":         {"nobody has proved it", `double_exponential_smoothing(a{s="x"}[5m], 0.5, 0.5)`, "double-exponential-smoothing"},
		"quantiles":         {"it makes a label", `histogram_quantiles(a{s="x"}, "s", 0.5, 0.9)`, "histogram-quantiles"},
		"trim":              {"nobody has proved it", `a{s="x"} </ 5`, "operator"},
		"short range":       {"the printer makes it [0s]", `rate(a{s="x"}[0.0005])`, "not-printable"},
		"word in a list":    {"the printer makes it by (inf), a number", `sum by ("inf", s) (a{s="x"})`, "not-printable"},
		"only le":           {"a quantile takes the buckets together", `histogram_quantile(0.9, rate(a{le="1"}[5m]))`, "bucket-label"},
		"fraction of le":    {"likewise", `histogram_fraction(0, 1, rate(a{le="1"}[5m]))`, "bucket-label"},
		"ignored":           {"two members would match", `a{s="x"} / ignoring (s) b{s="x"}`, "label-ignored"},
		"ignored in a set":  {"two members would match", `a{s="x"} unless ignoring (s) b{s="x"}`, "label-ignored"},
		"on one side":       {"alone they never match", `a{s="x"} / sum by (q) (b{s="x"})`, "label-on-one-side"},
		"set on one side":   {"alone they never match", `sum by (q) (a{s="x"}) unless b{s="x"}`, "label-on-one-side"},
		"no labels": {
			"where VictoriaMetrics takes the sum for a number, the group has labels",
			`sum by (q) (a{s="x"}) / sum(b{s="x"})`, "labels-on-one-side",
		},
		"no labels at left": {"likewise", `(sum(a{s="x"}) / sum(b{s="x"})) * -max by (q) (b{s="x"})`, "labels-on-one-side"},
		"changed":           {"the label is what tells members apart", `label_replace(a{s="x"}, "s", "y", "", "")`, "label-changed"},
		"read":              {"it is not there in the single answer", `label_replace(sum(a{s="x"}), "q", "$1", "s", "(.*)")`, "label-changed"},
		"joined":            {"likewise", `label_join(sum(a{s="x"}), "q", "-", "r", "s")`, "label-changed"},
		"joined into":       {"the label is what tells members apart", `label_join(a{s="x"}, "s", "-", "r")`, "label-changed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shape, values, reason := measure.Analyse(tc.expr)
			if reason != tc.want || len(shape.Labels()) != 0 || len(values) != 0 || shape.Key() == "" {
				t.Errorf("%s: %q, labels %q, values %q, key %q, want %q and none",
					tc.reason, reason, shape.Labels(), values, shape.Key(), tc.want)
			}
			if _, err := measure.Group(tc.expr, [][]string{{"x"}}); err == nil {
				t.Errorf("%s: was grouped all the same", tc.reason)
			}
		})
	}
}

func TestKeysTellShapesApart(t *testing.T) {
	same := []string{
		`sum(rate(a{s="x",z="y"}[5m]))`, `sum(rate(a{z='q',s="r|t"}[300s]))`, "sum by () (rate(a{s=`x`,z=\"y\"}[5m]))",
	}
	for _, e := range same {
		if got := key(t, e); got != key(t, same[0]) {
			t.Errorf("%s has the key %s, want that of %s", e, got, same[0])
		}
	}
	others := []string{
		same[0], `sum(rate(a{s="x",z=~"y"}[5m]))`, `sum(rate(a{s="x"}[5m]))`, `sum(rate(b{s="x",z="y"}[5m]))`,
		`sum(rate(a{s="x",z="y"}[6m]))`, `sum(rate(a{s="x",z="y"}[5m] offset 1m))`, `sum by (s) (rate(a{s="x",z="y"}[5m]))`,
		`sum(rate(a{s="x",z="y",q!="z"}[5m]))`, `sum without (s) (rate(a{s="x",z="y"}[5m]))`, `sum(`, `topk(1, a{s="x"})`,
		`topk(1, a{s="y"})`, `sum(rate(a{s="",z="y"}[5m]))`, `(sum(rate(a{s="x",z="y"}[5m])))`,
		`sum(rate(a{s="x",z="y"}[5m])) > 0`, `sum(rate(a{s="x",z="y"}[5m])) > bool 0`, `a{s="x"} + on () b{s="x"}`,
		`a{s="x"} + b{s="x"}`, `a{s="x"} + ignoring (q) b{s="x"}`, `a{s="x"} + fill (0) b{s="x"}`,
		`max_over_time(a{s="x"}[1h:])`, `max_over_time(a{s="x"}[1h:1m])`,
	}
	seen := map[string]string{}
	for _, e := range others {
		k := key(t, e)
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have one key, %s", e, other, k)
		}
		seen[k] = e
	}
}

func key(t *testing.T, expr string) string {
	t.Helper()
	shape, _, _ := measure.Analyse(expr)
	return shape.Key()
}
