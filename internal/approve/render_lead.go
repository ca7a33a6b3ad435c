package approve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// lead writes the five lines. Only an open ticket asks for something.
func lead(f CardFacts, noClick string) Lead {
	l := Lead{Broken: Broken(f.Ticket.Service, f.Assessment, f.Since, f.Now)}
	switch {
	case f.Ticket.State == Open && overdue(f):
		l.Step = notDone(f)
		l.Why = "nobody answered in time"
		l.Until = "it ended at " + Moment(f.Ticket.Expires, f.Now) + ": nothing was done, and the on-call is paged"
		l.Do = look("nothing can be answered here any more: act by hand if it is needed", f)
	case f.Ticket.State == Open:
		l.Step = "would do: " + step(f)
		if noClick == otherBytes {
			l.Step = "was asked to do: " + step(f) + ", which would be something else now"
		}
		l.Why = because(f)
		l.Until = until(f)
		l.Do = do(f, noClick)
	case f.Ticket.State == Approved:
		approvedLead(&l, f)
	default:
		endedLead(&l, f)
	}
	l.Why, l.Until, l.Do = "why: "+l.Why, "until: "+l.Until, "do: "+l.Do
	return fitting(l)
}

// fitting cuts the lines so that they fit a message whatever they hold.
func fitting(l Lead) Lead {
	for _, line := range []*string{&l.Broken, &l.Step, &l.Why, &l.Until, &l.Do} {
		*line = light(OneLine(*line, MaxLine), maxLineWeight)
	}
	return l
}

// step is what was asked for. Where the documents say something else by now, their
// target is not the one that was asked for.
func step(f CardFacts) string {
	if _, why := exact(f); why == otherBytes {
		return f.Ticket.Proposal.Action + Parameters(f.Ticket.Proposal.Parameters)
	}
	return Act(f.Service, f.Ticket.Proposal)
}

// until says when an open ticket ends, and that silence does nothing. How long
// that is stands beside the time at which it was so: a message is read later.
func until(f CardFacts) string {
	s := left(f.Ticket.Expires, f.Now) + "; without an answer "
	if f.Storm != "" {
		return s + "it is withdrawn, because nobody could approve it during a storm"
	}
	return s + "nothing is done and the on-call is paged"
}

// left is a time, and how long that is from another.
func left(t, now time.Time) string {
	return fmt.Sprintf("%s (in %s, as of %s)", Moment(t, now), Rest(t.Sub(now)), Moment(now, now))
}

// do says what can be done now and how many must.
func do(f CardFacts, noClick string) string {
	id := Argument(f.Ticket.ID)
	deny := "setpoint deny " + id + " --reason '…'"
	switch {
	case noClick == stormy:
		return "deny below, or with " + deny + "; it cannot be approved now, while the storm brake is on: " + f.Storm
	case noClick != "":
		return "deny below, or look first: setpoint explain " + Argument(f.Ticket.Service) + "; no button approves it, because " + noClick
	}
	return "approve or deny below, or with setpoint approve " + id + " --reason '…'; it needs " + strings.Join(missing(f.Ticket), " and ")
}

// missing says for each need who may approve and how many still have to. Needs that
// the same people satisfy are one to them.
func missing(t Ticket) []string {
	var lines []string
	for i, n := range Missing(t) {
		need := t.Needs[i]
		line := fmt.Sprintf("%d of %s (%d missing)", max(need.Quorum, 1), orWord(strings.Join(need.Approvers, ", "), "nobody"), n)
		if line = OneLine(line, MaxLine); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return []string{"approvers, and none are named"}
	}
	return lines
}

// maxWhy is how long the line is that says why a person is asked: it is read
// before the reasons below it.
const maxWhy = 160

// because is the reason for which a person is asked, in plain words. All of them,
// with their codes and sources, stand in a section of their own.
func because(f CardFacts) string {
	asked := askedFor(f.Ticket)
	if len(asked) == 0 {
		return "a person is asked because policy asks for one"
	}
	more := ""
	switch n := len(asked) - 1; {
	case n == 1:
		more = "; and 1 more reason below"
	case n > 1:
		more = fmt.Sprintf("; and %d more reasons below", n)
	}
	return OneLine(plainly(telling(asked)), maxWhy-len("why: ")-len(more)) + more
}

