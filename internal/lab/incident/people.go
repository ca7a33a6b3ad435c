package incident

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// answer gives the answers that are due. One that is refused was too late, or
// is not to be given now, and is given again while the ticket is open.
func (w *world) answer(ctx context.Context) error {
	type due struct {
		ticket string
		Answer
	}
	var all []due
	w.loop.View(func(s *ledger.State) {
		for _, name := range s.ServiceNames() {
			t, ok := s.OpenTicket(name)
			if !ok || t.State != approve.Open {
				continue
			}
			for _, a := range w.in.Answers {
				if a.fits(t) && w.now().Sub(t.Asked) >= a.After {
					all = append(all, due{t.ID, a})
					break
				}
			}
		}
	})
	for _, d := range all {
		_, err := w.loop.Answer(ctx, approve.Answer{
			Ticket: d.ticket, By: d.Who, Via: "cli", Approve: d.Approve, Reason: "as incident " + w.in.Name + " says",
		})
		var refused *approve.Refusal
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("answer %s: %w", d.ticket, err)
		}
	}
	return nil
}

func (a Answer) fits(t approve.Ticket) bool {
	return (a.Service == "" || a.Service == t.Service) && (a.Action == "" || a.Action == t.Proposal.Action)
}

// freeze writes and takes back the freezes that are due.
func (w *world) freeze(ctx context.Context) error {
	since := w.now().Sub(w.began)
	for i, f := range w.in.Freezes {
		id := fmt.Sprintf("f-%d", i+1)
		switch inForce := since >= f.From && since < f.Until; {
		case inForce && !w.frozen[id]:
			w.frozen[id] = true
			if err := w.freezes.Write(ledger.Freeze{ID: id, Service: f.Service, By: f.Who, Reason: f.Reason, At: w.now()}); err != nil {
				return err
			}
		case !inForce && w.frozen[id]:
			delete(w.frozen, id)
			if err := w.loop.Thaw(ctx, id, f.Who, "over"); err != nil {
				return err
			}
		}
	}
	return nil
}

// silencer is an Alertmanager in which people have silenced services.
type silencer struct{ w *world }

// Silences are those of any page of a service.
func (s silencer) Silences(_ context.Context, service string) ([]gate.Hold, error) {
	since := s.w.now().Sub(s.w.began)
	var out []gate.Hold
	for i, f := range s.w.in.Silences {
		if f.Service == service && since >= f.From && since < f.Until {
			out = append(out, gate.Hold{ID: fmt.Sprintf("s-%d", i+1), By: f.Who, Text: f.Reason, Until: s.w.began.Add(f.Until)})
		}
	}
	return out, nil
}

// SilencesFor are those of one page.
func (s silencer) SilencesFor(ctx context.Context, p escalate.Page) ([]gate.Hold, error) {
	return s.Silences(ctx, p.Service)
}

// restartDue reports whether the agent is to be replaced now.
func (w *world) restartDue(last time.Time) bool {
	r := w.in.Restarts
	if r == nil {
		return false
	}
	since := w.now().Sub(w.began)
	return since >= r.From && since < r.Until && w.now().Sub(last) >= r.Every
}
