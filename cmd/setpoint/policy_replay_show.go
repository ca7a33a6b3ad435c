package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// replayed is a replay that has ended.
type replayed struct {
	ledger, bundle, revision string
	options                  replay.Options
	report                   *replay.Report
}

// policyReplay is the answer of `policy replay -o json`.
type policyReplay struct {
	web.Meta
	Ledger string `json:"ledger"`
	// Bundle is the folder that was judged by, Revision its digest.
	Bundle   string     `json:"bundle"`
	Revision string     `json:"revision"`
	Since    time.Time  `json:"since"`
	Until    *time.Time `json:"until"`
	Service  string     `json:"service"`
	// Items are what changes; with --all also what comes out alike.
	Items         []replayItem  `json:"items"`
	NotReproduced []replayFault `json:"notReproduced"`
	NotReplayable []replaySkip  `json:"notReplayable"`
	Summary       replaySummary `json:"summary"`
}

// replayItem is decisions of one action that change alike.
type replayItem struct {
	Service string `json:"service"`
	Action  string `json:"action"`
	// Change is loosened, tightened, other-people, changed, hidden or
	// other-reasons.
	Change   string       `json:"change"`
	Old      replayStand  `json:"old"`
	New      replayStand  `json:"new"`
	Appeared []replayRule `json:"appeared"`
	Gone     []replayRule `json:"gone"`
	Count    int          `json:"count"`
	// First and Last are ids of decisions, with their times.
	First     string    `json:"first"`
	FirstTime time.Time `json:"firstTime"`
	Last      string    `json:"last"`
	LastTime  time.Time `json:"lastTime"`
}

type replayStand struct {
	Verdict gate.Verdict `json:"verdict"`
	Hold    bool         `json:"hold"`
	// Lasting is the verdict once what holds has passed.
	Lasting gate.Verdict `json:"lasting"`
	Needs   []web.Need   `json:"needs"`
	Fault   string       `json:"fault"`
}

type replayRule struct {
	// Set is the verdict in whose set the rule is.
	Set    gate.Verdict `json:"set"`
	Reason string       `json:"reason"`
	Title  string       `json:"title"`
	File   string       `json:"file"`
	Line   int          `json:"line"`
}

type replayFault struct {
	Decision string    `json:"decision"`
	Entry    uint64    `json:"entry"`
	Time     time.Time `json:"time"`
	Service  string    `json:"service"`
	Why      string    `json:"why"`
}

type replaySkip struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
	First string `json:"first"`
	Last  string `json:"last"`
}

type replaySummary struct {
	Decisions     int `json:"decisions"`
	Reproduced    int `json:"reproduced"`
	NotReproduced int `json:"notReproduced"`
	NotReplayable int `json:"notReplayable"`
	Changed       int `json:"changed"`
	Loosened      int `json:"loosened"`
	Tightened     int `json:"tightened"`
	OtherReasons  int `json:"otherReasons"`
	Hidden        int `json:"hidden"`
}

func (a *app) showReplay(r replayed, f replayFlags) error {
	items := r.report.Items(f.all)
	if f.output != formatTable {
		return emit(a.out, f.output, r.answer(items))
	}
	t := &table{header: []string{"SERVICE", "ACTION", "WAS", "BECOMES", "CHANGE", "POLICY", "COUNT", "FIRST", "LAST"}}
	legend := map[string]string{}
	for _, i := range items {
		var rules []string
		for _, s := range i.Appeared {
			rules = append(rules, explained(legend, "+", r.bundle, s))
		}
		for _, s := range i.Gone {
			rules = append(rules, explained(legend, "-", "", s))
		}
		t.add(i.Service, i.Action, standText(i.Old, i), standText(i.New, i), changeWord(i.Difference),
			strings.Join(rules, ", "), fmt.Sprint(i.Count), i.First, i.Last)
	}
	if len(items) > 0 {
		if err := t.write(a.out, a.colour); err != nil {
			return err
		}
	}
	var b strings.Builder
	for _, rule := range slices.Sorted(maps.Keys(legend)) {
		fmt.Fprintf(&b, "%s: %s\n", rule, strings.Map(printable, legend[rule]))
	}
	for _, s := range r.report.Skips() {
		fmt.Fprintf(&b, "not replayable: %d, %s (%s … %s)\n", s.Count, s.Why, s.First, s.Last)
	}
	b.WriteString(summaryText(r.report.Summary, f.all))
	return a.print("%s", b.String())
}

// explained is a rule as the table shows it; what it says stands below, once.
func explained(legend map[string]string, sign, bundle string, s gate.Said) string {
	name := sign + s.Set.String() + " " + s.Rule.Reason
	where := " in the recorded policy"
	if sign == "+" {
		where = ""
	}
	legend[name] = fmt.Sprintf("%s (%s:%d%s)", s.Rule.Title, path.Join(bundle, s.Rule.File), s.Rule.Line, where)
	return name
}

