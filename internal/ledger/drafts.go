package ledger

import (
	"fmt"
	"math"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// The functions of this file are the transitions: each checks its condition
// against a State and gives the Draft, or an error that wraps ErrLost (or
// ErrExists) and says what came before. Call them inside a Plan, on a State
// that holds every entry up to the append, which PlanFrom provides; then the
// condition holds when the entry is written, whoever else appends.

// SettledByObservation is Settled.By when the actuator's own answer settled it.
const SettledByObservation = "observation"

// PlanFrom makes a Plan of a decision on the newest state: base, folded on with
// whatever was appended since. It leaves base as it is, and nobody else may
// change base while Append runs: hold its lock, or give a Clone. The number of
// the i-th draft's entry will be s.Head.Seq + 1 + i.
func PlanFrom(base *State, decide func(s *State) ([]Draft, error)) Plan {
	return func(since []Entry) ([]Draft, error) {
		s := base
		if len(since) > 0 {
			s = base.Clone()
		}
		for _, e := range since {
			if err := s.Apply(e); err != nil {
				return nil, err
			}
		}
		return decide(s)
	}
}

func lost(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLost, fmt.Sprintf(format, args...))
}

// StateDraft records a reading. From is set to the present state. It is
// ErrExists when the entry would say nothing new: a pass that changes nothing
// writes nothing. The first Met under changed documents is new even when the
// service was Met before, since it says that they can be met.
func StateDraft(s *State, service string, c StateChange) (Draft, error) {
	sv, _ := s.Service(service)
	c.From = sv.State
	c.ErrorRatio = number(c.ErrorRatio)
	if c.To == sv.State && c.Reason == sv.Reason && c.SourceFault == sv.SourceFault &&
		(sv.EverMet || c.To != compare.Met) {
		return Draft{}, fmt.Errorf("state of %s: %w", service, ErrExists)
	}
	return Draft{Kind: KindState, Service: service, Body: c}, nil
}

// RecoveredDraft ends the present episode of a service that is Met.
func RecoveredDraft(s *State, service string) (Draft, error) {
	sv, _ := s.Service(service)
	if sv.Episode == "" || sv.State != compare.Met {
		return Draft{}, lost("service %s is %s in episode %q", service, sv.State, sv.Episode)
	}
	return Draft{
		Kind: KindRecovered, Service: service, Unique: "recovered/" + service + "/" + sv.Episode,
		Body: Recovered{Episode: sv.Episode},
	}, nil
}

// AskDraft records that a proposer is about to be asked. A model is not asked
// beyond the limits, which is ErrLimit; rules have none.
func AskDraft(s *State, service string, a Asked, l propose.Limits, now time.Time) (Draft, error) {
	sv, _ := s.Service(service)
	if w, ok := sv.Windows[a.Window]; ok && (w.Asked != nil || w.Proposed != nil) {
		return Draft{}, fmt.Errorf("ask for %s:%s: %w", service, a.Window, ErrExists)
	}
	if startOf(a.Window).Start < sv.Mark.Start {
		return Draft{}, lost("window %s of %s is older than %s", a.Window, service, sv.Mark)
	}
	if why := l.Reached(s.Calls, service, now); why != "" && a.Proposer.Endpoint != "" {
		return Draft{}, fmt.Errorf("%w: %s", ErrLimit, why)
	}
	return Draft{Kind: KindAsked, Service: service, Unique: "asked/" + service + ":" + a.Window, Body: a}, nil
}

// ProposalDraft records the one proposal of a window, with its request and
// reply as blobs. An undo may take the place of another's.
func ProposalDraft(s *State, service string, p Proposed, blobs ...[]byte) (Draft, error) {
	sv, _ := s.Service(service)
	unique := "proposal/" + service + ":" + p.Window
	if p.Proposal.Undo {
		unique = "undo/" + service + ":" + p.Window
	}
	if w, ok := sv.Windows[p.Window]; ok && w.Proposed != nil && (!p.Proposal.Undo || w.Proposed.Proposal.Undo) {
		return Draft{}, fmt.Errorf("proposal for %s:%s: %w", service, p.Window, ErrExists)
	}
	return Draft{Kind: KindProposal, Service: service, Unique: unique, Body: p, Blobs: blobs}, nil
}

// TicketDraft asks people. A service has one open ticket.
func TicketDraft(s *State, service string, t approve.Ticket) (Draft, error) {
	if open, ok := s.OpenTicket(service); ok {
		return Draft{}, lost("ticket %s of service %s is %s", open.ID, service, open.State)
	}
	if err := s.keyFree(service, t.Key); err != nil {
		return Draft{}, err
	}
	return Draft{Kind: KindTicket, Service: service, Body: t}, nil
}

// AnswerDraft records an answer that approve.Record gave.
func AnswerDraft(s *State, a approve.Answer) (Draft, error) {
	t, ok := s.Tickets[a.Ticket]
	if !ok {
		return Draft{}, lost("there is no ticket %s", a.Ticket)
	}
	if next := approve.Apply(*t, a); len(next.Answers) == len(t.Answers) {
		return Draft{}, lost("ticket %s is %s and takes no such answer of %s", t.ID, t.State, a.By)
	}
	return Draft{Kind: KindAnswer, Service: t.Service, Body: a}, nil
}

