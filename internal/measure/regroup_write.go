package measure

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// writer writes PromQL in one way: labels and matchers sorted, spaces where
// the parser's own printer has them. Parentheses are in the tree, so nothing
// binds otherwise than it did.
type writer struct {
	out []byte
	// varying are labels, sorted, and matchers what stands behind each of them
	// in a selector instead of its equality.
	varying, matchers []string
	// regroup keeps the varying labels apart wherever series meet.
	regroup bool
}

func (w *writer) text(s string) { w.out = append(w.out, s...) }

func (w *writer) expr(e parser.Expr) {
	switch e := e.(type) {
	case *parser.ParenExpr:
		w.text("(")
		w.expr(e.Expr)
		w.text(")")
	case *parser.UnaryExpr:
		w.text(e.Op.String())
		w.expr(e.Expr)
	case *parser.AggregateExpr:
		w.aggregate(e)
	case *parser.BinaryExpr:
		w.binary(e)
	case *parser.Call:
		w.text(e.Func.Name)
		w.list(e.Args...)
	case *parser.VectorSelector:
		w.selector(e)
		w.modifiers(atModifier{e.Timestamp, e.StartOrEnd}, e, offsetModifier{e.OriginalOffset, e.OriginalOffsetExpr})
	case *parser.MatrixSelector:
		w.matrix(e)
	case *parser.SubqueryExpr:
		w.subquery(e)
	default:
		w.text(e.String())
	}
}

func (w *writer) list(es ...parser.Expr) {
	w.text("(")
	for i, e := range es {
		if i > 0 {
			w.text(", ")
		}
		w.expr(e)
	}
	w.text(")")
}

func (w *writer) aggregate(e *parser.AggregateExpr) {
	w.text(e.Op.String())
	names := slices.Clone(e.Grouping)
	switch {
	case e.Without:
		if w.regroup {
			names = slices.DeleteFunc(names, w.varies)
		}
		w.names(" without", names)
		w.text(" ")
	default:
		if names = w.with(names); len(names) > 0 {
			w.names(" by", names)
			w.text(" ")
		}
	}
	if e.Param != nil {
		w.list(e.Param, e.Expr)
		return
	}
	w.list(e.Expr)
}

func (w *writer) varies(name string) bool {
	_, ok := slices.BinarySearch(w.varying, name)
	return ok
}

