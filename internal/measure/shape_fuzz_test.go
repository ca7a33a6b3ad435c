package measure_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

var fuzzSeeds = []string{
	`sum(rate(http_requests_total{service="shop",code=~"5.."}[5m])) / sum(rate(http_requests_total{service="shop"}[5m]))`,
	`1 - sum by (le) (rate(d_bucket{le="0.3",s="x"}[5m] offset -1h)) / on (le) group_left (q) sum(rate(d_count{s="x"}[5m] @ 17.25))`,
	`histogram_quantile(0.99, sum by ("l.e", le) ({"d.bucket", "a.b"="x\n\"", le!=""}))`,
	`max(label_replace(timestamp(a{s="x"}), "selector", "0", "", "") or label_join(timestamp(b{s="x"}), "j", "-", "a", "b"))`,
	`min_over_time((a{s="x"} > bool 1)[1h30m:37s] @ end() offset 1d) unless ignoring (i) -b{s="x"} ^ 2`,
	`a{s="x"} + ignoring (q) fill_left (-1) fill_right (NaN) b{s="x"} atan2 c{s="x"}`,
	`quantile without (i, "without") (0.5, rate(a{s="x"}[5m] anchored)) and on () rate(a{s="x"}[min_of(5m, 1h) + 30s] smoothed)`,
	`sum(a{s="x",inf="1",nan="2",without="3",bool="4",by="5",offset="6"}) or vector(0)`,
	`count_values without () ("v", topk(3, a{s="x"})) or sort_by_label(absent(a{s="x"}), "s")`,
	`{__name__=~"a|b",s="x"} == 1e300 or {"quoted name",s="x"} != +Inf or a{s="x"} > -NaN or a{s="x"} < 0x1F or a{s="x"} % 5m`,
	`predict_linear(a{s="\xff",z="日本"}[300], 3600) * hour() + scalar(info(a{s="x"}, {z="y"}))`,
	`--a{s="x"} - -(-1) ^ -2`, `a{s="x"} offset (1m + 30s) [10m:1m]`, `sum by (without, "inf") (a{s="x"})`, `sum(`, ``, `(((a{s="x"})))[5m:]`,
	`rate(a{s="x"}[0.0006]) + max_over_time(a{s="x"}[1.2345678:0.0001] offset -0.0001)`,
	"rate(a{s='x'}[5m:step()] offset -(step() * 2)) # why", `a{s="x",s="x"}`, `a{s="x"} and a{} or {s="x",s=~"y|"}`, `a:b{s="x"} * on (c:d) a{s="x"}`,
}

// Whatever is given: no panic, and what is rendered parses, and is the
// expression that was given but for the rules.
func FuzzGroup(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s, "w")
	}
	f.Fuzz(func(t *testing.T, expr, other string) {
		shape, values, reason := measure.Analyse(expr)
		if shape.Key() == "" || len(values) != len(shape.Labels()) || (reason == "") != (len(values) > 0) || !slices.IsSorted(shape.Labels()) {
			t.Fatalf("key %q, labels %q, values %q, reason %q", shape.Key(), shape.Labels(), values, reason)
		}
		if reason == "not-parsed" || reason == "not-printable" {
			return
		}
		was := mustParse(t, expr)
		if reason != "" {
			wantSame(t, was, mustParse(t, shape.Key()), nil)
			if _, err := measure.Group(expr, [][]string{values}); err == nil {
				t.Fatal("was grouped")
			}
			return
		}
		for i, name := range shape.Labels() {
			member := slices.Clone(values)
			member[i] = other
			g, err := measure.Group(expr, [][]string{member, values})
			if err != nil {
				if other != "" && other != values[i] && other == strings.ToValidUTF8(other, "") {
					t.Fatal(err)
				}
				continue
			}
			wantSame(t, was, mustParse(t, g.Expr), []string{name})
			series := []measure.Sample{{Metric: model.Metric{model.LabelName(name): model.LabelValue(other)}}, {}, {}}
			if parts := g.Split(series); len(parts) != 2 || len(parts[0]) != 1 || len(parts[1]) != 0 {
				t.Fatalf("dealt out as %v", parts)
			}
			single, err := measure.Group(expr, [][]string{values})
			if err != nil || single.Expr != expr {
				t.Fatalf("alone: %q, %v", single.Expr, err)
			}
		}
	})
}

func mustParse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})
	e, err := p.ParseExpr(expr)
	if err != nil {
		t.Fatalf("does not parse: %s: %v", expr, err)
	}
	return e
}

func wantSame(t *testing.T, was, is parser.Expr, varying []string) {
	t.Helper()
	if err := sameTree(was, is, varying); err != nil {
		t.Fatalf("%v\nwas: %s\nis:  %s", err, was, is)
	}
}

