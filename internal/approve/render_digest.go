package approve

import (
	"fmt"
	"strings"
	"time"
)

const (
	// maxWaiting is how many tickets the digest card lists.
	maxWaiting = 20
	// maxNamed is how many of their services its first line names.
	maxNamed = 5
)

// RenderDigest writes the one card that lists the tickets for which there is no
// room in the channel. It has no buttons: who answers must have seen the bytes.
func RenderDigest(waiting []Ticket, storm string, now time.Time) Card {
	if len(waiting) == 0 {
		return emptyDigest(now)
	}
	c := Card{
		Ticket: DigestCard, State: Open, Title: amount(len(waiting)) + " without a card of their own",
		NoClick:  "each is answered by a command of its own, by somebody who looked at it",
		Sections: []Section{{"Waiting", waitingLines(waiting, now)}},
		Expires:  waiting[0].Expires,
	}
	gist := []any{storm != ""}
	for _, t := range waiting {
		if t.Expires.Before(c.Expires) {
			c.Expires = t.Expires
		}
		gist = append(gist, t.ID, t.Digest, Missing(t), t.Expires.Unix())
	}
	c.Lead, c.Gist = digestLead(waiting, storm, c.Expires, now), digestOf(gist)
	return c
}

func emptyDigest(now time.Time) Card {
	return Card{
		Ticket: DigestCard, State: Withdrawn, Final: true, Title: "No approval waits without a card", Gist: digestOf("empty"),
		Lead: Lead{
			Broken: "no approval waits without a card of its own any more",
			Step:   "nothing is done from here",
			Why:    "why: this card listed those for which there was no room in the channel",
			Until:  "until: it ended at " + Moment(now, now),
			Do:     "do: nothing is left to answer here; setpoint get approvals lists what is open",
		},
	}
}

func amount(n int) string {
	if n == 1 {
		return "1 approval waits"
	}
	return fmt.Sprintf("%d approvals wait", n)
}

func digestLead(waiting []Ticket, storm string, first, now time.Time) Lead {
	var names []string
	for i, t := range waiting {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(waiting)-i))
			break
		}
		names = append(names, OneLine(t.Service, 60))
	}
	l := Lead{
		Broken: OneLine(amount(len(waiting))+": "+strings.Join(names, ", "), MaxLine),
		Step:   "would do what is listed below, each only if it is approved",
		Why:    "why: there is no room in this channel for a card for each",
		Until:  "until: the first ends at " + left(first, now) + "; without an answer nothing is done and the on-call is paged",
		Do:     "setpoint get approvals, look at one with setpoint explain, then setpoint approve or setpoint deny with its id and --reason '…'",
	}
	if storm != "" {
		l.Why = OneLine("why: the storm brake is on: "+storm, MaxLine)
		l.Until = fmt.Sprintf("until: the first ends at %s; those that nobody could approve for the storm are withdrawn", Moment(first, now))
		l.Do = "do: nothing can be approved now; setpoint get approvals lists them, and setpoint deny takes one back"
	}
	return fitting(l)
}

func waitingLines(waiting []Ticket, now time.Time) []string {
	var lines []string
	for i, t := range waiting {
		if i == maxWaiting {
			return append(lines, fmt.Sprintf("and %d more: setpoint get approvals", len(waiting)-i))
		}
		lines = append(lines, OneLine(fmt.Sprintf("%s %s: %s%s, until %s, needs %s", t.ID, t.Service, t.Proposal.Action,
			Parameters(t.Proposal.Parameters), Moment(t.Expires, now), strings.Join(missing(t), " and ")), maxWaitingLine))
	}
	return lines
}

// maxWaitingLine is how long a line of the list is at most, in characters.
const maxWaitingLine = 250
