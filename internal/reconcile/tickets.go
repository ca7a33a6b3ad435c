package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// tickets ends the service's ticket where it ends by itself: expired without
// an answer, withdrawn or void because the service recovered, void because it
// waited too long, or because its bytes are no longer what was approved.
func (p *pass) tickets(ctx context.Context) error {
	t := p.past.ticket
	if t == nil || p.dry || p.disputed != "" {
		return nil
	}
	state, reason := p.ticketEnd(*t)
	if state == "" {
		return nil
	}
	err := p.endTicket(ctx, ledger.TicketEnd{Ticket: t.ID, State: state, Reason: reason})
	if err != nil && !raced(err) {
		return fmt.Errorf("end %s: %w", t.ID, err)
	}
	p.r.log.Info("ticket ended", "service", p.svc.Name, "ticket", t.ID, "state", state, "reason", reason)
	p.look()
	return nil
}

// ticketEnd says how the ticket ends now; "" while it stands.
func (p *pass) ticketEnd(t approve.Ticket) (approve.State, string) {
	// An undo may mend what it did to a neighbour of a service that is met.
	if p.assessment.State == compare.Met && !t.Proposal.Undo {
		return approve.Recovered(t), "recovered"
	}
	limits := p.r.o.Config.Limits
	if end := approve.EndAt(t, limits.MinSpacing, p.r.o.Config.Sweep.Interval); !p.r.lived(t, p.now).Before(end) {
		switch {
		case t.State == approve.Open && p.stormed(t):
			return approve.Withdrawn, gate.ReasonStorm
		case t.State == approve.Open:
			return approve.Expired, "nobody answered"
		}
		return approve.Void, "too-late"
	}
	if p.mode() < spec.Approval {
		return approve.Void, gate.ReasonMode
	}
	a, ok := p.svc.Action(t.Proposal.Action)
	if !ok {
		return approve.Void, gate.ReasonUnknownAction
	}
	if digest, err := gate.Digest(p.svc.Name, t.Key, a, t.Proposal.Parameters); err != nil || digest != t.Digest {
		return approve.Void, gate.ReasonDigest
	}
	return "", ""
}

// ages is since when this process knows of the open ticket of each service: by the
// clock, and by time that no correction moves.
type ages struct {
	mu   sync.Mutex
	seen map[string]age
}

type age struct {
	ticket string
	at     time.Time
	mono   time.Duration
}

// lived is what time it is for a ticket: now, or later where the clock was set back
// since. An approval does not get young again.
func (r *Reconciler) lived(t approve.Ticket, now time.Time) time.Time {
	if r.o.Monotonic == nil {
		return now
	}
	mono := r.o.Monotonic()
	now = now.Round(0) // What is compared is the clock, which is what tickets are dated by.
	r.ages.mu.Lock()
	defer r.ages.mu.Unlock()
	known, ok := r.ages.seen[t.Service]
	if !ok || known.ticket != t.ID {
		known = age{ticket: t.ID, at: now, mono: mono}
		if t.Asked.After(now) {
			known.at = t.Asked
		}
		if r.ages.seen == nil {
			r.ages.seen = map[string]age{}
		}
		r.ages.seen[t.Service] = known
	}
	if at := known.at.Add(mono - known.mono); at.After(now) {
		return at
	}
	return now
}

// stormed reports whether a ticket could not be approved for a part of its time:
// that nobody did is then no person's word against the action.
func (p *pass) stormed(t approve.Ticket) (was bool) {
	p.r.book.view(func(s *ledger.State) { was = s.Storm.Holds() || s.Storm.At.After(t.Asked) })
	return was
}

func (p *pass) endTicket(ctx context.Context, end ledger.TicketEnd) error {
	return p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.TicketEndDraft(s, end) })
}

// refuse voids an approved ticket that the gate finally refuses: the person is
// shown why, and is paged. Only a decision of this pass about that ticket
// counts.
func (p *pass) refuse(ctx context.Context) error {
	t, d := p.past.ticket, p.result.Decision
	if t == nil || d == nil || p.dry || p.step.Ticket != t.ID || d.Hold || d.Verdict >= gate.Approval {
		return nil
	}
	reason := codes(d.Reasons)
	err := p.endTicket(ctx, ledger.TicketEnd{Ticket: t.ID, State: approve.Void, Reason: reason})
	if err != nil && !raced(err) {
		return fmt.Errorf("void %s: %w", t.ID, err)
	}
	p.r.log.Warn("approved ticket refused", "service", p.svc.Name, "ticket", t.ID, "reason", reason)
	p.look()
	return nil
}
