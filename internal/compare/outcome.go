package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Outcome is what measurement says of an action, once.
type Outcome string

// The outcomes. None and Pending are for people; the others are recorded.
const (
	OutcomeNone      Outcome = "none"
	OutcomePending   Outcome = "pending"
	OutcomeImproved  Outcome = "improved"
	OutcomeRecovered Outcome = "recovered"
	OutcomeNoChange  Outcome = "no-change"
	OutcomeWorsened  Outcome = "worsened"
	OutcomeUnknown   Outcome = "unknown"
)

// Trial is one action that is to be judged: what was hit, and when.
type Trial struct {
	Service string
	// ClaimedAt ends the windows of before.
	ClaimedAt time.Time
	// AppliedAt is the receipt's time, or the horizon of an in-doubt effect
	// that was found landed.
	AppliedAt time.Time
	Settle    time.Duration
	// Judged are the action's own service first, then its neighbours (services
	// whose dependsOn names it). The own service's Remediation gives holdFor,
	// unknownFor and the shares of the outcomes for all of them.
	Judged []spec.Service
	// Promised is what the claim kept of the own service's objectives. They are
	// judged by it: one that is no longer in the documents is Unknown once its
	// time has passed, and one that is new since the claim is not judged. Empty
	// (a claim that kept nothing): by the documents of now.
	Promised []Promise
	// WorstScrape is the longest scrape interval to assume; the last fifth of
	// the judge window counts only when it spans two of them. Zero: one minute,
	// which is Prometheus's default.
	WorstScrape time.Duration
}

// Judgement is the outcome with the numbers it rests on.
type Judgement struct {
	// Outcome is Pending until Decided.
	Outcome Outcome `json:"outcome"`
	// Recovering: before had at most half of the excess of the judge window
	// preceding it, so the action earns nothing, whatever the Outcome says (see
	// Earned), and only what got worse after all costs. Never set beside Unknown.
	Recovering bool `json:"recovering"`
	// Objective is the one that decided, "service/id".
	Objective string `json:"objective"`
	// Before and After are the error ratios of that objective.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Decided is false while a window has not passed yet, or is unknown and
	// time is left: ask again.
	Decided bool `json:"decided"`
	// Next is when to ask again; zero when Decided.
	Next time.Time `json:"next"`
}

// Earned reports whether the action may be credited with having helped: it was
// measured to, and the service was not recovering by itself.
func (j Judgement) Earned() bool {
	return j.Decided && !j.Recovering && (j.Outcome == OutcomeImproved || j.Outcome == OutcomeRecovered)
}

// BeforeQueries are the windows that describe the time before the claim: the
// judge window and its last fifth, and for the own service the judge window
// preceding them.
func BeforeQueries(t Trial) []measure.Query {
	var qs []measure.Query
	for _, j := range t.judges(nil, Limits{}, time.Time{}) {
		if j.gone {
			continue
		}
		for _, w := range j.beforeWindows() {
			qs = append(qs, measure.At(j.service, j.o, w.length, w.end)...)
		}
	}
	return qs
}

// AfterQueries are the windows that can be asked at now: the first judge
// window wholly after applied + settle and, for the own service, those
// following it up to one that ends holdFor later.
func AfterQueries(t Trial, now time.Time) []measure.Query {
	var qs []measure.Query
	for _, j := range t.judges(nil, Limits{}, now) {
		if j.gone {
			continue
		}
		for _, end := range j.afterEnds() {
			if !end.After(now) {
				qs = append(qs, measure.At(j.service, j.o, j.o.JudgeWindow, end)...)
			}
		}
	}
	return qs
}

// Effect judges the trial from measurements of BeforeQueries and AfterQueries
// taken at or before now (DESIGN: step 4, settle). It keeps nothing between
// calls: the hold is read from the windows that follow after.
func Effect(t Trial, ms measure.Set, limits Limits, now time.Time) Judgement {
	if len(t.Promised) == 0 && len(t.objectives()) == 0 {
		return t.nothingToJudge(now)
	}
	judges := t.judges(ms, limits, now)
	var said, pending []vote
	for _, j := range judges {
		switch v := j.vote(); v.outcome {
		case OutcomePending:
			pending = append(pending, v)
		case OutcomeNone:
		default:
			said = append(said, v)
		}
	}
	slices.SortStableFunc(said, worstFirst)
	if len(said) > 0 && said[0].outcome == OutcomeWorsened && !said[0].recovering {
		// Nothing is worse, so nothing that is still open can change it.
		return said[0].decided()
	}
	if len(pending) > 0 {
		soonest := slices.MinFunc(pending, func(a, b vote) int { return a.next.Compare(b.next) })
		return Judgement{Outcome: OutcomePending, Objective: soonest.objective, Next: soonest.next}
	}
	if len(said) > 0 {
		return worst(said).decided()
	}
	return nothingMissed(judges)
}

