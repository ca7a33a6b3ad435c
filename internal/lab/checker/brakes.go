package checker

import (
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// braked checks a claim against the storm brake, and an undo against what it
// takes back.
func (r *run) braked(c ledger.Claim) {
	r.hold(NotInStorm)
	if r.storm {
		r.broke(NotInStorm, c.Key, r.now.Seq, "the storm brake is on")
	}
	if !c.Undo || c.Undoes == "" {
		return // a ledger from before claims named it
	}
	r.hold(UndoOnce)
	back := r.lives[c.Undoes]
	switch {
	case back == nil:
		r.broke(UndoOnce, c.Key, r.now.Seq, "%s was never claimed", c.Undoes)
	case back.claim.Undo:
		r.broke(UndoOnce, c.Key, r.now.Seq, "%s is an undo itself", c.Undoes)
	case back.outcome == nil || back.outcome.Judgement.Outcome != compare.OutcomeWorsened:
		r.broke(UndoOnce, c.Key, r.now.Seq, "%s was not judged worsened", c.Undoes)
	case back.claim.Action.Reversal != spec.Restore || back.claim.Target != c.Target:
		r.broke(UndoOnce, c.Key, r.now.Seq, "%s cannot be taken back by this", c.Undoes)
	}
}

// undoStarts counts the sends of undos.
func (r *run) undoStarts(l *life) {
	if l.claim.Undoes == "" {
		return
	}
	r.undone[l.claim.Undoes]++
	if n := r.undone[l.claim.Undoes]; n > 1 {
		r.broke(UndoOnce, l.claim.Key, l.startSeq, "undo number %d of %s", n, l.claim.Undoes)
	}
}

// approvedInStorm checks a yes against the storm brake; a no is always taken.
func (r *run) approvedInStorm(key gate.Key) {
	r.hold(NotInStorm)
	if r.storm {
		r.broke(NotInStorm, key, r.now.Seq, "approved while the storm brake is on")
	}
}
