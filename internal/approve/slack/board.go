package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// Board is the channel where cards are put up. It asks once and never again by
// itself: the pass does, which knows what became of it.
type Board struct {
	client  *slack.Client
	channel string

	mu sync.Mutex
	// user is the bot's own; "" until it was asked.
	user string
}

// NewBoard puts cards up in a channel. botUser is the bot's own user id; "" when it
// is to be asked of Slack once it is needed.
func NewBoard(client *slack.Client, channel, botUser string) *Board {
	return &Board{client: client, channel: channel, user: botUser}
}

// content are the options of a message that shows the card.
func content(c approve.Card) []slack.MsgOption {
	blocks, fallback := Blocks(c)
	return []slack.MsgOption{slack.MsgOptionText(fallback, true), slack.MsgOptionBlocks(blocks...)}
}

// quiet keeps Slack from fetching what a message links to, and from reading marks
// in its text.
func quiet() slack.MsgOption {
	return slack.MsgOptionCompose(slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(), slack.MsgOptionDisableMarkdown())
}

// Post puts up a card and gives its message.
func (b *Board) Post(ctx context.Context, c approve.Card) (approve.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	channel, ts, err := b.client.PostMessageContext(ctx, b.channel, append(content(c), quiet())...)
	if err == nil && (channel == "" || ts == "") {
		err = errNoAnswer
	}
	if err != nil {
		return approve.Message{}, failed("chat.postMessage", err)
	}
	return approve.Message{Channel: channel, ID: ts, Shows: c.Gist}, nil
}

// Update makes a message show the card.
func (b *Board) Update(ctx context.Context, m approve.Message, c approve.Card) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	_, ts, _, err := b.client.UpdateMessageContext(ctx, m.Channel, m.ID, content(c)...)
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	return failed("chat.update", err)
}

// Say posts a note below a message.
func (b *Board) Say(ctx context.Context, m approve.Message, n approve.Note) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	text := some(approve.OneLine(n.Text, approve.MaxLine))
	_, ts, said, err := b.client.PostMessageWithResponseContext(ctx, m.Channel, slack.MsgOptionText(text, true),
		slack.MsgOptionBlocks(slack.NewRichTextBlock("", rich(text, false))), slack.MsgOptionTS(m.ID), quiet())
	switch {
	case err != nil:
	case ts == "":
		err = errNoAnswer
	case said.Timestamp != "" && said.ThreadTimestamp == "":
		// Slack puts a reply to what was deleted into the channel, and says ok.
		err = slack.SlackErrorResponse{Err: "thread_not_found"}
	}
	return failed("chat.postMessage", err)
}

// Look gives the link to a message that still stands there.
func (b *Board) Look(ctx context.Context, m approve.Message) (link string, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	link, err = b.client.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: m.Channel, Ts: m.ID})
	if err == nil && !linkable(link) {
		err = errNoAnswer
	}
	if err != nil {
		return "", failed("chat.getPermalink", err)
	}
	return link, nil
}

const (
	// findSlack is how far the clock of Slack may be behind ours.
	findSlack = time.Minute
	// pageSize is how many messages are asked for at once, maxPages how often: a
	// channel that busy cannot be searched, and must not look as if nothing was there.
	pageSize = 200
	maxPages = 20
)

// Find gives the messages of a ticket that this bot posted at since or later,
// oldest first. That nothing was found is only said when all was looked through.
func (b *Board) Find(ctx context.Context, ticket, digest string, since time.Time) ([]approve.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*Timeout)
	defer cancel()
	user, err := b.self(ctx)
	if err != nil {
		return nil, err
	}
	ask := slack.GetConversationHistoryParameters{ChannelID: b.channel, Oldest: stamp(since.Add(-findSlack)), Inclusive: true, Limit: pageSize}
	var found []approve.Message
	for range maxPages {
		page, err := b.page(ctx, &ask)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Messages {
			if gist, ours := shownBy(m, marker(ticket, digest)); ours && m.User == user {
				found = append(found, approve.Message{Channel: b.channel, ID: m.Timestamp, Shows: gist})
			}
		}
		ask.Cursor = page.ResponseMetaData.NextCursor
		if ask.Cursor == "" && !page.HasMore {
			slices.SortFunc(found, func(a, b approve.Message) int { return strings.Compare(a.ID, b.ID) })
			return found, nil
		}
		if ask.Cursor == "" {
			break
		}
	}
	return nil, errors.New("slack conversations.history: there is more in the channel than can be looked through")
}

func (b *Board) page(ctx context.Context, ask *slack.GetConversationHistoryParameters) (*slack.GetConversationHistoryResponse, error) {
	page, err := b.client.GetConversationHistoryContext(ctx, ask)
	if err == nil && !page.Ok {
		err = errNoAnswer
	}
	return page, failed("conversations.history", err)
}

// shownBy reports whether the message is one of the marker's, and the gist that it
// shows.
func shownBy(m slack.Message, marker string) (gist string, ours bool) {
	for _, b := range m.Blocks.BlockSet {
		rest, ok := strings.CutPrefix(b.ID(), marker)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		ours = true
		if _, g, ok := strings.Cut(rest, "/"+shows); ok {
			gist = g
		}
	}
	return gist, ours
}

// stamp is a time as Slack writes it.
func stamp(t time.Time) string {
	return fmt.Sprintf("%d.%06d", max(t.Unix(), 0), t.Nanosecond()/int(time.Microsecond))
}

// self is the bot's own user id.
func (b *Board) self(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.user != "" {
		return b.user, nil
	}
	who, err := b.client.AuthTestContext(ctx)
	if err == nil && who.UserID == "" {
		err = errNoAnswer
	}
	if err != nil {
		return "", failed("auth.test", err)
	}
	b.user = who.UserID
	return b.user, nil
}
