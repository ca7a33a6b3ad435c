package approve

import "time"

// RenderCard writes the card of a ticket.
func RenderCard(f CardFacts) Card {
	return Card{Ticket: f.Ticket.ID, Service: f.Ticket.Service, Digest: f.Ticket.Digest, State: f.Ticket.State}
}

// RenderDigest writes the one card that lists the tickets for which there is no
// room in the channel.
func RenderDigest(waiting []Ticket, storm string, now time.Time) Card {
	c := Card{Ticket: DigestCard, State: Open, Final: len(waiting) == 0, NoClick: storm}
	if len(waiting) == 0 {
		c.State = Withdrawn
	}
	_ = now
	return c
}
