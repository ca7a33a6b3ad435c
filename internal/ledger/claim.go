package ledger

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// KeyClaimed reports whether the window of a service is spent: it was claimed,
// a later one was, or it began before a chain was adopted. Starts are compared,
// so that another window length frees nothing.
func (s *State) KeyClaimed(service string, w gate.WindowID) bool {
	sv, _ := s.Service(service)
	if sv.Spent != (gate.WindowID{}) && w.Start <= sv.Spent.Start || w.Start <= s.SpentUntil {
		return true
	}
	for _, key := range sv.Effects {
		if windowOf(key).Start == w.Start {
			return true
		}
	}
	return false
}

// ClaimAllowed is the condition of a claim (DESIGN section 2, Claim): the key
// is free, no other claim on the service or target is unsettled, no later key
// of the service was claimed, and nothing moved since the decision's position.
// A ticket's claim needs the ticket approved, with this key and digest; the
// key of a ticket that is not closed is nobody else's. It returns nil or an
// error that wraps ErrLost or ErrExists and names which.
func ClaimAllowed(s *State, service string, c Claim, decidedAt Position) error {
	if have, ok := s.Effects[c.Key]; ok && have.Claim.Digest != c.Digest {
		return fmt.Errorf("claim %s: %w: %s holds it", c.Key, ErrConflict, have.Claim.Action.Name)
	}
	if err := s.keyFree(service, c.Key); err != nil {
		return err
	}
	onService, onTarget := s.InFlight(service, c.Target)
	sv, _ := s.Service(service)
	switch {
	case sv.State != "" && sv.State != compare.Breached && !c.Undo:
		return fmt.Errorf("claim %s: %w: the service is %s", c.Key, ErrLost, sv.State)
	case onService != nil:
		return fmt.Errorf("claim %s: %w: %s of the service is %s", c.Key, ErrLost, onService.Claim.Key, onService.standing())
	case onTarget != nil:
		return fmt.Errorf("claim %s: %w: %s on the same target is %s", c.Key, ErrLost, onTarget.Claim.Key, onTarget.standing())
	case s.ClaimsMoved > decidedAt.Seq:
		return fmt.Errorf("claim %s: %w: entry %d was appended after entry %d, on which the decision rests",
			c.Key, ErrLost, s.ClaimsMoved, decidedAt.Seq)
	}
	return s.ticketAllows(service, c)
}

func (s *State) keyFree(service string, key gate.Key) error {
	w := windowOf(key)
	sv, _ := s.Service(service)
	for _, other := range sv.Effects {
		if windowOf(other).Start == w.Start {
			return fmt.Errorf("claim %s: %w: %s", key, ErrExists, other)
		}
	}
	switch {
	case w.Start <= s.SpentUntil:
		return fmt.Errorf("claim %s: %w: the window began before this chain was adopted, and may be spent in what was lost", key, ErrLost)
	case sv.Spent != (gate.WindowID{}) && w.Start == sv.Spent.Start:
		return fmt.Errorf("claim %s: %w", key, ErrExists)
	case sv.Spent != (gate.WindowID{}) && w.Start < sv.Spent.Start:
		return fmt.Errorf("claim %s: %w: the later %s was claimed", key, ErrLost, gate.KeyOf(service, sv.Spent))
	}
	return nil
}

func (s *State) ticketAllows(service string, c Claim) error {
	if c.Ticket == "" {
		if t, ok := s.OpenTicket(service); ok && windowOf(t.Key).Start == windowOf(c.Key).Start {
			return fmt.Errorf("claim %s: %w: ticket %s reserves the key", c.Key, ErrLost, t.ID)
		}
		return nil
	}
	t, ok := s.Tickets[c.Ticket]
	switch {
	case !ok:
		return fmt.Errorf("claim %s: %w: there is no ticket %s", c.Key, ErrLost, c.Ticket)
	case t.State != approve.Approved:
		return fmt.Errorf("claim %s: %w: ticket %s is %s", c.Key, ErrLost, t.ID, t.State)
	case t.Key != c.Key || t.Digest != c.Digest:
		return fmt.Errorf("claim %s: %w: ticket %s approved other bytes, under %s", c.Key, ErrLost, t.ID, t.Key)
	}
	return nil
}

// standing says in words where a locked effect stands.
func (e Effect) standing() string {
	if e.Effect.Judged() {
		return "waiting for its outcome"
	}
	return string(e.Effect)
}
