package escalate

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// lead are the five lines with which a page begins.
func lead(f PageFacts) approve.Lead {
	return approve.Lead{
		Broken: approve.OneLine(broken(f), approve.MaxLine),
		Step:   approve.OneLine(stepTaken(f), approve.MaxLine),
		Why:    approve.OneLine("why: "+orReason(f), approve.MaxLine),
		Until:  approve.OneLine("until: "+until(f), approve.MaxLine),
		Do:     approve.OneLine("do: "+do(f), approve.MaxLine),
	}
}

// about are the words for what is no single service's miss.
type about struct{ broken, step, until, do string }

// fleet is what is said of pages without a service. What they hold up is said too:
// whoever is woken wants to know what does not happen meanwhile.
var fleet = map[string]about{
	SourceDown: {
		"a source of measurements cannot be used", "nothing is done for services that only it measures",
		"it answers again and its clock is right", "setpoint doctor",
	},
	PolicyFault: {
		"the policy cannot be used as it stands", "nothing is done that the last good policy does not allow",
		"the policy loads and passes its own tests", "setpoint policy check",
	},
	LedgerFault: {
		"the ledger cannot be used", "nothing is proposed, approved or sent without it",
		"the ledger can be read and written again", "setpoint ledger verify",
	},
	Storm: {
		"many services at once are out of their SLO", "nothing is proposed, approved or sent while it lasts",
		"it has passed by measurement", "look for what they share: setpoint get drift",
	},
	KeyConflict: {
		"two writers decided differently about one key", "this process sent nothing under that key",
		"the window of that key is over", "give all replicas the same documents: setpoint validate on each",
	},
	ExceptionExpired: {
		"an exception has expired and is still in the documents", "nothing: documents are changed by people alone",
		"it is removed or renewed", "remove or renew it, then setpoint validate",
	},
	ReceiverDown: {
		"a receiver takes no pages", "it is tried again and again, and the other receivers get its pages",
		"it takes a page", "setpoint doctor",
	},
	Heartbeat: {
		"nothing is broken: Setpoint runs, and its way to you is open", "nothing was done",
		"the next one; if none comes, look whether Setpoint runs", "nothing",
	},
}

// general stands in for a reason of which nothing more is known.
var general = about{"Setpoint needs a person", "nothing was done about it", "it is over by measurement", "setpoint doctor"}

func fleetWords(reason string) about {
	if a, ok := fleet[reason]; ok {
		return a
	}
	return general
}

// begin is since when the page is open, or would be.
func begin(f PageFacts) time.Time {
	switch {
	case !f.Since.IsZero():
		return f.Since
	case f.Opened != nil && !f.Opened.Since.IsZero():
		return f.Opened.Since
	}
	return f.Now
}

func broken(f PageFacts) string {
	if f.Service.Name == "" {
		s := fleetWords(f.Reason).broken
		if f.Reason == ReceiverDown && f.Subject != "" {
			s = "receiver " + f.Subject + " takes no pages"
		}
		if f.Reason == Heartbeat {
			return s
		}
		return fmt.Sprintf("%s, since %s (%s)", s, approve.Moment(begin(f), f.Now), approve.Age(f.Now.Sub(begin(f))))
	}
	s := approve.Broken(f.Service.Name, f.Assessment, f.Since, f.Now)
	if o := f.Opened; f.Reason == Blind && o != nil && o.Reason != Blind {
		return "now blind, and it was reported before (" + o.Reason + "): " + s
	}
	return s
}

// stepTaken is what was done last in this episode, with what was measured after
// it, or what would be done.
func stepTaken(f PageFacts) string {
	switch last, tried := lastTried(f); {
	case f.Service.Name == "":
		return fleetWords(f.Reason).step
	case f.Ticket != nil && f.Ticket.State == approve.Open:
		return approve.Would(f.Service, f.Ticket.Proposal)
	case f.Lapsed != nil:
		return notDone(f)
	case tried:
		return approve.Did(last)
	case f.Proposal != nil:
		return "nothing was tried in this episode; " + approve.Would(f.Service, *f.Proposal)
	}
	return "nothing was tried in this episode, and nothing is proposed"
}

// notDone is what was asked for and came to nothing.
func notDone(f PageFacts) string {
	s := "not done: " + approve.Act(f.Service, f.Lapsed.Proposal)
	if f.Reason == ApprovalExpired {
		s += "; it is not asked again in this episode"
	}
	return s
}

func lastTried(f PageFacts) (last propose.Tried, ok bool) {
	for _, t := range f.Tried {
		if t.ThisEpisode {
			last, ok = t, true
		}
	}
	return last, ok
}

// until is when the page ends, and what happens without whoever reads it.
func until(f PageFacts) string {
	s := ""
	switch {
	case f.Ticket != nil && f.Ticket.State == approve.Open:
		s = fmt.Sprintf("%s; then %s expires, nothing is done, and you are told again", approve.Moment(f.Ticket.Expires, f.Now), f.Ticket.ID)
	case f.Reason == InDoubt && f.Decision != "":
		s = "somebody says what happened; its target stays locked, and nothing is sent again"
	case f.Service.Name == "":
		s = fleetWords(f.Reason).until
	case f.Service.Remediation.HoldFor > 0:
		s = "it is met for " + spec.FormatDuration(f.Service.Remediation.HoldFor) + " by measurement"
	default:
		s = "it is met by measurement"
	}
	return s + chain(f)
}

// do is the next step, with one command. What a person has to decide comes before
// what they can look at.
func do(f PageFacts) string {
	const because = " --reason '…'"
	service := approve.Argument(f.Service.Name)
	switch {
	case f.Ticket != nil && f.Ticket.State == approve.Open:
		return "setpoint approve " + approve.Argument(f.Ticket.ID) + because + ", or deny"
	case f.Reason == InDoubt && f.Decision != "":
		return "look at the target, then setpoint settle " + approve.Argument(f.Decision) + " --as landed" + because + ", or not-landed"
	case f.Reason == Suspended && f.Suspended != "":
		return "look why, then setpoint budget reset --service " + service + " --action " + approve.Argument(f.Suspended) + because
	case f.Service.Name == "":
		return fleetWords(f.Reason).do
	}
	if s, ok := steps[f.Reason]; ok {
		return strings.ReplaceAll(s, "SERVICE", service)
	}
	return "act by hand: setpoint explain " + service
}

// steps are the next ones for a page of a service.
var steps = map[string]string{
	Acting:           "wait for what is measured: setpoint explain SERVICE",
	Recovering:       "wait for what is measured: setpoint explain SERVICE",
	Blind:            "look at the service itself, then at its queries: setpoint validate --live",
	TrafficLost:      "look why nobody reaches it: setpoint explain SERVICE",
	InDoubt:          "wait, it is asked for what arrived: setpoint explain SERVICE",
	HandedOver:       "act by hand: setpoint explain SERVICE",
	CannotAct:        "act by hand, nothing is permitted: setpoint explain SERVICE",
	ApprovalNeeded:   "answer it: setpoint get approvals --service SERVICE",
	ApprovalExpired:  "act by hand, it is not asked again in this episode: setpoint explain SERVICE",
	ApprovalVoid:     "act by hand if it is still needed: setpoint explain SERVICE",
	DependencyDown:   "mend what it waits for first: setpoint explain SERVICE",
	UndoHeld:         "take it back by hand: setpoint explain SERVICE",
	SpecProblem:      "correct the target or the query: setpoint validate --live",
	DocumentsRemoved: "put them back, or leave it: setpoint validate",
	SourceDown:       "setpoint doctor",
	Suspended:        "look why: setpoint explain SERVICE",
}
