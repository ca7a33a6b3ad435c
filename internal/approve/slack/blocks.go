package slack

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// The limits of Slack that a card could meet. maxAll is below the 13,200
// characters beyond which it refuses all blocks together.
const (
	maxAll      = 12800
	maxBlocks   = 50
	maxID       = 255
	maxValue    = 2000
	maxConfirm  = 300
	maxFallback = 3000
	maxURL      = 600
)

// Blocks gives a card as Block Kit, and the text of its notification. The lead
// comes first, whole; the bytes that an approval executes are shown whole or not at
// all; what lies between is shortened where it does not fit.
//
// No text is given as mrkdwn, which would turn what strangers wrote into links and
// mentions: it is plain or rich text, which Slack shows as it is.
func Blocks(c approve.Card) (blocks []slack.Block, fallback string) {
	head := []slack.Block{leadBlock(c)}
	tail := tailBlocks(c)
	room := maxAll - size(head) - size(tail)
	blocks = append(head, sectionBlocks(c, room, maxBlocks-len(head)-len(tail))...)
	return append(blocks, tail...), fallbackText(c)
}

func leadBlock(c approve.Card) slack.Block {
	var lines []slack.RichTextElement
	for _, line := range c.Lead.Lines() {
		lines = append(lines, rich(line, false))
	}
	return slack.NewRichTextBlock(leadID(c), lines...)
}

// tailBlocks stand below the sections: the proposer's words, the exact bytes, what
// identifies them, the buttons.
func tailBlocks(c approve.Card) []slack.Block {
	var blocks []slack.Block
	if c.Words != "" {
		blocks = append(blocks, slack.NewRichTextBlock("", rich(c.WordsHeading(), true), rich(c.Words, false)))
	}
	if c.Exact != "" {
		exact := &slack.RichTextPreformatted{
			Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(c.Exact, nil)},
		}
		blocks = append(blocks, slack.NewRichTextBlock("", rich(c.ExactHeading(), true), exact))
	}
	if b := contextBlock(c); b != nil {
		blocks = append(blocks, b)
	}
	if b := actions(c); b != nil {
		blocks = append(blocks, b)
	}
	return blocks
}

// sectionBlocks are as many lines as there is room for, and then where the rest is.
func sectionBlocks(c approve.Card, room, most int) []slack.Block {
	service := c.Service
	if c.Ticket == approve.DigestCard {
		service = ""
	}
	rest := "… setpoint get approvals has the rest"
	if service != "" {
		rest = "… setpoint explain " + approve.Argument(service) + " has the rest"
	}
	reserve := size([]slack.Block{sectionBlock(approve.Section{Heading: strings.Repeat("x", maxHeading), Lines: []string{rest}})})
	var blocks []slack.Block
	for _, s := range c.Sections {
		whole := sectionBlock(s)
		n := size([]slack.Block{whole})
		if n <= room-reserve && len(blocks) < most-1 {
			blocks, room = append(blocks, whole), room-n
			continue
		}
		if part, fits := shortened(s, rest, room); fits && len(blocks) < most {
			blocks = append(blocks, part)
		}
		return blocks
	}
	return blocks
}

// shortened is the section with as many lines as fit, and where the rest is.
func shortened(s approve.Section, rest string, room int) (part slack.Block, fits bool) {
	for n := len(s.Lines) - 1; n >= 0; n-- {
		part = sectionBlock(approve.Section{Heading: s.Heading, Lines: append(s.Lines[:n:n], rest)})
		if size([]slack.Block{part}) <= room {
			return part, true
		}
	}
	return nil, false
}

// maxHeading is how long a heading is at most, in characters.
const maxHeading = 100

func sectionBlock(s approve.Section) slack.Block {
	var lines []slack.RichTextElement
	for _, line := range s.Lines {
		lines = append(lines, rich(line, false))
	}
	return slack.NewRichTextBlock("", rich(approve.OneLine(s.Heading, maxHeading), true), slack.NewRichTextList(slack.RTEListBullet, 0, lines...))
}

