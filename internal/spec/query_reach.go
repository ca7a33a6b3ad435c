package spec

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// staleAfter is how far back Prometheus looks for the last sample of a series.
const staleAfter = 5 * time.Minute

// Reach is how far before the start of a window the query looks, 0 or more: by
// an offset, by a range inside a subquery, by a range of its own, or for the
// sample that an anchored range begins with. What a recorded series was made of
// is not known.
func (q Query) Reach(window time.Duration) time.Duration {
	expr, err := parse(q.At(window))
	if err != nil {
		return 0
	}
	most := time.Duration(0)
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		vs, ok := n.(*parser.VectorSelector)
		if !ok || vs.BypassEmptyMatcherCheck {
			return nil
		}
		back := vs.OriginalOffset
		if vs.Anchored || vs.Smoothed {
			back += staleAfter
		}
		for _, p := range path {
			switch p := p.(type) {
			case *parser.MatrixSelector:
				back += p.Range
			case *parser.SubqueryExpr:
				back += p.Range + p.OriginalOffset
			}
		}
		most = max(most, back-window)
		return nil
	})
	return most
}
