package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// boardTimeout bounds one request to the channel. It is shorter than
// approve.PostFor, so that nobody looks for a post that is still under way.
const boardTimeout = 20 * time.Second

// maxChores bounds how much is done for one card at a time; a card that changes
// in between is rendered anew.
const maxChores = 20

// lone stands in for the name of a process that has the ledger to itself.
const lone = "agent"

// change is what a chore has found out about a card; it is applied to whatever
// is recorded of the card by then.
type change func(p approve.Posted) approve.Posted

// tend does what has to be done for one card, chore after chore, until nothing
// is left or something fails.
func (r *Reconciler) tend(ctx context.Context, w wantedCard) {
	for range maxChores {
		now := r.o.Now()
		p := r.posted(w.card)
		by := ""
		if r.cards.mine(p.Ticket, p.Begun) {
			by = p.By
		}
		chore := p.Next(w.card, by, r.cards.lookedAt(w.card.Ticket), now)
		if chore == approve.Nothing || chore == approve.Post && !w.room || r.cards.rests(now) {
			return
		}
		if !r.chore(ctx, chore, p, w.card) {
			return
		}
	}
}

// posted is what is recorded of a card. The digest begins anew each time there is
// something to list again: its last message tells of what is over.
func (r *Reconciler) posted(c approve.Card) approve.Posted {
	p := approve.Posted{Ticket: c.Ticket}
	r.book.view(func(s *ledger.State) {
		if known := s.Cards[c.Ticket]; known != nil {
			p = *known
		}
	})
	if c.Ticket == approve.DigestCard && p.Closed && !c.Final {
		p = approve.Posted{Ticket: c.Ticket, Rev: p.Rev}
	}
	return p
}

// chore does one and records what came of it; it reports whether to go on.
func (r *Reconciler) chore(ctx context.Context, chore approve.Chore, p approve.Posted, c approve.Card) bool {
	if chore == approve.Post || chore == approve.Say {
		// What can be seen twice is announced first: of two replicas one speaks, and
		// after a crash it is known that it may have.
		p.Begun, p.By = r.o.Now(), cmp.Or(r.o.Process, lone)
		if err := r.announce(ctx, chore, p); err != nil {
			return false
		}
	}
	found, failure := r.request(ctx, chore, p, c)
	now := r.o.Now()
	err := r.recordCard(ctx, p.Ticket, func(_ *ledger.State, next approve.Posted) (approve.Posted, error) {
		if found != nil {
			next = found(next)
		}
		return afterChore(chore, next, p, failure, now), nil
	})
	r.choreDone(chore, p, failure, now)
	if err != nil && !raced(err) {
		r.log.Error("what the channel holds of a card could not be recorded", "ticket", p.Ticket, "chore", chore, "error", err)
	}
	return failure == nil && err == nil
}

// afterChore is the card once a chore has ended in that failure, or well (nil). p is
// what was announced.
func afterChore(chore approve.Chore, next, p approve.Posted, failure error, now time.Time) approve.Posted {
	if doubtless(chore, failure) {
		next = unannounced(next, p)
	}
	if _, stands := next.Live(); chore == approve.Find && failure == nil && !stands {
		return next // The post failed: that its trace can be looked for heals nothing.
	}
	return next.After(failure, shownError(failure), now)
}

// unannounced takes back what was announced, unless somebody else has announced
// something since.
func unannounced(next, p approve.Posted) approve.Posted {
	if next.Begun.Equal(p.Begun) && next.By == p.By {
		next.Begun, next.By = time.Time{}, ""
	}
	return next
}

