package escalate

import (
	"slices"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// notShown is why a card whose bytes hold a secret has no button: people approve
// what they see, and these are not to be seen.
const notShown = "what would be executed holds a secret of this site, which is not shown"

// RedactCard gives the card without the secrets, as Redact does of a page: a card
// has the same strangers' words in it. The bytes that an approval executes are
// shown as they are or not at all, and then nothing is approved by a click. What a
// channel knows the card by stays as it is.
func RedactCard(c approve.Card, secrets []string) approve.Card {
	k := cutter(secrets)
	for _, line := range []*string{
		&c.Title, &c.Lead.Broken, &c.Lead.Step, &c.Lead.Why, &c.Lead.Until, &c.Lead.Do, &c.NoClick, &c.Words, &c.Speaker,
	} {
		*line = k.line(*line)
	}
	if k.cut(c.Exact) != c.Exact {
		c.Exact = ""
		if c.Open() {
			c.NoClick = notShown
			c.Lead.Do = "do: deny below, or look first: setpoint explain " + approve.Argument(c.Service) + "; no button approves it, because " + notShown
		}
	}
	c.Sections = slices.Clone(c.Sections)
	for i, s := range c.Sections {
		s.Heading, s.Lines = k.line(s.Heading), slices.Clone(s.Lines)
		for j, line := range s.Lines {
			s.Lines[j] = k.line(line)
		}
		c.Sections[i] = s
	}
	c.Notes = slices.Clone(c.Notes)
	for i, n := range c.Notes {
		c.Notes[i] = k.note(n)
	}
	return c
}

// RedactNote is a note without the secrets.
func RedactNote(n approve.Note, secrets []string) approve.Note { return cutter(secrets).note(n) }

func (c secretCutter) note(n approve.Note) approve.Note {
	n.Text = c.line(n.Text)
	return n
}

// line is one line without secrets. What holds none stays what it was.
func (c secretCutter) line(s string) string {
	if clean := c.cut(s); clean != s {
		return execute.CleanText(clean, maxText)
	}
	return s
}
