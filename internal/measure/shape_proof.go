package measure

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// labelSet is a set of candidate labels, by index.
type labelSet uint64

const maxCandidates = 64

// prover finds the labels of which this can be shown, from the selectors up:
// when their matchers take many values, and each aggregation and each match
// of two vectors keeps them apart, the series that carry one value are those
// that the expression gives for that value alone, but for that label. Labels
// are independent of each other, so any of them may be left as they are.
//
// What two series have to do with each other is the whole question. A step
// that looks at one series at a time is safe, a step that compares series of
// one value with each other is safe, anything else is refused.
type prover struct {
	names  []string
	values []string
	// refused are candidates which the proof fails for, and why the first.
	refused labelSet
	why     string
	// reason is why the whole expression is refused.
	reason string
}

// proof is what came of it.
type proof struct {
	labels, values []string
	// kept are the labels that the answer for a single value carries.
	kept   []bool
	reason string
}

func prove(tree parser.Expr) proof {
	if tree.Type() != parser.ValueTypeVector {
		return proof{reason: "not-a-vector"}
	}
	var p prover
	p.candidates(tree)
	v := p.vector(tree)
	if p.reason == "" && !printable(tree) {
		p.refuse("not-printable")
	}
	if p.reason != "" {
		return proof{reason: p.reason}
	}
	var out proof
	for i, name := range p.names {
		if p.refused.has(i) {
			continue
		}
		out.labels = append(out.labels, name)
		out.values = append(out.values, p.values[i])
		out.kept = append(out.kept, v.kept.has(i))
	}
	if len(out.labels) == 0 {
		out.reason = p.why
		if out.reason == "" {
			out.reason = "no-equality"
		}
	}
	return out
}

// printable reports whether the parser's printer writes what the parser reads:
// it stumbles over a range below a millisecond, and over by ("inf").
func printable(tree parser.Expr) bool {
	text := tree.String()
	again, err := promQL.ParseExpr(text)
	return err == nil && again.String() == text
}

func (s labelSet) has(i int) bool { return s&(1<<i) != 0 }

// set gives the candidates among names.
func (p *prover) set(names ...string) labelSet {
	var s labelSet
	for _, name := range names {
		if i, ok := slices.BinarySearch(p.names, name); ok {
			s |= 1 << i
		}
	}
	return s
}

// refuse gives the whole expression up; the first reason counts.
func (p *prover) refuse(reason string) vector {
	if p.reason == "" {
		p.reason = reason
	}
	return vector{}
}

// exclude gives labels up.
func (p *prover) exclude(s labelSet, why string) {
	if s != 0 && p.why == "" {
		p.why = why
	}
	p.refused |= s
}

// candidates are the labels with one equality, and the same one, in every
// selector.
func (p *prover) candidates(tree parser.Expr) {
	first := true
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		vs, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		if first {
			p.takeFrom(vs.LabelMatchers)
			first = false
			return nil
		}
		p.keepThoseOf(vs.LabelMatchers)
		return nil
	})
}

func (p *prover) takeFrom(ms []*labels.Matcher) {
	for _, m := range ms {
		if len(p.names) < maxCandidates && mayVary(m) && only(ms, m) {
			p.names = append(p.names, m.Name)
		}
	}
	slices.Sort(p.names)
	p.values = make([]string, len(p.names))
	for _, m := range ms {
		if i, ok := slices.BinarySearch(p.names, m.Name); ok {
			p.values[i] = m.Value
		}
	}
}

func (p *prover) keepThoseOf(ms []*labels.Matcher) {
	kept := 0
	for i, name := range p.names {
		for _, m := range ms {
			if m.Name == name && m.Type == labels.MatchEqual && m.Value == p.values[i] && only(ms, m) {
				p.names[kept], p.values[kept] = name, p.values[i]
				kept++
				break
			}
		}
	}
	p.names, p.values = p.names[:kept], p.values[:kept]
}

// mayVary reports whether an alternation of values could stand for the
// matcher's value. Labels with two underscores in front are the database's
// own, which functions drop as they please.
func mayVary(m *labels.Matcher) bool {
	return m.Type == labels.MatchEqual && m.Value != "" && utf8.ValidString(m.Value) &&
		!strings.HasPrefix(m.Name, "__") && !slices.Contains(notInLists, strings.ToLower(m.Name))
}

// notInLists mean something else in by (…), where the printer does not quote
// them.
var notInLists = []string{"without", "inf", "nan"}

