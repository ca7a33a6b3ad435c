package web

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// The forms in which a reason carries what a person at night reads over: the
// date of tonight, seconds of a long time, the key of a window.
var (
	longTime  = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)
	zeroTail  = regexp.MustCompile(`([0-9]m)0s\b`)
	zeroTail2 = regexp.MustCompile(`([0-9]h)0m\b`)
	lastKey   = regexp.MustCompile(`, last by \S+`)
	wroteKey  = regexp.MustCompile(`what \S+:\d+-\d+ wrote`)
)

// brief is the text of a reason without what only a log needs.
func brief(text string, now time.Time) string {
	text = longTime.ReplaceAllStringFunc(text, func(s string) string {
		at, err := time.Parse("2006-01-02 15:04:05Z", s)
		if err != nil {
			return s
		}
		return stamp(at, now)
	})
	text = zeroTail2.ReplaceAllString(zeroTail.ReplaceAllString(text, "$1"), "$1")
	return wroteKey.ReplaceAllString(lastKey.ReplaceAllString(text, ""), "what we wrote")
}

// reason is the first reason in words. What a budget refuses stands in the line
// of the balance.
func (t teller) reason() string {
	d, ok := t.first()
	if !ok {
		return "no reason is known"
	}
	switch d.Code {
	case gate.ReasonBudgetSpent:
		return "what is left of its budget does not pay for one more by itself"
	case gate.ReasonMode:
		return "mode " + t.svc.Remediation.Mode.String()
	case gate.ReasonMaxMode:
		return "limits.maxMode " + t.v.MaxMode.String()
	case gate.ReasonLedgerCeiling:
		return "demoted: " + t.v.named(t.svc.Name, t.action(), []Detail{d})[0].Text
	case gate.ReasonUnanswered:
		text, _, _ := strings.Cut(d.Text, ": ") // What to do stands in the line of the person.
		return text
	case gate.ReasonFight:
		text, _, _ := strings.Cut(strings.Replace(d.Text, ", and it would be made again", "", 1), ";")
		return brief(text, t.v.Now)
	case gate.ReasonRepeat:
		// The times are in the history.
		if before, _, found := strings.Cut(d.Text, ", at "); found {
			return before + ", and it is needed again: the cause is not mended by it"
		}
	}
	text := d.Text
	if strings.HasPrefix(d.Code, gate.PolicyPrefix) {
		text, _, _ = strings.Cut(text, "; ") // Its remedy is what a person can do.
	}
	return brief(text, t.v.Now)
}

// recall takes what was decided in a window that is spent for what is decided
// now: why its proposal was refused says more than that it was.
func (t *teller) recall() {
	first, _ := t.first()
	if t.e.Plan.Decision != nil || first.Code != step.ReasonWindowSpent || first.Until == nil {
		return
	}
	t.spent = *first.Until
	if d := t.v.State.Decisions[t.known.Decision]; d != nil && string(d.Key) == t.e.Plan.Key && d.Decision.Verdict == gate.Deny {
		t.e.Plan.Decision, t.e.Plan.Proposal = verdictOf(d.Decision), proposalOf(d.Proposal)
	}
}

// nothing begins a sentence that says why nothing is done, and until when at
// least.
func (t teller) nothing() string {
	if t.spent.IsZero() {
		return "nothing"
	}
	return "nothing before " + stamp(t.spent, t.v.Now)
}

// byHand is the action as a person would do it.
func (t teller) byHand() string {
	p := t.e.Plan.Proposal
	if p == nil {
		return ""
	}
	a, ok := t.svc.Action(p.Action)
	if !ok {
		return ""
	}
	where := a.Target.URL
	if len(a.Target.Argv) > 0 {
		where = a.Target.Argv[0]
	}
	return fmt.Sprintf("%s by hand (%s), if you agree", callText(p.Action, p.Parameters), where)
}

// unknowns are the reasons for knowing nothing, in words.
var unknowns = map[compare.Reason]string{
	measure.NoData: "there is no data", measure.NotMeasured: "nothing was measured yet", measure.SourceError: "the source does not answer",
	measure.SourceRefused: "the source refuses the query", measure.QueryError: "the query is wrong", measure.ClockSkew: "the clocks differ",
	measure.Partial: "the answer is not whole", measure.SeveralSeries: "the query gives several series",
	compare.Stale: "the newest sample is too old", compare.LowTraffic: "there is too little traffic to tell", compare.TrafficLost: "the traffic is gone",
	compare.Conflicting: "the places that measure it disagree", compare.PartlyUnknown: "another objective is unknown", notObserved: "no pass has seen it yet",
}

func unknownText(o Objective, reason string) string {
	r := compare.Reason(o.Reason)
	if r == "" {
		r = compare.Reason(reason)
	}
	text, ok := unknowns[r]
	if !ok {
		text = strings.ReplaceAll(string(r), "-", " ")
	}
	text = o.Name + ": " + text
	if o.UnknownFrom != "" {
		text += " (" + o.UnknownFrom + ")"
	}
	if o.Detail != "" {
		text += ": " + o.Detail
	}
	return text
}
