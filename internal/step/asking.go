package step

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// Asking is how far an open ticket has come before people in their channel.
type Asking int8

// The ways of asking. The zero value is that of an agent without a channel.
const (
	// NobodyAsked: there is no channel, so a page has to ask.
	NobodyAsked Asking = iota
	// BeingAsked: the card is on its way, and has not been for long.
	BeingAsked
	// Shown: the card stands in the channel.
	Shown
	// Unasked: the card failed, is not wanted there or has no room, so a page has
	// to ask.
	Unasked
)

// askedInChannel reports whether an open ticket needs no page, because people
// are asked in their channel and have not yet left it for too long. A page that
// is open says all the same what waits.
func askedInChannel(n NoticeFacts) bool {
	late := n.Overdue || n.Now.Sub(n.State.EpisodeSince) >= n.Service.Remediation.EscalateWithin
	return (n.Asked == Shown || n.Asked == BeingAsked) && !late && !n.Open
}

// ticketNotice looks at the newest ticket of the episode: an open one that is not
// before people in a channel needs a page now, and one that nobody answered or
// that went void needs one too.
func ticketNotice(n NoticeFacts) (reason, why string) {
	if len(n.Tickets) == 0 {
		return "", ""
	}
	t := n.Tickets[len(n.Tickets)-1]
	what := fmt.Sprintf("%s (%s)", t.ID, t.Proposal.Action)
	switch t.State {
	case approve.Open:
		if askedInChannel(n) {
			return "", ""
		}
		why = fmt.Sprintf("%s waits until %s: setpoint approve %s --reason '…'", what, clock(t.Expires), t.ID)
		if len(t.Reasons) > 0 {
			why += "; asked because " + t.Reasons[0].Text
		}
		return escalate.ApprovalNeeded, why + unasked(n)
	case approve.Expired:
		return escalate.ApprovalExpired, what + " was not answered in time"
	case approve.Void:
		return escalate.ApprovalVoid, what + " could not be executed: " + t.Reason
	}
	return "", ""
}

// unasked says why a question comes as a page where people have a channel for it.
func unasked(n NoticeFacts) string {
	switch {
	case n.Asked != Unasked:
		return ""
	case n.AskFault == "":
		return "; it comes as a page because no card in the channel asks it"
	}
	return "; it comes as a page because its card could not be shown: " + n.AskFault
}