// TicketEndDraft ends a ticket other than by an answer.
func TicketEndDraft(s *State, e TicketEnd) (Draft, error) {
	t, ok := s.Tickets[e.Ticket]
	if !ok {
		return Draft{}, lost("there is no ticket %s", e.Ticket)
	}
	if next := approve.End(*t, e.State, e.Reason); next.State == t.State {
		return Draft{}, lost("ticket %s is %s", t.ID, t.State)
	}
	return Draft{Kind: KindTicketEnd, Service: t.Service, Body: e}, nil
}

// ClaimDraft claims a key when ClaimAllowed says so.
func ClaimDraft(s *State, service string, c Claim, decidedAt Position) (Draft, error) {
	if err := ClaimAllowed(s, service, c, decidedAt); err != nil {
		return Draft{}, err
	}
	return Draft{Kind: KindClaim, Service: service, Unique: "claim/" + string(c.Key), Body: c}, nil
}

// StartDraft goes from claimed to started. It must be durable before the first
// byte is sent. A deny or a freeze that was recorded between the two still stops
// it.
func StartDraft(s *State, key gate.Key) (Draft, error) {
	ef, why := s.move(key, execute.Started)
	if why != "" {
		return Draft{}, lost("%s", why)
	}
	if max(s.FrozenAt[""], s.FrozenAt[ef.Service]) > ef.ClaimSeq {
		return Draft{}, lost("%s was frozen after the claim", ef.Service)
	}
	if id := ef.Claim.Ticket; id != "" {
		if t, ok := s.Tickets[id]; !ok || t.State != approve.Approved {
			return Draft{}, lost("ticket %s is no longer approved", id)
		}
	}
	return Draft{Kind: KindStarted, Service: ef.Service, Unique: begun(key), Body: Started{Key: key}}, nil
}

// VoidDraft goes from claimed to void. Once it is appended no start can be.
func VoidDraft(s *State, key gate.Key, reason string) (Draft, error) {
	ef, why := s.move(key, execute.Void)
	if why != "" {
		return Draft{}, lost("%s", why)
	}
	return Draft{Kind: KindVoid, Service: ef.Service, Unique: begun(key), Body: Void{Key: key, Reason: reason}}, nil
}

// begun is one name for both ends of a claim, so that the store itself refuses
// the second.
func begun(key gate.Key) string { return "begun/" + string(key) }

// ReceiptDraft goes from started to what the actuator answered.
func ReceiptDraft(s *State, key gate.Key, r execute.Receipt) (Draft, error) {
	ef, why := s.move(key, r.Effect)
	if why != "" {
		return Draft{}, lost("%s", why)
	}
	return Draft{
		Kind: KindReceipt, Service: ef.Service, Unique: "receipt/" + string(key), Body: Receipt{Key: key, Receipt: r},
	}, nil
}

// SettleDraft ends an effect in doubt, once; one that was settled as unknown
// is ended once more, by a named person, as landed or not-landed.
func SettleDraft(s *State, b Settled) (Draft, error) {
	ef, why := s.settleable(b)
	if why != "" {
		return Draft{}, lost("%s", why)
	}
	unique := "settled/" + string(b.Key)
	if ef.Effect == execute.Unknown {
		unique = "found/" + string(b.Key)
	}
	return Draft{Kind: KindSettled, Service: ef.Service, Unique: unique, Body: b}, nil
}

// OutcomeDraft records what measurement says, once per effect.
func OutcomeDraft(s *State, b Outcome) (Draft, error) {
	ef, why := s.judgeable(b.Key)
	if why != "" {
		return Draft{}, lost("%s", why)
	}
	b.Judgement.Before, b.Judgement.After = number(b.Judgement.Before), number(b.Judgement.After)
	return Draft{Kind: KindOutcome, Service: ef.Service, Unique: "outcome/" + string(b.Key), Body: b}, nil
}

// FreezeDraft records a freeze that is not known yet. A freeze that was lifted
// is ErrExists: its file is to be removed.
func FreezeDraft(s *State, f Freeze) (Draft, error) {
	_, known := s.Freezes[f.ID]
	if _, lifted := s.Thawed[f.ID]; known || lifted {
		return Draft{}, fmt.Errorf("freeze %s: %w", f.ID, ErrExists)
	}
	return Draft{Kind: KindFreeze, Service: f.Service, Unique: "freeze/" + f.ID, Body: f}, nil
}

// ThawDraft lifts a freeze, once. The id may be that of a file which was not
// recorded yet.
func ThawDraft(s *State, t Thaw) (Draft, error) {
	if _, lifted := s.Thawed[t.ID]; lifted {
		return Draft{}, fmt.Errorf("thaw of %s: %w", t.ID, ErrExists)
	}
	return Draft{Kind: KindThaw, Service: s.Freezes[t.ID].Service, Unique: "thaw/" + t.ID, Body: t}, nil
}

// number is 0 for what JSON cannot hold: a ratio that is no number is none.
func number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// ChangeDraft records a posted change of a service; one that is recorded
// already is ErrExists.
func ChangeDraft(s *State, service string, c Changed) (Draft, error) {
	sv, _ := s.Service(service)
	change := measure.Change{At: c.At, Service: service, What: c.What, Version: c.Version}
	for _, known := range sv.Changes {
		if known.Newest(change) == 0 {
			return Draft{}, fmt.Errorf("change of %s at %s: %w", service, c.At.UTC().Format(time.RFC3339), ErrExists)
		}
	}
	return Draft{Kind: KindChange, Service: service, Body: c}, nil
}
