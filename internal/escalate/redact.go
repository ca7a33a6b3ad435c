package escalate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

const (
	// MinSecret is the length from which a secret is cut out of pages, in bytes. A
	// shorter one could stand in any word.
	MinSecret = 8
	// hidden stands where a secret stood.
	hidden = "<secret>"
	// maxText bounds a page's text, whoever made it.
	maxText = 100_000
)

// Redacted is a receiver that is given no secret, wherever in a page one got into
// it: a label's value, a version, an actuator's error, a model's words. secrets are
// asked each time, because they rotate. What it makes of a page has no control
// character in it, nor one that nobody sees.
func Redacted(r Receiver, secrets func() []string) Receiver { return redacted{r, secrets} }

type redacted struct {
	Receiver
	secrets func() []string
}

// Send hands on the page without secrets.
func (r redacted) Send(ctx context.Context, p Page, ref string) (newRef string, err error) {
	known := r.secrets()
	newRef, err = r.Receiver.Send(ctx, Redact(p, known), ref)
	if err != nil {
		// What a server repeats goes into the log and into the ledger.
		if clean := cutter(known).cut(err.Error()); clean != err.Error() {
			err = errors.New(clean)
		}
	}
	return newRef, err
}

// Redact gives the page without the secrets. Its id, service, reason and severity
// stay as they are: they are what receivers know the page by.
func Redact(p Page, secrets []string) Page {
	c := cutter(secrets)
	for _, line := range []*string{
		&p.Summary, &p.Now, &p.EndReason, &p.AckedBy,
		&p.Lead.Broken, &p.Lead.Step, &p.Lead.Why, &p.Lead.Until, &p.Lead.Do,
	} {
		*line = execute.CleanText(c.cut(*line), maxText)
	}
	p.Text = c.text(p.Text)
	return p
}

// secretCutter holds the secrets, longest first, each as it may stand in a page.
type secretCutter struct{ words []string }

func cutter(secrets []string) secretCutter {
	var words []string
	for _, s := range secrets {
		if len(s) < MinSecret {
			continue
		}
		// A page is cleaned where it is made, which changes a secret too.
		quoted := strings.Trim(strconv.QuoteToASCII(s), `"`)
		for _, form := range []string{s, execute.CleanText(s, len(s)), approve.OneLine(s, len(s)), quoted, approve.OneLine(quoted, len(quoted))} {
			if len(form) >= MinSecret && !slices.Contains(words, form) {
				words = append(words, form)
			}
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	return secretCutter{words}
}

func (c secretCutter) cut(s string) string {
	for _, w := range c.words {
		s = strings.ReplaceAll(s, w, hidden)
	}
	return c.tails(s)
}

// tails cuts out what is left of a secret where a line was cut within it.
func (c secretCutter) tails(s string) string {
	const mark = "…"
	if !strings.Contains(s, mark) {
		return s
	}
	parts := strings.Split(s, mark)
	for i, part := range parts[:len(parts)-1] {
		parts[i] = c.tail(part)
	}
	return strings.Join(parts, mark)
}

func (c secretCutter) tail(s string) string {
	for _, w := range c.words {
		for n := min(len(w)-1, len(s)); n >= MinSecret; n-- {
			if strings.HasSuffix(s, w[:n]) {
				return s[:len(s)-n] + hidden
			}
		}
	}
	return s
}

// text keeps the lines and their indents.
func (c secretCutter) text(s string) string {
	s = c.cut(s) // A secret may have lines.
	var b strings.Builder
	for line := range strings.Lines(s) {
		rest := strings.TrimLeft(line, " ")
		b.WriteString(strings.Repeat(" ", min(len(line)-len(rest), 8)))
		b.WriteString(execute.CleanText(rest, maxText))
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
