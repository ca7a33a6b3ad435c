package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// looks is in how many judge windows of the last day an objective must miss its
// target, and in which shares of a day they lie apart, before it counts as one
// that is never met.
const (
	looks    = 12
	lookedAt = 24 * time.Hour
)

// measure takes the judge window of every vantage point, and whether its own
// window is covered by data. The long windows themselves are not asked: they
// tell of the service, and cost most.
func (i *inspection) measure(ctx context.Context) {
	i.app.progress("measuring %s", count(len(i.points), "objective"))
	plans := measure.Compile(i.set.Services, nil)
	qs := queriesOf(i.points, plans, i.now, func(p vantagePoint, q measure.Query) bool {
		return q.Refused != "" || q.Covers() == p.o.Window || !q.ID.TotalOnly && q.ID.Window == p.o.JudgeWindow
	})
	i.judged, i.young = map[pointKey]measure.Measurement{}, map[pointKey]measure.Measurement{}
	for n, m := range i.fleet.Measure(ctx, qs) {
		key := pointKey{m.ID.Service, m.ID.Objective, m.ID.Vantage}
		if qs[n].Covers() > 0 {
			i.young[key] = m
		} else {
			i.judged[key] = m
		}
	}
}

// judge says what the measurements show, beside what is said of the selectors.
func (i *inspection) judge(ctx context.Context) {
	var missing []vantagePoint
	faults := map[string]bool{}
	for _, p := range i.points {
		m := i.judged[p.key()]
		switch {
		case m.Reason.SourceFault():
			// The same for all of its objectives.
			if key := p.src.Name + string(m.Reason); !faults[key] {
				faults[key] = true
				i.add(liveFinding{
					Severity: isError, Code: string(m.Reason), Source: p.src.Name, Text: m.Detail, Do: doAbout(string(m.Reason)),
				})
			}
			continue
		case !m.Known() && !i.has(p, codeNeverExisted, codeNeverMatched, codeStopped, codeLeSpelling):
			i.found(p, p.o.Pos, liveFinding{Severity: isError, Code: string(m.Reason), Text: m.Detail, Do: doAbout(string(m.Reason))})
		case m.Known():
			i.fresh(p, m)
			i.groups(p, m)
			if m.ErrorRatio > 1-p.o.Target {
				missing = append(missing, p)
			}
			i.covered(p)
		}
	}
	i.neverMet(ctx, missing)
}

// fresh looks at the age of the newest sample and at the number of events.
func (i *inspection) fresh(p vantagePoint, m measure.Measurement) {
	age := i.now.Sub(m.SampleAt)
	switch {
	case m.SampleAt.IsZero():
	case age > p.src.MaxSampleAge:
		i.found(p, p.o.Pos, liveFinding{
			Severity: isError, Code: "stale", Do: doAbout("stale"),
			Text: fmt.Sprintf("its newest sample is %s old, the limit is %s", age.Round(time.Second), spec.FormatDuration(p.src.MaxSampleAge)),
		})
	case age < -maxApart:
		i.found(p, p.o.Pos, liveFinding{
			Severity: isError, Code: string(measure.ClockSkew), Do: doAbout(string(measure.ClockSkew)),
			Text: fmt.Sprintf("its newest sample lies %s in the future", (-age).Round(time.Second)),
		})
	}
	if m.HasEvents && len(m.Groups) == 0 && m.Total < p.o.MinEvents {
		i.found(p, p.o.Pos, liveFinding{
			Severity: isWarning, Code: "low-traffic", Do: "a lower minEvents, or a longer judgeWindow, if it is so most of the day",
			Text: fmt.Sprintf("%.4g events in the judge window of %s, minEvents is %.4g: unknown while it is so",
				m.Total, spec.FormatDuration(p.o.JudgeWindow), p.o.MinEvents),
		})
	}
}

// groups says the first group that cannot be measured, and how many there are.
func (i *inspection) groups(p vantagePoint, m measure.Measurement) {
	var first measure.NamedGroup
	n := 0
	for _, g := range m.Groups {
		if g.Known() {
			continue
		}
		if n++; n == 1 {
			first = g
		}
	}
	if n > 0 {
		i.found(p, p.o.Pos, liveFinding{
			Severity: isWarning, Code: string(first.Reason), Do: doAbout(string(first.Reason)),
			Text: fmt.Sprintf("%d of %d groups cannot be measured, the first is %s: %s", n, len(m.Groups), first.Name, first.Detail),
		})
	}
}

