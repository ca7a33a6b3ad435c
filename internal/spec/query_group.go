package spec

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Grouping returns the labels, sorted, that tell the series of the query's
// value apart, as far as its outermost aggregations prove them: sum by (host)
// gives host. Nil: one series without labels, or nothing that can be proved.
func (q Query) Grouping() []string {
	if q.Counter || q.Recorded {
		return nil
	}
	expr, err := parse(q.At(probeWindow))
	if err != nil {
		return nil
	}
	return labelsOf(expr).names
}

// outer is what an expression proves about the labels of its value.
type outer struct {
	// known: no series of the value has a label that is not among names.
	known bool
	names []string
	// without is the outermost aggregation when it names the labels to drop, so
	// that nobody can know which are left.
	without *parser.AggregateExpr
}

var noLabels = outer{known: true}

// labelled is an outer of these labels, sorted and each once. A metric's name is
// kept by some operations and dropped by others, so with it nothing is proved.
func labelled(names ...string) outer {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case len(sorted) == 0:
		return noLabels
	case slices.Contains(sorted, model.MetricNameLabel):
		return outer{}
	}
	return outer{known: true, names: sorted}
}

func labelsOf(e parser.Expr) outer {
	if e.Type() == parser.ValueTypeScalar || e.Type() == parser.ValueTypeString {
		return noLabels
	}
	switch e := e.(type) {
	case *parser.ParenExpr:
		return labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return labelsOf(e.Expr)
	case *parser.SubqueryExpr:
		return labelsOf(e.Expr)
	case *parser.AggregateExpr:
		return labelsOfAggregate(e)
	case *parser.Call:
		return labelsOfCall(e)
	case *parser.BinaryExpr:
		return labelsOfBinary(e)
	}
	return outer{}
}

func labelsOfAggregate(e *parser.AggregateExpr) outer {
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return labelsOf(e.Expr) // They pick series and change no label.
	}
	if e.Without {
		return outer{without: e}
	}
	names := slices.Clone(e.Grouping)
	if e.Op == parser.COUNT_VALUES {
		label, ok := e.Param.(*parser.StringLiteral)
		if !ok {
			return outer{}
		}
		names = append(names, label.Val)
	}
	return labelled(names...)
}

// relabelling are the functions whose value has other labels than their
// argument, in a way that is not worth following.
var relabelling = []string{"absent", "absent_over_time", "label_replace", "label_join", "info", "histogram_quantiles"}

func labelsOfCall(e *parser.Call) outer {
	switch name := e.Func.Name; {
	case slices.Contains(relabelling, name):
		return outer{}
	case name == "vector" || len(e.Args) == 0:
		return noLabels // E.g. hour() is hour(vector(time())).
	case name == "histogram_quantile" || name == "histogram_fraction":
		return labelsOf(e.Args[len(e.Args)-1]).but("le")
	}
	for _, arg := range e.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			return labelsOf(arg)
		}
	}
	return outer{}
}

func labelsOfBinary(e *parser.BinaryExpr) outer {
	left, right := labelsOf(e.LHS), labelsOf(e.RHS)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar:
		return left
	case e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return left
	case e.Op == parser.LOR:
		return left.or(right)
	}
	if e.Op.IsComparisonOperator() && !e.ReturnBool && !left.known && !e.VectorMatching.On {
		return outer{without: left.without} // The left side keeps all that it has, its metric's name too.
	}
	return left.matched(right, *e.VectorMatching)
}

// or is the union: of its series, so of their labels.
func (o outer) or(p outer) outer {
	switch {
	case o.known && p.known:
		return labelled(slices.Concat(o.names, p.names)...)
	case o.without != nil:
		return o
	case p.without != nil:
		return p
	}
	return outer{}
}

// matched is an operation between two vectors: its value has the labels of the
// left side, or of the side that may have several series for one of the other.
func (o outer) matched(p outer, m parser.VectorMatching) outer {
	filled := m.FillValues.LHS != nil || m.FillValues.RHS != nil
	switch {
	case m.Card == parser.CardManyToOne && !filled:
		return o.and(m.Include...)
	case m.Card == parser.CardOneToMany && !filled:
		return p.and(m.Include...)
	case m.Card != parser.CardOneToOne:
		return outer{}
	case m.On:
		return labelled(m.MatchingLabels...)
	case filled:
		return o.or(p).but(m.MatchingLabels...)
	}
	return o.common(p).but(m.MatchingLabels...)
}

// common is what both sides have: a pair has equal labels, so none of them is
// missing on the other side.
func (o outer) common(p outer) outer {
	switch {
	case o.known && p.known:
		return labelled(slices.DeleteFunc(slices.Clone(o.names), func(n string) bool {
			return !slices.Contains(p.names, n)
		})...)
	case o.known:
		return o
	case p.known:
		return p
	}
	return o.or(p)
}

func (o outer) and(names ...string) outer {
	if !o.known {
		return o
	}
	return labelled(slices.Concat(o.names, names)...)
}

func (o outer) but(names ...string) outer {
	if !o.known {
		return o
	}
	return labelled(slices.DeleteFunc(slices.Clone(o.names), func(n string) bool {
		return slices.Contains(names, n)
	})...)
}
