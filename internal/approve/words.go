package approve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// MaxLine is how many characters a line has at most: more is not read at night.
const MaxLine = 400

// Broken is one line: what is broken, by how much, as measured, and since when.
func Broken(service string, a compare.Assessment, since, now time.Time) string {
	name := OneLine(orWord(service, a.Service), 100)
	switch a.State {
	case compare.Breached:
		return OneLine(missed(name, a, since, now), MaxLine)
	case compare.Met:
		s := name + " meets its SLO again"
		if o, ok := tightest(a); ok {
			s += ": " + o.ID + " has " + errorsNow(o)
		}
		if !since.IsZero() {
			s += "; it was missed since " + Moment(since, now)
		}
		return OneLine(s, MaxLine)
	}
	s := name + " cannot be judged" + from(since, now) + ": " + orWord(string(a.Reason), "no measurement")
	if why := a.Why(); why != "" {
		s += ", " + why
	}
	return OneLine(s, MaxLine)
}

// missed says the worst number first; a service of which a part is not known
// says which part.
func missed(name string, a compare.Assessment, since, now time.Time) string {
	o, ok := a.Worst()
	if !ok || !o.Judge.Known() {
		return name + " misses its SLO" + from(since, now) + ", by an unknown amount"
	}
	s := fmt.Sprintf("%s misses %s%s: %s", name, o.ID, from(since, now), errorsNow(o))
	if o.Group != "" {
		s += fmt.Sprintf(" (in %s, the worst of %d groups)", o.Group, o.Groups)
	}
	if a.Reason == compare.Recovering {
		s += "; recovering"
	}
	for _, other := range a.Objectives {
		switch {
		case other.State == compare.Unknown:
			s += "; " + other.ID + " cannot be judged"
		case other.State == compare.Breached && other.ID != o.ID:
			s += "; " + other.ID + " is missed too"
		}
	}
	return s
}

// tightest is the objective that is nearest to its limit.
func tightest(a compare.Assessment) (worst compare.Objective, found bool) {
	for _, o := range a.Objectives {
		if o.State != compare.Met || !o.Judge.Known() {
			continue
		}
		if !found || o.Judge.ErrorRatio*(1-worst.Target) > worst.Judge.ErrorRatio*(1-o.Target) {
			worst, found = o, true
		}
	}
	return worst, found
}

func errorsNow(o compare.Objective) string {
	return fmt.Sprintf("%s errors%s (measured), %s allowed", Percent(o.Judge.ErrorRatio), over(o.Judge.ID.Window), Percent(1-o.Target))
}

func over(window time.Duration) string {
	if window <= 0 {
		return ""
	}
	return " over " + spec.FormatDuration(window)
}

// from is " since … (12m)"; "" where nobody knows.
func from(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", Moment(since, now), Age(now.Sub(since)))
}

// Measured has one line for each objective of an assessment.
func Measured(a compare.Assessment) []string {
	var lines []string
	for _, o := range a.Objectives {
		s := o.ID + ": " + string(o.State)
		if o.Reason != "" {
			s += " (" + string(o.Reason) + ")"
		}
		if o.State != compare.Unknown && o.Judge.Known() {
			s += fmt.Sprintf(", %s, burning %s times the budget", errorsNow(o), Figure(o.Judge.ErrorRatio/(1-o.Target)))
		} else if o.Detail != "" {
			s += ": " + o.Detail
		}
		lines = append(lines, OneLine(s, MaxLine))
	}
	return lines
}

// Would is one line: what a proposal would do to which target.
func Would(svc spec.Service, p propose.Proposal) string {
	switch p.Kind {
	case propose.KindAction, "":
		return OneLine("would do: "+Act(svc, p), MaxLine)
	case propose.KindEscalate:
		return "would do nothing: the proposer hands over to you"
	case propose.KindNone:
		return "would do nothing: the proposer knows no step that helps"
	}
	return OneLine("would do nothing: "+propose.Brief(p.Fault), MaxLine)
}

// Act is an action with its parameters and its target.
func Act(svc spec.Service, p propose.Proposal) string {
	s := p.Action + Parameters(p.Parameters)
	if a, ok := svc.Action(p.Action); ok {
		s += " on " + a.Uses + " " + spelt(strings.TrimPrefix(a.Canonical(), a.Executor()+" "))
	} else {
		s += ", which the documents do not name any more"
	}
	if p.Undo {
		s += ", to take back " + orWord(p.Undoes, "what was done before")
	}
	return OneLine(s, MaxLine)
}

