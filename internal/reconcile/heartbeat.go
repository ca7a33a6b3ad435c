package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// heartbeats are the signs of life that receivers want.
func (r *Reconciler) heartbeats(out map[string]escalate.Page, now time.Time) {
	for _, c := range r.o.Config.Receivers {
		if c.Heartbeat > 0 && r.receiver(c.Name) != nil {
			p := escalate.NewHeartbeat(c.Name, c.Heartbeat, now)
			out[p.ID] = p
		}
	}
}

// lookDown looks which receivers take nothing, in what the ledger and this process
// know of all pages.
func (r *Reconciler) lookDown(now time.Time) {
	found, held := map[string]escalate.Delivery{}, r.heldBy()
	for _, name := range r.allReceivers() {
		last, down := escalate.Down(held[name], now)
		r.tel.receivers.down(name, down)
		if down {
			found[name] = last
		}
	}
	r.outbox.mu.Lock()
	defer r.outbox.mu.Unlock()
	r.outbox.down = found
}

// isDown reports whether a receiver takes nothing, and what failed last.
func (o *outbox) isDown(receiver string) (last escalate.Delivery, down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, down = o.down[receiver]
	return last, down
}

// downPages tell the other receivers of one that takes nothing. Without another
// one the log and a metric say so.
func (r *Reconciler) downPages(out map[string]escalate.Page, now time.Time) {
	names := r.allReceivers()
	for _, name := range names {
		last, down := r.outbox.isDown(name)
		if !down {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		if len(others) == 0 {
			r.log.Error("the only receiver takes no pages", "receiver", name, "failures", last.Failures, "error", last.LastError)
			continue
		}
		id := "receiver/" + name
		facts := r.fleetFacts(id, escalate.ReceiverDown, r.downText(name, last), now)
		facts.Subject = name
		out[id] = r.toReceivers(facts, others)
	}
}

// downText says what is wrong, and what it holds up: a silence that nobody can read
// could be one that forbids the next action.
func (r *Reconciler) downText(name string, last escalate.Delivery) string {
	holds := ""
	switch {
	case !r.isAlertmanager(name):
	case r.unreadable():
		holds = "; its silences cannot be read either, which holds every action"
	default:
		holds = "; while its silences cannot be read either, every action is held"
	}
	return fmt.Sprintf("receiver %s takes no pages%s: %s (%d failures in a row); what it should have is kept and tried again",
		name, holds, last.LastError, last.Failures)
}

// unreadable reports whether silences held a last pass because nobody could read
// them.
func (r *Reconciler) unreadable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, last := range r.last {
		if slices.ContainsFunc(last.Step.Reasons, func(x gate.Reason) bool { return x.Code == gate.ReasonSilencesUnreadable }) {
			return true
		}
	}
	return false
}

// heldBy is what each receiver is known to hold, of all pages.
func (r *Reconciler) heldBy() map[string][]escalate.Delivery {
	out := map[string][]escalate.Delivery{}
	ids := map[string]bool{}
	r.outbox.mu.Lock()
	for id := range r.outbox.sent {
		ids[id] = true
	}
	r.outbox.mu.Unlock()
	r.book.view(func(s *ledger.State) {
		for id := range s.Deliveries {
			ids[id] = true
		}
		for id := range ids {
			for _, d := range r.heldIn(s, escalate.Page{ID: id}) {
				out[d.Receiver] = append(out[d.Receiver], d)
			}
		}
	})
	return out
}

// showHeartbeats shows when each heartbeat was last taken, by whichever process
// sent it.
func (r *Reconciler) showHeartbeats() {
	for _, c := range r.o.Config.Receivers {
		if c.Heartbeat <= 0 {
			continue
		}
		var last time.Time
		for _, d := range r.held(escalate.Page{ID: escalate.HeartbeatID(c.Name)}) {
			if d.Receiver == c.Name {
				last = d.Sent
			}
		}
		r.tel.receivers.beat(c.Name, c.Heartbeat, last)
	}
}
