package measure

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Sample is one series of an answer at one instant.
type Sample struct {
	Metric model.Metric
	Value  float64
	At     time.Time
	// Histogram: the sample is a native histogram, and Value says nothing.
	Histogram bool
}

// promQL accepts what documents may hold, see spec.Query.
var promQL = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

// Shape is what expressions that differ only in the values of equality
// matchers have in common. It never changes; two are the same if their keys
// are.
type Shape struct {
	key    string
	labels []string
}

// Key is the expression in one way of writing it, with the values of Labels
// taken out.
func (s *Shape) Key() string { return s.key }

// Labels are the labels whose values may be taken out, sorted. An expression
// with none cannot be grouped.
func (s *Shape) Labels() []string { return s.labels }

// Analyse parses PromQL (the window filled in) and returns its shape and the
// values of Shape.Labels in their order. An expression that cannot be grouped
// has a shape without labels, and the reason for people: a label counts only
// if it is proved that a query for many of its values gives, series by series,
// what queries for one value each give.
func Analyse(expr string) (shape *Shape, values []string, reason string) {
	tree, err := promQL.ParseExpr(expr)
	if err != nil {
		return &Shape{key: "not parsed: " + expr}, nil, "not-parsed"
	}
	p := prove(tree)
	w := writer{varying: p.labels, matchers: make([]string, len(p.labels))}
	for i := range w.matchers {
		w.matchers[i] = "=*" // No PromQL, so it cannot be taken for any.
	}
	w.expr(tree)
	return &Shape{key: string(w.out), labels: p.labels}, p.values, p.reason
}
