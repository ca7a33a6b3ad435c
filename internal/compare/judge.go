package compare

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const (
	// defaultScrape is Prometheus's default scrape interval.
	defaultScrape = time.Minute
	// day is the judge window from which recorded counts may answer.
	day = 24 * time.Hour
	// fifth is the share of the judge window that shows how bad it is just now.
	fifth = 5
	// defaultImproved and defaultWorsened are used where the document gives no
	// usable share: a share of 0 would credit every action.
	defaultImproved = 0.5
	defaultWorsened = 0.2
)

// judge is one objective's part in judging a trial.
type judge struct {
	trial   Trial
	service string
	// o is the objective with the target and windows that promise asks for.
	o       spec.Objective
	promise Promise
	own     bool
	// beside are all objectives of a neighbour; empty for the own service.
	beside []spec.Objective
	// reach is that of o; see reach.
	reach time.Duration
	// gone: promised at the claim, and no longer in the documents.
	gone   bool
	ms     measure.Set
	limits Limits
	now    time.Time
}

type window struct {
	length time.Duration
	end    time.Time
}

func (j judge) judgeWindow() window {
	return window{j.o.JudgeWindow, measure.Instant(j.trial.ClaimedAt)}
}

// lastFifth is absent where it cannot span two scrapes.
func (j judge) lastFifth() (window, bool) {
	scrape := j.trial.WorstScrape
	if scrape <= 0 {
		scrape = defaultScrape
	}
	length := (j.o.JudgeWindow / fifth).Truncate(time.Millisecond)
	return window{length, measure.Instant(j.trial.ClaimedAt)}, length >= 2*scrape
}

func (j judge) preceding() window {
	w := j.judgeWindow()
	return window{w.length, w.end.Add(-w.length)}
}

func (j judge) beforeWindows() []window {
	ws := []window{j.judgeWindow()}
	if w, ok := j.lastFifth(); ok {
		ws = append(ws, w)
	}
	if j.own {
		ws = append(ws, j.preceding())
	}
	return ws
}

// afterEnd is the end of the first judge window wholly after applied + settle.
func (j judge) afterEnd() time.Time {
	return j.trial.applied().Add(j.trial.Settle + j.reach + j.o.JudgeWindow)
}

// recordedLag is how old the last ratio that a rule recorded may be at any
// instant: one interval of rules, and the age at which a sample is stale.
const recordedLag = defaultMaxSampleAge

// reach is how far before its start the numbers of an objective's judge window
// may reach. A rate counts between the samples inside it, so none; but a query
// may look back farther, a count that a rule recorded began up to a step earlier,
// and a ratio that a rule recorded is of the window that ended when it was
// recorded.
func reach(o spec.Objective) time.Duration {
	back := o.Slice
	if o.JudgeWindow >= day {
		back = max(back, measure.CountStep)
	}
	for _, in := range o.Vantages() {
		for _, q := range in.Queries() {
			back = max(back, q.Reach(o.JudgeWindow))
			if q.Recorded {
				back = max(back, recordedLag)
			}
		}
	}
	return back
}

func (j judge) recorded(vantage int) bool {
	raw := j.o.Vantages()[vantage].Raw
	return raw != nil && raw.Recorded
}

// afterEnds are the ends of after and, for the own service, of the windows over
// which it must hold; the last ends exactly holdFor later.
func (j judge) afterEnds() []time.Time {
	first := j.afterEnd()
	ends := []time.Time{first}
	if !j.own || j.promise.HoldFor <= 0 || j.o.JudgeWindow <= 0 {
		return ends
	}
	last := first.Add(j.promise.HoldFor)
	for at := first.Add(j.o.JudgeWindow); at.Before(last); at = at.Add(j.o.JudgeWindow) {
		ends = append(ends, at)
	}
	return append(ends, last)
}

// vote judges the objective.
func (j judge) vote() vote {
	v := vote{outcome: OutcomePending, objective: j.service + "/" + j.o.ID}
	if j.gone {
		return j.lost(v)
	}
	if first := j.afterEnd(); j.now.Before(first) {
		v.next = first
		return v
	}
	if !j.own {
		return j.neighbour(v)
	}
	before, ok := j.before()
	after := j.after()
	if !ok || !before.known() || !after.known() {
		return j.wait(v, j.afterEnd())
	}
	v.before, v.after = before.ratio, after.ratio
	if !misses(before.ratio, j.o.Target) {
		return j.bystander(v)
	}
	return j.missed(v, before)
}

func (j judge) after() reading { return j.at(window{j.o.JudgeWindow, j.afterEnd()}) }

// neighbour judges an objective of a service that depends on this one. It can
// only say Worsened, and only if that service was Met at the claim: one that
// missed before has its own trouble, which is not the action's.
func (j judge) neighbour(v vote) vote {
	v.outcome = OutcomeNone
	met, asked := j.met()
	if !met {
		return v
	}
	before, ok := j.before()
	if !ok || !asked {
		return j.wait(v, j.afterEnd())
	}
	if !before.known() {
		// What was not seen before cannot be seen to have been harmed.
		return v
	}
	after := j.after()
	if !after.known() {
		return j.wait(v, j.afterEnd())
	}
	v.before, v.after = before.ratio, after.ratio
	return j.bystander(v)
}

