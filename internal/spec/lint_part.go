package spec

import (
	"regexp"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// familyEnd is what the series of one histogram or summary differ in.
var familyEnd = regexp.MustCompile(`_(bucket|count|sum|total)$`)

func family(vs *parser.VectorSelector) string { return familyEnd.ReplaceAllString(metricName(vs), "") }

// outside finds a part that cannot lie in its total: both are of one metric, and a
// label has one value here and another there.
func (k look) outside(total look) {
	whole := vectorSelectors(total.expr)
	for _, vs := range vectorSelectors(k.expr) {
		i := slices.IndexFunc(whole, func(w *parser.VectorSelector) bool { return family(w) == family(vs) && family(vs) != "" })
		if i < 0 {
			continue
		}
		if mine, its := contradiction(vs, whole[i]); mine != nil {
			k.found(LintOutsideTotal, "selects %s, and total %s of the same metric: what it counts is no part of that total, "+
				"so the ratio is of two different things: select the same in both", mine, its)
			return
		}
	}
}

// contradiction is a label that two selectors want to be different values.
func contradiction(a, b *parser.VectorSelector) (mine, its *labels.Matcher) {
	for _, m := range a.LabelMatchers {
		if m.Type != labels.MatchEqual || m.Name == model.MetricNameLabel || m.Name == model.BucketLabel {
			continue
		}
		for _, n := range b.LabelMatchers {
			if n.Name == m.Name && n.Type == labels.MatchEqual && n.Value != m.Value {
				return m, n
			}
		}
	}
	return nil, nil
}

// buckets finds the buckets of a histogram counted all together: each event is
// in every bucket above it.
func (k look) buckets(vs *parser.VectorSelector, path []parser.Node) {
	if familyEnd.FindString(metricName(vs)) != "_bucket" || vs.BypassEmptyMatcherCheck ||
		slices.ContainsFunc(vs.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == model.BucketLabel }) {
		return
	}
	for _, n := range path {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			if slices.Contains(n.Grouping, model.BucketLabel) != n.Without {
				return
			}
		case *parser.Call:
			if n.Func.Name == "histogram_quantile" {
				return
			}
		}
	}
	k.found(LintAllBuckets, "counts every bucket of %s together, in which each event stands many times: "+
		`select one, e.g. le="+Inf", or the metric's _count`, metricName(vs))
}

// instantRate finds irate over the window: it looks at two samples, however
// long the window is.
func (k look) instantRate(e *parser.Call) {
	if ms, ok := e.Args[0].(*parser.MatrixSelector); ok && e.Func.Name == "irate" && ms.Range == probeWindow {
		k.found(LintInstantRate, "reads the last two samples alone by irate, whatever the window: write rate")
	}
}

// noRatio finds a raw query that provably counts something.
func (k look) noRatio() {
	if u := unitOf(k.expr); u == perSecond || u == events {
		k.found(LintNoRatio, "counts events and is no ratio, so it means nothing as a share: divide it by a total, "+
			"or better give good or bad, and total")
	}
}
