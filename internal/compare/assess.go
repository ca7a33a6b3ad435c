package compare

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Assess compares one service's measurements with its objectives. The queries
// are those of measure.Pass(svc, now).
func Assess(svc spec.Service, ms measure.Set, limits Limits, now time.Time) Assessment {
	a := Assessment{
		Service: svc.Name, At: measure.Instant(now), Objectives: slices.Grow([]Objective(nil), len(svc.Objectives)),
	}
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
		if unknown.Reason.SourceFault() {
			a.SourceFault = unknown.UnknownFrom
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

// assessor compares one objective, as it is seen from one vantage point and,
// where it has groups, for one of them.
type assessor struct {
	service string
	o       spec.Objective
	vantage int
	group   string
	ms      measure.Set
	limits  Limits
	now     time.Time
}

func (x assessor) one() Objective {
	out := Objective{
		ID: x.o.ID, Target: x.o.Target, Group: x.group,
		Judge: x.window(x.o.JudgeWindow), Period: x.window(x.o.Window),
	}
	source := out.Judge.Source
	if source == "" { // Nothing was measured.
		source = x.source()
	}
	out.Sources = []string{source}
	if !out.Judge.SampleAt.IsZero() {
		out.SampleAge = x.now.Sub(out.Judge.SampleAt)
	}
	out.Burns = slices.Grow(out.Burns, len(x.o.BurnRates))
	for _, b := range x.o.BurnRates {
		out.Burns = append(out.Burns, x.burn(b))
	}
	out.Covered = x.covered()
	x.decide(&out, x.judge(out.Judge))
	if out.State == Unknown {
		out.UnknownFrom = source
	}
	return out
}

// judge reads the judge window: what it says is believed only with traffic
// enough, and if it does not flap.
func (x assessor) judge(m measure.Measurement) reading {
	r := read(m, x.now, x.limits.maxSampleAge(m.Source))
	if x.vanished() || (r.known() || r.reason == LowTraffic) && lowTraffic(m, x.o.MinEvents) {
		return x.traffic()
	}
	switch {
	case r.known() && len(x.o.GroupBy) > 0 && x.group == "":
		return unknownReading(measure.NoData, "none of its groups was measured")
	case r.known() && jumps(m, x.o.Target):
		return unknownReading(measure.Unstable, fmt.Sprintf(
			"the recorded ratio went from %.4g to %.4g and back within minutes: do two rules write one series?", m.Low, m.High))
	}
	return r
}

// jumps reports whether a recorded ratio stands on both sides of the target
// within minutes, and not merely close to it.
func jumps(m measure.Measurement, target float64) bool {
	return misses(m.High, target) && !misses(m.Low, target) && m.Low < m.High/2
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

// traffic tells traffic that is lost from traffic that was never there. A group
// without traffic says nothing beside others, so it must be known that it had
// none.
func (x assessor) traffic() reading {
	hour := x.hourBefore()
	if x.busy(hour.Of(x.group)) {
		return unknownReading(TrafficLost, "fewer events than minEvents, although the hour before had them")
	}
	if !hour.Known() && hour.Reason != measure.NoData {
		return unknownReading(hour.Reason, "few events or none, and the hour before is not known: "+hour.Detail)
	}
	for _, g := range hour.Groups {
		if x.group != "" && g.Name == x.group && !g.Known() {
			return unknownReading(g.Reason, "the group has few events or none, and its hour before is not known: "+g.Detail)
		}
	}
	return unknownReading(LowTraffic, "fewer events in the judge window than minEvents")
}

// busy reports whether an hour held traffic enough to be missed: minEvents for
// each judge window or, without a floor, one event. A raw indicator has no
// events: that there was something is enough.
func (x assessor) busy(hour measure.Measurement) bool {
	switch {
	case !hour.Known() || x.o.JudgeWindow <= 0:
		return false
	case !hour.HasEvents:
		return x.o.Vantages()[x.vantage].Total == nil
	}
	return hour.Total >= max(x.o.MinEvents, 1)*float64(measure.HourBefore)/float64(x.o.JudgeWindow)
}

// covered is how much of the SLO's own window holds data; zero when all of it
// does, or nobody knows.
func (x assessor) covered() time.Duration {
	m := x.pick(measure.CoverageID(x.service, x.o, x.o.Window, x.now))
	if m.Known() || m.FirstAt.IsZero() || m.FirstAt.After(x.now) {
		return 0
	}
	if have := x.now.Sub(m.FirstAt); have < x.o.Window-x.o.Window/50 {
		return have
	}
	return 0
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
	m := x.pick(measure.CoverageID(x.service, x.o, window, x.now))
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
		limit = x.limits.forLonger(m.Source, window)
	}
	return read(m, x.now, limit)
}

func (x assessor) id(window time.Duration) measure.ID {
	return measure.ID{Service: x.service, Objective: x.o.ID, Vantage: x.vantage, Window: window, At: x.now}
}

func (x assessor) window(window time.Duration) measure.Measurement { return x.pick(x.id(window)) }

// pick is the measurement of an identity, of this vantage point and group.
func (x assessor) pick(id measure.ID) measure.Measurement {
	return x.ms.Get(id.From(x.vantage)).Of(x.group)
}

func (x assessor) source() string {
	for _, q := range x.o.Vantages()[x.vantage].Queries() {
		return q.Source
	}
	return ""
}