func only(ms []*labels.Matcher, m *labels.Matcher) bool {
	for _, o := range ms {
		if o != m && o.Name == m.Name {
			return false
		}
	}
	return true
}

// vector is what is known of an instant vector.
type vector struct {
	// kept are the candidates that every series carries in the answer for a
	// single value. Those that are not kept no series carries.
	kept labelSet
	// bare: it is one series without labels at most, which VictoriaMetrics
	// takes for a scalar.
	bare bool
}

func (p *prover) all() labelSet { return 1<<len(p.names) - 1 }

func (p *prover) vector(e parser.Expr) vector {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return p.vector(e.Expr)
	case *parser.UnaryExpr:
		return p.vector(e.Expr)
	case *parser.VectorSelector:
		return vector{kept: p.all()}
	case *parser.AggregateExpr:
		return p.aggregate(e)
	case *parser.BinaryExpr:
		return p.binary(e)
	case *parser.Call:
		return p.call(e)
	}
	return p.refuse("unknown-expression")
}

// matrix is the argument of a function over time.
func (p *prover) matrix(e parser.Expr) vector {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return p.matrix(e.Expr)
	case *parser.MatrixSelector:
		return vector{kept: p.all()}
	case *parser.SubqueryExpr:
		return p.vector(e.Expr)
	}
	return p.refuse("unknown-expression")
}

// scalar refuses a number that depends on series.
func (p *prover) scalar(e parser.Expr) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && !constants[c.Func.Name] {
			p.refuse(kebab(c.Func.Name))
		}
		return nil
	})
}

// aggregate: the grouped query aggregates by the varying labels besides, so
// series of two values never meet.
func (p *prover) aggregate(e *parser.AggregateExpr) vector {
	if !aggregators[e.Op] {
		return p.refuse(kebab(e.Op.String()))
	}
	if e.Param != nil {
		p.scalar(e.Param)
	}
	in, named := p.vector(e.Expr), p.set(e.Grouping...)
	if e.Without {
		return vector{kept: in.kept &^ named}
	}
	return vector{kept: in.kept & named, bare: len(e.Grouping) == 0}
}

func (p *prover) binary(e *parser.BinaryExpr) vector {
	if !e.Op.IsSetOperator() && !operators[e.Op] {
		return p.refuse("operator")
	}
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		p.scalar(e.LHS)
		return p.vector(e.RHS)
	case e.RHS.Type() == parser.ValueTypeScalar:
		p.scalar(e.RHS)
		return p.vector(e.LHS)
	}
	if e.VectorMatching.Card == parser.CardManyToOne || e.VectorMatching.Card == parser.CardOneToMany {
		return p.refuse("group-left")
	}
	lhs, rhs := p.vector(e.LHS), p.vector(e.RHS)
	if e.Op.IsSetOperator() {
		if p.reason == "vector" {
			p.reason = "set-operator-with-vector"
		}
		return p.setOperation(e, lhs, rhs)
	}
	return p.oneToOne(e.VectorMatching, lhs, rhs)
}

// match refuses what the two sides do not agree on: a label that one side
// carries and the other does not keeps them from matching in the single
// query, yet both have it in the grouped one.
func (p *prover) match(m *parser.VectorMatching, lhs, rhs vector) {
	named, differ := p.set(m.MatchingLabels...), lhs.kept^rhs.kept
	if m.On {
		p.exclude(differ&named, "label-on-one-side")
		return
	}
	p.exclude(named, "label-ignored")
	p.exclude(differ, "label-on-one-side")
	if lhs.bare != rhs.bare {
		p.refuse("labels-on-one-side")
	}
}

// oneToOne: the grouped query matches on the varying labels besides.
func (p *prover) oneToOne(m *parser.VectorMatching, lhs, rhs vector) vector {
	p.match(m, lhs, rhs)
	if m.On {
		return vector{kept: lhs.kept & rhs.kept & p.set(m.MatchingLabels...), bare: len(m.MatchingLabels) == 0}
	}
	return vector{kept: lhs.kept, bare: lhs.bare}
}

// setOperation gives series of the left side as they are, and of the right
// side with "or".
func (p *prover) setOperation(e *parser.BinaryExpr, lhs, rhs vector) vector {
	p.match(e.VectorMatching, lhs, rhs)
	if e.Op == parser.LOR {
		p.exclude(lhs.kept^rhs.kept, "label-on-one-side")
		return vector{kept: lhs.kept & rhs.kept, bare: lhs.bare && rhs.bare}
	}
	return lhs
}
