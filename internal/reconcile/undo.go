package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// windowID is the window that the step would act in: a ticket's claim and an
// undo's carry their own.
func (p *pass) windowID() string {
	if _, id, ok := strings.Cut(string(p.step.Key), ":"); ok && (p.step.Ticket != "" || p.proposal.Undo) {
		return id
	}
	return p.past.window.String()
}

// recordUndo appends the loop's own proposal before it is judged, as any other.
func (p *pass) recordUndo(ctx context.Context) error {
	if !p.proposal.Undo || p.step.Ticket != "" {
		return nil
	}
	err := p.recordProposal(ctx, Proposed{Proposal: p.proposal})
	if errors.Is(err, ledger.ErrExists) {
		return nil // an earlier pass did, and was held
	}
	return err
}

// demotion is what the outcomes of an action ask for: one rung below the highest
// verdict that documents, configuration and ledger let it have.
func (p *pass) demotion(s *ledger.State, a spec.Action) (ledger.Ceiling, bool) {
	if a.Name == "" {
		return ledger.Ceiling{}, false
	}
	rung, _ := gate.Ceiling(p.svc, a, p.r.o.Config.Limits.MaxMode, s.Ceiling(p.svc.Name, a.Name, p.now))
	return s.Demotion(p.svc.Name, a.Name, p.svc.Remediation.Budget.Period, rung)
}

// demote records the ceilings that measured outcomes ask for. It is asked in
// every pass, so that a crash after an outcome loses none.
func (p *pass) demote(ctx context.Context) error {
	if p.dry || p.disputed != "" {
		return nil
	}
	for _, a := range p.svc.Remediation.Actions {
		var is bool
		p.r.book.view(func(s *ledger.State) { _, is = p.demotion(s, a) })
		if !is {
			continue
		}
		var to ledger.Ceiling
		err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) {
			if to, is = p.demotion(s, a); !is {
				return ledger.Draft{}, ledger.ErrExists
			}
			return ledger.CeilingDraft(s, p.svc.Name, to, p.now)
		})
		switch {
		case raced(err):
		case err != nil:
			return fmt.Errorf("demote %s of %s: %w", a.Name, p.svc.Name, err)
		default:
			p.r.log.Warn("action demoted", "service", p.svc.Name, "action", a.Name, "to", to.To, "reason", to.Reason)
		}
	}
	return nil
}