// sameTree compares two expressions node by node. The second is the grouped
// one: it keeps the varying labels apart.
func sameTree(was, is parser.Expr, varying []string) error {
	if reflect.TypeOf(was) != reflect.TypeOf(is) {
		return fmt.Errorf("%T, was %T", is, was)
	}
	if err := sameNode(was, is, varying); err != nil {
		return err
	}
	a, b := parser.Children(was), parser.Children(is)
	if len(a) != len(b) {
		return fmt.Errorf("%d children, were %d: %s", len(b), len(a), is)
	}
	for i := range a {
		if err := sameTree(a[i].(parser.Expr), b[i].(parser.Expr), varying); err != nil {
			return err
		}
	}
	return nil
}

func sameNode(was, is parser.Expr, varying []string) error {
	var a, b []any
	switch w := was.(type) {
	case *parser.AggregateExpr:
		i := is.(*parser.AggregateExpr)
		want := plus(w.Grouping, varying)
		if w.Without {
			want = slices.DeleteFunc(plus(w.Grouping, nil), func(s string) bool { return slices.Contains(varying, s) })
		}
		a, b = []any{w.Op, w.Without, want}, []any{i.Op, i.Without, plus(i.Grouping, nil)}
	case *parser.BinaryExpr:
		i := is.(*parser.BinaryExpr)
		a, b = []any{w.Op, w.ReturnBool, w.VectorMatching == nil}, []any{i.Op, i.ReturnBool, i.VectorMatching == nil}
		if x, y := w.VectorMatching, i.VectorMatching; x != nil && y != nil {
			want := plus(x.MatchingLabels, nil)
			if x.On {
				want = plus(x.MatchingLabels, varying)
			}
			a = append(a, x.On, x.Card, want, plus(x.Include, nil), text(x.FillValues.LHS), text(x.FillValues.RHS))
			b = append(b, y.On, y.Card, plus(y.MatchingLabels, nil), plus(y.Include, nil), text(y.FillValues.LHS), text(y.FillValues.RHS))
		}
	case *parser.VectorSelector:
		i := is.(*parser.VectorSelector)
		a = []any{w.Name, w.OriginalOffset.Milliseconds(), text(w.OriginalOffsetExpr), text(w.Timestamp), w.StartOrEnd, w.Anchored, w.Smoothed, matchersOf(w, varying)}
		b = []any{i.Name, i.OriginalOffset.Milliseconds(), text(i.OriginalOffsetExpr), text(i.Timestamp), i.StartOrEnd, i.Anchored, i.Smoothed, matchersOf(i, varying)}
	case *parser.MatrixSelector:
		i := is.(*parser.MatrixSelector)
		a, b = []any{w.Range.Milliseconds(), text(w.RangeExpr)}, []any{i.Range.Milliseconds(), text(i.RangeExpr)}
	case *parser.SubqueryExpr:
		i := is.(*parser.SubqueryExpr)
		a = []any{w.Range.Milliseconds(), text(w.RangeExpr), w.Step.Milliseconds(), text(w.StepExpr), w.OriginalOffset.Milliseconds(), text(w.OriginalOffsetExpr), text(w.Timestamp), w.StartOrEnd}
		b = []any{i.Range.Milliseconds(), text(i.RangeExpr), i.Step.Milliseconds(), text(i.StepExpr), i.OriginalOffset.Milliseconds(), text(i.OriginalOffsetExpr), text(i.Timestamp), i.StartOrEnd}
	case *parser.Call:
		a, b = []any{w.Func.Name}, []any{is.(*parser.Call).Func.Name}
	case *parser.UnaryExpr:
		a, b = []any{w.Op}, []any{is.(*parser.UnaryExpr).Op}
	case *parser.NumberLiteral, *parser.StringLiteral:
		a, b = []any{was.String()}, []any{is.String()}
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("got %v, want %v", b, a)
	}
	return nil
}

// text is what stands behind a pointer.
func text(p any) string {
	switch v := reflect.ValueOf(p); {
	case v.IsNil():
		return "none"
	case v.Type() == reflect.TypeFor[*parser.DurationExpr]():
		return v.Interface().(*parser.DurationExpr).String()
	default:
		return fmt.Sprint(v.Elem())
	}
}

func plus(names, more []string) []string {
	out := slices.Concat(names, more)
	slices.Sort(out)
	return append([]string{}, slices.Compact(out)...)
}

// matchersOf are all matchers; a varying label must be an equality, or an
// alternation of two.
func matchersOf(vs *parser.VectorSelector, varying []string) []string {
	var out []string
	for _, m := range vs.LabelMatchers {
		if slices.Contains(varying, m.Name) && (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp && len(m.SetMatches()) == 2) {
			out = append(out, "varying "+m.Name)
			continue
		}
		out = append(out, m.String())
	}
	slices.Sort(out)
	return out
}
