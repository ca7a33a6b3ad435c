package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Record is what counts of the past of one action of one service, however long
// ago: it is kept when the effects themselves are forgotten.
type Record struct {
	// LastSent is the newest time of sending.
	LastSent time.Time
	// Worsened is the newest unbroken row of outcomes worsened, Nothing that of
	// effects that did nothing. Undos count in neither, or they would hide that
	// an action did harm twice.
	Worsened, Nothing Row
	// Harmed are the times of the newest outcomes Worsened, in a row or not,
	// oldest first: as many as a demotion can rest on.
	Harmed []time.Time `json:",omitempty"`
}

// Row is the length of an unbroken row, and the key of its newest.
type Row struct {
	Length int
	Last   gate.Key
	// Pardons are of resets that may still hold, oldest first, each shorter than
	// the one before.
	Pardons []Pardon `json:",omitempty"`
}

// Pardon is that a reset forgives the first Of of a row, until Until if that is
// set.
type Pardon struct {
	Of    int
	Until time.Time
}

func (r Row) counting(now time.Time) int {
	for _, p := range slices.Backward(r.Pardons) {
		if p.Until.IsZero() || now.Before(p.Until) {
			return r.Length - p.Of
		}
	}
	return r.Length
}

func (r *Row) add(key gate.Key, hit bool) {
	if !hit {
		*r = Row{}
		return
	}
	r.Length, r.Last = r.Length+1, key
}

func (r *Row) pardon(until time.Time) {
	if r.Length == 0 {
		return
	}
	// Older ones count again when this one has ended, if they hold longer.
	var kept []Pardon
	for _, p := range r.Pardons {
		if !until.IsZero() && (p.Until.IsZero() || p.Until.After(until)) {
			kept = append(kept, p)
		}
	}
	r.Pardons = append(kept, Pardon{Of: r.Length, Until: until})
}

// record changes the record of an action.
func (s *State) record(service, action string, change func(*Record)) {
	sv := s.edit(service)
	r := sv.Actions[action]
	change(&r)
	sv.Actions = maps.Clone(sv.Actions)
	if sv.Actions == nil {
		sv.Actions = map[string]Record{}
	}
	sv.Actions[action] = r
	s.put(sv)
}

// recordEffect counts an effect that did nothing; one that is judged breaks the
// row, and any other says nothing.
func (s *State) recordEffect(e *Effect) {
	did := e.Effect.Judged()
	nothing := e.Effect == execute.Failed || e.Effect == execute.NotNow || e.Effect == execute.NoOp
	if e.Claim.Undo || e.Receipt.Held || !did && !nothing {
		return
	}
	s.record(e.Service, e.Claim.Action.Name, func(r *Record) { r.Nothing.add(e.Claim.Key, nothing) })
}

func (s *State) recordOutcome(e *Effect) {
	if e.Claim.Undo {
		return
	}
	s.record(e.Service, e.Claim.Action.Name, func(r *Record) {
		r.Worsened.add(e.Claim.Key, e.Outcome == compare.OutcomeWorsened)
		if e.Outcome == compare.OutcomeWorsened {
			r.Harmed = budget.KeptWorsened(append(slices.Clone(r.Harmed), e.OutcomeAt))
		}
	})
}

// Suspended says why an action of a service is suspended at now; "" when it is
// not: two Worsened in a row, or three of failed, not-now or no-op in a row,
// but for what a person's reset forgives.
func (s *State) Suspended(service, action string, now time.Time) string {
	sv, _ := s.Service(service)
	r := sv.Actions[action]
	if n := r.Worsened.counting(now); n >= 2 {
		return fmt.Sprintf("worsened %d times in a row, last by %s", n, r.Worsened.Last)
	}
	if n := r.Nothing.counting(now); n >= 3 {
		return fmt.Sprintf("did nothing %d times in a row, last by %s", n, r.Nothing.Last)
	}
	return ""
}

// LastSent is the newest time of sending on a service, of one action ("" for
// any); zero when nothing was sent.
func (s *State) LastSent(service, action string) time.Time {
	sv, _ := s.Service(service)
	if action != "" {
		return sv.Actions[action].LastSent
	}
	var last time.Time
	for _, r := range sv.Actions {
		if r.LastSent.After(last) {
			last = r.LastSent
		}
	}
	return last
}
