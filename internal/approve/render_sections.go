package approve

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxListed is how many lines a section has; who wants more asks for it.
const maxListed = 8

// lately is how long before the question a step of an earlier episode is shown: an
// episode that ends and begins again within minutes is one night to people.
const lately = 24 * time.Hour

// sections are what stands below the lead, in the order in which it is asked for.
func sections(f CardFacts) []Section {
	t := f.Ticket
	var tried, before, why, answers []string
	for _, d := range f.Tried {
		if d.ThisEpisode {
			tried = append(tried, did(d, f.Now))
		} else if !d.At.Before(t.Asked.Add(-lately)) {
			before = append(before, did(d, f.Now))
		}
	}
	for _, r := range t.Reasons {
		why = append(why, reason(r))
	}
	for _, a := range t.Answers {
		answers = append(answers, answered(a, f.Now))
	}
	all := []Section{
		{"Measured at " + Moment(f.Assessment.At, f.Now), Measured(f.Assessment)},
		{"Tried in this episode", newest(tried)},
		{"Tried in the day before this episode", newest(before)},
		{"Why a person is asked", oldest(why)},
		{"Who has to approve", oldest(missing(t))},
		{"Answers so far", newest(answers)},
		{"To take it back", undo(f)},
		{"Autonomy budget left", balance(f)},
		{"Key", []string{OneLine(string(t.Key), MaxLine)}},
	}
	if t.State != Open {
		all[3].Heading, all[4].Lines = "Why a person was asked", nil
	}
	if t.State != Open && t.State != Approved {
		// Nothing was done that could be taken back or paid for.
		all[6].Lines, all[7].Lines = nil, nil
	}
	var out []Section
	for _, s := range all {
		if len(s.Lines) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// oldest keeps the first lines, newest the last.
func oldest(lines []string) []string {
	if n := len(lines) - maxListed; n > 0 {
		return append(lines[:maxListed:maxListed], fmt.Sprintf("… and %d more", n))
	}
	return lines
}

func newest(lines []string) []string {
	if n := len(lines) - maxListed; n > 0 {
		return append([]string{fmt.Sprintf("… and %d earlier ones", n)}, lines[n:]...)
	}
	return lines
}

func reason(r gate.Reason) string {
	s := r.Code
	if r.Text != "" {
		s += ": " + r.Text
	}
	return OneLine(s, MaxLine)
}

func answered(a Answer, now time.Time) string {
	s := fmt.Sprintf("%s by %s (%s) at %s", word(a.Approve), a.By, orWord(a.Via, "unknown way"), Moment(a.At, now))
	if q := Quote(a.Reason, maxReason); q != "" {
		s += ": " + q
	}
	return OneLine(s, MaxLine)
}

// undo says what happens to take the action back.
func undo(f CardFacts) []string {
	t := f.Ticket
	if t.Proposal.Undo {
		return []string{OneLine("this takes back "+orWord(t.Proposal.Undoes, "what was done before")+", and an undo has no undo", MaxLine)}
	}
	a, ok := f.Service.Action(t.Proposal.Action)
	if !ok {
		return nil
	}
	switch a.Reversal {
	case spec.Transient:
		return []string{"nothing is to be taken back: the desired state stays as it is (transient)"}
	case spec.Restore:
		return []string{"if it is judged worsened, the values observed before it are put back by the same action (restore)"}
	}
	return []string{"nothing takes it back (irreversible)"}
}

func balance(f CardFacts) []string {
	b := f.Balance
	if b == nil {
		return nil
	}
	return []string{OneLine(fmt.Sprintf("%s of %s for %s, %s of %s for the whole fleet; an approved action is judged and charged nothing",
		Figure(b.Remaining), Figure(b.Capacity), f.Ticket.Proposal.Action, Figure(b.GlobalRemaining), Figure(b.GlobalCapacity)), MaxLine)}
}
