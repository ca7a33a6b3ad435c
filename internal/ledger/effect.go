package ledger

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Effect is one claim and what became of it.
type Effect struct {
	Service string
	Claim   Claim
	// ClaimedAt is the claim entry's time, ClaimSeq its number.
	ClaimedAt time.Time
	ClaimSeq  uint64
	StartedAt time.Time
	Effect    execute.Effect
	// EffectAt is the time of the entry that gave Effect.
	EffectAt time.Time
	Receipt  execute.Receipt
	// AppliedAt is from when a judged effect counts as applied.
	AppliedAt time.Time
	VoidedFor string
	// SettledBy and SettledFor are of the last settlement: a principal, or
	// SettledByObservation.
	SettledBy, SettledFor string
	// Judgement is set once an outcome was appended; Outcome is its word,
	// pending while a judged effect waits for it, none otherwise.
	Judgement *compare.Judgement
	Outcome   compare.Outcome
	// UndoRefused is why its undo was finally refused; "" when it was not.
	UndoRefused string `json:",omitempty"`
	// Cost is the outcome's; see Charge.
	Cost      float64
	OutcomeAt time.Time
}

// Locked reports whether an effect still locks its service and target: not
// final, or judged and without an outcome. Unknown locks until a named person
// settles it.
func (e Effect) Locked() bool {
	switch e.Effect {
	case execute.Claimed, execute.Started, execute.InDoubt, execute.Unknown:
		return true
	}
	return e.Effect.Judged() && e.Judgement == nil
}

// InDoubt reports whether it was sent, or may have been, and nobody knows what
// became of it: a person may have to settle it.
func (e Effect) InDoubt() bool {
	return e.Effect == execute.Started || e.Effect == execute.InDoubt
}

// Horizon is until when a lost effect may still land, by the store's clock; zero
// when it was never started. Without a receipt, whoever started it may have been
// stopped right then, and may go on to send for as long as its permit holds by
// its own clock.
func (e Effect) Horizon() time.Time {
	a := e.Claim.Action
	switch {
	case e.StartedAt.IsZero():
		return time.Time{}
	case e.Receipt.At.IsZero():
		return later(e.StartedAt, e.Claim.Expires.Add(maxSkew)).Add(a.Horizon())
	}
	return later(e.StartedAt.Add(a.Timeout), e.Receipt.At).Add(a.MaxLateness)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// maxSkew is the most that the clocks of two replicas may differ (DESIGN section
// 7); beyond it nothing is decided.
const maxSkew = 5 * time.Second

// SentAt is the time of sending; zero when it was never sent.
func (e Effect) SentAt() time.Time { return e.StartedAt }

// Charge is what the effect costs its budgets now: the dearest outcome's cost
// from the claim on, replaced by that of what happened. Approved ones cost
// nothing. An undo costs only when it was judged Worsened, and only then.
func (e Effect) Charge() float64 {
	switch {
	case e.Claim.Verdict != gate.Auto:
		return 0
	case e.Judgement != nil && e.Claim.Undo && e.Outcome != compare.OutcomeWorsened:
		return 0
	case e.Judgement != nil:
		return e.Cost
	case e.Claim.Undo:
		return 0
	}
	switch e.Effect {
	case execute.Void, execute.NotLanded, execute.NoOp, execute.Failed, execute.NotNow:
		return 0
	}
	return e.Claim.Charge
}

// setEffect stores a changed effect and what follows from it.
func (s *State) setEffect(e *Effect) {
	if e.Judgement == nil {
		e.Outcome = compare.OutcomeNone
		if e.Effect.Judged() {
			e.Outcome = compare.OutcomePending
		}
	}
	key := e.Claim.Key
	s.Effects[key] = e
	// An effect that no longer locks never locks again, so the order of claims
	// is kept.
	if at := slices.Index(s.Unsettled, key); at >= 0 && !e.Locked() {
		s.Unsettled = slices.Delete(slices.Clone(s.Unsettled), at, at+1)
	}
	if d, ok := s.Decisions[e.Claim.Decision]; ok {
		c := *d
		c.Effect, c.Outcome, c.Charge = e.Effect, e.Outcome, e.Charge()
		s.Decisions[c.ID] = &c
	}
}

// InFlight returns the locked effect on a service, and on a canonical target;
// nil where there is none.
func (s *State) InFlight(service, target string) (onService, onTarget *Effect) {
	for _, key := range s.Unsettled {
		e := s.Effects[key]
		if onService == nil && e.Service == service {
			onService = e
		}
		if onTarget == nil && e.Claim.Target == target {
			onTarget = e
		}
	}
	return onService, onTarget
}

// Charges are those of all claims by verdict auto: the provisional cost, or
// the outcome's. Oldest claim first.
func (s *State) Charges() []budget.Charge {
	cs := slices.Clone(s.Charged)
	for _, key := range s.EffectOrder {
		if e := s.Effects[key]; e.Claim.Verdict == gate.Auto {
			cs = append(cs, e.charged())
		}
	}
	if len(s.Charged) > 0 {
		slices.SortStableFunc(cs, func(a, b budget.Charge) int { return a.At.Compare(b.At) })
	}
	return cs
}

func (e Effect) charged() budget.Charge {
	return budget.Charge{
		Service: e.Service, Action: e.Claim.Action.Name, Decision: e.Claim.Decision,
		At: e.ClaimedAt, Cost: e.Charge(), Outcome: e.Outcome,
	}
}

// Claimed counts the effects of a service ("" for all) that are claimed and
// neither started nor void, but for one: each may be sent at any moment.
func (s *State) Claimed(service string, without gate.Key) int {
	n := 0
	for _, key := range s.Unsettled {
		e := s.Effects[key]
		if e.Effect == execute.Claimed && key != without && (service == "" || e.Service == service) {
			n++
		}
	}
	return n
}

// Sent counts the effects of a service ("" for all) sent at or after a time.
func (s *State) Sent(service string, since time.Time) int {
	from, _ := slices.BinarySearchFunc(s.Starts, since, func(st Start, t time.Time) int { return st.At.Compare(t) })
	n := 0
	for _, st := range s.Starts[from:] {
		if service == "" || st.Service == service {
			n++
		}
	}
	return n
}