// met reports whether no objective of the neighbour is known to have missed its
// target before. It is not asked while a source that failed may still tell.
func (j judge) met() (met, asked bool) {
	asked = true
	for _, o := range j.beside {
		j.o = o
		r, ok := j.before()
		if r.known() && misses(r.ratio, o.Target) {
			return false, true
		}
		asked = asked && (ok || !j.timeLeft())
	}
	return true, asked
}

// missed judges an own objective that missed its target before.
func (j judge) missed(v vote, before reading) vote {
	var ok bool
	if v.recovering, ok = j.recovering(before); !ok {
		return j.wait(v, j.afterEnd())
	}
	if !misses(v.after, j.o.Target) {
		return j.hold(v)
	}
	v.outcome = j.compare(v.before, v.after)
	return v
}

// bystander was within target before: it counts only when it no longer is.
func (j judge) bystander(v vote) vote {
	v.outcome = OutcomeNone
	if misses(v.after, j.o.Target) {
		v.outcome = OutcomeWorsened
	}
	return v
}

// hold follows an own objective that is within target after, for holdFor.
func (j judge) hold(v vote) vote {
	var open *vote
	for _, end := range j.afterEnds() {
		if end.After(j.now) {
			if open == nil {
				open = &vote{outcome: OutcomePending, objective: v.objective, next: end}
			}
			break
		}
		r := j.at(window{j.o.JudgeWindow, end})
		switch {
		case r.known() && misses(r.ratio, j.o.Target):
			// A relapse is certain, whatever else is not known.
			v.outcome, v.after = OutcomeNoChange, r.ratio
			return v
		case !r.known() && open == nil:
			w := j.wait(v, end)
			open = &w
		}
	}
	if open != nil {
		return *open
	}
	v.outcome = OutcomeRecovered
	return v
}

// compare holds the excess after against the excess before, both above zero.
func (j judge) compare(before, after float64) Outcome {
	was, is := excess(before, j.o.Target), excess(after, j.o.Target)
	switch {
	case is <= (1-j.promise.Improved)*was+epsilon:
		return OutcomeImproved
	case is >= (1+j.promise.Worsened)*was-epsilon:
		return OutcomeWorsened
	default:
		return OutcomeNoChange
	}
}

func shares(o spec.Outcomes) (improved, worsened float64) {
	improved, worsened = o.Improved, o.Worsened
	if !(improved > 0 && improved <= 1) {
		improved = defaultImproved
	}
	if !(worsened > 0) {
		worsened = defaultWorsened
	}
	return improved, worsened
}

// wait is what an unknown reading of the window ending at end means: ask again
// while time is left, and Unknown when it is not.
func (j judge) wait(v vote, end time.Time) vote {
	deadline := end.Add(j.promise.UnknownFor)
	if !j.now.Before(deadline) {
		v.outcome, v.recovering = OutcomeUnknown, false
		return v
	}
	v.outcome = OutcomePending
	v.next = j.now.Add(max(j.o.JudgeWindow/fifth, time.Second))
	if v.next.After(deadline) {
		v.next = deadline
	}
	return v
}

// before is the worse of the judge window and its last fifth. It is not ok
// while the source could not be asked, which says nothing about the service.
func (j judge) before() (r reading, ok bool) {
	whole := j.at(j.judgeWindow())
	if notAsked(whole) {
		return whole, false
	}
	w, spans := j.lastFifth()
	if !spans || !whole.known() {
		return whole, true
	}
	part := j.at(w)
	if notAsked(part) && j.timeLeft() {
		return part, false
	}
	if part.known() && part.ratio > whole.ratio {
		return part, true
	}
	return whole, true
}

// recovering reports whether before had at most half of the excess of the judge
// window preceding it. What is not known is not recovering.
func (j judge) recovering(before reading) (is, ok bool) {
	earlier := j.at(j.preceding())
	if notAsked(earlier) && j.timeLeft() {
		return false, false
	}
	if !earlier.known() || !misses(earlier.ratio, j.o.Target) {
		return false, true
	}
	return excess(before.ratio, j.o.Target) <= excess(earlier.ratio, j.o.Target)/2+epsilon, true
}

func (j judge) timeLeft() bool {
	return j.now.Before(j.afterEnd().Add(j.promise.UnknownFor))
}

// nothing is the vote of an objective that was within target before and after.
func (j judge) nothing() vote {
	v := vote{outcome: OutcomeNoChange, objective: j.service + "/" + j.o.ID}
	if before, ok := j.before(); ok && before.known() {
		v.before = before.ratio
		if j.own {
			v.recovering, _ = j.recovering(before)
		}
	}
	if after := j.after(); after.known() {
		v.after = after.ratio
	}
	return v
}

// notAsked reports whether the source could not tell: then asking again may
// help, which it does not where there was nothing to see.
func notAsked(r reading) bool {
	switch r.reason {
	case measure.SourceError, measure.SourceRefused, measure.ClockSkew, measure.Partial, measure.QueryError,
		measure.NotMeasured:
		return true
	default:
		return false
	}
}
