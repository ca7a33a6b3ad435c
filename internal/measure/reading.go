package measure

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Reading is the answer to one expression at one instant: its series, or the
// reason why there is none.
type Reading struct {
	Series []Sample
	// Reason is empty when the source answered; no series is an answer.
	Reason Reason
	// Detail is the source's own words.
	Detail string
}

// value is the one number of a reading, or the reason why there is none.
type value struct {
	number float64
	reason Reason
	detail string
}

func (v value) known() bool { return v.reason == "" }

func unknownValue(reason Reason, format string, args ...any) value {
	return value{reason: reason, detail: fmt.Sprintf(format, args...)}
}

// one demands exactly one finite number.
func (r Reading) one() value {
	switch {
	case r.Reason != "":
		return value{reason: r.Reason, detail: r.Detail}
	case len(r.Series) == 0:
		return value{reason: NoData, detail: "returned nothing"}
	case len(r.Series) > 1:
		return unknownValue(SeveralSeries, "returned %d series, want 1: aggregate with sum()", len(r.Series))
	}
	return number(r.Series[0])
}

// maxGroups bounds how many groups one objective may have: more is most often
// a label such as a path or a user, which nobody meant to promise anything to.
const maxGroups = 1000

// groupValues are the numbers of groups by their names.
type groupValues map[string]value

func (g groupValues) of(name string) value {
	if v, ok := g[name]; ok {
		return v
	}
	return value{reason: NoData, detail: "returned nothing for this group"}
}

// grouped gives a number for each group.
func (r Reading) grouped(by []string) (groupValues, value) {
	switch {
	case r.Reason != "":
		return nil, value{reason: r.Reason, detail: r.Detail}
	case len(r.Series) == 0:
		return nil, value{reason: NoData, detail: "returned nothing"}
	case len(r.Series) > maxGroups:
		return nil, unknownValue(SeveralSeries, "returned %d groups, want %d at most", len(r.Series), maxGroups)
	}
	out := make(groupValues, len(r.Series))
	for _, s := range r.Series {
		name := GroupName(by, func(label string) string { return string(s.Metric[model.LabelName(label)]) })
		if _, twice := out[name]; twice {
			return nil, unknownValue(SeveralSeries, "returned two series for the group %s", name)
		}
		out[name] = number(s)
	}
	return out, value{}
}

// GroupName writes the labels of a group as PromQL has them, e.g. host="a".
func GroupName(by []string, value func(label string) string) string {
	var out []byte
	for i, label := range by {
		if i > 0 {
			out = append(out, ", "...)
		}
		if model.LegacyValidation.IsValidLabelName(label) {
			out = append(out, label...)
		} else {
			out = strconv.AppendQuote(out, label)
		}
		out = append(out, '=')
		out = strconv.AppendQuote(out, value(label))
	}
	return string(out)
}

// number refuses what no count and no ratio can be. Subnormal numbers are no
// counts either: dividing by one overflows.
func number(s Sample) value {
	const smallestNormal = 0x1p-1022
	v := s.Value
	switch {
	case s.Histogram:
		return unknownValue(NotAVector, "returned a native histogram, want one number")
	case math.IsNaN(v) || math.IsInf(v, 0) || (v != 0 && math.Abs(v) < smallestNormal):
		return unknownValue(NotFinite, "returned %g", v)
	}
	return value{number: v}
}

// latestTime is the last second of the year 9999; nothing later is a time.
const latestTime = 253402300799

// instant reads a value as the time of a sample.
func (v value) instant() (time.Time, value) {
	switch {
	case v.reason == NoData:
		return time.Time{}, unknownValue(NoData, "no sample of the series is fresh enough to be seen")
	case !v.known():
		return time.Time{}, v
	case v.number <= 0 || v.number > latestTime:
		return time.Time{}, unknownValue(NotFinite, "%s is no time", formatNumber(v.number))
	}
	return time.UnixMilli(int64(math.Round(v.number * 1000))).UTC(), value{}
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// GroupLabels reads back what GroupName wrote; nil for anything else.
func GroupLabels(name string) map[string]string {
	if name == "" {
		return nil
	}
	ls, err := parser.NewParser(parser.Options{}).ParseMetric("{" + name + "}")
	if err != nil {
		return nil
	}
	return ls.Map()
}
