package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

type standing string

const (
	openTicket     standing = "open"
	approvedTicket standing = "approved"
	deniedTicket   standing = "denied"
	endedTicket    standing = "ended"
)

// ticket is one question and who said what.
type ticket struct {
	body     approve.Ticket
	standing standing
	answered time.Time
	// yes are the principals that approved each need, by its index; late the
	// same with the answers that came after the ticket expired.
	yes, late []map[string]bool
	said      map[string]bool // principal: whether the answer that counts approves
	usedBy    *life
}

// passed reports whether the ticket would be good if time had not passed it.
func (t *ticket) passed() bool {
	return t.standing == endedTicket || t.standing == openTicket && t.enough(t.late)
}

func (t *ticket) enough(yes []map[string]bool) bool {
	for i, need := range t.body.Needs {
		if len(yes[i]) < max(need.Quorum, 1) {
			return false
		}
	}
	return len(t.body.Needs) > 0
}

// people takes questions, answers and endings.
func (r *run) people(body any) {
	switch b := body.(type) {
	case approve.Ticket:
		t := &ticket{body: b, standing: openTicket, said: map[string]bool{}}
		for range b.Needs {
			t.yes, t.late = append(t.yes, map[string]bool{}), append(t.late, map[string]bool{})
		}
		r.tickets[fmt.Sprintf("t%d", r.now.Seq)] = t
		r.askedFor(b)
	case approve.Answer:
		if t := r.tickets[b.Ticket]; t != nil {
			r.answer(t, b)
		}
	case ledger.TicketEnd:
		t := r.tickets[b.Ticket]
		if t != nil && (t.standing == openTicket || t.standing == approvedTicket && b.State == approve.Void && !t.started()) {
			t.standing = endedTicket
		}
	}
}

// askedFor checks that people are asked because a decision wants them.
func (r *run) askedFor(b approve.Ticket) {
	r.hold(DecidedFirst)
	d, ok := r.decisions[b.Decision]
	if !ok || d.service != r.now.Service || d.body.Decision.Verdict != gate.Approval {
		r.broke(DecidedFirst, b.Key, r.now.Seq, "ticket t%d rests on %q, which is no earlier decision for an approval", r.now.Seq, b.Decision)
	}
}

func (t *ticket) started() bool { return t.usedBy != nil && !t.usedBy.startedAt.IsZero() }

// answer counts what one principal said.
func (r *run) answer(t *ticket, a approve.Answer) {
	switch {
	case !t.hears(a):
		return
	case t.standing == openTicket && !a.At.Before(t.body.Expires):
		mark(t.late, a)
		return
	}
	t.said[a.By] = a.Approve
	if !a.Approve {
		t.standing = deniedTicket
		r.hold(DenyStops)
		return
	}
	r.approvedInStorm(t.body.Key)
	mark(t.yes, a)
	mark(t.late, a)
	if t.enough(t.yes) {
		t.standing, t.answered = approvedTicket, a.At
	}
}

// hears: the first answer of a person is final, but for a deny, which anybody
// who was asked may give until the start.
func (t *ticket) hears(a approve.Answer) bool {
	approved, spoke := t.said[a.By]
	if len(a.Satisfies) == 0 || spoke && (!approved || a.Approve) {
		return false
	}
	return t.standing == openTicket || t.standing == approvedTicket && !a.Approve && !t.started()
}

func mark(yes []map[string]bool, a approve.Answer) {
	for i := range yes {
		if a.Approve && slices.Contains(a.Satisfies, i) {
			yes[i][a.By] = true
		}
	}
}

// consumed checks that a ticket's claim is the one that people allowed.
func (r *run) consumed(l *life) {
	t := r.tickets[l.claim.Ticket]
	if t == nil {
		return
	}
	r.hold(TicketOnce)
	bad := func(format string, args ...any) {
		r.broke(TicketOnce, l.claim.Key, l.claimSeq, "ticket "+l.claim.Ticket+" "+format, args...)
	}
	switch {
	case t.usedBy != nil:
		bad("was used before, by %s", t.usedBy.claim.Key)
	case t.body.Key != l.claim.Key:
		bad("is for key %s", t.body.Key)
	case t.body.Digest != l.claim.Digest:
		bad("is for other bytes")
	case t.standing == endedTicket:
		bad("had ended")
	case t.standing == openTicket && t.passed():
		bad("has too few answers from before it expired at %s", stamp(t.body.Expires))
	case r.waitedTooLong(t):
		bad("had waited too long")
	}
	if t.usedBy == nil {
		t.usedBy = l
	}
}

// waitedTooLong: an approved ticket waits until it expires, or minSpacing and
// two sweeps after the answer if that is later.
func (r *run) waitedTooLong(t *ticket) bool {
	if r.o.Sweep <= 0 || t.standing != approvedTicket {
		return false
	}
	end := t.answered.Add(r.o.MinSpacing + 2*r.o.Sweep)
	if end.Before(t.body.Expires) {
		end = t.body.Expires
	}
	return r.now.Time.After(end.Add(r.o.Skew))
}

// stillAllowed checks, at the start, what people said since the claim.
func (r *run) stillAllowed(l *life) {
	t := r.tickets[l.claim.Ticket]
	if t == nil || t.usedBy != l {
		return
	}
	switch {
	case t.standing == deniedTicket:
		r.broke(DenyStops, l.claim.Key, r.now.Seq, "ticket %s was denied before", l.claim.Ticket)
	case t.standing == endedTicket && l.effect == execute.Claimed:
		r.broke(TicketOnce, l.claim.Key, r.now.Seq, "ticket %s had ended before the start", l.claim.Ticket)
	}
}
