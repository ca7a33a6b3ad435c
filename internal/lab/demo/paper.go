package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// paper is what a person watches. It is safe for concurrent use.
type paper struct {
	mu     sync.Mutex
	w      io.Writer
	colour bool
	began  time.Time
	// prompt is an open question, which stays the last line.
	prompt string
}

// The colours, used only on a terminal.
const (
	plain  = ""
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

func (p *paper) paint(colour, text string) string {
	if !p.colour || colour == plain || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// say prints one line and puts an open question below it again.
func (p *paper) say(colour, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if p.prompt != "" {
		text = "\n" + text
	}
	fmt.Fprint(p.w, p.paint(colour, text)+"\n"+p.prompt)
}

// ask puts a question; what is said meanwhile goes above it.
func (p *paper) ask(question string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompt = question
	fmt.Fprint(p.w, question)
}

// answered takes the question away.
func (p *paper) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompt = ""
}

// dropped takes away a question that nobody answered here.
func (p *paper) dropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prompt != "" {
		fmt.Fprintln(p.w)
	}
	p.prompt = ""
}

func (p *paper) elapsed() time.Duration { return time.Since(p.began) }

// rows print passes that said something new.
func (p *paper) rows(rs []row) {
	for _, r := range rs {
		p.say(r.colour(), "%s", r.line(p.elapsed()))
	}
}

func (r row) colour() string {
	switch r.state {
	case "breached":
		return red
	case "unknown":
		return yellow
	}
	return green
}

// event prints what is no pass: a fault, a question, a page.
func (p *paper) event(service, format string, args ...any) {
	p.say(bold, "%5s  %-10s  %s", clock(p.elapsed()), service, fmt.Sprintf(format, args...))
}

// more continues an event.
func (p *paper) more(format string, args ...any) {
	p.say(plain, "%19s%s", "", fmt.Sprintf(format, args...))
}

// verdicts print what was measured, and what was not.
func (p *paper) verdicts(vs []verdict) {
	bad := 0
	for _, v := range vs {
		service := v.service
		if service == "" {
			service = "all"
		}
		line := fmt.Sprintf("%-10s  %s", service, v.text)
		if v.holds() {
			p.say(green, "  measured      %s", line)
			continue
		}
		bad++
		p.say(red, "  NOT measured  %s: %s", line, v.why)
	}
	p.say(plain, "")
	p.say(bold, "%d of %d claims were measured, in %s.", len(vs)-bad, len(vs), seconds(p.elapsed()))
}

// ends prints the last line of each service, which names its outcome.
func (p *paper) ends(e evidence) {
	for _, s := range plot {
		line, good := ending(e, s.service)
		colour := red
		if good {
			colour = green
		}
		lines := wrapped(line, "              ")
		p.say(colour, "  %-10s  %s", s.service, strings.Join(lines, "\n"))
	}
}

// ending names the outcome of a service and how it came to it.
func ending(e evidence, service string) (line string, good bool) {
	ep, ok := e.episodes[service]
	if !ok {
		return "no episode began", false
	}
	var did []string
	for _, a := range e.actions(service) {
		did = append(did, deed(a))
	}
	if len(did) == 0 {
		did = []string{"nothing was done"}
	}
	if p, ok := e.page(service, ""); ok {
		did = append(did, fmt.Sprintf("the pager rang (%s) after %s", p.Labels["reason"], seconds(p.OpenedAt.Sub(ep.began))))
	}
	how := strings.Join(did, "; ")
	switch {
	case !ep.recovered.IsZero():
		return fmt.Sprintf("recovered in %s: %s", seconds(ep.recovered.Sub(ep.began)), how), true
	case ep.state == "unknown":
		_, blind := e.page(service, "blind")
		return fmt.Sprintf("unknown (%s): %s", ep.reason, how), blind
	}
	return fmt.Sprintf("not recovered (%s): %s", ep.state, how), false
}

func deed(a Action) string {
	by := a.Verdict
	if a.ApprovedBy != "" {
		by = "approved by " + a.ApprovedBy
	}
	text := fmt.Sprintf("%s (%s) %s", a.Action, by, a.Outcome)
	if a.Before != nil {
		text += fmt.Sprintf(", %s then %s errors", percent(a.Before.ErrorRatio), percent(a.After.ErrorRatio))
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds())) }

// wrapped breaks a long sentence where its author put a semicolon.
func wrapped(text, indent string) []string {
	parts := strings.Split(text, "; ")
	for i := range parts[1:] {
		parts[i] += ";"
		parts[i+1] = indent + parts[i+1]
	}
	return parts
}
