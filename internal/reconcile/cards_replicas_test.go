package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// TestReplicasPostOneCard: of two processes over one ledger one posts, and each
// note is said once.
func TestReplicasPostOneCard(t *testing.T) {
	w, ch := boarded(t)
	board := w.options
	w.options = func(o *reconcile.Options) { board(o); o.Process, o.Shared = "a", true }
	w.start()
	other := w.made(func(o *reconcile.Options) { board(o); o.Process, o.Shared = "b", true })
	both := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); {
			done := make(chan struct{})
			go func() { defer close(done); other.Sweep(t.Context()) }()
			w.r.Sweep(t.Context())
			<-done
			w.pass(step30)
		}
	}
	both(12 * time.Minute)
	w.breakNow(0.3)
	both(4 * time.Minute)
	asked := w.openTicket("checkout")
	ch.stands(t, asked.ID, 1, approve.Open)
	w.said(asked, true)
	both(12 * time.Minute)
	ch.stands(t, asked.ID, 1, approve.Approved)
	notes := ch.of(asked.ID)[0].notes
	if len(notes) < 4 || len(notes) != len(slices.Compact(sorted(slices.Clone(notes)))) {
		t.Errorf("notes %v, want each once", notes)
	}
}

// racing lets another replica run just before the first append after a ticket.
type racing struct {
	ledger.Store
	other func()
}

func (s *racing) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	newest, err := s.Read(ctx, after.Seq-1, 1)
	if other := s.other; err == nil && other != nil && len(newest) == 1 && newest[0].Kind == ledger.KindTicket {
		s.other = nil
		other()
	}
	return s.Store.Append(ctx, after, plan)
}

// TestReplicaLosesTheRace: who wanted to post when another replica already had
// posts nothing.
func TestReplicaLosesTheRace(t *testing.T) {
	w, ch := boarded(t)
	board := w.options
	store := &racing{}
	w.options = func(o *reconcile.Options) {
		board(o)
		store.Store, o.Store = o.Store, store
		o.Process, o.Shared = "a", true
	}
	w.start()
	other := w.made(func(o *reconcile.Options) { board(o); o.Process, o.Shared = "b", true })
	raced := false
	store.other = func() { raced = true; other.Sweep(t.Context()) }
	w.healthy()
	w.breakNow(0.3)
	w.until("question", 15*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	asked := w.openTicket("checkout")
	w.run(2 * time.Minute)
	ch.stands(t, asked.ID, 1, approve.Open)
	if p := w.card(asked.ID); !raced || p.Rev != 2 || len(p.Messages) != 1 {
		t.Errorf("raced: %v, recorded %+v", raced, p)
	}
}
