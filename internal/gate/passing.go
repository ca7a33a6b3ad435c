package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// isUndo reports whether the proposal takes an earlier action back. Both marks
// are needed, so that no proposer but the loop's own earns the exemptions.
func isUndo(c Case) bool { return c.Proposal.Undo && c.Proposal.Proposer.Kind == "undo" }

// PassingFloors are the floors that do not depend on the proposal: while any
// holds, nothing is asked (DESIGN section 5, hold). Their order is fixed. An
// undo is exempt from spacing and caps, and from the demand that its own
// service still burns: a neighbour may be what it hurt.
func PassingFloors(c Case) []Reason {
	undo := isUndo(c)
	rs := holdFloors(c)
	rs = append(rs, flightFloors(c)...)
	rs = append(rs, measurementFloors(c, undo)...)
	if undo {
		// Nor does a dependency that is down: it may be what the action has hurt.
		return rs
	}
	rs = append(rs, paceFloors(c)...)
	return append(rs, dependencyFloors(c)...)
}

// holdFloors are what people and the fleet put in the way.
func holdFloors(c Case) []Reason {
	f := c.Facts
	var rs []Reason
	for _, h := range inForce(f.Freezes, f.Now) {
		rs = append(rs, Reason{ReasonFreeze, holdText("frozen", h), h.Until})
	}
	if f.PolicyFault != "" {
		rs = append(rs, Reason{Code: ReasonPolicyFault, Text: "no policy is loaded: " + f.PolicyFault})
	}
	if f.ClocksApart != "" {
		rs = append(rs, Reason{Code: ReasonClock, Text: "clocks differ: " + f.ClocksApart})
	}
	if f.Storm != "" {
		rs = append(rs, Reason{Code: ReasonStorm, Text: "storm brake: " + f.Storm})
	}
	for _, h := range inForce(f.Maintenances, f.Now) {
		if h.Effect == spec.Observe {
			rs = append(rs, Reason{ReasonMaintenance, holdText("maintenance", h), h.Until})
		}
	}
	for _, h := range inForce(f.Silences, f.Now) {
		rs = append(rs, Reason{ReasonSilence, holdText("silenced in Alertmanager", h), h.Until})
	}
	if f.SilencesUnreadable != "" {
		rs = append(rs, Reason{Code: ReasonSilencesUnreadable, Text: "Alertmanager cannot be asked who silenced what: " + f.SilencesUnreadable})
	}
	return rs
}

// flightFloors keep one effect per key and one unsettled effect per service.
func flightFloors(c Case) []Reason {
	f := c.Facts
	var rs []Reason
	if f.KeyClaimed {
		r := Reason{Code: ReasonKeyClaimed, Text: fmt.Sprintf("key %s is claimed already: one effect per window", c.Key)}
		if w, err := c.Key.Window(c.Service.Name); err == nil && w.End().After(f.Now) {
			r.At = w.End()
		}
		rs = append(rs, r)
	}
	if f.InFlight != "" {
		rs = append(rs, Reason{Code: ReasonInFlight, Text: "not settled yet on this service: " + f.InFlight})
	}
	return rs
}

// measurementFloors let only a fresh, known, burning breach lead to an action.
func measurementFloors(c Case, undo bool) []Reason {
	f, a := c.Facts, c.Facts.Assessment
	var rs []Reason
	// An undo puts back what was there before the documents were in doubt.
	if f.SpecProblem != "" && !undo {
		rs = append(rs, Reason{Code: ReasonSpecProblem, Text: "the objective itself is in doubt: " + f.SpecProblem})
	}
	if r, ok := stateFloor(a, undo); ok {
		rs = append(rs, r)
	}
	if f.FreshReads < 2 {
		rs = append(rs, Reason{Code: ReasonFreshReads, Text: fmt.Sprintf("%d of 2 fresh reads since the start of this process", max(0, f.FreshReads))})
	}
	if d := c.Service.Remediation.BreachFor; d > 0 && !undo {
		switch until := f.Since.Add(d); {
		case f.Since.IsZero():
			rs = append(rs, Reason{Code: ReasonBreachFor, Text: fmt.Sprintf("breached since an unknown time, must be for %s", d)})
		case f.Now.Before(until):
			rs = append(rs, Reason{ReasonBreachFor, fmt.Sprintf("breached for %s of %s", ago(f.Now, f.Since), d), until})
		}
	}
	return rs
}

