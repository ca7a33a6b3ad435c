package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// rewind sets what the state holds of a time that has not come yet to the
// present. Otherwise spacing, horizons, charges and pages would wait for that
// time, for years if the clock ran ahead so far.
func (s *State) rewind(to time.Time) {
	s.SpentUntil = min(s.SpentUntil, to.Unix())
	for _, sv := range s.Services {
		s.put(sv.rewound(to))
	}
	for key, e := range s.Effects {
		c := *e
		clamp(to, &c.ClaimedAt, &c.StartedAt, &c.EffectAt, &c.AppliedAt, &c.OutcomeAt)
		s.Effects[key] = &c
	}
	s.Starts = slices.Clone(s.Starts)
	for i := range s.Starts {
		clamp(to, &s.Starts[i].At)
	}
	s.Calls = slices.Clone(s.Calls)
	for i := range s.Calls {
		clamp(to, &s.Calls[i].At)
	}
	s.Charged = slices.Clone(s.Charged)
	for i := range s.Charged {
		clamp(to, &s.Charged[i].At)
	}
	s.Resets = slices.Clone(s.Resets)
	for i := range s.Resets {
		clamp(to, &s.Resets[i].At)
	}
	s.rewindPages(to)
}

func (s *State) rewindPages(to time.Time) {
	for id, p := range s.Pages {
		c := *p
		clamp(to, &c.Since, &c.EndedAt, &c.AckedAt)
		s.Pages[id] = &c
	}
	for id, held := range s.Deliveries {
		c := make(map[string]escalate.Delivery, len(held))
		for receiver, d := range held {
			clamp(to, &d.First, &d.Sent, &d.Tried, &d.Begun)
			c[receiver] = d
		}
		s.Deliveries[id] = c
	}
	for id, card := range s.Cards {
		c := *card
		clamp(to, &c.Begun, &c.Tried, &c.NotBefore)
		s.Cards[id] = &c
	}
}

func (sv *Service) rewound(to time.Time) *Service {
	c := *sv
	clamp(to, &c.Since, &c.EpisodeSince, &c.HeldSince, &c.LastMet, &c.DocumentsAt, &c.QuietSince, &c.StateAt)
	c.Actions = maps.Clone(sv.Actions)
	for name, r := range c.Actions {
		clamp(to, &r.LastSent)
		c.Actions[name] = r
	}
	return &c
}

// clamp leaves no time after the latest.
func clamp(latest time.Time, times ...*time.Time) {
	for _, t := range times {
		if t.After(latest) {
			*t = latest
		}
	}
}

// overtaken ends what a clock that ran ahead would otherwise hold until its
// time comes: claims that were never started, whose permits would expire then,
// and tickets that reserve a key of then.
func overtaken(s *State, now time.Time, reason string) ([]Draft, error) {
	var ds []Draft
	for _, key := range s.Unsettled {
		if e := s.Effects[key]; e.Effect == execute.Claimed && e.ClaimedAt.After(now) {
			d, err := VoidDraft(s, key, reason)
			if err != nil {
				return nil, err
			}
			ds = append(ds, d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		if t, ok := s.OpenTicket(name); ok && windowOf(t.Key).Start > now.Unix() {
			d, err := TicketEndDraft(s, TicketEnd{Ticket: t.ID, State: approve.Void, Reason: reason})
			if err != nil {
				return nil, err
			}
			ds = append(ds, d)
		}
	}
	return ds, nil
}
