// Package slack puts pages into a Slack channel. It takes a page and gives one
// message, which is changed in place for as long as the page lives, so that a
// channel shows what is, and not a trail of what was.
package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

const (
	// defaultTimeout bounds one delivery, whatever it takes.
	defaultTimeout = 8 * time.Second
	// findTimeout bounds the look for an earlier message: a page must not wait for
	// it.
	findTimeout = 2 * time.Second
	// findAmong is among how many messages of the channel an earlier one is looked
	// for.
	findAmong = 100
)

// Options are one receiver of setpoint.yaml.
type Options struct {
	Name string
	// Channel is the channel's id.
	Channel string
	Client  *slack.Client
	Now     func() time.Time
	// Timeout of one delivery; zero is 8 s.
	Timeout time.Duration
	// ExternalURL is where the agent's pages are; empty links nowhere.
	ExternalURL string
}

// Receiver is one channel. It is safe for concurrent use.
type Receiver struct{ o Options }

var _ escalate.Receiver = (*Receiver)(nil)

// New returns a receiver.
func New(o Options) (*Receiver, error) {
	switch {
	case o.Client == nil:
		return nil, fmt.Errorf("receiver %q: slack: no client (Options.Client): add slack with botTokenFile to setpoint.yaml", o.Name)
	case o.Channel == "":
		return nil, fmt.Errorf("receiver %q: slack: no channel", o.Name)
	case o.Now == nil:
		return nil, fmt.Errorf("receiver %q: slack: no clock (Options.Now)", o.Name)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Receiver{o: o}, nil
}

// Name returns the receiver's name.
func (r *Receiver) Name() string { return r.o.Name }

// Send makes the channel show the page. A message that is known by ref is changed,
// which notifies nobody, so another reason is also said below it; one that was
// deleted is posted again while the page is open. A page that opens anew after its
// end gets a message of its own, since only a new message notifies.
func (r *Receiver) Send(ctx context.Context, p escalate.Page, ref string) (newRef string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	next := reference{channel: r.o.Channel, since: sinceOf(p), word: word(p)}
	var known []reference
	if one, ok := parse(ref); ok {
		known = append(known, one)
	}
	if next.word == over {
		return r.end(ctx, p, known)
	}
	if len(known) == 0 {
		known = r.find(ctx, p)
	}
	for _, k := range known {
		if k.word == over || k.since != next.since || k.channel != next.channel {
			continue
		}
		switch err := r.update(ctx, p, k); {
		case gone(err):
			continue // Deleted, or somebody else's that bears our mark.
		case err != nil:
			return "", r.failed(p, err)
		}
		next.ts = k.ts
		return next.String(), nil
	}
	newRef, err = r.post(ctx, p, next)
	if err == nil {
		r.supersede(ctx, p, known)
	}
	return newRef, err
}

// supersede takes back a message that nobody will change any more: its page ended,
// which it was never told, and is open anew, or the receiver has another channel
// now. People have been told by then, so this may fail.
func (r *Receiver) supersede(ctx context.Context, p escalate.Page, old []reference) {
	p.EndedAt, p.EndReason = r.o.Now(), "a newer message shows it"
	for _, k := range old {
		if k.word != over && p.Reason != escalate.Heartbeat {
			_ = r.update(ctx, p, k) // It was for what is over.
		}
	}
}

// end makes the messages of a page that ended say so: the one that is known, and
// those that were posted besides although their answer was lost. Each left as it was
// would ask for help for ever.
func (r *Receiver) end(ctx context.Context, p escalate.Page, known []reference) (newRef string, err error) {
	var first reference
	for i, k := range append(known, r.find(ctx, p)...) {
		if i > 0 && k.ts == first.ts {
			continue
		}
		if k.word != over {
			if err := r.update(ctx, p, k); err != nil && !gone(err) {
				return "", r.failed(p, err)
			}
		}
		if k.word = over; i == 0 {
			first = k
		}
	}
	if first.ts == "" {
		return "", nil // Nothing there shows it as open.
	}
	return first.String(), nil
}

// errNoAnswer: HTTP was well, and what was asked for did not come. Nobody was told.
var errNoAnswer = errors.New("the answer is not Slack's")

func (r *Receiver) post(ctx context.Context, p escalate.Page, next reference) (string, error) {
	_, ts, err := r.o.Client.PostMessageContext(ctx, r.o.Channel, r.message(p)...)
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	if err != nil {
		return "", r.failed(p, err)
	}
	next.ts = ts
	return next.String(), nil
}

// update changes the message, and says below it what has changed so much that
// people should hear of it. When the second fails both are done again.
func (r *Receiver) update(ctx context.Context, p escalate.Page, known reference) error {
	_, ts, _, err := r.o.Client.UpdateMessageContext(ctx, known.channel, known.ts, r.message(p)...)
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	if err != nil || known.word == word(p) || p.Reason == escalate.Heartbeat {
		return err
	}
	_, ts, err = r.o.Client.PostMessageContext(ctx, known.channel, r.reply(p, known)...)
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	return err
}

// reply is plain text like the message above it: as mere text Slack would make
// links, emoji and marks of words that may be a stranger's.
func (r *Receiver) reply(p escalate.Page, known reference) []slack.MsgOption {
	text := execute.CleanText(changeOf(p), maxFallback)
	opts := []slack.MsgOption{
		slack.MsgOptionText(text, true), slack.MsgOptionBlocks(slack.NewSectionBlock(plain(text), nil, nil)),
		slack.MsgOptionTS(known.ts), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if p.EndedAt.IsZero() {
		opts = append(opts, slack.MsgOptionBroadcast())
	}
	return opts
}

// find looks for messages of the page that were posted and whose ts was never
// recorded, newest first. Where it cannot look there is none: a second message is
// better than none.
func (r *Receiver) find(ctx context.Context, p escalate.Page) (found []reference) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	seen, err := r.o.Client.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: r.o.Channel, Limit: findAmong,
	})
	if err != nil {
		return nil
	}
	for _, m := range seen.Messages {
		for _, b := range m.Blocks.BlockSet {
			if b.ID() == blockID(p) {
				// It was posted a moment ago, most likely by the delivery that failed.
				found = append(found, reference{channel: r.o.Channel, ts: m.Timestamp, since: sinceOf(p), word: p.Now})
				break
			}
		}
	}
	return found
}

