package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// card is an entry of what a channel holds.
func card(ticket string, rev int, change func(*approve.Posted)) ledger.Draft {
	p := approve.Posted{Ticket: ticket, Rev: rev}
	change(&p)
	return ledger.Draft{Kind: ledger.KindCard, Body: p}
}

// nextRev is the revision that follows, or one that does not.
func nextRev(s *ledger.State, ticket string, follows bool) int {
	rev := 1
	if p := s.Cards[ticket]; p != nil {
		rev = p.Rev + 1
	}
	if !follows {
		rev++
	}
	return rev
}

func as(by string) func(*approve.Posted) { return func(p *approve.Posted) { p.By = by } }

// TestCardRevisions: of two records that were made from the same one the first
// stands, and there is none of a ticket that nobody knows.
func TestCardRevisions(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(0, ticket(c, keyAt(c, 0))))
	cases := []struct {
		reason string
		draft  ledger.Draft
		taken  bool
	}{
		{"the first is 1", card("t2", 2, as("a")), false},
		{"the first", card("t2", 1, as("a")), true},
		{"another replica made one from the same", card("t2", 1, as("b")), false},
		{"the next", card("t2", 2, as("b")), true},
		{"nobody knows the ticket", card("t9", 1, as("a")), false},
		{"the digest is of no ticket", card(approve.DigestCard, 1, as("a")), true},
	}
	for _, tc := range cases {
		p := tc.draft.Body.(approve.Posted)
		before := len(ch.state.Skipped)
		_, err := ledger.CardDraft(ch.state, p)
		ch.add(at(1, tc.draft))
		if taken := len(ch.state.Skipped) == before; taken != tc.taken || (err == nil) != tc.taken {
			t.Errorf("%s: folded %v, draft %v, want %v", tc.reason, taken, err, tc.taken)
		}
		if err != nil && !errors.Is(err, ledger.ErrLost) {
			t.Errorf("%s: %v is not a lost race", tc.reason, err)
		}
	}
	if p := ch.state.Cards["t2"]; p.By != "b" || p.Rev != 2 {
		t.Errorf("the card is %+v", p)
	}
}

// TestCardDraftKeepsItsOwn: what the caller does to its messages afterwards is
// none of the ledger's business.
func TestCardDraftKeepsItsOwn(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(0, ticket(c, keyAt(c, 0))))
	p := approve.Posted{Ticket: "t2", Rev: 1, Messages: []approve.Message{{Channel: "C1", ID: "1.1"}}}
	d, err := ledger.CardDraft(ch.state, p)
	if err != nil || d.Service != c {
		t.Fatalf("draft of %q, %v", d.Service, err)
	}
	p.Messages[0].ID = "9.9"
	ch.add(at(1, d))
	if got := ch.state.Cards["t2"].Messages[0].ID; got != "1.1" {
		t.Errorf("message %s", got)
	}
}

// TestCardsAreForgottenWithTheirTickets, but for the digest, which has none.
func TestCardsAreForgottenWithTheirTickets(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(0, card(approve.DigestCard, 1, as("a"))))
	for i := range 200 {
		ch.add(at(10*i, ticket(c, keyAt(c, 10*i))))
		id := ledger.TicketID(ch.state.Head.Seq)
		ch.add(at(10*i, card(id, 1, as("a"))), at(10*i, ticketEnd(id, approve.Withdrawn)))
	}
	ch.noSkips()
	s := ch.state
	if len(s.Cards) != len(s.Tickets)+1 || len(s.Cards) > 80 || s.Cards[approve.DigestCard] == nil {
		t.Errorf("%d cards and %d tickets are kept", len(s.Cards), len(s.Tickets))
	}
	for id := range s.Cards {
		if id != approve.DigestCard && s.Tickets[id] == nil {
			t.Errorf("the card of %s is kept, and the ticket is not", id)
		}
	}
}

// TestCardsGoBackInTime: a clock that ran ahead leaves no card alone for years.
func TestCardsGoBackInTime(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(0, ticket(c, keyAt(c, 0))), at(ahead, card("t2", 1, func(p *approve.Posted) {
		p.Begun, p.Tried, p.NotBefore = minute(ahead), minute(ahead), minute(ahead+1)
	})))
	before := *ch.state.Cards["t2"]
	kept := ch.state.Clone()
	ch.add(at(10, lowered("", "")))
	p := ch.state.Cards["t2"]
	if diff := cmp.Diff([]time.Time{minute(10), minute(10), minute(10)}, []time.Time{p.Begun, p.Tried, p.NotBefore}); diff != "" {
		t.Errorf("times, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, *kept.Cards["t2"]); diff != "" {
		t.Errorf("a clone was changed, -want +got:\n%s", diff)
	}
}
