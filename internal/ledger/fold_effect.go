package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

func foldTicket(s *State, e Entry, b approve.Ticket) string {
	if t, ok := s.OpenTicket(e.Service); ok {
		return fmt.Sprintf("ticket %s of the service is %s", t.ID, t.State)
	}
	b.ID, b.Service, b.State = TicketID(e.Seq), e.Service, approve.Open
	b.Reason, b.Answers, b.ClaimedAt, b.StartedAt = "", nil, time.Time{}, time.Time{}
	if b.Asked.IsZero() {
		b.Asked = e.Time
	}
	if ef, ok := s.Effects[b.Key]; ok && ef.Claim.Ticket == b.ID {
		b.ClaimedAt = ef.ClaimedAt // A claim that named it beforehand.
	}
	s.Tickets[b.ID] = &b
	sv := s.edit(e.Service)
	sv.Tickets = append(slices.Clip(sv.Tickets), b.ID)
	s.put(sv)
	return ""
}

func foldAnswer(s *State, _ Entry, b approve.Answer) string {
	t, ok := s.Tickets[b.Ticket]
	if !ok {
		return "there is no ticket " + b.Ticket
	}
	next := approve.Apply(*t, b)
	if len(next.Answers) == len(t.Answers) {
		return fmt.Sprintf("ticket %s, %s, takes no such answer of %s", t.ID, t.State, b.By)
	}
	s.setTicket(next)
	return ""
}

func foldTicketEnd(s *State, _ Entry, b TicketEnd) string {
	t, ok := s.Tickets[b.Ticket]
	if !ok {
		return "there is no ticket " + b.Ticket
	}
	next := approve.End(*t, b.State, b.Reason)
	if next.State == t.State {
		return fmt.Sprintf("ticket %s is %s", t.ID, t.State)
	}
	s.setTicket(next)
	return ""
}

// setTicket stores a changed ticket; a denied or expired one closes the window
// in which it was asked.
func (s *State) setTicket(t approve.Ticket) {
	s.Tickets[t.ID] = &t
	final := ""
	switch t.State {
	case approve.Denied:
		final = FinalDenied
	case approve.Expired:
		final = FinalExpired
	default:
		return
	}
	if e, ok := s.Effects[gate.Key(t.Proposal.Undoes)]; ok && t.Proposal.Undo {
		c := *e
		c.UndoRefused = fmt.Sprintf("%s was %s", t.ID, t.State)
		s.setEffect(&c)
	}
	sv := s.edit(t.Service)
	w := sv.window(windowOf(t.Key).String())
	w.Final = final
	sv.putWindow(w)
	s.put(sv)
}

func foldClaim(s *State, e Entry, b Claim) string {
	if _, ok := s.Effects[b.Key]; ok {
		return "the key was claimed already"
	}
	s.EffectOrder = append(s.EffectOrder, b.Key)
	s.Unsettled = append(s.Unsettled, b.Key)
	s.ClaimsMoved = e.Seq
	sv := s.edit(e.Service)
	sv.Effects = append(slices.Clip(sv.Effects), b.Key)
	sv.mark(windowOf(b.Key).String())
	if w := windowOf(b.Key); w.Start > sv.Spent.Start || sv.Spent == (gate.WindowID{}) {
		sv.Spent = w
	}
	s.put(sv)
	if t, ok := s.Tickets[b.Ticket]; ok && t.Key == b.Key {
		c := *t
		c.ClaimedAt = e.Time
		s.Tickets[c.ID] = &c
	}
	s.setEffect(&Effect{
		Service: e.Service, Claim: b, ClaimedAt: e.Time, ClaimSeq: e.Seq,
		Effect: execute.Claimed, EffectAt: e.Time,
	})
	return ""
}

// move gives a copy of the effect to change, or why it cannot become next.
func (s *State) move(key gate.Key, next execute.Effect) (*Effect, string) {
	have, ok := s.Effects[key]
	if !ok {
		return nil, fmt.Sprintf("key %s was never claimed", key)
	}
	if !have.Effect.Follows(next) {
		return nil, fmt.Sprintf("the effect of %s is %s", key, have.Effect)
	}
	c := *have
	return &c, ""
}