// gone reports that there is no message that could be changed.
func gone(err error) bool {
	switch code(err) {
	case "message_not_found", "cant_update_message", "edit_window_closed":
		return true
	}
	return false
}

func code(err error) string {
	var said slack.SlackErrorResponse
	if errors.As(err, &said) {
		return said.Err
	}
	return ""
}

// remedies are what to do about Slack's words.
var remedies = map[string]string{
	"not_in_channel":    "invite the app into the channel",
	"channel_not_found": "is the channel's id right, and the app a member of it?",
	"is_archived":       "the channel is archived: name another one",
	"invalid_auth":      "the bot token is not valid: renew slack.botTokenFile",
	"token_revoked":     "the bot token was revoked: renew slack.botTokenFile",
	"account_inactive":  "the app was removed from the workspace",
	"missing_scope":     "the app needs the scope chat:write",
}

// failed is an error that names the page and the receiver, and says what to do
// where that is known.
func (r *Receiver) failed(p escalate.Page, err error) error {
	text := execute.CleanText(err.Error(), 200)
	var limited *slack.RateLimitedError
	switch {
	case errors.As(err, &limited):
		text = fmt.Sprintf("HTTP 429: it wants to be left alone for %s", limited.RetryAfter)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("page %s to slack %s: no answer within %s: %w", p.ID, r.o.Name, r.o.Timeout, context.DeadlineExceeded)
	case remedies[code(err)] != "":
		text += ": " + remedies[code(err)]
	}
	return fmt.Errorf("page %s to slack %s: %s", p.ID, r.o.Name, text)
}
