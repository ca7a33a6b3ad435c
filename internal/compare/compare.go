// Package compare holds measurements against objectives. It takes what
// measure observed and what spec demands, and gives an Assessment for each
// service and the Outcome of each action. It cannot see a proposal, so no
// model can influence what counts as met.
package compare

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// State is the third-valued state of an objective or a service.
type State string

// The states.
const (
	Met      State = "met"
	Breached State = "breached"
	Unknown  State = "unknown"
)

// Reason qualifies a state: a measure.Reason, or one of these.
type Reason = measure.Reason

// The reasons that compare adds.
const (
	// Stale: the newest sample is older than the age limit.
	Stale Reason = "stale"
	// LowTraffic: the judge window holds fewer events than minEvents.
	LowTraffic Reason = "low-traffic"
	// TrafficLost: low traffic now, although the hour before had minEvents per
	// judge window.
	TrafficLost Reason = "traffic-lost"
	// Recovering: a page pair still burns, the judge window is good again.
	Recovering Reason = "recovering"
	// Burning: a page pair burns and the judge window misses the target.
	Burning Reason = "burning"
	// ClockSkew: the sample lies more than 5 s in the future.
	ClockSkew Reason = "clock-skew"
	// Conflicting: the vantage points do not agree whether the target is met.
	Conflicting Reason = "conflicting"
	// PartlyUnknown: a Breached service with an Unknown objective; it pages and
	// does not act.
	PartlyUnknown Reason = "partly-unknown"
)

// Limits are the bounds on the age of what may be compared.
type Limits struct {
	// MaxSampleAge by source name; "" holds for every source that is not named
	// (90 s when absent).
	MaxSampleAge map[string]time.Duration
	// Sweep is the interval of the passes. Windows longer than the judge window
	// are measured again at measure.Cadence, and may be older by twice of it.
	Sweep time.Duration
}

// Burn is the burn rate of one pair.
type Burn struct {
	spec.BurnRate
	// ShortRate and LongRate are error ratio / (1 - target).
	ShortRate, LongRate float64
	// Known is false when either window is.
	Known, Burning bool
	// CoveredAt is the time from which the long window is covered by data;
	// zero when it is covered ("warming until").
	CoveredAt time.Time
}

// Objective is the state of one objective.
type Objective struct {
	ID string
	// Sources are those of its vantage points, in the document's order.
	Sources []string
	State   State
	Reason  Reason
	Detail  string
	Target  float64
	// UnknownFrom is the source that left it Unknown; "" otherwise.
	UnknownFrom string
	// Group is the worst group of an objective that has groups, e.g. host="a";
	// the numbers here are its. Groups counts them all, GroupsBreached those that
	// are breached.
	Group          string
	Groups         int
	GroupsBreached int
	// Judge is over the judge window. Its counts and ratio are valid when
	// Judge.Known(), and tell of the service only when State is not Unknown.
	Judge measure.Measurement
	// Period is over the SLO's own window; it is shown and never acts.
	Period measure.Measurement
	// Covered is how much of the period holds data ("window truncated to"); zero
	// when all of it does.
	Covered time.Duration
	Burns   []Burn
	// SampleAge is now minus the newest sample; zero when unknown.
	SampleAge time.Duration
}

// ErrorBudgetRemaining is the share of the SLO's error budget that is left:
// 1 - errorRatio/(1-target); negative when overspent. ok is false when the
// period is unknown or without events.
func (o Objective) ErrorBudgetRemaining() (remaining float64, ok bool) {
	if !o.Period.Known() || (o.Period.HasEvents && o.Period.Total == 0) {
		return 0, false
	}
	return 1 - o.Period.ErrorRatio/(1-o.Target), true
}

// Assessment is the state of one service at one instant.
type Assessment struct {
	Service string
	// At is the instant of the queries.
	At         time.Time
	State      State
	Reason     Reason
	Objectives []Objective
	// Warming: every burning page pair has a long window that is not covered;
	// it may lead to an approval at most.
	Warming bool
	// WarmingUntil is when the first of them is covered, to a sixtieth of its
	// window.
	WarmingUntil time.Time
	// SampleAt is the oldest of the objectives' newest judge-window samples:
	// two passes with different SampleAt rest on different data. Zero when any
	// is unknown.
	SampleAt time.Time
	// SourceFault names the source when the state is Unknown by its fault.
	SourceFault string
}

// Actionable reports whether something may be proposed: Breached, with the
// judge window missing the target, and nothing unknown beside it.
func (a Assessment) Actionable() bool {
	return a.State == Breached && a.Reason == Burning
}

// Why is what the objective says that gave the state its reason, with its name;
// "" where it says nothing, as where all is well.
func (a Assessment) Why() string {
	for _, o := range a.Objectives {
		if o.State != Met && o.Detail != "" && (o.State != a.State || o.Reason == a.Reason) {
			return o.ID + ": " + o.Detail
		}
	}
	return ""
}

// Worst returns the breached objective with the highest judge burn rate.
func (a Assessment) Worst() (Objective, bool) {
	var worst Objective
	var rate float64
	found := false
	for _, o := range a.Objectives {
		if o.State != Breached {
			continue
		}
		if r := o.Judge.ErrorRatio / (1 - o.Target); !found || r > rate {
			worst, rate, found = o, r, true
		}
	}
	return worst, found
}
