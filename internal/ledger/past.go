package ledger

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// changing reports whether an effect may have changed its target: it was sent,
// and nobody said that nothing was done.
func (e Effect) changing() bool { return e.Effect.Judged() || e.InDoubt() }

// SentSince are the effects since a time that may have changed something, of a
// service or on a target, oldest first.
func (s *State) SentSince(service, target string, since time.Time, without gate.Key) []gate.Sent {
	var out []gate.Sent
	for _, key := range slices.Backward(s.EffectOrder) {
		e := s.Effects[key]
		if e.ClaimedAt.Before(since) {
			break
		}
		if key == without || !e.changing() || e.Service != service && e.Claim.Target != target {
			continue
		}
		sent := gate.Sent{
			Service: e.Service, Action: e.Claim.Action.Name, Target: e.Claim.Target, Reversal: e.Claim.Action.Reversal,
			Parameters: e.Claim.Parameters, Before: e.Claim.Live, At: e.SentAt(), Undo: e.Claim.Undo,
			Episode: e.Claim.Episode, Outcome: e.Outcome,
		}
		if e.Judgement != nil {
			sent.Recovering = e.Judgement.Recovering
		}
		out = append(out, sent)
	}
	slices.Reverse(out)
	return out
}

// Harmful returns the newest effect of a service that made things worse and
// may be taken back, whether it was tried or not; nil without. It is one that
// measurement judged Worsened, of an action whose reversal is restore, with
// nothing sent to its target since. It counts while its episode lasts, and for
// a while after the outcome: a neighbour's miss has no episode of this service.
func (s *State) Harmful(service string, now time.Time, within time.Duration) *Effect {
	sv, _ := s.Service(service)
	for _, key := range slices.Backward(sv.Effects) {
		e := s.Effects[key]
		switch {
		case e.Claim.Undo || !e.changing():
			continue // The undo itself, or nothing was done.
		case e.Outcome != compare.OutcomeWorsened || e.Claim.Action.Reversal != spec.Restore || len(e.Claim.Parameters) == 0:
			return nil
		case (sv.Episode == "" || e.Claim.Episode != sv.Episode) && now.Sub(e.OutcomeAt) >= within:
			return nil
		case s.sentAfter(e):
			return nil
		}
		return e
	}
	return nil
}

// sentAfter reports whether something else was sent to the effect's target
// since: then it is no longer what is there. Its own undo does not count.
func (s *State) sentAfter(e *Effect) bool {
	for _, key := range slices.Backward(s.EffectOrder) {
		other := s.Effects[key]
		if key == e.Claim.Key || other.ClaimedAt.Before(e.ClaimedAt) {
			return false
		}
		if other.Claim.Target == e.Claim.Target && other.changing() && other.Claim.Undoes != e.Claim.Key {
			return true
		}
	}
	return false
}

// UndoOf is the effect that takes one back, or may: nil while none was claimed,
// and after one that was void before it was sent.
func (s *State) UndoOf(e *Effect) *Effect {
	sv, _ := s.Service(e.Service)
	for _, key := range slices.Backward(sv.Effects) {
		if u := s.Effects[key]; u.Claim.Undo && u.Claim.Undoes == e.Claim.Key && !u.StartedAt.IsZero() {
			return u
		}
	}
	return nil
}

// Undoable is the effect that the loop should take back now: Harmful, and
// neither tried nor finally refused. One undo per action, and an undo has none.
func (s *State) Undoable(service string, now time.Time, within time.Duration) *Effect {
	e := s.Harmful(service, now, within)
	if e == nil || e.UndoRefused != "" || s.UndoOf(e) != nil || s.UndoGivenUp(e) {
		return nil
	}
	return e
}

// maxUndoTries is how often an undo is claimed that is void before it is sent:
// each try spends a window, and somebody should look instead.
const maxUndoTries = 3

// UndoGivenUp reports whether the undo of an effect was tried as often as it is.
func (s *State) UndoGivenUp(e *Effect) bool { return s.undoTries(e) >= maxUndoTries }

func (s *State) undoTries(e *Effect) int {
	n := 0
	sv, _ := s.Service(e.Service)
	for _, key := range sv.Effects {
		if u := s.Effects[key]; u.Claim.Undo && u.Claim.Undoes == e.Claim.Key {
			n++
		}
	}
	return n
}

// FreeKey is the first window of a service that nobody has claimed, from one
// on, and that no open ticket reserves.
func (s *State) FreeKey(service string, w gate.WindowID) gate.Key {
	reserved := gate.Key("")
	if t, ok := s.OpenTicket(service); ok {
		reserved = t.Key
	}
	for s.KeyClaimed(service, w) || gate.KeyOf(service, w) == reserved {
		w = gate.WindowID{Start: w.Start + w.Length, Length: w.Length}
	}
	return gate.KeyOf(service, w)
}
