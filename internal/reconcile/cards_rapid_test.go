package reconcile_test

import (
	"errors"
	"flag"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// cardWeather is a channel and a process that fail at random.
type cardWeather struct {
	*world
	rt *rapid.T
	ch *billboard
	// blind: something was posted that nobody was let look for, so that a second
	// card may stand beside it.
	blind bool
}

// draw chooses how a request fails, most of them not at all.
func (w *cardWeather) draw(op, _ string) (before, after error) {
	switch n := rapid.IntRange(0, 15).Draw(w.rt, "fault of "+op); n {
	case 0:
		return &approve.Refused{Code: "not_in_channel"}, nil
	case 1:
		return &approve.Limited{After: 20 * time.Second}, nil
	case 2:
		return errLost, nil
	case 3, 4:
		return nil, errLost
	case 5:
		// The process dies with this request: it never writes again.
		w.faulty.fill(errors.New("killed"))
		return nil, errLost
	case 6:
		if op == "find" {
			w.blind = true
			return &approve.Refused{Code: approve.MissingScope}, nil
		}
	}
	return nil, nil
}

func (w *cardWeather) step(what string) {
	switch what {
	case "sweep":
		w.faults(w.draw)
		w.r.Sweep(w.t.Context())
		w.faults(nil)
	case "later":
		w.pass(time.Duration(rapid.IntRange(1, 120).Draw(w.rt, "seconds")) * time.Second)
	case "restart":
		w.restart()
	case "click":
		w.click()
	case "delete":
		if b := w.any(); b != nil {
			w.ch.remove(b.card.Ticket)
		}
	case "fail":
		w.breakNow(0.3)
	case "heal":
		w.heal()
	case "calm":
		w.calm()
	}
	w.always()
}

func (w *cardWeather) faults(f func(op, ticket string) (error, error)) {
	w.ch.mu.Lock()
	defer w.ch.mu.Unlock()
	w.ch.fault = f
}

// any is a message that still stands there, or nil.
func (w *cardWeather) any() *bill {
	w.ch.mu.Lock()
	defer w.ch.mu.Unlock()
	var standing []*bill
	for _, b := range w.ch.bills {
		if !b.gone {
			standing = append(standing, b)
		}
	}
	if len(standing) == 0 {
		return nil
	}
	return rapid.SampledFrom(standing).Draw(w.rt, "message")
}

// click is a person's, on any message that has a button.
func (w *cardWeather) click() {
	b := w.any()
	if b == nil || !b.card.Open() {
		return
	}
	before := w.stateOf(b.card.Ticket)
	_, err := w.r.Answer(w.t.Context(), approve.Answer{
		Ticket: b.card.Ticket, Digest: b.card.Digest, By: "os:alice", Via: "slack", Reason: "seen",
		Approve: rapid.Bool().Draw(w.rt, "approve"),
	})
	if err == nil && before != approve.Open && before != approve.Approved {
		w.rt.Fatalf("a click on %s, which was %s, was taken", b.card.Ticket, before)
	}
	// A refusal, or a ledger that cannot be written, is what was asked for.
	_ = w.r.Sighted(w.t.Context(), b.card.Ticket, b.m)
}

func (w *cardWeather) stateOf(ticket string) (s approve.State) {
	w.r.View(func(st *ledger.State) {
		if t := st.Tickets[ticket]; t != nil {
			s = t.State
		}
	})
	return s
}

// always holds at every moment.
func (w *cardWeather) always() {
	standing := map[string]int{}
	w.ch.mu.Lock()
	defer w.ch.mu.Unlock()
	for _, b := range w.ch.bills {
		if !b.gone {
			standing[b.card.Ticket]++
		}
	}
	for ticket, n := range standing {
		if n > 1 && !w.blind {
			w.rt.Fatalf("%d messages of %s stand in the channel: %v", n, ticket, w.ch.calls)
		}
	}
}

// calm lets everything be well for as long as anything is put off, and looks at
// what people see then.
func (w *cardWeather) calm() {
	w.faulty.fill(nil)
	for range 16 {
		w.r.Sweep(w.t.Context())
		w.pass(step30)
	}
	w.r.Sweep(w.t.Context())
	live := map[string]int{}
	for _, b := range w.ch.bills {
		if b.live() {
			live[b.card.Ticket]++
		}
		if known := w.knows(b); !known && w.blind {
			continue // nobody can know of it until somebody clicks on it
		}
		if state := w.stateOf(b.card.Ticket); !b.gone && b.card.State != state {
			w.rt.Fatalf("%s is %s, and its card shows %s:\n%v\n%s", b.card.Ticket, state, b.card.State, w.ch.calls, w.dump())
		}
	}
	w.r.View(func(s *ledger.State) {
		for id, t := range s.Tickets {
			p := s.Cards[id]
			deleted := p != nil && len(p.Messages) >= approve.MaxMessages
			if t.State == approve.Open && live[id] == 0 && !deleted {
				w.rt.Fatalf("nobody is asked about %s, which is open: %+v", id, p)
			}
		}
	})
}

// knows reports whether the ledger holds the message.
func (w *cardWeather) knows(b *bill) bool {
	for _, m := range w.card(b.card.Ticket).Messages {
		if m.ID == b.m.ID {
			return true
		}
	}
	return false
}

// TestCardsInAnyWeather: whatever fails, dies, is clicked or deleted, no card of a
// ticket that is over can be approved once all is well again, who has to be asked
// is asked, and no ticket has two cards.
func TestCardsInAnyWeather(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("20"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	steps := []string{"sweep", "sweep", "sweep", "sweep", "later", "later", "restart", "click", "delete", "fail", "heal", "calm"}
	rapid.Check(t, func(rt *rapid.T) {
		own, ch := boarded(t)
		w := &cardWeather{world: own, rt: rt, ch: ch}
		w.start()
		defer func() { _ = w.store.Close() }()
		w.run(90 * time.Second)
		w.breakNow(0.3)
		w.run(150 * time.Second)
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			w.step(rapid.SampledFrom(steps).Draw(rt, "step"))
		}
		w.calm()
	})
}
