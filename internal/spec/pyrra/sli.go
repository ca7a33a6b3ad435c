package pyrra

import (
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

const nativeText = "latencyNative needs native histograms, which this version does not measure: " +
	"use latency with a classic histogram (success with le, and total), " +
	"or write an OpenSLO raw ratio with histogram_fraction"

// indicator reads the one indicator of an objective, with its groups.
func (p place) indicator(in indicator) (spec.Indicator, []string) {
	const at = "spec.indicator"
	var kinds []string
	for _, k := range []string{"ratio", "latency", "latencyNative", "bool_gauge"} {
		if p.doc.Has(at + "." + k) {
			kinds = append(kinds, k)
		}
	}
	switch {
	case p.doc.Has(at + ".latencyNative"):
		p.fault(at+".latencyNative", nativeText)
	case len(kinds) > 1:
		p.fault(at, "has %s: give one of them", strings.Join(kinds, " and "))
	case len(kinds) == 0 && !p.quiet:
		p.fault(at, "has no indicator: give ratio, latency or bool_gauge")
	case in.Ratio != nil:
		return p.ratio(at+".ratio", *in.Ratio)
	case in.Latency != nil:
		return p.latency(at+".latency", *in.Latency)
	case in.BoolGauge != nil:
		return p.boolGauge(at+".bool_gauge", *in.BoolGauge)
	}
	return spec.Indicator{}, nil
}

func (p place) ratio(at string, m ratio) (spec.Indicator, []string) {
	groups := p.grouping(at+".grouping", m.Grouping)
	bad := p.selector(at+".errors.metric", m.Errors.Metric)
	total := p.selector(at+".total.metric", m.Total.Metric)
	if bad.same(total) {
		p.fault(at+".errors.metric", "is the same metric as total, so every event would be bad")
	}
	return spec.Indicator{
		Bad: bad.over("increase", groups), Total: total.over("increase", groups), AbsentBadZero: true,
	}, groups
}

func (p place) latency(at string, m latency) (spec.Indicator, []string) {
	groups := p.grouping(at+".grouping", m.Grouping)
	good := p.selector(at+".success.metric", m.Success.Metric)
	total := p.selector(at+".total.metric", m.Total.Metric)
	if good.vs != nil && !oneBucket(good.vs) {
		p.fault(good.path, `needs the one bucket that is fast enough, as le="<seconds>": without it every bucket would be counted`)
	}
	if total.vs != nil && strings.HasSuffix(total.vs.Name, "_bucket") && !oneBucket(total.vs) {
		p.fault(total.path, `counts every bucket together: give the metric's _count, or the bucket le="+Inf"`)
	}
	if good.same(total) {
		p.fault(at+".success.metric", "is the same metric as total, so every event would be good")
	}
	return spec.Indicator{Good: good.over("increase", groups), Total: total.over("increase", groups)}, groups
}

// oneBucket reports whether the selector names one bucket of a classic histogram.
func oneBucket(vs *parser.VectorSelector) bool {
	for _, m := range vs.LabelMatchers {
		if m.Name == labels.BucketLabel && m.Type == labels.MatchEqual {
			_, err := strconv.ParseFloat(m.Value, 64)
			return err == nil
		}
	}
	return false
}

// boolGauge keeps the counts: the sum of ones and zeros is the number of good
// samples, so that their ratio is the mean of the gauge and still says on how
// much it rests.
func (p place) boolGauge(at string, m boolGauge) (spec.Indicator, []string) {
	groups := p.grouping(at+".grouping", m.Grouping)
	gauge := p.selector(at+".metric", m.Metric)
	return spec.Indicator{Good: gauge.over("sum_over_time", groups), Total: gauge.over("count_over_time", groups)}, groups
}

// selector is one of Pyrra's metrics, with the place where it stands. Without
// vs it is a fault already.
type selector struct {
	place

	path string
	vs   *parser.VectorSelector
}

// selector reads a metric. Pyrra takes name and labels of it and adds the rest.
func (p place) selector(path, text string) selector {
	s := selector{place: p, path: path}
	switch {
	case !p.doc.Has(path) || text == "" && p.quiet: // A fault already.
		return s
	case strings.TrimSpace(text) == "":
		p.fault(path, `is empty: give a metric with its labels, e.g. http_requests_total{job="api"}`)
		return s
	case strings.Contains(text, "{{"):
		p.fault(path, "has a placeholder: give the bare metric with its labels, the range is added")
		return s
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		p.fault(path, "is not valid PromQL: %s", err)
		return s
	}
	switch vs, ok := expr.(*parser.VectorSelector); {
	case !ok:
		p.fault(path, "is no plain selector: give the bare metric with its labels, function and range are added")
	case timed(vs):
		p.fault(path, "has a time of its own, which Pyrra leaves out: remove offset and @")
	default:
		s.vs = vs
	}
	return s
}

func timed(vs *parser.VectorSelector) bool {
	return vs.OriginalOffset != 0 || vs.OriginalOffsetExpr != nil || vs.Timestamp != nil || vs.StartOrEnd != 0
}

func (s selector) same(other selector) bool {
	return s.vs != nil && other.vs != nil && s.vs.String() == other.vs.String()
}

// over is the sum of a function over the window, for each group.
func (s selector) over(function string, groups []string) *spec.Query {
	q := &spec.Query{Pos: s.doc.Positions().At(s.path)}
	if s.vs == nil {
		return q
	}
	by := ""
	if len(groups) > 0 {
		by = " by (" + strings.Join(quoted(groups), ", ") + ") "
	}
	q.Expr = "sum" + by + "(" + function + "(" + s.vs.String() + "[{{.window}}]))"
	if err := q.Check(); err != nil {
		s.fault(s.path, "%s", err)
	}
	return q
}

// quoted puts the labels in quotes that PromQL cannot read without.
func quoted(groups []string) []string {
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = g
		if !model.LegacyValidation.IsValidLabelName(g) {
			out[i] = strconv.Quote(g)
		}
	}
	return out
}