func stateFloor(a compare.Assessment, undo bool) (Reason, bool) {
	switch {
	case a.State == compare.Met && undo, a.State == compare.Breached && a.Reason == compare.Recovering && undo:
		return Reason{}, false
	case a.State == compare.Met:
		return Reason{Code: ReasonNotBreached, Text: "the SLO is met: there is nothing to do"}, true
	case a.State == compare.Breached && a.Reason == compare.Recovering:
		return Reason{Code: ReasonRecovering, Text: "still burning over the long window, but the judge window is good again"}, true
	case a.Actionable():
		return Reason{}, false
	}
	why := string(a.Reason)
	if why == "" {
		why = "no measurement"
	}
	return Reason{Code: ReasonUnknown, Text: "the present state is not known well enough to act: " + why}, true
}

// paceFloors bound how often anything is sent.
func paceFloors(c Case) []Reason {
	f, l := c.Facts, c.Limits
	var rs []Reason
	if until := f.LastSent.Add(l.MinSpacing); !f.LastSent.IsZero() && f.Now.Before(until) {
		rs = append(rs, Reason{ReasonSpacing, fmt.Sprintf("the last effect on this service was %s ago, minSpacing is %s", ago(f.Now, f.LastSent), l.MinSpacing), until})
	}
	if f.SentService >= l.EffectsPerServicePerHour {
		rs = append(rs, Reason{Code: ReasonCapService, Text: fmt.Sprintf("%d effects on this service in the last hour, effectsPerServicePerHour is %d", f.SentService, l.EffectsPerServicePerHour)})
	}
	if f.SentGlobal >= l.EffectsPerHour {
		rs = append(rs, Reason{Code: ReasonCapGlobal, Text: fmt.Sprintf("%d effects in the last hour, effectsPerHour is %d", f.SentGlobal, l.EffectsPerHour)})
	}
	return rs
}

// dependencyFloors hold a service whose dependency is not known to be met:
// acting on it would treat a symptom.
func dependencyFloors(c Case) []Reason {
	var rs []Reason
	for _, name := range slices.Sorted(slices.Values(c.Service.Remediation.DependsOn)) {
		state := dependencyState(c, name)
		if state == compare.Met {
			continue
		}
		rs = append(rs, Reason{Code: ReasonDependency, Text: fmt.Sprintf("dependency %s is %s", name, state)})
	}
	return rs
}

// dependencyState is the state of a dependency; what was not measured, or has
// a word of its own, is unknown.
func dependencyState(c Case, name string) compare.State {
	switch s := c.Facts.Dependencies[name]; s {
	case compare.Met, compare.Breached:
		return s
	default:
		return compare.Unknown
	}
}

// inForce keeps the holds whose end has not passed, in a stable order.
func inForce(hs []Hold, now time.Time) []Hold {
	var out []Hold
	for _, h := range hs {
		if h.Until.IsZero() || now.Before(h.Until) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b Hold) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	return out
}

func holdText(what string, h Hold) string {
	s := what
	if h.ID != "" {
		s += " (" + h.ID + ")"
	}
	if h.By != "" {
		s += " by " + h.By
	}
	if !h.Until.IsZero() {
		s += " until " + clock(h.Until)
	}
	if h.Text != "" {
		s += ": " + h.Text
	}
	return s
}

// clock is a time as a person reads it at night.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// ago is a length of time without the noise below a second.
func ago(now, then time.Time) time.Duration { return now.Sub(then).Truncate(time.Second) }