// covered says how much of the SLO's own window holds data.
func (i *inspection) covered(p vantagePoint) {
	m, asked := i.young[p.key()]
	if !asked || m.Known() || m.Reason != measure.NoData || m.FirstAt.IsZero() || i.has(p, "window-beyond-retention") {
		return
	}
	have := i.now.Sub(m.FirstAt)
	if have <= 0 || have >= p.o.Window {
		return
	}
	i.found(p, p.o.Pos, liveFinding{
		Severity: isWarning, Code: "young-data", Do: "nothing, if the metric is young: its error budget is that of a shorter window until then",
		Text: fmt.Sprintf("window truncated to %s of %s: there are no older data", age(have), spec.FormatDuration(p.o.Window)),
	})
}

// neverMet looks at the last day of those that miss their target now.
func (i *inspection) neverMet(ctx context.Context, points []vantagePoint) {
	var qs []measure.Query
	for _, p := range points {
		qs = append(qs, i.lastDay(p)...)
	}
	if len(qs) == 0 {
		return
	}
	i.app.progress("looking at the last day of %s", count(len(points), "objective"))
	ratios := map[pointKey][]float64{}
	for _, m := range i.fleet.Measure(ctx, qs) {
		if m.Known() && !(m.HasEvents && m.Total == 0) {
			key := pointKey{m.ID.Service, m.ID.Objective, m.ID.Vantage}
			ratios[key] = append(ratios[key], m.ErrorRatio)
		}
	}
	for _, p := range points {
		seen := ratios[p.key()]
		if len(seen) < looks/2 || slices.Min(seen) <= 1-p.o.Target {
			continue
		}
		i.found(p, p.o.Pos, liveFinding{
			Severity: isError, Code: "never-met", Do: "look whether it measures what it should and the target is one that was ever reached; no automatic action comes from it",
			Text: fmt.Sprintf("it missed its target in each of %d judge windows of the last day, by errors of %.4g %% at least where %.4g %% are allowed",
				len(seen), 100*slices.Min(seen), 100*(1-p.o.Target)),
		})
	}
}

// lastDay are judge windows spread over the last day.
func (i *inspection) lastDay(p vantagePoint) []measure.Query {
	var out []measure.Query
	for k := range looks {
		qs := measure.At(p.service, p.o, p.o.JudgeWindow, i.now.Add(-time.Duration(k)*lookedAt/looks))
		out = append(out, slices.DeleteFunc(qs, func(q measure.Query) bool { return q.ID.Vantage != p.vantage })...)
	}
	return out
}

// remedies say what to do about what a source alone can tell.
var remedies = map[string]string{
	string(measure.NoData):        "the series are there, the query gives nothing: it needs two samples within its window, so wait, or look at its matching",
	string(measure.NotFinite):     "look at the query: a division by zero, or a gauge that holds NaN",
	string(measure.SeveralSeries): "aggregate with sum(), or sum by (label) to judge each series by itself",
	string(measure.NotAVector):    "wrap a native histogram in histogram_count or histogram_fraction; want one number",
	string(measure.Partial):       "look at the stores behind the source: an incomplete answer is never believed",
	string(measure.OutOfRange):    "select good or bad from the same series as total",
	string(measure.SourceError):   "look whether it runs and answers in time; this may pass by itself",
	string(measure.SourceRefused): "correct url, credentials or certificates under sources; time does not heal this",
	string(measure.CounterResets): "look why the process restarts, or what writes one series twice",
	string(measure.Unstable):      "look whether two rules record one series",
	string(measure.QueryError):    "correct the query",
	string(measure.ClockSkew):     "set the clocks right (NTP) on this host and the source's",
	"stale":                       "look at the scrape; a source that lags by design needs a longer maxSampleAge",
}

func doAbout(code string) string {
	if text, ok := remedies[code]; ok {
		return text
	}
	return "look at the source"
}
