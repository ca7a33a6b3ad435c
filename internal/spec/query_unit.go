package spec

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// PerSecond reports whether the query's value is provably a rate per second, as
// that of sum(rate(…)) is. Such a value is a number of events only when it is
// multiplied by the window.
func (q Query) PerSecond() bool { return q.unit() == perSecond }

// unit is what a value counts, as far as it can be proved.
type unit int8

const (
	unproved unit = iota
	// anyUnit is a constant: added to a value, it counts what the value does.
	anyUnit
	// events are increases over the window.
	events
	// perSecond is a rate of them.
	perSecond
	// share is a number of no unit: a ratio, or 0 and 1.
	share
)

func (q Query) unit() unit {
	switch {
	case q.Counter:
		return events
	case q.Recorded:
		return share
	}
	expr, err := parse(q.At(probeWindow))
	if err != nil {
		return unproved
	}
	return unitOf(expr)
}

func unitOf(e parser.Expr) unit {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		return anyUnit
	case *parser.ParenExpr:
		return unitOf(e.Expr)
	case *parser.UnaryExpr:
		return unitOf(e.Expr)
	case *parser.SubqueryExpr:
		return unitOf(e.Expr)
	case *parser.AggregateExpr:
		if slices.Contains(keepingAggregations, e.Op) {
			return unitOf(e.Expr)
		}
	case *parser.Call:
		return unitOfCall(e)
	case *parser.BinaryExpr:
		return unitOfBinary(e)
	}
	return unproved
}

// keepingAggregations are those whose value counts what their series count.
var keepingAggregations = []parser.ItemType{
	parser.SUM, parser.AVG, parser.MIN, parser.MAX, parser.QUANTILE,
	parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO,
}

// keepingFunctions are those whose value counts what their first argument does.
var keepingFunctions = []string{
	"abs", "ceil", "clamp", "clamp_max", "clamp_min", "floor", "round", "scalar", "vector",
	"sort", "sort_desc", "sort_by_label", "sort_by_label_desc", "label_join", "label_replace",
	"histogram_count",
}

// keepingOverTime do so over a subquery; over a selector they read what is
// stored, which may count anything.
var keepingOverTime = []string{"avg_over_time", "last_over_time", "max_over_time", "min_over_time"}

func unitOfCall(e *parser.Call) unit {
	switch name := e.Func.Name; {
	case name == "rate" || name == "irate":
		return perSecond
	case name == "increase":
		return events
	case name == "histogram_fraction":
		return share
	case slices.Contains(keepingFunctions, name), slices.Contains(keepingOverTime, name):
		return unitOf(e.Args[0])
	}
	return unproved
}

func unitOfBinary(e *parser.BinaryExpr) unit {
	left, right := unitOf(e.LHS), unitOf(e.RHS)
	switch {
	case e.Op.IsComparisonOperator() && e.ReturnBool:
		return share
	case e.Op.IsComparisonOperator() && e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.Op.IsComparisonOperator(), e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return left
	}
	switch e.Op {
	case parser.ADD, parser.SUB, parser.LOR:
		return left.plus(right)
	case parser.MUL:
		return left.times(right)
	case parser.DIV:
		return left.over(right)
	}
	return unproved
}

func (u unit) plus(v unit) unit {
	switch {
	case u == v || v == anyUnit:
		return u
	case u == anyUnit:
		return v
	}
	return unproved
}

// times: a constant factor may be a number of seconds, so it proves nothing.
func (u unit) times(v unit) unit {
	switch {
	case u == anyUnit && v == anyUnit:
		return anyUnit
	case u == anyUnit || v == anyUnit:
		return unproved
	case u == share:
		return v
	case v == share:
		return u
	}
	return unproved
}

func (u unit) over(v unit) unit {
	switch {
	case v == anyUnit:
		return u.times(v)
	case u == v && u != unproved:
		return share
	case v == share:
		return u
	}
	return unproved
}

// countingFunctions read a counter, and make up for its resets.
var countingFunctions = []string{"increase", "irate", "rate"}

// Counters returns the plain selectors, each once and sorted, that the query
// reads as counters over exactly its window, so that resets(selector[window])
// tells how often they started anew. A selector with an offset is none of them.
func (q Query) Counters() []string {
	expr, err := parse(q.At(probeWindow))
	if err != nil {
		return nil
	}
	var found []string
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		call, ok := n.(*parser.Call)
		if !ok || !slices.Contains(countingFunctions, call.Func.Name) || slices.ContainsFunc(path, isSubquery) {
			return nil
		}
		m, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok || m.Range != probeWindow || m.RangeExpr != nil {
			return nil
		}
		if vs, ok := m.VectorSelector.(*parser.VectorSelector); ok && isPlain(vs) {
			found = append(found, plain(vs))
		}
		return nil
	})
	slices.Sort(found)
	return slices.Compact(found)
}

func isSubquery(n parser.Node) bool {
	_, ok := n.(*parser.SubqueryExpr)
	return ok
}

// isPlain reports whether a selector reads the present, with no modifier.
func isPlain(vs *parser.VectorSelector) bool {
	return vs.OriginalOffset == 0 && vs.OriginalOffsetExpr == nil && vs.Timestamp == nil && vs.StartOrEnd == 0 &&
		!vs.Anchored && !vs.Smoothed
}

// plain writes a selector without its modifiers.
func plain(vs *parser.VectorSelector) string {
	bare := parser.VectorSelector{Name: vs.Name, LabelMatchers: vs.LabelMatchers}
	return bare.String()
}
