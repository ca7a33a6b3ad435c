package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of the change feed.
const (
	// MaxChangeWord bounds what a change says, in bytes.
	MaxChangeWord = 200
	// MaxChanges is how many changes a proposer and a policy are shown.
	MaxChanges = 20
	// ChangesKept is how old a change may be to be shown.
	ChangesKept = 7 * 24 * time.Hour
	// ChangeAhead is how far ahead of this host's clock a reporter's may be. What
	// is later has not happened, or nobody knows when it did.
	ChangeAhead = 5 * time.Minute
)

// Change is one entry of the change feed: somebody changed a service. It is
// context for a proposal and for policy, and never evidence of a state.
type Change struct {
	// At is when it took effect, by the clock of whoever reports it, in whole
	// seconds where a person or a file does.
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	// What and Version are words of the reporter, e.g. deploy and v42.
	What    string `json:"what"`
	Version string `json:"version"`
}

// ChangeTime is a time as a change has it: in UTC, and cut to whole seconds.
// Reporters have no finer ones in common, and a report that is made twice within
// a second is no second change.
func ChangeTime(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Newest orders two changes, the newer first; equal times by their words, so
// that one feed always reads alike.
func (c Change) Newest(other Change) int {
	if n := other.At.Compare(c.At); n != 0 {
		return n
	}
	return strings.Compare(c.Service+"\x00"+c.What+"\x00"+c.Version, other.Service+"\x00"+other.What+"\x00"+other.Version)
}

// Check says what keeps a change from being taken: no time, or one that JSON
// cannot write, no service, no word for what was done, or a word that is long or
// cannot be printed in one line.
func (c Change) Check() error {
	if c.At.IsZero() {
		return errors.New("time is missing")
	}
	if y := c.At.UTC().Year(); y < 0 || y > 9999 {
		// The zone of a time at either end of the calendar moves it beyond.
		return errors.New("time is beyond the years 0 to 9999")
	}
	for _, w := range []struct {
		key, word string
		needed    bool
	}{{"service", c.Service, true}, {"what", c.What, true}, {"version", c.Version, false}} {
		if w.needed && w.word == "" {
			return errors.New(w.key + " is missing")
		}
		if why := unfit(w.word); why != "" {
			return errors.New(w.key + " " + why)
		}
	}
	return nil
}

// unfit says why a reporter's word is not taken; "" when it is. Bidirectional
// and other format characters are control characters to whoever reads a line.
func unfit(word string) string {
	switch {
	case len(word) > MaxChangeWord:
		return fmt.Sprintf("has %d bytes, want %d at most", len(word), MaxChangeWord)
	case !utf8.ValidString(word):
		return "is not UTF-8"
	case strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a control character"
	}
	return ""
}

// RecentChanges are what a proposer is shown at an instant: the newest changes
// of the service itself and of others that it depends on, newest first, each
// once. Half of the room is the service's own, so that a busy dependency does
// not hide what was done to the service.
func RecentChanges(now time.Time, own, others []Change) []Change {
	mine := recent(now, own)
	mine = mine[:min(len(mine), MaxChanges)]
	reserved := min(len(mine), MaxChanges/2)
	rest := recent(now, slices.Concat(mine[reserved:], others))
	out := slices.Concat(mine[:reserved], rest[:min(len(rest), MaxChanges-reserved)])
	slices.SortFunc(out, Change.Newest)
	return slices.CompactFunc(out, func(a, b Change) bool { return a.Newest(b) == 0 })
}

// recent leaves out what is too old, or has not happened yet.
func recent(now time.Time, all []Change) []Change {
	out := make([]Change, 0, len(all))
	for _, c := range all {
		if age := now.Sub(c.At); !c.At.IsZero() && age <= ChangesKept && age >= -ChangeAhead {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, Change.Newest)
	return slices.CompactFunc(out, func(a, b Change) bool { return a.Newest(b) == 0 })
}
