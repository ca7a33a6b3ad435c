package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// columns builds a table whose further columns show with -o wide only.
func columns(l *lister, narrow []string, wide ...string) *table {
	t := &table{header: narrow}
	if l.wide() {
		t.header = append(t.header, wide...)
	}
	return t
}

func (t *table) row(l *lister, narrow []string, wide ...string) {
	if l.wide() {
		narrow = append(narrow, wide...)
	}
	t.add(narrow...)
}

func servicesTable(l *lister, items []web.Service) (*table, []string) {
	t := columns(l, []string{"SERVICE", "STATE", "REASON", "SINCE", "MODE", "CEILING", "BUDGET", "EPISODE"},
		"OWNER", "OBSERVED", "LAST MET", "NEXT", "ERROR")
	t.coloured = []int{1, 5}
	var names []string
	now := l.app.now()
	faultHints(t, items, now)
	for _, s := range items {
		names = append(names, "service/"+s.Service)
		t.row(l, []string{s.Service, s.State, s.Reason, secondsAge(s.SinceSeconds), modeText(s.Mode, s.EffectiveMode), ceilingCell(l, s.Service, s.Ceiling, s.Frozen), decimal(s.BalanceRemaining), s.Episode},
			s.Owner, timeAge(s.LastObserved, now), timeAge(s.LastMet, now), left(s.NextTry, now), s.LastError)
	}
	return t, names
}

