package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

func (x assessor) assess() Objective {
	if len(x.o.Others) == 0 {
		return x.view()
	}
	var views []Objective
	for i := range x.o.Vantages() {
		x.vantage = i
		views = append(views, x.view())
	}
	out := agree(views)
	if out.State == Breached && len(x.o.GroupBy) > 0 {
		return x.agreeOnGroup(out)
	}
	return out
}

// agree joins what the vantage points of one objective see. They must say the
// same: their ratios are never averaged, because an average of a server that
// sees no errors and a client that sees nothing else is nobody's experience.
func agree(views []Objective) Objective {
	if len(views) == 1 {
		return views[0]
	}
	out := slices.MinFunc(views, func(a, b Objective) int { return cmp.Compare(b.Judge.ErrorRatio, a.Judge.ErrorRatio) })
	unknown, breached := withState(views, Unknown), withState(views, Breached)
	switch {
	case len(unknown) > 0 && !onlyQuiet(unknown, breached):
		out, _ = mostTelling(views)
		out.Detail = fmt.Sprintf("from source %s: %s (%s)", cmp.Or(out.UnknownFrom, "(default)"), out.Detail, saying(views))
	case len(unknown) > 0 || len(breached) > 0 && len(breached) < len(views):
		out.State, out.Reason, out.Detail = Unknown, Conflicting, "the vantage points disagree: "+saying(views)
	case slices.ContainsFunc(breached, func(o Objective) bool { return o.Reason == Recovering }):
		out.Reason = Recovering
	}
	out.Sources = nil
	for _, v := range views {
		out.Sources = append(out.Sources, v.Sources...)
		// A pass rests on what is oldest of all that it saw.
		if v.Judge.SampleAt.Before(out.Judge.SampleAt) {
			out.Judge.SampleAt, out.SampleAge = v.Judge.SampleAt, v.SampleAge
		}
	}
	return out
}

// agreeOnGroup gives a breached objective the worst of the groups that are
// breached from each vantage point: what one sees of a host and another of the
// next is no reason to do anything to either.
func (x assessor) agreeOnGroup(out Objective) Objective {
	var shared []Objective
	x.vantage = 0
	for _, name := range x.groups() {
		x.group = name
		var views []Objective
		for i := range x.o.Vantages() {
			x.vantage = i
			views = append(views, x.one())
		}
		if g := agree(views); g.State == Breached {
			shared = append(shared, g)
		}
	}
	if len(shared) == 0 {
		out.State, out.Reason = Unknown, Conflicting
		out.Detail = "the vantage points disagree: no group misses the target from each of them"
		return out
	}
	worst := slices.MinFunc(shared, worseGroup)
	worst.Groups, worst.GroupsBreached = out.Groups, len(shared)
	return worst
}

// onlyQuiet: one vantage point is breached, and what the others do not know is
// for lack of traffic only. Inside silence beside an outside failure is a breach
// that cannot be measured, and must not be as quiet as low traffic.
func onlyQuiet(unknown, breached []Objective) bool {
	return len(breached) > 0 && !slices.ContainsFunc(unknown, func(o Objective) bool { return o.Reason != LowTraffic })
}

// saying is what each vantage point sees, so that one that is blind does not
// hide what the others know.
func saying(views []Objective) string {
	var said []string
	for _, v := range views {
		text := string(v.State)
		switch {
		case v.State == Unknown:
			text += " (" + string(v.Reason) + ")"
		case v.Judge.Known():
			text += fmt.Sprintf(" with %.4g %% errors in the judge window", 100*v.Judge.ErrorRatio)
		}
		said = append(said, cmp.Or(strings.Join(v.Sources, ","), "(default)")+": "+text)
	}
	return strings.Join(said, "; ")
}

// at reads one window for a judgement, fresh at its own end and with traffic
// enough, from all vantage points.
func (j judge) at(w window) reading {
	var out reading
	for i := range j.o.Vantages() {
		r := j.from(i, w)
		switch {
		case !r.known():
			return r
		case j.early(i, w):
			return unknownReading(Stale, "the recorded ratio holds time from before the effect")
		case i > 0 && misses(r.ratio, j.o.Target) != misses(out.ratio, j.o.Target):
			return unknownReading(Conflicting, "the vantage points disagree")
		case i == 0 || r.ratio > out.ratio:
			out = r
		}
	}
	return out
}

// from reads one window from one vantage point: of the worst group where there
// are groups. A group that missed its target before the action must still be
// there: one that vanished did not recover.
func (j judge) from(vantage int, w window) reading {
	m := j.measured(vantage, w)
	if !m.Known() || len(j.o.GroupBy) == 0 {
		return j.one(m, w)
	}
	out := unknownReading(LowTraffic, "no group has events enough")
	for _, g := range m.Groups {
		if r := j.one(g.Measurement, w); r.known() && (!out.known() || r.ratio > out.ratio) {
			out = r
		}
	}
	before := j.judgeWindow()
	for _, g := range j.measured(vantage, before).Groups {
		if r := j.one(g.Measurement, before); !r.known() || !misses(r.ratio, j.o.Target) {
			continue
		}
		if r := j.one(m.Of(g.Name), w); !r.known() {
			return unknownReading(r.reason, "group "+g.Name+", which missed its target before: "+r.detail)
		}
	}
	return out
}

// early reports whether a recorded ratio that should tell of the time after the
// effect was recorded too soon for that.
func (j judge) early(vantage int, w window) bool {
	applied, sample := j.trial.applied(), j.measured(vantage, w).SampleAt
	return j.recorded(vantage) && w.end.After(applied) && sample.Add(-w.length).Before(applied)
}

func (j judge) measured(vantage int, w window) measure.Measurement {
	return j.ms.Get(measure.ID{
		Service: j.service, Objective: j.o.ID, Vantage: vantage, Window: w.length, At: w.end,
	})
}

func (j judge) one(m measure.Measurement, w window) reading {
	r := read(m, w.end, j.limits.maxSampleAge(m.Source))
	if r.known() && lowTraffic(m, j.o.MinEvents) {
		return unknownReading(LowTraffic, "fewer events than minEvents")
	}
	return r
}
