package spec

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// constant finds a total that has a value whatever is measured: with it,
// missing data would look like traffic, or like none.
func (k look) constant() {
	if isConstant(k.expr) {
		k.found(LintConstantTotal, "has one value whatever is measured, so the error ratio would be no share of anything: count the events")
		return
	}
	for _, side := range alternatives(k.expr) {
		if isConstant(side) {
			k.found(LintConstantTotal, "falls back to %s where nothing is measured, so missing data would pass for a measurement: remove it",
				shortExpr(side))
		}
	}
}

// alternatives are the operands of the outermost or.
func alternatives(e parser.Expr) []parser.Expr {
	e = bare(e)
	if a, ok := e.(*parser.AggregateExpr); ok && slices.Contains(keepingAggregations, a.Op) {
		return alternatives(a.Expr)
	}
	if b, ok := e.(*parser.BinaryExpr); ok && b.Op == parser.LOR {
		return append(alternatives(b.LHS), alternatives(b.RHS)...)
	}
	return []parser.Expr{e}
}

// bare is the expression without parentheses around it.
func bare(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// isConstant reports whether no sample has a part in the value, though one may
// have a part in whether there is one.
func isConstant(e parser.Expr) bool {
	switch e := bare(e).(type) {
	case *parser.NumberLiteral:
		return true
	case *parser.UnaryExpr:
		return isConstant(e.Expr)
	case *parser.SubqueryExpr:
		return isConstant(e.Expr)
	case *parser.AggregateExpr:
		return e.Op == parser.GROUP || slices.Contains(idempotent, e.Op) && isConstant(e.Expr)
	case *parser.Call:
		return isConstantCall(e)
	case *parser.BinaryExpr:
		return isConstantBinary(e)
	}
	return false
}

// idempotent are the aggregations of equal values that give that value.
var idempotent = []parser.ItemType{parser.AVG, parser.MIN, parser.MAX}

func isConstantCall(e *parser.Call) bool {
	switch e.Func.Name {
	case "present_over_time", "absent", "absent_over_time":
		return true
	case "count_over_time", "sum_over_time", "avg_over_time", "max_over_time", "min_over_time", "last_over_time", "vector", "scalar",
		"abs", "ceil", "floor", "round":
		return isConstant(e.Args[0]) && len(vectorSelectors(e.Args[0])) == 0
	}
	return len(e.Args) == 0
}

func isConstantBinary(e *parser.BinaryExpr) bool {
	if e.Op == parser.MUL && (isZero(e.LHS) || isZero(e.RHS)) {
		return true
	}
	return isConstant(e.LHS) && isConstant(e.RHS)
}

func isZero(e parser.Expr) bool {
	n, ok := bare(e).(*parser.NumberLiteral)
	return ok && n.Val == 0
}

// beside compares good or bad with its total.
func (k look) beside(total look) {
	if total.name != "total" {
		return
	}
	mine, its := canonicalExpr(k.expr), canonicalExpr(total.expr)
	switch {
	case mine == its && k.name == "good":
		k.found(LintGoodEqualsTotal, "asks the same as total, so the objective is never missed: select only the good events")
	case mine == its:
		k.found(LintBadEqualsTotal, "asks the same as total, so every event is a bad one: select only the bad events")
	default:
		k.includes(total)
		k.outside(total)
	}
}

// includes finds a part that counts all that total does and more: the same
// counts of the same metric, with fewer of its matchers.
func (k look) includes(total look) {
	mine, its := countedSelector(k.expr), countedSelector(total.expr)
	if mine == nil || its == nil || metricName(mine) == "" || metricName(mine) != metricName(its) {
		return
	}
	var left []string
	for _, m := range its.LabelMatchers {
		if !slices.ContainsFunc(mine.LabelMatchers, func(n *labels.Matcher) bool { return n.String() == m.String() }) {
			left = append(left, m.String())
		}
	}
	if len(left) == 0 || len(mine.LabelMatchers)+len(left) != len(its.LabelMatchers) || !sameCounts(k.expr, mine, total.expr, its) {
		return
	}
	code := LintBadIncludesMore
	if k.name == "good" {
		code = LintGoodIncludesMore
	}
	slices.Sort(left)
	k.found(code, "selects all that total does and more, because only total has %s: give it the same matchers, and those that make it %s",
		strings.Join(left, ", "), k.name)
}

// countedSelector is the one selector of an expression that does nothing but
// count: with more series it never gives less.
func countedSelector(e parser.Expr) *parser.VectorSelector {
	switch e := bare(e).(type) {
	case *parser.AggregateExpr:
		if e.Op == parser.SUM {
			return countedSelector(e.Expr)
		}
	case *parser.Call:
		if slices.Contains(countingFunctions, e.Func.Name) || e.Func.Name == "count_over_time" {
			return countedSelector(e.Args[0])
		}
	case *parser.MatrixSelector:
		return countedSelector(e.VectorSelector)
	case *parser.VectorSelector:
		return e
	}
	return nil
}

// sameCounts reports whether two expressions differ in the matchers of these
// selectors alone.
func sameCounts(a parser.Expr, of *parser.VectorSelector, b parser.Expr, with *parser.VectorSelector) bool {
	kept, other := of.LabelMatchers, with.LabelMatchers
	of.LabelMatchers, with.LabelMatchers = nil, nil
	same := canonicalExpr(a) == canonicalExpr(b)
	of.LabelMatchers, with.LabelMatchers = kept, other
	return same
}

// canonicalExpr writes an expression so that what means the same reads the
// same: labels and matchers sorted, no needless parentheses. It sorts in place.
func canonicalExpr(e parser.Expr) string {
	e = bare(e)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			n.Expr = bare(n.Expr)
			slices.Sort(n.Grouping)
		case *parser.Call:
			for i := range n.Args {
				n.Args[i] = bare(n.Args[i])
			}
		case *parser.SubqueryExpr:
			n.Expr = bare(n.Expr)
		case *parser.ParenExpr:
			n.Expr = bare(n.Expr)
		case *parser.VectorSelector:
			n.Name = ""
			slices.SortFunc(n.LabelMatchers, func(a, b *labels.Matcher) int { return strings.Compare(a.String(), b.String()) })
		}
		return nil
	})
	return e.String()
}
