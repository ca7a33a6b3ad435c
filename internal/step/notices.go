package step

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Notice is one page that should be open now.
type Notice struct {
	// ID is the page's dedup key.
	ID     string
	Reason string
	// Why says it in words for the page's present line.
	Why string
	// Decision is the id of what a person has to settle, Suspended the action
	// that waits for a named reset; "" without.
	Decision, Suspended string
	// To is who is told.
	To Audience
}

// Audience is a list of receivers of the Remediation.
type Audience int8

// The audiences. Owners are ownerReceivers, or the on-call where there are none.
const (
	OnCall Audience = iota
	Owners
	Everybody
)

// NoticeFacts are what Notices looks at for one service. None of it depends on
// whether a pass could act, so a pass that failed pages all the same.
type NoticeFacts struct {
	Service    spec.Service
	MaxMode    spec.Mode
	Assessment compare.Assessment
	// State is the ledger's view after this pass.
	State ledger.Service
	// InFlight is the locked effect, or nil.
	InFlight *ledger.Effect
	// Decision and Proposal are the last of this episode, or nil.
	Decision *gate.Decision
	Proposal *propose.Proposal
	// Tickets are those of this episode, oldest first.
	Tickets []approve.Ticket
	// Asked is what the channel holds of the newest of them, while it is open, and
	// AskFault what the channel said when its card could not be shown; "" without.
	Asked    Asking
	AskFault string
	// Holding are the reasons for which the last pass held, where it came to no
	// decision or none was due.
	Holding []gate.Reason
	// Doubtful are effects that were settled as unknown.
	Doubtful []ledger.Effect
	// Suspended holds why, by action name.
	Suspended map[string]string
	// Open: the episode has an open page, which must not go on saying what is
	// over.
	Open bool
	// OpenFor is the reason that it was opened for.
	OpenFor string
	// Dependencies that are not met, by name. Roots are those at the bottom of
	// them, whose own dependencies are met, or the direct ones where they are not
	// known to have any.
	Dependencies, Roots map[string]compare.State
	// RootsPaged: each root has an open page that this service's receivers get.
	RootsPaged bool
	// Waiting are the services that miss their SLO and wait for this one, and
	// Overdue says that one of them has waited for its escalateWithin.
	Waiting []string
	Overdue bool
	// Storm: the storm brake is on. Grouped: its page speaks for this service.
	Storm, Grouped bool
	// Harmful is an effect that made things worse and may be taken back, Undo what
	// takes it back, once that was sent; nil without.
	Harmful, Undo *ledger.Effect
	// GivenUp: its undo was claimed and void so often that it is not tried again.
	GivenUp bool
	// Planned is the maintenance with mutePages in force; "" without.
	Planned string
	Now     time.Time
}

// Notices gives the pages that should be open for one service at now: at most
// one for its episode, and one for each effect whose fate only a person can
// tell. Whether they were sent is not its concern; every pass asks again, so a
// lost page is a late one.
func Notices(n NoticeFacts) []Notice {
	var out []Notice
	for _, e := range n.Doubtful {
		out = append(out, Notice{
			ID: "in-doubt/" + string(e.Claim.Key), Reason: escalate.InDoubt,
			Decision: e.Claim.Decision,
			Why:      fmt.Sprintf("nobody can tell whether %s of %s landed; its target stays locked until setpoint settle", e.Claim.Action.Name, e.Claim.Key),
		})
	}
	if muted(n) {
		return out
	}
	if why := undoHeld(n); why != "" && (n.State.State != compare.Breached || n.Planned != "" || n.Grouped) {
		// A neighbour was hurt, and the service itself may have no episode to tell of;
		// or nothing is told of it, because people work on it or there is a storm. What
		// we did to it is neither.
		out = append(out, Notice{ID: "undo/" + string(n.Harmful.Claim.Key), Reason: escalate.UndoHeld, Why: why})
	}
	if own, ok := ofEpisode(n); ok {
		out = append(out, own)
	}
	return out
}

// ofEpisode is the page of the service's episode. While a storm's page speaks for
// it, and in a planned maintenance, none is opened, and one that is open stays.
func ofEpisode(n NoticeFacts) (Notice, bool) {
	if n.State.Episode == "" {
		return Notice{}, false
	}
	reason, why := "", ""
	if !n.Grouped && n.Planned == "" {
		reason, why = episodeNotice(n)
	}
	if reason == "" && n.Open {
		reason, why = standing(n)
	}
	if reason == "" {
		return Notice{}, false
	}
	notice := Notice{ID: n.State.Episode, Reason: reason, Why: why + waitingFor(n), To: audience(n, reason)}
	if names := sortedKeys(n.Suspended); len(names) > 0 {
		notice.Suspended = names[0]
	}
	return notice, true
}

