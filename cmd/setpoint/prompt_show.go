package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (a *app) showRendering(p promptRendering, output string) error {
	if output != formatTable {
		return emit(a.out, output, p)
	}
	var names []string
	for _, t := range p.Templates {
		names = append(names, t.ID+"@"+t.Version)
	}
	why := "a model is asked with them when the service is in a breach on which it may be"
	if !p.Asked {
		why = "no model is asked: " + p.Why
	}
	w := &promptPaper{}
	state := p.State
	if p.Reason != "" {
		state += " (" + p.Reason + ")"
	}
	w.line("%s is %s; these are the messages and the schema as measured now", p.Service, state)
	w.line("  %s", why)
	w.line("  about %d of %d tokens, reply %s, digest %s", p.EstimatedTokens, p.Limit, p.Reply, short(p.Digest))
	w.line("  templates %s", strings.Join(names, " "))
	w.line("  left out: %s, %s of breakdowns, %s",
		count(p.Omitted.Tried, "attempt"), count(p.Omitted.Rows, "row"), count(p.Omitted.Changes, "change"))
	w.part("system", p.System)
	w.part("user", p.User)
	if p.Reply == "json_object" {
		w.part("schema, which this mode does not send", string(p.Schema))
	} else {
		w.part("schema", string(p.Schema))
	}
	return a.print("%s", w.text.String())
}

// promptPaper is text for people, in which nothing drives a terminal.
type promptPaper struct{ text strings.Builder }

func (p *promptPaper) line(format string, args ...any) {
	p.text.WriteString(visible(fmt.Sprintf(format, args...)) + "\n")
}

// part is a text as it is, under its name.
func (p *promptPaper) part(name, text string) {
	p.text.WriteString("\n--- " + name + " ---\n" + visible(strings.TrimRight(text, "\n")) + "\n")
}

// visible writes whatever a terminal would obey, or not show, as escapes. Line
// breaks stay.
func visible(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[0])
		case r == '\n' || r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Variation_Selector, r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		s = s[size:]
	}
	return out.String()
}
