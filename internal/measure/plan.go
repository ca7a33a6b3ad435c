package measure

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// HourBefore is the window that tells traffic that is lost from traffic that
// was never there.
const HourBefore = time.Hour

// Pass returns the queries that Assess needs for one service at one instant:
// for each objective the judge window, both windows of each burn rate, the
// SLO's own window, for each long window its coverage (the total of the judge
// window at now - window + judgeWindow), and the total of the hour before the
// judge window. No identity is asked twice, and the order is that of the
// objectives, short windows first.
func Pass(svc spec.Service, now time.Time) []Query {
	var qs []Query
	for _, o := range svc.Objectives {
		qs = append(qs, planFor(svc.Name, o).pass(Instant(now))...)
	}
	return qs
}

// At returns the query of one objective over one window ending at one
// instant, e.g. to judge an action.
func At(service string, o spec.Objective, window time.Duration, at time.Time) Query {
	return planFor(service, o).query(window, Instant(at))
}

// CoverageAt is the instant at which the judge window shows whether a window
// that ends at now is covered by data: never later than now.
func CoverageAt(now time.Time, window, judge time.Duration) time.Time {
	return Instant(now).Add(min(judge-window, 0))
}

// CoverageID identifies the query that shows whether a window that ends at now
// is covered by data.
func CoverageID(service string, o spec.Objective, window time.Duration, now time.Time) ID {
	return ID{
		Service: service, Objective: o.ID, Window: o.JudgeWindow,
		At: CoverageAt(now, window, o.JudgeWindow), TotalOnly: true,
	}
}

// HourBeforeID identifies the total of the hour before the judge window that
// ends at now.
func HourBeforeID(service string, o spec.Objective, now time.Time) ID {
	return ID{
		Service: service, Objective: o.ID, Window: HourBefore,
		At: Instant(now).Add(-o.JudgeWindow), TotalOnly: true,
	}
}

// plan is what the queries of one objective have in common: its PromQL is
// parsed once, however many windows are asked.
type plan struct {
	service   string
	o         spec.Objective
	source    string
	selectors []string
	newest    string
	refused   string
}

func planFor(service string, o spec.Objective) plan {
	p := plan{service: service, o: o}
	base := o.Indicator.Total
	if base == nil {
		base = o.Indicator.Raw
	}
	if base == nil {
		p.refused = "the indicator has neither a total nor a raw query"
		return p
	}
	p.source = base.Source
	for _, q := range o.Indicator.Queries() {
		if q.Source != base.Source {
			p.refused = "the queries of one indicator name different sources"
			return p
		}
	}
	selectors, err := base.Selectors()
	switch {
	case err != nil:
		p.refused = "the total query cannot be parsed: " + err.Error()
	case len(selectors) == 0:
		p.refused = "the total query has no selector, so nothing can tell the age of its samples"
	default:
		p.selectors = selectors
		p.newest = newestSample(selectors)
	}
	return p
}

func (p plan) pass(now time.Time) []Query {
	windows := []time.Duration{p.o.JudgeWindow, p.o.Window}
	var long []time.Duration
	for _, b := range p.o.BurnRates {
		windows = append(windows, b.Short, b.Long)
		long = append(long, b.Long)
	}
	var qs []Query
	for _, w := range distinct(windows) {
		qs = append(qs, p.query(w, now))
	}
	for _, w := range distinct(long) {
		qs = append(qs, p.coverage(w, now))
	}
	if p.o.Indicator.Total != nil {
		qs = append(qs, p.total(HourBeforeID(p.service, p.o, now)))
	}
	return dedupe(qs)
}

func (p plan) query(window time.Duration, at time.Time) Query {
	in := p.o.Indicator
	return Query{
		ID:            ID{Service: p.service, Objective: p.o.ID, Window: window, At: at},
		Source:        p.source,
		Good:          fill(in.Good, window),
		Bad:           fill(in.Bad, window),
		Total:         fill(in.Total, window),
		Raw:           fill(in.Raw, window),
		SampleTime:    p.newest,
		RawSuccess:    in.RawSuccess,
		AbsentBadZero: in.AbsentBadZero,
		Refused:       p.refused,
	}
}

func (p plan) coverage(window time.Duration, now time.Time) Query {
	q := p.total(CoverageID(p.service, p.o, window, now))
	if p.refused == "" {
		q.FirstSample = oldestSample(p.selectors, window, now)
	}
	return q
}

func (p plan) total(id ID) Query {
	in := p.o.Indicator
	return Query{
		ID: id, Source: p.source, Total: fill(in.Total, id.Window), Raw: fill(in.Raw, id.Window),
		RawSuccess: in.RawSuccess, Refused: p.refused,
	}
}

func fill(q *spec.Query, window time.Duration) string {
	if q == nil {
		return ""
	}
	return q.At(window)
}

// distinct returns the positive windows in rising order, each once.
func distinct(windows []time.Duration) []time.Duration {
	ws := slices.DeleteFunc(slices.Clone(windows), func(w time.Duration) bool { return w <= 0 })
	slices.SortFunc(ws, cmp.Compare)
	return slices.Compact(ws)
}

func dedupe(qs []Query) []Query {
	seen := make(map[ID]bool, len(qs))
	return slices.DeleteFunc(qs, func(q Query) bool {
		dup := seen[q.ID]
		seen[q.ID] = true
		return dup
	})
}