// spelt is a text in which nothing is hidden by what cleaning would take away.
func spelt(s string) string {
	if plain(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// Did is one line: what was done, and what was measured after it.
func Did(t propose.Tried) string { return did(t, t.At) }

func did(t propose.Tried, now time.Time) string {
	s := "did: " + t.Action + Parameters(t.Parameters)
	if !t.At.IsZero() {
		s += " at " + minute(t.At, now)
	}
	return OneLine(s+ended(t), MaxLine)
}

// ended is what became of an action: what was measured, where it was.
func ended(t propose.Tried) string {
	how := ""
	if t.Effect != "" && t.Effect != "applied" {
		how = ": " + effectWords(t.Effect)
	}
	switch t.Outcome {
	case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened:
		return fmt.Sprintf("%s; measured: %s errors before, %s after: %s", how, Percent(t.Before), Percent(t.After), t.Outcome)
	case compare.OutcomeUnknown:
		return how + "; nothing could be measured after it: outcome unknown"
	case compare.OutcomePending:
		return orWord(how, ": applied") + "; not judged yet"
	}
	return orWord(how, ": "+effectWords(t.Effect))
}

// effectWords say an effect to somebody who does not know the words of the ledger.
func effectWords(effect string) string {
	words := map[string]string{
		"":                   "nothing is recorded of it",
		"none":               "nothing was done",
		"claimed":            "about to be sent",
		"void":               "never sent",
		"started":            "sent, no answer yet",
		"applied-with-error": "applied, with an error",
		"no-op":              "no-op, it was so already",
		"failed":             "failed, nothing was changed",
		"not-now":            "put off by its target (not-now), nothing was changed",
		"in-doubt":           "in doubt, nobody knows yet whether it arrived",
		"landed":             "landed, the target has it",
		"not-landed":         "not landed, it never arrived",
		"unknown":            "unknown, nobody can tell whether it arrived",
	}
	return orWord(words[effect], effect)
}

// Parameters are " a=1 b=x", by name. A value that could be read as something
// else is quoted, and what is not plain ASCII in it is spelt out.
func Parameters(p propose.Parameters) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		v := fmt.Sprint(p[name])
		if s, ok := p[name].(string); ok && !plainValue(s) {
			v = strconv.QuoteToASCII(s)
		}
		b.WriteString(" " + name + "=" + v)
	}
	return b.String()
}

func plainValue(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '=' || s[i] == '"' {
			return false
		}
	}
	return s != ""
}

// Percent is a ratio for people.
func Percent(ratio float64) string { return Figure(ratio*100) + " %" }

// Figure keeps three digits, which is more than anybody acts on.
func Figure(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Instant is a time with its day.
func Instant(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Moment is a time as it is said at now: the day is left out where it is today.
func Moment(t, now time.Time) string { return moment(t, now, "15:04:05 UTC") }

func minute(t, now time.Time) string { return moment(t, now, "15:04 UTC") }

func moment(t, now time.Time, layout string) string {
	if t.IsZero() {
		return "an unknown time"
	}
	if t, now = t.UTC(), now.UTC(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		layout = "2006-01-02 " + layout
	}
	return t.Format(layout)
}

// Age is how long something lasts, in whole minutes from two minutes on.
func Age(d time.Duration) string {
	if d >= 2*time.Minute {
		return spec.FormatDuration(d.Truncate(time.Minute))
	}
	return spec.FormatDuration(max(d, 0).Truncate(time.Second))
}

// Rest is how long something lasts still, to the nearest minute from two minutes
// on: of three minutes one second ago three are left to whoever reads it.
func Rest(d time.Duration) string {
	if d = d.Round(time.Second); d < 2*time.Minute {
		return spec.FormatDuration(max(d, 0))
	}
	return spec.FormatDuration(d.Round(time.Minute))
}

// Argument is a word that a shell takes as one, whatever a name holds. What
// OneLine would change is changed before it is quoted: a mark that became a
// quotation mark afterwards would end the word.
func Argument(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(OneLine(s, 100), "'", `'\''`) + "'"
}

// marks are those that chats and mail make links, mentions and commands of.
var marks = strings.NewReplacer("<", "‹", ">", "›", "`", "'", "](", "] (")

// quotes would end a quotation.
var quotes = strings.NewReplacer("“", "'", "”", "'")

// OneLine makes a text one line without marks that a chat would follow. It is
// cleaned first: what nobody sees must not hide a mark.
func OneLine(s string, limit int) string {
	return propose.CleanText(marks.Replace(propose.CleanText(s, len(s))), limit)
}

// Quote marks words as somebody's own; "" where there are none.
func Quote(words string, limit int) string {
	clean := quotes.Replace(OneLine(words, limit-2))
	if clean == "" {
		return ""
	}
	return "“" + clean + "”"
}

// Speaker says who proposed; "" when that is not known.
func Speaker(p propose.Proposer) string {
	s := OneLine(p.Kind, 60)
	if m := OneLine(p.Model, 60); m != "" && s != "" {
		s += ", model " + m
	}
	return s
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
