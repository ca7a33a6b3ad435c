package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

func checkCard(_ string, b approve.Posted) error {
	err := named("ticket", b.Ticket)
	if b.Rev < 1 {
		err = errors.Join(err, fmt.Errorf("revision %d of a card, the first is 1", b.Rev))
	}
	for _, m := range b.Messages {
		err = errors.Join(err, named("channel", m.Channel), named("message id", m.ID))
	}
	return err
}

// foldCard takes the next revision of what a channel holds; of two that were made
// from the same one the first stands.
func foldCard(s *State, _ Entry, b approve.Posted) string {
	if why := cardOutdated(s, b); why != "" {
		return why
	}
	s.Cards[b.Ticket] = &b
	return ""
}

func cardOutdated(s *State, b approve.Posted) string {
	if b.Ticket != approve.DigestCard && s.Tickets[b.Ticket] == nil {
		return "there is no ticket " + b.Ticket
	}
	rev := 0
	if known := s.Cards[b.Ticket]; known != nil {
		rev = known.Rev
	}
	if b.Rev != rev+1 {
		return fmt.Sprintf("the card of %s is at revision %d, so %d is not the next", b.Ticket, rev, b.Rev)
	}
	return ""
}

// CardDraft records what a channel holds of a card. It is lost when somebody else
// recorded something of that card since it was read.
func CardDraft(s *State, p approve.Posted) (Draft, error) {
	if why := cardOutdated(s, p); why != "" {
		return Draft{}, lost("%s", why)
	}
	service := ""
	if t := s.Tickets[p.Ticket]; t != nil {
		service = t.Service
	}
	p.Messages = slices.Clone(p.Messages)
	return Draft{Kind: KindCard, Service: service, Body: p}, nil
}