// announce records that a message is about to be posted. It is lost where
// somebody else recorded anything of that card since it was read, or the
// ticket is no longer open.
func (r *Reconciler) announce(ctx context.Context, chore approve.Chore, p approve.Posted) error {
	err := r.recordCard(ctx, p.Ticket, func(s *ledger.State, known approve.Posted) (approve.Posted, error) {
		if known.Rev != p.Rev {
			return known, fmt.Errorf("%w: the card of %s is at revision %d", ledger.ErrLost, p.Ticket, known.Rev)
		}
		if t := s.Tickets[p.Ticket]; chore == approve.Post && t != nil && t.State != approve.Open {
			return known, fmt.Errorf("%w: %s is %s", ledger.ErrLost, p.Ticket, t.State)
		}
		return p, nil
	})
	if err == nil {
		r.cards.began(p.Ticket, p.Begun)
	} else if !raced(err) {
		r.log.Error("a card is not posted, because the ledger cannot be written", "ticket", p.Ticket, "error", err)
	}
	return err
}

// recordCard appends the next revision of a card, where it differs.
func (r *Reconciler) recordCard(ctx context.Context, ticket string, next func(*ledger.State, approve.Posted) (approve.Posted, error)) error {
	return r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) { return cardDrafts(s, ticket, next) })
}

func cardDrafts(s *ledger.State, ticket string, next func(*ledger.State, approve.Posted) (approve.Posted, error)) ([]ledger.Draft, error) {
	known := approve.Posted{Ticket: ticket}
	if have := s.Cards[ticket]; have != nil {
		known = *have
	}
	after, err := next(s, known)
	if err != nil || reflect.DeepEqual(known, after) {
		return nil, err
	}
	after.Rev = known.Rev + 1
	d, err := ledger.CardDraft(s, after)
	return []ledger.Draft{d}, err
}

// doubtless reports whether nothing more has to be looked for after a request.
// Only an answer proves that a post did not happen. A channel that lets us look
// for nothing is posted to all the same: two cards of one ticket take one answer
// between them, and none takes none. A note that is said twice does no harm.
func doubtless(chore approve.Chore, failure error) bool {
	var refused *approve.Refused
	var limited *approve.Limited
	answered := errors.As(failure, &refused)
	switch {
	case failure == nil, chore == approve.Say:
		return true
	case chore == approve.Post:
		return answered || errors.As(failure, &limited)
	case chore == approve.Find:
		return answered && refused.Code == approve.MissingScope
	}
	return false
}

// choreDone counts a chore, and tells people soon where the channel has failed
// them: a page asks then, and not a whole sweep later.
func (r *Reconciler) choreDone(chore approve.Chore, p approve.Posted, failure error, now time.Time) {
	r.tel.card(chore, failure)
	var limited *approve.Limited
	switch {
	case failure == nil:
		r.log.Debug("card tended", "ticket", p.Ticket, "chore", chore)
		return
	case errors.As(failure, &limited):
		r.cards.leave(now.Add(limited.After), now)
	}
	r.log.Warn("card not brought up to date", "ticket", p.Ticket, "chore", chore, "failed before", p.Failures, "error", failure)
	if limited == nil && p.Failures == 0 {
		r.tellSoon()
	}
}

// request asks the channel. What it found is to be recorded whether or not it
// failed: of two messages one may have been updated.
func (r *Reconciler) request(ctx context.Context, chore approve.Chore, p approve.Posted, c approve.Card) (change, error) {
	switch chore {
	case approve.Post:
		return r.postCard(ctx, c)
	case approve.Find:
		return r.findCard(ctx, p, c)
	case approve.Update:
		return r.updateCard(ctx, p, c)
	case approve.Say:
		return r.sayNote(ctx, p, c)
	case approve.Look:
		return r.lookAtCard(ctx, p)
	}
	return func(p approve.Posted) approve.Posted { p.Closed = true; return p }, nil
}

// board runs one request within its time.
func (r *Reconciler) board(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	return f(ctx)
}

func (r *Reconciler) postCard(ctx context.Context, c approve.Card) (found change, err error) {
	var m approve.Message
	err = r.board(ctx, func(ctx context.Context) (err error) { m, err = r.o.Board.Post(ctx, c); return err })
	if err != nil {
		return nil, err
	}
	m.Shows, m.Gone = c.Gist, false
	r.cards.saw(c.Ticket, r.o.Now())
	return func(p approve.Posted) approve.Posted { return p.With(m) }, nil
}

