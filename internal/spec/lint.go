package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// The codes of findings: queries that are valid and most often a mistake. A
// dashboard's variable left over is none of them, because it is refused.
const (
	// LintOtherService is a selector of another service of the documents.
	LintOtherService = "other-service"
	// LintFixedWindow is a fixed range beside {{.window}}.
	LintFixedWindow = "fixed-window"
	// LintCounterWithoutRate is a counter whose lifetime value is read.
	LintCounterWithoutRate = "counter-without-rate"
	// LintLeSpelling is a bucket's bound of which servers store two spellings.
	LintLeSpelling = "le-spelling"
	// LintConstantTotal is a total that does not depend on what is measured.
	LintConstantTotal = "constant-total"
	// LintGoodEqualsTotal is an objective that is never missed.
	LintGoodEqualsTotal = "good-equals-total"
	// LintBadEqualsTotal is an objective that is never met.
	LintBadEqualsTotal = "bad-equals-total"
	// LintGoodIncludesMore is a good that selects all that its total does, and more.
	LintGoodIncludesMore = "good-includes-more"
	// LintBadIncludesMore is a bad that does.
	LintBadIncludesMore = "bad-includes-more"
	// LintOutsideTotal is a part that is no part of its total.
	LintOutsideTotal = "outside-total"
	// LintAllBuckets are all buckets of a histogram counted together.
	LintAllBuckets = "all-buckets"
	// LintInstantRate is irate over the window.
	LintInstantRate = "instant-rate"
	// LintNoRatio is a raw query that is no ratio.
	LintNoRatio = "no-ratio"
)

// lint looks at every query of the set that is not recorded.
func lint(set Set) []Note {
	l := linter{services: map[string]bool{}, seen: map[Query]bool{}, said: map[Note]bool{}}
	for _, svc := range set.Services {
		l.services[svc.Name] = true
	}
	for _, svc := range set.Services {
		for _, o := range svc.Objectives {
			for _, in := range o.Vantages() {
				l.indicator(svc.Name, o, in)
			}
		}
	}
	return l.notes
}

type linter struct {
	services map[string]bool
	notes    []Note
	// seen and said keep what several objectives or vantage points share from
	// being looked at, and said, more than once.
	seen map[Query]bool
	said map[Note]bool
}

// look is one query under the linter's eyes.
type look struct {
	part

	l       *linter
	service string
	o       Objective
	expr    parser.Expr
}

func (l *linter) indicator(service string, o Objective, in Indicator) {
	var looks []look
	for _, p := range in.parts() {
		if p.query.Recorded {
			continue
		}
		expr, err := parse(p.query.At(probeWindow))
		if err != nil {
			continue // Is a fault already.
		}
		looks = append(looks, look{part: p, l: l, service: service, o: o, expr: expr})
	}
	for _, k := range looks {
		// The same query elsewhere is the same finding.
		same := k.query
		same.Source = service
		if !l.seen[same] {
			l.seen[same] = true
			k.alone()
		}
	}
	if len(looks) == 2 {
		looks[1].beside(looks[0])
	}
}

// found notes a finding at the query.
func (k look) found(code, format string, args ...any) {
	n := Note{Pos: k.query.Pos, Lint: code, Text: fmt.Sprintf("SLO %q: %s "+format, slices.Concat([]any{k.o.SLO, k.name}, args)...)}
	if n.Pos == (Position{}) {
		n.Pos = k.o.Pos
	}
	if !k.l.said[n] {
		k.l.said[n] = true
		k.l.notes = append(k.l.notes, n)
	}
}

// alone looks at a query by itself.
func (k look) alone() {
	parser.Inspect(k.expr, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			k.otherService(n)
			k.bound(n)
			k.counter(n, path)
			k.buckets(n, path)
		case *parser.Call:
			k.instantRate(n)
		case *parser.MatrixSelector:
			k.fixed(n, path)
		case *parser.SubqueryExpr:
			k.fixed(n, path)
		}
		return nil
	})
	switch k.name {
	case "total":
		k.constant()
	case "raw":
		k.noRatio()
	}
}

// serviceLabels are labels whose value most often is the service that is
// measured; not those of who asks it, which name other services by design.
var serviceLabels = []string{
	"app", "app_kubernetes_io_instance", "app_kubernetes_io_name", "application", "container", "daemonset", "deployment",
	"destination_app", "destination_service_name", "destination_workload", "exported_job", "exported_service", "job",
	"k8s_app", "service", "service_name", "statefulset", "workload",
}