// faultHints say what keeps services from being measured, each once: a source
// that is down is down for all of them.
func faultHints(t *table, items []web.Service, now time.Time) {
	of := map[string][]web.Service{}
	for _, s := range items {
		if s.LastErrorKind != "" {
			text := s.LastErrorKind + ": " + s.LastError
			of[text] = append(of[text], s)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(of)) {
		var names []string
		for _, s := range of[text] {
			names = append(names, s.Service)
		}
		t.hint("%s: %s; next try %s", orList(names), text, left(of[text][0].NextTry, now))
	}
}

// modeText is the mode that binds, and that it is not the document's where
// limits.maxMode allows less.
func modeText(mode, effective string) string {
	if effective == "" {
		return mode
	}
	return effective + " (" + gate.ReasonMaxMode + ")"
}

// ceilingCell is a ceiling, or that a freeze binds before it.
func ceilingCell(l *lister, service, ceiling string, frozen bool) string {
	if !frozen {
		return ceiling
	}
	if l.wide() {
		// Who did it is a help; that it is frozen stands without.
		if by, err := l.frozenBy(service); err == nil && len(by) > 0 {
			return "frozen by " + words(by)
		}
	}
	return "frozen"
}

func objectivesTable(l *lister, items []web.Objective) (*table, []string) {
	header := []string{"SERVICE", "OBJECTIVE", "STATE", "REASON", "TARGET", "ERRORS", "BUDGET LEFT"}
	grouped := slices.ContainsFunc(items, func(o web.Objective) bool { return o.Groups > 0 })
	if grouped {
		header = append(header, "GROUPS")
	}
	t := columns(l, header, "JUDGE WINDOW", "BURN RATES", "SAMPLE AGE", "SOURCES", "DETAIL")
	t.coloured = []int{2}
	var names []string
	for _, o := range items {
		names = append(names, "objective/"+o.Service+"/"+o.Name)
		row := []string{
			o.Service, o.Name, o.State, o.Reason, percent(&o.Target),
			percent(o.ErrorRatio) + truncatedText(o), percent(o.ErrorBudgetRemaining),
		}
		if grouped {
			row = append(row, groupsText(o))
		}
		t.row(l, row, percent(o.JudgeErrorRatio), burnRates(o), secondsAge(o.SampleAgeSeconds), words(o.Sources), detailText(o))
	}
	return t, names
}

// truncatedText marks a ratio over a window of which only the newest part holds
// data.
func truncatedText(o web.Objective) string {
	if o.CoveredSeconds == nil || o.ErrorRatio == nil {
		return ""
	}
	return fmt.Sprintf(" (%s of %s)", secondsAge(o.CoveredSeconds), secondsAge(&o.WindowSeconds))
}

// groupsText is how many groups are breached, and the worst of all.
func groupsText(o web.Objective) string {
	if o.Groups == 0 || o.GroupsBreached == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d, worst %s", *o.GroupsBreached, o.Groups, o.Group)
}

// detailText says from where something is not known, unless the words do.
func detailText(o web.Objective) string {
	if o.UnknownFrom == "" || len(o.Sources) > 1 || o.Detail == "" {
		return o.Detail
	}
	return "from " + o.UnknownFrom + ": " + o.Detail
}

// burnRates shows each window with its rate, short windows first. A window that
// the data does not cover yet is marked.
func burnRates(o web.Objective) string {
	windows := slices.SortedFunc(maps.Keys(o.BurnRates), func(a, b string) int {
		x, _ := web.ParseSince(a, time.Time{})
		y, _ := web.ParseSince(b, time.Time{})
		return y.Compare(x)
	})
	var parts []string
	for _, w := range windows {
		part := w + "=" + decimal(o.BurnRates[w])
		if o.Warming[w] != nil {
			part += "(warming)"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func actionsTable(l *lister, items []web.Action) (*table, []string) {
	t := columns(l, []string{"SERVICE", "ACTION", "CEILING", "WHY", "BUDGET", "SUSPENDED"},
		"USES", "CLASS", "REVERSAL", "MARK", "LAST SENT", "SOURCE")
	t.coloured = []int{2}
	var names []string
	for _, a := range items {
		names = append(names, "action/"+a.Service+"/"+a.Action)
		for _, d := range a.Details {
			if d.Code == gate.ReasonLedgerCeiling {
				t.hint("%s/%s: %s%s", a.Service, a.Action, d.Text, until(d.Until))
			}
		}
		t.row(l, []string{a.Service, a.Action, ceilingCell(l, a.Service, a.Ceiling, a.Frozen), words(a.Reasons), fmt.Sprintf("%.4g of %.4g", a.Remaining, a.Capacity), a.Suspended},
			a.Uses, a.Class, a.Reversal, a.Mark, timeAge(a.LastSent, l.app.now()), a.Source)
	}
	return t, names
}

func until(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ", until " + clock(*t)
}

func approvalsTable(l *lister, items []web.Approval) (*table, []string) {
	t := columns(l, []string{"TICKET", "SERVICE", "ACTION", "PARAMETERS", "STATE", "ASKED", "EXPIRES", "NEEDS", "ANSWERS"},
		"EPISODE", "KEY", "DIGEST", "REASON", "CARD")
	t.coloured = []int{4}
	var names []string
	now := l.app.now()
	for _, a := range items {
		names = append(names, "approval/"+a.ID)
		expires := ""
		if a.State == "open" {
			expires = left(&a.Expires, now)
			t.hint("%s waits: setpoint approve %s --reason '…', or setpoint deny %s --reason '…'; setpoint explain %s says why it is asked", a.ID, a.ID, a.ID, a.ID)
		}
		t.row(l, []string{
			a.ID, a.Service, a.Action, parametersText(a.Parameters), ticketState(a), age(now.Sub(a.Asked)) + " ago",
			expires, needsText(a.Needs), answersText(a.Answers),
		}, a.Episode, a.Key, short(a.Digest), a.Reason, cardText(a.Card))
	}
	return t, names
}

// cardText leads to the card in the channel, or says why nobody sees it there.
func cardText(c *web.Card) string {
	switch {
	case c == nil:
		return ""
	case c.State == "shown" && c.Link != "":
		return c.Link
	case c.LastError != "":
		return c.State + ": " + c.LastError
	}
	return c.State
}

// ticketState tells an answer that was carried out from one that waits for
// its pass.
func ticketState(a web.Approval) string {
	if a.Started != nil {
		return "executed"
	}
	return a.State
}

func needsText(needs []web.Need) string {
	var parts []string
	for _, n := range needs {
		// Several rules often want the same people.
		one := fmt.Sprintf("%d of %s", n.Quorum, strings.Join(n.Approvers, " "))
		if n.Missing != nil && *n.Missing > 0 && *n.Missing < n.Quorum {
			one = fmt.Sprintf("%d more of the %s", *n.Missing, one)
		}
		if !slices.Contains(parts, one) {
			parts = append(parts, one)
		}
	}
	return strings.Join(parts, " and ")
}

func answersText(answers []web.Answer) string {
	var parts []string
	for _, a := range answers {
		parts = append(parts, pastWord(a.Answer)+" by "+a.By)
	}
	return strings.Join(parts, ", ")
}

func pastWord(answer string) string {
	if answer == web.WordApprove {
		return "approved"
	}
	return "denied"
}

func decisionsTable(l *lister, items []web.Decision) (*table, []string) {
	t := columns(l, []string{"DECISION", "TIME", "SERVICE", "ACTION", "PARAMETERS", "VERDICT", "STEP", "EFFECT", "OUTCOME", "WHY"},
		"PROPOSER", "STATE", "KEY", "EPISODE", "CHARGE", "DIGEST", "POLICY", "SHADOW", "SHADOW WHY")
	t.coloured = []int{5, 7, 8}
	var names []string
	for _, d := range items {
		names = append(names, "decision/"+d.ID)
		why := words(d.Reasons)
		if !l.wide() {
			why = firstReasons(d.Reasons)
		}
		if inDoubt(d.Effect) {
			t.hint("%s: nobody knows whether it acted; look at the target, then setpoint settle %s --as landed|not-landed --reason '…'", d.ID, d.ID)
		}
		t.row(l, []string{
			d.ID, clock(d.Time), d.Service, d.Action, parametersText(d.Parameters), d.Verdict, d.Step,
			unlessNone(d.Effect), unlessNone(d.Outcome), why,
		}, append([]string{proposerCell(d), d.State, d.Key, d.Episode, fmt.Sprintf("%.4g", d.Charge), short(d.Digest), short(d.PolicyRevision)}, shadowCells(d)...)...)
	}
	return t, names
}

// inDoubt are the effects that a person may settle.
func inDoubt(effect string) bool {
	return effect == string(execute.InDoubt) || effect == string(execute.Unknown)
}

// unlessNone leaves a cell empty where nothing was sent or judged.
func unlessNone(word string) string {
	if word == "none" {
		return ""
	}
	return word
}

// firstReasons keeps a line of the table short: `setpoint explain` has all.
func firstReasons(codes []string) string {
	const most = 2
	// That a person agreed says more than why they were asked.
	codes = slices.Clone(codes)
	slices.SortStableFunc(codes, func(a, b string) int {
		return cmp.Compare(rank(a), rank(b))
	})
	if len(codes) <= most {
		return words(codes)
	}
	return fmt.Sprintf("%s +%d more", words(codes[:most]), len(codes)-most)
}

func rank(code string) int {
	if code == gate.ReasonApproved {
		return 0
	}
	return 1
}

func pagesTable(l *lister, items []web.Page) (*table, []string) {
	t := columns(l, []string{"PAGE", "SERVICE", "STATE", "REASON", "SINCE", "SUMMARY"}, "SEVERITY", "ACKED BY", "RECEIVERS", "ENDED BY")
	t.coloured = []int{2}
	var names []string
	for _, p := range items {
		names = append(names, "page/"+p.ID)
		reason := p.Reason
		if p.Now != "" && p.Now != p.Reason {
			reason += ", now " + p.Now
		}
		if p.State == "open" {
			t.hint("%s is open: setpoint ack %s says that you have seen it, so that it is not handed on", p.ID, p.ID)
		}
		t.row(l, []string{p.ID, p.Service, p.State, reason, age(l.app.now().Sub(p.Since)), p.Summary},
			p.Severity, p.AckedBy, receiversText(p.Receivers), p.EndReason)
	}
	return t, names
}

func receiversText(ds []web.Delivery) string {
	var parts []string
	for _, d := range ds {
		state := "waiting"
		switch {
		case d.Failures == 1:
			state = "failed once"
		case d.Failures > 0:
			state = fmt.Sprintf("failed %d times", d.Failures)
		case d.Ended:
			state = "ended"
		case d.Sent != nil:
			state = "holds it"
		}
		parts = append(parts, d.Receiver+": "+state)
	}
	return strings.Join(parts, ", ")
}

func freezesTable(l *lister, items []web.Freeze) (*table, []string) {
	t := columns(l, []string{"FREEZE", "SERVICE", "ACTIVE", "BY", "SINCE", "ENDS", "REASON"}, "FILE", "RECORDED")
	var names []string
	now := l.app.now()
	for _, f := range items {
		names = append(names, "freeze/"+f.ID)
		service, ends := f.Service, "thaw"
		if service == "" {
			service = "(all)"
		}
		if f.Until != nil {
			ends = left(f.Until, now)
		}
		t.row(l, []string{f.ID, service, yesNo(f.Active), f.By, timeAge(f.At, now), ends, f.Reason}, yesNo(f.File), yesNo(f.Recorded))
	}
	return t, names
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// parametersText shows arguments as a person would type them.
func parametersText(p propose.Parameters) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, p[name]))
	}
	return strings.Join(parts, " ")
}

// short is enough of a digest to recognise it.
func short(digest string) string {
	const enough = 12
	if len(digest) > enough {
		return digest[:enough]
	}
	return digest
}
