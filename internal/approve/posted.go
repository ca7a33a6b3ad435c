package approve

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Message is one message in a channel, as far as a card is concerned.
type Message struct {
	Channel string `json:"channel"`
	// ID is the channel's own name of it, e.g. Slack's ts.
	ID string `json:"id"`
	// Shows is the Gist that it shows; "" when not known.
	Shows string `json:"shows"`
	// Gone: it was deleted, or cannot be changed any more.
	Gone bool `json:"gone,omitempty"`
	// Link leads people to it; "" when not known.
	Link string `json:"link,omitempty"`
}

// Posted is what a channel is known to hold of one card.
type Posted struct {
	// Ticket is that of the card.
	Ticket string `json:"ticket"`
	// Rev counts the records of this card: one that is not the next is refused,
	// so that of two replicas one posts.
	Rev int `json:"rev"`
	// Messages are all that are known, oldest first.
	Messages []Message `json:"messages"`
	// Begun is when a post was begun whose end is not known, By the process that
	// began it; zero and "" otherwise. Until it is looked for, it may stand there.
	Begun time.Time `json:"begun,omitzero"`
	By    string    `json:"by,omitempty"`
	// Noted are the ids of the notes that were posted.
	Noted []string `json:"noted,omitempty"`
	// Tried is the last attempt that failed, and Failures how many did in a row.
	Tried     time.Time `json:"tried,omitzero"`
	Failures  int       `json:"failures"`
	LastError string    `json:"lastError"`
	// NotBefore is when the channel wants to hear of us again; zero: any time. Limits
	// is how often in a row it said so.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Limits    int       `json:"limits,omitempty"`
	// Closed: every message shows the end, and nothing is left to be said.
	Closed bool `json:"closed"`
}

// Live is the newest message that can be changed.
func (p Posted) Live() (Message, bool) {
	for _, m := range slices.Backward(p.Messages) {
		if !m.Gone {
			return m, true
		}
	}
	return Message{}, false
}

// Chore is what has to be done next for one card.
type Chore string

// The chores, in the order in which they come.
const (
	// Nothing: the channel shows what it should, or is left alone for now.
	Nothing Chore = ""
	// Find a post that was begun and whose end is not known.
	Find Chore = "find"
	// Post the card.
	Post Chore = "post"
	// Update every message that shows something else.
	Update Chore = "update"
	// Say posts the first note that was not posted.
	Say Chore = "say"
	// Look whether the message of an open card still stands there.
	Look Chore = "look"
	// Close: there is nothing left to do.
	Close Chore = "close"
)

// The rules of the channel.
const (
	// MaxMessages of one card are posted: somebody who deletes it again and again
	// does not want it, and the ticket pages instead.
	MaxMessages = 3
	// PostFor is how long a post that was begun may take before somebody looks
	// for it. It is longer than any request's timeout.
	PostFor = 30 * time.Second
	// LookEvery is how often an open card is looked at.
	LookEvery = time.Minute
)

// Next is what has to be done for the card now, by the process of that name.
// looked is when the message was last seen, by whatever was done to it.
func (p Posted) Next(c Card, process string, looked, now time.Time) Chore {
	switch {
	case p.Closed && c.Final, p.resting(now):
		return Nothing
	case !p.Begun.IsZero():
		return p.doubt(process, now)
	case p.outdated(c):
		return Update
	}
	if _, standing := p.Live(); standing {
		return p.standing(c, now.Sub(looked))
	}
	switch {
	case c.Open() && len(p.Messages) < MaxMessages:
		return Post
	case c.Final:
		return Close
	}
	return Nothing
}

// standing is what is left to do below a message that shows what it should.
func (p Posted) standing(c Card, unseen time.Duration) Chore {
	switch {
	case len(p.unsaid(c)) > 0:
		return Say
	case c.Final:
		return Close
	case c.Open() && (unseen >= LookEvery || unseen < 0): // In the future: of a clock that was set back.
		return Look
	}
	return Nothing
}

// doubt: a post whose end is not known is looked for once it can no longer be
// under way; until then only by the process that began it, which knows that it
// is not.
func (p Posted) doubt(process string, now time.Time) Chore {
	age := now.Sub(p.Begun)
	if age >= PostFor || age < 0 || process != "" && p.By == process {
		return Find
	}
	return Nothing
}

func (p Posted) resting(now time.Time) bool {
	if wait := p.NotBefore.Sub(now); wait > 0 && wait <= time.Hour {
		return true
	}
	age := now.Sub(p.Tried)
	return p.Failures > 0 && age >= 0 && age < Backoff(p.Failures)
}

func (p Posted) outdated(c Card) bool {
	return slices.ContainsFunc(p.Messages, func(m Message) bool { return !m.Gone && m.Shows != c.Gist })
}

// unsaid are the notes that were not posted.
func (p Posted) unsaid(c Card) []Note {
	return slices.DeleteFunc(slices.Clone(c.Notes), func(n Note) bool { return slices.Contains(p.Noted, n.ID) })
}

// NextNote is the first note that was not posted.
func (p Posted) NextNote(c Card) (Note, bool) {
	if left := p.unsaid(c); len(left) > 0 {
		return left[0], true
	}
	return Note{}, false
}

// With adds a message, or replaces what is known of it.
func (p Posted) With(m Message) Posted {
	p.Messages = slices.Clone(p.Messages)
	for i, known := range p.Messages {
		if known.Channel == m.Channel && known.ID == m.ID {
			p.Messages[i] = m
			return p
		}
	}
	p.Messages = append(p.Messages, m)
	return p
}

// After is what is known after a request failed, or succeeded (nil). text is the
// error as it may be shown.
func (p Posted) After(err error, text string, now time.Time) Posted {
	var limited *Limited
	switch {
	case err == nil:
		p.Failures, p.LastError, p.NotBefore, p.Tried, p.Limits = 0, "", time.Time{}, time.Time{}, 0
	case errors.As(err, &limited):
		// It will be heard again: no failure of the way to people. Where it says the
		// same each time it is asked later and later, because each attempt is an entry;
		// and whatever it says, a button of what is over does not stand for an hour.
		p.Limits++
		p.NotBefore, p.LastError = now.Add(min(max(limited.After, Backoff(p.Limits)), maxBackoff)), text
	default:
		p.Failures++
		p.Tried, p.LastError = now, text
	}
	return p
}

// ErrGone is returned for a message that does not exist any more.
var ErrGone = errors.New("the message is gone")

// Limited is returned by a channel that asks to be left alone for a while.
type Limited struct {
	After time.Duration
}

// Error says for how long.
func (l *Limited) Error() string { return fmt.Sprintf("asked to wait %s", l.After) }

// Refused is returned by a channel that answered and did nothing of what it was
// asked: then nothing was posted that would have to be looked for.
type Refused struct {
	// Code is the channel's own word, e.g. not_in_channel.
	Code string
}

// MissingScope is the code of a channel that does not let us do that at all.
const MissingScope = "missing_scope"

// Error says what it answered.
func (r *Refused) Error() string { return "refused: " + r.Code }

const (
	firstBackoff = 15 * time.Second
	maxBackoff   = 5 * time.Minute
)

// Backoff is how long a way to people is left alone after that many failures in
// a row: 15 s, doubling, capped at 5 m. It never gives up.
func Backoff(failures int) time.Duration {
	d := firstBackoff
	for range min(failures-1, 10) {
		d *= 2
	}
	return min(d, maxBackoff)
}
