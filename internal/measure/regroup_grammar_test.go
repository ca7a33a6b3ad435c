package measure_test

import (
	"fmt"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// grammar draws PromQL of every kind, most of it groupable. Where a member's
// value belongs stands a mark.
type grammar struct{ t *rapid.T }

const (
	svcMark  = "\x01"
	zoneMark = "\x02"
	leMark   = "\x03"
)

// fillIn makes a member's expression.
func fillIn(template, svc, zone, le string) string {
	return strings.NewReplacer(
		svcMark, strconv.Quote(svc), zoneMark, strconv.Quote(zone), leMark, strconv.Quote(le),
	).Replace(template)
}

func (g grammar) pick(what string, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(g.t, what)
}

func (g grammar) one(in int, what string) bool {
	return rapid.IntRange(0, in-1).Draw(g.t, what) == in-1
}

func (g grammar) labelList() string {
	n := rapid.IntRange(0, 3).Draw(g.t, "labels")
	var out []string
	for range n {
		out = append(out, g.label())
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func (g grammar) label() string {
	return g.pick("label", "inst", "svc", "zone", "code", "le", "job", `"my.label"`, "missing")
}

func (g grammar) selector(metric string) string {
	ms := []string{"svc=" + svcMark}
	if g.one(2, "by zone") {
		ms = append(ms, "zone="+zoneMark)
	}
	switch rapid.IntRange(0, 24).Draw(g.t, "matcher") {
	case 0:
		ms = append(ms, `code=~"5.."`)
	case 1:
		ms = append(ms, `code="200"`)
	case 2:
		ms = append(ms, `"my.label"="u"`)
	case 3:
		ms = append(ms, `inst!="0"`)
	case 4:
		ms = append(ms, `job="j"`)
	case 5:
		ms = append(ms, `le="2"`)
	case 17:
		ms = append(ms, `svc!=""`)
	case 18:
		ms = []string{`svc=~".+"`, "zone=" + zoneMark}
	case 19:
		return `{__name__=~"a_total|b_total",` + strings.Join(ms, ",") + `}`
	}
	if metric == "d_bucket" && g.one(4, "by le") {
		ms = append(ms, "le="+leMark)
	}
	if metric == "" {
		metric = g.pick("metric", "a_total", "b_total", "g", "g", "n", "d_bucket", "nothing")
	}
	return metric + "{" + strings.Join(ms, ",") + "}"
}

func (g grammar) modifier() string {
	if !g.one(8, "modifier") {
		return ""
	}
	return g.pick("which", " offset 2m", " offset -30s", " @ 1772366100", " @ 1772366100 offset 1m", " @ end()", " offset (1m + 30s) ")
}

func (g grammar) matrix(depth int, metric string) string {
	window := g.pick("window", "1m", "5m", "17m")
	if depth > 0 && g.one(4, "subquery") {
		step := g.pick("step", "1m", "37s", "")
		return "(" + g.vector(depth-1) + ")[" + window + ":" + step + "]" + g.modifier()
	}
	return g.selector(metric) + "[" + window + "]" + g.modifier()
}

func (g grammar) scalar() string {
	if g.one(30, "of series") {
		return "scalar(" + g.selector("") + ")"
	}
	return g.pick("scalar", "1", "0", "2.5", "-1", "0.5", "(1 + 1)", "time()", "pi()", "1e3", "NaN", "Inf", "5m", "min_of(1, 2)")
}

func (g grammar) overTime(depth int) string {
	if g.one(16, "safe edges") {
		return g.pick("f", "rate", "increase", "delta") + "(" + g.selector("a_total") + "[5m] " + g.pick("edge", "smoothed", "anchored") + ")"
	}
	f := g.pick("over time", "rate", "rate", "increase", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets",
		"avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time", "stddev_over_time",
		"stdvar_over_time", "last_over_time", "first_over_time", "present_over_time", "mad_over_time", "ts_of_max_over_time",
		"absent_over_time", "ts_of_last_over_time", "quantile_over_time", "predict_linear", "increase", "rate")
	switch f {
	case "quantile_over_time":
		return "quantile_over_time(0.9, " + g.matrix(depth, "") + ")"
	case "predict_linear":
		return "predict_linear(" + g.matrix(depth, "") + ", 60)"
	}
	return f + "(" + g.matrix(depth, "") + ")"
}

func (g grammar) function(depth int) string {
	v := g.vector(depth - 1)
	switch rapid.IntRange(0, 9).Draw(g.t, "function") {
	case 0:
		return "clamp(" + v + ", 0, 1)"
	case 1:
		return "round(" + v + ", 0.25)"
	case 2:
		return "timestamp(" + g.selector("") + g.modifier() + ")"
	case 3:
		return "histogram_quantile(0.5, " + g.buckets(depth) + ")"
	case 4:
		return "histogram_fraction(0, 1.5, " + g.buckets(depth) + ")"
	case 5:
		return g.pick("h", "histogram_count", "histogram_sum", "histogram_avg", "histogram_stddev", "histogram_stdvar") +
			"(" + g.natives() + ")"
	case 6:
		return "label_replace(" + v + ", \"" + g.pick("dst", "new", "inst", "svc", "zone", "le") + `", ` + g.pick("replacement",
			`"0", "", ""`, `"$1", "svc", "(.*)"`, `"x$1", "inst", "(.*)"`, `"", "svc", ".*"`, `"$1", "code", "5(..)"`, `"1", "zone", "z.*"`) + ")"
	case 7:
		return "label_join(" + v + ", \"" + g.pick("dst", "inst", "new", "zone") + `", "-", "` + g.pick("src", "inst", "code", "svc") + `", "job")`
	case 8:
		return g.pick("exotic", "sort(", "absent(", "hour(", "hour() + (", "vector(1) + (", "sgn(", "topk(1, ", "sort_desc(") + v + ")"
	}
	return g.pick("f", "abs", "ceil", "exp", "ln", "sqrt", "sgn", "-", "+", "", "day_of_week") + "(" + v + ")"
}

func (g grammar) buckets(depth int) string {
	inner := "rate(" + g.matrix(0, g.pick("histogram", "d_bucket", "n")) + ")"
	switch {
	case g.one(3, "no sum"):
		return inner
	case g.one(6, "any"):
		return g.vector(depth - 1)
	}
	return "sum by " + g.pick("le", "(le)", "(le, inst)", "(svc, le)", "()") + " (" + inner + ")"
}

func (g grammar) natives() string {
	return g.pick("natives", "sum(rate(", "(rate(", "avg by (inst) (increase(") + g.matrix(0, g.pick("m", "n", "n", "d_bucket")) + "))"
}

func (g grammar) aggregate(inner string) string {
	op := g.pick("aggregator", "sum", "sum", "sum", "min", "max", "avg", "count", "group", "stddev", "stdvar", "quantile")
	if g.one(40, "refused") {
		op = g.pick("aggregator", "topk", "bottomk", "limitk", "count_values")
	}
	switch op {
	case "quantile":
		inner = "0.5, " + inner
	case "topk", "bottomk", "limitk":
		inner = "1, " + inner
	case "count_values":
		inner = `"svc", ` + inner
	}
	switch rapid.IntRange(0, 4).Draw(g.t, "grouping") {
	case 0, 1:
		return op + "(" + inner + ")"
	case 2:
		return op + " without " + g.labelList() + " (" + inner + ")"
	}
	return op + " by " + g.labelList() + " (" + inner + ")"
}

func (g grammar) matching(set bool) string {
	on := " on " + g.labelList()
	if set {
		return g.pick("matching", "", on, on, " ignoring "+g.labelList())
	}
	m := g.pick("matching", "", "", on, " ignoring "+g.labelList())
	if m != "" && g.one(20, "many") {
		m += g.pick("group", " group_left ()", " group_right ()")
	}
	if g.one(8, "fill") {
		m += g.pick("fill", " fill (0)", " fill_left (1)", " fill_right (-1)", " fill_left (0) fill_right (2)")
	}
	return m
}

func (g grammar) operator() (op string, set bool) {
	switch rapid.IntRange(0, 5).Draw(g.t, "operator") {
	case 0:
		return g.pick("comparison", "==", "!=", ">", "<", ">=", "<="), false
	case 1:
		return g.pick("comparison", "==", "!=", ">", "<", ">=", "<=") + " bool", false
	case 2:
		return g.pick("set", "or", "and", "unless", "or"), true
	}
	return g.pick("arithmetic", "+", "-", "*", "/", "/", "/", "%", "^", "atan2"), false
}

// alike draws two vectors that have a chance to match: one frame around two
// things.
func (g grammar) alike(depth int) (lhs, rhs string) {
	a, b := g.overTime(depth-1), g.overTime(depth-1)
	if g.one(2, "selectors") {
		a, b = g.selector(""), g.selector("")
	}
	switch rapid.IntRange(0, 5).Draw(g.t, "frame") {
	case 0:
		return a, b
	case 3:
		by := []string{"(svc)", "(zone)", "(missing)", "(svc, zone)", "(inst, zone)"}
		return "sum by " + g.pick("by", by...) + " (" + a + ")", "min by " + g.pick("by", by...) + " (" + b + ")"
	case 1:
		by := g.labelList()
		return "sum by " + by + " (" + a + ")", "sum by " + by + " (" + b + ")"
	case 2:
		without := g.labelList()
		return "max without " + without + " (" + a + ")", "max without " + without + " (" + b + ")"
	}
	return "sum(" + a + ")", "sum(" + b + ")"
}

func (g grammar) binary(depth int) string {
	op, set := g.operator()
	switch {
	case !set && g.one(3, "scalar"):
		return g.vector(depth-1) + " " + op + " " + g.scalar()
	case !set && g.one(4, "scalar first"):
		return "(" + g.scalar() + ") " + op + " (" + g.vector(depth-1) + ")"
	}
	var lhs, rhs string
	if g.one(3, "any two") {
		lhs, rhs = g.vector(depth-1), g.vector(depth-1)
	} else {
		lhs, rhs = g.alike(depth)
	}
	return fmt.Sprintf("(%s) %s%s (%s)", lhs, op, g.matching(set), rhs)
}

// vector draws an instant vector.
func (g grammar) vector(depth int) string {
	if depth <= 0 {
		if g.one(2, "plain") {
			return "(" + g.selector("") + g.modifier() + ")"
		}
		return g.overTime(0)
	}
	switch rapid.IntRange(0, 9).Draw(g.t, "vector") {
	case 0, 1, 2:
		return g.aggregate(g.vector(depth - 1))
	case 3, 4, 5:
		return g.binary(depth)
	case 6, 7:
		return g.function(depth)
	}
	return g.overTime(depth)
}
