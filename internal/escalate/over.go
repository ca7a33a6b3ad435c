package escalate

import (
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// The end reasons of a page.
const (
	endRecovered = "recovered"
	endRemoved   = "document-removed"
)

// isOver begins the line of a page that ended in which an open one says until when.
const isOver = "until: it is over"

// Over is a page that ended as people are told of it: since when it is over and
// why, what was done and what was measured after it, and that nothing is left to
// do. The words of the open page would send somebody to a thing that has passed. An
// open page, and a sign of life, is itself.
func (p Page) Over() Page {
	if p.EndedAt.IsZero() || p.Reason == Heartbeat || strings.HasPrefix(p.Lead.Until, isOver) {
		return p
	}
	was := p.Lead
	p.Lead = approve.Lead{
		Broken: approve.OneLine(p.overSince(was), approve.MaxLine),
		Step:   approve.OneLine(p.overStep(was), approve.MaxLine),
		Why:    approve.OneLine("why: it ended because "+p.ending()+wasOpenFor(was), approve.MaxLine),
		Until:  approve.OneLine(isOver+"; should it come again, it is a new page"+p.takenBy(), approve.MaxLine),
		Do:     "do: nothing",
	}
	if p.Service != "" {
		p.Lead.Do += "; setpoint explain " + approve.Argument(p.Service) + " tells what happened"
	}
	p.Summary = execute.CleanText("over: "+strings.TrimPrefix(p.Lead.Broken, "over: "), maxSummary)
	p.Text = p.overText()
	return p
}

// ofEpisode reports whether the page is that of a miss, and not of one effect.
func (p Page) ofEpisode() bool {
	return p.Service != "" && p.Reason != InDoubt && p.Reason != UndoHeld || p.Episode != "" && p.ID == p.Episode
}

func (p Page) overSince(was approve.Lead) string {
	lasted := ""
	if d := p.EndedAt.Sub(p.Since); d > 0 && !p.Since.IsZero() {
		lasted = " after " + approve.Age(d)
	}
	at := approve.Moment(p.EndedAt, p.EndedAt)
	if p.ofEpisode() && p.EndReason == endRecovered {
		met := ""
		if since := p.metSince(was); since != "" {
			met = " since " + since
		}
		return p.Service + " meets its SLO again" + met + "; the page ended at " + at + lasted
	}
	subject, _, _ := strings.Cut(was.Broken, ", since ")
	if subject == "" {
		subject = p.Summary
	}
	return "over: " + subject + "; ended at " + at + lasted
}

// metSince is since when the service is met, as its page last said.
func (p Page) metSince(was approve.Lead) string {
	_, after, ok := strings.Cut(was.Why, "met again since ")
	if p.Now != Recovering || !ok {
		return ""
	}
	since, _, _ := strings.Cut(after, ";")
	return since
}

// ending says the reason of the end in words.
func (p Page) ending() string {
	switch {
	case p.EndReason == endRemoved:
		return "its documents were removed, so it is not looked after any more"
	case strings.HasPrefix(p.EndReason, "ended-by-"):
		return strings.TrimPrefix(p.EndReason, "ended-by-") + " ended it"
	case p.EndReason != endRecovered:
		return orWord(p.EndReason, "nothing asks for it any more")
	case p.ofEpisode():
		return "it was met for long enough, by measurement"
	case p.Reason == InDoubt:
		return "it is known what happened"
	case p.Service != "":
		return "nothing is left to be taken back"
	}
	return fleetWords(p.Reason).until
}

// wasOpenFor is what the open page said last, unless that was its recovery.
func wasOpenFor(was approve.Lead) string {
	why := strings.TrimPrefix(was.Why, "why: ")
	if why == "" || strings.HasPrefix(why, "met again since ") {
		return ""
	}
	return "; it was open because of this: " + why
}

// overStep is what was done and what was measured after it.
func (p Page) overStep(was approve.Lead) string {
	if strings.HasPrefix(was.Step, "did: ") {
		return was.Step
	}
	if tried := sectionOf(p.Text, headTried); len(tried) > 0 {
		return "did: " + tried[len(tried)-1]
	}
	switch {
	case strings.HasPrefix(was.Step, "not done: "):
		return was.Step
	case p.Service == "":
		return "nothing is held up by it any more"
	}
	return "nothing was tried in this episode"
}

// takenBy is who had it in hand.
func (p Page) takenBy() string {
	if p.AckedBy == "" {
		return ""
	}
	return "; acknowledged by " + p.AckedBy
}

// overText keeps of the sections what is of the past.
func (p Page) overText() string {
	var b writer
	for _, line := range p.Lead.Lines() {
		b.WriteString(line + "\n")
	}
	for _, head := range []string{headTried, headChanged} {
		lines := sectionOf(p.Text, head)
		if len(lines) == 1 && p.Lead.Step == "did: "+lines[0] {
			continue
		}
		b.section(head, lines...)
	}
	return strings.TrimRight(b.String(), "\n")
}

// The headings of what stays true of a page that is over.
const (
	headTried   = "Tried"
	headChanged = "Changed lately"
)

// sectionOf are the lines below a heading of a page's text.
func sectionOf(text, heading string) []string {
	var lines []string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		rest, indented := strings.CutPrefix(line, "  ")
		switch {
		case !indented:
			in = line == heading
		case in:
			lines = append(lines, rest)
		}
	}
	return lines
}

// For is an open page as one of its receivers is sent it: who was told before and
// in vain, which is why this one is woken, and who is next after it. now is when it
// is sent.
func (p Page) For(receiver string, held []Delivery, rules []Rule, now time.Time) Page {
	if p.Reason == Heartbeat || !p.EndedAt.IsZero() || p.AckedBy != "" || p.Lead == (approve.Lead{}) || strings.HasPrefix(p.Lead.Until, isOver) {
		return p
	}
	o := newOutbox(p, held, rules, now)
	next := o.turnAfter(receiver)
	l := p.Lead
	l.Until = approve.OneLine(withoutChain(l.Until)+orWord(nextWords(next, now), "; nobody is next"), approve.MaxLine)
	if why := o.wokenFor(receiver); why != "" {
		l.Why = approve.OneLine("why: you are told because "+why+"; "+strings.TrimPrefix(l.Why, "why: "), approve.MaxLine)
	}
	return p.with(l)
}

// with is the page with another lead, with which its text begins too.
func (p Page) with(l approve.Lead) Page {
	was := joined(p.Lead)
	if rest, ok := strings.CutPrefix(p.Text, was); ok {
		p.Text = joined(l) + rest
	}
	p.Lead = l
	return p
}

func joined(l approve.Lead) string {
	lines := l.Lines()
	return strings.Join(lines[:], "\n")
}
