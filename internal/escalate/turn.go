package escalate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Turn is a receiver that is told unless somebody acknowledges the page before: At
// that time, or After that long from when Holder has it, where that time is not
// known yet.
type Turn struct {
	Receiver string
	At       time.Time
	After    time.Duration
	Holder   string
}

// NextTurn is who is told of a page after those whose turn has come: the first
// receiver, in the page's order, for which the one before it has not passed the
// page on. Somebody who is about to be sent it is not next. The first one of all is
// told at once, so it has no turn.
func NextTurn(p Page, held []Delivery, rules []Rule, now time.Time) Turn {
	return newOutbox(p, held, rules, now).turnAfter("")
}

// turnAfter is the next turn once that receiver, if any, has had its own.
func (o outbox) turnAfter(receiver string) Turn {
	names := o.known()
	from := max(slices.Index(names, receiver), 0)
	for i, name := range names {
		if i <= from || o.holds(name) || name == receiver {
			continue
		}
		before := names[i-1]
		if before != receiver && o.passedOn(before, o.rules[name]) {
			continue
		}
		d := o.held[before]
		switch {
		case o.holds(before):
			return Turn{Receiver: name, At: d.First.Add(o.rules[name].wait())}
		case before == receiver:
			return Turn{Receiver: name, At: o.now.Add(o.rules[name].wait())}
		}
		return Turn{Receiver: name, After: o.rules[name].wait(), Holder: before}
	}
	return Turn{}
}

// known are the page's receivers that are configured, each once.
func (o outbox) known() []string {
	var names []string
	for _, name := range o.page.Receivers {
		if _, ok := o.rules[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// holds reports whether the receiver confirmed the page and was not told its end.
func (o outbox) holds(name string) bool {
	d, tried := o.held[name]
	return tried && !d.First.IsZero() && !d.Ended
}

// wokenFor says why the page did not stay with the receiver before this one; ""
// for the first one, and where it did stay there.
func (o outbox) wokenFor(receiver string) string {
	at := slices.Index(o.page.Receivers, receiver)
	if at <= 0 {
		return ""
	}
	before := o.page.Receivers[at-1]
	d, wait := o.held[before], o.rules[receiver].wait()
	switch _, known := o.rules[before]; {
	case !known:
		return before + ", who comes before you, is not configured"
	case o.holds(before) && o.now.Sub(d.First) >= wait:
		return fmt.Sprintf("%s did not acknowledge it within %s", before, spec.FormatDuration(wait))
	case o.passedOn(before, o.rules[receiver]):
		return before + " could not be reached"
	}
	return ""
}

// The beginnings of what is said of the next receiver.
const (
	nextReceiver = "; next receiver "
	nobodyIsNext = "; nobody is next"
)

// withoutChain is the line without who is next.
func withoutChain(until string) string {
	for _, begin := range []string{nextReceiver, nobodyIsNext} {
		if i := strings.LastIndex(until, begin); i >= 0 {
			until = until[:i]
		}
	}
	return until
}

// chain is who is told next.
func chain(f PageFacts) string {
	switch {
	case f.Reason == Heartbeat:
		return ""
	case f.Opened != nil && f.Opened.AckedBy != "":
		return "; acknowledged by " + f.Opened.AckedBy + ", so nobody else is told"
	}
	return nextWords(f.Next, f.Now)
}

// nextWords is one clause; "" where nobody is next.
func nextWords(n Turn, now time.Time) string {
	switch {
	case n.Receiver == "":
		return ""
	case !n.At.IsZero():
		return fmt.Sprintf("%s%s at %s unless acknowledged", nextReceiver, n.Receiver, approve.Moment(n.At, now))
	}
	return fmt.Sprintf("%s%s, %s after %s has it, unless acknowledged", nextReceiver, n.Receiver, spec.FormatDuration(n.After), orWord(n.Holder, "the first"))
}
