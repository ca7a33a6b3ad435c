package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Line is one of the five answers that an explanation begins with.
type Line struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

// The topics of a headline, in its order: what is broken and since when, what
// was tried and what came of it, what Setpoint does next or why it does not,
// what a person can do, and what is left of the autonomy budget.
const (
	TopicState   = "state"
	TopicTried   = "tried"
	TopicNext    = "next"
	TopicYou     = "you"
	TopicBalance = "balance"
)

// HeadlineWidth is the most columns that a line of a headline has, its topic
// and TopicWidth included: it is read on a phone's terminal at night.
const (
	HeadlineWidth = 160
	TopicWidth    = 9
)

// teller knows what the five lines are told from.
type teller struct {
	v     View
	e     Explanation
	svc   spec.Service
	known ledger.Service
	// spent is until when the window is: its one proposal was refused.
	spent time.Time
}

// headline answers what whoever is woken asks, in their order.
func headline(v View, e Explanation) []Line {
	svc, _ := v.Set.Service(e.Plan.Service)
	known, _ := v.State.Service(e.Plan.Service)
	t := teller{v: v, e: e, svc: svc, known: known}
	t.recall()
	guess := t.guessed()
	out := []Line{
		{TopicState, t.state()}, {TopicTried, t.tried()}, {TopicNext, t.next() + guess}, {TopicYou, t.you()}, {TopicBalance, t.balance()},
	}
	for i := range out {
		out[i].Text = fit(out[i].Text, HeadlineWidth-TopicWidth)
	}
	return out
}

