package spec_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// grammar draws PromQL from these leaves.
type grammar struct {
	leaves []string
	// scaled: every constant is 0, every operation keeps its value in proportion
	// to the leaves, and none picks series by a bound that rounding may cross.
	scaled bool
}

func (g grammar) draw(t *rapid.T, depth int) string {
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	next := func() string { return g.draw(t, depth-1) }
	if depth == 0 {
		return pick(g.leaves...)
	}
	by := func() string {
		return pick("", "by ()", "by (x)", "by (y)", "by (y, x)", "by (x, none)", "without (x)", "without ()")
	}
	kinds, pairs := []string{"aggregate", "pair", "matched", "set", "scalar", "call"}, []string{"+", "-", "*", "/"}
	if !g.scaled {
		kinds, pairs = append(kinds, "topk"), append(pairs, ">", ">= bool")
	}
	switch pick(kinds...) {
	case "aggregate":
		return pick("sum", "min", "max", "avg", pick("sum", "count")) + " " + by() + " (" + next() + ")"
	case "pair":
		return "(" + next() + ") " + pick(pairs...) + " (" + next() + ")"
	case "matched":
		return "(" + next() + ") " + pick("+", "-", "/") + pick("", " on (x)", " on (x, y)", " ignoring (y)", " on ()") +
			pick("", "", " fill (0)") + " (" + next() + ")"
	case "set":
		return "(" + next() + ") " + pick("or", "and", "unless") + pick("", "", " on (x)", " on ()") + " (" + pick("vector(0)", next()) + ")"
	case "scalar":
		if g.scaled {
			return pick("0 + ", "-1 * ", "-") + "(" + next() + ")" + pick("", " + vector(0)", " - 0")
		}
		return pick("2 * ", "-", "1 <= bool ") + "(" + next() + ")" + pick("", " > 3", " ^ 2")
	case "call":
		return pick("abs(%)", "clamp_min(%, 0)", "sort(%)", "vector(scalar(%))", "label_replace(%, 'x', 'new', '', '')", "(%)",
			"sum_over_time((%)[{{.window}}:5m])", "absent(%)", "sum by (x, y) (%) * on (x) group_left (y) sum by (x) (%)")
	case "topk":
		return pick("topk", "bottomk") + pick("", " by (x)") + " (2, " + next() + ")"
	}
	return pick(g.leaves...)
}

func (g grammar) query(t *rapid.T) spec.Query {
	expr := g.draw(t, 4)
	for strings.Contains(expr, "%") {
		expr = strings.Replace(expr, "%", g.draw(t, 2), 1)
	}
	return spec.Query{Expr: expr}
}

// TestGroupingHolds: no series that the engine returns has a label that the
// grouping does not name.
func TestGroupingHolds(t *testing.T) {
	e := newEngine(t)
	g := grammar{leaves: []string{
		"rate(a[{{.window}}])", "increase(b[{{.window}}])", "c", "a", "vector(1)",
		"sum by (x) (c)", "sum by (x, y) (a)", "sum by (y) (b)", "max(a)",
	}}
	proved, series := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		q := g.query(t)
		names := q.Grouping()
		if names == nil {
			return
		}
		v, err := e.ask(t.Context(), q.At(10*time.Minute))
		if err != nil {
			return
		}
		proved++
		for _, s := range v {
			series++
			s.Metric.Range(func(l labels.Label) {
				if !slices.Contains(names, l.Name) {
					t.Fatalf("%s is grouped by %v, and has a series %s", q.Expr, names, s.Metric)
				}
			})
		}
	})
	if proved < 5 || series < 10 {
		t.Errorf("%d queries with %d series prove little", proved, series)
	}
}

// TestPerSecondIsIncreaseByWindow: what is a rate per second becomes a number of
// events when it is multiplied by the window, as increase gives it.
func TestPerSecondIsIncreaseByWindow(t *testing.T) {
	e := newEngine(t)
	g := grammar{scaled: true, leaves: []string{
		"rate(a[{{.window}}])", "rate(b[{{.window}}])", "sum by (x) (rate(c[{{.window}}]))", "sum(rate(a[{{.window}}]))",
		"max by (x, y) (rate(a[{{.window}}]))", "sum(rate(b[{{.window}}]))", "vector(0)", "increase(b[{{.window}}])",
	}}
	proved := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			proved += holdsPerSecond(t, e, g.query(t))
		}
	})
	if proved < 5 {
		t.Errorf("%d values prove little", proved)
	}
}

// holdsPerSecond returns how many values were compared.
func holdsPerSecond(t *rapid.T, e engine, q spec.Query) (compared int) {
	const window = 10 * time.Minute
	if strings.Contains(q.Expr, "absent") || !q.PerSecond() {
		return 0 // absent() is no value of its argument's.
	}
	rates, err := e.ask(t.Context(), q.At(window))
	if err != nil {
		return 0
	}
	events, err := e.ask(t.Context(), strings.ReplaceAll(q.At(window), "rate(", "increase("))
	if err != nil || len(rates) != len(events) {
		t.Fatalf("%s: %d rates, %d increases, %v", q.Expr, len(rates), len(events), err)
	}
	for _, r := range rates {
		i := slices.IndexFunc(events, func(s promql.Sample) bool { return labels.Equal(s.Metric, r.Metric) })
		if i < 0 {
			t.Fatalf("%s: no increase of %s", q.Expr, r.Metric)
		}
		compared++
		want := r.F * window.Seconds()
		if got := events[i].F; math.Abs(got-want) > 1e-6*(1+math.Abs(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%s: %v per second is not %v events in %s", q.Expr, r.F, got, window)
		}
	}
	return compared
}
