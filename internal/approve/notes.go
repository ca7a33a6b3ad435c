package approve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
)

// notes are what happened to a ticket so far, each by an id that says what it was,
// so that every replica and every restart derives the same ones. One without a
// recorded time comes last, because only an end has none.
func notes(f CardFacts) []Note {
	ns := append(answerNotes(f), courseNotes(f)...)
	ns = append(ns, endNotes(f)...)
	slices.SortStableFunc(ns, func(a, b Note) int {
		if a.At.IsZero() != b.At.IsZero() {
			return cmp.Compare(isZero(a.At), isZero(b.At))
		}
		return a.At.Compare(b.At)
	})
	return ns
}

func isZero(t time.Time) int {
	if t.IsZero() {
		return 1
	}
	return 0
}

func answerNotes(f CardFacts) []Note {
	var ns []Note
	for i, a := range f.Ticket.Answers {
		ns = append(ns, Note{ID: fmt.Sprintf("answer-%d", i+1), At: a.At, Text: answered(a, f.Now)})
	}
	return ns
}

// courseNotes are the claim, the send, what the target said and what was measured.
func courseNotes(f CardFacts) []Note {
	c, at := f.Course, claimTime(f)
	var ns []Note
	if !at.IsZero() {
		ns = append(ns, Note{"claim", at, OneLine("claimed "+string(f.Ticket.Key)+" at "+Moment(at, f.Now)+"; nothing is sent yet", MaxLine)})
	}
	if c.VoidReason != "" {
		ns = append(ns, Note{"claim-void", at, OneLine("the claim ended without a send: "+reasonWords(c.VoidReason), MaxLine)})
	}
	if !c.SentAt.IsZero() {
		ns = append(ns, Note{"sent", c.SentAt, OneLine("sent at "+Moment(c.SentAt, f.Now)+": "+step(f), MaxLine)})
		if c.Effect != "" && c.Effect != "started" {
			ns = append(ns, Note{"effect-" + c.Effect, c.SentAt, effectNote(c)})
		}
	}
	if judged(c) {
		ns = append(ns, Note{"outcome-" + string(c.Outcome), latest(c.JudgedAt, c.SentAt), OneLine(outcomeNote(c), MaxLine)})
	}
	return ns
}

func outcomeNote(c Course) string {
	if c.Outcome == compare.OutcomeUnknown {
		return "outcome: unknown, because nothing could be measured after it"
	}
	return fmt.Sprintf("outcome: %s (measured: %s errors before, %s after)", c.Outcome, Percent(c.Before), Percent(c.After))
}

// effectNote quotes what is recorded of the effect, which is the target's word, or
// ours where it gave none.
func effectNote(c Course) string {
	s := "effect: " + effectWords(c.Effect)
	if q := Quote(c.Detail, maxReason); q != "" {
		s += " (" + q + ")"
	}
	return OneLine(s, MaxLine)
}

// endNotes are those of an end that is no answer.
func endNotes(f CardFacts) []Note {
	t := f.Ticket
	switch t.State {
	case Expired:
		return []Note{{"end-expired", t.Expires, "expired at " + Moment(t.Expires, f.Now) + ": nobody answered in time, nothing was done, and it is not asked again in this episode"}}
	case Withdrawn, Void:
		return []Note{{"end-" + string(t.State), time.Time{}, OneLine(string(t.State)+": "+reasonWords(t.Reason), MaxLine)}}
	}
	return nil
}

// claimTime is when its key was claimed, zero before.
func claimTime(f CardFacts) time.Time { return latest(f.Course.ClaimedAt, f.Ticket.ClaimedAt) }

// latest is the first unless it is zero or before the other.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
