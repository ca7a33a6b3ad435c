package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Desk is where people write into the ledger: in the agent, or from the
// command line when no agent holds the lock. Its by arguments are
// authenticated principals, never fields of a request.
type Desk struct {
	book   *book
	groups approve.Groups
	now    func() time.Time
	// lived is what time it is for a ticket.
	lived func(t approve.Ticket, now time.Time) time.Time
	// woken is told the service whose facts changed.
	woken func(service string)
	// answered sees each ticket after an answer.
	answered func(approve.Ticket)
	// seenAnew is told that what people see is no longer what is so.
	seenAnew func()
}

// NewDesk returns a desk over a store that the caller may write to.
func NewDesk(store ledger.Store, groups approve.Groups, now func() time.Time) *Desk {
	return &Desk{
		book: newBook(store), groups: groups, now: now, lived: func(_ approve.Ticket, now time.Time) time.Time { return now },
		woken: func(string) {}, answered: func(approve.Ticket) {}, seenAnew: func() {},
	}
}

// ErrNotFound is returned for a ticket, decision, page or freeze that the
// ledger does not know.
var ErrNotFound = errors.New("not found")

// write folds first, so that a desk opened beside no agent knows the chain.
func (d *Desk) write(ctx context.Context, draft func(s *ledger.State) (ledger.Draft, error)) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	return d.book.one(ctx, draft)
}

func (d *Desk) catchUp(ctx context.Context) error {
	if _, err := d.book.load(ctx); err != nil {
		return err
	}
	return d.book.catchUp(ctx)
}

// Answer records an approval or denial and returns the ticket after it. A
// *approve.Refusal changes nothing and says why.
func (d *Desk) Answer(ctx context.Context, a approve.Answer) (approve.Ticket, error) {
	a.At = d.now()
	var service string
	err := d.write(ctx, func(s *ledger.State) (ledger.Draft, error) {
		t, ok := s.Tickets[a.Ticket]
		if !ok {
			return ledger.Draft{}, fmt.Errorf("ticket %q: %w; setpoint get approvals lists them", a.Ticket, ErrNotFound)
		}
		service = t.Service
		if a.Approve && s.Storm.Holds() {
			return ledger.Draft{}, &approve.Refusal{Code: approve.RefusedStorm, Text: fmt.Sprintf(
				"ticket %s cannot be approved while the storm brake is on, since %s: %s", t.ID, s.Storm.Since.UTC().Format("15:04:05Z"), s.Storm.Storm)}
		}
		aged := a
		aged.At = d.lived(*t, a.At)
		recorded, err := approve.Record(*t, aged, d.groups)
		if err != nil {
			return ledger.Draft{}, err
		}
		recorded.At = a.At
		return ledger.AnswerDraft(s, recorded)
	})
	if err != nil {
		return approve.Ticket{}, err
	}
	var after approve.Ticket
	d.book.view(func(s *ledger.State) { after = *s.Tickets[a.Ticket] })
	d.answered(after)
	// At once, and not after the pass that the answer starts: who clicks and sees
	// nothing happen clicks again.
	d.seenAnew()
	d.woken(service)
	return after, nil
}

// maxSighted bounds the messages of one card: what is clicked beyond them is
// answered, and not remembered.
const maxSighted = 10

// Sighted records a message of a ticket that nobody knew of, or that was thought
// to be gone, because somebody has just clicked on it: it is brought up to date
// like the others. A ticket that is not known is no fault of who clicked.
func (d *Desk) Sighted(ctx context.Context, ticket string, m approve.Message) error {
	if m.Channel == "" || m.ID == "" {
		return nil
	}
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	m.Shows = "" // whatever it showed, it was clicked
	fresh := false
	err := d.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		if s.Tickets[ticket] == nil {
			return nil, nil
		}
		drafts, err := cardDrafts(s, ticket, func(_ *ledger.State, p approve.Posted) (approve.Posted, error) {
			if len(p.Messages) >= maxSighted {
				return p, nil
			}
			return adopted(p, m), nil
		})
		fresh = len(drafts) > 0
		return drafts, err
	})
	if err == nil && fresh {
		d.seenAnew()
	}
	return err
}

// Freeze records a freeze whose file exists already; a second record of the
// same id, or one that was lifted, is no error.
func (d *Desk) Freeze(ctx context.Context, f ledger.Freeze) error {
	err := d.write(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.FreezeDraft(s, f) })
	if errors.Is(err, ledger.ErrExists) {
		return nil
	}
	return err
}

// Thaw records that a freeze is lifted; each host's writer then removes the
// file of that id.
func (d *Desk) Thaw(ctx context.Context, id, by, reason string) error {
	err := d.write(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ThawDraft(s, ledger.Thaw{ID: id, By: by, Reason: reason})
	})
	if errors.Is(err, ledger.ErrExists) {
		return nil
	}
	return err
}

// Settle ends an effect whose fate nobody could tell, by a named person's word.
// decision is the id of the decision that claimed it.
func (d *Desk) Settle(ctx context.Context, decision string, as execute.Effect, by, reason string) error {
	if as != execute.Landed && as != execute.NotLanded {
		return fmt.Errorf("settle as %q: want landed or not-landed", as)
	}
	var service string
	err := d.write(ctx, func(s *ledger.State) (ledger.Draft, error) {
		for key, e := range s.Effects {
			if e.Claim.Decision != decision {
				continue
			}
			service = e.Service
			return settleDraft(s, ledger.Settled{Key: key, Effect: as, By: by, Reason: reason})
		}
		return ledger.Draft{}, fmt.Errorf("decision %q with an effect: %w; setpoint get decisions lists them", decision, ErrNotFound)
	})
	if err == nil {
		d.woken(service)
	}
	return err
}