// askedFor are the reasons that a need names. Others fired beside them.
func askedFor(t Ticket) []gate.Reason {
	var asked []gate.Reason
	for _, r := range t.Reasons {
		if r.Code != "" && slices.ContainsFunc(t.Needs, func(n gate.Need) bool { return n.Reason == r.Code }) {
			asked = append(asked, r)
		}
	}
	if len(asked) == 0 {
		return t.Reasons
	}
	return asked
}

// telling is the reason that says most: a rule has a title that somebody wrote for
// people, and that mode or class want a person is so of every question.
func telling(asked []gate.Reason) gate.Reason {
	standing := []string{gate.ReasonMode, gate.ReasonMaxMode, gate.ReasonClassApproval}
	for _, says := range []func(gate.Reason) bool{
		func(r gate.Reason) bool { return strings.HasPrefix(r.Code, gate.PolicyPrefix) },
		func(r gate.Reason) bool { return !slices.Contains(standing, r.Code) },
	} {
		if i := slices.IndexFunc(asked, says); i >= 0 {
			return asked[i]
		}
	}
	return asked[0]
}

// plainly is a reason without its code, and a rule's without its file and remedy.
func plainly(r gate.Reason) string {
	text := r.Text
	if strings.HasPrefix(r.Code, gate.PolicyPrefix) {
		text, _, _ = strings.Cut(text, "; ")
		if at := strings.LastIndex(text, " ("); at > 0 && strings.HasSuffix(text, ")") && strings.Contains(text[at:], ".rego:") {
			text = text[:at]
		}
	}
	switch {
	case text == "":
		return "a person is asked because of " + r.Code
	case strings.HasPrefix(text, "policy asks"):
		return text
	}
	return "a person is asked because " + text
}

// approvedLead is that of a ticket which people approved: first it waits, then it
// is under way, then it is judged.
func approvedLead(l *Lead, f CardFacts) {
	c, t := f.Course, f.Ticket
	act := step(f)
	l.Why = whoSaid(t, true, f)
	switch {
	case c.VoidReason != "":
		l.Step = "not sent: " + act
		l.Until = "it ended without a send: " + reasonWords(c.VoidReason)
		l.Do = look("nothing can be answered here any more", f)
	case judged(c), c.Over && !c.SentAt.IsZero():
		l.Step = sentStep(f)
		l.Until = "it is over since " + Moment(latest(c.JudgedAt, c.SentAt), f.Now)
		l.Do = look("nothing is left to answer here", f)
	case !c.SentAt.IsZero():
		l.Step = sentStep(f)
		l.Until = awaited(f) + "; nothing else is done to " + t.Service + " before"
		l.Do = look(underWay(c), f)
	case claimed(f):
		l.Step = "about to be sent: " + act
		l.Until = "it is sent in this pass, or not at all"
		l.Do = "to stop it: setpoint deny " + Argument(t.ID) + " --reason '…'"
	default:
		l.Step = "approved, not sent yet: " + act
		l.Until = "it waits until " + Moment(t.Expires, f.Now) + ", or a little longer after a late answer, for what holds it to pass; then nothing is done and the on-call is paged"
		l.Do = "to stop it: setpoint deny " + Argument(t.ID) + " --reason '…'"
	}
}

// sentStep is what was done and what was measured after it.
func sentStep(f CardFacts) string {
	c := f.Course
	t := propose.Tried{At: c.SentAt, Effect: c.Effect, Outcome: c.Outcome, Before: c.Before, After: c.After}
	if t.Outcome == compare.OutcomeNone {
		t.Outcome = ""
	}
	if t.Outcome == "" && c.Effect == "applied" && c.JudgedAt.IsZero() {
		t.Outcome = compare.OutcomePending
	}
	return "did: " + step(f) + " at " + Moment(c.SentAt, f.Now) + ended(t)
}

func underWay(c Course) string {
	switch c.Effect {
	case "in-doubt":
		return "nothing yet: nothing is sent again"
	case "unknown":
		return "find out whether it arrived, and settle it"
	}
	return "nothing now: the outcome follows below"
}