// changeWord is the direction of a change, or why it is none.
func changeWord(d gate.Difference) string {
	switch {
	case d.Loosened && d.Tightened:
		return "other-people"
	case d.Loosened:
		return "loosened"
	case d.Tightened:
		return "tightened"
	case d.Binding():
		return "changed"
	case d.Hidden:
		return "hidden"
	}
	return "other-reasons"
}

// standText is one of the two decisions of an item, in a cell. Where both ask
// people it says whom, and for how long where that differs.
func standText(s replay.Stand, i replay.Item) string {
	text := s.Verdict.String()
	switch {
	case s.Fault != "":
		return "hold (fault: " + s.Fault + ")"
	case s.Hold && s.Lasting >= gate.Approval:
		text = "hold, then " + s.Lasting.String()
	case s.Hold:
		text = "hold"
	}
	if i.Difference.Needs {
		text += ": " + whoText(s, i)
	}
	return text
}

// whoText is whom a decision asks.
func whoText(s replay.Stand, i replay.Item) string {
	was, is := waits(i.Old), waits(i.New)
	within := len(was) > 0 && len(is) > 0 && !slices.Equal(was, is)
	var who []string
	for _, n := range s.Needs {
		one := fmt.Sprintf("%d of %s", n.Quorum, strings.Join(n.Approvers, " "))
		if within {
			one += " within " + spec.FormatDuration(n.Expires)
		}
		if !slices.Contains(who, one) {
			who = append(who, one)
		}
	}
	if len(who) == 0 {
		return "given" // Of the ticket, and no rule asks for another.
	}
	return strings.Join(who, " and ")
}

// waits are how long tickets wait, each once.
func waits(s replay.Stand) []time.Duration {
	var out []time.Duration
	for _, n := range s.Needs {
		out = append(out, n.Expires)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func summaryText(s replay.Summary, all bool) string {
	text := fmt.Sprintf("%s: %d reproduced, %d not, %d not replayable\n", count(s.Decisions, "decision"), s.Reproduced, s.NotReproduced, s.NotReplayable)
	text += fmt.Sprintf("%d of %d change: %d loosened, %d tightened", s.Changed, s.Reproduced, s.Loosened, s.Tightened)
	if s.Hidden > 0 {
		text += fmt.Sprintf("; %s, hidden by floors", count(s.Hidden, "ruling")+plural(s.Hidden, " differs", " differ"))
	}
	if s.OtherReasons > 0 {
		text += fmt.Sprintf("; %d the same by other reasons", s.OtherReasons)
	}
	if !all && s.Hidden+s.OtherReasons > 0 {
		text += " (--all lists them)"
	}
	return text + "\n"
}

func (r replayed) answer(items []replay.Item) policyReplay {
	o := r.options
	out := policyReplay{
		Meta:   web.Meta{APIVersion: spec.Group, Kind: "PolicyReplay"},
		Ledger: r.ledger, Bundle: r.bundle, Revision: r.revision, Since: o.Since.UTC(), Service: o.Service,
		Items: []replayItem{}, NotReproduced: []replayFault{}, NotReplayable: []replaySkip{},
		Summary: replaySummary(r.report.Summary),
	}
	if !o.Until.IsZero() {
		until := o.Until.UTC()
		out.Until = &until
	}
	for _, i := range items {
		out.Items = append(out.Items, replayItem{
			Service: i.Service, Action: i.Action, Change: changeWord(i.Difference), Old: standOf(i.Old), New: standOf(i.New),
			Appeared: firedRules(i.Appeared, r.bundle), Gone: firedRules(i.Gone, ""), Count: i.Count,
			First: i.First, FirstTime: i.FirstTime, Last: i.Last, LastTime: i.LastTime,
		})
	}
	for _, j := range r.report.Faults {
		out.NotReproduced = append(out.NotReproduced, replayFault{j.ID, j.Entry, j.Time, j.Service, j.Why})
	}
	for _, s := range r.report.Skips() {
		out.NotReplayable = append(out.NotReplayable, replaySkip(s))
	}
	return out
}

func standOf(s replay.Stand) replayStand {
	out := replayStand{Verdict: s.Verdict, Hold: s.Hold, Lasting: s.Lasting, Needs: []web.Need{}, Fault: s.Fault}
	for _, n := range s.Needs {
		out.Needs = append(out.Needs, web.Need{Reason: n.Reason, Approvers: n.Approvers, Quorum: n.Quorum, ExpiresSeconds: n.Expires.Seconds()})
	}
	return out
}

func firedRules(said []gate.Said, bundle string) []replayRule {
	out := []replayRule{}
	for _, s := range said {
		out = append(out, replayRule{s.Set, s.Rule.Reason, s.Rule.Title, path.Join(bundle, s.Rule.File), s.Rule.Line})
	}
	return out
}