// settleDraft fills the time from which a landed effect counts as applied: its
// horizon.
func settleDraft(s *ledger.State, body ledger.Settled) (ledger.Draft, error) {
	if e, ok := s.Effects[body.Key]; ok && body.Effect == execute.Landed {
		body.AppliedAt = e.Horizon()
		if s.Time.Before(body.AppliedAt) && e.Effect == execute.Unknown {
			body.AppliedAt = s.Time // A person knows that it has, whatever a clock said then.
		}
	}
	return ledger.SettleDraft(s, body)
}

// Ack records that a person has seen a page. via is how they said so: cli, web,
// slack or the name of a receiver. The first one takes it: who says so again has
// done so, and who comes later or clicks on what is over gets a *approve.Refusal,
// which tells them and is no entry. Two people who both think that they have it are
// worse than none.
func (d *Desk) Ack(ctx context.Context, page, by, via string) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	err := d.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		p, ok := s.Pages[page]
		if !ok {
			return nil, fmt.Errorf("page %q: %w; setpoint get pages lists them", page, ErrNotFound)
		}
		if p.EndedAt.IsZero() && p.AckedBy == by {
			return nil, nil
		}
		if r := ackRefused(*p); r != nil {
			return nil, r
		}
		return []ledger.Draft{{Kind: ledger.KindAck, Service: p.Service, Body: ledger.Ack{Page: page, By: by, Via: via}}}, nil
	})
	if err == nil {
		d.seenAnew()
	}
	return err
}

func ackRefused(p escalate.Page) *approve.Refusal {
	switch {
	case !p.EndedAt.IsZero():
		return &approve.Refusal{Code: approve.RefusedNotOpen, Text: fmt.Sprintf("page %s is over since %s: nothing is left to acknowledge", p.ID, approve.Instant(p.EndedAt))}
	case p.AckedBy != "":
		return &approve.Refusal{Code: approve.RefusedAcked, Text: fmt.Sprintf("page %s is already acknowledged by %s at %s", p.ID, p.AckedBy, approve.Instant(p.AckedAt))}
	}
	return nil
}

// ResetBudget records a named person's reset of one action's budget and
// suspension.
func (d *Desk) ResetBudget(ctx context.Context, service string, reset ledger.Reset) error {
	if reset.By == "" || reset.Reason == "" {
		return errors.New("a reset needs a person and a reason")
	}
	err := d.write(ctx, func(*ledger.State) (ledger.Draft, error) {
		return ledger.Draft{Kind: ledger.KindReset, Service: service, Body: reset}, nil
	})
	if err == nil {
		d.woken(service)
	}
	return err
}

// Ceiling sets the ledger's ceiling of an action, or of a whole service. To
// raise it is to give autonomy back, so it says what it must be higher than.
func (d *Desk) Ceiling(ctx context.Context, service string, c ledger.Ceiling, raise bool) error {
	err := d.write(ctx, func(s *ledger.State) (ledger.Draft, error) {
		now := d.now()
		switch have := s.Ceiling(service, c.Action, now); {
		case raise && c.To <= have:
			return ledger.Draft{}, fmt.Errorf("%w: the ledger's ceiling is %s already", ledger.ErrExists, have)
		case !raise && c.To >= have:
			return ledger.Draft{}, fmt.Errorf("%w: the ledger's ceiling is %s, which is no higher", ledger.ErrExists, have)
		}
		return ledger.CeilingDraft(s, service, c, now)
	})
	if err == nil {
		d.woken(service)
	}
	return err
}

// LowerMark sets marks that lie in the future, and the ledger's time, back to
// the present: to the windows that hold now, by service.
func (d *Desk) LowerMark(ctx context.Context, windows map[string]gate.WindowID, by, reason string) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	err := d.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		return ledger.LoweredDrafts(s, windows, by, reason, d.now())
	})
	return err
}

// Adopt records that a named person goes on with this chain, and gives its end.
func (d *Desk) Adopt(ctx context.Context, a ledger.Adopted) (ledger.Position, error) {
	err := d.write(ctx, func(*ledger.State) (ledger.Draft, error) {
		return ledger.Draft{Kind: ledger.KindAdopted, Body: a}, nil
	})
	var head ledger.Position
	d.book.view(func(s *ledger.State) { head = s.Head })
	return head, err
}

// Change records posted changes, all of them or none, and says how many were not
// known before. It wakes nothing: a change is context, and no reason to act.
func (d *Desk) Change(ctx context.Context, changes []measure.Change, by string) (fresh int, err error) {
	if err := d.catchUp(ctx); err != nil {
		return 0, err
	}
	changes = slices.SortedFunc(slices.Values(changes), measure.Change.Newest)
	changes = slices.CompactFunc(changes, func(a, b measure.Change) bool { return a.Newest(b) == 0 })
	err = d.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		var drafts []ledger.Draft
		for _, c := range changes {
			draft, err := ledger.ChangeDraft(s, c.Service, ledger.Changed{At: c.At, What: c.What, Version: c.Version, By: by})
			switch {
			case errors.Is(err, ledger.ErrExists):
			case err != nil:
				return nil, err
			default:
				drafts = append(drafts, draft)
			}
		}
		fresh = len(drafts)
		return drafts, nil
	})
	if err != nil {
		return 0, err
	}
	return fresh, nil
}
