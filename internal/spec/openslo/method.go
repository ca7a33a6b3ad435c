package openslo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// pointStep is how far the points of a threshold lie apart. It has to be a
// number of its own, because {{.window}} is the only placeholder: about as far
// as scrapes are apart, so that hardly a sample is left out and none is counted
// often, ten points in a judge window of 5m and two in its last fifth. A window
// of 30d has 86,400, which a server's limit of samples bears for a query of some
// hundred series.
const pointStep = 30 * time.Second

// Budgeting methods.
const (
	occurrences     = "Occurrences"
	timeslices      = "Timeslices"
	ratioTimeslices = "RatioTimeslices"
)

// operators are OpenSLO's words for PromQL's comparisons.
var operators = map[string]string{"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}

// method is what a budgeting method and an objective make of an indicator.
type method struct {
	name string
	// slice is the length of a time slice, and sliceTarget the ratio at which it
	// is good; only Timeslices has the latter, and Occurrences neither.
	slice       time.Duration
	sliceTarget float64
	// op and value are what a threshold is compared with.
	op    string
	value float64
}

// method reads how one objective counts.
func (s *sloReader) method(at, name string, o objectiveDoc) method {
	m := method{name: name, op: operators[o.Op]}
	if o.Value != nil {
		m.value = *o.Value
	}
	switch name {
	case timeslices, ratioTimeslices:
		m.slice = s.slice(at+".timeSliceWindow", o.TimeSliceWindow)
	case occurrences, "":
		s.refuse(at+".timeSliceWindow", "belongs to Timeslices and RatioTimeslices: remove it, or change budgetingMethod")
		s.refuse(at+".timeSliceTarget", "belongs to Timeslices: remove it, or change budgetingMethod")
		return m
	default:
		s.fault("spec.budgetingMethod", "unknown method %q: use Occurrences, Timeslices or RatioTimeslices", name)
		return m
	}
	switch {
	case name == ratioTimeslices:
		s.refuse(at+".timeSliceTarget", "belongs to Timeslices: RatioTimeslices takes the mean of the slices' ratios, so remove it")
	case o.TimeSliceTarget == nil:
		s.require(at+".timeSliceTarget", "is required with Timeslices: the ratio at which a slice is good, e.g. 0.95")
	case !(*o.TimeSliceTarget > 0 && *o.TimeSliceTarget <= 1):
		s.fault(at+".timeSliceTarget", "is %v, want a share above 0, at most 1, e.g. 0.95", *o.TimeSliceTarget)
	default:
		m.sliceTarget = *o.TimeSliceTarget
	}
	return m
}

// slice reads the length of a time slice. A number counts minutes.
func (s *sloReader) slice(path string, v spec.Value) time.Duration {
	text, ok := v.Scalar()
	if !ok {
		s.require(path, "is required with Timeslices and RatioTimeslices: the length of a slice, e.g. 1m")
		return 0
	}
	var length time.Duration
	if minutes, err := strconv.ParseFloat(text, 64); err == nil && minutes > 0 && minutes <= 366*24*60 {
		length = time.Duration(minutes * float64(time.Minute))
	} else {
		length = s.duration(path, text)
	}
	if length > 0 && (length < pointStep || length%time.Second != 0) {
		s.fault(path, "is %s, want whole seconds and at least %s", text, spec.FormatDuration(pointStep))
	}
	return length
}

// refuse is a fault where the key stands, require one where it does not.
func (s *sloReader) refuse(path, text string) {
	if s.doc.Has(path) {
		s.fault(path, "%s", text)
	}
}

func (s *sloReader) require(path, text string) {
	if !s.doc.Has(path) && !s.quiet {
		s.fault(path, "%s", text)
	}
}

// operands checks what a threshold is compared with, and that a ratio is
// compared with its target alone.
func (s *sloReader) operands(at string, o objectiveDoc, in indicator) {
	if in.threshold == nil {
		// Nothing but "above the target" can be meant by gt and gte.
		if o.Op != "gt" && o.Op != "gte" {
			s.refuse(at+".op", "op is for thresholdMetric; a ratio is to be above its target: remove it")
		}
		s.refuse(at+".value", "value is for thresholdMetric; a ratio has only its target: remove it")
		return
	}
	s.require(at+".op", "is required with thresholdMetric: lt, lte, gt or gte")
	s.require(at+".value", "is required with thresholdMetric: the bound, in the unit of the query")
	if operators[o.Op] == "" && o.Op != "" {
		s.fault(at+".op", "%q is no operator: want lt, lte, gt or gte", o.Op)
	}
	if o.Value != nil && operators[o.Op] != "" {
		s.reading.Notes = append(s.reading.Notes, spec.Note{
			Pos: s.doc.Positions().At(at + ".value"), Lint: "unit",
			Text: fmt.Sprintf("SLO %q: good is %s %v in the query's own unit, which OpenSLO does not state: look at %s",
				s.doc.Name, operators[o.Op], *o.Value, metrics(*in.threshold)),
		})
	}
}

// metrics names what a query selects.
func metrics(q spec.Query) string {
	selectors, err := q.Selectors()
	if err != nil || len(selectors) == 0 {
		return "it" // What is wrong is a fault already.
	}
	names := make([]string, 0, len(selectors))
	for _, sel := range selectors {
		name, _, _ := strings.Cut(sel, "{")
		if name == "" {
			name = sel
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// noComposite refuses an objective with an indicator of its own.
func (s *sloReader) noComposite(at string) {
	for _, key := range []string{"indicator", "indicatorRef", "compositeWeight"} {
		s.refuse(at+"."+key, "composite SLOs are not supported by this version: give each indicator its own SLO")
	}
}

// measured is what is asked over a window.
func (in indicator) measured(m method) spec.Indicator {
	switch {
	case in.threshold == nil && m.slice == 0:
		return in.ratio
	case in.threshold != nil && m.op == "", in.threshold == nil && len(in.ratio.Queries()) == 0:
		return spec.Indicator{} // A fault already.
	}
	var expr string
	switch {
	case m.slice == 0:
		expr = share(in.point(m), "{{.window}}", pointStep)
	case m.name == timeslices:
		expr = share(known(in.over(m))+" >= bool "+number(m.sliceTarget), "{{.window}}", m.slice)
	default:
		expr = share(known(in.over(m)), "{{.window}}", m.slice)
	}
	from := in.threshold
	if from == nil {
		from = &in.ratio.Queries()[0]
	}
	return spec.Indicator{Raw: &spec.Query{Expr: expr, Source: from.Source, Pos: from.Pos}, RawSuccess: true}
}

// over is the share of good events in one slice.
func (in indicator) over(m method) string {
	at := func(q *spec.Query) string { return grouped(q.At(m.slice)) }
	r := in.ratio
	switch {
	case in.threshold != nil:
		return share(in.point(m), spec.FormatDuration(m.slice), min(pointStep, m.slice))
	case r.Raw != nil && r.RawSuccess:
		return r.Raw.At(m.slice)
	case r.Raw != nil:
		return "1 - " + at(r.Raw)
	case r.Total == nil || r.Good == nil && r.Bad == nil:
		return "" // A fault already.
	case r.Good != nil:
		return at(r.Good) + " / " + at(r.Total)
	}
	// No bad event at all most often means no series of them.
	return "1 - (" + at(r.Bad) + " or " + at(r.Total) + " * 0) / " + at(r.Total)
}

// point is 1 where the threshold's value is good and 0 where it is not.
func (in indicator) point(m method) string {
	return known(in.threshold.Expr) + " " + m.op + " bool " + number(m.value)
}

// share is the mean over the points of a span.
func share(expr, span string, step time.Duration) string {
	return "avg_over_time((" + expr + ")[" + span + ":" + spec.FormatDuration(step) + "])"
}

// known leaves out what is NaN, as 0/0 is and a quantile of nothing: no
// traffic is neither good nor bad, and NaN compared with a bound would be bad.
func known(expr string) string { return "(" + grouped(expr) + " >= -Inf)" }

// grouped puts an expression in parentheses, which a comment must not swallow.
func grouped(expr string) string {
	if strings.Contains(expr, "#") {
		return "(" + expr + "\n)"
	}
	return "(" + expr + ")"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
