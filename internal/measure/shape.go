package measure

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
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

// Key is the expression written in one way, with stars for the values of
// Labels, and the labels behind it.
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
	stars := make([]*labels.Matcher, len(p.labels))
	for i, name := range p.labels {
		stars[i] = &labels.Matcher{Type: labels.MatchEqual, Name: name, Value: "*"}
	}
	replaceMatchers(tree, stars)
	s := &Shape{key: tree.String(), labels: p.labels}
	if len(p.labels) > 0 {
		s.key += " {" + strings.Join(p.labels, ",") + "}"
	}
	return s, p.values, p.reason
}

// replaceMatchers puts other matchers, sorted by name, in the place of those
// with the same name, and sorts the labels in lists, whose order says nothing.
func replaceMatchers(tree parser.Expr, by []*labels.Matcher) {
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			for i, m := range n.LabelMatchers {
				if j, ok := slices.BinarySearchFunc(by, m.Name, compareName); ok {
					n.LabelMatchers[i] = by[j]
				}
			}
		case *parser.AggregateExpr:
			slices.Sort(n.Grouping)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				slices.Sort(n.VectorMatching.MatchingLabels)
			}
		}
		return nil
	})
}

func compareName(m *labels.Matcher, name string) int { return strings.Compare(m.Name, name) }
