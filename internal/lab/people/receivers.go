package people

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// screen is what one receiver shows a person: the pages that it holds open. It
// stays as it is while the receiver takes nothing.
type screen struct {
	mu   sync.Mutex
	open map[string]escalate.Page
}

func (s *screen) take(p escalate.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.EndedAt.IsZero() {
		delete(s.open, p.ID)
		return
	}
	s.open[p.ID] = p
}

func (s *screen) pages() map[string]escalate.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.open)
}

// receiver is one as one process reaches it.
type receiver struct {
	name   string
	w      *world
	screen *screen
	dead   func() bool
}

// Name is the receiver's.
func (r receiver) Name() string { return r.name }

// Send takes the page, or does whatever is planned for now.
func (r receiver) Send(ctx context.Context, p escalate.Page, _ string) (string, error) {
	now := r.w.now()
	switch {
	case r.dead(), r.w.has(Down, r.name, now):
		return "", errFault
	case r.w.has(Hang, r.name, now):
		<-ctx.Done()
		return "", ctx.Err()
	case r.w.has(Slow, r.name, now):
		wait(ctx, 4*time.Second)
	}
	if r.dead() {
		return "", errFault
	}
	r.screen.take(p)
	if r.w.has(LostReply, r.name, now) {
		return "", errFault
	}
	return "ref-" + p.ID, nil
}

// hinders are the faults under which a receiver would not say that it took a page.
var hinders = []Fault{Down, Hang, LostReply}

// hindered reports whether a receiver would not say now that it took a page.
func (w *world) hindered(receiver string, at time.Time) bool {
	return slices.ContainsFunc(hinders, func(f Fault) bool { return w.has(f, receiver, at) })
}

// channel is where approvals are asked.
type channel struct {
	w  *world
	mu sync.Mutex
	// messages are all that were posted, oldest first.
	messages []*message
}

type message struct {
	id      string
	at      time.Time
	card    approve.Card
	deleted bool
}

// board is the channel as one process reaches it.
type board struct {
	*channel
	dead func() bool
}

// blocked says what is wrong with the channel now; nil is nothing.
func (b board) blocked(ctx context.Context) error {
	now := b.w.now()
	switch {
	case b.dead(), b.w.has(BoardDown, "", now):
		return errFault
	case b.w.has(BoardHangs, "", now):
		wait(ctx, 8*time.Second)
		return errFault
	case b.w.has(BoardLimited, "", now):
		return &approve.Limited{After: 30 * time.Second}
	}
	return nil
}

// lost is the error of a reply that did not come.
func (b board) lost() error {
	if b.dead() || b.w.has(BoardLost, "", b.w.now()) {
		return errFault
	}
	return nil
}

// Post puts up a card.
func (b board) Post(ctx context.Context, c approve.Card) (approve.Message, error) {
	if err := b.blocked(ctx); err != nil {
		b.w.cover("a card was not posted")
		return approve.Message{}, err
	}
	b.mu.Lock()
	m := &message{id: time.Now().Format("150405.000000000"), at: time.Now(), card: c}
	b.messages = append(b.messages, m)
	b.mu.Unlock()
	if err := b.lost(); err != nil {
		b.w.cover("the reply to a post was lost")
		return approve.Message{}, err
	}
	return approve.Message{Channel: "C1", ID: m.id, Shows: c.Gist}, nil
}

func (c *channel) find(id string) (*message, error) {
	for _, m := range c.messages {
		if m.id == id && !m.deleted {
			return m, nil
		}
	}
	return nil, approve.ErrGone
}

// Update makes a message show the card.
func (b board) Update(ctx context.Context, m approve.Message, c approve.Card) error {
	if err := b.blocked(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	have, err := b.find(m.ID)
	if err != nil {
		return err
	}
	have.card = c
	return b.lost()
}

// Say posts a note below a message.
func (b board) Say(ctx context.Context, m approve.Message, _ approve.Note) error {
	_, err := b.Look(ctx, m)
	return err
}

// Find gives the messages of a ticket.
func (b board) Find(ctx context.Context, ticket, digest string, since time.Time) ([]approve.Message, error) {
	if err := b.blocked(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []approve.Message
	for _, m := range b.messages {
		if !m.deleted && m.card.Ticket == ticket && m.card.Digest == digest && !m.at.Before(since.Truncate(time.Second)) {
			out = append(out, approve.Message{Channel: "C1", ID: m.id})
		}
	}
	return out, b.lost()
}

// Look gives the link of a message that stands there.
func (b board) Look(ctx context.Context, m approve.Message) (string, error) {
	if err := b.blocked(ctx); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.find(m.ID); err != nil {
		return "", err
	}
	return "https://channel/" + m.ID, b.lost()
}

// tidy deletes what has stood there for a minute, as somebody does who is tired
// of it.
func (c *channel) tidy() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.messages {
		if !m.deleted && time.Since(m.at) > time.Minute {
			m.deleted = true
			c.w.cover("a card was deleted")
		}
	}
}

// asked are the cards that ask somebody now.
func (c *channel) asked() []approve.Card {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []approve.Card
	for _, m := range c.messages {
		if !m.deleted && m.card.Open() && m.card.Service != "" && time.Since(m.at) > 40*time.Second {
			out = append(out, m.card)
		}
	}
	return slices.Clip(out)
}