// fit cuts what is longer than a line; what a person types is never so long.
func fit(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// state says what is broken, by how much and since when.
func (t teller) state() string {
	p := t.e.Plan
	o, others := t.worst()
	switch compare.State(p.State) {
	case compare.Met:
		return t.met(o)
	case compare.Breached:
		word := "missed"
		if compare.Reason(p.Reason) == compare.Recovering {
			word = "missed, and recovering"
		}
		return fmt.Sprintf("%s %s: %s%s", word, t.since(compare.Breached), t.numbers(o), others)
	}
	return fmt.Sprintf("unknown %s: %s%s", t.since(compare.Unknown), unknownText(o, p.Reason), others)
}

func (t teller) met(o Objective) string {
	if t.known.Episode != "" && t.known.State == compare.Met {
		return fmt.Sprintf("met again %s, and over after %s of it: %s; the episode began %s",
			t.since(compare.Met), duration(t.svc.Remediation.HoldFor), t.numbers(o), stamp(t.known.EpisodeSince, t.v.Now))
	}
	return fmt.Sprintf("met %s: %s", t.since(compare.Met), t.numbers(o))
}

// since is from when the service is in a state, if the ledger has that already.
func (t teller) since(s compare.State) string {
	if t.known.State != s || t.known.Since.IsZero() {
		return "by what was measured just now"
	}
	return fmt.Sprintf("since %s (%s)", stamp(t.known.Since, t.v.Now), span(t.v.Now.Sub(t.known.Since)))
}

// worst is the objective that made the state, the farthest from its target
// first, and how many others are no better.
func (t teller) worst() (worst Objective, others string) {
	var of []Objective
	for _, o := range t.e.Plan.Objectives {
		if o.State == t.e.Plan.State {
			of = append(of, o)
		}
	}
	if len(of) == 0 {
		of = t.e.Plan.Objectives
	}
	if len(of) == 0 {
		return Objective{Name: "no objective"}, ""
	}
	slices.SortStableFunc(of, func(a, b Objective) int { return cmp.Compare(excess(b), excess(a)) })
	if n := len(of) - 1; n > 0 && t.e.Plan.State != string(compare.Met) {
		others = fmt.Sprintf("; and %d more", n)
	}
	return of[0], others
}

// excess is how many times the allowed errors there are.
func excess(o Objective) float64 {
	if o.JudgeErrorRatio == nil || o.Target >= 1 {
		return 0
	}
	return *o.JudgeErrorRatio / (1 - o.Target)
}

// numbers are what was measured beside what was promised.
func (t teller) numbers(o Objective) string {
	if o.JudgeErrorRatio == nil {
		return fmt.Sprintf("%s has no reading, target %s", o.Name, percent(o.Target))
	}
	window := spec.DefaultJudgeWindow
	for _, d := range t.svc.Objectives {
		if d.ID == o.Name && d.JudgeWindow > 0 {
			window = d.JudgeWindow
		}
	}
	text := fmt.Sprintf("%s %s errors in %s, target %s allows %s", o.Name, percent(*o.JudgeErrorRatio), duration(window), percent(o.Target), percent(1-o.Target))
	if o.Groups > 0 && o.GroupsBreached != nil && *o.GroupsBreached > 0 {
		text += fmt.Sprintf(" (worst %s, %d of %d groups)", o.Group, *o.GroupsBreached, o.Groups)
	}
	return text
}

// tried says what was done in this episode and what measurement said of it.
func (t teller) tried() string {
	now, last := t.sent()
	switch {
	case len(now) == 1:
		return t.effect(now[0])
	case len(now) > 1:
		return fmt.Sprintf("%s; before it %s", t.effect(now[0]), t.rest(now[1:]))
	}
	if text := t.answered(); text != "" {
		return "nothing in this episode: " + text
	}
	none := "nothing in this episode"
	switch {
	case t.known.Episode == "" && t.e.Plan.State == string(compare.Met):
		none = "nothing, it is met"
	case t.known.Episode == "":
		none = "nothing yet"
	}
	if last != nil {
		return fmt.Sprintf("%s; the last step was %s", none, t.effect(last))
	}
	return none + "; nothing was ever tried before"
}

// sent are the effects of this episode, newest first, and the last one of an
// earlier time.
func (t teller) sent() (now []*ledger.Effect, last *ledger.Effect) {
	for _, key := range slices.Backward(t.known.Effects) {
		e := t.v.State.Effects[key]
		switch {
		case e == nil || e.Effect == execute.Void || e.Effect == execute.Claimed:
		case t.known.Episode != "" && e.Claim.Episode == t.known.Episode:
			now = append(now, e)
		case last == nil:
			last = e
		}
	}
	return now, last
}

// rest counts earlier effects by what came of them.
func (t teller) rest(es []*ledger.Effect) string {
	if len(es) == 1 {
		return fmt.Sprintf("%s at %s: %s", callText(es[0].Claim.Action.Name, es[0].Claim.Parameters), stamp(later(es[0].SentAt(), es[0].ClaimedAt), t.v.Now), outcomeOf(es[0]))
	}
	of := map[string]int{}
	for _, e := range es {
		of[outcomeOf(e)]++
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[word], word))
	}
	return fmt.Sprintf("%d more (%s)", len(es), strings.Join(parts, ", "))
}

// answered says what people were asked in this episode and what they said.
func (t teller) answered() string {
	if k, ok := t.v.State.OpenTicket(t.svc.Name); ok {
		if k.State == approve.Approved {
			return fmt.Sprintf("%s approved %s (%s) at %s", k.Answers[len(k.Answers)-1].By, actionText(k.Proposal), k.ID, stamp(k.AnsweredAt, t.v.Now))
		}
		return fmt.Sprintf("people were asked about %s (%s) at %s", actionText(k.Proposal), k.ID, stamp(k.Asked, t.v.Now))
	}
	refused := t.v.State.Refused(t.svc.Name, t.known.Episode)
	if t.known.Episode == "" || len(refused) == 0 {
		return ""
	}
	k := refused[len(refused)-1]
	for _, a := range k.Answers {
		if k.State == approve.Denied && !a.Approve {
			return fmt.Sprintf("%s denied %s (%s) at %s%s", a.By, actionText(k.Proposal), k.ID, stamp(a.At, t.v.Now), because(a.Reason))
		}
	}
	return fmt.Sprintf("nobody answered %s (%s) in time", actionText(k.Proposal), k.ID)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// effect is one step and its measured outcome.
func (t teller) effect(e *ledger.Effect) string {
	what := fmt.Sprintf("%s at %s", callText(e.Claim.Action.Name, e.Claim.Parameters), stamp(later(e.SentAt(), e.ClaimedAt), t.v.Now))
	if e.Claim.Undo {
		what = "undo by " + what
	}
	switch {
	case e.Judgement != nil && e.Outcome == compare.OutcomeUnknown:
		return what + ": its outcome is unknown, nothing was measured"
	case e.Judgement != nil:
		text := fmt.Sprintf("%s: %s (errors %s before, %s after)", what, e.Outcome, percent(e.Judgement.Before), percent(e.Judgement.After))
		if e.Judgement.Recovering {
			text += ", and it was recovering by itself"
		}
		return text
	}
	return what + ": " + effectWords[e.Effect]
}

// effectWords are the effects as people say them.
var effectWords = map[execute.Effect]string{
	execute.Started: "sent, and no answer yet", execute.Applied: "done, and not judged yet", execute.AppliedWithError: "done with an error, and not judged yet",
	execute.Landed: "found to have landed, and not judged yet", execute.InDoubt: "sent, and nobody knows whether it acted",
	execute.Unknown: "sent, and nobody could find out whether it acted", execute.NotLanded: "sent, and found not to have landed",
	execute.NoOp: "there was nothing to do for it", execute.Failed: "it failed, and nothing was done", execute.NotNow: "the actuator said not now, and did nothing",
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func actionText(p propose.Proposal) string {
	if p.Undo {
		return "undo by " + callText(actionWord(p), p.Parameters)
	}
	return callText(actionWord(p), p.Parameters)
}

// callText is an action as a person would type it.
func callText(action string, p propose.Parameters) string {
	parts := []string{action}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, p[name]))
	}
	return strings.Join(parts, " ")
}

