package checker

import (
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// after says what may follow what in the life of an effect (CONTRACTS:
// effect). It is written down here once more on purpose.
var after = map[execute.Effect][]execute.Effect{
	execute.Claimed: {execute.Started, execute.Void},
	execute.Started: {
		execute.Applied, execute.AppliedWithError, execute.NoOp, execute.Failed, execute.NotNow, execute.InDoubt,
		execute.Landed, execute.NotLanded, execute.Unknown,
	},
	execute.InDoubt: {execute.Landed, execute.NotLanded, execute.NoOp, execute.Failed, execute.NotNow, execute.Unknown},
	execute.Unknown: {execute.Landed, execute.NotLanded},
}

// lived moves a key along its life.
func (r *run) lived(body any) {
	switch b := body.(type) {
	case ledger.Started:
		r.started(b.Key)
	case ledger.Void:
		if l := r.step(b.Key, execute.Void); l != nil {
			l.effect = execute.Void
		}
	case ledger.Receipt:
		if l := r.step(b.Key, b.Receipt.Effect); l != nil {
			l.effect, l.receipt, l.endSeq, l.settledAt = b.Receipt.Effect, &b.Receipt, r.now.Seq, r.now.Time
			if l.effect == execute.InDoubt {
				r.hold(NeverResent)
			}
		}
	case ledger.Settled:
		r.settle(b)
	case ledger.Outcome:
		r.judged(b)
	}
}

// step gives the life of a key that may become next, or names why it may not.
func (r *run) step(key gate.Key, next execute.Effect) *life {
	r.hold(StateMachine)
	l := r.lives[key]
	switch {
	case l == nil:
		r.broke(StateMachine, key, r.now.Seq, "%s, and it was never claimed", next)
		return nil
	case !slices.Contains(after[l.effect], next):
		r.broke(StateMachine, key, r.now.Seq, "%s after %s", next, l.effect)
		return nil
	}
	return l
}

func (r *run) started(key gate.Key) {
	if l := r.lives[key]; l != nil && l.startSeq > 0 {
		r.hold(NeverResent)
		r.broke(NeverResent, key, r.now.Seq, "started again, first in entry %d", l.startSeq)
		return
	}
	if l := r.step(key, execute.Started); l != nil {
		l.startSeq, l.startedAt = r.now.Seq, r.now.Time
		r.start(l)
		l.effect = execute.Started
	}
}

// settle ends what was in doubt, once; a named person ends unknown once more.
func (r *run) settle(b ledger.Settled) {
	l := r.lives[b.Key]
	if l != nil && l.settled != nil {
		r.hold(NeverResent)
		why := ""
		switch {
		case l.effect != execute.Unknown:
			why = "settled again, first as " + string(l.settled.Effect)
		case !person(b.By):
			why = "unknown was ended by " + b.By + ", who is no person"
		case !slices.Contains(after[execute.Unknown], b.Effect):
			why = "unknown was ended as " + string(b.Effect)
		}
		if why != "" {
			r.broke(NeverResent, b.Key, r.now.Seq, "%s", why)
			return
		}
	}
	if l = r.step(b.Key, b.Effect); l != nil {
		r.hold(NeverResent)
		l.effect, l.settled, l.endSeq, l.settledAt = b.Effect, &b, r.now.Seq, r.now.Time
	}
}

func person(by string) bool {
	kind, name, _ := strings.Cut(by, ":")
	return name != "" && (kind == "os" || kind == "token" || kind == "slack")
}

// judged takes the outcome of an effect that took place.
func (r *run) judged(b ledger.Outcome) {
	r.hold(StateMachine)
	l := r.lives[b.Key]
	switch {
	case l == nil:
		r.broke(StateMachine, b.Key, r.now.Seq, "judged, and it was never claimed")
	case l.outcome != nil:
		r.broke(StateMachine, b.Key, r.now.Seq, "judged again, first as %s", l.outcome.Judgement.Outcome)
	case l.effect != execute.Applied && l.effect != execute.AppliedWithError && l.effect != execute.Landed:
		r.broke(StateMachine, b.Key, r.now.Seq, "judged after %s", l.effect)
	default:
		l.outcome = &b
		r.refunded(l)
	}
}
