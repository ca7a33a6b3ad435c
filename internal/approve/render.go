package approve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
)

// The limits of a card, in characters.
const (
	maxTitle = 150
	maxWords = 300
)

// RenderCard writes the card of a ticket. What it shows of the step comes from the
// bytes that the ticket's digest was made of, and of nothing else.
func RenderCard(f CardFacts) Card {
	t := f.Ticket
	c := Card{
		Ticket: t.ID, Service: t.Service, Digest: t.Digest, State: t.State,
		Sections: sections(f),
		Words:    Quote(t.Proposal.Rationale, maxWords), Speaker: Speaker(t.Proposal.Proposer),
		PageURL: f.PageURL, TraceURL: f.TraceURL, Notes: notes(f), Final: final(f),
	}
	c.Exact, c.NoClick = exact(f)
	if t.State != Open {
		c.NoClick = ""
	} else {
		c.Expires = t.Expires
		c.NoClick = noClick(f, c.NoClick)
	}
	c.Title, c.Lead = title(f, c.NoClick), lead(f, c.NoClick)
	c.Gist = gist(f, c.NoClick)
	return c
}

// noClick is why an open ticket cannot be approved by a click: what its bytes say
// against it comes first, because it does not pass.
func noClick(f CardFacts, bytes string) string {
	switch {
	case bytes != "":
		return bytes
	case overdue(f):
		return "the time for an answer is over"
	case f.Storm != "":
		return stormy
	}
	return ""
}

// stormy is without its numbers, which move with each pass.
const stormy = "the storm brake is on"

// overdue: nobody ended it yet, and an answer would be refused.
func overdue(f CardFacts) bool { return f.Ticket.State == Open && !f.Now.Before(f.Ticket.Expires) }

// claimed reports whether its key was, whether ticket or course says so.
func claimed(f CardFacts) bool {
	return !claimTime(f).IsZero()
}

// final: nothing more will happen to an ended ticket that was never claimed, nor
// to one whose course is over.
func final(f CardFacts) bool {
	switch f.Ticket.State {
	case Open:
		return false
	case Approved:
		return f.Course.Over
	}
	return f.Course.Over || !claimed(f)
}

// title is what a notification shows.
func title(f CardFacts, noClick string) string {
	t := f.Ticket
	what := t.Proposal.Action + " for " + t.Service
	switch {
	case t.State != Open || overdue(f):
		return OneLine(t.ID+": "+what+": "+stands(f), maxTitle)
	case noClick != "":
		return OneLine(t.ID+": "+what+" waits for a person", maxTitle)
	}
	return OneLine("Approve "+what+"? "+t.ID, maxTitle)
}

// stands is where it stands, in a few words.
func stands(f CardFacts) string {
	c := f.Course
	switch {
	case f.Ticket.State == Open:
		return "time is up"
	case f.Ticket.State != Approved:
		return string(f.Ticket.State)
	case c.VoidReason != "":
		return "not sent"
	case judged(c):
		return string(c.Outcome)
	case c.Effect != "" && c.Effect != "started" && c.Effect != "applied" && !c.SentAt.IsZero():
		return c.Effect
	case !c.SentAt.IsZero():
		return "sent"
	case claimed(f):
		return "about to be sent"
	}
	return "approved"
}

// judged reports whether measurement said what came of it.
func judged(c Course) bool {
	return c.Outcome != "" && c.Outcome != compare.OutcomeNone && c.Outcome != compare.OutcomePending
}

// gist holds what a person would want to see changed on the card: an answer, an
// end, a button that is gone, a step in the course. The state of the service is
// part of it, its numbers are not.
func gist(f CardFacts, noClick string) string {
	t, c := f.Ticket, f.Course
	var answers []string
	for _, a := range t.Answers {
		answers = append(answers, fmt.Sprint(a.By, " ", a.Approve, " ", a.At.Unix()))
	}
	g := []any{
		t.ID, t.Digest, t.State, t.Reason, answers, Missing(t), t.State == Open && f.Storm != "", noClick,
		c.ClaimedAt.Unix(), c.SentAt.Unix(), c.JudgedAt.Unix(), c.Effect, c.Detail, c.VoidReason, c.Outcome, c.Over,
	}
	if t.State == Open {
		g = append(g, f.Assessment.State, t.Expires.Unix())
		// What came of an earlier step is learnt late, and says most of this one.
		for _, d := range f.Tried {
			g = append(g, d.Action, d.At.Unix(), d.Effect, d.Outcome)
		}
	}
	return digestOf(g)
}

// digestOf is the SHA-256 (hex) of the JSON of plain values.
func digestOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// It cannot be, and its own text serves as well.
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Text is the card as plain text. It begins with the five lines of the lead.
func (c Card) Text() string {
	var b strings.Builder
	for _, line := range c.Lead.Lines() {
		b.WriteString(line + "\n")
	}
	for _, s := range c.Sections {
		b.WriteString(s.Heading + "\n")
		for _, line := range s.Lines {
			b.WriteString("  " + line + "\n")
		}
	}
	if c.Exact != "" {
		b.WriteString(c.ExactHeading() + "\n  " + c.Exact + "\n")
	}
	if c.Words != "" {
		b.WriteString(c.WordsHeading() + "\n  " + c.Words + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ExactHeading stands over the exact bytes.
func (c Card) ExactHeading() string {
	if c.Open() {
		return "An approval executes these bytes and no others"
	}
	return "What was asked for, byte for byte"
}

// WordsHeading stands over the proposer's own words.
func (c Card) WordsHeading() string {
	s := "In the proposer's own words, which reached no decision"
	if c.Speaker != "" {
		s += " (" + c.Speaker + ")"
	}
	return s
}
