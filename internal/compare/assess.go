package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Assess compares one service's measurements with its objectives. The queries
// are those of measure.Pass(svc, now).
func Assess(svc spec.Service, ms measure.Set, limits Limits, now time.Time) Assessment {
	a := Assessment{Service: svc.Name, At: measure.Instant(now)}
	for _, o := range svc.Objectives {
		x := assessor{service: svc.Name, o: o, ms: ms, limits: limits, now: a.At}
		a.Objectives = append(a.Objectives, x.assess())
	}
	a.judge()
	a.SampleAt = oldestSample(a.Objectives)
	a.warm()
	return a
}

// judge gives the service its state: Breached if any objective is; else Unknown
// if any is; else Met. A service without objectives promises nothing that could
// be met.
func (a *Assessment) judge() {
	unknown, isUnknown := mostTelling(a.Objectives)
	breached := withState(a.Objectives, Breached)
	switch {
	case len(breached) > 0 && isUnknown:
		a.State, a.Reason = Breached, PartlyUnknown
	case len(breached) > 0:
		a.State, a.Reason = Breached, Recovering
		if slices.ContainsFunc(breached, func(o Objective) bool { return o.Reason == Burning }) {
			a.Reason = Burning
		}
	case isUnknown:
		a.State, a.Reason = Unknown, unknown.Reason
		if unknown.Reason.SourceFault() && len(unknown.Sources) > 0 {
			a.SourceFault = unknown.Sources[0]
		}
	case len(a.Objectives) == 0:
		a.State, a.Reason = Unknown, measure.NotMeasured
	default:
		a.State = Met
	}
}

// mostTelling picks the Unknown objective whose reason the service takes. What
// pages for the service comes before what pages for its source, so that a dead
// exporter is not hidden behind a second objective's slow query; low traffic,
// which pages nobody, comes last.
func mostTelling(os []Objective) (Objective, bool) {
	unknown := withState(os, Unknown)
	if len(unknown) == 0 {
		return Objective{}, false
	}
	rank := func(o Objective) int {
		switch {
		case o.Reason == LowTraffic:
			return 2
		case o.Reason.SourceFault():
			return 1
		default:
			return 0
		}
	}
	return slices.MinFunc(unknown, func(x, y Objective) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.ID, y.ID))
	}), true
}

func withState(os []Objective, s State) []Objective {
	var found []Objective
	for _, o := range os {
		if o.State == s {
			found = append(found, o)
		}
	}
	return found
}