// judgeable gives a copy of an effect that waits for its outcome.
func (s *State) judgeable(key gate.Key) (*Effect, string) {
	have, ok := s.Effects[key]
	switch {
	case !ok:
		return nil, fmt.Sprintf("key %s was never claimed", key)
	case !have.Effect.Judged():
		return nil, fmt.Sprintf("the effect of %s is %s", key, have.Effect)
	case have.Judgement != nil:
		return nil, fmt.Sprintf("the effect of %s was judged %s", key, have.Outcome)
	}
	c := *have
	return &c, ""
}

func foldStarted(s *State, e Entry, b Started) string {
	ef, why := s.move(b.Key, execute.Started)
	if why != "" {
		return why
	}
	ef.Effect, ef.EffectAt, ef.StartedAt = execute.Started, e.Time, e.Time
	s.Starts = append(s.Starts, Start{Service: e.Service, Key: b.Key, At: e.Time})
	s.record(e.Service, ef.Claim.Action.Name, func(r *Record) { r.LastSent = e.Time })
	if t, ok := s.Tickets[ef.Claim.Ticket]; ok {
		c := *t
		c.StartedAt = e.Time
		s.Tickets[c.ID] = &c
	}
	s.setEffect(ef)
	return ""
}

func foldVoid(s *State, e Entry, b Void) string {
	ef, why := s.move(b.Key, execute.Void)
	if why != "" {
		return why
	}
	ef.Effect, ef.EffectAt, ef.VoidedFor = execute.Void, e.Time, b.Reason
	s.setEffect(ef)
	return ""
}

func foldReceipt(s *State, e Entry, b Receipt) string {
	ef, why := s.move(b.Key, b.Receipt.Effect)
	if why != "" {
		return why
	}
	ef.Effect, ef.EffectAt, ef.Receipt = b.Receipt.Effect, e.Time, b.Receipt
	if ef.Effect.Judged() {
		ef.AppliedAt = b.Receipt.AppliedAt
		if ef.AppliedAt.IsZero() {
			ef.AppliedAt = b.Receipt.At
		}
	}
	s.recordEffect(ef)
	s.setEffect(ef)
	return ""
}

func foldSettled(s *State, e Entry, b Settled) string {
	ef, why := s.settleable(b)
	if why != "" {
		return why
	}
	ef.Effect, ef.EffectAt = b.Effect, e.Time
	ef.SettledBy, ef.SettledFor = b.By, b.Reason
	if ef.Effect.Judged() {
		ef.AppliedAt = b.AppliedAt
		if ef.AppliedAt.IsZero() {
			ef.AppliedAt = ef.Horizon()
		}
	}
	s.recordEffect(ef)
	s.setEffect(ef)
	return ""
}

// settleable gives the effect that a settlement may end: one in doubt, once;
// and one that was settled as unknown, by a named person who found out.
func (s *State) settleable(b Settled) (*Effect, string) {
	ef, why := s.move(b.Key, b.Effect)
	if why != "" || ef.Effect != execute.Unknown {
		return ef, why
	}
	if b.Effect != execute.Landed && b.Effect != execute.NotLanded {
		return nil, fmt.Sprintf("the effect of %s is unknown, a person can say landed or not-landed", b.Key)
	}
	if err := approve.CheckPrincipal(b.By); err != nil {
		return nil, fmt.Sprintf("the effect of %s is unknown, only a named person ends that: %s", b.Key, err)
	}
	return ef, ""
}

func foldOutcome(s *State, e Entry, b Outcome) string {
	ef, why := s.judgeable(b.Key)
	if why != "" {
		return why
	}
	ef.Judgement, ef.Outcome, ef.Cost, ef.OutcomeAt = &b.Judgement, b.Judgement.Outcome, b.Cost, e.Time
	s.ClaimsMoved = e.Seq
	s.recordOutcome(ef)
	s.setEffect(ef)
	return ""
}
