package reconcile

import (
	"context"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// syncFreezes copies freeze files into the ledger, and removes the file of
// each freeze that the ledger says was lifted.
func (r *Reconciler) syncFreezes(ctx context.Context) {
	files, err := r.o.Freezes.List()
	if err != nil {
		r.log.Error("the freeze folder cannot be read; that holds everything", "error", err)
		return
	}
	for _, f := range files {
		thawed := false
		r.book.view(func(s *ledger.State) { _, thawed = s.Thawed[f.ID] })
		if thawed {
			if err := r.o.Freezes.Remove(f.ID); err != nil {
				r.log.Error("a lifted freeze's file could not be removed", "freeze", f.ID, "error", err)
			}
			continue
		}
		if err := r.Freeze(ctx, f); err != nil {
			r.log.Error("a freeze could not be recorded; its file holds all the same", "freeze", f.ID, "error", err)
		}
	}
}

// endOrphans voids the tickets of services that no document names any more:
// nobody would execute them, and their buttons should not look alive.
func (r *Reconciler) endOrphans(ctx context.Context) {
	set := r.Set()
	var ends []ledger.TicketEnd
	r.book.view(func(s *ledger.State) {
		for _, name := range sortedKeys(s.Services) {
			if _, declared := set.Service(name); declared {
				continue
			}
			if t, open := s.OpenTicket(name); open {
				ends = append(ends, ledger.TicketEnd{Ticket: t.ID, State: approve.Void, Reason: "document-removed"})
			}
		}
	})
	for _, end := range ends {
		err := r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.TicketEndDraft(s, end) })
		if err != nil && !raced(err) {
			r.log.Error("the ticket of a removed service could not be ended", "ticket", end.Ticket, "error", err)
		}
	}
}

// orphans settles the effects of services that no document names any more, so
// that a removed or renamed service does not lock its target for ever: one in
// doubt is asked for its mark, one that was applied has no objective left and
// ends as unknown, which keeps its charge.
func (r *Reconciler) orphans(ctx context.Context, f *fleet, now time.Time) {
	for _, name := range r.orphaned(f.set) {
		p := r.newPass(f, spec.Service{Name: name, Remediation: spec.DefaultRemediation(name)}, now)
		p.look()
		if err := p.settle(ctx); err != nil {
			r.log.Error("the effect of a removed service could not be settled", "service", name, "error", err)
		}
	}
}

// orphaned are the services with an effect under way that no document names.
func (r *Reconciler) orphaned(set spec.Set) []string {
	var names []string
	r.book.view(func(s *ledger.State) {
		for _, key := range s.Unsettled {
			name := s.Effects[key].Service
			if _, declared := set.Service(name); !declared {
				names = append(names, name)
			}
		}
	})
	return names
}