// findCard adopts what was posted: its messages are brought up to date like any
// other, whatever became of the ticket meanwhile.
func (r *Reconciler) findCard(ctx context.Context, p approve.Posted, c approve.Card) (found change, err error) {
	var ms []approve.Message
	err = r.board(ctx, func(ctx context.Context) (err error) {
		ms, err = r.o.Board.Find(ctx, p.Ticket, c.Digest, p.Begun.Add(-maxApart))
		return err
	})
	if err != nil {
		return nil, err
	}
	return func(p approve.Posted) approve.Posted {
		for _, m := range ms {
			p = adopted(p, m)
		}
		return p
	}, nil
}

// maxApart is how far the channel's clock may be behind this host's.
const maxApart = time.Minute

// adopted adds a message that is not known, or that was thought to be gone.
func adopted(p approve.Posted, m approve.Message) approve.Posted {
	for _, known := range p.Messages {
		if known.Channel == m.Channel && known.ID == m.ID && !known.Gone {
			return p
		}
	}
	m.Gone, p.Closed = false, false
	return p.With(m)
}

// updateCard brings each message up to date.
func (r *Reconciler) updateCard(ctx context.Context, p approve.Posted, c approve.Card) (found change, err error) {
	var done []approve.Message
	for _, m := range p.Messages {
		if m.Gone || m.Shows == c.Gist {
			continue
		}
		err = r.board(ctx, func(ctx context.Context) error { return r.o.Board.Update(ctx, m, c) })
		if err != nil && !errors.Is(err, approve.ErrGone) {
			break
		}
		m.Shows, m.Gone = c.Gist, err != nil
		done, err = append(done, m), nil
		r.cards.saw(c.Ticket, r.o.Now())
	}
	return func(p approve.Posted) approve.Posted {
		for _, m := range done {
			p = p.With(m)
		}
		return p
	}, err
}

func (r *Reconciler) sayNote(ctx context.Context, p approve.Posted, c approve.Card) (found change, err error) {
	m, standing := p.Live()
	n, left := p.NextNote(c)
	if !standing || !left {
		return nil, nil
	}
	err = r.board(ctx, func(ctx context.Context) error { return r.o.Board.Say(ctx, m, n) })
	if errors.Is(err, approve.ErrGone) {
		return gone(m), nil
	}
	if err != nil {
		return nil, err
	}
	r.cards.saw(c.Ticket, r.o.Now())
	return func(p approve.Posted) approve.Posted {
		p.Noted = append(append([]string(nil), p.Noted...), n.ID)
		return p
	}, nil
}

// lookAtCard finds out whether the message still stands there. That it does is
// worth no entry.
func (r *Reconciler) lookAtCard(ctx context.Context, p approve.Posted) (found change, err error) {
	m, standing := p.Live()
	if !standing {
		return nil, nil
	}
	link := ""
	err = r.board(ctx, func(ctx context.Context) (err error) { link, err = r.o.Board.Look(ctx, m); return err })
	switch {
	case errors.Is(err, approve.ErrGone):
		return gone(m), nil
	case err != nil:
		return nil, err
	}
	r.cards.saw(p.Ticket, r.o.Now())
	if link == "" || link == m.Link {
		return nil, nil
	}
	m.Link = link
	return func(p approve.Posted) approve.Posted { return p.With(m) }, nil
}

// gone marks a message that does not stand there any more.
func gone(m approve.Message) change {
	m.Gone = true
	return func(p approve.Posted) approve.Posted { return p.With(m) }
}

// shownError is what people may see of an error of the channel.
func shownError(err error) string {
	if err == nil {
		return ""
	}
	return execute.CleanText(err.Error(), 200)
}
