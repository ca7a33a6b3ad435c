package escalate

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// PageFacts are what a page is written from. All of it was measured, recorded
// or reviewed; the only words of a stranger are Proposal.Rationale, which
// stands last, and those of Changes; both are quoted.
type PageFacts struct {
	// ID, Reason and Episode are those of the page; Reason is the present one.
	ID, Reason, Episode string
	// Why says the reason in words.
	Why string
	// Service is the zero Service for a fault of Setpoint or of a source.
	Service    spec.Service
	Assessment compare.Assessment
	// Since is the begin of the episode; zero when unknown.
	Since time.Time
	// Changes are what was done to the service lately, newest first. They are
	// context: they move no Gist.
	Changes []measure.Change
	// Tried is oldest first.
	Tried []propose.Tried
	// Reasons are those of the last decision: why Setpoint stopped.
	Reasons []gate.Reason
	// Balance is of the proposed action; nil when there is none.
	Balance *budget.Balance
	// Proposal is the last of this episode, Ticket the open one; nil without.
	Proposal *propose.Proposal
	Ticket   *approve.Ticket
	// Lapsed is the newest ticket where it is why the page is open: it expired, or
	// went void. What it asked for is not done. Nil otherwise.
	Lapsed *approve.Ticket
	// Subject is what a page without a service is about, e.g. a receiver's name.
	Subject string
	// Decision is the id of the decision that a person may have to settle; ""
	// without.
	Decision string
	// Suspended is the action that waits for a named reset; "" without.
	Suspended string
	// Opened is the page that is open already; nil for a new one.
	Opened *Page
	// Next is who is told after those who hold the page; the zero Turn where nobody
	// is, or it is not known.
	Next Turn
	// Now is the time of the pass.
	Now time.Time
}

// The limits of a page.
const (
	maxSummary = 250
	maxLine    = 300
	maxTried   = 5
	maxReasons = 8
)

// Render writes the page. What a receiver knows the page by (reason, severity,
// begin) is that of the page already open. Its Receivers are the caller's.
func Render(f PageFacts) Page {
	p := Page{
		ID: f.ID, Service: f.Service.Name, Owner: f.Service.Remediation.Owner, Episode: f.Episode, Reason: f.Reason, Now: f.Reason,
		Severity: Severity(f.Reason), Since: f.Since,
	}
	if p.Since.IsZero() {
		p.Since = f.Now
	}
	if o := f.Opened; o != nil {
		p.Reason, p.Severity, p.Since, p.AckedBy = o.Reason, o.Severity, o.Since, o.AckedBy
	}
	p.Summary = execute.CleanText(summary(f, p.Reason), maxSummary)
	p.Lead = lead(f)
	p.Text = body(f, p.Lead)
	p.Gist = gist(f)
	return p
}

// gist holds what a person would want to be told again: another reason,
// another outcome, another question, another plan.
func gist(f PageFacts) string {
	g := struct {
		Reason, Proposal, Ticket string
		State                    compare.State
		Tried                    []string
	}{Reason: f.Reason, State: f.Assessment.State}
	for _, t := range f.Tried {
		g.Tried = append(g.Tried, fmt.Sprint(t.Action, approve.Parameters(t.Parameters), t.At.Unix(), t.Effect, t.Outcome))
	}
	if f.Proposal != nil {
		g.Proposal = fmt.Sprint(f.Proposal.Kind, f.Proposal.Action, approve.Parameters(f.Proposal.Parameters))
	}
	if f.Ticket != nil {
		g.Ticket = f.Ticket.ID + string(f.Ticket.State)
	}
	return digest(g)
}

// summary is one line: the subject with its worst number, then why.
func summary(f PageFacts, opened string) string {
	name := f.Service.Name
	if name == "" {
		return "setpoint: " + orReason(f)
	}
	head := name
	switch f.Assessment.State {
	case compare.Breached:
		head += " misses its SLO"
		if o, ok := f.Assessment.Worst(); ok && o.Judge.Known() {
			head = fmt.Sprintf("%s misses %s: %s errors%s (measured), %s allowed",
				name, o.ID, approve.Percent(o.Judge.ErrorRatio), over(o.Judge.ID.Window), approve.Percent(1-o.Target))
		}
	case compare.Met:
		head += " meets its SLO again, not yet long enough"
	default:
		head = fmt.Sprintf("%s cannot be judged (%s)", name, orWord(string(f.Assessment.Reason), "no measurement"))
		if f.Reason == Blind && opened != Blind {
			head = name + " is now blind: it was reported, and since then " + head
		}
	}
	return head + "; " + orReason(f)
}

func orReason(f PageFacts) string { return orWord(f.Why, f.Reason) }

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func over(window time.Duration) string {
	if window <= 0 {
		return ""
	}
	return " over " + spec.FormatDuration(window)
}
