package measure

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// HourBefore is the window that tells traffic that is lost from traffic that
// was never there.
const HourBefore = time.Hour

// Query is one measurement to take.
type Query struct {
	ID     ID
	Source string
	// Shown: nothing waits for it, so a source gives it what others leave.
	Shown bool
	// Refused says why the query must not be asked; the answer is
	// Unknown(query-error) with these words.
	Refused string

	o    *objective
	slot int // -1: a window of its own, which is not held
}

// slot is one window of an objective, with what it tells.
type slot struct {
	// window is asked, and ends at now - before.
	window, before time.Duration
	totalOnly      bool
	// covers is the long window of which this shows whether data covers it;
	// zero for others.
	covers time.Duration
	// acting: the window has a part in the state, otherwise it is only shown.
	acting bool
}

func (s slot) at(now time.Time) time.Time { return Instant(now).Add(-s.before) }

func (o *objective) id(s slot, now time.Time) ID {
	return ID{
		Service: o.service, Objective: o.o.ID, Vantage: o.vantage,
		Window: s.window, At: s.at(now), TotalOnly: s.totalOnly,
	}
}

// slotsOf are the windows that Assess needs: the judge window, both windows of
// each burn rate, the SLO's own window, for each long one its coverage (the
// total of the judge window at now - window + judgeWindow), and the total of
// the hour before the judge window, which a raw indicator of one series has not.
func slotsOf(o spec.Objective, in spec.Indicator) []slot {
	var out []slot
	long := []time.Duration{o.Window}
	for _, b := range o.BurnRates {
		long = append(long, b.Long)
	}
	paged := func(w time.Duration, is func(spec.BurnRate) time.Duration) bool {
		return slices.ContainsFunc(o.BurnRates, func(b spec.BurnRate) bool { return b.Page && is(b) == w })
	}
	isShort := func(b spec.BurnRate) time.Duration { return b.Short }
	isLong := func(b spec.BurnRate) time.Duration { return b.Long }
	for _, w := range o.Windows() {
		out = append(out, slot{window: w, acting: paged(w, isShort) || paged(w, isLong) || w == o.JudgeWindow})
	}
	slices.Sort(long)
	for _, w := range slices.Compact(long) {
		if w > 0 {
			out = append(out, slot{
				window: o.JudgeWindow, before: max(w-o.JudgeWindow, 0), totalOnly: true, covers: w, acting: paged(w, isLong),
			})
		}
	}
	if in.Total != nil || len(o.GroupBy) > 0 { // It shows which groups vanished, too.
		out = append(out, slot{window: HourBefore, before: o.JudgeWindow, totalOnly: true, acting: true})
	}
	return distinct(out)
}

// distinct joins slots that ask the same. What any of them decides, it decides:
// with a judge window of an hour, the coverage of two hours is the hour before.
func distinct(all []slot) []slot {
	var out []slot
	for _, s := range all {
		i := slices.IndexFunc(out, func(o slot) bool {
			return o.window == s.window && o.before == s.before && o.totalOnly == s.totalOnly
		})
		if i < 0 {
			out = append(out, s)
			continue
		}
		out[i].acting = out[i].acting || s.acting
	}
	return out
}

// isHourBefore reports whether a slot tells traffic that is lost from traffic
// that was never there.
func (o *objective) isHourBefore(s slot) bool {
	return s.totalOnly && s.window == HourBefore && s.before == o.o.JudgeWindow
}

func (o *objective) query(slot int, now time.Time) Query {
	return Query{
		ID: o.id(o.slots[slot], now), Source: o.source, Shown: !o.slots[slot].acting, Refused: o.refused, o: o, slot: slot,
	}
}

// Pass returns every query that Assess needs for the service at one instant,
// each freshly asked. No identity is asked twice, and the order is that of the
// objectives and their vantage points.
func (p *Plan) Pass(now time.Time) []Query {
	if p == nil {
		return nil
	}
	var qs []Query
	for _, o := range p.objectives {
		for i := range o.slots {
			qs = append(qs, o.query(i, now))
		}
	}
	return qs
}

// Pass compiles one service and returns all its queries at one instant.
func Pass(svc spec.Service, now time.Time) []Query {
	return Compile([]spec.Service{svc}, nil).Service(svc.Name).Pass(now)
}

// At returns the queries of one objective over one window ending at one
// instant, one for each vantage point, e.g. to judge an action.
func At(service string, o spec.Objective, window time.Duration, at time.Time) []Query {
	svc := spec.Service{Name: service, Objectives: []spec.Objective{o}}
	plan := Compile([]spec.Service{svc}, nil).Service(service)
	out := make([]Query, 0, len(plan.objectives))
	for _, o := range plan.objectives {
		id := ID{Service: service, Objective: o.o.ID, Vantage: o.vantage, Window: window, At: Instant(at)}
		out = append(out, Query{ID: id, Source: o.source, Refused: o.refused, o: o, slot: -1})
	}
	return out
}

// CoverageAt is the instant at which the judge window shows whether a window
// that ends at now is covered by data: never later than now.
func CoverageAt(now time.Time, window, judge time.Duration) time.Time {
	return Instant(now).Add(min(judge-window, 0))
}

// CoverageID identifies the query that shows whether a window that ends at now
// is covered by data, from the first vantage point.
func CoverageID(service string, o spec.Objective, window time.Duration, now time.Time) ID {
	return ID{
		Service: service, Objective: o.ID, Window: o.JudgeWindow,
		At: CoverageAt(now, window, o.JudgeWindow), TotalOnly: true,
	}
}

// HourBeforeID identifies the total of the hour before the judge window that
// ends at now, from the first vantage point.
func HourBeforeID(service string, o spec.Objective, now time.Time) ID {
	return ID{
		Service: service, Objective: o.ID, Window: HourBefore,
		At: Instant(now).Add(-o.JudgeWindow), TotalOnly: true,
	}
}

// From is the identity seen from another vantage point.
func (id ID) From(vantage int) ID {
	id.Vantage = vantage
	return id
}
