package step

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Reason codes of steps that are no floors of the gate.
const (
	ReasonMet          = "met"
	ReasonNoActions    = "no-actions"
	ReasonAwaiting     = "awaiting-outcome"
	ReasonInDoubt      = "in-doubt"
	ReasonWaitApproval = "awaiting-approval"
	ReasonApproved     = "approved"
	ReasonAsked        = "asked"
	ReasonWindowSpent  = "window-spent"
	ReasonBreach       = "breach"
	ReasonUndo         = "undo"
)

// Situation is everything that Next looks at for one service.
type Situation struct {
	Service spec.Service
	// Facts hold the assessment, the floors' facts and now; the parts that
	// belong to a proposal may be empty.
	Facts  gate.Facts
	Limits gate.Limits
	// Window is the current one; Record is what the ledger has of it, or nil.
	Window gate.WindowID
	Record *ledger.Window
	// InFlight is the locked effect of the service, or nil.
	InFlight *ledger.Effect
	// Ticket is the open or approved one, or nil.
	Ticket *approve.Ticket
	// Undo is the effect that should be taken back, or nil; UndoKey the first key
	// that nobody has claimed.
	Undo    *ledger.Effect
	UndoKey gate.Key
}

// Now is the instant that is decided for.
func (s Situation) Now() time.Time { return s.Facts.Now }

// Next chooses the one step of a service. Whatever holds, the first rule that
// applies is the answer, so the order below is the order of precedence:
// an effect under way, what made things worse, a person's answer, the measured
// state, floors, and what this window has already seen.
func Next(s Situation) Step {
	key := gate.KeyOf(s.Service.Name, s.Window)
	if s.InFlight != nil {
		return inFlight(s, key)
	}
	if st, due := undo(s); due {
		return st
	}
	if s.Ticket != nil && s.Ticket.State == approve.Approved {
		return approved(s)
	}
	if s.Ticket != nil && s.Ticket.Proposal.Undo {
		return waiting(s) // its own service may be met
	}
	if st, done := byState(s, key); done {
		return st
	}
	if s.Ticket != nil {
		return waiting(s)
	}
	if len(s.Service.Remediation.Actions) == 0 {
		return Step{Kind: Hold, Key: key, Reasons: []gate.Reason{{
			Code: ReasonNoActions, Text: "no action is declared for this service",
		}}}
	}
	if floors := gate.PassingFloors(gate.Case{Service: s.Service, Key: key, Facts: s.Facts, Limits: s.Limits}); len(floors) > 0 {
		return Step{Kind: Hold, Key: key, Reasons: floors, Again: earliest(floors, s.Now())}
	}
	return byWindow(s, key)
}

// waiting for a person.
func waiting(s Situation) Step {
	return Step{
		Kind: Hold, Key: s.Ticket.Key, Ticket: s.Ticket.ID, Again: s.Ticket.Expires,
		Reasons: []gate.Reason{{
			Code: ReasonWaitApproval, At: s.Ticket.Expires,
			Text: fmt.Sprintf("%s waits for a person: setpoint approve %s", s.Ticket.ID, s.Ticket.ID),
		}},
	}
}

// inFlight waits: for the outcome of what was sent, or for an answer about
// what may have been.
func inFlight(s Situation, key gate.Key) Step {
	e := s.InFlight
	if e.Effect.Judged() {
		due := e.AppliedAt.Add(e.Claim.Action.Settle)
		return Step{Kind: Settle, Key: key, Reasons: []gate.Reason{{
			Code: ReasonAwaiting,
			Text: fmt.Sprintf("%s of %s is judged by measurement from %s on", e.Claim.Action.Name, e.Claim.Key, clock(due)),
		}}}
	}
	return Step{Kind: Settle, Key: key, Reasons: []gate.Reason{{
		Code: ReasonInDoubt,
		Text: fmt.Sprintf("%s of %s is %s: it is asked for its mark, never sent again", e.Claim.Action.Name, e.Claim.Key, e.Effect),
	}}}
}