// awaited is what has to be known before anything else is done.
func awaited(f CardFacts) string {
	switch f.Course.Effect {
	case "", "started":
		return "its target has to answer"
	case "in-doubt":
		return "its target is asked whether it arrived"
	case "unknown":
		return "somebody has to say whether it arrived"
	}
	a, ok := f.Service.Action(f.Ticket.Proposal.Action)
	if !ok || f.Course.AppliedAt.IsZero() {
		return "what came of it is measured once it has settled"
	}
	window := judgeWindow(f.Service)
	return fmt.Sprintf("it is judged soon after %s: it settles for %s, then errors are measured for %s",
		Moment(f.Course.AppliedAt.Add(a.Settle+window), f.Now), spec.FormatDuration(a.Settle), spec.FormatDuration(window))
}

// judgeWindow is the longest of the objectives: all of them have to be measured.
func judgeWindow(svc spec.Service) time.Duration {
	longest := time.Duration(0)
	for _, o := range svc.Objectives {
		longest = max(longest, o.JudgeWindow)
	}
	if longest == 0 {
		return spec.DefaultJudgeWindow
	}
	return longest
}

// endedLead is that of a ticket which ended without an effect that people allowed.
func endedLead(l *Lead, f CardFacts) {
	t := f.Ticket
	l.Step = notDone(f)
	nothing := "it ended: nothing was done"
	switch t.State {
	case Denied:
		l.Why = whoSaid(t, false, f)
		l.Until = fmt.Sprintf("it ended at %s: nothing is done, and the action is held until the episode ends", Moment(t.AnsweredAt, f.Now))
	case Expired:
		l.Why = "expired: nobody answered in time, which is no denial"
		l.Until = fmt.Sprintf("it ended at %s: nothing was done, it is not asked again in this episode, and the on-call is paged", Moment(t.Expires, f.Now))
	case Withdrawn:
		l.Why, l.Until = "withdrawn before an answer: "+reasonWords(t.Reason), nothing
	default:
		l.Why, l.Until = "void: "+reasonWords(t.Reason), nothing
		if t.Reason != "recovered" && t.Reason != "document-removed" {
			l.Until += ", and the on-call is paged"
		}
	}
	if !f.Course.SentAt.IsZero() {
		// It cannot be, but if the record says so then so does the card.
		l.Step = sentStep(f)
		l.Until = "it was sent at " + Moment(f.Course.SentAt, f.Now) + " all the same"
	} else if v := f.Course.VoidReason; v != "" {
		l.Until += "; its claim ended unsent: " + reasonWords(v)
	}
	l.Do = look("nothing can be answered here any more", f)
	if t.State == Expired {
		l.Do = look("nothing can be answered here any more: act by hand if it is needed", f)
	}
}

func notDone(f CardFacts) string {
	return "not done: " + step(f)
}

func look(what string, f CardFacts) string {
	return what + "; setpoint explain " + Argument(f.Ticket.Service) + " tells more"
}

// whoSaid names those who approved, or who denied, and the last reason given.
func whoSaid(t Ticket, approve bool, f CardFacts) string {
	var by []string
	said := ""
	for _, a := range t.Answers {
		if a.Approve == approve && !slices.Contains(by, a.By) {
			by = append(by, a.By)
			said = a.Reason
		}
	}
	s := word(approve) + " by " + orWord(strings.Join(by, ", "), "nobody on record")
	if !t.AnsweredAt.IsZero() {
		s += " at " + Moment(t.AnsweredAt, f.Now)
	}
	if q := Quote(said, maxReason); q != "" {
		s += ": " + q
	}
	return s
}

// maxReason is how much of somebody's reason stands on a card, in characters.
const maxReason = 200

// reasonWords say the code for which a ticket ended to somebody who does not know
// the codes.
func reasonWords(code string) string {
	words := map[string]string{
		"":                 "no reason is recorded",
		"recovered":        "the service met its SLO again",
		"storm":            "nobody could approve it during a storm",
		"too-late":         "what held it did not pass in time (too-late)",
		"mode":             "the service may not act any more (mode)",
		"unknown-action":   "the documents have no such action any more (unknown-action)",
		"digest-changed":   "the documents changed, so it would be something else (digest-changed)",
		"document-removed": "the service's document was removed (document-removed)",
		"denied":           "somebody denied it before it was sent",
		"permit-expired":   "it could not be sent in time (permit-expired)",
		"needs-changed":    "policy asks for other approvers now (needs-changed)",
	}
	return OneLine(orWord(words[code], code), maxReason)
}
