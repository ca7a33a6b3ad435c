package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// manyTickets is a loop whose ledger has so many open tickets.
func manyTickets(n int, now time.Time) *Reconciler {
	r := &Reconciler{Desk: &Desk{book: newBook(nil)}}
	r.book.state = ledger.NewState()
	for i := range n {
		t := approve.Ticket{
			ID: fmt.Sprintf("t%d", i+1), Service: fmt.Sprintf("s%d", i), State: approve.Open,
			Asked: now.Add(time.Duration(i) * time.Millisecond), Expires: now.Add(time.Hour),
		}
		r.book.state.Tickets[t.ID] = &t
	}
	return r
}

// TestManyTicketsCostLittle: four times as many tickets cost about four times as
// much, not sixteen times. All of it is under the ledger's lock, for which a click
// waits that Slack wants answered within three seconds.
func TestManyTicketsCostLittle(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	took := func(n int) time.Duration {
		r := manyTickets(n, now)
		least := time.Hour
		for range 3 {
			began := time.Now()
			if got := len(r.wantedCards(&fleet{}, now)); got != defaultOpenCards+1 {
				t.Fatalf("%d cards of %d tickets, want %d and the list", got, n, defaultOpenCards)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	few, many := took(5_000), took(20_000)
	if many > 10*few && many > 200*time.Millisecond {
		t.Errorf("5,000 tickets take %s, 20,000 take %s", few, many)
	}
	t.Logf("5,000 tickets take %s, 20,000 take %s", few, many)
}