// oldestSample is the oldest of the objectives' newest samples; zero when one
// of them is Unknown, because then the pass is no read of the whole service.
func oldestSample(os []Objective) time.Time {
	var oldest time.Time
	for _, o := range os {
		at := o.Judge.SampleAt
		if o.State == Unknown || at.IsZero() {
			return time.Time{}
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// warm looks at the page pairs that burn where something is to be done; where
// nothing is, at all that burn.
func (a *Assessment) warm() {
	breached := withState(a.Objectives, Breached)
	acting := slices.DeleteFunc(slices.Clone(breached), func(o Objective) bool { return o.Reason != Burning })
	if len(acting) == 0 {
		acting = breached
	}
	var first time.Time
	for _, o := range acting {
		for _, b := range o.Burns {
			if !b.Page || !b.Burning {
				continue
			}
			if b.CoveredAt.IsZero() {
				return
			}
			if first.IsZero() || b.CoveredAt.Before(first) {
				first = b.CoveredAt
			}
		}
	}
	a.Warming, a.WarmingUntil = !first.IsZero(), first
}

// assessor compares one objective.
type assessor struct {
	service string
	o       spec.Objective
	ms      measure.Set
	limits  Limits
	now     time.Time
}

func (x assessor) assess() Objective {
	out := Objective{
		ID: x.o.ID, Target: x.o.Target,
		Judge: x.window(x.o.JudgeWindow), Period: x.window(x.o.Window),
	}
	out.Sources = []string{cmp.Or(out.Judge.Source, x.source())}
	if !out.Judge.SampleAt.IsZero() {
		out.SampleAge = x.now.Sub(out.Judge.SampleAt)
	}
	for _, b := range x.o.BurnRates {
		out.Burns = append(out.Burns, x.burn(b))
	}
	judge := read(out.Judge, x.now, x.limits.maxSampleAge(out.Judge.Source))
	if judge.known() || judge.reason == LowTraffic {
		if lowTraffic(out.Judge, x.o.MinEvents) {
			judge = x.traffic()
		}
	}
	x.decide(&out, judge)
	return out
}

// decide gives the objective its state. A pair that burns is not undone by
// another that is unknown; but Met needs every page pair known.
func (x assessor) decide(out *Objective, judge reading) {
	if !judge.known() {
		out.State, out.Reason, out.Detail = Unknown, judge.reason, judge.detail
		return
	}
	burning := slices.ContainsFunc(out.Burns, func(b Burn) bool { return b.Page && b.Burning })
	switch {
	case burning && misses(judge.ratio, x.o.Target):
		out.State, out.Reason = Breached, Burning
	case burning:
		out.State, out.Reason = Breached, Recovering
	default:
		out.State = Met
		for _, b := range out.Burns {
			if b.Page && !b.Known {
				r := x.unknownOf(b)
				out.State, out.Reason, out.Detail = Unknown, r.reason, r.detail
				return
			}
		}
	}
}

// traffic tells traffic that is lost from traffic that was never there.
func (x assessor) traffic() reading {
	low := unknownReading(LowTraffic, "fewer events in the judge window than minEvents")
	hour := x.ms.Get(measure.HourBeforeID(x.service, x.o, x.now))
	if !hour.Known() || !hour.HasEvents || x.o.JudgeWindow <= 0 {
		return low
	}
	// Without a floor, one event per judge window is traffic enough to be missed.
	perWindow := max(x.o.MinEvents, 1)
	if hour.Total >= perWindow*float64(measure.HourBefore)/float64(x.o.JudgeWindow) {
		return unknownReading(TrafficLost, "fewer events than minEvents, although the hour before had them")
	}
	return low
}

func (x assessor) burn(b spec.BurnRate) Burn {
	out := Burn{BurnRate: b}
	short, long := x.read(b.Short), x.read(b.Long)
	if short.known() && long.known() {
		allowed := 1 - x.o.Target
		out.Known = true
		out.ShortRate, out.LongRate = short.ratio/allowed, long.ratio/allowed
		limit := b.Factor * allowed
		out.Burning = short.ratio-limit > epsilon && long.ratio-limit > epsilon
	}
	out.CoveredAt = x.coveredAt(b.Long)
	return out
}

// coveredAt is zero when the window is covered. What is not known to be covered
// is not.
func (x assessor) coveredAt(window time.Duration) time.Time {
	m := x.ms.Get(measure.CoverageID(x.service, x.o, window, x.now))
	if m.Known() {
		return time.Time{}
	}
	first := m.FirstAt
	if first.IsZero() || first.After(x.now) {
		first = x.now
	}
	if at := first.Add(window - x.o.JudgeWindow); at.After(x.now) {
		return at
	}
	return x.now
}

func (x assessor) unknownOf(b Burn) reading {
	if r := x.read(b.Short); !r.known() {
		return r
	}
	return x.read(b.Long)
}

func (x assessor) read(window time.Duration) reading {
	m := x.window(window)
	limit := x.limits.maxSampleAge(m.Source)
	if window > x.o.JudgeWindow {
		limit = x.limits.forLonger(m.Source)
	}
	return read(m, x.now, limit)
}

func (x assessor) window(window time.Duration) measure.Measurement {
	return x.ms.Get(measure.ID{Service: x.service, Objective: x.o.ID, Window: window, At: x.now})
}

func (x assessor) source() string {
	for _, q := range x.o.Indicator.Queries() {
		return q.Source
	}
	return ""
}