// worst is the first of the sorted votes. It is not free for having recovered
// already where another objective, which had not, was not helped: the service
// was not recovering then.
func worst(said []vote) vote {
	first := said[0]
	for _, v := range said {
		if !v.recovering && v.outcome != OutcomeImproved && v.outcome != OutcomeRecovered {
			first.recovering = false
		}
	}
	return first
}

// nothingMissed is the judgement when every objective was within target before
// and after: there was nothing to fix. It is free where the miss that led to
// the action was going away by itself.
func nothingMissed(judges []judge) Judgement {
	var first vote
	for i, j := range judges {
		v := j.nothing()
		if v.recovering {
			return v.decided()
		}
		if i == 0 {
			first = v
		}
	}
	return first.decided()
}

// nothingToJudge ends a trial whose objectives are gone, as Unknown: nobody can
// ever measure what it did.
func (t Trial) nothingToJudge(now time.Time) Judgement {
	at := t.applied().Add(t.Settle + t.remediation().UnknownFor)
	if now.Before(at) {
		return Judgement{Outcome: OutcomePending, Next: at}
	}
	return Judgement{Outcome: OutcomeUnknown, Decided: true}
}

func (t Trial) remediation() spec.Remediation {
	if len(t.Judged) == 0 {
		return spec.Remediation{}
	}
	return t.Judged[0].Remediation
}

// applied is never before the claim, whatever clock wrote it, and rounded up:
// after must not hold a moment from before.
func (t Trial) applied() time.Time {
	at := t.AppliedAt
	if at.Before(t.ClaimedAt) {
		at = t.ClaimedAt
	}
	if whole := measure.Instant(at); whole.Before(at) {
		return whole.Add(time.Millisecond)
	}
	return measure.Instant(at)
}

// judges are those of the own service, then those of its neighbours, which keep
// the times of the own service: all are judged in the same stretch of time.
func (t Trial) judges(ms measure.Set, limits Limits, now time.Time) []judge {
	js := t.own()
	for i := range js {
		js[i].service, js[i].own = t.ownName(), true
	}
	rules := t.rules()
	for _, svc := range t.neighbours() {
		for _, o := range svc.Objectives {
			js = append(js, judge{service: svc.Name, o: o, promise: promiseOf(o, rules), beside: svc.Objectives})
		}
	}
	for i := range js {
		js[i].trial, js[i].ms, js[i].limits, js[i].now = t, ms, limits, now
		js[i].reach = reach(js[i].o)
	}
	return js
}

// rules are the Remediation's, with the wait for an unknown as it was promised.
func (t Trial) rules() spec.Remediation {
	r := t.remediation()
	for i, p := range t.Promised {
		if i == 0 || p.UnknownFor > r.UnknownFor {
			r.UnknownFor = p.UnknownFor
		}
	}
	return r
}

func (t Trial) neighbours() []spec.Service {
	if len(t.Judged) == 0 {
		return nil
	}
	return t.Judged[1:]
}

// ownName is that of the documents, and of the trial where they are gone.
func (t Trial) ownName() string {
	if len(t.Judged) == 0 {
		return t.Service
	}
	return t.Judged[0].Name
}

// vote is what one objective says of the trial: an outcome, Pending with the
// time to ask again, or None when it does not count.
type vote struct {
	outcome       Outcome
	recovering    bool
	objective     string
	before, after float64
	next          time.Time
}

func (v vote) decided() Judgement {
	return Judgement{
		Outcome: v.outcome, Recovering: v.recovering,
		Objective: v.objective, Before: v.before, After: v.after, Decided: true,
	}
}

var severity = map[Outcome]int{
	OutcomeWorsened: 0, OutcomeUnknown: 1, OutcomeNoChange: 2, OutcomeImproved: 3, OutcomeRecovered: 4,
}

// worstFirst orders votes; of two equal ones the one that costs comes first.
func worstFirst(a, b vote) int {
	if c := cmp.Compare(severity[a.outcome], severity[b.outcome]); c != 0 {
		return c
	}
	switch {
	case a.recovering == b.recovering:
		return cmp.Compare(a.objective, b.objective)
	case a.recovering:
		return 1
	default:
		return -1
	}
}
