package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// What a State keeps of what is over, so that its size does not grow with the
// age of its chain. The chain itself forgets nothing; NewHistory shows it. What
// is kept is a function of the entries alone, so that every replica, and every
// start, has the same.
const (
	keptEffects   = 32 // of each service
	keptTickets   = 32 // of each service
	keptDecisions = 2000
	keptPages     = 500
	keptSkipped   = 100
	// keptUndelivered is how long a page that ended is kept for a receiver that
	// takes nothing.
	keptUndelivered = 30 * 24 * time.Hour
	keptStarts      = 25 * time.Hour
	// keptCharges is longer than any budget's period may be.
	keptCharges = 366 * 24 * time.Hour
)

// forget drops what is over, whenever twice as much as is kept has come
// together: then an entry costs the same on average, however long the chain is.
func (s *State) forget(e Entry) {
	if s.whole {
		return
	}
	s.forgetOf(e.Service)
	if n := len(s.Skipped); n > 2*keptSkipped {
		s.Skipped = slices.Clone(s.Skipped[n-keptSkipped:])
	}
	if n := len(s.Starts); n > 256 && s.Time.Sub(s.Starts[n/2].At) > keptStarts {
		s.Starts = slices.Clone(s.Starts[n/2:])
	}
	if len(s.DecisionOrder) > s.decisionsNeeded()+2*keptDecisions {
		s.forgetDecisions()
	}
	if e.Kind == KindPageEnd && len(s.Pages) > 2*keptPages {
		s.forgetPages()
	}
}

// forgetOf drops what is over of one service.
func (s *State) forgetOf(name string) {
	sv := s.Services[name]
	if sv == nil {
		return
	}
	if len(sv.Effects) > 2*keptEffects {
		s.forgetEffects(sv)
	}
	if len(sv.Tickets) > 2*keptTickets {
		s.forgetTickets(s.Services[name])
	}
}

func (s *State) forgetEffects(sv *Service) {
	c := *sv
	gone := map[gate.Key]bool{}
	old := len(sv.Effects) - keptEffects
	c.Effects = nil
	for i, key := range sv.Effects {
		e := s.Effects[key]
		// A window that is still to come was claimed by a clock that ran ahead.
		if i >= old || e.Locked() || windowOf(key).Start > sv.Spent.Start {
			c.Effects = append(c.Effects, key)
			continue
		}
		if charge := e.charged(); charge.Cost > 0 {
			s.Charged = append(s.Charged, charge)
		}
		gone[key] = true
		delete(s.Effects, key)
	}
	s.EffectOrder = without(s.EffectOrder, gone)
	if n := len(s.Charged); n > 256 && s.Time.Sub(s.Charged[n/2].At) > keptCharges {
		since := s.Time.Add(-keptCharges)
		s.Charged = slices.Clone(s.Charged)
		s.Charged = slices.DeleteFunc(s.Charged, func(c budget.Charge) bool { return c.At.Before(since) })
	}
	s.put(&c)
}

// forgetTickets keeps those that hold an action until the episode ends, and
// those of effects that are under way.
func (s *State) forgetTickets(sv *Service) {
	c := *sv
	locked := map[string]bool{}
	for _, key := range s.Unsettled {
		locked[s.Effects[key].Claim.Ticket] = true
	}
	old := len(sv.Tickets) - keptTickets
	c.Tickets = nil
	for i, id := range sv.Tickets {
		t := s.Tickets[id]
		refused := t.State == approve.Denied || t.State == approve.Expired
		if i >= old || locked[id] || refused && t.Episode == sv.Episode {
			c.Tickets = append(c.Tickets, id)
			continue
		}
		delete(s.Tickets, id)
		delete(s.Cards, id)
	}
	s.put(&c)
}

// decisionsNeeded bounds how many decisions forgetDecisions may have to keep
// for others.
func (s *State) decisionsNeeded() int {
	return len(s.EffectOrder) + len(s.Tickets) + len(s.Services)*(keptWindows+1)
}

// forgetDecisions keeps the newest, and those that something else names.
func (s *State) forgetDecisions() {
	needed := map[string]bool{}
	for _, sv := range s.Services {
		needed[sv.Decision] = true
		for _, w := range sv.Windows {
			needed[w.Decision] = true
		}
	}
	for _, e := range s.Effects {
		needed[e.Claim.Decision] = true
	}
	for _, t := range s.Tickets {
		needed[t.Decision] = true
	}
	old := len(s.DecisionOrder) - keptDecisions
	var kept []string
	for i, id := range s.DecisionOrder {
		if i >= old || needed[id] {
			kept = append(kept, id)
			continue
		}
		delete(s.Decisions, id)
		s.Forgotten++
	}
	s.DecisionOrder = kept
}

// forgetPages keeps the open ones, the newest that ended, and those that somebody
// who should have them has not got.
func (s *State) forgetPages() {
	var ended []*escalate.Page
	for _, p := range s.Pages {
		if !p.EndedAt.IsZero() {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *escalate.Page) int {
		return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, p := range ended[min(keptPages, len(ended)):] {
		if s.undelivered(p.ID) && s.Time.Sub(p.EndedAt) < keptUndelivered {
			continue
		}
		delete(s.Pages, p.ID)
		delete(s.Deliveries, p.ID)
	}
}

// undelivered reports whether a receiver was tried and has not got the page.
func (s *State) undelivered(page string) bool {
	for _, d := range s.Deliveries[page] {
		if d.Failures > 0 && !d.Ended {
			return true
		}
	}
	return false
}

func without(keys []gate.Key, gone map[gate.Key]bool) []gate.Key {
	out := make([]gate.Key, 0, len(keys))
	for _, key := range keys {
		if !gone[key] {
			out = append(out, key)
		}
	}
	return out
}