// approved executes an answered ticket once nothing that passes holds it back.
func approved(s Situation) Step {
	f := s.Facts
	f.ApprovedTicket = s.Ticket.ID
	c := gate.Case{Service: s.Service, Proposal: s.Ticket.Proposal, Key: s.Ticket.Key, Facts: f, Limits: s.Limits}
	if floors := gate.PassingFloors(c); len(floors) > 0 {
		return Step{Kind: Hold, Key: s.Ticket.Key, Ticket: s.Ticket.ID, Reasons: floors, Again: earliest(floors, s.Now())}
	}
	p := s.Ticket.Proposal
	return Step{
		Kind: Execute, Key: s.Ticket.Key, Ticket: s.Ticket.ID, Recorded: &p,
		Reasons: []gate.Reason{{Code: ReasonApproved, Text: s.Ticket.ID + " was approved"}},
	}
}

// byState ends the pass where measurement gives nothing to do.
func byState(s Situation, key gate.Key) (Step, bool) {
	a := s.Facts.Assessment
	switch {
	case a.State == compare.Met:
		return Step{Kind: Idle, Key: key, Reasons: []gate.Reason{{Code: ReasonMet, Text: "every objective is met"}}}, true
	case a.State == compare.Unknown:
		return Step{Kind: Hold, Key: key, Reasons: []gate.Reason{{
			Code: gate.ReasonUnknown, Text: "unknown is no reason to act: " + string(a.Reason),
		}}}, true
	case a.State != compare.Breached:
		return Step{Kind: Hold, Key: key, Reasons: []gate.Reason{{
			Code: gate.ReasonUnknown, Text: fmt.Sprintf("state %q is not known", a.State),
		}}}, true
	case a.Reason == compare.Recovering:
		return Step{Kind: Hold, Key: key, Reasons: []gate.Reason{{
			Code: gate.ReasonRecovering, Text: "a burn rate is high still, the judge window is good again",
		}}}, true
	case !a.Actionable():
		return Step{Kind: Hold, Key: key, Reasons: []gate.Reason{{
			Code: gate.ReasonUnknown, Text: "a breach beside an unknown objective pages and does not act: " + string(a.Reason),
		}}}, true
	}
	return Step{}, false
}

// byWindow asks once per service and window, and judges what was answered for
// as long as the window lasts.
func byWindow(s Situation, key gate.Key) Step {
	end := s.Window.End()
	if s.Record == nil || (s.Record.Asked == nil && s.Record.Proposed == nil && s.Record.Final == "") {
		return Step{Kind: Propose, Key: key, Reasons: []gate.Reason{{Code: ReasonBreach, Text: "a target is missed"}}}
	}
	w := s.Record
	if w.Final != "" {
		return Step{Kind: Hold, Key: key, Again: end, Reasons: []gate.Reason{{
			Code: ReasonWindowSpent, At: end,
			Text: fmt.Sprintf("this window had its proposal (%s); the next begins %s", w.Final, clock(end)),
		}}}
	}
	if w.Proposed != nil {
		p := w.Proposed.Proposal
		return Step{Kind: Propose, Key: key, Recorded: &p, Reasons: []gate.Reason{{Code: ReasonBreach, Text: "the recorded proposal is judged again"}}}
	}
	if s.Now().Before(w.Asked.Deadline) {
		return Step{Kind: Hold, Key: key, Again: w.Asked.Deadline, Reasons: []gate.Reason{{
			Code: ReasonAsked, At: w.Asked.Deadline, Text: "the proposer was asked and has not answered yet",
		}}}
	}
	// Asked, and no answer was recorded before the deadline: a crash or a lost
	// reply. It counts as malformed, so that nobody is asked twice.
	p := propose.Proposal{
		Kind: propose.KindMalformed, Proposer: w.Asked.Proposer,
		Fault: "timeout: no reply was recorded before the deadline",
	}
	return Step{Kind: Propose, Key: key, Recorded: &p, Reasons: []gate.Reason{{Code: ReasonAsked, Text: p.Fault}}}
}

// earliest is the first moment after now at which a reason passes by itself.
func earliest(rs []gate.Reason, now time.Time) time.Time {
	var first time.Time
	for _, r := range rs {
		if r.At.After(now) && (first.IsZero() || r.At.Before(first)) {
			first = r.At
		}
	}
	return first
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
