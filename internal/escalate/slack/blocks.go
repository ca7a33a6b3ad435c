package slack

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// The limits of a message. Slack refuses what is larger, and with it the page.
const (
	maxHeader   = 150
	maxSection  = 3000
	maxValue    = 2000
	maxFallback = 1000
	maxLine     = 600
	maxLink     = 1000
)

// ActionAck is the action of the button; its value is the page's id.
const ActionAck = "setpoint-ack"

func (r *Receiver) message(p escalate.Page) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(fallback(p), true), slack.MsgOptionBlocks(r.blocks(p)...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}

// blocks show the page: a heading, the five lines of the lead, the rest. All of it
// but the one link is plain text, in which nobody's words make a link, a mention or
// an emoji.
func (r *Receiver) blocks(p escalate.Page) []slack.Block {
	id := blockID(p)
	if !p.EndedAt.IsZero() {
		id = "" // It is not to be found as an open one.
	}
	head := slack.NewHeaderBlock(plain(cut(heading(p), maxHeader)), slack.HeaderBlockOptionBlockID(id))
	blocks := []slack.Block{head}
	if lead := leadOf(p); lead != "" {
		blocks = append(blocks, slack.NewSectionBlock(plain(cut(lead, maxSection)), nil, nil))
	}
	if p.Reason == escalate.Heartbeat {
		at := "the last one was sent at " + r.o.Now().UTC().Format("2006-01-02 15:04:05 UTC")
		return append(blocks, slack.NewContextBlock("", plain(at)))
	}
	if rest := rest(p); rest != "" {
		blocks = append(blocks, slack.NewSectionBlock(plain(whole(rest)), nil, nil))
	}
	if line := r.footer(p); line != nil {
		blocks = append(blocks, slack.NewContextBlock("", line))
	}
	if p.EndedAt.IsZero() && p.AckedBy == "" && len(p.ID) <= maxValue {
		ack := slack.NewButtonBlockElement(ActionAck, p.ID, plain("Acknowledge"))
		blocks = append(blocks, slack.NewActionBlock("", ack))
	}
	return blocks
}

// footer says who has seen it, and leads to more.
func (r *Receiver) footer(p escalate.Page) *slack.TextBlockObject {
	text := ""
	if p.AckedBy != "" {
		text = "acknowledged by " + execute.CleanText(p.AckedBy, 100)
	}
	link := p.Link(r.o.ExternalURL)
	if len(link) > maxLink {
		link = "" // Half of it leads nowhere.
	}
	switch {
	case link == "" && text == "":
		return nil
	case link == "":
		return plain(text)
	case text != "":
		text += " · "
	}
	return slack.NewTextBlockObject(slack.MarkdownType, fmt.Sprintf("%s<%s|this page in Setpoint>", escaped(text), escaped(link)), false, true)
}

func plain(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// escape is what Slack asks for in text that it looks for markup.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escaped(s string) string { return escape.Replace(s) }

// heading is one line that says how bad it is, and about what.
func heading(p escalate.Page) string {
	subject := p.Service
	if subject == "" {
		subject = "Setpoint"
	}
	switch {
	case !p.EndedAt.IsZero():
		return execute.CleanText("over: "+subject+": "+p.EndReason, maxHeader-1)
	case p.Reason == escalate.Heartbeat:
		return "Setpoint reaches this channel"
	}
	return execute.CleanText(strings.ToUpper(p.Severity)+": "+subject+": "+p.Now, maxHeader-1)
}

// fallback is what a notification and a screen reader say.
func fallback(p escalate.Page) string {
	return execute.CleanText(heading(p)+": "+p.Summary, maxFallback)
}

// changeOf is what is said below the message.
func changeOf(p escalate.Page) string {
	if !p.EndedAt.IsZero() {
		return "over: " + p.EndReason
	}
	if p.Lead.Why != "" {
		return "now " + p.Now + ": " + p.Lead.Why
	}
	return "now " + p.Now + ": " + p.Summary
}

func leadOf(p escalate.Page) string {
	var lines []string
	for _, l := range p.Lead.Lines() {
		if l = execute.CleanText(l, maxLine-1); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return execute.CleanText(p.Summary, maxLine-1)
	}
	return strings.Join(lines, "\n")
}

// rest is the text without the lead that it begins with.
func rest(p escalate.Page) string {
	text := p.Text
	for _, l := range p.Lead.Lines() {
		if after, ok := strings.CutPrefix(text, l); ok && l != "" {
			text = strings.TrimPrefix(after, "\n")
		}
	}
	var lines []string
	for line := range strings.Lines(text) {
		indent := ""
		if strings.HasPrefix(line, "  ") {
			indent = "  "
		}
		if l := execute.CleanText(line, maxLine-1); l != "" {
			lines = append(lines, indent+l)
		}
	}
	return strings.Join(lines, "\n")
}

// whole is the rest as far as it fits, cut between lines, and says so.
func whole(text string) string {
	if utf8.RuneCountInString(text) <= maxSection {
		return text
	}
	const note = "\n… the rest does not fit here: setpoint explain shows it"
	kept := cut(text, maxSection-utf8.RuneCountInString(note))
	if at := strings.LastIndexByte(kept, '\n'); at > 0 {
		kept = kept[:at]
	}
	return kept + note
}

// cut keeps so many characters.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