// balance is what is left for the action that this is about.
func (t teller) balance() string {
	a, ok := t.svc.Action(t.action())
	if !ok {
		return t.fleetBalance()
	}
	suspended := ""
	if t.v.State.Suspended(t.svc.Name, a.Name, t.v.Now) != "" {
		suspended = a.Name + " is suspended; "
	}
	if on, _ := t.v.State.InFlight(t.svc.Name, ""); on != nil {
		// What is charged until the outcome is no verdict on it.
		return sums{now: t.v.Now, most: 1}.left(balanceOf(t.v, t.svc, a.Name), a.Name)
	}
	if p := t.e.Plan.Proposal; p != nil && p.Undo {
		return sums{now: t.v.Now, most: 1}.left(balanceOf(t.v, t.svc, a.Name), a.Name) + "; an undo needs none of it"
	}
	text := ""
	for most := mostCharges; most > 0; most-- {
		text = suspended + sums{now: t.v.Now, most: most}.arithmetic(t.v, t.svc, a)
		if utf8.RuneCountInString(text) <= HeadlineWidth-TopicWidth {
			break
		}
	}
	return text
}

func (t teller) fleetBalance() string {
	b := globalBalance(t.v)
	return fmt.Sprintf("no action is declared, so nothing is paid for here; %s of %s left for the whole fleet", figure(b.Remaining), figure(b.Capacity))
}

// action is the one that is in question: proposed, asked for, under way, tried
// last; otherwise the one with least left.
func (t teller) action() string {
	if p := t.e.Plan.Proposal; p != nil {
		if _, ok := t.svc.Action(p.Action); ok {
			return p.Action
		}
	}
	if k, ok := t.v.State.OpenTicket(t.svc.Name); ok {
		return k.Proposal.Action
	}
	if now, _ := t.sent(); len(now) > 0 {
		return now[0].Claim.Action.Name
	}
	least, left := "", 0.0
	for _, a := range t.svc.Remediation.Actions {
		if b := balanceOf(t.v, t.svc, a.Name); least == "" || share(b) < left {
			least, left = a.Name, share(b)
		}
	}
	return least
}

func share(b budget.Balance) float64 {
	if b.Capacity <= 0 {
		return 0
	}
	return b.Remaining / b.Capacity
}

// percent is a ratio as people say it.
func percent(r float64) string { return fmt.Sprintf("%.4g%%", r*100) }

// stamp is a time of this night without its date, and any other with it.
func stamp(at, now time.Time) string {
	const night = 18 * time.Hour
	if d := now.Sub(at); d < night && d > -night {
		return at.UTC().Format("15:04Z")
	}
	return minute(at)
}

// span is a length of time in one unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
