package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// TestCardFaults: whatever the channel does, the ledger's word is shown in the
// end, and people are told another way meanwhile.
func TestCardFaults(t *testing.T) {
	limited := &approve.Limited{After: 30 * time.Second}
	cases := map[string]struct {
		reason string
		// fails is set up before the ticket is asked; then goes on after.
		fails func(w *world, ch *billboard)
		then  func(t *testing.T, w *world, ch *billboard, asked approve.Ticket)
	}{
		"NotInChannel": {
			"what could not be asked pages in the very next round, and is never approved by itself",
			func(_ *world, ch *billboard) { ch.failing("post", &approve.Refused{Code: "not_in_channel"}) },
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				w.sweep()
				if got := w.page(); got != escalate.ApprovalNeeded {
					t.Errorf("page %q", got)
				}
				if ch.called("find") != 0 {
					t.Error("a post that was refused was looked for")
				}
				w.run(4 * time.Minute)
				if n := ch.called("post"); n < 3 || n > 6 {
					t.Errorf("posted %d times in four minutes, want it to be tried later and later", n)
				}
				ch.well()
				w.run(5 * time.Minute)
				ch.stands(t, asked.ID, 1, approve.Open)
				w.run(8 * time.Minute)
				if got := w.ticket(asked.ID); got.State != approve.Expired || len(w.actuator.Effects()) != 0 {
					t.Errorf("ticket %s, %d effects", got.State, len(w.actuator.Effects()))
				}
			},
		},
		"RevokedToken": {
			"a card that can no longer be changed is a channel that is down",
			func(*world, *billboard) {},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				ch.failing("", &approve.Refused{Code: "token_revoked"})
				w.run(5 * time.Minute)
				if got := w.page(); got != escalate.ApprovalNeeded {
					t.Errorf("page %q", got)
				}
				ch.well()
				w.said(asked, false)
				w.run(6 * time.Minute)
				ch.stands(t, asked.ID, 1, approve.Denied)
			},
		},
		"Limited": {
			"a channel that asks for thirty seconds gets them, and nobody is woken for that",
			func(_ *world, ch *billboard) {
				ch.fault = func(op, _ string) (error, error) {
					if ch.fault = nil; op == "post" {
						return limited, nil
					}
					return nil, nil
				}
			},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				if n := ch.called("post"); n != 1 {
					t.Errorf("%d posts at once", n)
				}
				w.sweep()
				ch.stands(t, asked.ID, 1, approve.Open)
				if w.page() != "" || ch.called("find") != 0 {
					t.Errorf("pages %s, requests %v", w.pager.reasons(), ch.calls)
				}
			},
		},
		"LimitedForLong": {
			"after a minute a page asks",
			func(_ *world, ch *billboard) { ch.failing("post", limited) },
			func(t *testing.T, w *world, _ *billboard, _ approve.Ticket) {
				w.run(90 * time.Second)
				if got := w.page(); got != escalate.ApprovalNeeded {
					t.Errorf("page %q", got)
				}
			},
		},
		"LostReply": {
			"what was posted although its reply was lost is found, and not posted again",
			func(_ *world, ch *billboard) { ch.fault = lostOnce(ch, "post") },
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				w.run(2 * time.Minute)
				ch.stands(t, asked.ID, 1, approve.Open)
				if _, live := w.card(asked.ID).Live(); !live {
					t.Errorf("recorded %+v", w.card(asked.ID))
				}
			},
		},
		"LostUpdate": {
			"an update whose reply was lost is made again",
			func(*world, *billboard) {},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				ch.fault = lostOnce(ch, "update")
				w.said(asked, false)
				w.run(2 * time.Minute)
				ch.stands(t, asked.ID, 1, approve.Denied)
				if ch.called("update") != 2 {
					t.Errorf("requests %v", ch.calls)
				}
			},
		},
		"Deleted": {
			"a prompt that is deleted is no answer: it is posted again, three times in all, and then pages",
			func(*world, *billboard) {},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				for range 4 {
					ch.remove(asked.ID)
					w.run(90 * time.Second)
				}
				ch.stands(t, asked.ID, approve.MaxMessages, approve.Open)
				if got := w.page(); got != escalate.ApprovalNeeded || w.ticket(asked.ID).State != approve.Open {
					t.Errorf("page %q, ticket %s", got, w.ticket(asked.ID).State)
				}
				w.run(10 * time.Minute)
				if got := w.page(); got != escalate.ApprovalExpired || len(w.actuator.Effects()) != 0 {
					t.Errorf("page %q and %d effects after the expiry", got, len(w.actuator.Effects()))
				}
				if !w.card(asked.ID).Closed {
					t.Errorf("the card is not closed: %+v", w.card(asked.ID))
				}
			},
		},
		"NothingMayBeLookedFor": {
			"without the scope to look, two cards are better than none",
			func(_ *world, ch *billboard) {
				lost := lostOnce(ch, "post")
				ch.fault = func(op, ticket string) (error, error) {
					if op == "find" {
						return &approve.Refused{Code: approve.MissingScope}, nil
					}
					_, after := lost(op, ticket)
					return nil, after
				}
			},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				w.run(2 * time.Minute)
				ch.stands(t, asked.ID, 2, approve.Open)
				w.said(asked, false)
				w.sweep()
				// Whoever clicks on the one that nobody knows of shows it to the agent.
				b := ch.of(asked.ID)[0]
				if b.card.State != approve.Open {
					t.Fatal("the first card is known already: nothing is tried")
				}
				if err := w.r.Sighted(t.Context(), asked.ID, b.m); err != nil {
					t.Fatal(err)
				}
				w.sweep()
				ch.stands(t, asked.ID, 2, approve.Denied)
			},
		},
		"Recovered": {
			"a ticket that is withdrawn shows it",
			func(*world, *billboard) {},
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				w.heal()
				w.run(12 * time.Minute)
				ch.stands(t, asked.ID, 1, approve.Withdrawn)
				if notes := ch.of(asked.ID)[0].notes; !slices.Equal(notes, []string{"end-withdrawn"}) || !w.card(asked.ID).Closed {
					t.Errorf("notes %v, closed %v", notes, w.card(asked.ID).Closed)
				}
			},
		},
		"Superseded": {
			"a question that ended before it could be posted is dropped",
			func(_ *world, ch *billboard) { ch.failing("post", &approve.Limited{After: time.Minute}) },
			func(t *testing.T, w *world, ch *billboard, asked approve.Ticket) {
				w.said(asked, false)
				ch.well()
				w.run(5 * time.Minute)
				ch.stands(t, asked.ID, 0, approve.Denied)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, ch := boarded(t)
			tc.fails(w, ch)
			asked := w.asks()
			t.Log(tc.reason)
			tc.then(t, w, ch, asked)
		})
	}
}

// lostOnce loses the reply of the next request of an operation.
func lostOnce(ch *billboard, op string) func(string, string) (error, error) {
	done := false
	return func(o, _ string) (error, error) {
		if o != op || done {
			return nil, nil
		}
		done = true
		return nil, errLost
	}
}
