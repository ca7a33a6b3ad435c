package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestAckCountsOnce: who takes a page is recorded once. Whoever comes later, or
// clicks on what is over, is told so, and no click makes the ledger grow.
func TestAckCountsOnce(t *testing.T) {
	w := prepare(t)
	w.set.Services[0].Remediation.Mode = spec.Suggest
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.run(40 * time.Minute)
	var id string
	for _, p := range w.pager.open() {
		if p.Service == "checkout" {
			id = p.ID
		}
	}
	refused := func(by, want string) {
		t.Helper()
		before := len(w.entries())
		err := w.r.Ack(t.Context(), id, by, "slack")
		var refusal *approve.Refusal
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", by, err)
		case want != "" && (!errors.As(err, &refusal) || refusal.Code != want):
			t.Errorf("%s: %v, want a refusal %s", by, err, want)
		}
		if n := len(w.entries()) - before; n != 0 {
			t.Errorf("%s: %d entries for nothing", by, n)
		}
	}
	if err := w.r.Ack(t.Context(), id, "slack:T1/U1", "slack"); err != nil {
		t.Fatal(err)
	}
	refused("slack:T1/U1", "")
	refused("slack:T1/U2", approve.RefusedAcked)
	w.heal()
	w.run(40 * time.Minute)
	refused("slack:T1/U1", approve.RefusedNotOpen)
	var page escalate.Page
	w.r.View(func(s *ledger.State) { page = *s.Pages[id] })
	if page.AckedBy != "slack:T1/U1" || page.EndedAt.IsZero() {
		t.Errorf("the page is %+v", page)
	}
}