func (k look) otherService(vs *parser.VectorSelector) {
	var other *labels.Matcher
	for _, m := range vs.LabelMatchers {
		switch {
		case m.Type != labels.MatchEqual:
		case m.Value == k.service:
			return // Somewhere it names its own, e.g. as the one who asks.
		case slices.Contains(serviceLabels, m.Name) && k.l.services[m.Value]:
			other = m
		}
	}
	if other != nil {
		k.found(LintOtherService, "selects %s, which is another service of these documents: what happens there would be "+
			"taken for %q: select its own series, or give the SLO to service %q", other, k.service, other.Value)
	}
}

var wholeBound = regexp.MustCompile(`^(\d+)(\.0)?$`)

func (k look) bound(vs *parser.VectorSelector) {
	for _, m := range vs.LabelMatchers {
		if m.Name != model.BucketLabel || m.Type != labels.MatchEqual {
			continue
		}
		if whole := wholeBound.FindStringSubmatch(m.Value); whole != nil {
			k.found(LintLeSpelling, `selects %s: Prometheus 3 stores that bucket as "%s.0", an older server as it is exposed, `+
				`and the other spelling selects nothing: write le=~"%s(\\.0)?"`, m, whole[1], whole[1])
		}
	}
}

// counterNames end what the conventions name counters. A recorded series, with
// its colons, has an end of its own.
var counterNames = regexp.MustCompile(`^[^:]*_(total|count|sum|bucket)$`)

// counterReaders read a counter as one, or do not read its value at all.
var counterReaders = []string{
	"rate", "increase", "irate", "resets", "changes", "count_over_time", "present_over_time", "absent_over_time",
	"absent", "timestamp", "start_timestamp",
}

func (k look) counter(vs *parser.VectorSelector, path []parser.Node) {
	name := metricName(vs)
	if !counterNames.MatchString(name) || isCondition(path, vs) || vs.BypassEmptyMatcherCheck {
		return
	}
	reader := "as it is"
	for _, n := range slices.Backward(path) {
		switch n := n.(type) {
		case *parser.MatrixSelector, *parser.ParenExpr, *parser.SubqueryExpr:
			continue
		case *parser.Call:
			reader = "by " + n.Func.Name
			if slices.Contains(counterReaders, n.Func.Name) {
				return
			}
		case *parser.AggregateExpr:
			reader = "by " + n.Op.String()
			if n.Op == parser.COUNT || n.Op == parser.GROUP {
				return
			}
		}
		break
	}
	k.found(LintCounterWithoutRate, "reads %s %s, and its name is a counter's: the value of a counter is of its whole lifetime, and falls "+
		"at each restart: write increase(…[{{.window}}]) or rate(…[{{.window}}])", name, reader)
}

func metricName(vs *parser.VectorSelector) string {
	for _, m := range vs.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return vs.Name
}

// isCondition reports whether a node only decides which series are kept.
func isCondition(path []parser.Node, n parser.Node) bool {
	for i, p := range path {
		child := n
		if i+1 < len(path) {
			child = path[i+1]
		}
		if b, ok := p.(*parser.BinaryExpr); ok && (b.Op == parser.LAND || b.Op == parser.LUNLESS) && child == parser.Node(b.RHS) {
			return true
		}
	}
	return false
}

// fixed finds a range that stays what it is when the window changes. Inside of
// a subquery over the window it is how each point is measured.
func (k look) fixed(n parser.Expr, path []parser.Node) {
	length := rangeOf(n)
	if length == "" || !k.query.HasWindow() || usesWindow(n) || isCondition(path, n) {
		return
	}
	for _, p := range path {
		if s, ok := p.(*parser.SubqueryExpr); ok && (s.Range == probeWindow || s.RangeExpr != nil) {
			return
		}
	}
	k.found(LintFixedWindow, "reads the fixed range [%s] beside {{.window}}, so over any other window two spans are compared: "+
		"write [{{.window}}] in its place", length)
}

// rangeOf is the fixed range of a node; "" where it is the window, or computed.
func rangeOf(n parser.Expr) string {
	switch n := n.(type) {
	case *parser.MatrixSelector:
		if n.Range != probeWindow && n.RangeExpr == nil {
			return FormatDuration(n.Range)
		}
	case *parser.SubqueryExpr:
		if n.Range != probeWindow && n.RangeExpr == nil {
			return FormatDuration(n.Range) + ":"
		}
	}
	return ""
}

// shortExpr is PromQL for people, with the window as the document has it.
func shortExpr(e parser.Expr) string {
	return shorten(strings.ReplaceAll(e.String(), FormatDuration(probeWindow), "{{.window}}"))
}
