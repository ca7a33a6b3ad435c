package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// TestTicketDoesNotGetYoung: a ticket ends when its time is over, also where the
// clock was set back meanwhile: what was asked long ago is executed by no late click.
func TestTicketDoesNotGetYoung(t *testing.T) {
	yes := func(w *world, asked approve.Ticket) error {
		_, err := w.r.Answer(t.Context(), approve.Answer{Ticket: asked.ID, Digest: asked.Digest, By: "os:alice", Via: "slack", Approve: true})
		return err
	}
	for name, swept := range map[string]bool{"in a pass": true, "in a click": false} {
		t.Run(name, func(t *testing.T) {
			w, ch := boarded(t)
			w.options = func(o *reconcile.Options) { o.Board, o.Monotonic = ch, w.monotonic }
			for i := range w.set.Services {
				w.set.Services[i].Remediation.ApprovalFor = time.Hour
			}
			asked := w.asks()
			w.run(50 * time.Minute)
			w.setClock(-45 * time.Minute)
			if swept {
				w.run(15 * time.Minute)
			} else {
				w.pass(15 * time.Minute)
			}
			var refused *approve.Refusal
			if err := yes(w, asked); !errors.As(err, &refused) || refused.Code != approve.RefusedExpired {
				t.Errorf("65 minutes after it was asked for one hour: %v", err)
			}
			w.run(5 * time.Minute)
			if got := w.ticket(asked.ID); got.State != approve.Expired || len(w.actuator.Effects()) != 0 {
				t.Errorf("the ticket is %s, %d effects", got.State, len(w.actuator.Effects()))
			}
		})
	}
}
