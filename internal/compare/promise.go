package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Promise is what one objective of the service asked for at the time of a
// claim. The claim keeps it, and the action is judged by it: documents that
// change, or are deleted, while an action is on trial neither buy permission
// nor lose it. Durations are nanoseconds in JSON.
type Promise struct {
	// Objective is the id of an objective of the action's own service.
	Objective string `json:"objective"`
	// Target is the demanded share of good events, 0 < Target < 1.
	Target float64 `json:"target"`
	// JudgeWindow is above zero.
	JudgeWindow time.Duration `json:"judgeWindow"`
	// MinEvents is the least total per judge window; 0 is no floor.
	MinEvents float64 `json:"minEvents"`
	// HoldFor is how long within target is recovered.
	HoldFor time.Duration `json:"holdFor"`
	// UnknownFor is how long after its window an unknown is waited for.
	UnknownFor time.Duration `json:"unknownFor"`
	// Improved and Worsened are the shares of the excess that decide, both
	// above zero.
	Improved float64 `json:"improved"`
	Worsened float64 `json:"worsened"`
}

// Promised is what the service's own objectives promise now, sorted by id: what
// a claim keeps for its judgement.
func Promised(svc spec.Service) []Promise {
	ps := make([]Promise, 0, len(svc.Objectives))
	for _, o := range svc.Objectives {
		ps = append(ps, promiseOf(o, svc.Remediation))
	}
	slices.SortStableFunc(ps, func(a, b Promise) int { return cmp.Compare(a.Objective, b.Objective) })
	return ps
}

func promiseOf(o spec.Objective, r spec.Remediation) Promise {
	improved, worsened := shares(spec.Outcomes{
		Improved: cmp.Or(o.Outcomes.Improved, r.Outcomes.Improved),
		Worsened: cmp.Or(o.Outcomes.Worsened, r.Outcomes.Worsened),
	})
	return Promise{
		Objective: o.ID, Target: o.Target, JudgeWindow: o.JudgeWindow, MinEvents: o.MinEvents,
		HoldFor: r.HoldFor, UnknownFor: r.UnknownFor, Improved: improved, Worsened: worsened,
	}
}

// kept is the objective as it was promised: measured as the documents say now,
// because no other query can be asked, and judged as they said at the claim.
func (p Promise) kept(o spec.Objective) spec.Objective {
	o.Target, o.JudgeWindow, o.MinEvents = p.Target, p.JudgeWindow, p.MinEvents
	return o
}

// own are the judges of the action's own service: one for each objective of the
// documents or, where the claim kept its promises, one for each of those.
func (t Trial) own() []judge {
	var js []judge
	if len(t.Promised) == 0 {
		for _, o := range t.objectives() {
			js = append(js, judge{o: o, promise: promiseOf(o, t.remediation())})
		}
		return js
	}
	for _, p := range t.Promised {
		p.Improved, p.Worsened = shares(spec.Outcomes{Improved: p.Improved, Worsened: p.Worsened})
		i := slices.IndexFunc(t.objectives(), func(o spec.Objective) bool { return o.ID == p.Objective })
		if i < 0 || p.JudgeWindow <= 0 {
			js = append(js, judge{o: p.kept(spec.Objective{ID: p.Objective}), promise: p, gone: true})
			continue
		}
		js = append(js, judge{o: p.kept(t.objectives()[i]), promise: p})
	}
	return js
}

func (t Trial) objectives() []spec.Objective {
	if len(t.Judged) == 0 {
		return nil
	}
	return t.Judged[0].Objectives
}

// lost is the vote of an objective that the documents no longer hold: nobody
// can measure what the action did to it, and a deleted promise is not a kept
// one.
func (j judge) lost(v vote) vote {
	if deadline := j.afterEnd().Add(j.promise.UnknownFor); j.now.Before(deadline) {
		v.next = deadline
		return v
	}
	v.outcome = OutcomeUnknown
	return v
}
