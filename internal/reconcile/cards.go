package reconcile

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// cards is what this process alone knows of the cards in the channel. All of it
// may be lost: a restart looks again.
type cards struct {
	mu sync.Mutex
	// busy are the cards that are being worked on.
	busy map[string]bool
	// looked is when a message of a card was last known to stand there.
	looked map[string]time.Time
	// begun is when this process last began to post something of a card. Its end
	// is known, for nothing else is done to that card before.
	begun map[string]time.Time
	// rest is until when the channel wants to hear of no card.
	rest time.Time
}

// begin reports whether work on a card may begin: a channel that hangs holds up
// that card alone, and no page.
func (c *cards) begin(ticket string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[ticket] {
		return false
	}
	c.busy[ticket] = true
	return true
}

func (c *cards) end(ticket string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, ticket)
}

// saw remembers when a card was seen to stand there.
func (c *cards) saw(ticket string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked[ticket] = at
}

func (c *cards) lookedAt(ticket string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looked[ticket]
}

// began remembers what this process announced.
func (c *cards) began(ticket string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[ticket] = at
}

// mine reports whether it was this process, since its start, that announced it.
func (c *cards) mine(ticket string, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !at.IsZero() && c.begun[ticket].Equal(at)
}

// forget drops what is known of cards that are no longer wanted.
func (c *cards) forget(wanted []wantedCard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	still := make(map[string]bool, len(wanted))
	for _, w := range wanted {
		still[w.card.Ticket] = true
	}
	over := func(ticket string, _ time.Time) bool { return !c.busy[ticket] && !still[ticket] }
	maps.DeleteFunc(c.looked, over)
	maps.DeleteFunc(c.begun, over)
}

// leave says for how long the channel wants to be left alone, which all cards
// heed: each by itself would only make it longer. It is bounded, so that no
// answer of the channel can silence it for long.
func (c *cards) leave(until, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := now.Add(time.Minute); until.After(most) {
		until = most
	}
	c.rest = until
}

func (c *cards) rests(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.rest.Sub(now)
	return wait > 0 && wait <= time.Minute
}

// wantedCard is a card that should be shown.
type wantedCard struct {
	card approve.Card
	// room: it may be posted, and not only be brought up to date.
	room bool
}

// askFor is how long a card may be on its way before a page asks instead.
const askFor = time.Minute

// showCards brings what the channel holds in line with the cards that should be
// shown. It returns at once: each card goes its own way. Where the ledger cannot
// be used nothing is asked in the channel, because no click could be recorded.
func (r *Reconciler) showCards(ctx context.Context, f *fleet, now time.Time) {
	if r.o.Board == nil || r.book.broken() != nil {
		return
	}
	wanted := r.wantedCards(f, now)
	r.cards.forget(wanted)
	for _, w := range wanted {
		ticket := w.card.Ticket
		if !r.cards.begin(ticket) {
			continue
		}
		r.deliveries.Go(func() {
			defer r.cards.end(ticket)
			r.guard("the card of "+ticket, func() { r.tend(ctx, w) })
		})
	}
}

// wantedCards are the cards of tickets that are open, and of those whose card is
// not closed yet.
func (r *Reconciler) wantedCards(f *fleet, now time.Time) []wantedCard {
	var facts []approve.CardFacts
	var pl places
	var digest *approve.Posted
	storm := ""
	r.book.view(func(s *ledger.State) {
		pl = r.places(s)
		digest, storm = s.Cards[approve.DigestCard], stormText(s)
		charges := s.Charges()
		for _, t := range carded(s) {
			if t.State != approve.Open || !pl.listed[t.ID] || pl.cards[t.ID].Rev > 0 {
				facts = append(facts, r.cardFacts(s, f, t, charges, now))
			}
		}
	})
	var out []wantedCard
	for _, cf := range facts {
		out = append(out, wantedCard{card: approve.RenderCard(cf), room: pl.room[cf.Ticket.ID]})
	}
	if len(pl.waiting) > 0 || digest != nil && !digest.Closed {
		out = append(out, wantedCard{card: approve.RenderDigest(pl.waiting, storm, now), room: true})
	}
	return out
}

