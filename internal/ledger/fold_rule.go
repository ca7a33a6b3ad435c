package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// The folds of what people decide.

func foldFreeze(s *State, e Entry, b Freeze) string {
	if _, ok := s.Thawed[b.ID]; ok {
		return "the freeze was lifted already"
	}
	if _, ok := s.Freezes[b.ID]; ok {
		return "the freeze is recorded already"
	}
	s.Freezes[b.ID], s.ClaimsMoved = b, e.Seq
	return ""
}

func foldThaw(s *State, e Entry, b Thaw) string {
	if _, ok := s.Thawed[b.ID]; ok {
		return "the freeze was lifted already"
	}
	delete(s.Freezes, b.ID)
	s.Thawed[b.ID], s.ClaimsMoved = b, e.Seq
	return ""
}

func foldReset(s *State, e Entry, b Reset) string {
	r := budget.Reset{Service: e.Service, Action: b.Action, At: e.Time, Until: b.Until, By: b.By, Reason: b.Reason}
	// One that ends no later than the new one is never looked at again.
	s.Resets = slices.DeleteFunc(slices.Clone(s.Resets), func(old budget.Reset) bool {
		return old.Service == r.Service && old.Action == r.Action &&
			(r.Until.IsZero() || !old.Until.IsZero() && !old.Until.After(r.Until))
	})
	s.Resets = append(s.Resets, r)
	sv, _ := s.Service(e.Service)
	for action := range sv.Actions {
		// A reset of a service without an action is of all its actions.
		if b.Action == "" || b.Action == action {
			s.record(e.Service, action, func(r *Record) {
				r.Worsened.pardon(b.Until)
				r.Nothing.pardon(b.Until)
			})
		}
	}
	return ""
}

// CeilingAt is a ceiling in force, with what it replaced.
type CeilingAt struct {
	Ceiling
	At time.Time
	// Was holds again when Until has passed.
	Was gate.Verdict
}

func (c CeilingAt) at(now time.Time) gate.Verdict {
	if !c.Until.IsZero() && !now.Before(c.Until) {
		return c.Was
	}
	return c.To
}

func foldCeiling(s *State, e Entry, b Ceiling) string {
	was := gate.Auto
	if have, ok := s.Ceilings[e.Service][b.Action]; ok {
		was = have.at(e.Time)
	}
	of := maps.Clone(s.Ceilings[e.Service])
	if of == nil {
		of = map[string]CeilingAt{}
	}
	of[b.Action] = CeilingAt{Ceiling: b, At: e.Time, Was: was}
	s.Ceilings[e.Service] = of
	s.ClaimsMoved = e.Seq
	return ""
}

// Ceiling is the highest verdict that the ledger lets an action of a service
// get at now: its own, or the service's if that is lower.
func (s *State) Ceiling(service, action string, now time.Time) gate.Verdict {
	lowest := gate.Auto
	for _, name := range []string{"", action} {
		if c, ok := s.Ceilings[service][name]; ok {
			lowest = min(lowest, c.at(now))
		}
	}
	return lowest
}

// CeilingDraft records a ceiling that differs from the one in force.
func CeilingDraft(s *State, service string, c Ceiling, now time.Time) (Draft, error) {
	own := gate.Auto
	if have, ok := s.Ceilings[service][c.Action]; ok {
		own = have.at(now)
	}
	if own == c.To {
		return Draft{}, fmt.Errorf("the ceiling is %s: %w", c.To, ErrExists)
	}
	return Draft{Kind: KindCeiling, Service: service, Body: c}, nil
}

func foldLowered(s *State, e Entry, b Lowered) string {
	to := startOf(b.To)
	sv := s.edit(e.Service)
	if to.Start >= sv.Mark.Start {
		return fmt.Sprintf("the mark of the service is %s", sv.Mark)
	}
	sv.Mark = to
	if sv.Spent.Start >= to.Start {
		// The windows before are spent. Which of the later ones are, the keys know,
		// which are unique for ever.
		sv.Spent = gate.WindowID{Start: to.Start - 1, Length: 1}
	}
	sv.Windows = maps.Clone(sv.Windows)
	maps.DeleteFunc(sv.Windows, func(id string, _ *Window) bool { return startOf(id).Start > to.Start })
	s.put(sv)
	s.ClaimsMoved = e.Seq
	return ""
}

// LoweredDraft sets the mark of a service back to the window that holds now. It
// is refused unless the mark lies in the future: then a clock ran ahead.
func LoweredDraft(s *State, service string, l Lowered, now time.Time) (Draft, error) {
	sv, known := s.Service(service)
	switch {
	case !known:
		return Draft{}, fmt.Errorf("the ledger knows no service %q", service)
	case sv.Mark.Start <= now.Unix():
		return Draft{}, lost("the mark of %s is %s, which does not lie in the future", service, sv.Mark)
	}
	return Draft{Kind: KindLowered, Service: service, Body: l}, nil
}

func foldAdopted(s *State, e Entry, _ Adopted) string {
	s.SpentUntil, s.ClaimsMoved = e.Time.Unix(), e.Seq
	return ""
}