// muted: in mode observe people asked to be left alone, unless they said
// otherwise.
func muted(n NoticeFacts) bool {
	r := n.Service.Remediation
	return min(r.Mode, n.MaxMode) == spec.Observe && !r.Escalation.Observe
}

// audience: what was never met under any documents is its owner's alone.
func audience(n NoticeFacts, reason string) Audience {
	switch {
	case reason != escalate.SpecProblem:
		return OnCall
	case n.State.LastMet.IsZero() && (!n.Open || n.OpenFor == escalate.SpecProblem):
		return Owners
	}
	return Everybody
}

func episodeNotice(n NoticeFacts) (reason, why string) {
	switch n.State.State {
	case compare.Unknown:
		return unknownNotice(n)
	case compare.Breached:
		return breachNotice(n)
	}
	return "", ""
}

// unknownNotice: an Unknown by a source's fault is one page for the source,
// and low traffic is shown, not paged.
func unknownNotice(n NoticeFacts) (reason, why string) {
	if n.State.Reason == compare.LowTraffic || n.State.SourceFault != "" {
		return "", ""
	}
	if n.Now.Sub(n.State.Since) < n.Service.Remediation.UnknownFor && !n.Overdue {
		return "", ""
	}
	why = fmt.Sprintf("unknown (%s) since %s", n.State.Reason, clock(n.State.Since))
	if n.State.LastMet.IsZero() && !n.State.EverMet {
		return escalate.SpecProblem, "never met since its documents were loaded, " + why
	}
	if n.State.Reason == compare.TrafficLost {
		return escalate.TrafficLost, why
	}
	return escalate.Blind, why
}

// BlindSource names the source by whose fault the service has been unknown for
// unknownFor: all such services share one page for the source. It is "" where
// nobody is to be told.
func BlindSource(n NoticeFacts) string {
	if muted(n) || n.State.State != compare.Unknown || n.Now.Sub(n.State.Since) < n.Service.Remediation.UnknownFor {
		return ""
	}
	return n.State.SourceFault
}

// breachNotice pages at once where a person is needed, and after
// escalateWithin where Setpoint cannot or may not act. While an effect is
// being judged it is acting, so it does not page for the wait; the wait is
// bounded by settle, judge window and unknownFor. One in doubt locks the target,
// so nothing else can be done, and that pages like any other hindrance.
func breachNotice(n NoticeFacts) (reason, why string) {
	if reason, why = ticketNotice(n); reason != "" {
		return reason, why
	}
	if why := undoHeld(n); why != "" {
		return escalate.UndoHeld, why
	}
	if handed, text := handedOver(n); handed {
		return escalate.HandedOver, text
	}
	if names := sortedKeys(n.Suspended); len(names) > 0 {
		return escalate.Suspended, names[0] + " is suspended: " + n.Suspended[names[0]]
	}
	if n.Now.Sub(n.State.EpisodeSince) < n.Service.Remediation.EscalateWithin && !n.Overdue {
		return "", ""
	}
	if n.Assessment.Reason == compare.Recovering && !n.Open {
		return "", "" // the judge window is good again: a page stays, and none opens
	}
	return hindered(n)
}

// hindered is what keeps Setpoint from acting on a miss that has lasted.
func hindered(n NoticeFacts) (reason, why string) {
	if n.InFlight != nil {
		// One that is judged is acting; one in doubt only locks.
		if n.InFlight.InDoubt() {
			return standing(n)
		}
		return "", ""
	}
	if len(n.Dependencies) > 0 {
		return dependencyNotice(n)
	}
	if !n.State.EverMet {
		return escalate.SpecProblem, fmt.Sprintf("missed since %s and never met since its documents were loaded: is the target or a query wrong?", clock(n.State.EpisodeSince))
	}
	return escalate.CannotAct, fmt.Sprintf("missed since %s, and no step is permitted", clock(n.State.EpisodeSince)) + heldBy(n)
}