func contextBlock(c approve.Card) slack.Block {
	var of []slack.MixedElement
	if c.Ticket != approve.DigestCard {
		of = append(of, plainText("ticket "+approve.OneLine(c.Ticket, maxHeading)+", digest "+approve.OneLine(c.Digest, maxHeading)))
	}
	for _, l := range []struct{ name, url string }{{"page", c.PageURL}, {"trace", c.TraceURL}} {
		if linkable(l.url) {
			// The only mrkdwn: a link of ours, of characters that end nothing.
			of = append(of, slack.NewTextBlockObject(slack.MarkdownType, "<"+slackutilsx.EscapeMessage(l.url)+"|"+l.name+">", false, true))
		}
	}
	if len(of) == 0 {
		return nil
	}
	return slack.NewContextBlock("", of...)
}

// linkable: a URL that Slack takes and that stays inside of its brackets.
func linkable(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || width(slackutilsx.EscapeMessage(raw)) > maxURL {
		return false
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] > '~' || strings.IndexByte("<>|\"`\\", raw[i]) >= 0 {
			return false
		}
	}
	return true
}

// actions are the buttons of a card that asks. Nothing is approved by a click on
// bytes that are not shown.
func actions(c approve.Card) slack.Block {
	id, value := marker(c.Ticket, c.Digest), c.Ticket+" "+c.Digest
	if !c.Open() || c.Ticket == approve.DigestCard || c.Digest == "" || len(id) > maxID || len(value) > maxValue {
		return nil
	}
	var buttons []slack.BlockElement
	if c.NoClick == "" && c.Exact != "" {
		buttons = append(buttons, slack.NewButtonBlockElement(actionApprove, value, plainText("Approve")).
			WithStyle(slack.StylePrimary).WithConfirm(confirmation(c)))
	}
	deny := slack.NewButtonBlockElement(actionDeny, value, plainText("Deny")).WithStyle(slack.StyleDanger)
	return slack.NewActionBlock(id, append(buttons, deny)...)
}

// confirmation says once more what is done to which target.
func confirmation(c approve.Card) *slack.ConfirmationBlockObject {
	const after = ". It is measured and checked again before it is sent."
	step := strings.TrimPrefix(c.Lead.Step, "would do: ")
	what := approve.OneLine(step, maxConfirm-len(after))
	return slack.NewConfirmationBlockObject(plainText(approve.OneLine("Approve "+c.Ticket+" for "+c.Service+"?", 100)),
		plainText(what+after), plainText("Approve"), plainText("Back"))
}

// marker names the messages of a ticket, so that a post whose answer was lost is
// found again. Without a digest it names those of the ticket, whatever the bytes.
func marker(ticket, digest string) string {
	if digest == "" {
		return "setpoint/" + ticket
	}
	return "setpoint/" + ticket + "/" + digest
}

// leadID is the marker with what the message shows. A message without buttons has
// to be found too.
func leadID(c approve.Card) string {
	id := marker(c.Ticket, c.Digest) + "/" + shows + c.Gist
	if len(id) > maxID {
		return ""
	}
	return id
}

// shows precedes the gist in an id.
const shows = "shows-"

func rich(text string, bold bool) *slack.RichTextSection {
	var style *slack.RichTextSectionTextStyle
	if bold {
		style = &slack.RichTextSectionTextStyle{Bold: true}
	}
	return slack.NewRichTextSection(slack.NewRichTextSectionTextElement(some(text), style))
}

func plainText(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, some(text), false, false)
}

// some is the text, or something in its place: Slack takes no empty one.
func some(text string) string {
	if strings.TrimSpace(text) == "" {
		return "–"
	}
	return text
}

// size is what Slack counts of blocks: the characters of their JSON.
func size(blocks []slack.Block) int { return width(blocks) }

func width(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return maxAll
	}
	return utf8.RuneCount(b)
}

// fallbackText is what a notification shows and a screen reader reads: the title
// and the lead. It is escaped when it is sent, which may make it longer.
func fallbackText(c approve.Card) string {
	lines := c.Lead.Lines()
	text := strings.TrimSpace(c.Title + "\n" + strings.Join(lines[:], "\n"))
	runes := []rune(some(text))
	for len(slackutilsx.EscapeMessage(string(runes))) > maxFallback {
		runes = runes[:len(runes)*9/10]
	}
	return string(runes)
}
