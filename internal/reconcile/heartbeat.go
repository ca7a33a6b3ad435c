package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
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

// downPages tell the other receivers of one that takes nothing. Without another
// one the log and a metric say so.
func (r *Reconciler) downPages(out map[string]escalate.Page, now time.Time) {
	names := r.allReceivers()
	held := r.heldBy()
	for _, name := range names {
		last, down := escalate.Down(held[name], now)
		r.tel.receivers.down(name, down)
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		if !down {
			continue
		}
		if len(others) == 0 {
			r.log.Error("the only receiver takes no pages", "receiver", name, "failures", last.Failures, "error", last.LastError)
			continue
		}
		id := "receiver/" + name
		p := r.fleetPage(id, escalate.ReceiverDown, fmt.Sprintf("receiver %s takes no pages: %s, the %dth time in a row; what it should have is kept and tried again",
			name, last.LastError, last.Failures), now)
		p.Receivers = others
		out[id] = p
	}
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
