package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// cardFacts copies what a card is written from.
func (r *Reconciler) cardFacts(s *ledger.State, f *fleet, t approve.Ticket, charges []budget.Charge, now time.Time) approve.CardFacts {
	svc, ok := f.set.Service(t.Service)
	if !ok {
		svc = spec.Service{Name: t.Service}
	}
	known, _ := s.Service(t.Service)
	facts := approve.CardFacts{
		Ticket: t, Service: svc, Assessment: asRecorded(f.assessments[t.Service], known), Tried: triedBefore(s, known, t),
		Course: courseOf(s, t), Storm: stormText(s), Now: now,
	}
	facts.TraceURL = r.o.Config.Telemetry.Trace(t.Trace)
	if at := r.o.Config.Web.Links(); at != "" {
		facts.PageURL = at + "/api/v1/decisions/" + t.Decision
	}
	if known.Episode == t.Episode {
		facts.Since = known.EpisodeSince
	}
	if t.Proposal.Action != "" && ok {
		b := svc.Remediation.Budget
		own := budget.Policy{Period: b.Period, Capacity: b.Capacity}
		balance := budget.Of(t.Service, t.Proposal.Action, own, r.globalBudget(), charges, s.Resets, now)
		facts.Balance = &balance
	}
	return facts
}

// asRecorded is what this process sees, under the state that is recorded: two
// replicas that do not see the same take no turns at the card.
func asRecorded(a compare.Assessment, known ledger.Service) compare.Assessment {
	if known.State != "" && known.State != a.State {
		a.State, a.Reason = known.State, known.Reason
	}
	return a
}

// triedBefore is what was tried before, but for what the ticket itself led to:
// what an earlier episode left behind is judged in this one often enough.
func triedBefore(s *ledger.State, known ledger.Service, t approve.Ticket) []propose.Tried {
	known.Episode = t.Episode
	known.Effects = slices.DeleteFunc(slices.Clone(known.Effects), func(k gate.Key) bool { return k == t.Key })
	return tried(s, known)
}

// courseOf is what became of a ticket's approval.
func courseOf(s *ledger.State, t approve.Ticket) approve.Course {
	e := s.Effects[t.Key]
	if e == nil || e.Claim.Ticket != t.ID {
		// Not claimed, or so long ago that its effect is forgotten.
		waits := t.State == approve.Open || t.State == approve.Approved && t.ClaimedAt.IsZero()
		return approve.Course{ClaimedAt: t.ClaimedAt, SentAt: t.StartedAt, Over: !waits}
	}
	c := approve.Course{ClaimedAt: e.ClaimedAt, SentAt: e.SentAt(), AppliedAt: e.AppliedAt, Over: !e.Locked()}
	switch e.Effect {
	case execute.Claimed, execute.Started:
	case execute.Void:
		c.VoidReason = e.VoidedFor
	default:
		c.Effect, c.Detail = string(e.Effect), cmp.Or(e.SettledFor, e.Receipt.Detail)
	}
	if j := e.Judgement; j != nil {
		c.JudgedAt, c.Outcome, c.Before, c.After = e.OutcomeAt, e.Outcome, j.Before, j.After
	}
	return c
}

// stormText is why nothing can be approved just now; "" when it can.
func stormText(s *ledger.State) string {
	if !s.Storm.Holds() {
		return ""
	}
	return fmt.Sprintf("%s, since %s", s.Storm.Storm, s.Storm.Since.UTC().Format("15:04:05Z"))
}