// with adds the varying labels to labels by which series are told apart.
func (w *writer) with(names []string) []string {
	if w.regroup {
		names = append(names, w.varying...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (w *writer) names(word string, names []string) {
	slices.Sort(names)
	w.text(word)
	w.text(" (")
	for i, name := range slices.Compact(names) {
		if i > 0 {
			w.text(", ")
		}
		if noLabelInList(name) {
			w.out = strconv.AppendQuote(w.out, name)
		} else {
			w.name(name)
		}
	}
	w.text(")")
}

// name writes a label, in quotes if it is none of the classic ones.
func (w *writer) name(name string) {
	if model.LegacyValidation.IsValidLabelName(name) {
		w.text(name)
		return
	}
	w.out = strconv.AppendQuote(w.out, name)
}

// noLabelInList reports whether the word means something else in by (…).
func noLabelInList(name string) bool {
	return strings.EqualFold(name, "without") || strings.EqualFold(name, "inf") || strings.EqualFold(name, "nan")
}

func (w *writer) binary(e *parser.BinaryExpr) {
	w.expr(e.LHS)
	w.text(" ")
	w.text(e.Op.String())
	if e.ReturnBool {
		w.text(" bool")
	}
	if e.VectorMatching != nil {
		w.matching(e.VectorMatching)
	}
	w.text(" ")
	w.expr(e.RHS)
}

func (w *writer) matching(m *parser.VectorMatching) {
	many := m.Card == parser.CardManyToOne || m.Card == parser.CardOneToMany
	switch {
	case m.On:
		w.names(" on", w.with(slices.Clone(m.MatchingLabels)))
	case len(m.MatchingLabels) > 0 || many:
		w.names(" ignoring", slices.Clone(m.MatchingLabels))
	}
	switch m.Card {
	case parser.CardManyToOne:
		w.names(" group_left", slices.Clone(m.Include))
	case parser.CardOneToMany:
		w.names(" group_right", slices.Clone(m.Include))
	}
	w.fill(" fill_left", m.FillValues.LHS)
	w.fill(" fill_right", m.FillValues.RHS)
}

func (w *writer) fill(word string, v *float64) {
	if v == nil {
		return
	}
	w.text(word)
	w.text(" (")
	w.out = strconv.AppendFloat(w.out, *v, 'f', -1, 64)
	w.text(")")
}

func (w *writer) selector(e *parser.VectorSelector) {
	w.text(e.Name)
	var few [8]*labels.Matcher
	ms := append(few[:0], e.LabelMatchers...)
	if e.Name != "" {
		ms = ms[:len(ms)-1] // The parser puts the name last.
	}
	if len(ms) == 0 {
		return
	}
	slices.SortFunc(ms, compareMatchers)
	w.text("{")
	for i, m := range ms {
		if i > 0 {
			w.text(",")
		}
		w.name(m.Name)
		if j, ok := slices.BinarySearch(w.varying, m.Name); ok {
			w.text(w.matchers[j])
			continue
		}
		w.text(m.Type.String())
		w.out = strconv.AppendQuote(w.out, m.Value)
	}
	w.text("}")
}

func compareMatchers(a, b *labels.Matcher) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	if a.Type != b.Type {
		return int(a.Type) - int(b.Type)
	}
	return strings.Compare(a.Value, b.Value)
}

// atModifier and offsetModifier are the modifiers that selectors and subqueries have.
type atModifier struct {
	timestamp  *int64
	startOrEnd parser.ItemType
}

type offsetModifier struct {
	fixed time.Duration
	expr  *parser.DurationExpr
}

// modifiers writes them in the order in which the parser's printer does.
func (w *writer) modifiers(at atModifier, vs *parser.VectorSelector, off offsetModifier) {
	switch {
	case at.timestamp != nil:
		w.text(" @ ")
		w.out = strconv.AppendFloat(w.out, float64(*at.timestamp)/1000, 'f', 3, 64)
	case at.startOrEnd == parser.START:
		w.text(" @ start()")
	case at.startOrEnd == parser.END:
		w.text(" @ end()")
	}
	if vs != nil {
		w.edges(vs)
	}
	switch {
	case off.expr != nil:
		w.text(" offset ")
		w.text(off.expr.String())
	case off.fixed > 0:
		w.text(" offset ")
		w.text(model.Duration(off.fixed).String())
	case off.fixed < 0:
		w.text(" offset -")
		w.text(model.Duration(-off.fixed).String())
	}
}

func (w *writer) edges(vs *parser.VectorSelector) {
	switch {
	case vs.Anchored:
		w.text(" anchored")
	case vs.Smoothed:
		w.text(" smoothed")
	}
}

func (w *writer) duration(d time.Duration, e *parser.DurationExpr) {
	if e != nil {
		w.text(e.String())
		return
	}
	w.text(model.Duration(d).String())
}

func (w *writer) matrix(e *parser.MatrixSelector) {
	vs, ok := e.VectorSelector.(*parser.VectorSelector)
	if !ok {
		w.text(e.String())
		return
	}
	w.selector(vs)
	w.text("[")
	w.duration(e.Range, e.RangeExpr)
	w.text("]")
	w.edges(vs)
	w.modifiers(atModifier{vs.Timestamp, vs.StartOrEnd}, nil, offsetModifier{vs.OriginalOffset, vs.OriginalOffsetExpr})
}

func (w *writer) subquery(e *parser.SubqueryExpr) {
	w.expr(e.Expr)
	w.text("[")
	w.duration(e.Range, e.RangeExpr)
	w.text(":")
	if e.StepExpr != nil || e.Step != 0 {
		w.duration(e.Step, e.StepExpr)
	}
	w.text("]")
	w.modifiers(atModifier{e.Timestamp, e.StartOrEnd}, nil, offsetModifier{e.OriginalOffset, e.OriginalOffsetExpr})
}
