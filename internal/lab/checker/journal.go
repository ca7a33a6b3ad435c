package checker

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// isRequest: it came over the wire from somebody who may send, and not to try
// out what would be done.
func isRequest(rec executetest.Record) bool {
	return rec.Of == 0 && !rec.Foreign && !rec.DryRun && (rec.Signed || rec.Applied)
}

// journal holds every record against the ledger's books.
func (r *run) journal(recs []executetest.Record) {
	// Several journals are one history.
	recs = slices.Clone(recs)
	slices.SortStableFunc(recs, func(a, b executetest.Record) int { return a.Time.Compare(b.Time) })
	stray := map[gate.Key]*life{}
	for _, rec := range recs {
		key := gate.Key(rec.Key)
		l := r.lives[key]
		if l == nil {
			// Of keys that nobody claimed, the effects are counted all the same.
			if stray[key] == nil {
				stray[key] = &life{claim: ledger.Claim{Key: key}}
			}
			l = stray[key]
		}
		if isRequest(rec) {
			r.report.Requests++
			r.claimedFirst(rec, l)
			r.sentOnce(rec, l)
			l.requests = append(l.requests, rec)
		}
		if rec.Applied && !rec.Foreign {
			r.effect(rec, l)
			l.effects = append(l.effects, rec)
		}
	}
}

func (r *run) effect(rec executetest.Record, l *life) {
	r.report.Effects++
	if l.startSeq > 0 && !rec.Time.IsZero() && rec.Time.After(l.horizon().Add(r.o.Slack+r.o.Skew)) {
		r.report.AfterHorizon++
	}
	if len(l.effects) == 0 {
		r.hold(OneEffect)
		return
	}
	r.report.DoubleEffects++
	r.broke(OneEffect, l.claim.Key, l.claimSeq, "effect number %d of the key%s", len(l.effects)+1, at(rec.Time))
}

// claimedFirst checks a request against the claim of its key.
func (r *run) claimedFirst(rec executetest.Record, l *life) {
	r.hold(ClaimedFirst)
	bad := func(format string, args ...any) { r.broke(ClaimedFirst, l.claim.Key, l.claimSeq, format, args...) }
	if l.claimSeq == 0 {
		bad("a request came%s, and the ledger never claimed the key", at(rec.Time))
		return
	}
	if why := otherBytes(rec, l); why != "" {
		bad("%s", why)
	}
	switch {
	case l.effect == execute.Void:
		r.broke(VoidButSent, l.claim.Key, l.claimSeq, "the claim is void, and a request came%s (applied: %t)", at(rec.Time), rec.Applied)
	case l.startSeq == 0:
		bad("a request came%s, and no entry says that it was started", at(rec.Time))
	case !rec.Time.IsZero() && rec.Time.Before(l.startedAt.Add(-r.o.Skew)):
		bad("a request came%s, before it was started at %s", at(rec.Time), stamp(l.startedAt))
	}
	if (rec.Applied || rec.Late) && !rec.Time.IsZero() {
		r.hold(BeforeExpiry)
		if late := rec.Time.Sub(l.claim.Expires); late > r.o.Slack+r.o.Skew {
			r.broke(BeforeExpiry, l.claim.Key, l.claimSeq, "it was accepted %s after the claim expired at %s", late, stamp(l.claim.Expires))
		}
	}
}

// otherBytes says how what came differs from what was claimed; "" when it does
// not. The digest that the request names is not believed: it is computed from
// the content.
func otherBytes(rec executetest.Record, l *life) string {
	if rec.Digest != l.claim.Digest {
		return "the request came with another digest than was claimed"
	}
	if rec.Body == "" {
		return ""
	}
	var e execute.Envelope
	if err := json.Unmarshal([]byte(rec.Body), &e); err != nil {
		return "the request's body cannot be read: " + err.Error()
	}
	if e.Action != l.claim.Action.Name {
		return "the request is to " + e.Action + ", the claim to " + l.claim.Action.Name
	}
	if digest, err := gate.Digest(e.Service, e.Key, l.claim.Action, e.Parameters); err != nil || digest != l.claim.Digest {
		return "the content of the request has another digest than was claimed"
	}
	return ""
}

// sentOnce checks that a key is not sent again, whatever came of the first.
func (r *run) sentOnce(rec executetest.Record, l *life) {
	if len(l.requests) == 0 {
		return
	}
	r.hold(NeverResent)
	same := func(first executetest.Record) bool {
		return first.Body == rec.Body && first.Header.Get(execute.HeaderSignature) == rec.Header.Get(execute.HeaderSignature)
	}
	if r.o.DuplicateDelivery && slices.ContainsFunc(l.requests, same) {
		return
	}
	r.broke(NeverResent, l.claim.Key, l.claimSeq, "request number %d of the key%s", len(l.requests)+1, at(rec.Time))
}

// agree holds what the ledger says became of each key against the journal.
func (r *run) agree() {
	for _, l := range r.order {
		var last execute.Effect
		switch {
		case l.effect == execute.Void:
			r.hold(VoidButSent)
		case l.settled != nil:
			last = l.settled.Effect
		case l.receipt != nil:
			last = l.receipt.Effect
		}
		switch last {
		case execute.Applied, execute.AppliedWithError:
			r.agreed(l, l.received(), "the ledger says %s, and the actuator has no such request", last)
		case execute.Landed:
			if l.settled.By == ledger.SettledByObservation {
				r.agreed(l, l.received(), "the ledger says %s, and the actuator has no such request", last)
			}
		case execute.Failed, execute.NoOp, execute.NotNow, execute.NotLanded:
			r.agreed(l, !l.tookPlace(), "the ledger says %s, and it took effect", last)
		}
	}
}

func (r *run) agreed(l *life, ok bool, format string, args ...any) {
	r.hold(JournalAgrees)
	if !ok {
		r.broke(JournalAgrees, l.claim.Key, l.endSeq, format, args...)
	}
}

// received: the actuator took the request and says, or will say, that it is
// done. Whether it is, is another matter: some lie.
func (l *life) received() bool {
	return slices.ContainsFunc(l.requests, func(rec executetest.Record) bool {
		return rec.Late || rec.Result == execute.Applied || rec.Result == execute.AppliedWithError
	})
}

// tookPlace: there is an effect that the ledger could know of. One that came
// after the entry and after the actuator's own horizon is not.
func (l *life) tookPlace() bool {
	return slices.ContainsFunc(l.effects, func(rec executetest.Record) bool {
		return rec.Time.IsZero() || !rec.Time.After(l.settledAt) || !rec.Time.After(l.horizon())
	})
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + stamp(t)
}
