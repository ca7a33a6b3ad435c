package demo

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// row is one pass of one service in one line: measured, step, verdict, effect,
// and measured again.
type row struct {
	service, state, errors, reason string
	step, verdict, effect, outcome string
}

// news reports whether a row says something that the one before did not. A
// ratio that moves is no news, there is one each second; nor is it that an
// action which was executed is being settled from then on.
func (r row) news(last row) bool {
	r.errors, last.errors = "", ""
	r.step, last.step = strings.TrimPrefix(r.step, settling), strings.TrimPrefix(last.step, settling)
	r.step, last.step = strings.TrimPrefix(r.step, executing), strings.TrimPrefix(last.step, executing)
	return r != last
}

// The two words of one action.
const (
	executing = "execute "
	settling  = "settle "
)

// The widths of the columns.
const rowForm = "%5s  %-10s  %-8s %7s  %-14s  %-29s  %-8s  %-7s  %s"

// header names the columns.
func header() string {
	return fmt.Sprintf(rowForm, "time", "service", "measured", "errors", "", "step", "verdict", "effect", "measured outcome")
}

func (r row) line(elapsed time.Duration) string {
	return strings.TrimRight(fmt.Sprintf(rowForm, clock(elapsed), r.service, r.state, r.errors, r.reason, r.step,
		dash(r.verdict), dash(r.effect), dash(r.outcome)), " ")
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func dash(word string) string {
	if word == "" {
		return "-"
	}
	return word
}

// scenery is what one row is made from.
type scenery struct {
	service web.Service
	// ratio is the judge window's; nil when it is not known.
	ratio *float64
	// decision and ticket are the newest of the episode; nil without.
	decision *web.Decision
	ticket   *web.Approval
	// judged holds the numbers of the decision's outcome; nil before.
	judged *web.Judgement
	// seen: the effect of this decision was shown already.
	seen bool
	// over: there was an episode, and it has ended.
	over bool
}

// sceneryOf picks a service's part of a snapshot. An episode that is over keeps
// its decision, so that the last line tells the outcome.
func sceneryOf(s snapshot, svc web.Service, episode string) scenery {
	out := scenery{service: svc}
	for _, o := range s.objectives {
		if o.Service == svc.Service && o.State != string(compare.Unknown) {
			out.ratio = o.JudgeErrorRatio
		}
	}
	if episode == "" {
		return out
	}
	for i, d := range s.decisions {
		if d.Service == svc.Service && d.Episode == episode {
			out.decision = &s.decisions[i]
		}
	}
	for i, t := range s.approvals {
		if t.Service == svc.Service && t.Episode == episode {
			out.ticket = &s.approvals[i]
		}
	}
	return out
}

func (s scenery) row() row {
	r := row{service: s.service.Service, state: s.service.State, reason: s.service.Reason, step: s.step()}
	switch {
	case r.state != string(compare.Met):
	case s.service.Episode != "":
		r.reason = "holding"
	case s.over:
		r.reason = "held"
	}
	if s.ratio != nil {
		r.errors = percent(*s.ratio)
	}
	if d := s.decision; d != nil {
		r.verdict = d.Verdict
		r.effect, r.outcome = word(d.Effect, string(execute.None)), word(d.Outcome, string(compare.OutcomeNone))
		if s.judged != nil {
			r.outcome += fmt.Sprintf(": %s, then %s", percent(s.judged.Before), percent(s.judged.After))
		}
	}
	return r
}

func word(w, none string) string {
	if w == none {
		return ""
	}
	return w
}

// step says what is done now. A decision that was executed is settled by
// measurement from then on.
func (s scenery) step() string {
	d := s.decision
	switch {
	case d == nil, final(d.Outcome):
		return s.byState()
	case d.Effect == string(execute.None) && s.ticket != nil && s.ticket.Decision == d.ID && s.ticket.State == "open":
		return "ask " + what(*d)
	case d.Effect == string(execute.None):
		return d.Step + " " + what(*d)
	case s.seen:
		return settling + what(*d)
	}
	return executing + what(*d)
}

func (s scenery) byState() string {
	switch {
	case s.service.State == string(compare.Met):
		return "idle"
	case s.service.State == string(compare.Breached) && s.service.Reason == string(compare.Burning):
		return "propose"
	}
	return "hold"
}

// what is an action with its parameters, in order of their names.
func what(d web.Decision) string { return d.Action + parameters(d.Parameters) }

func parameters(ps propose.Parameters) string {
	names := make([]string, 0, len(ps))
	for name := range ps {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, " %s=%v", name, ps[name])
	}
	return b.String()
}

// tracker remembers what was shown.
type tracker struct {
	episode map[string]string
	last    map[string]row
	shown   map[string]bool
}

func newTracker() *tracker {
	return &tracker{episode: map[string]string{}, last: map[string]row{}, shown: map[string]bool{}}
}

// lookup gives the numbers of a decided outcome; nil when they are not known.
type lookup func(decision string) *web.Judgement

// next gives the rows of a snapshot that say something new, in the order of
// the plot.
func (t *tracker) next(s snapshot, judged lookup) []row {
	var out []row
	for _, sc := range plot {
		i := slices.IndexFunc(s.services, func(svc web.Service) bool { return svc.Service == sc.service })
		if i < 0 || s.services[i].LastObserved == nil {
			continue // No pass has looked at it yet.
		}
		svc := s.services[i]
		if svc.Episode != "" {
			t.episode[svc.Service] = svc.Episode
		}
		episode := t.episode[svc.Service]
		at := sceneryOf(s, svc, episode)
		at.over = svc.Episode == "" && episode != ""
		out = append(out, t.settled(s, at, judged)...)
		out = append(out, t.row(at, judged)...)
	}
	return out
}

// settled are the earlier decisions of the episode whose outcome was not shown
// yet: the pass that judged one has decided about the next already.
func (t *tracker) settled(s snapshot, at scenery, judged lookup) []row {
	if at.decision == nil {
		return nil
	}
	var out []row
	for i, d := range s.decisions {
		if d.Service != at.decision.Service || d.Episode != at.decision.Episode || d.ID == at.decision.ID ||
			!final(d.Outcome) || t.shown[d.ID+d.Outcome] {
			continue
		}
		t.shown[d.ID+d.Outcome] = true
		then := at
		then.decision, then.ticket, then.judged = &s.decisions[i], nil, judged(d.ID)
		r := then.row()
		r.step = settling + what(d)
		out = append(out, r)
	}
	return out
}

func (t *tracker) row(at scenery, judged lookup) []row {
	d := at.decision
	if d != nil {
		at.seen = t.shown[d.ID+d.Effect]
		if final(d.Outcome) {
			at.judged = judged(d.ID)
		}
	}
	r := at.row()
	if !r.news(t.last[r.service]) {
		return nil
	}
	t.last[r.service] = r
	if d != nil {
		t.shown[d.ID+d.Effect] = true
		t.shown[d.ID+d.Outcome] = true
	}
	return []row{r}
}

// final reports whether measurement has decided.
func final(outcome string) bool {
	return outcome != string(compare.OutcomeNone) && outcome != string(compare.OutcomePending)
}
