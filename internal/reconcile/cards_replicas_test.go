package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
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

// TestReplicasOnPostgres: the same with two loops that run by themselves, over
// the store that replicas share.
func TestReplicasOnPostgres(t *testing.T) {
	w := live(t)
	ch := w.board()
	board := w.options
	dsn, err := pgtest.Start(t).Database("cards")
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Init(t.Context(), dsn, "os:test"); err != nil {
		t.Fatal(err)
	}
	replica := func(name string) func(*reconcile.Options) {
		store, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return func(o *reconcile.Options) {
			board(o)
			o.Store, o.StoreClock, o.Hints, o.Shared, o.Process = store, store.Clock, store.Hints(), true, name
		}
	}
	w.options = replica("a")
	other := replica("b")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stop := w.loop()
	second := w.made(other)
	go func() { ended <- second.Run(ctx) }()
	w.broken()
	for _, service := range []string{"a", "b"} {
		w.soon("card of "+service, func(s *ledger.State) bool {
			open, ok := s.OpenTicket(service)
			return ok && s.Cards[open.ID] != nil && len(s.Cards[open.ID].Messages) > 0
		})
		w.said(w.openTicket(service), true)
	}
	w.soon("both answers, and what became of the first", func(s *ledger.State) bool {
		answered, sent := 0, 0
		for _, p := range s.Cards {
			answered += min(1, len(p.Noted))
			if slices.Contains(p.Noted, "effect-applied") {
				sent++ // the other one waits for the same target
			}
		}
		return answered == 2 && sent == 1
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	stop()
	seen := map[string]bool{}
	if n := ch.called("post t"); n != 2 {
		t.Errorf("%d cards were posted, want two: %v", n, ch.calls)
	}
	for _, b := range ch.bills {
		if seen[b.card.Ticket] {
			t.Errorf("two cards of %s: %v", b.card.Ticket, ch.calls)
		}
		seen[b.card.Ticket] = true
		if len(b.notes) != len(slices.Compact(sorted(slices.Clone(b.notes)))) {
			t.Errorf("notes of %s: %v, want each once", b.card.Ticket, b.notes)
		}
	}
}