// dependencyNotice names the root, and is silent where its page tells the same
// people.
func dependencyNotice(n NoticeFacts) (reason, why string) {
	if n.RootsPaged {
		return "", ""
	}
	roots := n.Roots
	if len(roots) == 0 {
		roots = n.Dependencies
	}
	var down []string
	for _, name := range sortedKeys(roots) {
		down = append(down, fmt.Sprintf("%s, which is %s", name, roots[name]))
	}
	return escalate.DependencyDown, "waits for " + strings.Join(down, " and for ")
}

// waitingFor says who waits for this service.
func waitingFor(n NoticeFacts) string {
	if len(n.Waiting) == 0 {
		return ""
	}
	return "; missed with it, and waiting for it: " + strings.Join(n.Waiting, ", ")
}

// undoHeld says why what made things worse is not being taken back; "" where it
// is, or where there is nothing to take back.
func undoHeld(n NoticeFacts) string {
	h := n.Harmful
	if h == nil {
		return ""
	}
	why := ""
	switch {
	case n.Undo != nil && undid(*n.Undo):
	case n.Undo != nil:
		why = fmt.Sprintf("its undo was sent, came to %s, and is not sent again: %s", n.Undo.Effect, orNothing(n.Undo.Receipt.Detail))
	case h.UndoRefused != "":
		why = h.UndoRefused
	case n.GivenUp:
		why = "its undo was claimed again and again and never sent, so it is given up"
	default:
		why = undoWaits(n)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s of %s made things worse and is not taken back: %s", h.Claim.Action.Name, h.Claim.Key, why)
}

// undoWaits is what the last decision about the undo waits for. Until a pass has
// judged it nothing is in its way, and a process that has just started looks
// twice, which is no hindrance.
func undoWaits(n NoticeFacts) string {
	d := n.Decision
	if d == nil || n.Proposal == nil || !n.Proposal.Undo || d.Verdict == gate.Auto || len(d.Reasons) == 0 {
		return ""
	}
	if d.Hold && d.Reasons[0].Code == gate.ReasonFreshReads {
		return ""
	}
	return cmp.Or(d.Reasons[0].Text, d.Reasons[0].Code)
}

// undid reports whether an undo may have taken something back.
func undid(undo ledger.Effect) bool { return undo.Effect.Judged() || undo.Locked() }

func orNothing(detail string) string {
	if detail == "" {
		return "the actuator said no more"
	}
	return detail
}

// standing is what an open page says while nothing would open it: it stays
// until the episode ends by measurement.
func standing(n NoticeFacts) (reason, why string) {
	since := clock(n.State.Since)
	switch {
	case n.InFlight != nil && n.InFlight.InDoubt():
		return escalate.InDoubt, fmt.Sprintf("%s of %s was sent and not answered; it is asked for its mark, never sent again", n.InFlight.Claim.Action.Name, n.InFlight.Claim.Key)
	case n.InFlight != nil:
		return escalate.Acting, fmt.Sprintf("%s of %s is %s and is judged by measurement", n.InFlight.Claim.Action.Name, n.InFlight.Claim.Key, n.InFlight.Effect)
	case n.State.State == compare.Met:
		return escalate.Recovering, fmt.Sprintf("met again since %s; over after %s of it", since, spec.FormatDuration(n.Service.Remediation.HoldFor))
	case n.State.State == compare.Unknown:
		return escalate.Blind, fmt.Sprintf("now blind: unknown (%s) since %s", n.State.Reason, since)
	}
	if len(n.Dependencies) > 0 {
		n.RootsPaged = false
		return dependencyNotice(n)
	}
	why = "still missed since " + clock(n.State.EpisodeSince)
	if n.Storm {
		return escalate.CannotAct, why + ", and held by the storm brake"
	}
	return escalate.CannotAct, why + heldBy(n)
}

// handedOver: the proposer, the action's class or a policy hands over to a
// person. A verdict that is escalate only by a ceiling of mode waits for
// escalateWithin like everything that Setpoint may not do.
func handedOver(n NoticeFacts) (bool, string) {
	if n.Proposal != nil && n.Proposal.Kind == propose.KindEscalate {
		return true, "the proposer hands over"
	}
	if n.Decision == nil || n.Decision.Verdict != gate.Escalate {
		return false, ""
	}
	for _, rule := range n.Decision.Ruling.Escalate {
		return true, "policy hands over: " + rule.Reason
	}
	for _, r := range n.Decision.Reasons {
		switch r.Code {
		case gate.ReasonClassEscalate, gate.ReasonOscillation, gate.ReasonFight, gate.ReasonRepeat, gate.ReasonForeignChange:
			return true, r.Text
		}
	}
	return false, ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