// carded are the tickets that have or should have a card, in the order in which
// they were asked.
func carded(s *ledger.State) []approve.Ticket {
	var out []approve.Ticket
	for id, t := range s.Tickets {
		if p := s.Cards[id]; t.State == approve.Open || p != nil && !p.Closed {
			out = append(out, *t)
		}
	}
	slices.SortFunc(out, olderTicket)
	return out
}

func olderTicket(a, b approve.Ticket) int {
	if c := a.Asked.Compare(b.Asked); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// places says which open tickets have a card of their own in the channel.
type places struct {
	// room holds those that may have one; waiting are the others, oldest first,
	// but for those that people deleted too often.
	room    map[string]bool
	waiting []approve.Ticket
	// listed are the ids of those that wait: there may be thousands, and the
	// ledger is locked meanwhile.
	listed map[string]bool
	cards  map[string]approve.Posted
}

// places gives each open ticket its own card, the oldest first, until the channel
// is full: two hundred cards in one channel ask nobody anything. Who has one keeps
// it. While the storm brake is on nothing can be approved, so none is added.
func (r *Reconciler) places(s *ledger.State) places {
	pl := places{room: map[string]bool{}, listed: map[string]bool{}, cards: map[string]approve.Posted{}}
	var open []approve.Ticket
	for id, t := range s.Tickets {
		if t.State != approve.Open {
			continue
		}
		open = append(open, *t)
		if p := s.Cards[id]; p != nil {
			pl.cards[id] = *p
		}
	}
	slices.SortFunc(open, olderTicket)
	for _, t := range open {
		p := pl.cards[t.ID]
		if _, live := p.Live(); live || !p.Begun.IsZero() {
			pl.room[t.ID] = true
		}
	}
	for _, t := range open {
		switch {
		case pl.room[t.ID], pl.unwelcome(t.ID):
		case len(pl.room) < r.openCards() && !s.Storm.Holds():
			pl.room[t.ID] = true
		default:
			pl.waiting, pl.listed[t.ID] = append(pl.waiting, t), true
		}
	}
	return pl
}

// unwelcome: it was posted as often as it may be, and deleted each time.
func (pl places) unwelcome(ticket string) bool {
	p := pl.cards[ticket]
	_, live := p.Live()
	return !live && len(p.Messages) >= approve.MaxMessages
}

func (r *Reconciler) openCards() int {
	if slack := r.o.Config.Slack; slack != nil && slack.OpenCards > 0 {
		return slack.OpenCards
	}
	return defaultOpenCards
}

// defaultOpenCards stands in where no channel is configured.
const defaultOpenCards = 5

// asking is how far each open ticket has come before people, by ticket.
func (r *Reconciler) asking(now time.Time) map[string]step.Asking {
	out := map[string]step.Asking{}
	if r.o.Board == nil {
		return out
	}
	broken, unasked := r.book.broken() != nil, 0
	r.book.view(func(s *ledger.State) {
		pl := r.places(s)
		for id, t := range s.Tickets {
			if t.State != approve.Open {
				continue
			}
			how := askingOf(pl.cards[id], now.Sub(r.hostTime(t.Asked)), pl.room[id] && !broken)
			if how == step.Unasked {
				unasked++
			}
			out[id] = how
		}
	})
	r.tel.unasked.Set(float64(unasked))
	return out
}

// askingOf is that of one open ticket of that age. may: its card can be posted.
func askingOf(p approve.Posted, age time.Duration, may bool) step.Asking {
	_, live := p.Live()
	switch {
	case live && p.Failures < escalate.FailuresToSkip:
		return step.Shown
	case live, !may, p.Failures > 0, age >= askFor, age <= -askFor, len(p.Messages) >= approve.MaxMessages:
		return step.Unasked
	}
	return step.BeingAsked
}

// newestAsking is that of the newest ticket of an episode.
func newestAsking(n step.NoticeFacts, asking map[string]step.Asking) step.Asking {
	if len(n.Tickets) == 0 {
		return step.NobodyAsked
	}
	return asking[n.Tickets[len(n.Tickets)-1].ID]
}
